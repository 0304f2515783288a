"""The threads of a multi-core CPU for matrix products, as `lstmsim.machines.gemm.GemmThreads` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import CACHES, RELIEFS, Cut, Division, GemmFigures, GemmPlan, GemmTask, GemmWork, check_word
from lstmsim.machines.multicore.cuts import cut_of_parts, division_of, mn_cuts
from lstmsim.machines.multicore.machine import Machine
from lstmsim.machines.multicore.planner import DOCUMENTED, Settings, plan, settings_of
from lstmsim.machines.multicore.product import figures_of, lowered
from lstmsim.machines.multicore.steps import check_division, computed
from lstmsim.machines.multicore.words import LEFT_OUT_OF_PRODUCTS, packing_told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lstmsim.program.trace import Trace

_MEANINGS = {
    "k_fit": "the part of kc that a part of K has, 1 at most; more is better",
    "mn_fit": "the part of mc, of nc, or of both, that a block of C has, 1 at most; more is better",
    "padding": "work in whole micro-tiles over useful work, against the uncut product; less is better",
    "balance": "work of the busiest thread over the mean; less is better",
    "contention": "threads that add into the same block of C; less is better",
    "traffic": "elements of A, B and C that all threads together bring and take; less is better",
    "cycles": "an estimate of the makespan, with caches as they are at the beginning; less is better",
    "least_kb": "least part of kc that a part of K must have, so that a cut is accepted",
    "most_padding": "largest padding of a cut that is accepted",
    "most_p_k": "most threads that may add into the same block of C",
    "mn": "which cuts of rows and columns alone are candidates: the one of BLIS's rule (blis), or all",
    "by_shapes": "section 2 of docs/multicore.md; the products of recurrent jobs are planned so",
    "count": "threads that add into the same block of C over its sub-blocks; more is better",
    "repack": "elements of A and B that a thread packs, again for each sub-block; less is better",
}


class _Chip(Protocol):
    """A chip that has cores and caches."""

    @property
    def view(self) -> Machine:
        """Its numbers."""


class Threads:
    """Threads of the cores for matrix products: planner, executor in time and in numbers.

    left_out, parameters, by_shapes, meanings: as `lstmsim.machines.gemm.GemmThreads` says.
    """

    left_out: Sequence[str] = LEFT_OUT_OF_PRODUCTS
    parameters: Mapping[str, Any] = {each.name: each.default for each in fields(Settings)}
    by_shapes: Mapping[str, Any] = {
        each.name: getattr(DOCUMENTED, each.name)
        for each in fields(Settings)
        if getattr(DOCUMENTED, each.name) != each.default
    }
    meanings: Mapping[str, str] = _MEANINGS

    def line_bytes(self, chip: _Chip) -> int:
        """Bytes of a line."""
        return chip.view.line

    def element_bytes(self, chip: _Chip) -> int:
        """Bytes of a number."""
        return chip.view.element_bytes

    def packing(self, chip: _Chip, task: GemmTask) -> str:
        """In a sentence, what of A and B is packed when, and what that takes."""
        return packing_told(chip.view, task)

    def plan(self, chip: _Chip, task: GemmTask) -> GemmPlan:
        """The planner: a plan for the product; `InputError` for sizes, threads and settings that cannot be."""
        _check(chip.view, task)
        packed = task.packed == "once"
        return plan(chip.view, task.product, task.threads, settings_of(task.settings), task.caches, packed=packed)

    def division(self, chip: _Chip, task: GemmTask, cut: Cut, relief: str = "plan") -> Division:
        """What a cut becomes with the planner's sub-blocks and buffer, or with a relief."""
        check_word("relief", relief, RELIEFS)
        return division_of(chip.view, task.product, cut, relief, packed=task.packed == "once")

    def mn_cuts(self, chip: _Chip, task: GemmTask) -> Sequence[Cut]:
        """Every cut of rows and columns alone; the first one is that of BLIS's rule."""
        _check(chip.view, task)
        return mn_cuts(task.product, task.threads)

    def cut(
        self, chip: _Chip, task: GemmTask, kind: str, parts: Sequence[int], sizes: Sequence[int] | None = None
    ) -> Cut:
        """The cut into so many parts of rows, columns and K, whether the planner proposes it or not.

        `InputError` if the blocks do not hold the product, or are larger than it.
        """
        _check(chip.view, task)
        cut = cut_of_parts(chip.view, task.product, kind, parts)
        if sizes is not None:
            mb, nb, kb = sizes
            cut = replace(cut, mb=mb, nb=nb, kb=kb)
        check_division(Division(task.product, cut))
        whole = {"mb": task.product.m, "nb": task.product.n, "kb": task.product.k}
        large = [name for name, most in whole.items() if getattr(cut, name) > most]
        if large:
            text = "must be at most {}, which is all of the product, got {}"
            raise InputError([Mistake(name, text.format(whole[name], getattr(cut, name))) for name in large])
        return cut

    def lower(self, chip: _Chip, task: GemmTask, division: Division) -> GemmWork:
        """The executor in time: the traffic of a division, and its program."""
        check_word("caches", task.caches, CACHES)
        return lowered(chip.view, division, task.caches)

    def figures(self, chip: _Chip, work: GemmWork, trace: Trace) -> GemmFigures:
        """What the run of a program came to."""
        return figures_of(chip.view, work, trace)

    def computed(self, chip: _Chip, division: Division, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """The executor in numbers: C of shape (m, n), summed up in the order of the division's steps."""
        return computed(chip.view, division, a, b)


def _check(machine: Machine, task: GemmTask) -> None:
    """`InputError` with every size that is none, and for threads without a core."""
    product = task.product
    sizes = {"m": product.m, "n": product.n, "k": product.k, "threads": task.threads}
    mistakes = [Mistake(name, f"must be at least 1, got {size}") for name, size in sizes.items() if size < 1]
    if task.threads > machine.cores:
        text = f"must be at most {machine.cores}, for each takes a core of its own, got {task.threads}"
        mistakes.append(Mistake("threads", text))
    if mistakes:
        raise InputError(mistakes)


#: The threads of every multi-core CPU.
THREADS = Threads()
