"""One step of one pass (a layer in one direction) as operations of the column-wise NPU, on one core or on several.

Tiles are in `lstmsim.machines.column.tiles`, what follows them in `lstmsim.machines.column.turns`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import field

from lstmsim.base.records import record
from lstmsim.machines.column.npu import ColumnCore, Exchange
from lstmsim.machines.column.shape import StageShape, issue_order, pass_shapes
from lstmsim.machines.column.tiles import ARRAY, Group, Read, Share, Source, Tiles, column_groups
from lstmsim.machines.column.turns import EXCHANGE, TAIL, Homes, Turns
from lstmsim.model.model import Layer
from lstmsim.model.segments import Segment, segment_of, segments_by_stage
from lstmsim.program.body_writer import BodyWriter, Home

__all__ = ["ARRAY", "EXCHANGE", "TAIL", "WHOLE", "Source", "Spread", "write_pass"]


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


class _Pass:
    """One step of a pass.

    layer: the layer.
    place: (layer, direction).
    x: the sources of x; empty: x is an input frame.
    x_last: whether x is ready later than h.
    spread: the members of the pass.
    shapes: for each share of its units, the shapes of the stages.
    homes: for each share, where in the body the operations of each segment begin.
    """

    def __init__(
        self, layer: Layer, core: ColumnCore, place: tuple[int, int], x: Sequence[Source], x_last: bool, spread: Spread
    ) -> None:
        self.layer, self.place, self.x, self.x_last, self.spread = layer, place, x, x_last, spread
        shares = len(spread.members)
        self.shapes = [pass_shapes(layer, core, share, shares) for share in range(shares)]
        self.homes: list[Homes] = [defaultdict(Home) for _ in self.shapes]
        self._sources: dict[tuple[str, int], Source] = {}
        self._shares: dict[str, tuple[Share, ...]] = {}

    def write(self, rows: BodyWriter) -> None:
        """Write the operations: stage after stage, share after share, first tiles, then tails, then exchanges."""
        waited: list[set[str]] = [set() for _ in self.shapes]
        turns = [
            Turns(shapes, self.place, homes, member)
            for shapes, homes, member in zip(self.shapes, self.homes, self.spread.members, strict=True)
        ]
        for stage, segments in enumerate(segments_by_stage(self.layer.cell)):
            for share, shapes in enumerate(self.shapes):
                shape = shapes[stage]
                vectors = issue_order(shape.stage, self.x_last)
                groups = [each for vector in vectors for each in self._waits(share, shape, vector, waited[share])]
                ends = Tiles.of(shape, self.place, groups, self.spread.members[share]).write(rows)
                for segment in segments:
                    turns[share].tails(rows, segment, ends)
                    sent = self._sent(share, segment)
                    if sent:
                        turns[share].sends(rows, segment, sent, self.spread.exchange)

    def source(self, node: str, lag: int = 0) -> Source:
        """Give the results of a node of the pass as a source; `lag`: how many steps before the reading step."""
        if (node, lag) not in self._sources:
            if node not in self._shares:
                self._shares[node] = tuple([self._share(share, node) for share in range(len(self.shapes))])
            self._sources[node, lag] = Source(self._shares[node], lag)
        return self._sources[node, lag]

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
        nodes, sent = self._sent(share, segments_by_stage(self.layer.cell)[stage][index]), None
        if node in nodes:
            home = self.homes[share][stage, index, EXCHANGE]
            exchange = self.spread.exchange
            rate = exchange.rate(shape.core.tail_width)
            sent = Read(shape, home, nodes.index(node), len(nodes), rate, exchange.visible_cycles)
        return Share(shape, node, self.spread.cores[share], self.homes[share][stage, index, TAIL], sent)

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


def write_pass(
    rows: BodyWriter,
    layer: Layer,
    core: ColumnCore,
    place: tuple[int, int],
    x: Sequence[Source],
    x_last: bool,
    spread: Spread = WHOLE,
) -> Source:
    """Write the operations of one step of a pass, and give its h as a source.

    rows: the body, to which the pass is added.
    place: (layer, direction).
    x: the sources of x; empty: x is an input frame.
    x_last: whether the columns of x issue after those of h.
    spread: the members of the pass.
    """
    one = _Pass(layer, core, place, x, x_last, spread)
    one.write(rows)
    return one.source(layer.cell.output)
