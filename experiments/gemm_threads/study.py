"""Simulations of the study: every cut of a product, cold and warm, each with the planner's sub-blocks and buffer.

Assumptions: those of docs/multicore.md. Threads run on the first cores of the chip; warm caches hold what the same
product left there. Every product packs B, but those with one row pack nothing, and those drawn from RNNs have B as
`lstmsim gemm` takes it: packed before, but for gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeVar

import lstmsim
from lstmsim import engines
from lstmsim.machines.gemm import CACHES, Cut, GemmFigures, GemmPlan, GemmTask, Product
from lstmsim.machines.registry import capability
from lstmsim.studies.shared.stability import Vary
from lstmsim.studies.sweep.processes import processors

__all__ = ["SECTION_2", "Case", "Ran", "all_ran", "cut_text", "figures", "plan_of", "ran", "several"]

T = TypeVar("T")
#: The parameters of section 2 of docs/multicore.md.
SECTION_2 = {"cycles": 0, "mn": "blis"}
#: Fewer cases than these are not worth other processes.
_FEW = 16


class Case(NamedTuple):
    """A product on a chip.

    chip: name of its preset.
    threads: on how many cores.
    m, n, k: sizes.
    packed: when B is packed, of `lstmsim.machines.gemm.PACKED`.
    """

    chip: str
    threads: int
    m: int
    n: int
    k: int
    packed: str = "each"

    @property
    def task(self) -> GemmTask:
        """What the machine is asked."""
        return GemmTask(Product(self.m, self.n, self.k), self.threads, packed=self.packed)


class Ran(NamedTuple):
    """Makespans of a case by cut and state of the caches.

    case: the case.
    pairs: every cut of rows and columns, the one of BLIS's rule first.
    parts: every cut of K that leaves no thread without work.
    """

    case: Case
    pairs: dict[Cut, dict[str, int]]
    parts: dict[Cut, dict[str, int]]

    def cycles(self, cut: Cut, caches: str) -> int:
        """The makespan of one of its cuts."""
        return (self.pairs if cut in self.pairs else self.parts)[cut][caches]

    def blis(self, caches: str) -> int:
        """The makespan by BLIS's rule."""
        return next(iter(self.pairs.values()))[caches]

    def best(self, caches: str, every: bool = True) -> int:
        """The least makespan of all cuts; not `every`: of those of rows and columns only BLIS's."""
        pairs = self.best_pair(caches) if every else self.blis(caches)
        return min([pairs, *(each[caches] for each in self.parts.values())])

    def best_pair(self, caches: str) -> int:
        """The least makespan of all cuts of rows and columns."""
        return min(each[caches] for each in self.pairs.values())

    def best_part(self, caches: str) -> Cut | None:
        """The fastest cut of K; None: there is none."""
        return min(self.parts, key=lambda cut: self.parts[cut][caches], default=None)


def cut_text(cut: Cut) -> str:
    """A cut in short: `MN 2x32`, `NK 4`.

    >>> cut_text(Cut("MN", 2, 32, 1, 4, 16, 512)), cut_text(Cut("NK", 1, 16, 4, 8, 32, 128))
    ('MN 2x32', 'NK 4')
    """
    return f"MN {cut.p_m}x{cut.p_n}" if cut.p_k == 1 else f"{cut.kind} {cut.p_k}"


@cache
def _chip_of(name: str) -> Any:
    return lstmsim.load_chip(name)


@cache
def _threads_of(name: str) -> Any:
    return capability(_chip_of(name).kind, "gemm")


def plan_of(case: Case, caches: str, **settings: Any) -> GemmPlan:
    """The plan for caches in some state, with some parameters of the planner."""
    task = replace(case.task, caches=caches, settings=settings)
    return _threads_of(case.chip).plan(_chip_of(case.chip), task)


def figures(case: Case, cut: Cut, caches: str, relief: str = "plan", vary: Vary | None = None) -> GemmFigures:
    """What a cut comes to; `vary` changes the chip."""
    threads, chip = _threads_of(case.chip), _chip_of(case.chip)
    chip = chip if vary is None else vary(chip)
    task = replace(case.task, caches=caches)
    work = threads.lower(chip, task, threads.division(chip, task, cut, relief))
    return threads.figures(chip, work, engines.run(work.program, check=False))


def ran(case: Case) -> Ran:
    """Every cut of a case."""
    pairs = _threads_of(case.chip).mn_cuts(case.task)
    parts = [each.cut for each in plan_of(case, "warm").ranked if each.cut.p_k > 1]
    return Ran(case, {cut: _both(case, cut) for cut in pairs}, {cut: _both(case, cut) for cut in parts})


def several(function: Callable[[Case], T], cases: Sequence[Case]) -> list[T]:
    """What a function makes of each case, in several processes."""
    if len(cases) < _FEW:
        return [function(case) for case in cases]
    with ProcessPoolExecutor(processors(), get_context("spawn")) as pool:
        return list(pool.map(function, cases, chunksize=2))


def all_ran(cases: Sequence[Case]) -> list[Ran]:
    """Every cut of many cases."""
    return several(ran, cases)


def _both(case: Case, cut: Cut) -> dict[str, int]:
    return {caches: figures(case, cut, caches).makespan for caches in CACHES}
