"""Runs of a threaded matrix product: many divisions of one product, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lstmsim import engines
from lstmsim.base.records import record
from lstmsim.machines.gemm import CACHES, Cut, Division, GemmFigures, GemmTask, GemmThreads, GemmWork
from lstmsim.studies.sweep.processes import processors

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip

__all__ = ["Asked", "GemmRow", "Progress", "simulated", "work_of"]

#: Is called with simulations done and in all.
Progress = Callable[[int, int], None]


@record
class GemmRow:
    """A division of the product that was simulated.

    name: what it is.
    division: the division.
    figures: what it came to by what lay in the caches, a key of `lstmsim.machines.gemm.CACHES`.
    """

    name: str
    division: Division
    figures: Mapping[str, GemmFigures]

    @property
    def cut(self) -> Cut:
        """The block of each thread."""
        return self.division.cut

    def cycles(self, caches: str) -> int:
        """The makespan."""
        return self.figures[caches].makespan


@dataclass(frozen=True, eq=False)
class Asked:
    """A product and where it runs.

    threads: the threads of the machine.
    chip: where.
    task: the product.
    engine: a key of `lstmsim.engines.ENGINES`.
    """

    threads: GemmThreads
    chip: Chip
    task: GemmTask
    engine: str


def work_of(asked: Asked, division: Division, caches: str) -> GemmWork:
    """The program of a division.

    asked: where it runs.
    caches: what lies in the caches when it begins.
    """
    return asked.threads.lower(asked.chip, replace(asked.task, caches=caches), division)


def simulated(
    asked: Asked, divisions: Sequence[Division], progress: Progress | None = None
) -> Mapping[Division, Mapping[str, GemmFigures]]:
    """Simulate divisions with cold and with warm caches; equal ones once.

    The traffic of caches is worked out outside of Python, so threads of this process do it side by side.

    asked: where they run.
    divisions: of one product.
    progress: is called with divisions done and in all.
    """
    every = list(dict.fromkeys(divisions))
    if progress is not None:
        progress(0, len(every))
    pool = ThreadPoolExecutor(max(1, min(len(every), processors())))
    try:
        calls = {pool.submit(_both, asked, each): each for each in every}
        ready = {}
        for call in as_completed(calls):
            ready[calls[call]] = call.result()
            if progress is not None:
                progress(len(ready), len(every))
    finally:
        # after a mistake, or an interrupt, what has not begun is not begun
        pool.shutdown(cancel_futures=True)
    return {each: ready[each] for each in every}


def _both(asked: Asked, division: Division) -> Mapping[str, GemmFigures]:
    # warm caches first: they come out of cold ones, so that these are known then
    ready = {each: _once(asked, division, each) for each in reversed(CACHES)}
    return {each: ready[each] for each in CACHES}


def _once(asked: Asked, division: Division, caches: str) -> GemmFigures:
    work = work_of(asked, division, caches)
    return asked.threads.figures(asked.chip, work, engines.run(work.program, asked.engine, check=False))
