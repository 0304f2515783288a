"""The work of the tail unit in a job: sums go through the adapter, then through the cell's graph, by segments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.replay.array_work import ArrayWork
from lstmsim.machines.column.replay.work import Place, Work
from lstmsim.machines.column.tail import begins
from lstmsim.model.cell import Node
from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.segments import Segment, kinds, segments

__all__ = ["TailWork"]


@dataclass(eq=False)
class TailWork:
    """The row blocks of one member of a job in its core's tail unit.

    work: the member.
    array: the array whose sums enter the tail unit.
    """

    work: Work
    array: ArrayWork

    def finish(self, place: Place, index: int, cycle: int) -> None:
        """Execute one segment of a row block; the first unit has its turn at `cycle`.

        index: number of the segment in the stage.
        `ReplayError` if there is no such segment, or a value is read too early.
        """
        layer = self.work.job.model.layers[place.layer]
        key = (place.stage, index)
        segment = next((each for each in segments(layer.cell) if (each.stage, each.index) == key), None)
        who = f"{self.work.who}: the tail of {place}{f' part {index}' if index else ''}"
        if segment is None:
            raise ReplayError(f"{who} does not exist")
        units = self.work.units(place)
        turns = cycle + np.arange(units.stop - units.start, dtype=np.int64) // self.work.core.tail_width
        if index == 0:
            self._adapt(place, units, cycle, who)
        values: dict[str, Array] = {}
        for node in segment.nodes:
            self._compute(place, segment, node, values, units, turns, who)
        if place.block == len(self.work.shape(place).blocks) - 1:
            if segment.reductions:
                self._reduce(place, segment, int(turns[-1]), who)
            if segment == segments(layer.cell)[-1]:
                self.work.forget(place)

    def _adapt(self, place: Place, units: slice, cycle: int, who: str) -> None:
        """Move the block's sums from their bank through the adapter to the tail."""
        bank = self.array.empty(place, cycle, who)
        shape, count = self.work.shape(place), units.stop - units.start
        arithmetic, gates = self.work.arithmetic(place.layer, place.direction), shape.stage.gates
        for number, gate in enumerate(gates):
            for part, each in enumerate(gate.sums):
                held = self.array.array.rows(bank.sums[part])
                rows = held[number : number + count * len(gates) : len(gates)]
                name = (place.layer, place.direction, place.step, each.name)
                since = np.full(count, cycle, np.int64)
                adapted = arithmetic.adapt(each.name, rows, units)
                self.work.tail.write(name, units, adapted, since, shape.layer.units(shape.stage.rows))

    def _compute(
        self,
        place: Place,
        segment: Segment,
        node: Node,
        values: dict[str, Array],
        units: slice,
        turns: NDArray[np.int64],
        who: str,
    ) -> None:
        shape = self.work.shape(place)
        at = turns + begins(node, shape.depth, segment)
        for name in node.sources:
            if name not in values and name not in shape.layer.cell.parameters:
                values[name] = self._value(place, name, units, at, who)
        values[node.name] = self.work.arithmetic(place.layer, place.direction).compute(node, values, units)
        key, width = (place.layer, place.direction, place.step), shape.layer.width(node.name)
        self.work.tail.write((*key, node.name), units, values[node.name], turns + shape.depth[node.name], width)
        for state, target in shape.layer.cell.states.items():
            if target == node.name and state != node.name:
                self.work.tail.write((*key, state), units, values[node.name], turns + shape.depth[node.name], width)
        if node.operation == "quantize":
            name = "h" if node.name == shape.layer.cell.output else node.name
            self.work.vectors.write(
                (*key, name), units, values[node.name], turns + shape.visible_cycles(node.name), width
            )

    def _value(self, place: Place, name: str, units: slice, at: NDArray[np.int64], who: str) -> Array:
        """Read a sum, a state, or the value of an earlier node, for use at the cycles `at`."""
        layer = self.work.job.model.layers[place.layer]
        step = self.work.before(place) if name in layer.cell.states else place.step
        wanted = slice(0, 1) if kinds(layer.cell)[name] == "scalar" else units
        cycles = at[:1] if wanted.stop - wanted.start == 1 else at
        return self.work.tail.read((place.layer, place.direction, step, name), wanted, cycles, who)

    def _reduce(self, place: Place, segment: Segment, last_turn: int, who: str) -> None:
        """Compute the reductions over all units, and the scalars made of them, after the last unit's turn."""
        shape = self.work.shape(place)
        arithmetic = self.work.arithmetic(place.layer, place.direction)
        every = slice(0, shape.layer.units(segment.rows))
        key = (place.layer, place.direction, place.step)
        for node in (*segment.reductions, *segment.scalars):
            values: dict[str, Array] = {}
            for name in node.sources:
                wanted = slice(0, 1) if kinds(shape.layer.cell)[name] == "scalar" else every
                at = np.full(wanted.stop, last_turn + begins(node, shape.depth, segment), np.int64)
                values[name] = self._value(place, name, wanted, at, who)
            result = arithmetic.compute(node, values, every)
            since = np.full(1, last_turn + shape.depth[node.name], np.int64)
            self.work.tail.write((*key, node.name), slice(0, 1), result, since, 1)
