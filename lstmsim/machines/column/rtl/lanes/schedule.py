"""When a lane reads what: cycles since the unit's turn, and what is kept from one segment or step to another.

A value of another segment, or of the step before, is kept in a memory by the address of the turn. It is written so
that it is there from its depth on, and read once in a segment: as late as its first reader allows, but before its
successor can be there. Later readers get it through registers.

When values are there is counted here, as the lanes have registers, and not asked of the simulator: a comparison of
both says nothing of what one has from the other. Shared is only what one node takes (`shape.node_cycles`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from lstmsim.base.records import record
from lstmsim.machines.column.npu import Latency
from lstmsim.machines.column.shape import node_cycles
from lstmsim.model.cell import Cell, Node, Segment, kinds, segments


@record
class Kept:
    """A value that is kept in a memory of each lane."""

    giver: str  # the node or sum
    state: bool  # whether its readers are of the next step
    # whether there are two places a turn, for even and for odd steps: some reader comes after the new value
    doubled: bool


@record
class Read:
    """A value from outside that a segment reads."""

    name: str  # as its readers name it
    kept: Kept | None  # where it is; None for parameters and for what is one number for all units
    cycle: int  # cycles since the turn at which it is read


@record
class Wait:
    """A value for which the blocks of a segment wait."""

    segment: int  # number of the segment of the cell that gives it
    cycles: int  # from the turn of the giving unit until the turn of the reading unit, at least
    state: bool  # whether it is of the step before
    reduced: bool  # whether it is one value for all units: the turn that counts is the last unit's


@record
class Schedule:
    """The cycles of a cell's lanes."""

    cell: Cell
    latency: Latency  # of the core
    tail_width: int  # units that enter the tail in a cycle

    @cached_property
    def depth(self) -> Mapping[str, int]:
        """Cycles from a unit's turn until a value is there, for every sum and node."""
        depth = {each.name: 0 for each in self.cell.sums}
        for number, segment in enumerate(self.segments):
            for node in self.nodes(segment):
                depth[node.name] = self._begin(node, number, depth) + self.cycles(node)
        return depth

    def _begin(self, node: Node, number: int, depth: Mapping[str, int]) -> int:
        return max((depth[name] for name in node.sources if self.inside(name, number)), default=0)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return segments(self.cell)

    @cached_property
    def rows(self) -> Mapping[str, str]:
        """What a name has numbers for: `hidden`, `projection`, or `scalar`."""
        return kinds(self.cell)

    @cached_property
    def home(self) -> Mapping[str, int]:
        """Number of the segment of every sum and node."""
        homes: dict[str, int] = {}
        for number, segment in enumerate(self.segments):
            if not segment.index:
                homes |= {each.name: number for each in self.cell.stages[segment.stage].sums}
            homes |= {each.name: number for each in self.nodes(segment)}
        return homes

    @staticmethod
    def nodes(segment: Segment) -> tuple[Node, ...]:
        return (*segment.nodes, *segment.reductions, *segment.scalars)

    def cycles(self, node: Node) -> int:
        """Latency of a node; of a reduction, from the last turn on."""
        return node_cycles(node, vars(self.latency), self.tail_width)

    def begin(self, node: Node) -> int:
        """Cycles since the turn at which a node takes its inputs."""
        return self._begin(node, self.home[node.name], self.depth)

    def visible(self, node: str) -> int:
        """Cycles since the turn from which a vector that the array reads is there."""
        return max(1, self.depth[node] + self.latency.writeback)

    def waits(self, segment: Segment) -> tuple[Wait, ...]:
        """Give the values of other segments and of the step before for which the blocks of a segment wait."""
        number, waits = self.segments.index(segment), []
        users = (*segment.nodes, *segment.reductions)
        for name in dict.fromkeys(name for each in users for name in each.sources if not self.inside(name, number)):
            giver, state = self.cell.states.get(name, name), name in self.cell.states
            if name in self.cell.parameters or self.depth[giver] == 0 or (state and self.behind_h(segment, giver)):
                continue
            needed = min(self.begin(each) for each in users if name in each.sources)
            reduced = self.rows[giver] == "scalar"
            waits.append(Wait(self.home[giver], self.depth[giver] - needed, state, reduced))
        return tuple(waits)

    def behind_h(self, segment: Segment, giver: str) -> bool:
        """Whether a state is there when the sums of a segment are, because these have waited for all of h."""
        output = self.cell.output
        read = any("h" in each.vectors for each in self.cell.stages[: segment.stage + 1])
        return read and self.home[giver] == self.home[output] and self.depth[giver] <= self.depth[output]

    def written(self, giver: str) -> int:
        """Cycles since the turn at whose end a kept value is written: it is there one cycle later."""
        return max(self.depth[giver] - 1, 0)

    def inside(self, name: str, number: int) -> bool:
        """Whether a name that a node of segment `number` reads comes from that segment's own turn."""
        return name not in self.cell.states and self.home.get(name) == number

    def reads(self, segment: Segment, scalars: bool) -> tuple[Read, ...]:
        """Give what nodes of a segment read from outside."""
        number = self.segments.index(segment)
        users = segment.scalars if scalars else (*segment.nodes, *segment.reductions)
        names = dict.fromkeys(name for each in users for name in each.sources if not self.inside(name, number))
        return tuple(
            self._read(name, number, min(self.begin(each) for each in users if name in each.sources)) for name in names
        )

    def _read(self, name: str, number: int, needed: int) -> Read:
        if name in self.cell.parameters:
            return Read(name, None, needed)
        giver = self.cell.states.get(name, name)
        depth = self.depth[giver]
        if self.rows[giver] == "scalar":
            return Read(name, None, min(needed, depth))
        state = name in self.cell.states
        if state and self.home[giver] == number:
            depth = max(depth - 1, 0)
        return Read(name, self._kept(giver, state), min(needed, depth))

    def _kept(self, giver: str, state: bool) -> Kept:
        names = {name for name, target in self.cell.states.items() if target == giver}
        after = (segment for segment in self.segments[self.home[giver] + 1 :])
        late = any(name in names for segment in after for each in self.nodes(segment) for name in each.sources)
        return Kept(giver, state, state and late)

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        """All that is kept, in the order of its readers."""
        every = (each.kept for segment in self.segments for each in self.reads(segment, False))
        return tuple(dict.fromkeys(each for each in every if each))

    @cached_property
    def scalars_kept(self) -> tuple[str, ...]:
        """The numbers that are one for all units and that later segments read."""
        reads = (each for segment in self.segments for way in (False, True) for each in self.reads(segment, way))
        return tuple(dict.fromkeys(each.name for each in reads if self.rows.get(each.name) == "scalar"))

    def crossings(self) -> Iterator[tuple[Kept, int, int]]:
        """Yield what is kept for a reader of another stage: what it is, the giver's stage, the reader's stage."""
        for segment in self.segments:
            for each in self.reads(segment, False):
                if each.kept and (giver := self.segments[self.home[each.kept.giver]].stage) != segment.stage:
                    yield each.kept, giver, segment.stage

    def readers(self, name: str) -> tuple[int, ...]:
        """The stages whose lanes read a parameter or a state."""
        stages = (each.stage for each in self.segments if any(one.name == name for one in self.reads(each, False)))
        return tuple(dict.fromkeys(stages))
