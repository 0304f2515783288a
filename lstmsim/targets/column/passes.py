"""One step of one pass (a layer in one direction) as operations of the column-wise NPU, on one core or on several.

Tiles are in `lstmsim.targets.column.tiles`, what follows them in `lstmsim.targets.column.turns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import product

from lstmsim.program.program import Operation
from lstmsim.records import record
from lstmsim.targets.column.npu import ColumnCore, Exchange
from lstmsim.targets.column.shape import StageShape, issue_order, pass_shapes
from lstmsim.targets.column.tiles import ARRAY, Group, Home, Read, Share, Source, Tiles, column_groups
from lstmsim.targets.column.turns import EXCHANGE, TAIL, Turns
from lstmsim.workload.model import Layer
from lstmsim.workload.segments import Segment, segment_of, segments, segments_by_stage

__all__ = ["ARRAY", "EXCHANGE", "TAIL", "WHOLE", "Source", "Spread", "pass_operations"]

#: Where in the body the operations of each segment begin: by share, stage, segment and unit (tail or exchange).
Homes = Mapping[tuple[int, int, int, int], Home]

#: A stage of a share: number of the stage, number of the share, the tiles.
_Part = tuple[int, int, Tiles]


@record
class Spread:
    """The members of a task over which a pass is spread.

    members: for each share of the pass's units, the member that has it.
    cores: for each share, the number of its member's core among the task's cores.
    readers: the cores on which the layer above reads h.
    exchange: the links between cores.

    >>> Spread((0, 1), (0, 1)).sends_to(0, ["h"]), Spread().sends_to(0, ["h"])
    (True, False)
    """

    members: tuple[int, ...] = (0,)
    cores: tuple[int, ...] = (0,)
    readers: tuple[int, ...] = ()
    exchange: Exchange = field(default_factory=Exchange)

    def sends_to(self, share: int, readers: Sequence[str]) -> bool:
        """Tell whether another core reads a share of a vector.

        share: number of the share.
        readers: readers of the vector: `h` (the pass itself), `above` (the layer above).
        """
        cores = {*(self.cores if "h" in readers else ()), *(self.readers if "above" in readers else ())}
        return bool(cores - {self.cores[share]})


#: A pass on one core.
WHOLE = Spread()


@record
class _Pass:
    """One step of a pass.

    shapes: for each share, the shapes of its stages.
    place: (layer, direction).
    x: the sources of x; empty: x is an input frame.
    x_last: whether x is ready later than h.
    spread: the members of the pass.
    homes: where in the body the operations of each segment begin.
    """

    shapes: tuple[tuple[StageShape, ...], ...]
    place: tuple[int, int]
    x: tuple[Source, ...]
    x_last: bool
    spread: Spread
    homes: Homes

    @property
    def layer(self) -> Layer:
        return self.shapes[0][0].layer

    def settle(self, base: int, parts: Sequence[_Part]) -> None:
        """Find the homes: segments follow the tiles of their part; the pass begins at `base`."""
        for stage, share, tiles in parts:
            base += tiles.total
            blocks = len(tiles.shape.blocks)
            for segment in self._segments(stage):
                self.homes[share, stage, segment.index, TAIL].first = base
                self.homes[share, stage, segment.index, EXCHANGE].first = base + blocks
                base += blocks * (1 + len(self._sent(share, segment)))

    def operations(self, base: int, parts: Sequence[_Part]) -> list[Operation]:
        """List the operations: stage after stage, share after share, first tiles, then tails, then exchanges."""
        operations: list[Operation] = []
        for stage, share, tiles in parts:
            issued, last = tiles.by_row() if tiles.shape.core.block_order == "row" else tiles.by_column()
            ends = [base + len(operations) + each for each in last]
            operations += issued
            turns = self._turns[share]
            for segment in self._segments(stage):
                operations += turns.tails(segment, ends)
                operations += turns.sends(segment, self._sent(share, segment), self.spread.exchange)
        return operations

    def source(self, node: str, lag: int = 0) -> Source:
        """Give the results of a node of the pass as a source; `lag`: how many steps before the reading step."""
        if (node, lag) not in self._sources:
            if node not in self._shares:
                self._shares[node] = tuple([self._share(share, node) for share in range(len(self.shapes))])
            self._sources[node, lag] = Source(self._shares[node], lag)
        return self._sources[node, lag]

    @cached_property
    def _sources(self) -> dict[tuple[str, int], Source]:
        return {}

    @cached_property
    def _shares(self) -> dict[str, tuple[Share, ...]]:
        return {}

    def _segments(self, stage: int) -> tuple[Segment, ...]:
        return segments_by_stage(self.layer.cell)[stage]

    @cached_property
    def _turns(self) -> list[Turns]:
        turns = []
        for share, shapes in enumerate(self.shapes):
            tails = {(s, i): home for (own, s, i, unit), home in self.homes.items() if own == share and unit == TAIL}
            turns.append(Turns(shapes, self.place, tails, self.spread.members[share]))
        return turns

    def parts(self) -> Iterator[_Part]:
        """Yield each stage, share, and its tiles: all shares of a stage before the next stage reads their results."""
        waited: list[set[str]] = [set() for _ in self.shapes]
        for stage in range(len(self.layer.cell.stages)):
            for share, shapes in enumerate(self.shapes):
                shape = shapes[stage]
                vectors = issue_order(shape.stage, self.x_last)
                groups = [each for vector in vectors for each in self._waits(share, shape, vector, waited[share])]
                yield stage, share, Tiles.of(shape, self.place, groups, self.spread.members[share])

    def _waits(self, share: int, shape: StageShape, vector: str, waited: set[str]) -> list[Group]:
        """Give the column groups of a vector; they wait only for elements that the step reads for the first time."""
        if vector in waited:
            return column_groups(shape, vector, (), frame=False)
        waited.add(vector)
        sources = self.x if vector == "x" else (self.source(shape.homes(vector), lag=int(vector == "h")),)
        reads = [read for source in sources for read in source.read_on(self.spread.cores[share])]
        return column_groups(shape, vector, reads, frame=not sources)

    def _share(self, share: int, node: str) -> Share:
        """Give the part of a vector that one member computes."""
        stage, index = segment_of(self.layer.cell, node)
        shape = self.shapes[share][stage]
        nodes, sent = self._sent(share, self._segments(stage)[index]), None
        if node in nodes:
            home = self.homes[share, stage, index, EXCHANGE]
            exchange = self.spread.exchange
            rate = exchange.rate(shape.core.tail_width)
            sent = Read(shape, home, nodes.index(node), len(nodes), rate, exchange.visible_cycles)
        return Share(shape, node, self.spread.cores[share], self.homes[share, stage, index, TAIL], sent)

    def _sent(self, share: int, segment: Segment) -> list[str]:
        """Name the results of a segment that other cores read, in the order in which they are ready, then by name."""
        if len({*self.spread.cores, *self.spread.readers}) == 1:
            return []
        shape = self.shapes[share][segment.stage]
        names = [each.name for each in segment.nodes if self.spread.sends_to(share, self._readers(each.name))]
        return sorted(names, key=lambda name: (shape.visible_cycles(name), name))

    def _readers(self, node: str) -> list[str]:
        """Name the readers of a node as a vector: a product of the pass itself (`h`), the layer above (`above`)."""
        cell = self.layer.cell
        vectors = {vector for stage in cell.stages for vector in stage.vectors}
        own = node in vectors or (node == cell.output and "h" in vectors)
        return ["h"] * own + ["above"] * (node == cell.output)


def pass_operations(
    layer: Layer,
    core: ColumnCore,
    place: tuple[int, int],
    x: Sequence[Source],
    base: int,
    x_last: bool,
    spread: Spread = WHOLE,
) -> tuple[list[Operation], Source]:
    """Make the operations of one step of a pass, and give its h as a source.

    place: (layer, direction).
    x: the sources of x; empty: x is an input frame.
    base: number of operations that stand before the pass in the body.
    x_last: whether the columns of x issue after those of h.
    spread: the members of the pass.

    Where the tails of the pass stand in the body depends on the number of its tiles. So the tiles are counted before
    they are made.
    """
    shares = len(spread.members)
    shapes = tuple(pass_shapes(layer, core, share, shares) for share in range(shares))
    order = product(range(shares), segments(layer.cell), (TAIL, EXCHANGE))
    homes = {(share, each.stage, each.index, unit): Home() for share, each, unit in order}
    one = _Pass(shapes, place, tuple(x), x_last, spread, homes)
    parts = list(one.parts())
    one.settle(base, parts)
    return one.operations(base, parts), one.source(layer.cell.output)
