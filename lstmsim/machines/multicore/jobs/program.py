"""A recurrent job as phases of a Program (docs/multicore.md, section 7)."""

from __future__ import annotations

from functools import lru_cache

from lstmsim.machines.multicore.jobs.arrays import Shape
from lstmsim.machines.multicore.jobs.traced import TRACED, alike, traced
from lstmsim.machines.multicore.lowering.stages import Block, phases_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.program.program import Phase

__all__ = ["job_phases", "places_for", "twin"]


def places_for(machine: Machine, threads: int) -> tuple[int, ...]:
    """The first cores of the places of jobs with so many threads. Cores behind the last whole place have none.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> places_for(TOY, 1), places_for(TOY, 2)
    ((0, 1), (0,))
    """
    return tuple(range(0, machine.cores - threads + 1, threads))


@lru_cache(maxsize=256)
def twin(machine: Machine, first: int, threads: int) -> int:
    """The first core of the first place on which a job has the same traffic."""
    own = alike(machine, first, threads)
    return next(each for each in places_for(machine, threads) if alike(machine, each, threads) == own)


@lru_cache(maxsize=64)
def job_phases(machine: Machine, shape: Shape, first: int) -> tuple[Phase, ...]:
    """The phases of a job whose thread 0 is on core `first`: of each pass its first, second, and all later time steps.

    machine: the machine.
    shape: the job.
    first: a core that is its own `twin`.
    """
    blocks = []
    for one in traced(machine, shape, first).passes:
        for number, each in enumerate(one.steps):
            repeat = shape.steps - number if number == TRACED - 1 else 1
            step = shape.steps - 1 - number if one.backward else number
            blocks.append(Block((each.products, each.tail), repeat, step, one.backward))
    return phases_of(machine, blocks, first)
