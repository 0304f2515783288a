"""The rows of a program: stages of passes in order, what they read, what their segments write and wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from lstmsim.base.records import record
from lstmsim.machines.column.core import ColumnCore
from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.plan import Kind, Program
from lstmsim.machines.column.rtl.regions import Region
from lstmsim.machines.column.rtl.rows import Need, ReadRow, SegmentRow, StageRow, Want, WriteRow
from lstmsim.machines.column.shape import StageShape, issue_order, pass_shapes
from lstmsim.model.cell import Stage
from lstmsim.model.model import Layer, Model
from lstmsim.model.segments import Segment, segments, segments_by_stage

__all__ = ["Starts", "program_of"]


@record
class Starts:
    """The first free addresses of a core's memories: words of weights, words of adapter constants, turns."""

    weight: int = 0
    constant: int = 0
    turn: int = 0


@record
class _Pass:
    """A pass on a core.

    model: its model.
    core: the core.
    kinds: the cells of the core.
    places: the regions of the model's vectors.
    number: number of the model.
    layer_number, direction: which pass it is.
    """

    model: Model
    core: ColumnCore
    kinds: Sequence[Kind]
    places: Mapping[tuple[int, str], Region]
    number: int
    layer_number: int
    direction: int

    @property
    def layer(self) -> Layer:
        """Its layer."""
        return self.model.layers[self.layer_number]

    @cached_property
    def schedule(self) -> Schedule:
        """The cycles of its lanes."""
        return Schedule(self.layer.cell, self.core.latency, self.core.tail_width)

    @property
    def kind(self) -> Kind:
        """Its kind of cell."""
        return next(each for each in self.kinds if each.cell == self.layer.cell)

    @property
    def shapes(self) -> tuple[StageShape, ...]:
        """Its stages."""
        return pass_shapes(self.layer, self.core)

    @property
    def backward(self) -> bool:
        """Whether it goes from the last time step to the first."""
        return self.layer.backward(self.direction)

    def counter(self, node: str, layer: int | None = None, direction: int | None = None) -> int:
        """Number of the counter of a vector, of this pass or of another one."""
        layer = self.layer_number if layer is None else layer
        direction = self.direction if direction is None else direction
        number = 0
        for index, each in enumerate(self.model.layers):
            kind = next(one for one in self.kinds if one.cell == each.cell)
            for way in range(each.directions):
                if (index, way) == (layer, direction):
                    return number + kind.outputs.index(node)
                number += len(kind.outputs)
        raise KeyError(node)

    def sign(self) -> int:
        """1, or -1 if the pass goes backward."""
        return -1 if self.backward else 1


def program_of(
    model: Model,
    number: int,
    core: ColumnCore,
    kinds: Sequence[Kind],
    places: Mapping[tuple[int, str], Region],
    starts: Starts,
) -> tuple[Program, Starts]:
    """Give what a model does on a core, and the first free addresses behind it.

    model: the model.
    number: its number.
    core: the core.
    kinds: the cells that run on the core.
    places: where the model's vectors lie.
    starts: the first free addresses.
    """
    rows: list[StageRow] = []
    counters = segment_number = 0
    for layer_number, layer in enumerate(model.layers):
        for direction in range(layer.directions):
            one = _Pass(model, core, kinds, places, number, layer_number, direction)
            first = len(rows)
            for shape in one.shapes:
                row = _stage_row(one, shape, len(rows), first, segment_number, starts)
                rows.append(row)
                segment_number += len(row.segments)
                words = (row.blocks - 1) * _turns(core, row.units) + _turns(core, row.last_units)
                starts = replace(starts, weight=starts.weight + row.tiles, constant=starts.constant + words)
            starts = replace(starts, turn=starts.turn + max(_extent(core, row) for row in rows[first:]))
            counters += len(one.kind.outputs)
    return Program(number, tuple(rows), counters, model.layer_order == "step"), starts


def _turns(core: ColumnCore, units: int) -> int:
    return -(-units // core.tail_width)


def _extent(core: ColumnCore, row: StageRow) -> int:
    """Turns of all row blocks."""
    return (row.blocks - 1) * _turns(core, row.units) + _turns(core, row.last_units)


def _stage_row(one: _Pass, shape: StageShape, number: int, first: int, segment_number: int, starts: Starts) -> StageRow:
    cell = one.layer.cell
    stage_segments = segments_by_stage(cell)[shape.number]
    x_last = one.model.layer_order == "step" and one.layer_number > 0
    last_stage = shape.number == len(one.shapes) - 1
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
    )


def _read(one: _Pass, shape: StageShape, vector: str) -> ReadRow:
    codes = {"x": 1, "h": 0} | {name: 2 + place for place, name in enumerate(_intermediate(one))}
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
        slots=_slots(shape.stage, vector),
    )


def _intermediate(one: _Pass) -> tuple[str, ...]:
    """Vectors that the cell's stages make for later ones, in their order."""
    stages = one.layer.cell.stages
    return tuple(dict.fromkeys(name for stage in stages for name in stage.vectors if name not in ("x", "h")))


def _slots(stage: Stage, vector: str) -> tuple[int, ...]:
    """For each gate which of its sums takes the products of a vector; -1: none."""
    return tuple(
        next((slot for slot, each in enumerate(gate.sums) if vector in each.vectors), -1) for gate in stage.gates
    )


def _where(one: _Pass, vector: str) -> tuple[str, Region | None, int, int, tuple[Need, ...]]:
    """Source, region, base, stride and needs of a vector that a pass reads."""
    if vector == "x":
        return _x(one)
    node = one.layer.cell.output if vector == "h" else vector
    region, width = one.places[one.layer_number, node], one.layer.width(node)
    need = Need(one.counter(node), 0, width, False)
    base = region.base + one.direction * width
    if region.every and vector == "h":
        return "all_h", region, base, one.sign() * region.width, (need,)
    return "two", region, base, region.width, (need,)


def _x(one: _Pass) -> tuple[str, Region | None, int, int, tuple[Need, ...]]:
    below = one.layer_number - 1
    if below < 0:
        return "frame", None, 0, 0, ()
    layer = one.model.layers[below]
    region, width = one.places[below, layer.cell.output], layer.width("h")
    needs = tuple(
        Need(
            one.counter(layer.cell.output, below, direction),
            direction * width,
            (direction + 1) * width,
            layer.backward(direction) != one.backward,
        )
        for direction in range(layer.directions)
    )
    if region.every:
        return "all_x", region, region.base, one.sign() * region.width, needs
    return "two", region, region.base, region.width, needs


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
    return WriteRow(
        node=node,
        slot=one.kind.outputs.index(node),
        memory=region.memory,
        counter=one.counter(node),
        kept="all" if region.every else "two",
        base=region.base + one.direction * one.layer.width(node),
        stride=(one.sign() if region.every else 1) * region.width,
        visible_cycles=one.schedule.visible(node),
    )
