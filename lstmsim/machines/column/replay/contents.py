"""The weights on each core at admissions, and the tasks that find theirs there (docs/timing.md, 10.4, 11.7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.split import share_weights
from lstmsim.machines.seats import Seats
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Content, Program
from lstmsim.program.trace import Trace

__all__ = ["check_lasting", "warm_tasks"]


@dataclass(eq=False)
class _Held:
    """The weights on one core.

    core: number of the core.
    capacity: weights that the core holds at most.
    sizes: content -> its weights, the least recently used content first.
    users: content -> how many running tasks use it.
    """

    core: int
    capacity: int
    sizes: dict[int, int]
    users: dict[int, int] = field(default_factory=dict)

    def enter(self, content: Content, who: str) -> bool:
        """Begin a task that needs the content, and tell whether the content was there already."""
        number = _key(content)
        there = number in self.sizes
        for key in [each for each in self.sizes if not self.users.get(each)]:
            if not there and sum(self.sizes.values()) + content.size > self.capacity:
                del self.sizes[key]
        if not there and sum(self.sizes.values()) + content.size > self.capacity:
            raise ReplayError(f"{who} needs {content.size} weights on core {self.core}, which others fill")
        self.sizes[number] = self.sizes.pop(number, content.size)
        self.users[number] = self.users.get(number, 0) + 1
        return there

    def leave(self, content: Content) -> None:
        """Finish a task that needed the content."""
        number = _key(content)
        self.users[number] -= 1
        self.sizes[number] = self.sizes.pop(number)


def _key(content: Content) -> int:
    assert content.key is not None, "no job of this machine has room of its own"
    return content.key


def warm_tasks(program: Program, trace: Trace, seats: Seats) -> frozenset[int]:
    """Give the tasks whose weights lie on all of their cores at admission.

    `ReplayError` if running tasks need more weights on a core than the core holds.
    """
    sizes = {_key(task.content): task.content.size for task in program.tasks if task.content is not None}
    held = {
        number: _Held(number, core.capacity, {key: sizes.get(key, 0) for key in core.held})
        for number, core in enumerate(program.cores)
        if core.capacity is not None
    }
    warm = set()
    for event in sorted(_events(program, trace, seats)):
        task, begins = event[-1], event[1]
        content, name = program.tasks[task].content, program.tasks[task].name
        assert content is not None, "only such tasks have events"
        cores = dict.fromkeys(seats.core(task, member) for member in seats.members[task])
        memories = [held[core] for core in cores if core in held]
        if not begins:
            for each in memories:
                each.leave(content)
            continue
        there = [each.enter(content, f"job {name}") for each in memories]
        if all(there):
            warm.add(task)
    return frozenset(warm)


def check_lasting(scenario: Scenario, program: Program, seats: Seats) -> None:
    """Check that each core can hold all weights that are used on it and never come from the memory.

    `ReplayError` if a core holds too few weights.
    """
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    if all(core.weight_capacity is None for core in chip.cores):
        return
    # models are told apart by identity first: comparing them takes long
    alike: dict[tuple[object, ...], tuple[Job, tuple[int, ...]]] = {}
    for number, (job, task) in enumerate(zip(scenario.jobs, program.tasks, strict=True)):
        if seats.ran(number) and task.content is None:
            cores = tuple(seats.core(number, member) for member in seats.members[number])
            # a job that finds out as it runs how many cores it takes needs its whole model on each
            for own in [(core,) for core in cores] if job.split == "auto" else [cores]:
                alike[id(job.model), job.split, own] = job, own
    used = [0] * len(chip.cores)
    each = ((job.model, job.split_over(len(cores)), cores) for job, cores in alike.values())
    for model, split, cores in dict.fromkeys(each):
        weights = share_weights(model, split, cores) if split else model.macs_per_step
        for core in dict.fromkeys(cores):
            used[core] += weights
    for number, (described, total) in enumerate(zip(chip.cores, used, strict=True)):
        capacity = described.weight_capacity
        if capacity is not None and total > capacity:
            raise ReplayError(f"jobs use {total} weights on core {number}, which holds {capacity}")


def _events(program: Program, trace: Trace, seats: Seats) -> list[tuple[int, ...]]:
    """List (cycle, whether a task begins, order within the cycle ..., task); tasks that finish come first."""
    columns = zip(*(trace.task(name).tolist() for name in ("admitted", "finish", "arrived", "core")), strict=True)
    events: list[tuple[int, ...]] = []
    rounds: list[int] = []
    for number, (task, (admitted, finish, arrived, core)) in enumerate(zip(program.tasks, columns, strict=True)):
        # a task that follows one which was turned away in this cycle comes after all others
        before, came = task.after, trace.task("arrived")
        follows = before is not None and not seats.ran(before) and came[before] == arrived == admitted
        rounds.append(rounds[before] + 1 if before is not None and follows else 0)
        if task.content is None or core < 0:
            continue
        rank = task.key + (arrived if task.key_from_arrival else 0)
        events.append((admitted, 1, rounds[-1], rank, arrived, number))
        first = seats.stays[number, 0][-1]
        events.append((finish, 0, first.core, first.context, 0, number))
    return events
