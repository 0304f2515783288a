"""The fast engine: one integer loop that jumps from event to event.

Clock rules (see `lstmsim.program.program`), and how they are kept here:

1. All state is whole numbers in flat lists, indexed by thread, stream (thread and unit) or unit.
2. A heap holds cycles at which a core may have to do something. All entries of one cycle are taken together:
   finished threads are freed, then tasks are admitted, then the units of the touched cores choose.
3. A stream is a cursor into its unit's operations. When it moves on, the end of each of its waits is computed at
   once from start cycles already known; a wait on something that has not started is looked at again
   whenever its thread issues. Delays are at least 1, so nothing issued now changes a choice made now.
4. The shared policy chooses. Where it could not choose otherwise (any policy but `fine`, or a single context), all
   issues of an operation are taken in one go.
5. An empty heap with an unfinished task is a deadlock.
"""

from __future__ import annotations

from heapq import heappop, heappush

from lstmsim.engines.flat import FlatTask, flatten
from lstmsim.errors import DeadlockError
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import CAUSES, Program
from lstmsim.program.trace import Trace, TraceBuilder
from lstmsim.program.validate import describe_wait, validate

__all__ = ["run"]

UNKNOWN = -1  # a wait whose end is not known yet, or a stream that has come to its end
NO_WAIT = (0,) * len(CAUSES)


class _Thread:
    """One context: cursors of its streams, and what is known of the task on it."""

    __slots__ = (
        *("task", "flat", "admitted", "finish", "result", "open_streams", "starts", "taken", "freed"),
        *("phase", "iteration", "position", "left", "ready", "until"),
    )

    def __init__(self, task: int, flat: FlatTask, admitted: int) -> None:
        units = flat.units
        self.task, self.flat, self.admitted = task, flat, admitted
        self.finish, self.result = UNKNOWN, 0
        self.open_streams = units
        self.starts = [[UNKNOWN] * size for size in flat.known]
        self.taken = [0] * len(flat.slots)
        self.freed: list[list[int]] = [[] for _ in flat.slots]
        self.phase, self.iteration, self.position = [0] * units, [0] * units, [0] * units
        self.left = [0] * units
        self.ready = [UNKNOWN] * units
        self.until: list[tuple[int, ...]] = [NO_WAIT] * units

    def settle(self, unit: int) -> bool:
        """Put the cursor on an operation, skipping phases without any on `unit`; False at the end of the stream."""
        flat = self.flat
        while self.phase[unit] < len(flat.repeat):
            operations = flat.streams[self.phase[unit]][unit]
            if operations:
                self.left[unit] = flat.count[self.phase[unit]][operations[self.position[unit]]]
                return True
            self.phase[unit] += 1
        self.open_streams -= 1
        self.ready[unit] = UNKNOWN
        self.left[unit] = 0
        return False

    def advance(self, unit: int) -> bool:
        """Move the cursor past an operation whose last issue is done."""
        phase = self.phase[unit]
        self.position[unit] += 1
        if self.position[unit] == len(self.flat.streams[phase][unit]):
            self.position[unit] = 0
            self.iteration[unit] += 1
            if self.iteration[unit] == self.flat.repeat[phase]:
                self.iteration[unit] = 0
                self.phase[unit] += 1
        return self.settle(unit)

    def operation(self, unit: int) -> int:
        """Index in its body of the operation under the cursor."""
        return self.flat.streams[self.phase[unit]][unit][self.position[unit]]

    def resolve(self, unit: int) -> int:
        """Compute when the operation under the cursor may issue; returns that cycle, or UNKNOWN."""
        flat, phase, iteration = self.flat, self.phase[unit], self.iteration[unit]
        operation = self.operation(unit)
        until = list(NO_WAIT)
        for source, slot, lag, mode, delay, cause in flat.needs[phase][operation]:
            if mode == 0:
                at = iteration - lag
                if at < 0:
                    continue
            else:
                at = iteration if mode == 1 else flat.repeat[source] - 1 - iteration
            start = self.starts[source][slot + at * flat.stride[source]]
            if start == UNKNOWN:
                self.ready[unit] = UNKNOWN
                return UNKNOWN
            if start + delay > until[cause]:
                until[cause] = start + delay
        if flat.frame[phase][operation]:
            step = flat.repeat[phase] - 1 - iteration if flat.mirrored[phase] else iteration
            until[1] = max(until[1], flat.release + step * flat.frame_interval)
        buffer = flat.takes[phase][operation]
        if buffer >= 0 and self.taken[buffer] >= flat.slots[buffer]:
            turn = self.taken[buffer] - flat.slots[buffer]
            if turn >= len(self.freed[buffer]):
                self.ready[unit] = UNKNOWN
                return UNKNOWN
            cause = flat.slot_cause[buffer]
            until[cause] = max(until[cause], self.freed[buffer][turn])
        self.until[unit] = tuple(until)
        self.ready[unit] = max(self.admitted, *until)
        return self.ready[unit]


class _Loop:
    """The state of a run; `run` is the loop, the rest its steps."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.trace = TraceBuilder(len(program.tasks))
        self.flat = flatten(program)
        self.heap: list[tuple[int, int]] = []
        self.threads: list[list[_Thread | None]] = [[None] * core.contexts for core in program.cores]
        self.active = [[0] * len(core.units) for core in program.cores]
        self.fresh = [[False] * len(core.units) for core in program.cores]
        self.free_at = [[0] * len(core.units) for core in program.cores]
        self.occupied = [0] * len(program.cores)
        tasks = program.tasks
        self.coming = sorted(range(len(tasks)), key=lambda task: (-tasks[task].release, -task))
        self.waiting: list[int] = []
        self.finished = 0
        self.last_cycle = 0

    def run(self) -> Trace:
        heap = self.heap
        for task in self.program.tasks:
            heappush(heap, (task.release, UNKNOWN))
        while heap:
            now = heap[0][0]
            touched = set()
            while heap and heap[0][0] == now:
                touched.add(heappop(heap)[1])
            touched.discard(UNKNOWN)
            freed = [core for core in touched if self.release(core, now)]
            arrived = self.arrive(now)
            if self.waiting and (freed or arrived):
                touched |= self.admit(now)
            for core in sorted(touched):
                for unit in range(len(self.free_at[core])):
                    if self.free_at[core][unit] <= now:
                        self.choose(core, unit, now)
        if self.finished < len(self.program.tasks):
            raise self.deadlock()
        return self.trace.build()

    def release(self, core: int, now: int) -> bool:
        """Free the contexts whose tasks finish now."""
        freed = False
        for context, thread in enumerate(self.threads[core]):
            if thread is not None and thread.finish == now:
                self.trace.task(thread.task, core=core, context=context, admitted=thread.admitted, finish=now)
                self.threads[core][context] = None
                self.occupied[core] -= 1
                self.finished += 1
                freed = True
        return freed

    def arrive(self, now: int) -> bool:
        """Move the tasks that come now to those that wait; True if there are any."""
        before = len(self.waiting)
        while self.coming and self.program.tasks[self.coming[-1]].release <= now:
            self.waiting.append(self.coming.pop())
        return len(self.waiting) > before

    def admit(self, now: int) -> set[int]:
        """Place every waiting task that finds a free context; returns the cores that got one."""
        cores, left = set(), []
        open_contexts = sum(len(threads) for threads in self.threads) - sum(self.occupied)
        for place, task in enumerate(self.waiting):
            if not open_contexts:
                left.extend(self.waiting[place:])
                break
            best = UNKNOWN
            for core in self.program.tasks[task].cores:
                if self.occupied[core] < len(self.threads[core]) and (
                    best == UNKNOWN or (self.occupied[core], core) < (self.occupied[best], best)
                ):
                    best = core
            if best == UNKNOWN:
                left.append(task)
                continue
            self.place(task, best, now)
            open_contexts -= 1
            cores.add(best)
        self.waiting = left
        return cores

    def place(self, task: int, core: int, now: int) -> None:
        """Start a task on the lowest free context of a core."""
        thread = _Thread(task, self.flat[task, self.program.cores[core].kind], now)
        self.threads[core][self.threads[core].index(None)] = thread
        self.occupied[core] += 1
        self.last_cycle = max(self.last_cycle, now)
        for unit in range(thread.flat.units):
            if thread.settle(unit):
                self.wake(core, thread.resolve(unit), now)

    def wake(self, core: int, cycle: int, now: int) -> None:
        """Look at a core again at a later cycle."""
        if cycle > now:
            heappush(self.heap, (cycle, core))

    def choose(self, core: int, unit: int, now: int) -> None:
        """Let a free unit choose among the threads of its core."""
        threads = self.threads[core]
        ready = [
            thread.ready[unit] if thread is not None and UNKNOWN < thread.ready[unit] <= now else None
            for thread in threads
        ]
        description = self.program.cores[core].units[unit]
        active = self.active[core][unit]
        chosen = POLICIES[description.policy](active, self.fresh[core][unit], ready)
        if chosen is None:
            return
        switching = chosen != active and description.switch_cycles > 0
        self.active[core][unit] = chosen
        self.fresh[core][unit] = switching
        if switching:
            taken = description.switch_cycles
            self.trace.switch(now, core, unit, taken, active, chosen)
        else:
            thread = threads[chosen]
            assert thread is not None
            alone = description.policy != "fine" or len(threads) == 1
            taken = self.issue(core, unit, chosen, thread, now, alone)
        self.free_at[core][unit] = now + taken
        heappush(self.heap, (now + taken, core))

    def issue(self, core: int, unit: int, context: int, thread: _Thread, now: int, alone: bool) -> int:
        """Issue once, or all that is left of the operation; returns how long the unit is taken."""
        flat, phase, iteration = thread.flat, thread.phase[unit], thread.iteration[unit]
        operation = thread.operation(unit)
        cycles = flat.cycles[phase][operation]
        first = thread.left[unit] == flat.count[phase][operation]
        issues = thread.left[unit] if alone else 1
        who = (core, unit, context, thread.task, phase, iteration, operation)
        self.trace.issue(now, cycles, issues, who, thread.until[unit] if first else NO_WAIT)
        last = now + (issues - 1) * cycles
        self.last_cycle = max(self.last_cycle, last)
        buffer = flat.takes[phase][operation]
        if first and buffer >= 0:
            thread.taken[buffer] += 1
        thread.left[unit] -= issues
        if thread.left[unit] == 0:
            self.complete(core, unit, thread, last, now)
        return issues * cycles

    def complete(self, core: int, unit: int, thread: _Thread, start: int, now: int) -> None:
        """The last issue of an operation is at `start`: move on, and look again at whoever waited for it."""
        flat, phase, operation = thread.flat, thread.phase[unit], thread.operation(unit)
        slot = flat.slot[phase][operation]
        if slot >= 0:
            thread.starts[phase][slot + thread.iteration[unit] * flat.stride[phase]] = start
        buffer = flat.frees[phase][operation]
        if buffer >= 0:
            thread.freed[buffer].append(start + flat.cycles[phase][operation])
        thread.result = max(thread.result, start + flat.result_cycles[phase][operation])
        if thread.advance(unit):
            self.wake(core, thread.resolve(unit), now)
        for other in range(flat.units):
            if other != unit and thread.ready[other] == UNKNOWN and thread.left[other]:
                self.wake(core, thread.resolve(other), now)
        if thread.open_streams == 0:
            thread.finish = thread.result
            heappush(self.heap, (thread.finish, core))

    def deadlock(self) -> DeadlockError:
        """Who waits for what, in order of cores and threads."""
        waits = []
        for threads in self.threads:
            for thread in threads:
                for unit in range(thread.flat.units if thread is not None else 0):
                    if thread is not None and thread.left[unit] and thread.ready[unit] == UNKNOWN:
                        body = thread.flat.phases[thread.phase[unit]].body
                        operation = body.operations[thread.operation(unit)]
                        waits.append(describe_wait(self.program.tasks[thread.task], operation, _lacking(thread, unit)))
        return DeadlockError(self.last_cycle, tuple(waits))


def _lacking(thread: _Thread, unit: int) -> str:
    flat, iteration = thread.flat, thread.iteration[unit]
    own = thread.phase[unit]
    for need in flat.phases[own].body.operations[thread.operation(unit)].needs:
        source = own if need.phase is None else need.phase
        at = iteration - need.lag if need.phase is None else iteration
        if need.mirrored and need.phase is not None:
            at = flat.repeat[source] - 1 - iteration
        if at >= 0 and thread.starts[source][flat.slot[source][need.operation] + at * flat.stride[source]] == UNKNOWN:
            label = flat.phases[source].body.operations[need.operation].label or "operation"
            return f"{label} {need.operation} of phase {source}, iteration {at}"
    return f"a free slot of buffer {flat.takes[own][thread.operation(unit)]}"


def run(program: Program) -> Trace:
    """Run a program to its end; `ProgramError` if it breaks a rule, `DeadlockError` if it gets stuck."""
    validate(program)
    return _Loop(program).run()
