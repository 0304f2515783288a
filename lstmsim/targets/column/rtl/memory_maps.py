"""What a design's README says of the memories that the host fills: space, words, and how an address is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lstmsim.numerics.fixed import FixedArithmetic
from lstmsim.targets.column.rtl.lanes.layout import CoreLanes, bits_of
from lstmsim.targets.column.rtl.passes import Pass
from lstmsim.targets.column.rtl.picking import Shifts, sums_of
from lstmsim.targets.column.rtl.plan import CorePlan, Design
from lstmsim.targets.column.rtl.words import SPACES, parts_of, word_bits

__all__ = ["MEMORY_COLUMNS", "memory_rows"]

#: What `memory_rows` tells of a memory.
MEMORY_COLUMNS = ("core", "space", "memory", "words", "bits of a word", "what a word is, and where it lies")

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
    entry = f"factor ({precision.multiplier_bits}), shift {shifts.left:+d} ({shifts.bits}), bias (32)"
    told = {
        "weights": (plan.weight_words, f"a tile, in the order of issue: row by row, {rows} rows of {ep} weights"),
        "frames": (plan.frame_words, f"a column group: {ep} elements"),
        "constants": (plan.constant_words, f"a turn: for each of {width} lanes {sums} sums of {entry}"),
    }
    for name, (words, text) in told.items():
        parts = parts_of(bits[name])
        where = "" if parts == 1 else f"; {parts} places a word"
        yield plan.number, SPACES[name], name, words, bits[name], text + where


def _of_lanes(plan: CorePlan, lanes: CoreLanes) -> Iterator[_Row]:
    """Tables, parameters, states before the first step; each number is written alone."""
    names = {number: kind.cell.name for number, kind in enumerate(plan.kinds)}
    low = {"parameters": bits_of(len(lanes.parameters)), "initial": bits_of(len(lanes.states))}
    if lanes.tables:
        count = 1 << lanes.cell_bits
        what = _listed(f"{number} {node} of {names[kind]}" for number, (kind, node) in enumerate(lanes.tables))
        entry = lanes.cell_bits + lanes.part_bits
        place = f"((table << {lanes.table_bits}) + number << {entry}) + (entry << {lanes.part_bits}) + part"
        text = f"an entry of a table, at `{place}`; tables: {what}"
        yield plan.number, SPACES["tables"], "tables", len(lanes.tables) * count, lanes.word_bits, text
    for name, held in (("parameters", lanes.parameters), ("initial", lanes.states)):
        words = plan.initial_words if name == "initial" else plan.turns
        if held and words:
            what = _listed(
                f"{number} {value} of {names[kind]}, stage {stage}" for number, (kind, value, stage) in enumerate(held)
            )
            place = f"((turn << {lanes.lane_bits}) + lane << {low[name]}) + number"
            text = f"a number of a unit, at `{place}`; numbers: {what}"
            yield plan.number, SPACES[name], name, words * plan.core.tail_width * len(held), 32, text


def _listed(names: Iterator[str]) -> str:
    return ", ".join(names)
