"""How many cycles an (EP, VP) takes at least, without a simulation: its tiles alone.

An array issues at most one tile a cycle (docs/timing.md, section 3). So jobs on it take as many cycles as they have
tiles, from the arrival of the first job. The last tile's sums take another MVM latency and a cycle until something of
them is visible. No order of the tiles, no thread and no policy can change that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lstmsim.model.scenario import Job
from lstmsim.studies.search.score import Searched

__all__ = ["Least", "least_of"]

#: (EP, VP) -> cycles that the jobs take at least; never fewer for a smaller VP.
Least = Callable[[int, int], int]


@dataclass(frozen=True)
class _Load:
    """Jobs, the latest first, that run on some of the searched cores and nowhere else."""

    jobs: tuple[Job, ...]
    cores: int


def least_of(searched: Searched) -> Least:
    """Make the bound for the searched jobs on the searched cores; its VP must hold a unit of every model.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=1, vp=4),))
    >>> job = Job("a", Model("m", (Layer(cell("lstm"), 512, 512),)), steps=20)
    >>> least = least_of(Searched(chip, (job,), (0,), 65536))
    >>> least(32, 2048), least(32, 1024)  # 20 steps of 32 tiles, of 64 tiles; 19 is the MVM latency
    (659, 1299)
    """
    loads = tuple(_loads(searched))
    models = {id(job.model): job.model for load in loads for job in load.jobs}
    base = searched.chip.cores[searched.cores[0]]

    def least(ep: int, vp: int) -> int:
        core = searched.array.with_array(base, searched.npe, ep, vp)
        tiles = {number: searched.array.tiles(core, model) for number, model in models.items()}
        return max((_last(load, tiles) for load in loads), default=0) + searched.array.last_cycles(core)

    return least


def _loads(searched: Searched) -> list[_Load]:
    """Jobs bound to each searched core, and, if no core is left out, all jobs on all cores together."""
    latest = sorted(searched.jobs, key=lambda job: -job.arrival)
    bound = [_Load(tuple(job for job in latest if job.cores == (core,)), 1) for core in searched.cores]
    every = [_Load(tuple(latest), len(searched.cores))] if len(searched.cores) == len(searched.chip.cores) else []
    return [load for load in (*bound, *every) if load.jobs]


def _last(load: _Load, tiles: dict[int, tuple[int, int]]) -> int:
    """The earliest cycle after the last tile of a load.

    tiles: for each model by its id, all tiles of a step, and those of the last step that must wait for its frame.
    """
    last = total = 0
    for job in load.jobs:
        step, final = tiles[id(job.model)]
        total += job.steps * step
        alone = max(job.steps * step, (job.steps - 1) * job.frame_interval + final)
        # At best, all jobs that arrive no earlier than this one are spread over the cores.
        last = max(last, job.arrival + max(alone, -(-total // load.cores)))
    return last
