"""The reference engine: SimPy processes, one issue at a time, written to be read.

Clock rules (see `lstmsim.program.program`), and how they are kept here:

1. SimPy's clock only ever gets whole numbers.
2. Three priorities order the events of one cycle: effects (SimPy's default), then admission, then choices.
3. A thread holds one generator of operations per unit; dependences look at recorded start cycles.
4. Each unit is one process that asks the policy; no SimPy resource decides anything.
5. When no event is left and a task is unfinished, that is a deadlock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator

import simpy
from simpy.events import EventPriority

from lstmsim.engines.reference_thread import Head, Thread, stream
from lstmsim.errors import DeadlockError
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import CAUSES, Core, Phase, Program
from lstmsim.program.trace import Trace, TraceBuilder
from lstmsim.program.validate import describe_wait, validate

__all__ = ["run"]

# after simpy's URGENT (0) and NORMAL (1)
ADMISSION, CHOICE = EventPriority(2), EventPriority(3)

Process = Generator[simpy.Event, None, None]


class _Machine:
    """Cores, units and the dispatcher as SimPy processes."""

    def __init__(self, program: Program) -> None:
        self.env = simpy.Environment()
        self.program = program
        self.trace = TraceBuilder(len(program.tasks))
        self.contexts: list[list[Thread | None]] = [[None] * core.contexts for core in program.cores]
        self.bells: dict[tuple[int, int], simpy.Event] = {}
        self.finished = 0
        self.last_cycle = 0
        self.echoes: dict[int, dict[tuple[int, int], set[int]]] = {}
        for index, core in enumerate(program.cores):
            for unit in range(len(core.units)):
                self.env.process(self.unit(index, core, unit))
        self.knocked = self.env.event()
        self.waiting: list[int] = []
        self.arrived = [0] * len(program.tasks)
        self.followers: dict[int, list[int]] = defaultdict(list)
        for index, task in enumerate(program.tasks):
            if task.after is not None:
                self.followers[task.after].append(index)
        self.env.process(self.dispatcher())
        self.env.process(self.arrivals())

    def phase_of_cycle(self, priority: EventPriority) -> simpy.Event:
        """An event of this very cycle that comes after everything of a smaller priority number."""
        event = self.env.event()
        event._ok, event._value = True, None
        self.env.schedule(event, priority=priority)
        return event

    def ring(self, core: int) -> None:
        """Wake the sleeping units of a core: something has changed."""
        for unit in range(len(self.program.cores[core].units)):
            bell = self.bells.pop((core, unit), None)
            if bell is not None:
                bell.succeed()

    def ring_at(self, core: int, cycle: int) -> None:
        """Wake the units of a core at a later cycle."""
        timer = self.env.timeout(cycle - self.now)
        timer.callbacks.append(lambda _: self.ring(core))

    @property
    def now(self) -> int:
        return int(self.env.now)

    def arrivals(self) -> Process:
        """Tasks that come after no other, in order of (release, position)."""
        tasks = self.program.tasks
        free = [index for index, task in enumerate(tasks) if task.after is None]
        for task in sorted(free, key=lambda index: (tasks[index].release, index)):
            if tasks[task].release > self.now:
                yield self.env.timeout(tasks[task].release - self.now)
            self.come(task)

    def follow(self, task: int) -> Process:
        """A task comes after the one that it follows has finished."""
        yield self.env.timeout(self.program.tasks[task].release)
        self.come(task)

    def come(self, task: int) -> None:
        """A task begins to wait."""
        self.arrived[task] = self.now
        self.waiting.append(task)
        self.knock()

    def knock(self) -> None:
        """Tell the dispatcher that a task has come or a context is free."""
        if not self.knocked.triggered:
            self.knocked.succeed()

    def dispatcher(self) -> Process:
        """Hands waiting tasks to free contexts, once a cycle and after all effects."""
        while True:
            yield self.knocked
            yield self.phase_of_cycle(ADMISSION)
            self.knocked = self.env.event()
            self.waiting.sort(key=self.turn)
            self.waiting = [task for task in self.waiting if not self.admit(task)]

    def turn(self, number: int) -> tuple[int, int, int]:
        """The place of a waiting task among others."""
        task, arrived = self.program.tasks[number], self.arrived[number]
        return task.key + (arrived if task.key_from_arrival else 0), arrived, number

    def admit(self, number: int) -> bool:
        """Place a task on the allowed core with the fewest occupied contexts; False if none is free."""
        task = self.program.tasks[number]
        free = [core for core in task.cores if None in self.contexts[core]]
        if not free:
            return False
        core = min(free, key=lambda each: (sum(one is not None for one in self.contexts[each]), each))
        kind = self.program.cores[core].kind
        thread = Thread(number, task, self.arrived[number], self.now, task.phases(kind), task.slots(kind))
        thread.streams = [stream(thread.phases, unit) for unit in range(len(self.program.cores[core].units))]
        thread.heads = [next(stream, None) for stream in thread.streams]
        self.contexts[core][self.contexts[core].index(None)] = thread
        self.last_cycle = max(self.last_cycle, self.now)
        if task.frame_interval:
            self.env.process(self.frames(core, thread))
        self.ring(core)
        return True

    def frames(self, core: int, thread: Thread) -> Process:
        """Wake the core whenever a frame of the thread's task comes in."""
        for step in range(thread.frames):
            cycle = thread.arrived + step * thread.task.frame_interval
            if cycle > self.now:
                yield self.env.timeout(cycle - self.now)
                self.ring(core)

    def unit(self, index: int, core: Core, number: int) -> Process:
        """One unit: chooses, issues for `cycles`, chooses again; sleeps while it has no candidate."""
        unit = core.units[number]
        active, fresh = 0, False
        while True:
            yield self.phase_of_cycle(CHOICE)
            threads = self.contexts[index]
            ready = [None if thread is None else thread.ready(number, self.now) for thread in threads]
            chosen = POLICIES[unit.policy](active, fresh, ready)
            if chosen is None:
                bell = self.bells[index, number] = self.env.event()
                yield bell
            elif chosen != active and unit.switch_cycles:
                self.trace.switch(self.now, index, number, unit.switch_cycles, active, chosen)
                active, fresh = chosen, True
                yield self.env.timeout(unit.switch_cycles)
            else:
                active, fresh = chosen, False
                yield self.env.timeout(self.issue(index, number, chosen))

    def issue(self, core: int, unit: int, context: int) -> int:
        """One issue of the chosen thread's next operation; returns how long the unit is taken."""
        thread = self.contexts[core][context]
        assert thread is not None
        head = thread.heads[unit]
        assert head is not None
        operation = head.operation
        who = (core, unit, context, thread.number, head.phase, head.iteration, head.index)
        until = thread.until(head) if head.left == operation.count else (0,) * len(CAUSES)
        self.trace.issue(self.now, operation.cycles, 1, who, until)
        self.last_cycle = max(self.last_cycle, self.now)
        if head.left == operation.count and operation.takes is not None:
            thread.taken[operation.takes] += 1
        head.left -= 1
        if head.left == 0:
            self.complete(core, thread, head)
            thread.heads[unit] = next(thread.streams[unit], None)
            if not any(thread.heads):
                self.env.process(self.finish(core, context, thread))
        return operation.cycles

    def complete(self, core: int, thread: Thread, head: Head) -> None:
        """The last issue of an operation: note its start, and wake the core when others may go on."""
        operation = head.operation
        thread.starts[head.phase, head.iteration, head.index] = self.now
        thread.finish = max(thread.finish, self.now + operation.result_cycles)
        if operation.frees is not None:
            thread.freed[operation.frees].append(self.now + operation.cycles)
            self.ring_at(core, self.now + operation.cycles)
        for delay in self.delays(thread.phases)[head.phase, head.index]:
            self.ring_at(core, self.now + delay)

    def delays(self, phases: tuple[Phase, ...]) -> dict[tuple[int, int], set[int]]:
        """Per (phase, operation): after how many cycles somebody who depends on it may go on."""
        if id(phases) not in self.echoes:
            echoes: dict[tuple[int, int], set[int]] = defaultdict(set)
            for number, phase in enumerate(phases):
                for operation in phase.body.operations:
                    for need in operation.needs:
                        echoes[number if need.phase is None else need.phase, need.operation].add(need.delay)
            self.echoes[id(phases)] = echoes
        return self.echoes[id(phases)]

    def finish(self, core: int, context: int, thread: Thread) -> Process:
        """The task ends when all its results are there; its context is free in that very cycle."""
        yield self.env.timeout(thread.finish - self.now)
        self.contexts[core][context] = None
        self.finished += 1
        times = {"admitted": thread.admitted, "finish": self.now, "arrived": thread.arrived}
        self.trace.task(thread.number, core=core, context=context, **times)
        for follower in self.followers[thread.number]:
            if self.program.tasks[follower].release:
                self.env.process(self.follow(follower))
            else:
                self.come(follower)
        self.knock()

    def deadlock(self) -> DeadlockError:
        """Who waits for what, in order of cores and threads."""
        waits = []
        for core in self.contexts:
            for thread in core:
                for head in thread.heads if thread is not None else ():
                    lacking = None if head is None or thread is None else thread.lacking(head)
                    if thread is not None and head is not None and lacking is not None:
                        waits.append(describe_wait(thread.task, head.operation, lacking))
        return DeadlockError(self.last_cycle, tuple(waits))


def run(program: Program) -> Trace:
    """Run a program to its end; `ProgramError` if it breaks a rule, `DeadlockError` if it gets stuck."""
    validate(program)
    machine = _Machine(program)
    machine.env.run()
    if machine.finished < len(program.tasks):
        raise machine.deadlock()
    return machine.trace.build()
