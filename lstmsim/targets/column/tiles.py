"""The array's part of a pass on the column-wise NPU: column groups, what they wait for, and tiles in their order.

An array operation is a run of tiles that wait for the same things; each tile takes one cycle. Only the first row block
that reads a group waits for its elements. The array is in order, so the group is visible long before a later block or
stage reads it. Results become visible in the order of units, so a tile waits for the last unit of its group only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from lstmsim.program.program import Dependence, Operation
from lstmsim.records import record
from lstmsim.targets.column.shape import StageShape

__all__ = ["ARRAY", "Group", "Read", "Share", "Source", "Tiles", "column_groups"]

#: Number of the array among the units of a core.
ARRAY = 0


class Read(NamedTuple):
    """Elements as tiles read them: the units of a share become visible as operations give them, one for each row block.

    The first of these operations is `first` in its body, the next ones follow `stride` apart. `width` units come in
    each cycle, the first ones `cycles` after the operation's start. `lag`, `phase` and `mirrored` are those of the
    dependence.
    """

    shape: StageShape
    first: int
    stride: int
    width: int
    cycles: int
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False

    def need(self, unit: int) -> tuple[Dependence, int]:
        """The dependence of a tile that reads the result of that unit; and the last unit for which it is the same."""
        block, turn, last = self.shape.turn(unit, self.width)
        first, delay = self.first + block * self.stride, turn + self.cycles
        return Dependence(first, delay, "hazard", self.lag, self.phase, self.mirrored), last


@record
class Share:
    """The part of a vector that one member gives.

    shape: the member's share of a stage.
    node: name of the results.
    core: which of the task's cores the member is on; there the results are visible as the tail gives them.
    first_tail: place in the body of the first tail operation that gives them.
    sent: the results as other cores see them, behind the exchange unit; None if no other core reads them.
    """

    shape: StageShape
    node: str
    core: int
    first_tail: int
    sent: Read | None = None

    def read_on(self, core: int) -> Read:
        """The elements as they are seen on one of the task's cores."""
        if core != self.core:
            assert self.sent is not None, "what others read is sent"
            return self.sent
        tail_width = self.shape.core.tail_width
        return Read(self.shape, self.first_tail, 1, tail_width, self.shape.visible_cycles(self.node))


@record
class Source:
    """The elements of a vector, share by share. `lag`, `phase` and `mirrored` are those of dependences on them."""

    shares: tuple[Share, ...]
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False

    def read_on(self, core: int) -> list[Read]:
        """The elements as they are seen on one of the task's cores."""
        return [
            self._changed(share.read_on(core)) if share.core == core or sent is None else sent
            for share, sent in zip(self.shares, self._sent, strict=True)
        ]

    @cached_property
    def _sent(self) -> list[Read | None]:
        """What others see, made once for all of them."""
        return [None if share.sent is None else self._changed(share.sent) for share in self.shares]

    def _changed(self, read: Read) -> Read:
        return read._replace(lag=self.lag, phase=self.phase, mirrored=self.mirrored)


class Group(NamedTuple):
    """Some column groups in a row that wait for the same things.

    columns: useful columns of each group.
    needs, frame: what they wait for.
    first: number of the first group.
    length: how many groups.
    """

    columns: int
    needs: tuple[Dependence, ...]
    frame: bool
    first: int
    length: int = 1

    def plain(self) -> Group:
        """The same groups without waits."""
        return Group(self.columns, (), False, self.first, self.length)


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Join groups that are neighbours in the matrix and equal."""
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


def column_groups(shape: StageShape, vector: str, parts: Sequence[Read], frame: bool) -> list[Group]:
    """The column groups of a vector. Each group waits for the last unit that it reads of each part of the vector."""
    length, ep, index = shape.layer.width(vector), shape.core.ep, shape.first_group(vector)
    if not parts:
        full, rest = divmod(length, ep)
        plain = [Group(ep, (), frame, index, full)] if full else []
        return plain + ([Group(rest, (), frame, index + full)] if rest else [])
    groups: list[Group] = []
    ends = list(accumulate(part.shape.units for part in parts))
    first = 0
    while first < length:
        last = min(first + ep, length) - 1
        needs, same = [], length
        for number in range(bisect_right(ends, first), bisect_left(ends, last + 1) + 1):
            units = parts[number].shape.units
            offset = ends[number] - units
            need, alike = parts[number].need(min(last - offset, units - 1))
            needs.append(need)
            # a group that ends in the same turn of the same part waits for the same
            same = min(same, offset + alike if first >= offset else last)
        count = max(1, (min(same, length - 1) + 1 - first) // ep) if last + 1 - first == ep else 1
        groups.append(Group(last + 1 - first, tuple(needs), False, index + first // ep, count))
        first += count * ep
    return _joined(groups)


@record
class Tiles:
    """The tiles of a stage: its shape, where the pass stands, its column groups in issue order, and whose they are.

    `later` are the groups of every row block but the first: what is waited for once is there for all. A member of the
    task has a buffer of its number: its accumulator banks.
    """

    shape: StageShape
    place: tuple[int, int]
    groups: tuple[Group, ...]
    member: int
    later: tuple[Group, ...]

    @staticmethod
    def of(shape: StageShape, place: tuple[int, int], groups: Sequence[Group], member: int = 0) -> Tiles:
        """The tiles of these groups."""
        later = _joined([group.plain() for group in groups]) if len(shape.blocks) > 1 else ()
        return Tiles(shape, place, tuple(groups), member, tuple(later))

    def tile(
        self,
        block: int,
        group: Group,
        needs: tuple[Dependence, ...] = (),
        frame: bool = False,
        takes: int | None = None,
    ) -> Operation:
        """The run of tiles of one row block that a group stands for."""
        shape = self.shape
        return Operation(
            ARRAY,
            count=group.length,
            needs=needs,
            frame=frame,
            takes=takes,
            work=len(shape.stage.gates) * shape.blocks[block] * group.columns,
            label="mvm",
            place=(*self.place, block, group.first, shape.number),
            member=self.member,
        )

    def waiting_for(self, settled: Callable[[Dependence], Dependence]) -> Tiles:
        """The same tiles with each dependence changed; unequal ones must stay unequal."""
        groups = [
            Group(group.columns, tuple([settled(need) for need in group.needs]), group.frame, group.first, group.length)
            if group.needs
            else group
            for group in self.groups
        ]
        return replace(self, groups=tuple(groups))

    @property
    def total(self) -> int:
        """How many operations the tiles are."""
        blocks = self.shape.blocks
        if self.shape.core.block_order == "row":
            return len(self.groups) + (len(blocks) - 1) * len(self.later)
        columns = sum(group.length for group in self.groups)
        # the first and the last column are a tile for each block; of the others, blocks as large as the first are one
        whole = min(columns, 2)
        alike = blocks[1:].count(blocks[0])
        return whole * len(blocks) + (columns - whole) * (len(blocks) - max(alike - 1, 0))

    def by_row(self) -> tuple[list[Operation], list[int]]:
        """Row block outer, column group inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        last = []
        for block in range(len(self.shape.blocks)):
            for number, group in enumerate(self.later if block else self.groups):
                takes = self.member if number == 0 else None
                tiles.append(self.tile(block, group, group.needs, group.frame, takes))
            last.append(len(tiles) - 1)
        return tiles, last

    def by_column(self) -> tuple[list[Operation], list[int]]:
        """Column group outer, row block inner; and for each block the place of its last tile in the list."""
        tiles: list[Operation] = []
        blocks = range(len(self.shape.blocks))
        singles = [g._replace(length=1, first=g.first + i) for g in self.groups for i in range(g.length)]
        for number, group in enumerate(singles):
            takes = self.member if number == 0 else None
            tiles.append(self.tile(0, group, group.needs, group.frame, takes))
            bare = group.plain()
            if number in (0, len(singles) - 1):
                tiles.extend(self.tile(block, bare, takes=takes) for block in blocks[1:])
                continue
            equal = [block for block in blocks[1:] if self.shape.blocks[block] == self.shape.blocks[0]]
            if equal:
                tiles.append(self.tile(equal[0], bare._replace(length=len(equal))))
            tiles.extend(self.tile(block, bare) for block in blocks[1 + len(equal) :])
        return tiles, list(range(len(tiles) - len(blocks), len(tiles)))
