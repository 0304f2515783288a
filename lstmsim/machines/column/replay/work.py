"""One member of a job under way: its share of the model, its tiles in accumulator banks, its turns in the tail.

Its array has adder trees with configurable tails, and each product goes through its adders. A tree of `tree_inputs`
leaves serves `tree_inputs / ep` rows at once: their products leave it after log2(ep) levels. The adders of the levels
above have nothing to add then, and hold the running sums. Source: column-wise LSTM patent, configurable adder-tree
tail (CAT).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.phases import layer_runs
from lstmsim.machines.column.replay.delta import Differences
from lstmsim.machines.column.shape import StageShape, begins, pass_shapes, share_of
from lstmsim.machines.structural import Memory
from lstmsim.model.cell import Node, Segment, kinds, segments
from lstmsim.model.model import Model
from lstmsim.model.numerics.arithmetic import Arithmetic, Array
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Job


def tree_levels(leaves: int) -> tuple[int, ...]:
    """Count the adders of each level of a tree, from the leaves to the root. An odd value passes to the next level."""
    levels = []
    while leaves > 1:
        levels.append(leaves // 2)
        leaves -= leaves // 2
    return tuple(levels)


@dataclass(frozen=True)
class PeArray:
    """Rows of multipliers under adder trees with configurable tails.

    A tree is built of equal plain trees, as many as the configurable tail can serve. Its last levels join the plain
    trees pair by pair.

    >>> array = PeArray(ep=2, vp=6, tree_inputs=8, cat=4)
    >>> array.rows_per_tree, array.trees, array.levels, array.accumulators
    (4, 2, (4, 2, 1), ((3, 0), (1, 0), (1, 1), (2, 0)))
    """

    ep: int  # multipliers of a row
    vp: int  # rows
    tree_inputs: int | None = None  # leaves of each tree; None: `ep`
    cat: int = 1  # rows that a configurable tail can serve at most

    @property
    def leaves(self) -> int:
        return self.ep if self.tree_inputs is None else self.tree_inputs

    @property
    def rows_per_tree(self) -> int:
        """Number of rows that one tree serves at once."""
        return self.leaves // self.ep

    @property
    def trees(self) -> int:
        return -(-self.vp // self.rows_per_tree)

    @cached_property
    def plain_trees(self) -> int:
        """Number of plain trees in one tree, a power of two: the most rows that the tree can be set to serve."""
        return min(self.cat, self.leaves & -self.leaves)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Number of adders of each level of one tree, from the leaves to the root."""
        plain = tuple(self.plain_trees * each for each in tree_levels(self.leaves // self.plain_trees))
        return plain + tree_levels(self.plain_trees)

    @property
    def registers(self) -> int:
        """Registers of one tree that can hold a running sum: one for each adder, and the accumulator at the root."""
        return sum(self.levels) + 1

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """For each row of a tree the register of its running sum; registers are numbered level by level."""
        first = np.concatenate([[0], np.cumsum(self.levels)]).astype(np.int64)
        return np.array([first[level] + adder for level, adder in self.accumulators], dtype=np.int64)

    @cached_property
    def accumulators(self) -> tuple[tuple[int, int], ...]:
        """For each row of a tree the place of its running sum, as (level, adder).

        The places are the root's accumulator, then adders of the configurable levels above the level on which the
        rows' own sums are complete. `ReplayError` if a tree has too few places for its rows.
        """
        joined = self.plain_trees // self.rows_per_tree if self.plain_trees % self.rows_per_tree == 0 else 0
        first = len(self.levels) - len(tree_levels(self.plain_trees)) + len(tree_levels(joined or self.plain_trees))
        free = [(level, each) for level in range(first, len(self.levels)) for each in range(self.levels[level])]
        places = ((len(self.levels), 0), *free)
        if self.leaves % self.ep or len(places) < self.rows_per_tree:
            raise ReplayError(f"CAT-{self.cat} on {self.leaves} leaves has no room for {self.rows_per_tree} sums")
        return places[: self.rows_per_tree]

    def products(self, weights: Array, elements: Array) -> Array:
        """Multiply weights [vp, ep] by elements [ep].

        The products have the shape [trees, leaves]; products of unused rows are 0.
        """
        rows = np.zeros((self.trees * self.rows_per_tree, self.ep), np.result_type(weights, elements))
        np.multiply(weights, elements, out=rows[: self.vp])
        return rows.reshape(self.trees, self.leaves)

    def partial_sums(self, products: Array) -> Array:
        """Sum up the products of each row, pair by pair through its own levels: [trees, rows of a tree]."""
        plain = self.leaves // self.plain_trees
        values = _summed(products.reshape(self.trees, self.plain_trees, plain))
        return _summed(values.reshape(self.trees, self.rows_per_tree, -1))

    def accumulate(self, held: Array, sums: Array, add: Callable[[Array, Array], Array]) -> None:
        held[:, self.places] = add(held[:, self.places], sums)

    def rows(self, held: Array) -> Array:
        """Give the running sums by row, [vp]."""
        return held[:, self.places].reshape(-1)[: self.vp]


def _summed(values: Array) -> Array:
    """Sum up over the last axis, level by level through a plain tree."""
    for adders in tree_levels(values.shape[-1]):
        odd = values[..., 2 * adders :]
        values = np.concatenate([values[..., 0 : 2 * adders : 2] + values[..., 1 : 2 * adders : 2], odd], axis=-1)
    return values[..., 0]


@dataclass(frozen=True)
class Cut:
    """A model that is cut over members."""

    model: Model
    split: str  # as in `Job`; empty: there is one member
    cores: tuple[int, ...]  # number of the core of each member

    def share(self, member: int) -> tuple[int, int]:
        """Give the number of a member's share of its layers, and how many shares there are."""
        return (member, len(self.cores)) if self.split == "rows" else (0, 1)

    def units(self, member: int, width: int) -> slice:
        """Give the units of a member; `width`: units of all members."""
        share, shares = self.share(member)
        start = sum(share_of(width, each, shares) for each in range(share))
        return slice(start, start + share_of(width, share, shares))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """For each layer the members that have units of it."""
        if self.split != "layers":
            return (tuple(range(len(self.cores))),) * len(self.model.layers)
        runs = layer_runs(self.model, len(self.cores))
        return tuple((member,) for member, run in enumerate(runs) for _ in run)

    def receivers(self, layer: int, node: str) -> frozenset[int]:
        """Give the cores on which products of the layer itself or of the layer above read a node's results."""
        cell = self.model.layers[layer].cell
        vectors = {vector for stage in cell.stages for vector in stage.vectors}
        members: set[int] = set()
        if node in vectors or (node == cell.output and "h" in vectors):
            members.update(self.members[layer])
        if node == cell.output and layer + 1 < len(self.model.layers):
            members.update(self.members[layer + 1])
        return frozenset(self.cores[each] for each in members)


@dataclass(frozen=True)
class Place:
    """A row block of a job: numbers of its layer, direction, time step, stage, and of the block in the stage."""

    layer: int
    direction: int
    step: int
    stage: int
    block: int

    def __str__(self) -> str:
        way = " backward" if self.direction else ""
        stage = f" stage {self.stage}" if self.stage else ""
        return f"layer {self.layer}{way} step {self.step}{stage} row block {self.block}"


@dataclass(eq=False)
class Bank:
    """Running sums of one row block."""

    # for each part of the gates, the registers of the trees [trees, registers]; where a gate keeps two sums apart (the
    # GRU's candidate), the block has two parts
    sums: list[Array]
    groups: set[int] = field(default_factory=set)  # the column groups added so far
    last_cycle: int = -1  # cycle of the last tile


@dataclass(eq=False)
class Member:
    """A member of a job on its core: its tiles on the array, its row blocks in the tail unit."""

    job: Job
    core: ColumnCore
    numbers: JobNumbers  # weights, frames and arithmetic of the job
    cut: Cut  # the cut of the job over its members
    member: int  # number of the member
    array: PeArray  # structure of the array
    vectors: Memory  # vectors that can be streamed on the core, by (layer, direction, step, name)
    # values that the tail unit keeps, by the same keys. States before the first step have step -1
    tail: Memory = field(default_factory=Memory)
    banks: dict[Place, Bank] = field(default_factory=dict)  # the banks that hold sums, by row block
    freed: list[int] = field(default_factory=list)  # cycles at which banks that have been emptied are free again
    done: set[Place] = field(default_factory=set)  # row blocks whose sums have gone to the tail
    # kept tiles of weights, by layer, direction, stage, block and column group
    weights: dict[tuple[int, int, int, int, int], list[tuple[int, Array]]] = field(default_factory=dict)
    delta: Differences | None = None  # what is kept from step to step, where columns are skipped

    @property
    def who(self) -> str:
        return f"job {self.job.name}" + (f" member {self.member}" if self.cut.split else "")

    def arithmetic(self, place: Place) -> Arithmetic:
        return self.numbers.arithmetic[place.layer][place.direction]

    def shape(self, place: Place) -> StageShape:
        """Give the shape of the member's share of the place's stage."""
        return self._shapes[place.layer][place.stage]

    @cached_property
    def _shapes(self) -> tuple[tuple[StageShape, ...], ...]:
        share = self.cut.share(self.member)
        return tuple(pass_shapes(layer, self.core, *share) for layer in self.job.model.layers)

    def turns(self, place: Place) -> int:
        """Count the cycles that a segment of the place's row block takes in the tail unit."""
        units = self.units(place)
        taken: int = -(-(units.stop - units.start) // self.core.tail_width)
        return taken

    def before(self, place: Place) -> int:
        """Give the step whose h and states the place's step reads; -1: it reads the initial states."""
        backward = self.job.model.layers[place.layer].backward(place.direction)
        step = place.step + 1 if backward else place.step - 1
        return step if 0 <= step < self.job.steps else -1

    def units(self, place: Place) -> slice:
        """Give the units of the place's row block; `ReplayError` if the member has no such block."""
        shape = self.shape(place)
        if not 0 <= place.block < len(shape.blocks) or self.member not in self.cut.members[place.layer]:
            raise ReplayError(f"{self.who} has no {place}")
        own = self.cut.units(self.member, shape.layer.units(shape.stage.rows))
        start = own.start + place.block * shape.units_per_block
        return slice(start, start + shape.blocks[place.block])

    def forget(self, place: Place) -> None:
        """Drop the values of the step before the place's step: nothing reads them once that step is complete."""
        key = (place.layer, place.direction, self.before(place))
        cell = self.job.model.layers[place.layer].cell
        for name in (*[each.name for each in cell.nodes], *[each.name for each in cell.sums], *cell.states):
            self.tail.held.pop((*key, name), None)
            if name != "h":
                self.vectors.held.pop((*key, name), None)

    def tile(self, place: Place, group: int, cycle: int) -> None:
        """Execute one tile: multiply, add up in the trees, add to the bank of the row block."""
        shape, who = self.shape(place), f"{self.who}: the tile of {place}, column group {group},"
        units = self.units(place)
        bank = self._bank(place, cycle, who) if place not in self.done else Bank([])
        if place in self.done or group in bank.groups:
            raise ReplayError(f"{who} at cycle {cycle} is a repetition: it would be counted twice")
        vector, columns = _columns(shape, group, who)
        arithmetic = self.arithmetic(place)
        elements = np.zeros(self.core.ep, arithmetic.matrix(*_any(shape)).dtype)
        elements[: columns.stop - columns.start] = self._streamed(place, vector, columns, cycle, who)
        for part, weights in self._weights(place, group, vector, columns, units):
            sums = self.array.partial_sums(self.array.products(weights, elements))
            self.array.accumulate(bank.sums[part], sums, arithmetic.add)
        bank.groups.add(group)
        bank.last_cycle = cycle

    def _bank(self, place: Place, cycle: int, who: str) -> Bank:
        if place not in self.banks:
            self.freed = [each for each in self.freed if each > cycle]
            held = len(self.banks) + len(self.freed)
            if held >= self.core.accumulator_banks:
                raise ReplayError(f"{who} at cycle {cycle} finds no free accumulator bank ({held} are held)")
            arithmetic = self.arithmetic(place)
            zero = arithmetic.matrix(*_any(self.shape(place)))[:0].sum(axis=1)
            parts = max(len(gate.sums) for gate in self.shape(place).stage.gates)
            size = (self.array.trees, self.array.registers)
            empty = [np.zeros(size, arithmetic.add(zero, zero).dtype) for _ in range(parts)]
            self.banks[place] = Bank(self.delta.begun(place.layer, place.block, empty) if self.delta else empty)
        return self.banks[place]

    def _streamed(self, place: Place, vector: str, columns: slice, cycle: int, who: str) -> Array:
        """What the multipliers take of a vector at `cycle`: its elements, or their changes."""
        if not self.delta:
            return self._elements(place, vector, columns, cycle, who)
        # states before the first step need no comparison
        late = 0 if vector == "h" and self.before(place) < 0 else self.core.delta_cycles
        values = self._elements(place, vector, columns, cycle - late, who)
        width = self.shape(place).layer.width(vector)
        return self.delta.of(place.layer, place.step, vector, columns, values, width)

    def _elements(self, place: Place, vector: str, columns: slice, cycle: int, who: str) -> Array:
        """Read elements of a vector at `cycle`; `ReplayError` if they are not visible yet."""
        if vector == "x" and place.layer > 0:
            below = self.job.model.layers[place.layer - 1]
            width = below.width("h")
            parts = []
            for direction in range(below.directions):
                low, high = max(columns.start - direction * width, 0), min(columns.stop - direction * width, width)
                if low < high:
                    key = (place.layer - 1, direction, place.step, "h")
                    parts.append(self.vectors.read(key, slice(low, high), np.full(high - low, cycle), who))
            return np.concatenate(parts)
        if vector == "h":
            key = (place.layer, place.direction, self.before(place), "h")
        else:
            key = (0 if vector == "x" else place.layer, 0 if vector == "x" else place.direction, place.step, vector)
        return self.vectors.read(key, columns, np.full(columns.stop - columns.start, cycle), who)

    def _weights(self, place: Place, group: int, vector: str, columns: slice, units: slice) -> list[tuple[int, Array]]:
        """Give the tile of the interleaved matrix, [vp, ep], for each part of the gates that reads the vector."""
        key = (place.layer, place.direction, place.stage, place.block, group)
        if key not in self.weights:
            arithmetic = self.arithmetic(place)
            gates = self.shape(place).stage.gates
            slices: dict[int, Array] = {}
            for number, gate in enumerate(gates):
                part = next(i for i, each in enumerate(gate.sums) if vector in each.vectors)
                matrix = arithmetic.matrix(gate.sums[part].name, vector)[units, columns]
                rows = slices.setdefault(part, np.zeros((self.array.vp, self.array.ep), matrix.dtype))
                rows[number : number + len(matrix) * len(gates) : len(gates), : matrix.shape[1]] = matrix
            self.weights[key] = list(slices.items())
        return self.weights[key]

    def empty(self, place: Place, cycle: int, who: str) -> Bank:
        """Take the sums of a row block that enters the tail at `cycle`; its bank is free when all of it has entered."""
        bank = self.banks.pop(place, None)
        shape = self.shape(place)
        groups = sum(shape.groups(vector) for vector in shape.stage.vectors)
        if bank and self.delta:
            self._check_sent(place, bank, cycle, who)
        elif bank is None or len(bank.groups) < groups:
            done = 0 if bank is None else len(bank.groups)
            raise ReplayError(f"{who} starts at cycle {cycle} with {done} of {groups} column groups added up")
        ready = bank.last_cycle + self.core.latency.mvm_cycles(self.core.ep)
        if cycle < ready:
            raise ReplayError(f"{who} starts at cycle {cycle}, but its sums arrive at cycle {ready}")
        self.done.add(place)
        self.freed.append(cycle + -(-shape.blocks[place.block] // self.core.tail_width))
        return bank

    def _check_sent(self, place: Place, bank: Bank, cycle: int, who: str) -> None:
        """`ReplayError` unless a bank has the column groups that its step sends."""
        assert self.delta is not None
        shape = self.shape(place)

        def read(vector: str) -> Array:
            return self._elements(place, vector, slice(0, shape.layer.width(vector)), cycle, who)

        self.delta.check(shape, place.layer, place.step, bank.groups, read, self.arithmetic(place), who)

    def rest(self, cycle: int) -> None:
        """Give up the thread at `cycle`; `ReplayError` if a bank holds anything."""
        held = [*map(str, self.banks), *(f"a row block until {each}" for each in self.freed if each > cycle)]
        if held:
            raise ReplayError(f"{self.who} is paused at cycle {cycle}, but a bank holds {held[0]}")

    def finish(self, place: Place, index: int, cycle: int) -> None:
        """Execute one segment of a row block; the first unit has its turn at `cycle`."""
        layer = self.job.model.layers[place.layer]
        key = (place.stage, index)
        segment = next((each for each in segments(layer.cell) if (each.stage, each.index) == key), None)
        who = f"{self.who}: the tail of {place}{f' part {index}' if index else ''}"
        if segment is None:
            raise ReplayError(f"{who} does not exist")
        units = self.units(place)
        turns = cycle + np.arange(units.stop - units.start, dtype=np.int64) // self.core.tail_width
        if index == 0:
            self._adapt(place, units, cycle, who)
        values: dict[str, Array] = {}
        for node in segment.nodes:
            self._compute(place, segment, node, values, units, turns, who)
        if place.block == len(self.shape(place).blocks) - 1:
            if segment.reductions:
                self._reduce(place, segment, int(turns[-1]), who)
            if segment == segments(layer.cell)[-1]:
                self.forget(place)

    def _adapt(self, place: Place, units: slice, cycle: int, who: str) -> None:
        """Move the block's sums from their bank through the adapter to the tail."""
        bank = self.empty(place, cycle, who)
        shape, count = self.shape(place), units.stop - units.start
        arithmetic, gates = self.arithmetic(place), shape.stage.gates
        for number, gate in enumerate(gates):
            for part, each in enumerate(gate.sums):
                held = self.array.rows(bank.sums[part])
                rows = held[number : number + count * len(gates) : len(gates)]
                name = (place.layer, place.direction, place.step, each.name)
                since = np.full(count, cycle, np.int64)
                adapted = arithmetic.adapt(each.name, rows, units)
                self.tail.write(name, units, adapted, since, shape.layer.units(shape.stage.rows))

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
        shape = self.shape(place)
        at = turns + begins(node, shape.depth, segment)
        for name in node.sources:
            if name not in values and name not in shape.layer.cell.parameters:
                values[name] = self._value(place, name, units, at, who)
        values[node.name] = self.arithmetic(place).compute(node, values, units)
        key, width = (place.layer, place.direction, place.step), shape.layer.width(node.name)
        self.tail.write((*key, node.name), units, values[node.name], turns + shape.depth[node.name], width)
        for state, target in shape.layer.cell.states.items():
            if target == node.name and state != node.name:
                self.tail.write((*key, state), units, values[node.name], turns + shape.depth[node.name], width)
        if node.operation == "quantize":
            name = "h" if node.name == shape.layer.cell.output else node.name
            self.vectors.write((*key, name), units, values[node.name], turns + shape.visible_cycles(node.name), width)

    def _value(self, place: Place, name: str, units: slice, at: NDArray[np.int64], who: str) -> Array:
        """Read a sum, a state, or the value of an earlier node, for use at the cycles `at`."""
        layer = self.job.model.layers[place.layer]
        step = self.before(place) if name in layer.cell.states else place.step
        wanted = slice(0, 1) if kinds(layer.cell)[name] == "scalar" else units
        cycles = at[:1] if wanted.stop - wanted.start == 1 else at
        return self.tail.read((place.layer, place.direction, step, name), wanted, cycles, who)

    def _reduce(self, place: Place, segment: Segment, last_turn: int, who: str) -> None:
        """Compute the reductions over all units, and the scalars made of them, after the last unit's turn."""
        shape = self.shape(place)
        arithmetic = self.arithmetic(place)
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
            self.tail.write((*key, node.name), slice(0, 1), result, since, 1)


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
