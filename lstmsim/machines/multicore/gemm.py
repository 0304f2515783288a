"""The threads of a multi-core CPU for matrix products: what the study of products asks (`registry.capability`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import Mistake, refuse
from lstmsim.machines.gemm import CACHES, RELIEFS, Cut, Division, GemmFigures, GemmPlan, GemmTask, GemmWork, check_word
from lstmsim.machines.multicore import cuts, planner, product, steps
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.words import LEFT_OUT as LEFT_OUT_OF_ALL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lstmsim.program.trace import Trace

#: Sentences on what is not modelled.
LEFT_OUT = (
    *LEFT_OUT_OF_ALL,
    "false sharing where K is whole: a line of C of which several threads write a part costs no transfers, which "
    "flatters M/N threads",
)
#: Parameters of the planner with their defaults.
PARAMETERS: Mapping[str, Any] = {each.name: each.default for each in fields(planner.Settings)}
#: Parameters for plans that follow from sizes alone, as far as they are no defaults.
BY_SHAPES: Mapping[str, Any] = {
    name: value for name in PARAMETERS if (value := getattr(planner.DOCUMENTED, name)) != PARAMETERS[name]
}
#: A sentence on each parameter, on each condition, and on plans by sizes alone.
MEANINGS = {
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


def line_bytes(chip: MulticoreCpu) -> int:
    """Bytes of a line, the unit of `lstmsim.machines.gemm.Counts`."""
    return chip.line


def packing(chip: MulticoreCpu, task: GemmTask) -> str:
    """In a sentence, what of A and B is packed when, and what that takes."""
    before = task.packed == "once"
    if chip.core.packs_nothing(task.product.m):
        lies = "B in the panels in which a job holds its weights (packed once)" if before else "A and B where they lie"
        return f"nothing is packed: the kernel for one row (gemv) reads {lies}"
    once = "B was packed before, as a job holds its weights, and no call takes time for it (packed once)"
    each = "every call packs B anew (packed each); a job holds its weights packed (packed once)"
    rate = f"A is packed by every call; {chip.core.pack_per_cycle} elements are packed in a cycle"
    return f"{once if before else each}; {rate}"


def plan(chip: MulticoreCpu, task: GemmTask) -> GemmPlan:
    """The planner: a plan for the product; `InputError` for sizes, threads and settings that cannot be."""
    asked = task.product
    sizes = {"m": asked.m, "n": asked.n, "k": asked.k, "threads": task.threads}
    mistakes = [Mistake(name, f"must be at least 1, got {size}") for name, size in sizes.items() if size < 1]
    if task.threads > len(chip.cores):
        text = f"must be at most {len(chip.cores)}, the number of cores, got {task.threads}"
        mistakes.append(Mistake("threads", text))
    refuse(mistakes)
    settings = planner.settings_of(task.settings)
    return planner.plan(chip.bare, asked, task.threads, settings, task.caches, packed=task.packed == "once")


def division(chip: MulticoreCpu, task: GemmTask, cut: Cut, relief: str = "plan") -> Division:
    """What a cut becomes with the sub-blocks and the buffer that the planner gives it, or with a relief."""
    check_word("relief", relief, RELIEFS)
    return cuts.division_of(chip.bare, task.product, cut, relief, packed=task.packed == "once")


def mn_cuts(task: GemmTask) -> Sequence[Cut]:
    """Every cut of rows and columns alone; the first one is that of BLIS's rule."""
    return cuts.mn_cuts(task.product, task.threads)


def cut_of(
    chip: MulticoreCpu, task: GemmTask, kind: str, parts: Sequence[int], sizes: Sequence[int] | None = None
) -> Cut:
    """The cut into so many parts, whether the planner proposes it or not.

    kind: a key of `lstmsim.machines.gemm.KINDS`.
    parts, sizes: of rows, columns and K: how many parts, and the size of each; None: as the planner cuts.
    `InputError` if the blocks do not hold the product, or are larger than it.
    """
    cut = cuts.cut_of_parts(chip, task.product, kind, parts)
    if sizes is not None:
        mb, nb, kb = sizes
        cut = replace(cut, mb=mb, nb=nb, kb=kb)
    steps.check_division(Division(task.product, cut))
    whole = {"mb": task.product.m, "nb": task.product.n, "kb": task.product.k}
    text = "must be at most {}, which is all of the product, got {}"
    given = {name: getattr(cut, name) for name in whole}
    refuse(Mistake(name, text.format(whole[name], size)) for name, size in given.items() if size > whole[name])
    return cut


def lower(chip: MulticoreCpu, task: GemmTask, division: Division) -> GemmWork:
    """The executor in time: the traffic of a division, and its program."""
    check_word("caches", task.caches, CACHES)
    return product.lowered(chip.bare, division, task.caches)


def figures(chip: MulticoreCpu, work: GemmWork, trace: Trace) -> GemmFigures:
    """The figures of the run of a program."""
    return product.figures_of(chip.bare, work, trace)


def computed(chip: MulticoreCpu, division: Division, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The executor in numbers: C of shape (m, n), summed up in the order of the division's steps."""
    return steps.computed(chip.bare, division, a, b)
