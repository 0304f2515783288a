"""What structural models share: threads that tasks hold, and values that must not be read before they are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ReplayError
from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program
from lstmsim.program.runs import runs_of
from lstmsim.program.trace import PAUSES, THREAD_SLOTS, Trace


@dataclass(frozen=True)
class Stay:
    """A stay of a task on a thread."""

    core: int  # core, context: the thread
    context: int
    since: int  # since, until: the task holds it in the cycles `since <= cycle < until`
    until: int


@dataclass(frozen=True)
class ThreadSlots:
    """The stays of every task that ran."""

    names: tuple[str, ...]  # names of all tasks
    # (task, member) -> stays in the order of time; there are several if the task was paused
    stays: Mapping[tuple[int, int], tuple[Stay, ...]]

    @cached_property
    def members(self) -> Mapping[int, tuple[int, ...]]:
        """Task -> its members, in order, for every task that ran."""
        members: defaultdict[int, list[int]] = defaultdict(list)
        for task, member in sorted(self.stays):
            members[task].append(member)
        return {task: tuple(each) for task, each in members.items()}

    def ran(self, task: int) -> bool:
        """Whether the task was not rejected."""
        return (task, 0) in self.stays

    def core(self, task: int, member: int = 0) -> int:
        """The core of a member; `ReplayError` if the trace names none."""
        if (task, member) not in self.stays:
            raise ReplayError(f"job {self.names[task]} has no thread for its member {member}")
        return self.stays[task, member][0].core

    def pauses(self, task: int) -> list[tuple[int, int]]:
        """Pauses of a task: (cycle from which it had no thread, cycle from which it had one again)."""
        own = self.stays.get((task, 0), ())
        return [(before.until, after.since) for before, after in pairwise(own)]

    def check(self, task: int, member: int, where: tuple[int, int], start: int, end: int) -> None:
        """`ReplayError` unless the member holds the thread `where` (core, context) from `start` to `end`."""
        own = self.stays.get((task, member), ())
        for each in own:
            if each.since <= start and end <= each.until and (each.core, each.context) == where:
                return
        who = f"job {self.names[task]}"
        at = f"on core {where[0]}, thread {where[1]}, at cycle {start}"
        for paused, resumed in self.pauses(task):
            if start < resumed and paused < end:
                raise ReplayError(f"{who} issues {at}, but is paused from {paused} until {resumed}")
        if where in {(each.core, each.context) for each in own}:
            raise ReplayError(f"{who} issues {at}, but holds it from {own[0].since} until {own[-1].until}")
        raise ReplayError(f"{who} issues {at}, not on its own")


def thread_slots_of(scenario: Scenario, program: Program, trace: Trace) -> ThreadSlots:
    """Read from a trace which task holds which thread, and when.

    `ReplayError` if a thread holds two jobs at a time or a job that has not arrived, or if a job is on a core that it
    may not use.
    """
    stays: defaultdict[tuple[int, int], list[Stay]] = defaultdict(list)
    columns = zip(*(trace.task(name).tolist() for name in ("core", "context", "admitted", "finish")), strict=True)
    tasks = {number: row for number, row in enumerate(columns) if row[0] >= 0}
    names = tuple(job.name for job in scenario.jobs)
    since = {number: row[2] for number, row in tasks.items()}
    for row in trace.pauses.tolist():
        pause = dict(zip(PAUSES.names, row, strict=True))
        task = pause["task"]
        if task not in tasks or pause["core"] != tasks[task][0]:
            raise ReplayError(f"job {names[task]} is paused on core {pause['core']}, where it does not go on")
        stays[task, 0].append(Stay(pause["core"], pause["context"], since[task], pause["paused"]))
        since[task] = pause["resumed"]
    ends = runs_of(trace.tasks, trace.pauses).last_ends
    for task, (core, context, *_) in tasks.items():
        stays[task, 0].append(Stay(core, context, since[task], ends[task]))
    for row in trace.thread_slots.tolist():
        thread_slot = dict(zip(THREAD_SLOTS.names, row, strict=True))
        task = thread_slot["task"]
        if task not in tasks:
            raise ReplayError(f"job {names[task]} was rejected, but holds a thread of core {thread_slot['core']}")
        stays[task, thread_slot["member"]].append(Stay(thread_slot["core"], thread_slot["context"], *tasks[task][2:]))
    thread_slots = ThreadSlots(names, {key: tuple(each) for key, each in stays.items()})
    _check_arrivals(scenario, trace)
    for task in tasks:
        _check_place(scenario.jobs[task], len(scenario.chip.core_figures), program, thread_slots, task)
    _check_alone(thread_slots, program, _beside(trace, thread_slots))
    return thread_slots


def _beside(trace: Trace, thread_slots: ThreadSlots) -> set[tuple[int, int]]:
    """Tasks, and since when, that ran in the batch of another; `ReplayError` unless they were on its thread."""
    runs = runs_of(trace.tasks, trace.pauses)
    others = runs.where(~runs.leads)
    led = {(stay.since, stay.core, stay.context, task) for (task, _), own in thread_slots.stays.items() for stay in own}
    columns = (others.start, others.core, others.context, others.batch, others.task)
    for since, core, context, lead, task in zip(*(column.tolist() for column in columns), strict=True):
        if (since, core, context, lead) not in led:
            text = f"job {thread_slots.names[task]} is in a batch of job {thread_slots.names[lead]} at cycle {since}"
            raise ReplayError(f"{text}, which does not begin then on the same thread")
    return set(zip(others.task.tolist(), others.start.tolist(), strict=True))


def _check_arrivals(scenario: Scenario, trace: Trace) -> None:
    """Check that no job begins or is rejected before it arrives, and that a job arrives after the job it follows."""
    columns = zip(*(trace.task(name).tolist() for name in ("core", "admitted", "finish", "arrived")), strict=True)
    done: list[int] = []
    for job, (core, admitted, finish, arrived) in zip(scenario.jobs, columns, strict=True):
        due = job.arrival if job.after is None else done[job.after] + job.arrival
        if arrived != due:
            raise ReplayError(f"job {job.name} arrives at cycle {arrived} in the trace, but comes at cycle {due}")
        if admitted < due:
            raise ReplayError(f"job {job.name} is admitted at cycle {admitted}, before it arrives")
        done.append(finish if core >= 0 else admitted)


def _check_place(job: Job, cores: int, program: Program, thread_slots: ThreadSlots, task: int) -> None:
    """Check that a split job has a thread on each of its cores (`auto`: some), and other jobs on one allowed core."""
    if job.split == "auto":
        own, allowed = [thread_slots.core(task, member) for member in thread_slots.members[task]], job.allowed(cores)
        if own != [core for core in allowed if core in own]:
            raise ReplayError(f"job {job.name} is on cores {own}, which are not some of {list(allowed)} in their order")
        return
    expected = job.together(cores) or (thread_slots.core(task),)
    if expected[0] not in job.allowed(cores):
        raise ReplayError(f"job {job.name} runs on core {expected[0]}, which it may not use")
    for member, core in enumerate(expected):
        if thread_slots.core(task, member) != core:
            raise ReplayError(
                f"member {member} of job {job.name} is on core {thread_slots.core(task, member)}, not on {core}"
            )
    others = [member for member in thread_slots.members[task] if member >= len(expected)]
    # a memory, or links with a thread for each member
    if others not in ([], [len(expected)], list(range(len(expected), 2 * len(expected)))):
        raise ReplayError(f"job {job.name} has more threads than members")
    for core in {thread_slots.core(task, member) for member in others}:
        if not program.cores[core].shared:
            raise ReplayError(f"job {job.name} holds a thread of core {core}, which is no memory")


def _check_alone(thread_slots: ThreadSlots, program: Program, beside: set[tuple[int, int]]) -> None:
    """Check that a thread holds one job at a time, but for those that are in the batch of another."""
    held: dict[tuple[int, int], int] = {}
    own = [(stay, task) for (task, _), stays in thread_slots.stays.items() for stay in stays]
    for stay, name in sorted(
        ((stay, thread_slots.names[task]) for stay, task in own if (task, stay.since) not in beside),
        key=lambda pair: (pair[0].since, pair[0].until),
    ):
        where = stay.core, stay.context
        if not 0 <= stay.context < program.cores[stay.core].contexts:
            raise ReplayError(f"job {name} is on thread {stay.context} of core {stay.core}, which does not exist")
        if stay.since < held.get(where, 0):
            text = f"enters thread {stay.context} of core {stay.core} at {stay.since}, which holds another"
            raise ReplayError(f"job {name} {text}")
        held[where] = stay.until


ALWAYS, NEVER = 0, 2**62


@dataclass(eq=False)
class Timed:
    """One vector."""

    values: Array  # the value of each unit
    since: NDArray[np.int64]  # for each unit the cycle from which its value is there

    @staticmethod
    def known(values: Array, since: int = ALWAYS) -> Timed:
        """A vector whose values are all there from cycle `since` on."""
        return Timed(values, np.full(len(values), since, dtype=np.int64))


@dataclass(eq=False)
class Memory:
    """A memory of vectors. A key that was never written is not there yet."""

    held: dict[object, Timed] = field(default_factory=dict)  # key -> vector
    latest: int = 0  # cycle from which all written values are there

    def write(self, key: object, units: slice, values: Array, since: NDArray[np.int64], width: int) -> None:
        """Write some units of a vector; `ReplayError` if one of them was written before.

        key: name of the vector.
        units: the units.
        values: their values.
        since: for each unit the cycle from which its value is there.
        width: how many units the vector has.
        """
        if key not in self.held:
            self.held[key] = Timed(np.zeros(width, values.dtype), np.full(width, NEVER, dtype=np.int64))
        timed = self.held[key]
        if (timed.since[units] != NEVER).any():
            raise ReplayError(f"{key!r} is computed twice (units {units.start} to {units.stop - 1})")
        timed.values[units] = values
        timed.since[units] = since
        self.latest = max(self.latest, int(since.max(initial=0)))

    def read(self, key: object, units: slice, cycles: NDArray[np.int64], who: str) -> Array:
        """Read some units of a vector; `ReplayError` if one of them is not there yet.

        cycles: for each unit the cycle at which it is used.
        who: the reader, for the error.
        """
        timed = self.held.get(key)
        if timed is not None and not (timed.since[units] > cycles).any():
            return timed.values[units]
        since = NEVER if timed is None else timed.since[units]
        late = int(np.flatnonzero(np.broadcast_to(since > cycles, cycles.shape))[0])
        element = units.start + late
        when = NEVER if timed is None else int(timed.since[element])
        there = "it has not been computed by then" if when == NEVER else f"it is there only from cycle {when}"
        raise ReplayError(f"{who} reads element {element} of {key!r} at cycle {int(cycles[late])}, but {there}")
