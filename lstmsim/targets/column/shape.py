"""How a stage of a layer is cut on a core of the column-wise NPU: row blocks, turns in the tail, column groups."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from lstmsim.records import record
from lstmsim.targets.column.npu import ColumnCore
from lstmsim.targets.column.tail import depths
from lstmsim.workload.cell import Stage
from lstmsim.workload.model import Layer

__all__ = ["StageShape", "issue_order", "pass_shapes", "share_of"]


def share_of(units: int, share: int, shares: int) -> int:
    """How many of the units are in a share: as equal as whole units allow, the first shares being the larger ones.

    >>> [share_of(10, share, 4) for share in range(4)]
    [3, 3, 2, 2]
    """
    return units // shares + (share < units % shares)


@record
class StageShape:
    """Stage number `number` of a layer on a core, or share number `share` of its units, of so many `shares`.

    Units and row blocks are counted within the share.

    >>> from lstmsim.workload.cells import cell
    >>> shape = StageShape(Layer(cell("lstm"), 10, 7), ColumnCore(npe=64, ep=4, vp=16), 0)
    >>> shape.blocks, [shape.first_group(vector) for vector in ("x", "h")]
    ((4, 4, 2), [0, 2])
    """

    layer: Layer
    core: ColumnCore
    number: int
    share: int = 0
    shares: int = 1

    @cached_property
    def stage(self) -> Stage:
        """The stage itself."""
        return self.layer.cell.stages[self.number]

    @cached_property
    def units(self) -> int:
        """Units of the share."""
        return share_of(self.layer.units(self.stage.rows), self.share, self.shares)

    @cached_property
    def units_per_block(self) -> int:
        """Units of a full row block."""
        return self.core.units_per_block(self.stage)

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Units of each row block; the last one may be partial."""
        full, rest = divmod(self.units, self.units_per_block)
        return (self.units_per_block,) * full + ((rest,) if rest else ())

    @cached_property
    def depth(self) -> dict[str, int]:
        """Cycles from a unit's turn until each node's value is there."""
        return dict(depths(self.layer.cell, vars(self.core.latency), self.core.tail_width))

    def turn(self, unit: int, width: int) -> tuple[int, int, int]:
        """(row block, turn, last unit of that turn) of a unit, where a block's units take turns, `width` in each."""
        block, place = divmod(unit, self.units_per_block)
        turn = place // width
        return block, turn, block * self.units_per_block + min((turn + 1) * width, self.blocks[block]) - 1

    def visible_cycles(self, node: str) -> int:
        """From a unit's turn until the node's value can be streamed; at least 1, nothing is visible as it starts."""
        return max(1, self.depth[node] + self.core.latency.writeback)

    def groups(self, vector: str) -> int:
        """Column groups of a vector; each vector is padded to whole groups."""
        return -(-self.layer.width(vector) // self.core.ep)

    def first_group(self, vector: str) -> int:
        """Number of the vector's first column group in the stage's matrix."""
        before = self.stage.vectors[: self.stage.vectors.index(vector)]
        return sum(self.groups(each) for each in before)

    def homes(self, vector: str) -> str:
        """The node whose results a vector other than x is made of."""
        return self.layer.cell.output if vector == "h" else vector


def pass_shapes(layer: Layer, core: ColumnCore, share: int = 0, shares: int = 1) -> tuple[StageShape, ...]:
    """The stages of a layer, or of a share of its units, on a core."""
    return tuple(StageShape(layer, core, number, share, shares) for number in range(len(layer.cell.stages)))


def issue_order(stage: Stage, x_last: bool) -> Iterator[str]:
    """The stage's vectors in the order in which their columns issue: what is ready later comes last.

    >>> from lstmsim.workload.cells import cell
    >>> list(issue_order(cell("lstm").stages[0], x_last=True))
    ['h', 'x']
    """
    yield from sorted(stage.vectors, key=lambda name: {"x": int(x_last), "h": int(not x_last)}.get(name, 2))
