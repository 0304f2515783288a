"""The work of the array in a job: tiles are multiplied and added up in accumulator banks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.replay.array import PeArray
from lstmsim.machines.column.replay.work import Place, Work
from lstmsim.machines.column.shape import StageShape
from lstmsim.model.numerics.arithmetic import Array

__all__ = ["ArrayWork", "Bank"]


@dataclass(eq=False)
class Bank:
    """Running sums of one row block.

    sums: for each part of the gates, the registers of the trees [trees, registers]. Where a gate keeps two sums apart
    (the GRU's candidate), the block has two parts.
    groups: the column groups added so far.
    last_cycle: cycle of the last tile.
    """

    sums: list[Array]
    groups: set[int] = field(default_factory=set)
    last_cycle: int = -1


@dataclass(eq=False)
class ArrayWork:
    """The tiles of one member of a job on its core's array.

    work: the member.
    array: structure of the array.
    banks: the banks that hold sums, by row block.
    freed: cycles at which banks that have been emptied are free again.
    done: row blocks whose sums have gone to the tail.
    weights: kept tiles of weights, by layer, direction, stage, block and column group.
    """

    work: Work
    array: PeArray
    banks: dict[Place, Bank] = field(default_factory=dict)
    freed: list[int] = field(default_factory=list)
    done: set[Place] = field(default_factory=set)
    weights: dict[tuple[int, int, int, int, int], list[tuple[int, Array]]] = field(default_factory=dict)

    def tile(self, place: Place, group: int, cycle: int) -> None:
        """Execute one tile: multiply, add up in the trees, add to the bank of the row block.

        place: the row block.
        group: the column group of the stage's matrix.
        `ReplayError` if the tile is a repetition, lies outside the matrix, has no free bank or reads too early.
        """
        shape, who = self.work.shape(place), f"{self.work.who}: the tile of {place}, column group {group},"
        units = self.work.units(place)
        bank = self._bank(place, cycle, who) if place not in self.done else Bank([])
        if place in self.done or group in bank.groups:
            raise ReplayError(f"{who} at cycle {cycle} is a repetition: it would be counted twice")
        vector, columns = _columns(shape, group, who)
        elements = np.zeros(
            self.work.core.ep, self.work.arithmetic(place.layer, place.direction).matrix(*_any(shape)).dtype
        )
        elements[: columns.stop - columns.start] = self._elements(place, vector, columns, cycle, who)
        arithmetic = self.work.arithmetic(place.layer, place.direction)
        for part, weights in self._weights(place, group, vector, columns, units):
            sums = self.array.partial_sums(self.array.products(weights, elements))
            self.array.accumulate(bank.sums[part], sums, arithmetic.add)
        bank.groups.add(group)
        bank.last_cycle = cycle

    def _bank(self, place: Place, cycle: int, who: str) -> Bank:
        if place not in self.banks:
            self.freed = [each for each in self.freed if each > cycle]
            held = len(self.banks) + len(self.freed)
            if held >= self.work.core.accumulator_banks:
                raise ReplayError(f"{who} at cycle {cycle} finds no free accumulator bank ({held} are held)")
            arithmetic = self.work.arithmetic(place.layer, place.direction)
            zero = arithmetic.matrix(*_any(self.work.shape(place)))[:0].sum(axis=1)
            parts = max(len(gate.sums) for gate in self.work.shape(place).stage.gates)
            size = (self.array.trees, self.array.registers)
            empty = [np.zeros(size, arithmetic.add(zero, zero).dtype) for _ in range(parts)]
            self.banks[place] = Bank(empty)
        return self.banks[place]

    def _elements(self, place: Place, vector: str, columns: slice, cycle: int, who: str) -> Array:
        """Read elements of a vector at `cycle`; `ReplayError` if they are not visible yet."""
        if vector == "x" and place.layer > 0:
            below = self.work.job.model.layers[place.layer - 1]
            width = below.width("h")
            parts = []
            for direction in range(below.directions):
                low, high = max(columns.start - direction * width, 0), min(columns.stop - direction * width, width)
                if low < high:
                    key = (place.layer - 1, direction, place.step, "h")
                    parts.append(self.work.vectors.read(key, slice(low, high), np.full(high - low, cycle), who))
            return np.concatenate(parts)
        if vector == "h":
            key = (place.layer, place.direction, self.work.before(place), "h")
        else:
            key = (0 if vector == "x" else place.layer, 0 if vector == "x" else place.direction, place.step, vector)
        return self.work.vectors.read(key, columns, np.full(columns.stop - columns.start, cycle), who)

    def _weights(self, place: Place, group: int, vector: str, columns: slice, units: slice) -> list[tuple[int, Array]]:
        """Give the tile of the interleaved matrix, [vp, ep], for each part of the gates that reads the vector."""
        key = (place.layer, place.direction, place.stage, place.block, group)
        if key not in self.weights:
            arithmetic = self.work.arithmetic(place.layer, place.direction)
            gates = self.work.shape(place).stage.gates
            slices: dict[int, Array] = {}
            for number, gate in enumerate(gates):
                part = next(i for i, each in enumerate(gate.sums) if vector in each.vectors)
                matrix = arithmetic.matrix(gate.sums[part].name, vector)[units, columns]
                rows = slices.setdefault(part, np.zeros((self.array.vp, self.array.ep), matrix.dtype))
                rows[number : number + len(matrix) * len(gates) : len(gates), : matrix.shape[1]] = matrix
            self.weights[key] = list(slices.items())
        return self.weights[key]

    def empty(self, place: Place, cycle: int, who: str) -> Bank:
        """Take the sums of a row block that enters the tail at `cycle`; its bank is free when all of it has entered.

        `ReplayError` if sums are missing or have not arrived yet.
        """
        work = self.work
        bank = self.banks.pop(place, None)
        shape = work.shape(place)
        groups = sum(shape.groups(vector) for vector in shape.stage.vectors)
        if bank is None or len(bank.groups) < groups:
            done = 0 if bank is None else len(bank.groups)
            raise ReplayError(f"{who} starts at cycle {cycle} with {done} of {groups} column groups added up")
        ready = bank.last_cycle + work.core.latency.mvm_cycles(work.core.ep)
        if cycle < ready:
            raise ReplayError(f"{who} starts at cycle {cycle}, but its sums arrive at cycle {ready}")
        self.done.add(place)
        self.freed.append(cycle + -(-shape.blocks[place.block] // work.core.tail_width))
        return bank

    def rest(self, cycle: int) -> None:
        """Give up the thread at `cycle`; `ReplayError` if a bank holds anything."""
        held = [*map(str, self.banks), *(f"a row block until {each}" for each in self.freed if each > cycle)]
        if held:
            raise ReplayError(f"{self.work.who} is paused at cycle {cycle}, but a bank holds {held[0]}")


def _any(shape: StageShape) -> tuple[str, str]:
    """Name the first sum and vector of the stage, whose matrix tells the type of its numbers."""
    first = shape.stage.sums[0]
    return first.name, first.vectors[0]


def _columns(shape: StageShape, group: int, who: str) -> tuple[str, slice]:
    """Give the vector and its elements for which a column group of the stage's matrix stands."""
    for vector in shape.stage.vectors:
        first = shape.first_group(vector)
        if first <= group < first + shape.groups(vector):
            start = (group - first) * shape.core.ep
            return vector, slice(start, min(start + shape.core.ep, shape.layer.width(vector)))
    raise ReplayError(f"{who} lies outside the matrix")
