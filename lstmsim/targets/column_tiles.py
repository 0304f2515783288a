"""The array's side of a pass on the column-wise NPU: column groups, what they wait for, and tiles in their order.

An array operation is a run of tiles that wait for the same things (one cycle a tile). A group's elements are waited for
once, by the first row block that reads them: the array is in order, so when a later block or stage reads the same
group it has been visible for long. Results become visible in unit order, so the last unit of a group speaks for the
whole group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lstmsim.program.program import Dependence, Operation
from lstmsim.targets.column_shape import StageShape

__all__ = ["ARRAY", "Group", "Source", "Tiles", "column_groups"]

#: Number of the array among the units of a core.
ARRAY = 0


@dataclass(frozen=True)
class Source:
    """A vector's elements: results `node` of a stage, whose tail operations begin at `first_tail` in their body.

    `lag`, `phase` and `mirrored` are those of the dependence.
    """

    shape: StageShape
    node: str
    first_tail: int
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False

    @cached_property
    def width(self) -> int:
        """Elements that this source gives."""
        return self.shape.layer.width(self.node)

    @cached_property
    def _visible_cycles(self) -> int:
        return self.shape.visible_cycles(self.node)

    def need(self, unit: int) -> tuple[Dependence, int]:
        """The dependence of a tile that reads the result of that unit; and the last unit for which it is the same."""
        block, turn, last = self.shape.turn(unit)
        delay = turn + self._visible_cycles
        return Dependence(self.first_tail + block, delay, "hazard", self.lag, self.phase, self.mirrored), last


class Group(NamedTuple):
    """`length` column groups in a row that wait for the same, from number `first` on; `columns` useful ones in each."""

    columns: int
    needs: tuple[Dependence, ...]
    frame: bool
    first: int
    length: int = 1

    def plain(self) -> Group:
        """The same without waits."""
        return Group(self.columns, (), False, self.first, self.length)


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Equal neighbours in the matrix as one."""
    joined: list[Group] = []
    for group in groups:
        if joined:
            before = joined[-1]
            same = (before.columns, before.needs, before.frame) == (group.columns, group.needs, group.frame)
            if same and before.first + before.length == group.first:
                length = before.length + group.length
                joined[-1] = Group(before.columns, before.needs, before.frame, before.first, length)
                continue
        joined.append(group)
    return joined


def column_groups(shape: StageShape, vector: str, sources: Sequence[Source], frame: bool) -> list[Group]:
    """The column groups of a vector, each waiting for the last unit that it reads of each source."""
    length, ep, index = shape.layer.width(vector), shape.core.ep, shape.first_group(vector)
    if not sources:
        full, rest = divmod(length, ep)
        plain = [Group(ep, (), frame, index, full)] if full else []
        return plain + ([Group(rest, (), frame, index + full)] if rest else [])
    groups: list[Group] = []
    first = 0
    while first < length:
        last = min(first + ep, length) - 1
        needs, offset, same = [], 0, length
        for source in sources:
            if first < offset + source.width and last >= offset:
                need, alike = source.need(min(last - offset, source.width - 1))
                needs.append(need)
                # a group that ends in the same turn of the same source waits for the same
                same = min(same, offset + alike if first >= offset else last)
            offset += source.width
        count = max(1, (min(same, length - 1) + 1 - first) // ep) if last + 1 - first == ep else 1
        groups.append(Group(last + 1 - first, tuple(needs), False, index + first // ep, count))
        first += count * ep
    return _joined(groups)


@dataclass(frozen=True)
class Tiles:
    """The tiles of a stage: its shape, where the pass stands, and its column groups in issue order."""

    shape: StageShape
    place: tuple[int, int]
    groups: tuple[Group, ...]

    def tile(self, block: int, group: Group, **changes: object) -> Operation:
        shape = self.shape
        work = len(shape.stage.gates) * shape.blocks[block] * group.columns
        place = (*self.place, block, group.first, shape.number)
        return Operation(ARRAY, count=group.length, work=work, label="mvm", place=place, **changes)  # type: ignore[arg-type]

    @property
    def total(self) -> int:
        """How many operations the tiles are."""
        blocks = len(self.shape.blocks)
        if self.shape.core.block_order == "column":
            return len(self.by_column()[0])
        return len(self.groups) + (blocks - 1) * len(_joined([group.plain() for group in self.groups]))

    def by_row(self) -> tuple[list[Operation], list[int]]:
        """Row block outer, column group inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        last = []
        later = _joined([group.plain() for group in self.groups])
        for block in range(len(self.shape.blocks)):
            for number, group in enumerate(later if block else self.groups):
                takes = 0 if number == 0 else None
                tiles.append(self.tile(block, group, needs=group.needs, frame=group.frame, takes=takes))
            last.append(len(tiles) - 1)
        return tiles, last

    def by_column(self) -> tuple[list[Operation], list[int]]:
        """Column group outer, row block inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        blocks = range(len(self.shape.blocks))
        singles = [g._replace(length=1, first=g.first + i) for g in self.groups for i in range(g.length)]
        for number, group in enumerate(singles):
            takes = 0 if number == 0 else None
            tiles.append(self.tile(0, group, needs=group.needs, frame=group.frame, takes=takes))
            bare = group.plain()
            if number in (0, len(singles) - 1):
                tiles.extend(self.tile(block, bare, takes=takes) for block in blocks[1:])
                continue
            equal = [block for block in blocks[1:] if self.shape.blocks[block] == self.shape.blocks[0]]
            if equal:
                tiles.append(self.tile(equal[0], bare._replace(length=len(equal))))
            tiles.extend(self.tile(block, bare) for block in blocks[1 + len(equal) :])
        return tiles, list(range(len(tiles) - len(blocks), len(tiles)))
