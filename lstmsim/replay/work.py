"""One job under way: what it has computed so far and from when on each element of it is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lstmsim.errors import ReplayError
from lstmsim.numerics.arithmetic import Arithmetic, Array
from lstmsim.numerics.golden import NetworkRun, PassRun, initial_states
from lstmsim.replay.memory import Memory
from lstmsim.replay.numbers import JobNumbers
from lstmsim.targets.column_npu import ColumnCore
from lstmsim.targets.column_shape import StageShape, pass_shapes
from lstmsim.workload.scenario import Job

__all__ = ["Place", "Work"]


@dataclass(frozen=True)
class Place:
    """Where in a job something belongs."""

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
    """A job on a core. `vectors` can be streamed, `tail` is what the tail unit keeps; both by (layer, direction, step,
    name), with the states before the first step at step -1."""

    job: Job
    core: ColumnCore
    numbers: JobNumbers
    vectors: Memory = field(default_factory=Memory)
    tail: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        frames = self.arithmetic(0, 0).encode(self.numbers.stimulus.x)
        for step, frame in enumerate(frames):
            since = self.job.arrival + step * self.job.frame_interval
            self.vectors.write((0, 0, step, "x"), slice(0, len(frame)), frame, np.full(len(frame), since), len(frame))
        for number, layer in enumerate(self.job.model.layers):
            for direction in range(layer.directions):
                states = initial_states(self.arithmetic(number, direction), self.numbers.stimulus, number, direction)
                for name, values in states.items():
                    key, every = (number, direction, -1, name), slice(0, len(values))
                    for memory in (self.vectors, self.tail):
                        memory.write(key, every, values, np.zeros(len(values), np.int64), len(values))

    def arithmetic(self, layer: int, direction: int) -> Arithmetic:
        """The arithmetic of a pass."""
        return self.numbers.arithmetic[layer][direction]

    def shape(self, place: Place) -> StageShape:
        """How the place's stage is cut on the core."""
        return self._shapes[place.layer][place.stage]

    @cached_property
    def _shapes(self) -> tuple[tuple[StageShape, ...], ...]:
        return tuple(pass_shapes(layer, self.core) for layer in self.job.model.layers)

    def turns(self, place: Place) -> int:
        """Cycles that a segment of the place's row block takes in the tail unit."""
        units = self.units(place)
        taken: int = -(-(units.stop - units.start) // self.core.tail_width)
        return taken

    def before(self, place: Place) -> int:
        """The step whose h and states the place's step reads; -1: the initial ones."""
        step = place.step + 1 if place.direction else place.step - 1
        return step if 0 <= step < self.job.steps else -1

    def units(self, place: Place) -> slice:
        """The units of the place's row block; `ReplayError` if it has no such block."""
        shape = self.shape(place)
        if not 0 <= place.block < len(shape.blocks):
            raise ReplayError(f"job {self.job.name} has no {place}")
        start = place.block * shape.units_per_block
        return slice(start, start + shape.blocks[place.block])

    def forget(self, place: Place) -> None:
        """Drop what nothing reads any more once all of the place's step has been computed: the step before."""
        key = (place.layer, place.direction, self.before(place))
        names = [each.name for each in self.job.model.layers[place.layer].cell.nodes]
        states = self.job.model.layers[place.layer].cell.states
        for name in (*names, *(each.name for each in self.job.model.layers[place.layer].cell.sums), *states):
            self.tail.held.pop((*key, name), None)
            if name != "h":
                self.vectors.held.pop((*key, name), None)

    def result(self, finish: int) -> NetworkRun:
        """All h of the job; `ReplayError` if one was never computed or is not visible at `finish`."""
        passes = []
        for number, layer in enumerate(self.job.model.layers):
            both = []
            for direction in range(layer.directions):
                width, who = layer.width("h"), f"job {self.job.name}: the result"
                end = np.full(width, finish, dtype=np.int64)
                h = [
                    self.vectors.read((number, direction, step, "h"), slice(0, width), end, who)
                    for step in range(self.job.steps)
                ]
                last = 0 if direction else self.job.steps - 1
                states: Mapping[str, Array] = {
                    name: self.tail.held[number, direction, last, name].values for name in layer.cell.states
                }
                both.append(PassRun(np.stack(h), states))
            passes.append(tuple(both))
        return NetworkRun(self.numbers.arithmetic, tuple(passes))
