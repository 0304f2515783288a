"""What a design's README says of the memories that the host fills: space, words, and how an address is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lstmsim.base.wording import markdown
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes, bits_of
from lstmsim.machines.column.rtl.passes import Pass
from lstmsim.machines.column.rtl.picking import Shifts, sums_of
from lstmsim.machines.column.rtl.plan import CorePlan, Design
from lstmsim.machines.column.rtl.words import SPACES, parts_of, word_bits
from lstmsim.model.cell import Stage
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.fixed_point import VectorFormat

__all__ = ["MEMORY_COLUMNS", "NUMBER_COLUMNS", "memory_rows", "number_rows"]

#: What `memory_rows` tells of a memory.
MEMORY_COLUMNS = ("core", "space", "memory", "words", "bits of a word", "what a word is, and where it lies")

#: What `number_rows` tells of a row.
NUMBER_COLUMNS = ("row", "1 of a frame's element stands for", "1 of h stands for")

#: Space, name, words, bits, meaning.
_Row = tuple[int, int, str, int, int, str]


def memory_rows(design: Design, passes: Mapping[Pass, FixedArithmetic], shifts: Shifts) -> list[_Row]:
    """Tell of each memory that the host fills what `MEMORY_COLUMNS` names.

    design: the design.
    passes: arithmetic of every pass.
    shifts: how the adapters hold their shifts.
    """
    rows: list[_Row] = []
    for plan in design.cores:
        if plan.kinds:
            rows += _of_words(design, plan, shifts)
            rows += _of_lanes(plan, CoreLanes.of(plan, passes, design.precision))
    return rows


def _of_words(design: Design, plan: CorePlan, shifts: Shifts) -> Iterator[_Row]:
    """Weights, frames, constants."""
    bits, precision = word_bits(design, plan, shifts), design.precision
    rows, ep, width, sums = plan.rows, plan.core.ep, plan.core.tail_width, sums_of(plan)
    shift = "" if shifts.rows else f"shift {'-' if shifts.left < 0 else '+'} {abs(shifts.left)} ({shifts.bits}), "
    entry = f"factor ({precision.multiplier_bits}), {shift}bias (32)"
    order = "row blocks, column groups" if plan.core.block_order == "row" else "column groups, row blocks"
    tile = f"a tile, in the order of issue (models' rows, {order}): {rows} rows (unit * gates + gate) of {ep} weights"
    gates = _by_stage(plan, lambda stage: [each.name for each in stage.gates])
    names = _by_stage(plan, lambda stage: [each.name for each in stage.sums])
    turn = f"a turn: for each of {width} lanes {sums} sums of {entry}; sums {names}"
    told = {
        "weights": (plan.weight_words, f"{tile}; gates {gates}"),
        "frames": (plan.frame_words, f"a column group: {ep} elements; {_frame_place(plan)}"),
        "constants": (plan.constant_words, turn),
    }
    for name, (words, text) in told.items():
        parts = parts_of(bits[name])
        where = "" if parts == 1 else f"; {parts} places a word"
        yield plan.number, SPACES[name], name, words, bits[name], text + where


def _frame_place(plan: CorePlan) -> str:
    """Where a frame lies, and h before the first step."""
    place = "frame t of a job from its first frame word (below) + t * ceil(inputs / ep) on"
    if any(start >= 0 for row in plan.jobs if row is not None for start in row.h_starts):
        place += "; h before step 0 at JR_H_START of `npu_config.vh`"
    return place


def _by_stage(plan: CorePlan, names: Callable[[Stage], list[str]]) -> str:
    """Names in each stage of each kind of cell."""
    stages = [(kind.cell, number, stage) for kind in plan.kinds for number, stage in enumerate(kind.cell.stages)]
    told = (
        f"of {markdown(cell.name)}{f' stage {number}' if len(cell.stages) > 1 else ''}: {' '.join(names(stage))}"
        for cell, number, stage in stages
    )
    return ", ".join(told)


def number_rows(design: Design, passes: Mapping[Pass, FixedArithmetic]) -> list[tuple[object, ...]]:
    """Tell of each row of the models that writes h what `NUMBER_COLUMNS` names.

    design: the design.
    passes: arithmetic of every pass.
    """
    rows: list[tuple[object, ...]] = []
    first = 0
    for program in (each for plan in design.cores for each in plan.programs if each is not None):
        for row in program.stages:
            own = passes[program.model, row.layer, row.direction]
            if any(write.slot == 0 for segment in row.segments for write in segment.writes):
                x = float(own.x.scale) if row.layer == 0 else "-"
                h = own.formats[own.layer.cell.output]
                assert isinstance(h, VectorFormat)
                rows.append((first + row.number, x, float(h.scale)))
        first += len(program.stages)
    return rows


def _of_lanes(plan: CorePlan, lanes: CoreLanes) -> Iterator[_Row]:
    """Tables, parameters, states before the first step; each number is written alone."""
    names = {number: markdown(kind.cell.name) for number, kind in enumerate(plan.kinds)}
    low = {"parameters": bits_of(len(lanes.parameters)), "initial": bits_of(len(lanes.states))}
    if lanes.tables:
        count = 1 << lanes.cell_bits
        what = _listed(f"{number} {node} of {names[kind]}" for number, (kind, node) in enumerate(lanes.tables))
        entry = lanes.cell_bits + lanes.part_bits
        place = f"((table << {lanes.table_bits}) + number << {entry}) + (entry << {lanes.part_bits}) + part"
        rise = ", and above it the rise to the next one" if lanes.precision.activation == "linear" else ""
        text = f"an entry of a table{rise}, at `{place}`; tables: {what}"
        yield plan.number, SPACES["tables"], "tables", len(lanes.tables) * count, lanes.word_bits, text
    for name, held in (("parameters", lanes.parameters), ("initial", lanes.states)):
        words = plan.initial_words if name == "initial" else plan.turns
        if held and words:
            what = _listed(
                f"{number} {value} of {names[kind]}, stage {stage}" for number, (kind, value, stage) in enumerate(held)
            )
            turn = "turn" if name == "parameters" else "turn + JC_INITIAL of the job"
            place = f"(({turn} << {lanes.lane_bits}) + lane << {low[name]}) + number"
            text = f"a number of a unit, at `{place}`; numbers: {what}"
            yield plan.number, SPACES[name], name, words * plan.core.tail_width * len(held), 32, text


def _listed(names: Iterator[str]) -> str:
    return ", ".join(names)
