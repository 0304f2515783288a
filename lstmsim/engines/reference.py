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
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import simpy
from simpy.events import EventPriority

from lstmsim.errors import DeadlockError
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import CAUSES, Buffer, Core, Dependence, Operation, Phase, Program, Task
from lstmsim.program.trace import Trace, TraceBuilder
from lstmsim.program.validate import describe_wait, validate

__all__ = ["run"]

# after simpy's URGENT (0) and NORMAL (1)
ADMISSION, CHOICE = EventPriority(2), EventPriority(3)

Process = Generator[simpy.Event, None, None]


@dataclass
class _Head:
    """The next operation of one stream: issues left, and its place in the task."""

    phase: int
    iteration: int
    index: int
    operation: Operation
    left: int
    since: int = 0


def _stream(phases: tuple[Phase, ...], unit: int) -> Iterator[_Head]:
    for number, phase in enumerate(phases):
        mine = [(i, each) for i, each in enumerate(phase.body.operations) if each.unit == unit]
        for iteration in range(phase.repeat):
            for index, operation in mine:
                yield _Head(number, iteration, index, operation, operation.count)


@dataclass
class _Thread:
    """One context's work: its task, the next operation per unit, and what has happened so far."""

    number: int
    task: Task
    admitted: int
    phases: tuple[Phase, ...]
    buffers: tuple[Buffer, ...]
    streams: list[Iterator[_Head]] = field(default_factory=list)
    heads: list[_Head | None] = field(default_factory=list)
    starts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    freed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    finish: int = 0

    @property
    def frames(self) -> int:
        """How many frames the task waits for, from the first on."""
        last = [
            phase.step(iteration, operation.ahead)
            for phase in self.phases
            for operation in phase.body.operations
            for iteration in (0, phase.repeat - 1)
            if operation.frame
        ]
        return 1 + max(last, default=-1)

    def source(self, head: _Head, need: Dependence) -> tuple[int, int, int] | None:
        """Key of the operation that `need` points to; None where it holds nothing back."""
        if need.phase is None:
            iteration = head.iteration - need.lag
            return None if iteration < 0 else (head.phase, iteration, need.operation)
        repeat = self.phases[need.phase].repeat
        iteration = repeat - 1 - head.iteration if need.mirrored else head.iteration
        return (need.phase, iteration, need.operation) if 0 <= iteration < repeat else None

    def lacking(self, head: _Head) -> str | None:
        """What has not even started yet that `head` needs; None if all its waits have a known end."""
        for need in head.operation.needs:
            key = self.source(head, need)
            if key is not None and key not in self.starts:
                operation = self.phases[key[0]].body.operations[key[2]]
                return f"{operation.label or 'operation'} {key[2]} of phase {key[0]}, iteration {key[1]}"
        buffer = head.operation.takes
        if buffer is not None and self.taken[buffer] - self.buffers[buffer].slots >= len(self.freed[buffer]):
            return f"a free slot of buffer {buffer}"
        return None

    def until(self, head: _Head) -> tuple[int, ...]:
        """Per cause, the cycle from which it no longer holds `head` back; only when nothing is lacking."""
        until = dict.fromkeys(CAUSES, 0)
        for need in head.operation.needs:
            key = self.source(head, need)
            if key is not None:
                until[need.cause] = max(until[need.cause], self.starts[key] + need.delay)
        if head.operation.frame:
            step = self.phases[head.phase].step(head.iteration, head.operation.ahead)
            until["input"] = max(until["input"], self.task.release + step * self.task.frame_interval)
        buffer = head.operation.takes
        if buffer is not None and self.taken[buffer] >= self.buffers[buffer].slots:
            cause = self.buffers[buffer].cause
            until[cause] = max(until[cause], self.freed[buffer][self.taken[buffer] - self.buffers[buffer].slots])
        return tuple(until.values())

    def ready(self, unit: int, now: int) -> int | None:
        """The cycle from which the next operation on `unit` could start; None if not by `now`."""
        head = self.heads[unit]
        if head is None:
            return None
        if head.left == head.operation.count:
            if self.lacking(head) is not None:
                return None
            head.since = max(self.admitted, *self.until(head))
        return head.since if head.since <= now else None


class _Machine:
    """Cores, units and the dispatcher as SimPy processes."""

    def __init__(self, program: Program) -> None:
        self.env = simpy.Environment()
        self.program = program
        self.trace = TraceBuilder(len(program.tasks))
        self.contexts: list[list[_Thread | None]] = [[None] * core.contexts for core in program.cores]
        self.bells: dict[tuple[int, int], simpy.Event] = {}
        self.finished = 0
        self.last_cycle = 0
        self.echoes: dict[int, dict[tuple[int, int], set[int]]] = {}
        for index, core in enumerate(program.cores):
            for unit in range(len(core.units)):
                self.env.process(self.unit(index, core, unit))
        self.arrived = self.env.event()
        self.waiting: list[int] = []
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
        """Tasks come in order of (release, position)."""
        tasks = self.program.tasks
        for task in sorted(range(len(tasks)), key=lambda index: (tasks[index].release, index)):
            if tasks[task].release > self.now:
                yield self.env.timeout(tasks[task].release - self.now)
            self.waiting.append(task)
            self.knock()

    def knock(self) -> None:
        """Tell the dispatcher that a task has come or a context is free."""
        if not self.arrived.triggered:
            self.arrived.succeed()

    def dispatcher(self) -> Process:
        """Hands waiting tasks to free contexts, once a cycle and after all effects."""
        while True:
            yield self.arrived
            yield self.phase_of_cycle(ADMISSION)
            self.arrived = self.env.event()
            self.waiting = [task for task in self.waiting if not self.admit(task)]

    def admit(self, number: int) -> bool:
        """Place a task on the allowed core with the fewest occupied contexts; False if none is free."""
        task = self.program.tasks[number]
        free = [core for core in task.cores if None in self.contexts[core]]
        if not free:
            return False
        core = min(free, key=lambda each: (sum(one is not None for one in self.contexts[each]), each))
        kind = self.program.cores[core].kind
        thread = _Thread(number, task, self.now, task.phases(kind), task.slots(kind))
        thread.streams = [_stream(thread.phases, unit) for unit in range(len(self.program.cores[core].units))]
        thread.heads = [next(stream, None) for stream in thread.streams]
        self.contexts[core][self.contexts[core].index(None)] = thread
        self.last_cycle = max(self.last_cycle, self.now)
        if task.frame_interval:
            self.env.process(self.frames(core, thread))
        self.ring(core)
        return True

    def frames(self, core: int, thread: _Thread) -> Process:
        """Wake the core whenever a frame of the thread's task comes in."""
        for step in range(thread.frames):
            cycle = thread.task.release + step * thread.task.frame_interval
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

    def complete(self, core: int, thread: _Thread, head: _Head) -> None:
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

    def finish(self, core: int, context: int, thread: _Thread) -> Process:
        """The task ends when all its results are there; its context is free in that very cycle."""
        yield self.env.timeout(thread.finish - self.now)
        self.contexts[core][context] = None
        self.finished += 1
        self.trace.task(thread.number, core=core, context=context, admitted=thread.admitted, finish=self.now)
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
