"""The array's part of a pass on the column-wise NPU: column groups, what they wait for, and tiles in their order.

An array operation is a run of tiles that wait for the same things; each tile takes one cycle. Only the first row block
that reads a group waits for its elements. The array is in order, so the group is visible long before a later block or
stage reads it. Results become visible in the order of units, so a tile waits for the last unit of its group only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from lstmsim.base.records import record
from lstmsim.machines.column.shape import StageShape
from lstmsim.program.body_writer import NONE, BodyWriter, Home

#: Number of the array among the units of a core.
ARRAY = 0


class Read(NamedTuple):
    """Elements as tiles read them: the units of a share become visible as operations give them, one for each row block.

    The first of these operations stands `offset` behind its home, the next ones follow `stride` apart. `width` units
    come in each cycle, the first ones `cycles` after the operation's start. `lag`, `phase` and `mirrored` are those of
    the need.
    """

    shape: StageShape
    home: Home
    offset: int
    stride: int
    width: int
    cycles: int
    lag: int = 0
    phase: int = NONE
    mirrored: bool = False

    def wait(self, unit: int) -> tuple[Wait, int]:
        """The wait of a tile that reads the result of that unit; and the last unit for which it is the same."""
        shape, width = self.shape, self.width
        block, place = divmod(unit, shape.units_per_block)
        turn = place // width
        last = block * shape.units_per_block + min((turn + 1) * width, shape.blocks[block]) - 1
        return Wait(self, block, turn), last


class Wait(NamedTuple):
    """What a tile waits for: the units of one turn of a row block."""

    read: Read
    block: int
    turn: int


@record
class Share:
    """The part of a vector that one member gives.

    shape: the member's share of a stage.
    node: name of the results.
    core: which of the task's cores the member is on; there the results are visible as the tail gives them.
    tails: where in the body the tail operations that give them begin.
    sent: the results as other cores see them, behind the exchange unit; None if no other core reads them.
    """

    shape: StageShape
    node: str
    core: int
    tails: Home
    sent: Read | None = None

    @cached_property
    def own(self) -> Read:
        """The elements as they are seen on the member's own core."""
        return Read(self.shape, self.tails, 0, 1, self.shape.core.tail_width, self.shape.visible_cycles(self.node))


@record
class Source:
    """The elements of a vector, share by share. `lag`, `phase` and `mirrored` are those of needs of them."""

    shares: tuple[Share, ...]
    lag: int = 0
    phase: int = NONE
    mirrored: bool = False

    def read_on(self, core: int) -> list[Read]:
        """The elements as they are seen on one of the task's cores."""
        reads = []
        for share, own, sent in self._reads:
            read = own if share.core == core else sent
            assert read is not None, "what others read is sent"
            reads.append(read)
        return reads

    @cached_property
    def _reads(self) -> list[tuple[Share, Read, Read | None]]:
        """For each share what its own core sees and what others see, made once for all who read it."""
        return [(each, self._changed(each.own), each.sent and self._changed(each.sent)) for each in self.shares]

    def _changed(self, read: Read) -> Read:
        return Read(*read[:6], self.lag, self.phase, self.mirrored)


class Group(NamedTuple):
    """Some column groups in a row that wait for the same things.

    columns: useful columns of each group.
    waits, frame: what they wait for.
    first: number of the first group.
    length: how many groups.
    """

    columns: int
    waits: tuple[Wait, ...]
    frame: bool
    first: int
    length: int = 1

    def plain(self) -> Group:
        """The same groups without waits."""
        return Group(self.columns, (), False, self.first, self.length)


def _joined(groups: Iterable[Group]) -> Iterator[Group]:
    """Yield groups without their waits. Neighbours in the matrix with equal columns are one."""
    columns = first = end = 0
    for group in groups:
        if group.columns != columns or group.first != end:
            if columns:
                yield Group(columns, (), False, first, end - first)
            columns, first = group.columns, group.first
        end = group.first + group.length
    yield Group(columns, (), False, first, end - first)


def column_groups(shape: StageShape, vector: str, parts: Sequence[Read], frame: bool) -> list[Group]:
    """The column groups of a vector. Each group waits for the last unit that it reads of each part of the vector."""
    length, ep, index = shape.layer.width(vector), shape.core.ep, shape.first_group(vector)
    if not parts:
        full, rest = divmod(length, ep)
        plain = [Group(ep, (), frame, index, full)] if full else []
        return plain + ([Group(rest, (), frame, index + full)] if rest else [])
    groups: list[Group] = []
    ends = list(accumulate(part.shape.units for part in parts))
    first = number = 0
    while first < length:
        while ends[number] <= first:
            number += 1
        end = min(first + ep, length)
        if end <= ends[number]:
            before = ends[number] - parts[number].shape.units
            wait, alike = parts[number].wait(end - 1 - before)
            # groups that end in the same turn of the same part wait for the same
            count = max(1, (before + alike + 1 - first) // ep)
            waits: tuple[Wait, ...] = (wait,)
        else:
            count, waits = 1, _waits_for_all(parts, ends, number, end)
        groups.append(Group(end - first, waits, False, index + first // ep, count))
        first += count * ep
    return groups


def _waits_for_all(parts: Sequence[Read], ends: Sequence[int], number: int, end: int) -> tuple[Wait, ...]:
    """The waits of a group that reads the parts from `number` on, the last of them up to `end`."""
    waits = []
    for part, part_end in zip(parts[number:], ends[number:], strict=True):
        units = part.shape.units
        waits.append(part.wait(min(end, part_end) - 1 - (part_end - units))[0])
        if end <= part_end:
            break
    return tuple(waits)


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
        later = tuple(_joined(groups)) if len(shape.blocks) > 1 else ()
        return Tiles(shape, place, tuple(groups), member, later)

    def write(self, rows: BodyWriter) -> list[int]:
        """Write the tiles; and give for each row block the place of its last tile in the body."""
        return self._by_row(rows) if self.shape.core.block_order == "row" else self._by_column(rows)

    def _tiles(self, rows: BodyWriter, block: int, groups: Iterable[Group], takes: int = NONE) -> None:
        """The runs of tiles of one row block that groups stand for; the first run takes a slot of that buffer."""
        shape, member = self.shape, self.member
        macs, stage, (layer, direction) = len(shape.stage.gates) * shape.blocks[block], shape.number, self.place
        for columns, waits, frame, first, length in groups:
            for (_, home, offset, stride, _, cycles, lag, phase, mirrored), other, turn in waits:
                rows.need(home, offset + other * stride, turn + cycles, lag, phase, mirrored)
            rows.operation(
                ARRAY,
                "mvm",
                (layer, direction, block, first, stage),
                count=length,
                frame=frame,
                takes=takes,
                work=macs * columns,
                member=member,
            )
            takes = NONE

    def _by_row(self, rows: BodyWriter) -> list[int]:
        """Row block outer, column group inner."""
        blocks, later = self.shape.blocks, self.later
        self._tiles(rows, 0, self.groups, self.member)
        last = [rows.size - 1]
        for block in range(1, len(blocks)):
            if block > 1 and blocks[block] == blocks[1]:
                names = [("mvm", (*self.place, block, group.first, self.shape.number)) for group in later]
                rows.again(rows.size - len(later), names)
            else:
                self._tiles(rows, block, later, self.member)
            last.append(rows.size - 1)
        return last

    def _by_column(self, rows: BodyWriter) -> list[int]:
        """Column group outer, row block inner."""
        sizes = self.shape.blocks
        blocks = range(len(sizes))
        equal = [block for block in blocks[1:] if sizes[block] == sizes[0]]
        singles = [g._replace(length=1, first=g.first + i) for g in self.groups for i in range(g.length)]
        for number, group in enumerate(singles):
            takes = self.member if number == 0 else NONE
            self._tiles(rows, 0, [group], takes)
            bare = group.plain()
            alone = blocks[1:]
            if number not in (0, len(singles) - 1):
                if equal:
                    self._tiles(rows, equal[0], [bare._replace(length=len(equal))])
                alone = blocks[1 + len(equal) :]
            for block in alone:
                self._tiles(rows, block, [bare], takes)
        return list(range(rows.size - len(blocks), rows.size))
