"""What the host writes into the lanes of a core before it begins: tables, parameters, states before the first step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lstmsim.machines.column.rtl.lanes.lanes_module import SPACES
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes, Pass, bits_of
from lstmsim.machines.column.rtl.rows import StageRow
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import initial_states
from lstmsim.model.numerics.weights import Stimulus

__all__ = ["initial_writes", "parameter_writes", "table_writes"]

#: An address and the data that the host writes there.
Write = tuple[int, int]


def _base(core: CoreLanes, space: str) -> int:
    return SPACES[space] << 28 | core.plan.number << 24


def table_writes(core: CoreLanes) -> Iterator[Write]:
    """Yield what the host writes into the tables of activation functions."""
    for number, (kind, node) in enumerate(core.tables):
        lanes = core.kinds[kind]
        own, places = lanes.tables(node)
        for place in dict.fromkeys(places):
            words = own[places.index(place)].words(lanes.bits(node))
            first = ((number << core.table_bits) | place) << core.cell_bits
            for cell, word in enumerate(words):
                address = _base(core, "tables") | (first + cell) << core.part_bits
                for part in range(1 + core.part_bits):
                    yield address + part, word >> 32 * part & 0xFFFFFFFF


def _turns(core: CoreLanes, row: StageRow) -> Iterator[tuple[int, int, int]]:
    """(address of the turn, first unit, units) of all turns of a stage's row blocks."""
    width = core.plan.core.tail_width
    for block in range(row.blocks):
        units = row.units if block < row.blocks - 1 else row.last_units
        for turn in range(-(-units // width)):
            address = row.turn_base + block * -(-row.units // width) + turn
            yield address, block * row.units + turn * width, min(width, units - turn * width)


def parameter_writes(core: CoreLanes, passes: Mapping[Pass, FixedArithmetic]) -> Iterator[Write]:
    """Yield what the host writes into the memories of parameters.

    passes: the arithmetic of all passes that run on the core.
    """
    for row, model in _rows(core):
        own = passes[model, row.layer, row.direction]
        for number, (kind, name, stage) in enumerate(core.parameters):
            if (kind, stage) == (row.kind, row.stage):
                values = own.parameters[name].tolist()
                yield from _lanes_of(core, row, values, ("parameters", 0, number, len(core.parameters)))


def initial_writes(
    core: CoreLanes, passes: Mapping[Pass, FixedArithmetic], stimuli: Mapping[int, tuple[int, Stimulus]]
) -> Iterator[Write]:
    """Yield what the host writes into the memories of states before the first step.

    passes: the arithmetic of all passes that run on the core.
    stimuli: model and stimulus of each job, by its number in posting order.
    """
    for job, own in enumerate(core.plan.jobs):
        if own is None or own.initial < 0:
            continue
        model, stimulus = stimuli[job]
        for row in (row for row, owner in _rows(core) if owner == model):
            held = initial_states(passes[model, row.layer, row.direction], stimulus, row.layer, row.direction)
            for number, (kind, name, stage) in enumerate(core.states):
                if (kind, stage) == (row.kind, row.stage):
                    values = held[name].tolist()
                    yield from _lanes_of(core, row, values, ("initial", own.initial, number, len(core.states)))


def _rows(core: CoreLanes) -> Iterator[tuple[StageRow, int]]:
    """The rows of all programs of a core, each with its model."""
    for program in core.plan.programs:
        if program is not None:
            for row in program.stages:
                yield row, program.model


def _lanes_of(core: CoreLanes, row: StageRow, values: list[int], where: tuple[str, int, int, int]) -> Iterator[Write]:
    """The writes of one number for each unit; where: space, first address, number of the memory, memories."""
    space, first, number, count = where
    for address, unit, units in _turns(core, row):
        for lane in range(units):
            word = ((first + address) << core.lane_bits | lane) << bits_of(count) | number
            yield _base(core, space) | word, values[unit + lane] & 0xFFFFFFFF
