"""A whole job under way: its members, the vectors that each core sees, and the vectors that go from core to core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange
from lstmsim.machines.column.replay.array import PeArray
from lstmsim.machines.column.replay.array_work import ArrayWork
from lstmsim.machines.column.replay.cut import Cut
from lstmsim.machines.column.replay.streams import Streams
from lstmsim.machines.column.replay.tail_work import TailWork
from lstmsim.machines.column.replay.work import Place, Work
from lstmsim.machines.timed import NEVER, Memory
from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.numerics.golden import NetworkRun, PassRun, initial_states
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.weights import Stimulus
from lstmsim.model.scenario import Job
from lstmsim.model.segments import segments

__all__ = ["JobWork", "start"]


@dataclass(eq=False)
class JobWork:
    """A job that is executed.

    job: the job.
    core: each of its cores, which are equal.
    numbers: its weights, frames and arithmetic.
    cut: its cut over members.
    exchange: the links between cores.
    views: the vectors as each core sees them, by the number of the core.
    tiles: for each member, the work of its array.
    tails: for each member, the work of its tail unit.
    weights: the weights that come while the job runs; None: all weights are there from the start.
    """

    job: Job
    core: ColumnCore
    numbers: JobNumbers
    cut: Cut
    exchange: Exchange
    views: dict[int, Memory]
    tiles: tuple[ArrayWork, ...]
    tails: tuple[TailWork, ...]
    weights: Streams | None = None

    def begin(self, stimulus: Stimulus, cycle: int = 0) -> None:
        """Set the states before the first step to those of `stimulus`; they are there from `cycle` on."""
        for number, layer in enumerate(self.job.model.layers):
            for direction in range(layer.directions):
                # encoded once for all memories, because an arithmetic counts the values that saturate
                states = initial_states(self.numbers.arithmetic[number][direction], stimulus, number, direction)
                for name, values in states.items():
                    key, every = (number, direction, -1, name), slice(0, len(values))
                    for memory in (*self.views.values(), *(each.work.tail for each in self.tiles)):
                        memory.write(key, every, values, np.full(len(values), cycle, np.int64), len(values))
        for view in self.views.values():
            view.latest = 0

    def tile(self, member: int, place: Place, group: int, cycle: int) -> None:
        """Execute one tile on a member's array at `cycle`; `group`: column group of the stage's matrix."""
        own = self.tiles[member]
        if self.weights is not None:
            own.work.units(place)
            self.weights.tile(member, place, cycle)
        own.tile(place, group, cycle)

    def turns(self, member: int, place: Place) -> int:
        """Count the cycles that a row block takes in a member's tail."""
        return self.tiles[member].work.turns(place)

    def sending_cycles(self, member: int, place: Place) -> int:
        """Count the cycles that a row block takes on a member's link."""
        units = self.tiles[member].work.units(place)
        taken: int = -(-(units.stop - units.start) // self.exchange.rate(self.core.tail_width))
        return taken

    def send(self, member: int, place: Place, segment: int, number: int, cycle: int) -> None:
        """Send a vector of a row block over the link of a member, from `cycle` on.

        segment: number of the segment whose results are sent.
        number: number of the vector among all vectors that the segment sends.
        `ReplayError` if no core reads the vector, or it is not visible yet.
        """
        work, own = self.tiles[member].work, self.cut.cores[member]
        units, shape, who = work.units(place), work.shape(place), f"{work.who}: the exchange of {place}"
        nodes = self._sent(member, place, segment)
        if number >= len(nodes):
            raise ReplayError(f"{who} at cycle {cycle} sends what nobody reads")
        name = "h" if nodes[number] == shape.layer.cell.output else nodes[number]
        rate = self.exchange.rate(self.core.tail_width)
        turns = cycle + np.arange(units.stop - units.start, dtype=np.int64) // rate
        key = (place.layer, place.direction, place.step, name)
        values = self.views[own].read(key, units, turns, who)
        since = turns + max(1, self.exchange.latency_cycles)
        for core, view in self.views.items():
            if core != own:
                view.write(key, units, values, since, shape.layer.width(name))

    def _sent(self, member: int, place: Place, segment: int) -> list[str]:
        """Name the results of a segment that products on other cores read, in the order in which they are visible."""
        shape, own = self.tiles[member].work.shape(place), self.cut.cores[member]
        nodes = [
            node.name
            for each in segments(shape.layer.cell)
            if (each.stage, each.index) == (place.stage, segment)
            for node in each.nodes
            if self.cut.receivers(place.layer, node.name) - {own}
        ]
        return sorted(nodes, key=lambda name: (shape.visible_cycles(name), name))

    def rest(self, cycle: int) -> None:
        """Pause the job at `cycle`; `ReplayError` if an effect of its operations is still to come."""
        for each in self.tiles:
            each.rest(cycle)
        late = max(view.latest for view in self.views.values())
        if late > cycle:
            raise ReplayError(f"job {self.job.name} is paused at cycle {cycle}, before its results at {late}")
        for layer, direction, step in self._begun():
            h = self.views[self.cut.cores[0]].held.get((layer, direction, step, "h"))
            if h is None or np.any(h.since == NEVER):
                text = f"is paused at cycle {cycle} in the middle of layer {layer} step {step}"
                raise ReplayError(f"job {self.job.name} {text}")

    def _begun(self) -> set[tuple[int, int, int]]:
        """Give (layer, direction, step) of each step that has begun; with `layer_order: step`, of all layers of it."""
        begun = {(place.layer, place.direction, place.step) for each in self.tiles for place in each.done}
        if self.job.model.layer_order == "step":
            begun |= {(layer, 0, step) for _, _, step in begun for layer in range(len(self.job.model.layers))}
        return begun

    def result(self, finish: int) -> NetworkRun:
        """Give all h of the job; `ReplayError` if an h was never computed, or its readers cannot see it at `finish`."""
        passes = []
        for number, layer in enumerate(self.job.model.layers):
            both = []
            for direction in range(layer.directions):
                h = [self._h((number, direction, step, "h"), finish) for step in range(self.job.steps)]
                last = 0 if layer.backward(direction) else self.job.steps - 1
                states = {name: self._state((number, direction, last, name)) for name in layer.cell.states}
                both.append(PassRun(np.stack(h), states))
            passes.append(tuple(both))
        return NetworkRun(self.numbers.arithmetic, tuple(passes))

    def _h(self, key: tuple[int, int, int, str], finish: int) -> Array:
        layer, width = self.job.model.layers[key[0]], self.job.model.layers[key[0]].width("h")
        receivers, parts = self.cut.receivers(key[0], layer.cell.output), []
        for member in self.cut.members[key[0]]:
            units, own = self.cut.units(member, width), self.cut.cores[member]
            end = np.full(units.stop - units.start, finish, dtype=np.int64)
            for core in receivers - {own}:
                self.views[core].read(key, units, end, f"job {self.job.name}: the result on core {core}")
            parts.append(self.views[own].read(key, units, end, f"job {self.job.name}: the result"))
        return np.concatenate(parts)

    def _state(self, key: tuple[int, int, int, str]) -> Array:
        width, parts = self.job.model.layers[key[0]].width(key[3]), []
        for member in self.cut.members[key[0]]:
            units = self.cut.units(member, width)
            # the tail may go on with a state after the job's last h
            end = np.full(units.stop - units.start, NEVER - 1, dtype=np.int64)
            work = self.tiles[member].work
            parts.append(work.tail.read(key, units, end, f"{work.who}: the state at the end"))
        return np.concatenate(parts)


def start(
    job: Job,
    chip: ColumnNpu,
    cores: Sequence[int],
    numbers: JobNumbers,
    array: PeArray,
    arrived: int,
    weights: Streams | None = None,
) -> JobWork:
    """Give a job before its first tile: only its frames are there and, unless it follows another job, its first states.

    job: the job.
    chip: the chip.
    cores: number of the core of each member.
    numbers: its weights, frames and arithmetic.
    array: structure of the array of each core.
    arrived: cycle at which the job arrived.
    weights: the weights that come while the job runs; None: all weights are there from the start.
    """
    core, cut = chip.cores[cores[0]], Cut(job.model, job.split_over(len(cores)), tuple(cores))
    views = {each: Memory() for each in cores}
    works = [Work(job, core, numbers, cut, member, views[on]) for member, on in enumerate(cores)]
    frames = numbers.arithmetic[0][0].encode(numbers.stimulus.x)
    for step, frame in enumerate(frames):
        since = np.full(len(frame), arrived + step * job.frame_interval)
        for view in views.values():
            view.write((0, 0, step, "x"), slice(0, len(frame)), frame, since, len(frame))
    tiles = tuple(ArrayWork(work, array) for work in works)
    tails = tuple(TailWork(each.work, each) for each in tiles)
    work = JobWork(job, core, numbers, cut, chip.exchange, views, tiles, tails, weights)
    if numbers.follows is None:
        work.begin(numbers.stimulus)
    return work
