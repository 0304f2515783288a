"""Who comes in the reference engine: tasks by themselves, after others and behind gates; and who arrives at gates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lstmsim.engines.reference.clock import Clockwork, Process
from lstmsim.engines.reference.gates import Gate
from lstmsim.program.program import Program, Task

__all__ = ["Arrivals", "follows"]


class Arrivals(Clockwork):
    """Tasks up to the cycle in which they come. The dispatcher is told of them and lets them wait.

    finished: how many tasks have finished or were turned away.
    knocked: the event for which the dispatcher waits.
    newcomers: tasks that have come and do not wait yet.
    gates: the gates of the program.
    opened: for each gate an event, as soon as it is known when the gate opens.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.finished = 0
        self.knocked = self.env.event()
        self.newcomers: list[int] = []
        self.followers: dict[int, list[int]] = defaultdict(list)
        for index, task in enumerate(program.tasks):
            if task.after is not None:
                self.followers[task.after].append(index)
        self.gates = [Gate(arrivals) for arrivals in program.gates]
        self.opened = [self.env.event() for _ in self.gates]
        #: For each gate, the tasks that come behind it.
        self.behind: dict[int, list[int]] = defaultdict(list)
        for index, task in enumerate(program.tasks):
            if task.behind is not None:
                self.behind[task.behind].append(index)
        #: After how many cycles operations may go on that wait for gates.
        self.gate_delays = _gate_delays(program)

    def expect(self, numbers: Iterable[int]) -> None:
        """Let the tasks with these numbers come when it is time."""
        self.env.process(self.arrivals(numbers))

    def arrivals(self, numbers: Iterable[int]) -> Process:
        """Let those of the tasks come that follow nothing, in order of (release, position)."""
        tasks = self.program.tasks
        free = [number for number in numbers if not follows(tasks[number])]
        for task in sorted(free, key=lambda index: (tasks[index].release, index)):
            if tasks[task].release > self.now:
                yield self.env.timeout(tasks[task].release - self.now)
            self.come(task)

    def follow(self, task: int, since: int) -> Process:
        """Let a task come `release` cycles after cycle `since`, in which what it follows has happened."""
        yield self.env.timeout(since + self.program.tasks[task].release - self.now)
        self.come(task)

    def come(self, task: int) -> None:
        """Note that a task has come."""
        self.newcomers.append(task)
        self.knock()

    def done_with(self, task: int) -> None:
        """Note that a task has finished or was turned away. Tasks that come after it may come now."""
        self.finished += 1
        self.let_follow(self.followers[task], self.now)

    def let_follow(self, tasks: Iterable[int], since: int) -> None:
        """Let tasks come, each so long after cycle `since` as it wants; at once if that is now."""
        for task in tasks:
            if since + self.program.tasks[task].release > self.now:
                self.env.process(self.follow(task, since))
            else:
                self.come(task)

    def arrive_at(self, number: int | None, cycle: int) -> None:
        """Note that somebody arrives at a gate, if it is one. If all have, others know when it opens."""
        if number is None or not self.gates[number].arrive(cycle):
            return
        opens = self.gates[number].latest
        self.let_follow(self.behind[number], opens)
        self.opened[number].succeed()
        for delay in self.gate_delays:
            self.ring_everywhere(opens + delay)

    def knock(self) -> None:
        """Tell the dispatcher that a task has come or a context is free."""
        if not self.knocked.triggered:
            self.knocked.succeed()

    def knock_in(self, cycles: int) -> None:
        """Tell the dispatcher at a later cycle to look again."""
        timer = self.env.timeout(cycles)
        timer.callbacks.append(lambda _: self.knock())


def follows(task: Task) -> bool:
    """Whether a task comes after another one or behind a gate.

    >>> follows(Task("t", (), (), (), after=2)), follows(Task("t", (), (), ()))
    (True, False)
    """
    return task.after is not None or task.behind is not None


def _gate_delays(program: Program) -> set[int]:
    """All delays of dependences on gates."""
    ways = [phases for task in program.tasks for _, phases in task.variants]
    ways += [each.phases for task in program.tasks for each in task.wide]
    phases = {id(phase): phase for way in {id(way): way for way in ways}.values() for phase in way}
    needs = (need for phase in phases.values() for each in phase.body.operations for need in each.needs)
    return {need.delay for need in needs if need.gate} if program.gates else set()
