"""The plan of a generated NPU: cores, programs, addresses, jobs in posting order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.core import ColumnCore
from lstmsim.machines.column.members import Members
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Job, Kind, Program, VectorMemory
from lstmsim.machines.column.rtl.programs import Starts, program_of
from lstmsim.machines.column.rtl.regions import Region, outputs, regions
from lstmsim.machines.column.rtl.rows import JobRow, StageRow
from lstmsim.model.cell import Cell
from lstmsim.model.model import Model
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.precision import Precision
from lstmsim.model.scenario import Scenario

__all__ = ["design"]


def design(scenario: Scenario, precision: Precision, numbers: Mapping[int, JobNumbers] | None = None) -> Design:
    """Plan the hardware of a scenario.

    scenario: one on a column-wise NPU that is not refused.
    precision: widths of all numbers.
    numbers: of every job by its place; they say which jobs begin with states that are not 0. None: none does.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> from lstmsim.model.scenario import Job
    >>> model = Model("m", (Layer(cell("lstm"), 10, 7),))
    >>> chip = ColumnNpu("small", 260, (ColumnCore(npe=64, ep=4, vp=16),))
    >>> made = design(Scenario(chip, (Job("a", model, 3),)), Precision())
    >>> [(row.blocks, row.units, row.last_units) for row in made.cores[0].programs[0].stages]
    [(3, 4, 2)]
    """
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
    members = Members(chip)
    allowed = [tuple(core for (core,) in members.places(job)) for job in scenario.jobs]
    queues = tuple(dict.fromkeys(allowed[index] for index in _order(scenario)))
    jobs = tuple(
        Job(
            index,
            job.name,
            models.index(job.model),
            job.steps,
            job.arrival,
            job.frame_interval,
            allowed[index],
            queues.index(allowed[index]),
        )
        for index in _order(scenario)
        for job in (scenario.jobs[index],)
    )
    started = _started(numbers)
    cores = tuple(_core(number, core, models, jobs, started) for number, core in enumerate(chip.cores))
    names = tuple(model.name for model in models)
    return Design(scenario.name, names, cores, jobs, precision, chip.frequency_mhz)


def _order(scenario: Scenario) -> list[int]:
    """The jobs in posting order: by arrival, then by place."""
    return sorted(range(len(scenario.jobs)), key=lambda index: (scenario.jobs[index].arrival, index))


def _started(numbers: Mapping[int, JobNumbers] | None) -> frozenset[int]:
    """Places of the jobs that begin with states that are not 0."""
    given = {} if numbers is None else numbers
    return frozenset(
        index
        for index, each in given.items()
        if any(values.any() for states in each.stimulus.initial.values() for values in states.values())
    )


@record
class _Mine:
    """What runs on a core.

    core: the core.
    models: all models.
    jobs: all jobs in posting order; None for those that may not run on the core.
    """

    core: ColumnCore
    models: tuple[Model, ...]
    jobs: tuple[Job | None, ...]

    def steps(self, model: int) -> int:
        """The most steps of a job of that model; 0 if none runs here."""
        return max((job.steps for job in self.jobs if job is not None and job.model == model), default=0)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of cells, with vector memories numbered one after another."""
        passes: dict[Cell, list[tuple[int, int, int]]] = {}
        for number, model in enumerate(self.models):
            if self.steps(number):
                for place, layer in enumerate(model.layers):
                    own = passes.setdefault(layer.cell, [])
                    own += [(number, place, direction) for direction in range(layer.directions)]
        kinds: list[Kind] = []
        first = 0
        for number, (cell, own) in enumerate(passes.items()):
            names = outputs(cell)
            kinds.append(Kind(cell, number, names, tuple(own), tuple(range(first, first + len(names)))))
            first += len(names)
        return tuple(kinds)


def _core(
    number: int, core: ColumnCore, models: tuple[Model, ...], jobs: tuple[Job, ...], started: frozenset[int]
) -> CorePlan:
    mine = _Mine(core, models, tuple(job if number in job.cores else None for job in jobs))
    kinds = mine.kinds
    places = [
        regions(model, kinds, mine.steps(index)) if mine.steps(index) else {} for index, model in enumerate(models)
    ]
    programs: list[Program | None] = []
    starts, most_turns = Starts(), 0
    # parameters are of the core, so their addresses differ between programs
    apart = any(kind.cell.parameters for kind in kinds)
    for index, model in enumerate(models):
        if not mine.steps(index):
            programs.append(None)
            continue
        program, starts = program_of(model, index, core, kinds, places[index], starts)
        most_turns = max(most_turns, starts.turn)
        starts = starts if apart else Starts(starts.weight, starts.constant)
        programs.append(program)
    rows = _job_rows(mine, programs, places, most_turns, started)
    stages = [row for program in programs if program for row in program.stages]
    return CorePlan(
        number=number,
        core=core,
        kinds=kinds,
        programs=tuple(programs),
        memories=_memories(kinds, places),
        jobs=rows.jobs,
        rows=max((row.gates * max(row.units, row.last_units) for row in stages), default=1),
        weight_words=starts.weight,
        frame_words=rows.frame_words,
        constant_words=starts.constant,
        turns=most_turns,
        initial_words=rows.initial_words,
    )


def _memories(kinds: Sequence[Kind], places: Sequence[Mapping[tuple[int, str], Region]]) -> tuple[VectorMemory, ...]:
    """The vector memories of a core; on a core without cells one that is not built, for no list of ports is empty."""
    every = [region for one in places for region in one.values()]
    return tuple(
        VectorMemory(memory, kind.number, slot, max(one.end for one in every if one.memory == memory))
        for kind in kinds
        for slot, memory in enumerate(kind.memories)
    ) or (VectorMemory(0, 0, 0, 1),)


@record
class _JobRows:
    """The rows of all jobs on a core, and the sizes of the memories that they fill.

    jobs: the rows in posting order.
    frame_words, initial_words: words of frames (with h before step 0), of initial states.
    """

    jobs: tuple[JobRow | None, ...]
    frame_words: int
    initial_words: int


def _job_rows(
    mine: _Mine,
    programs: Sequence[Program | None],
    places: Sequence[Mapping[tuple[int, str], Region]],
    turns: int,
    started: frozenset[int],
) -> _JobRows:
    rows: list[JobRow | None] = []
    frame = initial = 0
    for job in mine.jobs:
        program = None if job is None else programs[job.model]
        if job is None or program is None:
            rows.append(None)
            continue
        model, where = mine.models[job.model], places[job.model]
        groups = -(-model.layers[0].input // mine.core.ep)
        reads_x = any(read.source == "frame" for row in program.stages for read in row.reads)
        start, frame = frame, frame + job.steps * groups * reads_x
        x_starts = tuple(_x_start(model, where, row, job.steps) for row in program.stages)
        write_starts = tuple(_write_start(model, where, row, job.steps) for row in program.stages)
        h_starts, own = (-1,) * len(program.stages), -1
        if job.index in started:
            h_starts, frame = _h_starts(program, frame)
            own, initial = initial, initial + turns
        end = start + (job.steps - 1) * groups * reads_x
        rows.append(JobRow(start, end, x_starts, write_starts, own, h_starts))
    return _JobRows(tuple(rows), frame, initial)


def _x_start(model: Model, places: Mapping[tuple[int, str], Region], row: StageRow, steps: int) -> int:
    """Address of element 0 of the first step's x, where all steps of the layer below are kept."""
    if row.layer == 0:
        return 0
    region = places[row.layer - 1, model.layers[row.layer - 1].cell.output]
    if not region.every:
        return 0
    return region.base + (steps - 1) * region.width * row.backward


def _write_start(model: Model, places: Mapping[tuple[int, str], Region], row: StageRow, steps: int) -> int:
    """Address of unit 0 of the first step's h, where all steps are kept."""
    layer = model.layers[row.layer]
    region = places[row.layer, layer.cell.output]
    if not region.every:
        return 0
    return region.base + row.direction * layer.width("h") + (steps - 1) * region.width * row.backward


def _h_starts(program: Program, first: int) -> tuple[tuple[int, ...], int]:
    """Frame addresses of h before step 0 for each row, one place a pass; and the first free address behind them."""
    starts: list[int] = []
    of_pass: dict[int, int] = {}
    for row in program.stages:
        groups = [read.groups for read in row.reads if read.vector == "h"]
        if groups and row.first_of_pass not in of_pass:
            of_pass[row.first_of_pass] = first
            first += groups[0]
        starts.append(of_pass[row.first_of_pass] if groups else -1)
    return tuple(starts), first
