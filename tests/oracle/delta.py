"""Delta columns, rule by rule from docs/delta_columns.md: which tiles a drawn job issues, and what each waits for."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.machines.column.npu import ColumnCore
from lstmsim.model.scenario import Job
from tests.oracle.thread import NEVER, Thread
from tests.oracle.tiles import Key, Tile, keys, row_blocks, vector

MASK = 2**64 - 1


def draws(seed: int) -> Iterator[int]:
    """Rule 9: `draw(1000)` of splitmix64."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield ((z ^ (z >> 31)) >> 32) % 1000


def changes(job: Job, place: int) -> dict[tuple[int, int, str], list[bool]]:
    """By layer, step and vector, which elements have changed enough."""
    assert job.density is not None
    stream = draws(job.density.seed + 1000003 * place)
    found = {}
    for number, layer in enumerate(job.model.layers):
        for step in range(job.steps):
            found[number, step, "x"] = [next(stream) < 1000 * job.density.x for _ in range(layer.input)]
            h = [next(stream) < 1000 * job.density.h for _ in range(layer.hidden)]
            found[number, step, "h"] = [each and step > 0 for each in h]
    return found


def tiles_of_step(job: Job, core: ColumnCore, key: Key, changed: dict[tuple[int, int, str], list[bool]]) -> list[Tile]:
    """The tiles of the sent groups; each also waits for all groups since the tile before it in its block."""
    layer = job.model.layers[key[0]]
    stage = layer.cell.stages[0]
    names = {each for gate in stage.gates for part in gate.sums for each in part.vectors}
    order = ["h", "x"] if key[0] > 0 and job.model.layer_order == "step" else ["x", "h"]
    order = [each for each in order if each in names]
    assert core.delta is not None
    width = core.delta.group or core.ep
    groups = []  # whether it is sent, and its tiles' elements
    for name in order:
        elements = vector(job, key, name, core)
        for first in range(0, len(elements), width):
            own = elements[first : first + width]
            cut = [own[at : at + core.ep] for at in range(0, len(own), core.ep)]
            groups.append((any(changed[key[0], key[2], name][first : first + width]), cut))
    groups[-1] = (True, groups[-1][1])
    made: list[tuple[list[tuple[str, Key, str, int]], int]] = []  # what a tile waits for, its useful columns
    since: list[tuple[str, Key, str, int]] = []
    for sent, cut in groups:
        since = since + [each for elements in cut for each in elements]
        if sent:
            # all elements of the group, though a tile multiplies its own only: they are compared together
            made += [(since, len(elements)) for elements in cut]
            since = []
    blocks = row_blocks(layer, core, 0)
    pairs = [(b, t) for b in range(len(blocks)) for t in range(len(made))]
    if core.block_order == "column":
        pairs = [(b, t) for t in range(len(made)) for b in range(len(blocks))]
    return [
        Tile(made[t][0], (key, 0, b), t == 0, t == len(made) - 1, len(stage.gates) * len(blocks[b]) * made[t][1])
        for b, t in pairs
    ]


class DeltaThread(Thread):
    """A job on a core with delta columns."""

    def __init__(self, index: int, job: Job, start: int, core: ColumnCore) -> None:
        super().__init__(index, job, start, core)
        changed = changes(job, index)
        self.tiles = [tile for key in keys(job) for tile in tiles_of_step(job, core, key, changed)]

    def state(self, now: int) -> str:
        if self.issued == len(self.tiles):
            return "drain"
        tile, late = self.tiles[self.issued], (4 if self.core.latency.delta is None else self.core.latency.delta)
        made = [(key, name, unit) for kind, key, name, unit in tile.reads if kind == "made"]
        frames = [key[2] for kind, key, _, _ in tile.reads if kind == "frame"]
        if any(self.visible.get(each, NEVER) + late > now for each in made):
            return "hazard"
        if any(self.job.arrival + step * self.job.frame_interval + late > now for step in frames):
            return "input"
        held = sum(free > now for free in self.banks.values())
        return "backpressure" if tile.first and held >= self.core.accumulator_banks else "issue"
