"""The wheel of cycles, and a thread that issues a task's operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

import simpy
from simpy.events import EventPriority

from lstmsim.base.errors import ProgramError
from lstmsim.engines.reference.waiting import Boundary, Waiting
from lstmsim.program.flat import LATEST
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Buffer, Phase, Program, Task
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import TraceBuilder


@dataclass
class Barrier:
    """A barrier: how many must still arrive, and the latest cycle of those that have; it may be to come."""

    left: int
    latest: int = 0

    @property
    def opens(self) -> int | None:
        """The cycle in which it opens; None if that is not known yet."""
        return None if self.left else self.latest

    def arrive(self, cycle: int) -> bool:
        """Count one that arrives at a cycle. Tells whether all have come now."""
        self.left -= 1
        self.latest = max(self.latest, cycle)
        return self.left == 0


#: Later than any cycle.
NEVER = 1 << 60


#: A stream of operations, as (which of the task's cores, which unit of that core).
Stream = tuple[int, int]


@dataclass
class Head:
    """The next operation of one stream: its place in the task, issues left, and from when nothing holds it back."""

    phase: int
    iteration: int
    index: int
    operation: Operation
    left: int
    since: int = 0


def stream(thread: Thread, which: Stream) -> Iterator[Head]:
    """Yield the operations of one stream as they issue, from the thread's first boundary on."""
    for number, phase in enumerate(thread.phases):
        mine = [(i, each) for i, each in enumerate(phase.body.operations) if (each.member, each.unit) == which]
        for iteration in range(phase.repeat if mine else 0):
            if (number, iteration) >= thread.first:
                for index, operation in mine:
                    if not thread.leaves_out(number, iteration, operation):
                        yield Head(number, iteration, index, operation, operation.count)


@dataclass
class Thread:
    """A task that runs, from its admission (or return) to its finish or pause. Times are in cycles.

    arrived, since: when the task came; when it was admitted or went on.
    opens: when the states of its session are on its core; it issues nothing before.
    thread_slots: (core, context) of each member.
    first, stop: boundaries at which the thread begins, and pauses (None if it does not).
    streams, heads: for each stream, the operations that follow and the next operation.
    reached, ended: for each stream, (phase, iteration) of its last issue, and when that ended.
    starts: (phase, iteration, operation) -> start of the operation's last issue.
    taken, freed: buffer -> how many slots were taken so far, and when slots were freed, in order.
    finish, clear: when all results are there, and when no delay of a dependence is left either.
    batch: all tasks that it runs, as they waited, the one that leads them first.
    ragged: whether operations of one of them are left out in steps beyond its own.
    parts: for each of them then, how many of its operations have yet to complete.
    results, gone: when the results of each of them are there so far; numbers of those that have finished.
    loads, loaded: operations that load its weight set and have yet to issue; when the results of the others are there.
    """

    number: int
    task: Task
    rank: int
    arrived: int
    since: int
    phases: tuple[Phase, ...]
    buffers: tuple[Buffer, ...]
    thread_slots: tuple[tuple[int, int], ...]
    first: Boundary
    barriers: Sequence[Barrier] = ()
    stop: Boundary | None = None
    streams: dict[Stream, Iterator[Head]] = field(default_factory=dict)
    heads: dict[Stream, Head | None] = field(default_factory=dict)
    reached: dict[Stream, Boundary] = field(default_factory=dict)
    ended: dict[Stream, int] = field(default_factory=dict)
    starts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    freed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    finish: int = 0
    clear: int = 0
    loads: int = 0
    loaded: int = 0
    opens: int = 0
    batch: tuple[Waiting, ...] = ()
    ragged: bool = False
    parts: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.ragged:
            self.parts, self.results = [0] * len(self.batch), [0] * len(self.batch)
            # weights that are there are not loaded
            for number, phase in enumerate(self.phases[self.first[0] :], self.first[0]):
                for iteration in range(phase.repeat):
                    for operation in phase.body.operations:
                        if not self.leaves_out(number, iteration, operation):
                            self.parts[operation.inference] += 1

    def leaves_out(self, phase: int, iteration: int, operation: Operation) -> bool:
        """Whether an operation is beyond the steps of its inference, in a ragged batch."""
        if not self.ragged:
            return False
        own = operation.inference
        return own >= len(self.batch) or self.phases[phase].step(iteration) >= self.batch[own].task.length

    @property
    def frames(self) -> int:
        """How many frames the task waits for."""
        last = [
            phase.step(iteration, operation.ahead)
            for phase in self.phases
            for operation in phase.body.operations
            for iteration in (0, phase.repeat - 1)
            if operation.frame
        ]
        return 1 + max(last, default=-1)

    @property
    def lateness(self) -> set[int]:
        """For how many cycles after a frame operations wait."""
        every = (operation for phase in self.phases for operation in phase.body.operations)
        return {operation.frame - 1 for operation in every if operation.frame}

    @property
    def end(self) -> Boundary:
        """The boundary after the last iteration."""
        return len(self.phases), 0

    @property
    def over(self) -> bool:
        """Whether the thread will issue no more, because nothing is left or because it pauses."""
        return all(head is None or self.parked(head) for head in self.heads.values())

    def parked(self, head: Head) -> bool:
        """Whether a head is an operation after the boundary at which the thread stops."""
        return self.stop is not None and (head.phase, head.iteration) >= self.stop

    def next_boundary(self) -> Boundary:
        """The first boundary that no stream has passed."""
        after = [self.first]
        for phase, iteration in self.reached.values():
            last = iteration + 1 == self.phases[phase].repeat
            after.append((phase + 1, 0) if last else (phase, iteration + 1))
        return max(after)

    def source(self, head: Head, need: Dependence) -> tuple[int, int, int] | None:
        """The key in `starts` of the operation that `need` points to; None if `need` holds nothing back."""
        if need.phase is None:
            phase, iteration = head.phase, head.iteration - need.lag
        else:
            phase = need.phase
            repeat = self.phases[phase].repeat
            iteration = repeat - 1 - head.iteration if need.mirrored else head.iteration
            if iteration >= repeat:
                return None
        if iteration < 0 or (phase, iteration) < self.first:
            return None
        operation = self.phases[phase].body.operations[need.operation]
        return None if self.leaves_out(phase, iteration, operation) else (phase, iteration, need.operation)

    def over_at(self, head: Head, need: Dependence) -> int:
        """The cycle from which `need` no longer holds `head` back; 0 if it never does, `NEVER` if not known yet."""
        if need.barrier:
            number = self.phases[head.phase].barrier(head.iteration, need.operation)
            if number < 0:
                return 0
            opens = self.barriers[number].opens
            return NEVER if opens is None else opens + need.delay
        key = self.source(head, need)
        if key is None:
            return 0
        return self.starts[key] + need.delay if key in self.starts else NEVER

    def extra(self, head: Head) -> int:
        """How many cycles more than usual an operation takes in its iteration."""
        column = head.operation.extra
        return 0 if column is None else self.phases[head.phase].extra_cycles[column][head.iteration]

    def lacking(self, head: Head) -> str | None:
        """What `head` needs and has not even started yet, in words; None if all its waits have a known end."""
        for need in head.operation.needs:
            if self.over_at(head, need) < NEVER:
                continue
            if need.barrier:
                return f"barrier {self.phases[head.phase].barrier(head.iteration, need.operation)}"
            key = self.source(head, need)
            if key is not None:
                operation = self.phases[key[0]].body.operations[key[2]]
                return f"{operation.label or 'operation'} {key[2]} of phase {key[0]}, iteration {key[1]}"
        buffer = head.operation.takes
        if buffer is not None and self.taken[buffer] - self.buffers[buffer].slots >= len(self.freed[buffer]):
            return f"a free slot of buffer {buffer}"
        return None

    def waits(self, head: Head) -> Iterator[tuple[str, int]]:
        """What holds `head` back: the cause, and the cycle from which it no longer does; `NEVER` if not known yet."""
        if self.opens > self.since:
            yield "input", self.opens
        for need in head.operation.needs:
            yield need.cause, self.over_at(head, need)
        if head.operation.frame:
            step = self.phases[head.phase].step(head.iteration, head.operation.ahead)
            if step * max(self.task.frame_interval, 1) > LATEST:
                raise ProgramError(f"the frame of step {step} comes too late")
            yield "input", self.arrived + step * self.task.frame_interval + head.operation.frame - 1
        buffer = head.operation.takes
        if buffer is not None and self.taken[buffer] >= self.buffers[buffer].slots:
            turn = self.taken[buffer] - self.buffers[buffer].slots
            freed = self.freed[buffer]
            yield self.buffers[buffer].cause, freed[turn] if turn < len(freed) else NEVER

    def until(self, head: Head) -> tuple[int, ...]:
        """For each cause the cycle from which it no longer holds `head` back; `NEVER` where that is not known yet."""
        until = dict.fromkeys(CAUSES, 0)
        for cause, cycle in self.waits(head):
            until[cause] = max(until[cause], cycle)
        return tuple(until.values())

    def ready(self, which: Stream, now: int) -> int | None:
        """The cycle from which the next operation of a stream could start; None if not by `now`."""
        head = self.heads.get(which)
        if head is None or self.parked(head) or not head.operation.count:
            return None
        if head.left == head.operation.count:
            since = self.since
            for _, cycle in self.waits(head):
                if cycle > now:
                    return None
                since = max(since, cycle)
            head.since = since
        return head.since if head.since <= now else None


@dataclass(frozen=True)
class ThreadSlot:
    """The occupant of a context, and which of the cores of its task this one is."""

    thread: Thread
    member: int


# after simpy's URGENT (0) and NORMAL (1)
ADMISSION, CHOICE = EventPriority(2), EventPriority(3)

Process = Generator[simpy.Event, None, None]


class Clockwork:
    """The state that all processes of a run share: time, the trace, thread slots, and bells that wake units."""

    def __init__(self, program: Program) -> None:
        self.env = simpy.Environment()
        self.program = program
        self.trace = TraceBuilder(len(program.tasks))
        self.contexts: list[list[ThreadSlot | None]] = [[None] * core.contexts for core in program.cores]
        #: For each instance of a unit, as (core, unit, instance): the thread slots with operations for it, by context.
        self.queues: dict[tuple[int, int, int], dict[int, ThreadSlot]] = {
            (index, number, instance): {}
            for index, core in enumerate(program.cores)
            for number, unit in enumerate(core.units)
            for instance in range(unit.instances)
        }
        #: For each core: its keys in `queues`, and what they hold.
        self.instances = [
            [(key, queue) for key, queue in self.queues.items() if key[0] == index]
            for index in range(len(program.cores))
        ]
        #: For each instance of a unit that sleeps, as (core, unit, instance).
        self.bells: dict[tuple[int, int, int], simpy.Event] = {}
        self.last_cycle = 0

    def phase_of_cycle(self, priority: EventPriority) -> simpy.Event:
        """An event of this same cycle that comes after all events of a smaller priority number."""
        return self.at_phase(self.env.event(), priority)

    def at_phase(self, event: simpy.Event, priority: EventPriority, delay: int = 0) -> simpy.Event:
        """Let an event come about so many cycles later, after all events of a smaller priority number."""
        event._ok, event._value = True, None
        self.env.schedule(event, priority=priority, delay=delay)
        return event

    def ring(self, core: int) -> None:
        """Wake the sleeping units of a core, so that they choose in this cycle: something has changed.

        Ways without threads that have operations for them have nothing to choose, and sleep on.
        """
        for key, queue in self.instances[core]:
            if queue and key in self.bells:
                self.at_phase(self.bells.pop(key), CHOICE)

    def ring_all(self, thread: Thread) -> None:
        """Wake the units of a thread's cores."""
        for core, _ in thread.thread_slots:
            self.ring(core)

    def ring_at(self, thread: Thread, cycle: int) -> None:
        """Wake the units of a thread's cores at a later cycle."""
        timer = self.env.timeout(cycle - self.now)
        timer.callbacks.append(lambda _: self.ring_all(thread))

    def ring_everywhere(self, cycle: int) -> None:
        """Wake the units of all cores at a later cycle."""

        def wake(_: simpy.Event) -> None:
            for core in range(len(self.program.cores)):
                self.ring(core)

        self.env.timeout(cycle - self.now).callbacks.append(wake)

    @property
    def now(self) -> int:
        return int(self.env.now)
