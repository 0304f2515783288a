"""What the host writes into the memories of a generated NPU: weights, frames, constants of the adapters.

And weights that come from a memory beside the chip: where they are, and how they find their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.machines.column.npu import TURN_CYCLES
from lstmsim.machines.column.plan import Plan
from lstmsim.machines.column.rtl.lanes.lane import Pass
from lstmsim.machines.column.rtl.lanes.lanes_module import SPACES, Write
from lstmsim.machines.column.rtl.layout import INTEGER, Column, bits_of, firsts
from lstmsim.machines.column.rtl.picking import Shifts
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Job, Program, StageRow
from lstmsim.model.model import Precision
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import initial_states
from lstmsim.model.numerics.jobs import JobNumbers


def passes_of(design: Design, numbers: Mapping[int, JobNumbers]) -> dict[Pass, FixedArithmetic]:
    """Give the arithmetic of each pass of each model."""
    passes: dict[Pass, FixedArithmetic] = {}
    mistakes = []
    for job in design.jobs:
        different = False
        for layer, both in enumerate(numbers[job.index].arithmetic):
            for direction, own in enumerate(both):
                assert isinstance(own, FixedArithmetic)
                held = passes.setdefault((job.model, layer, direction), own)
                different |= held.weights is not own.weights
        if different:
            model = design.models[job.model]
            text = f"must be those of the earlier jobs of model {model!r}, which the RTL holds once"
            mistakes.append(Mistake(f"job {job.name}: weights", text))
    refuse(mistakes)
    return passes


Integers = NDArray[np.int64]

_PART = 32
#: Numbers of 32 bits that an address has bits for.
_MOST = 1 << 24
_BIAS_BITS = 32


def hex_text(writes: Iterable[Write]) -> str:
    """Give the lines of a file: address and data of each write.

    >>> hex_text([(0x10000000, 255)])
    '10000000 000000ff\\n'
    """
    return "".join([f"{address:08x} {data:08x}\n" for address, data in writes])


def word_bits(design: Design, plan: CorePlan, shifts: Shifts) -> dict[str, int]:
    """Give the width of a word of each memory of a core that is written from here."""
    precision, core = design.precision, plan.core
    entry = precision.multiplier_bits + (0 if shifts.rows else shifts.bits) + _BIAS_BITS
    return {
        "weights": plan.rows * core.ep * precision.weight_bits,
        "frames": core.ep * precision.vector_bits,
        "constants": core.tail_width * plan.sums * entry,
    }


def parts_of(bits: int) -> int:
    """How many numbers of the bus a word has room for: its parts of 32 bits, rounded up to a power of two.

    >>> parts_of(8), parts_of(33), parts_of(65)
    (1, 2, 4)
    """
    return 1 << (-(-bits // _PART) - 1).bit_length()


def _packed(values: Integers, bits: int) -> NDArray[np.uint8]:
    """The bits of values, the lowest ones first, [..., values * bits]."""
    places = (values[..., None] >> np.arange(bits)) & 1
    return places.reshape(*values.shape[:-1], -1).astype(np.uint8)


def _writes(space: str, core: int, first: int, rows: NDArray[np.uint8]) -> Iterator[Write]:
    """Write words from their bits, [words, bits], from the word `first` on."""
    if not len(rows):
        return
    bits = rows.shape[1]
    filled = np.pad(rows, ((0, 0), (0, -bits % _PART)))
    parts = np.packbits(filled, axis=1, bitorder="little").view("<u4")
    start, step = (SPACES[space] << 28) | (core << 24), parts_of(bits)
    if (first + len(rows)) * step > _MOST:
        raise InputError(_too_large(space, core))
    for number, word in enumerate(parts.tolist(), first):
        for part, data in enumerate(word):
            yield start + number * step + part, data


def _too_large(space: str, core: int) -> Mistake:
    text = f"the {space} of core {core} need more than the {_MOST:,} words of 32 bits that the host's bus addresses"
    return Mistake("chip", text)


def too_large(design: Design) -> list[Mistake]:
    """Tell of weights and frames that the bus does not address, before any number is computed."""
    precision, mistakes = design.precision, []
    for plan in design.cores:
        ep = plan.core.ep
        sizes = {
            "weights": design.weight_words(plan) * parts_of(plan.rows * ep * precision.weight_bits),
            "frames": plan.frame_words * parts_of(ep * precision.vector_bits),
        }
        mistakes += [_too_large(space, plan.number) for space, size in sizes.items() if size > _MOST]
    return mistakes


def weights(design: Design, passes: Mapping[Pass, FixedArithmetic]) -> Iterator[Write]:
    """Give the writes of all weights, a word a tile, in the order of issue."""
    place = {plan.number: 0 for plan in design.cores}
    for plan, program in design.programs:
        for row in program.stages:
            rows = _tile_bits(design, plan, row, passes[program.model, row.layer, row.direction])
            kept = [tile for tile in range(len(rows)) if not program.streamed(row, tile // row.block_tiles)]
            first = place[plan.number] if design.memory is not None else row.weight_base
            yield from _writes("weights", plan.number, first, rows[kept])
            place[plan.number] += len(kept)


def stream_text(design: Design, passes: Mapping[Pass, FixedArithmetic]) -> str:
    """Give the words of the memory from which weights are streamed, a line each, in the order of use."""
    lines = []
    for plan, program in design.programs:
        for row in program.stages:
            rows = _tile_bits(design, plan, row, passes[program.model, row.layer, row.direction])
            own = [bits for tile, bits in enumerate(rows) if program.streamed(row, tile // row.block_tiles)]
            lines += [f"{int.from_bytes(np.packbits(bits, bitorder='little').tobytes(), 'little'):x}\n" for bits in own]
    return "".join(lines)


def streaming(plan: CorePlan, jobs: Sequence[Job], weights: Plan) -> CorePlan:
    """The core with the row blocks that it streams."""
    programs: list[Program | None] = []
    for program in plan.programs:
        if program is not None:
            job = next(each for each in jobs if each.model == program.model and plan.number in each.cores)
            cycles = {place: own for place, (_, own) in weights.streams(weights.jobs[job.index], plan.number).items()}
            rows = [
                [cycles.get((row.layer, row.direction, block, row.stage), 0) for block in range(row.blocks)]
                for row in program.stages
            ]
            program = replace(program, transfers=tuple(map(tuple, rows)))
        programs.append(program)
    return replace(plan, programs=tuple(programs))


class _Stream(NamedTuple):
    """A row block that is transferred in every step."""

    cycles: int  # of its transfer
    words: int
    place: tuple[int, int, int, int]  # core, part of a model, row, row block

    @property
    def bursts(self) -> int:
        return -(-self.cycles // TURN_CYCLES)


def streams(design: Design) -> list[list[list[_Stream]]]:
    """For each program and each of its phases that has any, the row blocks that are streamed, in the order of use."""
    made = []
    for plan, program in design.programs:
        phases = [
            [
                _Stream(cycles, row.block_tiles, (plan.number, program.model, row.number, block))
                for row in rows
                for block in range(row.blocks)
                if (cycles := program.streamed(row, block))
            ]
            for rows in program.phases
        ]
        made.append([each for each in phases if each])
    return made


def _row_blocks(plan: CorePlan) -> Iterator[tuple[StageRow, int, bool]]:
    """All row blocks of a core, and whether they are streamed."""
    for program in plan.programs:
        for row in () if program is None else program.stages:
            for block in range(row.blocks):
                yield row, block, program is not None and program.streamed(row, block) > 0


def stream_counts(design: Design) -> list[tuple[str, int]]:
    """The plain numbers of weights that come from the memory beside the chip."""
    every = [each for program in streams(design) for phase in program for each in phase]
    tiles = [plan.rows * plan.core.ep * design.precision.weight_bits for plan in design.cores]
    return [
        ("STREAMS", int(design.memory is not None)),
        ("W_STREAM", bits_of(len(every) - 1 if every else 0)),
        ("W_BURST", bits_of(max((each.bursts for each in every), default=1))),
        ("PREFETCH", design.memory.prefetch_blocks if design.memory else 1),
        ("BURST_CYCLES", TURN_CYCLES),
        ("MEMORY_LATENCY", design.memory.latency_cycles if design.memory else 0),
        ("MOST_TILE_BITS", max(tiles) if design.memory else 1),
        ("STREAM_WORDS", max(1, sum(each.words for each in every))),
    ]


STREAM_TITLE = (
    "Streamed weights: G_: phases of a program; KP_: their row blocks in K_; BK_: all row blocks, whether they are\n"
    "// streamed, and what is added to a tile's number of a word; C_: words that stay, words of a slot"
)


def stream_columns(design: Design, wide: Mapping[str, int]) -> list[Column]:
    """The columns of weights that come from the memory beside the chip."""
    of_programs = streams(design)
    phases = [phase for program in of_programs for phase in program]
    every = [each for phase in phases for each in phase]
    bursts = bits_of(max((each.bursts for each in every), default=1))
    first, count = dict[tuple[int, int], int](), dict[tuple[int, int], int]()
    for (plan, program), place, own in zip(design.programs, firsts(map(len, of_programs)), of_programs, strict=True):
        first[plan.number, program.model], count[plan.number, program.model] = place, len(own)
    keys = [(plan.number, model) for plan in design.cores for model in range(len(design.models))]
    moved: list[int] = []
    for plan in design.cores:
        stays = 0
        for row, block, streamed in _row_blocks(plan):
            there = row.weight_base + block * row.block_tiles
            moved.append(-there if streamed else stays - there)
            stays += 0 if streamed else row.block_tiles
    blocks = [streamed for plan in design.cores for _, _, streamed in _row_blocks(plan)]
    return [
        Column("G_PHASE", tuple(first.get(key, 0) for key in keys), bits_of(len(phases))),
        Column("G_PHASES", tuple(count.get(key, 0) for key in keys)),
        Column("KP_FIRST", firsts(map(len, phases)), 1),
        Column("KP_COUNT", tuple(map(len, phases))),
        Column("K_BURSTS", tuple(each.bursts for each in every), bursts),
        Column("K_CYCLES", tuple(each.cycles for each in every)),
        Column("K_WORDS", tuple(each.words for each in every)),
        Column("K_ADDRESS", firsts(each.words for each in every)),
        Column("P_STREAM", firsts(row.blocks for row in design.rows)),
        Column("BK_STREAMED", tuple(map(int, blocks))),
        Column("BK_MOVED", tuple(moved) if design.memory else (0,) * len(moved), wide["W_WEIGHT"]),
        Column("C_STAYS", tuple(plan.stored[0] for plan in design.cores), INTEGER),
        Column("C_BLOCK_WORDS", tuple(plan.stored[1] for plan in design.cores), INTEGER),
    ]


def _tile_bits(design: Design, plan: CorePlan, row: StageRow, own: FixedArithmetic) -> NDArray[np.uint8]:
    """The bits of the tiles of a stage, in the order of issue."""
    tiles = _tiles(plan, row, own)
    return _packed(tiles.reshape(len(tiles), -1), design.precision.weight_bits)


def _rows(
    design: Design, passes: Mapping[Pass, FixedArithmetic]
) -> Iterator[tuple[CorePlan, StageRow, FixedArithmetic]]:
    """Yield every row of every program, with its core and its arithmetic."""
    for plan, program in design.programs:
        for row in program.stages:
            yield plan, row, passes[program.model, row.layer, row.direction]


def _tiles(plan: CorePlan, row: StageRow, own: FixedArithmetic) -> Integers:
    """The weights of a stage, [tiles in the order of issue, rows, elements]; what is beyond the matrix is 0."""
    gates = own.layer.cell.stages[row.stage].gates
    ep, groups = plan.core.ep, [each.groups for each in row.reads]
    matrix = np.zeros((row.blocks * row.units, row.gates, sum(groups) * ep), np.int64)
    column = 0
    for read in row.reads:
        for number, (gate, slot) in enumerate(zip(gates, read.slots, strict=True)):
            if slot >= 0:
                part = own.matrix(gate.sums[slot].name, read.vector)[row.first_unit : row.first_unit + row.unit_count]
                matrix[: row.unit_count, number, column : column + read.elements] = part
        column += read.groups * ep
    blocks = matrix.reshape(row.blocks, row.units * row.gates, sum(groups), ep).transpose(0, 2, 1, 3)
    if plan.core.block_order == "column":
        blocks = blocks.transpose(1, 0, 2, 3)
    tiles = blocks.reshape(-1, row.units * row.gates, ep)
    return np.pad(tiles, ((0, 0), (0, plan.rows - row.units * row.gates), (0, 0)))


def frames(
    design: Design, passes: Mapping[Pass, FixedArithmetic], numbers: Mapping[int, JobNumbers]
) -> Iterator[Write]:
    """Give the writes of the frames of all jobs, a word a column group, and of h before step 0 where it is given."""
    bits = design.precision.vector_bits
    for plan in design.cores:
        for job, row in zip(design.jobs, plan.jobs, strict=True):
            program = plan.programs[job.model]
            if row is None or program is None:
                continue
            stimulus = numbers[job.index].stimulus
            if any(read.source == "frame" for stage in program.stages for read in stage.reads):
                x = passes[job.model, 0, 0].encode(stimulus.x[: job.steps])
                yield from _writes("frames", plan.number, row.frame_start, _packed(_grouped(x, plan.core.ep), bits))
            for start, stage in zip(row.h_starts, program.stages, strict=False):
                if start >= 0:
                    own = passes[job.model, stage.layer, stage.direction]
                    h = initial_states(own, stimulus, stage.layer, stage.direction)["h"]
                    yield from _writes("frames", plan.number, start, _packed(_grouped(h[None], plan.core.ep), bits))


def _grouped(vectors: Integers, ep: int) -> Integers:
    """Vectors as column groups, [groups of all vectors, ep]; the last group of each is filled up with 0."""
    padded = np.pad(vectors, ((0, 0), (0, -vectors.shape[1] % ep)))
    return padded.reshape(-1, ep)


def shifts_of(design: Design, passes: Mapping[Pass, FixedArithmetic]) -> Shifts:
    """Choose how the adapters hold their shifts: the smallest one as 0; as wires, if each sum has one for all units."""
    precision = design.precision
    every = [_cut(each.shift[each.factor > 0], precision) for own in passes.values() for each in own.adapters.values()]
    known = np.concatenate([*every, np.zeros(0, np.int64)])
    low, high = (int(known.min()), int(known.max())) if len(known) else (0, 0)
    held = Shifts(max(1, (high - low).bit_length()), -low)
    if precision.shift != "common":
        return held
    rows = []
    for _, row, own in _rows(design, passes):
        sums = own.layer.cell.stages[row.stage].sums
        # a sum of nothing but zeros may have any shift
        rows.append(tuple(int(np.clip(own.adapters[each.name].shift[0], low, high)) - low for each in sums))
    return replace(held, rows=tuple(rows))


def _cut(shift: Integers, precision: Precision) -> Integers:
    """Shifts where they make a difference.

    What is shifted to the right by more bits than it has is 0; what is shifted to the left by more bits than a bias and
    a result have saturates.
    """
    lowest = -(max(precision.tail_bits, _BIAS_BITS) + 2)
    return np.clip(shift, lowest, precision.accumulator_bits + precision.multiplier_bits + 2)


def constants(design: Design, passes: Mapping[Pass, FixedArithmetic], shifts: Shifts) -> Iterator[Write]:
    """Give the writes of the adapters' constants, a word a turn."""
    for plan, row, own in _rows(design, passes):
        yield from _writes("constants", plan.number, row.constant_base, _constant_rows(plan, row, own, shifts))


def _constant_rows(plan: CorePlan, row: StageRow, own: FixedArithmetic, shifts: Shifts) -> NDArray[np.uint8]:
    """The bits of the words of a stage, [turns, bits]."""
    precision, width = own.precision, plan.core.tail_width
    fields = {"factor": precision.multiplier_bits, "shift": 0 if shifts.rows else shifts.bits, "bias": _BIAS_BITS}
    turns = -(-row.units // width)
    words = np.zeros((row.blocks, turns * width, plan.sums, sum(fields.values())), np.uint8)
    units = np.arange(row.unit_count)
    for number, each in enumerate(own.layer.cell.stages[row.stage].sums):
        adapter = own.adapters[each.name]
        shift = np.where(adapter.factor > 0, _cut(adapter.shift, precision) + shifts.left, 0)
        parts = ((adapter.factor, "factor"), (shift, "shift"), (adapter.bias, "bias"))
        mine = slice(row.first_unit, row.first_unit + row.unit_count)
        bits = np.concatenate([_packed(values[mine, None], fields[name]) for values, name in parts], axis=1)
        words[units // row.units, units % row.units, number] = bits
    own_turns = words.reshape(row.blocks * turns, -1)
    # the last block may have fewer turns
    last = -(-row.last_units // width)
    return own_turns[: (row.blocks - 1) * turns + last]
