"""The order of a job's tiles and of its row blocks' turns in the tail (sections 2, 3.1, 8.1, 8.2, 8.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lstmsim.machines.column.npu import ColumnCore
from lstmsim.model.model import Layer
from lstmsim.model.scenario import Job
from tests.oracle.schedule import schedule

#: (layer, direction, step)
Key = tuple[int, int, int]


@dataclass
class Tile:
    """One tile: what it reads as (kind, key, name, element), and its place among its row block's tiles."""

    reads: list[tuple[str, Key, str, int]]
    block: tuple[Key, int, int]  # key, stage, number
    first: bool
    last: bool
    macs: int


@dataclass
class Turn:
    """A row block's passage through the tail: one per segment; `arrival` of its sums only matters for the first."""

    key: Key
    stage: int
    segment: int
    number: int
    units: range

    @property
    def block(self) -> tuple[Key, int, int]:
        return self.key, self.stage, self.number


def keys(job: Job) -> Iterator[Key]:
    """Layers, directions and steps in the order in which they are issued."""
    if job.model.layer_order == "step":
        yield from ((number, 0, step) for step in range(job.steps) for number in range(len(job.model.layers)))
        return
    for number, layer in enumerate(job.model.layers):
        for step in range(job.steps):
            yield number, 0, job.steps - 1 - step if layer.reverse else step
        if layer.bidirectional:
            for step in range(job.steps):
                yield number, 1, job.steps - 1 - step


def before(job: Job, key: Key) -> Key:
    """The step whose states this one reads."""
    layer, direction, step = key
    return layer, direction, step + 1 if direction or job.model.layers[layer].reverse else step - 1


def row_blocks(layer: Layer, core: ColumnCore, stage: int) -> list[range]:
    rows, units = layer.units(layer.cell.stages[stage].rows), core.vp // len(layer.cell.stages[stage].gates)
    return [range(first, min(first + units, rows)) for first in range(0, rows, units)]


def vector(job: Job, key: Key, name: str, core: ColumnCore) -> list[tuple[str, Key, str, int]]:
    """The elements of x, of h of the step before, or of an intermediate vector."""
    number, _, step = key
    layer = job.model.layers[number]
    plan = schedule(layer.cell, core.latency)
    if name == "x" and number == 0:
        return [("frame", key, "x", element) for element in range(layer.input)]
    if name == "x":
        below = job.model.layers[number - 1]
        output = below.cell.states["h"]
        units = below.units(schedule(below.cell, core.latency).rows(output))
        directions = range(2 if below.bidirectional else 1)
        return [("made", (number - 1, d, step), output, unit) for d in directions for unit in range(units)]
    if name != "h":
        return [("made", key, name, unit) for unit in range(layer.units(plan.rows(name)))]
    output = layer.cell.states["h"]
    kind = "made" if 0 <= before(job, key)[2] < job.steps else "start"
    return [(kind, before(job, key), output, unit) for unit in range(layer.units(plan.rows(output)))]


def tiles_of_stage(job: Job, core: ColumnCore, key: Key, stage: int) -> Iterator[Tile]:
    layer = job.model.layers[key[0]]
    gates = layer.cell.stages[stage].gates
    names = {each for gate in gates for part in gate.sums for each in part.vectors}
    early = ["h", "x"] if key[0] > 0 and job.model.layer_order == "step" else ["x", "h"]
    made = [node.name for node in layer.cell.nodes if node.name in names]
    groups = []
    for name in [each for each in early if each in names] + made:
        elements = vector(job, key, name, core)
        groups += [elements[first : first + core.ep] for first in range(0, len(elements), core.ep)]
    blocks = row_blocks(layer, core, stage)
    pairs = [(b, g) for b in range(len(blocks)) for g in range(len(groups))]
    if core.block_order == "column":
        pairs = [(b, g) for g in range(len(groups)) for b in range(len(blocks))]
    for b, g in pairs:
        macs = len(gates) * len(blocks[b]) * len(groups[g])
        yield Tile(groups[g], (key, stage, b), g == 0, g == len(groups) - 1, macs)


def tiles_of_job(job: Job, core: ColumnCore) -> list[Tile]:
    return [
        tile
        for key in keys(job)
        for stage in range(len(job.model.layers[key[0]].cell.stages))
        for tile in tiles_of_stage(job, core, key, stage)
    ]


def turns_of_job(job: Job, core: ColumnCore) -> list[Turn]:
    return [
        Turn(key, stage, segment, number, units)
        for key in keys(job)
        for layer in [job.model.layers[key[0]]]
        for stage in range(len(layer.cell.stages))
        for segment in range(schedule(layer.cell, core.latency).segments(stage))
        for number, units in enumerate(row_blocks(layer, core, stage))
    ]
