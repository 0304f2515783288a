"""The plan of a generated NPU: regions of vectors in memories, rows of programs, cores, jobs in posting order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from math import prod
from typing import NamedTuple

from lstmsim.base.records import record
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.phases import layer_runs, spreads_over
from lstmsim.machines.column.plan import Plan
from lstmsim.machines.column.plan import places as places_of
from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.plan import (
    Capacity,
    CorePlan,
    Design,
    Job,
    JobRow,
    Kind,
    Need,
    Part,
    Program,
    Queue,
    ReadRow,
    SegmentRow,
    StageRow,
    VectorMemory,
    Want,
    WriteRow,
)
from lstmsim.machines.column.rtl.words import streaming
from lstmsim.machines.column.shape import StageShape, issue_order, outputs, pass_shapes, share_of
from lstmsim.model.cell import Cell, Segment, segment_of, segments, segments_by_stage
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Job as AskedJob
from lstmsim.model.scenario import Scenario


@record
class Region:
    """Where one vector of a layer lies, both directions of a bidirectional layer side by side."""

    memory: int  # number of the vector memory in the core
    base: int  # address of its first element, in a thread's part
    width: int  # elements of a step, in all directions
    steps: int  # how many steps are kept
    every: bool  # whether these are all steps; else a step lies by its lowest bit

    @property
    def end(self) -> int:
        return self.base + self.width * self.steps


def regions(model: Model, kinds: Sequence[Kind], steps: int) -> dict[tuple[int, str], Region]:
    """Give the region of each vector of a model: (layer, node) to its region.

    A layer's h is kept for all steps if a layer above reads it when the layer is through, else for two steps. Layers
    that run one after another use elements anew: an array in order has read what was there.
    """
    by_layer = model.layer_order == "layer"
    top = len(model.layers) - 1
    taken: list[tuple[int, int, Region]] = []
    placed: dict[tuple[int, str], Region] = {}
    for number, layer in enumerate(model.layers):
        kind = next(each for each in kinds if each.cell == layer.cell)
        for node, memory in zip(kind.outputs, kind.memories, strict=True):
            every = by_layer and number < top and node == layer.cell.output
            first, last = (number, number + every) if by_layer else (0, top)
            busy = [one for begin, end, one in taken if one.memory == memory and begin <= last and first <= end]
            width, kept = layer.width(node) * layer.directions, steps if every else 2
            region = Region(memory, _free(busy, width * kept), width, kept, every)
            taken.append((first, last, region))
            placed[number, node] = region
    return placed


def _free(busy: Sequence[Region], size: int) -> int:
    """The lowest address from which `size` elements are free."""
    begin = 0
    for each in sorted(busy, key=lambda one: one.base):
        if each.base - begin >= size:
            break
        begin = max(begin, each.end)
    return begin


def step_elements(model: Model) -> int:
    """Elements of all vectors of a time step."""
    return sum(layer.directions * layer.width(node) for layer in model.layers for node in outputs(layer.cell))


def timed_regions(model: Model, kinds: Sequence[Kind], elements: int) -> dict[tuple[int, str], Region]:
    """Give the regions of a model that is split: all vectors of a time step side by side, in memories of any core.

    All steps are kept. elements: of a step, and those in reserve behind it.
    """
    memories = {
        (kind.cell, node): memory for kind in kinds for node, memory in zip(kind.outputs, kind.memories, strict=True)
    }
    placed: dict[tuple[int, str], Region] = {}
    base = 0
    for number, layer in enumerate(model.layers):
        for node in outputs(layer.cell):
            # a vector of another core is in no memory of this one
            placed[number, node] = Region(memories.get((layer.cell, node), 0), base, elements, 1, False)
            base += layer.directions * layer.width(node)
    return placed


class Starts(NamedTuple):
    """The first free addresses of a core's memories: words of weights, words of adapter constants, turns."""

    weight: int = 0
    constant: int = 0
    turn: int = 0


@record
class _Pass:
    """A pass on a core."""

    model: Model
    core: ColumnCore
    kinds: Sequence[Kind]  # the cells of the core
    places: Mapping[tuple[int, str], Region]  # the regions of the model's vectors
    number: int  # number of the part
    part: Part
    layer_number: int  # layer_number, direction: which pass it is
    direction: int

    @property
    def shares(self) -> int:
        """How many members have a share of each vector."""
        return self.part.members if self.part.split == "rows" else 1

    def share(self, rows: str) -> tuple[int, int]:
        """First unit and number of units of the part's share of rows."""
        own = self.part.member if self.shares > 1 else 0
        sizes = [share_of(self.layer.units(rows), share, self.shares) for share in range(own + 1)]
        return sum(sizes[:-1]), sizes[-1]

    def needs(self, node: str, layer: int, direction: int, flipped: bool) -> list[Need]:
        """The waits for all elements of a vector, one for each share; elements count from the layer's first one."""
        of = self.model.layers[layer]
        width, counter = of.width(node), self.counter(node, layer, direction)
        needs, begin = [], direction * width
        for share in range(self.shares):
            end = begin + share_of(width, share, self.shares)
            member = self.part.owners[layer] if self.part.owners else share
            needs.append(Need(counter + share, begin, end, flipped, member))
            begin = end
        return needs

    def sent(self, node: str) -> bool:
        """Whether another core reads a vector of the pass (docs/timing.md section 9.4)."""
        above = node == self.layer.cell.output and self.layer_number < len(self.model.layers) - 1
        if self.part.split == "layers":
            places = [self.part.places[owner] for owner in self.part.owners]
            return above and places[self.layer_number] != places[self.layer_number + 1]
        vectors = {vector for stage in self.layer.cell.stages for vector in stage.vectors}
        own = node in vectors or (node == self.layer.cell.output and "h" in vectors)
        return self.part.split == "rows" and (own or above)

    @property
    def layer(self) -> Layer:
        return self.model.layers[self.layer_number]

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.layer.cell, self.core.latency, self.core.tail_width)

    @property
    def kind(self) -> Kind:
        return next(each for each in self.kinds if each.cell == self.layer.cell)

    @property
    def backward(self) -> bool:
        return self.layer.backward(self.direction)

    def counter(self, node: str, layer: int | None = None, direction: int | None = None) -> int:
        """Number of the counter of a vector, of this pass or of another one."""
        layer = self.layer_number if layer is None else layer
        direction = self.direction if direction is None else direction
        number = 0
        for index, each in enumerate(self.model.layers):
            names = outputs(each.cell)
            for way in range(each.directions):
                if (index, way) == (layer, direction):
                    return number + names.index(node) * self.shares
                number += len(names) * self.shares
        raise KeyError(node)

    def stride(self, region: Region) -> int:
        """Elements from one step of a region to the next, in the order of the pass."""
        return -region.width if region.every and self.backward else region.width


def program_of(
    model: Model,
    number: int,
    part: Part,
    core: ColumnCore,
    kinds: Sequence[Kind],
    places: Mapping[tuple[int, str], Region],
    starts: Starts,
) -> tuple[Program, Starts]:
    """Give what a part of a model does on a core, and the first free addresses after it."""
    rows: list[StageRow] = []
    segment_number = 0
    for layer_number, layer in enumerate(model.layers):
        if part.owners and part.owners[layer_number] != part.member:
            continue
        for direction in range(layer.directions):
            one = _Pass(model, core, kinds, places, number, part, layer_number, direction)
            first = len(rows)
            for shape in pass_shapes(layer, core, part.member if one.shares > 1 else 0, one.shares):
                row = _stage_row(one, shape, len(rows), first, segment_number, starts)
                rows.append(row)
                segment_number += len(row.segments)
                starts = starts._replace(
                    weight=starts.weight + row.tiles, constant=starts.constant + row.turns(core.tail_width)
                )
            turns = max(row.turns(core.tail_width) for row in rows[first:])
            starts = starts._replace(turn=starts.turn + turns)
    counters = sum(layer.directions * len(outputs(layer.cell)) for layer in model.layers) * one.shares
    interleaved = model.layer_order == "step" or part.split == "layers"
    return Program(number, tuple(rows), counters, interleaved, bool(part.split)), starts


def _stage_row(one: _Pass, shape: StageShape, number: int, first: int, segment_number: int, starts: Starts) -> StageRow:
    cell = one.layer.cell
    stage_segments = segments_by_stage(cell)[shape.number]
    x_last = one.model.layer_order == "step" and one.layer_number > 0
    if one.part.owners:
        x_last = one.layer_number != one.part.owners.index(one.part.member)
    last_stage = shape.number == len(cell.stages) - 1
    return StageRow(
        number=number,
        layer=one.layer_number,
        direction=one.direction,
        stage=shape.number,
        kind=one.kind.number,
        lane_pass=one.kind.passes.index((one.number, one.layer_number, one.direction)),
        gates=len(shape.stage.gates),
        units=shape.units_per_block if len(shape.blocks) > 1 else shape.blocks[0],
        blocks=len(shape.blocks),
        last_units=shape.blocks[-1],
        reads=tuple(_read(one, shape, vector) for vector in issue_order(shape.stage, x_last)),
        weight_base=starts.weight,
        constant_base=starts.constant,
        turn_base=starts.turn,
        segments=tuple(
            _segment(one, shape, segment, segment_number + index, number, last_stage)
            for index, segment in enumerate(stage_segments)
        ),
        first_of_pass=first,
        last_of_pass=last_stage,
        backward=one.backward,
        first_unit=one.share(shape.stage.rows)[0],
    )


def _read(one: _Pass, shape: StageShape, vector: str) -> ReadRow:
    # after x and h, vectors that the cell's stages make for later ones, in their order
    stages = one.layer.cell.stages
    codes = {
        name: number for number, name in enumerate(dict.fromkeys(["h", "x", *chain(*(s.vectors for s in stages))]))
    }
    source, region, base, stride, needs = _where(one, vector)
    return ReadRow(
        vector=vector,
        code=codes[vector],
        groups=shape.groups(vector),
        elements=one.layer.width(vector),
        source=source,
        memory=-1 if region is None else region.memory,
        base=base,
        stride=stride,
        lag=int(vector == "h"),
        needs=needs,
        slots=tuple(
            next((slot for slot, each in enumerate(gate.sums) if vector in each.vectors), -1)
            for gate in shape.stage.gates
        ),
    )


def _where(one: _Pass, vector: str) -> tuple[str, Region | None, int, int, tuple[Need, ...]]:
    """Source, region, base, stride and needs of a vector that a pass reads."""
    if vector == "x":
        return _x(one)
    node = one.layer.cell.output if vector == "h" else vector
    region, width = one.places[one.layer_number, node], one.layer.width(node)
    own = one.needs(node, one.layer_number, one.direction, False)
    first = one.direction * width
    needs = tuple(replace(each, begin=each.begin - first, end=each.end - first) for each in own)
    base = region.base + first
    if region.every and vector == "h":
        return "all_h", region, base, one.stride(region), needs
    return "two", region, base, region.width, needs


def _x(one: _Pass) -> tuple[str, Region | None, int, int, tuple[Need, ...]]:
    below = one.layer_number - 1
    if below < 0:
        return "frame", None, 0, 0, ()
    layer = one.model.layers[below]
    region = one.places[below, layer.cell.output]
    needs = tuple(
        need
        for direction in range(layer.directions)
        for need in one.needs(layer.cell.output, below, direction, layer.backward(direction) != one.backward)
    )
    return "all_x" if region.every else "two", region, region.base, one.stride(region), needs


def _segment(one: _Pass, shape: StageShape, segment: Segment, number: int, row: int, last_stage: bool) -> SegmentRow:
    cell = one.layer.cell
    names = [each.name for each in segment.nodes]
    of_stage = segments_by_stage(cell)[shape.number]
    # segments of a pass are numbered one after another, so a place in the cell's list is a distance
    places = [(each.stage, each.index) for each in segments(cell)]
    own = places.index((segment.stage, segment.index))
    return SegmentRow(
        number=number,
        stage_row=row,
        index=segment.index,
        lane_segment=own,
        writes=tuple(_write(one, node) for node in one.kind.outputs if node in names),
        wants=tuple(
            Want(number - own + each.segment, each.cycles, int(each.state), each.reduced)
            for each in one.schedule.waits(segment)
        ),
        last=last_stage and segment.index == of_stage[-1].index,
    )


def _write(one: _Pass, node: str) -> WriteRow:
    region = one.places[one.layer_number, node]
    first = one.share(one.layer.cell.stages[segment_of(one.layer.cell, node)[0]].rows)[0]
    return WriteRow(
        node=node,
        slot=one.kind.outputs.index(node),
        memory=region.memory,
        counter=one.counter(node) + (one.part.member if one.shares > 1 else 0),
        kept="all" if region.every else "two",
        base=region.base + one.direction * one.layer.width(node) + first,
        stride=one.stride(region),
        visible_cycles=one.schedule.visible(node),
        sent=one.sent(node),
    )


def design(
    scenario: Scenario, precision: Precision, numbers: Mapping[int, JobNumbers] | None = None, capacity: Capacity = None
) -> Design:
    """Plan the hardware of a scenario; capacity: see `Design`."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
    weights = Plan(chip, scenario.jobs) if chip.memory is not None else None
    jobs, posted, queues, chosen = _jobs(chip, scenario.jobs, models, weights)
    sizes = [step_elements(models[part.model]) for part in chosen if part.split]
    shift = (max(sizes, default=1) - 1).bit_length()
    started = frozenset(
        index
        for index, each in (numbers or {}).items()
        if any(values.any() for states in each.stimulus.initial.values() for values in states.values())
    )
    timed = 1 << shift
    does = tuple((models[part.model], part) for part in chosen)
    plans = tuple(_core(number, core, does, jobs, started, timed, capacity) for number, core in enumerate(chip.cores))
    memory = chip.memory if weights is not None and weights.tight else None
    if memory is not None and weights is not None:
        plans = tuple(streaming(each, jobs, weights) for each in plans)
    names = tuple(_name(*each) for each in does)
    more = (posted, queues, chosen, chip.exchange, shift, memory, capacity)
    return Design(scenario.name, names, plans, jobs, precision, chip.frequency_mhz, *more)


def _jobs(
    chip: ColumnNpu, asked: Sequence[AskedJob], models: Sequence[Model], weights: Plan | None
) -> tuple[tuple[Job, ...], int, tuple[Queue, ...], tuple[Part, ...]]:
    """All jobs, first those that are posted; how many these are; the queues; the parts of models that run."""
    # posting order: by arrival, then by index
    order = sorted(range(len(asked)), key=lambda index: (asked[index].arrival, index))
    wanted = [_asked(chip, asked[index], models.index(asked[index].model), weights) for index in order]
    queues = {queue: number for number, queue in enumerate(dict.fromkeys(queue for queue, _ in wanted))}
    # whole models first, as far as any job runs one; without split jobs in the order of the models
    does = dict.fromkeys(part for _, own in wanted for part, _ in own)
    parts = sorted(does, key=lambda part: (part.split != "", part.model if not part.split else 0))
    numbers = {part: number for number, part in enumerate(parts)}
    posted: list[Job] = []
    behind: list[Job] = []
    for parent, (index, (queue, own)) in enumerate(zip(order, wanted, strict=True)):
        job = asked[index]
        same = (job.steps, job.arrival, job.frame_interval)
        for number, (part, cores) in enumerate(own):
            of = (queues[queue], parent, part.member, part.members)
            (behind if number else posted).append(Job(index, job.name, numbers[part], *same, cores, *of))
    return (*posted, *behind), len(posted), tuple(queues), tuple(parts)


def _name(model: Model, part: Part) -> str:
    """What a part of a model is called."""
    share = {"rows": "share", "layers": "run"}.get(part.split)
    return f"{model.name}, {share} {part.member + 1} of {part.members}" if share else model.name


def _asked(
    chip: ColumnNpu, asked: AskedJob, model: int, weights: Plan | None
) -> tuple[Queue, list[tuple[Part, tuple[int, ...]]]]:
    """The queue of a job; its parts, each with the cores on which it may run: first what is posted."""
    job = asked.settled(len(chip.cores))
    places = places_of(chip, job) if weights is None else weights.demand(job).places
    if job.split in ("rows", "layers"):
        (place,) = places
        many = len(place)
        owners: tuple[int, ...] = ()
        where: tuple[int, ...] = ()
        if job.split == "layers":
            owners = tuple(number for number, run in enumerate(layer_runs(job.model, many)) for _ in run)
            where = tuple(list(dict.fromkeys(place)).index(core) for core in place)
        return Queue("fixed", place), [
            (Part(model, job.split, each, many, owners, where), (core,)) for each, core in enumerate(place)
        ]
    cores = tuple(core for (core,) in places)
    spreads = spreads_over(job.model, chip.cores[cores[0]], len(cores)) if job.split == "auto" else ()
    if not spreads:
        cores = tuple(sorted(cores))
        return Queue("", cores), [(Part(model), cores)]
    parts: list[tuple[Part, tuple[int, ...]]] = [(Part(model), tuple(sorted(cores)))]
    for many in spreads:
        for each in range(many):
            own = cores[each : len(cores) - (many - 1 - each)]
            parts.append((Part(model, "rows", each, many), tuple(sorted(own))))
    return Queue("auto", cores), parts


@record
class _Mine:
    """The programs that run on a core."""

    core: ColumnCore
    models: tuple[tuple[Model, Part], ...]  # all parts of models
    jobs: tuple[Job | None, ...]  # all jobs in posting order; None for those that may not run on the core
    capacity: Capacity = None  # see `Design`

    def steps(self, model: int) -> int:
        """The most steps of a job of that model; 0 if none runs here."""
        most = max((job.steps for job in self.jobs if job is not None and job.model == model), default=0)
        return self.capacity[1] if most and self.capacity else most

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of cells, with vector memories numbered one after another."""
        passes: dict[Cell, list[tuple[int, int, int]]] = {}
        for number, (model, part) in enumerate(self.models):
            if self.steps(number):
                for place, layer in enumerate(model.layers):
                    if part.owners and part.owners[place] != part.member:
                        continue
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
    number: int,
    core: ColumnCore,
    models: tuple[tuple[Model, Part], ...],
    jobs: tuple[Job, ...],
    started: frozenset[int],
    timed: int,
    capacity: Capacity,
) -> CorePlan:
    mine = _Mine(core, models, tuple(job if number in job.cores else None for job in jobs), capacity)
    kinds = mine.kinds
    places: list[dict[tuple[int, str], Region]] = []
    for index, (model, part) in enumerate(models):
        steps = mine.steps(index)
        if not steps:
            places.append({})
        else:
            places.append(timed_regions(model, kinds, timed) if part.split else regions(model, kinds, steps))
    programs: list[Program | None] = []
    starts, most_turns = Starts(), 0
    # parameters are of the core, so their addresses differ between programs
    apart = any(kind.cell.parameters for kind in kinds)
    for index, (model, part) in enumerate(models):
        if not mine.steps(index):
            programs.append(None)
            continue
        program, starts = program_of(model, index, part, core, kinds, places[index], starts)
        most_turns = max(most_turns, starts.turn)
        starts = starts if apart else Starts(starts.weight, starts.constant)
        programs.append(program)
    rows, frame_words, initial_words = _job_rows(mine, programs, places, most_turns, started)
    stages = [row for program in programs if program for row in program.stages]
    most = max([mine.steps(index) for index, (_, part) in enumerate(models) if part.split], default=0)
    return CorePlan(
        number=number,
        core=core,
        kinds=kinds,
        programs=tuple(programs),
        memories=_memories(kinds, places, timed * most),
        jobs=rows,
        rows=max((row.gates * max(row.units, row.last_units) for row in stages), default=1),
        weight_words=starts.weight,
        frame_words=frame_words,
        constant_words=starts.constant,
        turns=most_turns,
        initial_words=initial_words,
    )


def _memories(
    kinds: Sequence[Kind], places: Sequence[Mapping[tuple[int, str], Region]], timed: int
) -> tuple[VectorMemory, ...]:
    """The vector memories of a core; on a core without cells one that is not built, for no list of ports is empty.

    timed: elements of split jobs. Where there are any all memories are equal: those of vectors from other cores, too.
    """
    every = [region for one in places for region in one.values()]
    least = max([timed, *(one.end for one in every)]) if timed else 0
    return tuple(
        VectorMemory(memory, kind.number, slot, least or max(one.end for one in every if one.memory == memory))
        for kind in kinds
        for slot, memory in enumerate(kind.memories)
    ) or (VectorMemory(0, 0, 0, 1),)


def _job_rows(
    mine: _Mine,
    programs: Sequence[Program | None],
    places: Sequence[Mapping[tuple[int, str], Region]],
    turns: int,
    started: frozenset[int],
) -> tuple[tuple[JobRow | None, ...], int, int]:
    """The rows of all jobs in posting order, and the words of frames (with h before step 0) and of initial states."""
    rows: list[JobRow | None] = []
    frame = initial = 0
    for job in mine.jobs:
        program = None if job is None else programs[job.model]
        if job is None or program is None:
            rows.append(None)
            continue
        (model, _), where = mine.models[job.model], places[job.model]
        groups = -(-model.layers[0].input // mine.core.ep)
        reads_x = any(read.source == "frame" for row in program.stages for read in row.reads)
        start, frame = frame, frame + job.steps * groups * reads_x
        x_starts = tuple(_step_start(model, where, row, row.layer - 1, job.steps) for row in program.stages)
        write_starts = tuple(_step_start(model, where, row, row.layer, job.steps) for row in program.stages)
        h_starts, own = (-1,) * len(program.stages), -1
        if job.index in started:
            h_starts, frame = _h_starts(program, frame)
            own, initial = initial, initial + turns
        end = start + (job.steps - 1) * groups * reads_x
        rows.append(JobRow(start, end, x_starts, write_starts, own, h_starts))
    if mine.capacity and frame:
        frame = prod(mine.capacity) * max(-(-model.layers[0].input // mine.core.ep) for model, _ in mine.models)
    return tuple(rows), frame, initial


def _step_start(model: Model, places: Mapping[tuple[int, str], Region], row: StageRow, number: int, steps: int) -> int:
    """Address of element 0 of the row's first step of a layer's h, its own or that below, where all steps are kept."""
    if number < 0:
        return 0
    layer = model.layers[number]
    region = places[number, layer.cell.output]
    if not region.every:
        return 0
    # a row reads both directions of the layer below, and writes its own
    direction = row.direction if number == row.layer else 0
    return region.base + direction * layer.width("h") + (steps - 1) * region.width * row.backward


def _h_starts(program: Program, first: int) -> tuple[tuple[int, ...], int]:
    """Frame addresses of h before step 0 for each row, one place a pass; and the first free address after them."""
    starts: list[int] = []
    of_pass: dict[int, int] = {}
    for row in program.stages:
        groups = [read.groups for read in row.reads if read.vector == "h"]
        if groups and row.first_of_pass not in of_pass:
            of_pass[row.first_of_pass] = first
            first += groups[0]
        starts.append(of_pass[row.first_of_pass] if groups else -1)
    return tuple(starts), first
