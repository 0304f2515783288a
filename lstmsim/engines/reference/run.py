"""The reference engine: SimPy processes, one issue at a time, written to be read.

Clock rules (see docs/program_format.md), and how they are kept here:

1. SimPy's clock only ever gets whole numbers.
2. Three priorities order the events of one cycle: effects (SimPy's default), then admission, then choices.
3. A thread holds one generator of operations per unit; dependences look at recorded start cycles.
4. Each unit is one process that asks the policy; no SimPy resource decides anything.
5. When no event is left and a task is unfinished, that is a deadlock.

Tasks that keep coming, on the reference engine: they are added to a run that stands still until then.

The whole run is kept, so memory grows with the number of tasks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf

import numpy as np

from lstmsim.base.errors import DeadlockError, ProgramError
from lstmsim.engines.feeds import WINDOW, Batches, Group, Ints, check_templates
from lstmsim.engines.reference.dispatcher import Dispatcher
from lstmsim.engines.reference.thread import CHOICE, Head, Process, Thread
from lstmsim.program.accounts import totals_of
from lstmsim.program.flat import LATEST
from lstmsim.program.policy import POLICIES
from lstmsim.program.program import Core, Phase, Program
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import TASKS, Totals, Trace, TraceBuilder
from lstmsim.program.validate import describe_wait, validate

#: What held back an issue that follows another one of its operation.
_UNHELD = (0,) * len(CAUSES)


class Machine(Dispatcher):
    """Cores and their units as SimPy processes."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.echoes: dict[int, dict[tuple[int, int], set[int]]] = {}
        for index, core in enumerate(program.cores):
            for number, unit in enumerate(core.units):
                for instance in range(unit.instances):
                    self.env.process(self.unit(index, core, number, instance))

    def unit(self, index: int, core: Core, number: int, instance: int) -> Process:
        """Run one instance of a unit: choose, issue for `cycles`, choose again; sleep while there is no candidate."""
        unit = core.units[number]
        policy = POLICIES[unit.policy]
        queue = self.queues[index, number, instance]
        active, fresh = 0, False
        while True:
            now, chosen = self.now, None
            if queue:
                ready = {
                    context: cycle
                    for context, thread_slot in queue.items()
                    if (cycle := thread_slot.thread.ready((thread_slot.member, number), now)) is not None
                }
                chosen = policy(active, fresh, ready)
            if chosen is None:
                bell = self.bells[index, number, instance] = self.env.event()
                yield bell
            elif chosen != active and unit.switch_cycles:
                self.trace.switch(now, index, number, unit.switch_cycles, active, chosen)
                active, fresh = chosen, True
                yield self.at_phase(self.env.event(), CHOICE, unit.switch_cycles)
            else:
                active, fresh = chosen, False
                yield self.at_phase(self.env.event(), CHOICE, self.issue(index, number, chosen))

    def issue(self, core: int, unit: int, context: int) -> int:
        """Issue the next operation of the chosen thread once. Returns for how many cycles the unit is taken."""
        thread_slot = self.contexts[core][context]
        assert thread_slot is not None
        thread, which = thread_slot.thread, (thread_slot.member, unit)
        head = thread.heads[which]
        assert head is not None
        operation, now = head.operation, self.now
        who = (core, unit, context, thread.number, head.phase, head.iteration, head.index)
        until = thread.until(head) if head.left == operation.count else _UNHELD
        extra = thread.extra(head)
        instance = context % self.program.cores[core].units[unit].instances
        self.trace.issue(now, operation.cycles + extra, 1, who, until, instance)
        self.last_cycle = max(self.last_cycle, now)
        thread.reached[which] = head.phase, head.iteration
        thread.ended[which] = now + extra + operation.cycles
        if head.left == operation.count and operation.takes is not None:
            thread.taken[operation.takes] += 1
        head.left -= 1
        if head.left == 0:
            self.complete(thread, head, extra)
            thread.heads[which] = next(thread.streams[which], None)
            if thread.heads[which] is None:
                self.queues[core, unit, instance].pop(context, None)
            self.end_quietly(thread)
            if thread.over:
                self.env.process(self.leave(thread, 0))
        return operation.cycles + extra

    def complete(self, thread: Thread, head: Head, extra: int) -> None:
        """Note the start of the last issue of an operation, `extra` cycles late; wake cores when others may go on."""
        operation = head.operation
        start = self.now + extra
        thread.starts[head.phase, head.iteration, head.index] = start
        thread.finish = max(thread.finish, start + operation.result_cycles)
        if thread.ragged:
            self.complete_part(thread, operation.inference, start + operation.result_cycles)
        delays = self.delays(thread.phases)[head.phase, head.index]
        thread.clear = max(thread.clear, start + max((operation.result_cycles, *delays)))
        weight_set = thread.task.weight_set
        if thread.loads and weight_set is not None and head.phase < weight_set.loading:
            thread.loads -= 1
            thread.loaded = max(thread.loaded, start + operation.result_cycles)
            if not thread.loads:
                self.env.process(self.loaded(thread))
        if operation.frees is not None:
            thread.freed[operation.frees].append(start + operation.cycles)
            self.ring_at(thread, start + operation.cycles)
        for delay in delays:
            self.ring_at(thread, start + delay)
        if operation.arrives is not None:
            barrier = thread.phases[head.phase].barrier(head.iteration, operation.arrives)
            self.arrive_at(barrier, start + operation.cycles)

    def complete_part(self, thread: Thread, inference: int, done: int) -> None:
        """Count an operation of a member of a ragged batch; after its last one the member finishes with its results."""
        thread.parts[inference] -= 1
        thread.results[inference] = max(thread.results[inference], done)
        if not thread.parts[inference]:
            self.env.process(self.finish_part(thread, thread.batch[inference], thread.results[inference]))

    def end_quietly(self, thread: Thread) -> None:
        """End the streams of a thread that come to an operation of no issue, if it is known until when that waits."""
        for which, head in thread.heads.items():
            if head is not None and head.operation.count == 0 and thread.lacking(head) is None:
                until = thread.until(head)
                cycle = max(thread.since, *until)
                core, context = thread.thread_slots[which[0]]
                self.trace.halt(cycle, (core, which[1], context, thread.number), until)
                thread.finish = max(thread.finish, cycle)
                thread.heads[which] = None

    def delays(self, phases: tuple[Phase, ...]) -> dict[tuple[int, int], set[int]]:
        """(phase, operation) -> after how many cycles an operation that depends on it may go on."""
        if id(phases) not in self.echoes:
            echoes: dict[tuple[int, int], set[int]] = defaultdict(set)
            for number, phase in enumerate(phases):
                for operation in phase.body.operations:
                    for need in (need for need in operation.needs if not need.barrier):
                        echoes[number if need.phase is None else need.phase, need.operation].add(need.delay)
            self.echoes[id(phases)] = echoes
        return self.echoes[id(phases)]

    def finish(self) -> None:
        """Run until nothing happens any more.

        `DeadlockError` if tasks are unfinished then, `ProgramError` if the run comes to a cycle after `LATEST`.
        """
        # not `run(until=...)`: some releases of SimPy put the event at which they stop back, which is then the soonest
        while (soonest := self.env.peek()) <= LATEST:
            self.env.step()
        if self.finished < len(self.program.tasks):
            if soonest < inf:
                raise ProgramError(f"the run comes to cycle {int(soonest)}")
            raise self.deadlock()

    def deadlock(self) -> DeadlockError:
        """The error that says which operation waits for what, in order of cores and threads."""
        waits = []
        for thread_slot in (thread_slot for core in self.contexts for thread_slot in core if thread_slot is not None):
            thread = thread_slot.thread
            for (member, _), head in thread.heads.items():
                if member == thread_slot.member and head is not None and not thread.parked(head):
                    lacking = thread.lacking(head)
                    if lacking is not None:
                        waits.append(describe_wait(thread.task, head.operation, lacking))
        return DeadlockError(self.last_cycle, tuple(waits))


def run(program: Program, *, check: bool = True) -> Trace:
    """Run a program to its end; `ProgramError` if it breaks a rule (check: look first), `DeadlockError` if stuck."""
    if check:
        validate(program)
    machine = Machine(program)
    machine.expect(range(len(program.tasks)))
    machine.finish()
    return machine.trace.build()


class _FedMachine(Machine):
    """A machine that gets its tasks while it runs. The tasks of its program are templates; none of them comes."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.templates = program.tasks
        self.program, self.trace = replace(program, tasks=()), TraceBuilder(0)

    def take(self, batch: Ints) -> None:
        """Let the tasks of a batch come."""
        first = len(self.program.tasks)
        tasks = tuple(replace(self.templates[own], release=release, key=key) for release, own, key in batch.tolist())
        self.program = replace(self.program, tasks=self.program.tasks + tasks)
        self.trace.extend(len(batch))
        self.expect(range(first, first + len(batch)))


class Feed:
    """Runs tasks that come one after another, as `lstmsim.engines.feeds.Feed` says; `InputError` if time goes back."""

    def __init__(self, program: Program, chunks: Iterable[Ints], *, window: int = WINDOW) -> None:
        check_templates(program)
        validate(program)
        self.machine, self.batches = _FedMachine(program), Batches(chunks)
        self.window = max(window, len(program.tasks))
        #: How many pauses have been told, and the last finish.
        self.reported = self.makespan_cycles = 0
        #: Numbers of the tasks that are in the machine, and the templates of all.
        self.inside: Ints = np.zeros(0, dtype=np.int64)
        self.templates: Ints = np.zeros(0, dtype=np.int64)
        self._fill()

    @property
    def full_at(self) -> int | None:
        """The cycle of which not all had room; None if there was none."""
        return self.batches.full_at

    def results(self) -> Iterator[Group]:
        """Groups of tasks that are done; see `lstmsim.engines.feeds.Feed`."""
        more = True
        while more:
            more = self.batches.more
            if more:
                # all of the cycle in which the last known one comes, and nothing of the next cycle
                self.machine.env.run(until=self.batches.last + 1)
            else:
                self.machine.finish()
            numbers = self.inside
            rows = self.machine.trace.tasks(numbers)
            admitted, finish = TASKS.of(rows, "admitted"), TASKS.of(rows, "finish")
            # a row is written when the task leaves
            done = np.flatnonzero(admitted >= 0)
            ends = np.where(finish[done] < 0, admitted[done], finish[done])
            done = done[np.lexsort((numbers[done], ends))]
            self.makespan_cycles = max(self.makespan_cycles, int(finish[done].max(initial=0)))
            self.inside = np.delete(numbers, done)
            if len(done):
                yield numbers[done], self.templates[numbers[done]], rows[done]
            if more:
                self._fill()

    def pauses(self) -> Ints:
        """Pauses of tasks that have ended since they were asked for last; see `lstmsim.engines.feeds.Feed`."""
        new = self.machine.trace.pauses(self.reported)
        self.reported += len(new)
        return new

    def stop(self) -> None:
        """Let nothing more come, but for those that belong together with some that came already."""
        self.batches.stop()

    def totals(self) -> Totals:
        """The totals of all that has run, but for the tasks; see `lstmsim.engines.feeds.Feed`."""
        whole = totals_of(self.machine.program, self.machine.trace.build())
        return replace(whole, tasks=whole.tasks[:0])

    def _fill(self) -> None:
        batch = self.batches.next(self.window - len(self.inside))
        first = len(self.templates)
        self.inside = np.append(self.inside, np.arange(first, first + len(batch)))
        self.templates = np.append(self.templates, batch[:, 1])
        self.machine.take(batch)
