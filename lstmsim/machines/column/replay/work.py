"""One member of a job under way: its results so far, and the cycle from which on each element is there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.replay.cut import Cut
from lstmsim.machines.column.shape import StageShape, pass_shapes
from lstmsim.machines.timed import Memory
from lstmsim.model.numerics.arithmetic import Arithmetic
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Job

__all__ = ["Place", "Work"]


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
class Work:
    """A member of a job on its core.

    job: the job.
    core: the core.
    numbers: weights, frames and arithmetic of the job.
    cut: the cut of the job over its members.
    member: number of the member.
    vectors: vectors that can be streamed on the core, by (layer, direction, step, name).
    tail: values that the tail unit keeps, by the same keys. States before the first step have step -1.
    """

    job: Job
    core: ColumnCore
    numbers: JobNumbers
    cut: Cut
    member: int
    vectors: Memory
    tail: Memory = field(default_factory=Memory)

    @property
    def who(self) -> str:
        """The member in words."""
        return f"job {self.job.name}" + (f" member {self.member}" if self.cut.split else "")

    def arithmetic(self, layer: int, direction: int) -> Arithmetic:
        """Give the arithmetic of a pass."""
        return self.numbers.arithmetic[layer][direction]

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
        names = [each.name for each in self.job.model.layers[place.layer].cell.nodes]
        states = self.job.model.layers[place.layer].cell.states
        for name in (*names, *(each.name for each in self.job.model.layers[place.layer].cell.sums), *states):
            self.tail.held.pop((*key, name), None)
            if name != "h":
                self.vectors.held.pop((*key, name), None)
