"""The walk through a trace of the column-wise NPU: what units do, which weights are there, tiles that are executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.phases import share_weights
from lstmsim.machines.column.replay.jobs import JobWork, Streams, streamed_block, streams_of
from lstmsim.machines.column.replay.jobs import start as start_job
from lstmsim.machines.column.replay.work import Cut, PeArray, Place
from lstmsim.machines.column.shape import ARRAY, TAIL
from lstmsim.machines.pools import without_company
from lstmsim.machines.structural import ThreadSlots, thread_slots_of
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.accounts import phases_that_ran
from lstmsim.program.operations import Operation
from lstmsim.program.program import Phase, Program, WeightSet
from lstmsim.program.runs import inferences, runs_of
from lstmsim.program.trace import ISSUES, Trace


@dataclass(eq=False)
class Units:
    """The state of the units of all cores."""

    # (core, unit) -> the cycle until which the unit is busy
    until: dict[tuple[int, int], int] = field(default_factory=dict)
    thread: dict[int, int] = field(default_factory=dict)  # core -> the thread of its array; thread 0 at first

    def take(self, core: int, unit: int, start: int, cycles: int) -> None:
        """Occupy a unit for some cycles from `start` on; `ReplayError` if the unit is busy."""
        free = self.until.get((core, unit), 0)
        if start < free:
            raise ReplayError(f"unit {unit} of core {core} starts something at cycle {start}, but is busy until {free}")
        self.until[core, unit] = start + cycles

    def turn(self, core: int, context: int, start: int, switch_cycles: int) -> None:
        """Turn the array of a core to a thread; `ReplayError` if `start` comes before the end of the switch."""
        if self.thread.get(core, 0) != context:
            free = self.until.get((core, ARRAY), 0) + switch_cycles
            if start < free:
                text = f"the array of core {core} turns to thread {context} at cycle {start}"
                raise ReplayError(f"{text}, but the switch takes until {free}")
        self.thread[core] = context


@dataclass(eq=False)
class _Held:
    """The weights on one core."""

    core: int  # number of the core
    capacity: int  # weights that the core holds at most
    sizes: dict[int, int]  # weight set -> its weights, the least recently used weight set first
    users: dict[int, int] = field(default_factory=dict)  # weight set -> how many running tasks use it

    def enter(self, weight_set: WeightSet, who: str) -> bool:
        """Begin a task that needs the weight set, and tell whether the weight set was there already."""
        number = _key(weight_set)
        there = number in self.sizes
        for key in [each for each in self.sizes if not self.users.get(each)]:
            if not there and sum(self.sizes.values()) + weight_set.size > self.capacity:
                del self.sizes[key]
        if not there and sum(self.sizes.values()) + weight_set.size > self.capacity:
            raise ReplayError(f"{who} needs {weight_set.size} weights on core {self.core}, which others fill")
        self.sizes[number] = self.sizes.pop(number, weight_set.size)
        self.users[number] = self.users.get(number, 0) + 1
        return there

    def leave(self, weight_set: WeightSet) -> None:
        """Finish a task that needed the weight set."""
        number = _key(weight_set)
        self.users[number] -= 1
        self.sizes[number] = self.sizes.pop(number)


def _key(weight_set: WeightSet) -> int:
    assert weight_set.key is not None, "no job of this machine has room of its own"
    return weight_set.key


def warm_tasks(program: Program, trace: Trace, thread_slots: ThreadSlots) -> frozenset[int]:
    """Give the tasks whose weights lie on all of their cores at admission."""
    sizes = {_key(task.weight_set): task.weight_set.size for task in program.tasks if task.weight_set is not None}
    held = {
        number: _Held(number, core.capacity, {key: sizes.get(key, 0) for key in core.held})
        for number, core in enumerate(program.cores)
        if core.capacity is not None
    }
    warm = set()
    for event in sorted(_events(program, trace, thread_slots)):
        task, begins = event[-1], event[1]
        weight_set, name = program.tasks[task].weight_set, program.tasks[task].name
        assert weight_set is not None, "only such tasks have events"
        cores = dict.fromkeys(thread_slots.core(task, member) for member in thread_slots.members[task])
        memories = [held[core] for core in cores if core in held]
        if not begins:
            for each in memories:
                each.leave(weight_set)
            continue
        there = [each.enter(weight_set, f"job {name}") for each in memories]
        if all(there):
            warm.add(task)
    return frozenset(warm)


def check_lasting(scenario: Scenario, program: Program, thread_slots: ThreadSlots) -> None:
    """Check that each core can hold all weights that are used on it and never come from the memory."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    if all(core.weight_capacity is None for core in chip.cores):
        return
    # models are told apart by identity first: comparing them takes long
    alike: dict[tuple[object, ...], tuple[Job, tuple[int, ...]]] = {}
    for number, (job, task) in enumerate(zip(scenario.jobs, program.tasks, strict=True)):
        if thread_slots.ran(number) and task.weight_set is None:
            cores = tuple(thread_slots.core(number, member) for member in thread_slots.members[number])
            cores = tuple(core for core in cores if core < len(chip.cores))
            # a job that finds out as it runs how many cores it takes needs its whole model on each
            for own in [(core,) for core in cores] if job.split == "auto" else [cores]:
                alike[id(job.model), job.split, own] = job, own
    used = [0] * len(chip.cores)
    each = ((job.model, job.split_over(len(cores)), cores) for job, cores in alike.values())
    for model, split, cores in dict.fromkeys(each):
        weights = share_weights(model, split, cores)
        for core in dict.fromkeys(cores):
            used[core] += weights
    for number, (described, total) in enumerate(zip(chip.cores, used, strict=True)):
        capacity = described.weight_capacity
        if capacity is not None and total > capacity:
            raise ReplayError(f"jobs use {total} weights on core {number}, which holds {capacity}")


def _events(program: Program, trace: Trace, thread_slots: ThreadSlots) -> list[tuple[int, ...]]:
    """List (cycle, whether a task begins, order within the cycle ..., task); tasks that finish come first."""
    columns = zip(*(trace.task(name).tolist() for name in ("admitted", "finish", "arrived", "core")), strict=True)
    begins: dict[int, tuple[int, ...]] = {}
    ends: dict[int, tuple[int, ...]] = {}
    rounds: list[int] = []
    leads = leads_of(trace)
    for number, (task, (admitted, finish, arrived, core)) in enumerate(zip(program.tasks, columns, strict=True)):
        # a task that follows one which was rejected in this cycle comes after all others
        before, came = task.after, trace.task("arrived")
        follows = before is not None and not thread_slots.ran(before) and came[before] == arrived == admitted
        rounds.append(rounds[before] + 1 if before is not None and follows else 0)
        if task.weight_set is None or core < 0:
            continue
        rank = task.key + (arrived if task.key_from_arrival else 0)
        first = thread_slots.stays[number, 0][-1]
        # a batch begins when the last of it has come, with the turn of the first, and ends with the last of it
        lead, begin, end = leads[number], (rank, arrived, number), (finish, 0, first.core, first.context, 0)
        latest, *turn = begins.get(lead, (rounds[-1], *begin))
        begins[lead] = (max(latest, rounds[-1]), *min(begin, tuple(turn)))
        ends[lead] = max(end, ends.get(lead, end))
    admitted = trace.task("admitted")
    return [(int(admitted[lead]), 1, *begin, lead) for lead, begin in begins.items()] + [
        (*end, lead) for lead, end in ends.items()
    ]


def leads_of(trace: Trace) -> list[int]:
    """For each task the one that leads its batch; itself, where it waits for no company."""
    return [number if lead < 0 else lead for number, lead in enumerate(trace.task("batch").tolist())]


#: Columns that say what issued and when. The causes of waits are left out: the replay counts on its own.
_COLUMNS = ISSUES.names[: ISSUES.place("cycles") + 1]


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    """Compute the results of the jobs in `numbers`; see `lstmsim.analysis.replay.replay`."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    thread_slots = thread_slots_of(scenario, program, trace)
    works = _works(scenario, program, trace, numbers, thread_slots)
    leads = leads_of(trace)
    moved = {leads[task]: work.weights for task, work in works.items() if work.weights is not None}
    pauses = {task: thread_slots.pauses(task) for task in works}
    ends = trace.task("finish").tolist()
    waiting = {task for task in works if numbers[task].follows is not None}
    units, batches = Units(), _Batches(program, trace)
    issued: dict[tuple[int, int, int, int], int] = {}
    rows = zip(*(trace.issue(name).tolist() for name in _COLUMNS), strict=True)
    for number, (start, core, unit, context, lead, phase, iteration, index, count, cycles) in enumerate(rows):
        if progress and number % 1000 == 0:
            progress(number, len(trace.issues))
        if unit == ARRAY and core < len(chip.cores):
            units.turn(core, context, start, chip.cores[core].switch_cycles)
        # who has no thread has no phases
        thread_slots.core(lead)
        body = batches.phases(number)[phase]
        operation = body.body.operations[index]
        if unit != operation.unit:
            raise ReplayError(
                f"job {thread_slots.names[lead]}: unit {unit} of core {core} works at cycle {start} for another "
                "operation"
            )
        thread_slots.check(lead, operation.member, (core, context), start, start + count * cycles)
        task, step = batches.whose(number, operation, body.step(iteration, operation.ahead))
        place = (batches.run(number), phase, iteration, index)
        before = issued.get(place, 0)
        issued[place] = before + count
        one = _Issue(operation, step, start, before, count, cycles)
        weights = moved.get(lead)
        # what a member of a batch runs beyond its own steps has no numbers
        streaming = core == len(chip.cores) and chip.memory is not None
        if streaming or task not in works or not 0 <= step < scenario.jobs[task].steps:
            units.take(core, unit, start, count * cycles)
            if weights is not None:
                _without_numbers(weights, one, body.body.operations, index, chip, core)
            continue
        if task in waiting:
            waiting.remove(task)
            _follow(task, works, numbers, ends)
        while pauses[task] and start >= pauses[task][0][1]:
            works[task].rest(pauses[task].pop(0)[0])
        units.take(core, unit, start, _execute(works[task], one, body.body.operations, index))
        batches.check_banks(number, works, start)
    for task, left in pauses.items():
        for paused, _ in left:
            works[task].rest(paused)
    return {index: work.result(ends[index]) for index, work in works.items()}


class _Batches:
    """Which task, and which of its steps, a row of the trace works for."""

    def __init__(self, program: Program, trace: Trace) -> None:
        ran, run, _ = phases_that_ran(program, trace)
        self._phases, self._run = dict(ran), run.tolist()
        self._members: dict[int, list[int]] = {}
        self._steps: dict[tuple[int, int], int] = {}
        if not program.pools:
            return
        runs = runs_of(trace.tasks, trace.pauses)
        lead, start = trace.issue("task"), runs.start[runs.of(trace.issue("task"), trace.issue("start"))]
        found = inferences(program, trace)
        began = dict(zip(self._run, zip(lead.tolist(), start.tolist(), strict=True), strict=True))
        self._members = {number: found[key] for number, key in began.items()}
        steps = dict(zip(zip(runs.task.tolist(), runs.start.tolist(), strict=True), runs.numbers.tolist(), strict=True))
        for number, (_, cycle) in began.items():
            for task in self._members[number]:
                if program.tasks[task].in_rounds(program.pools):
                    self._steps[number, task] = steps[task, cycle]

    def run(self, row: int) -> int:
        """The run of a row: of a task, or of a round that it led."""
        run: int = self._run[row]
        return run

    def phases(self, row: int) -> tuple[Phase, ...]:
        """The phases of a row's run."""
        return self._phases[self._run[row]]

    def whose(self, row: int, operation: Operation, step: int) -> tuple[int, int]:
        """The task for which a row works, and the step; step: of the lead."""
        run = self._run[row]
        members = self._members.get(run, [run])
        if operation.inference >= len(members):
            raise ReplayError(f"an operation works for inference {operation.inference} of {len(members)} in a batch")
        task = members[operation.inference]
        return task, self._steps.get((run, task), step)

    def check_banks(self, row: int, works: Mapping[int, JobWork], cycle: int) -> None:
        """`ReplayError` if the members of a row's batch hold more banks than the thread has."""
        own = [works[task] for task in self._members.get(self._run[row], ()) if task in works]
        held = sum(len(work.members[0].banks) + sum(each > cycle for each in work.members[0].freed) for work in own)
        if own and held > own[0].core.accumulator_banks:
            raise ReplayError(f"a batch holds {held} accumulator banks at cycle {cycle}")


def _follow(task: int, works: Mapping[int, JobWork], numbers: Mapping[int, JobNumbers], ends: Sequence[int]) -> None:
    """Begin a job that follows another, with the last states of that other job, from its finish on."""
    before = numbers[task].follows
    if before is None or before not in works:
        raise ReplayError(f"job {works[task].job.name} follows a job that was rejected, which has no last states")
    works[task].begin(numbers[task].after(works[before].result(ends[before])), ends[before])


def _works(
    scenario: Scenario, program: Program, trace: Trace, numbers: Mapping[int, JobNumbers], thread_slots: ThreadSlots
) -> dict[int, JobWork]:
    """Give the jobs with numbers that were not rejected, before their first tile."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    arrays = [PeArray(core.ep, core.vp, core.tree_inputs, core.cat) for core in chip.cores]
    check_lasting(scenario, program, thread_slots)
    warm = warm_tasks(program, trace, thread_slots)
    leads = leads_of(trace)
    sizes, moved = Counter(leads), dict[int, Streams]()
    works = {}
    for index, each in numbers.items():
        if not thread_slots.ran(index):
            continue
        job, task, first = without_company(scenario.jobs[index]), program.tasks[index], thread_slots.core(index)
        # the memory and the links are no members
        members = sum(thread_slots.core(index, member) < len(chip.cores) for member in thread_slots.members[index])
        cores = tuple(thread_slots.core(index, member) for member in range(members))
        lead = leads[index]
        if task.weight_set is not None and lead not in moved:
            phases, cut = task.phases(program.cores[first].kind), Cut(job.model, job.split_over(members), cores)
            moved[lead] = streams_of(job, chip, cut, phases, warm=lead in warm, batch=sizes[lead])
        arrived = int(trace.task("arrived")[index])
        works[index] = start_job(job, chip, cores, each, arrays[first], arrived, moved.get(lead))
    return works


class _Issue(NamedTuple):
    """A row of the trace: issues of one operation."""

    operation: Operation
    step: int  # the time step
    start: int  # cycle of the first issue
    before: int  # issues of the operation in earlier rows
    issues: int  # issues in this row
    cycles: int  # cycles of one issue


def _without_numbers(
    weights: Streams, one: _Issue, body: Sequence[Operation], index: int, chip: ColumnNpu, core: int
) -> None:
    """Transfer weights of a job or batch, or let tiles use them that only pad."""
    taken, member = one.issues * one.cycles, one.operation.member
    if core < len(chip.cores):
        for place, _, cycle in _tiles(one, chip.cores[core].block_order) if one.operation.unit == ARRAY else ():
            weights.tile(member, place, cycle)
    elif one.operation.place:
        # the memory is the last of the members
        weights.stream(streamed_block(body, index, member), one.step, one.start, taken)
    else:
        weights.load(one.start, taken)


def _tiles(one: _Issue, block_order: str) -> Iterator[tuple[Place, int, int]]:
    """The tiles of a row: where each stands, its column group, its cycle."""
    for turn in range(one.issues):
        yield *_tile(one.operation, one.step, one.before + turn, block_order), one.start + turn


def _execute(work: JobWork, one: _Issue, body: Sequence[Operation], index: int) -> int:
    """Execute a row of the trace, and give the cycles for which the row occupies its unit."""
    operation, member = one.operation, one.operation.member
    if operation.unit == ARRAY and member < len(work.members):
        for place, group, cycle in _tiles(one, work.core.block_order):
            work.tile(member, place, group, cycle)
        return one.issues
    layer, direction, block_number, _, stage, segment = operation.place
    place = Place(layer, direction, one.step, stage, block_number)
    if operation.unit == TAIL and member < len(work.members):
        work.members[member].finish(place, segment, one.start)
        return work.members[member].turns(place)
    linked, member = divmod(member, len(work.members))
    if linked and operation.unit != work.device_of(member):
        raise ReplayError(f"link {operation.unit} at cycle {one.start} sends what is on another device")
    return work.send(member, place, segment, _vector(body, index), one.start, linked=bool(linked))


def _vector(body: Sequence[Operation], index: int) -> int:
    """Give the number of the vector that an exchange or link operation sends; those of a row block stand in a row."""
    first = index
    while first and all(
        getattr(body[first - 1], name) == getattr(body[index], name) for name in ("unit", "member", "place")
    ):
        first -= 1
    return index - first


def _tile(operation: Operation, step: int, turn: int, block_order: str) -> tuple[Place, int]:
    """Give the place and the column group of issue number `turn`: a run goes on to the next group or block."""
    layer, direction, block, group, stage = operation.place
    blocks, groups = (turn, 0) if block_order == "column" else (0, turn)
    return Place(layer, direction, step, stage, block + blocks), group + groups
