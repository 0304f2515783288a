"""The first sentence on a matrix product's threads: what to cut, and what that is against the other kind of cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lstmsim.base.wording import counted, listed
from lstmsim.machines.gemm import Cut

if TYPE_CHECKING:
    from lstmsim.studies.gemm.run import GemmReport
    from lstmsim.studies.gemm.scaling import GemmScaling

__all__ = ["faster", "gemm_headline", "scaling_headline"]


def gemm_headline(report: GemmReport) -> str:
    """Say in a sentence which cut is fastest of those that were simulated, and what cutting K gains or costs.

    report: the product; cuts of K stand against cuts of M and N alone.
    """
    beside, caches = report.beside, report.caches
    best = beside.fastest(caches)
    told = f"{_cut(best.cut)}: {best.cycles(caches):,} cycles with {caches} caches"
    alone = len(beside.simulated) == 1
    left = counted(beside.left_out, "candidate" if alone else "other candidate")
    if beside.left_out and alone:
        return f"the planner's rule takes {told}; no other cut was simulated; {left} may be faster, ask for --baselines"
    told = f"use {told}"
    others = [each for each in beside.simulated if (each.cut.p_k > 1) != (best.cut.p_k > 1)]
    kind = "M/N cut" if best.cut.p_k > 1 else "cut of K"
    if others:
        other = min(others, key=lambda each: each.cycles(caches))
        told += f", {faster(best.cycles(caches), other.cycles(caches))} the fastest {kind}, {other.cut.short}"
    elif report.threads > 1:
        told += f"; no {kind} was simulated"
    if beside.left_out:
        told = f"of what was simulated, {told}; {left} may be faster, ask for --baselines"
    return told


def scaling_headline(scaling: GemmScaling) -> str:
    """Say in a sentence which of several numbers of threads is fastest; of equals the fewest threads.

    scaling: the product on these numbers of threads.
    """
    caches = scaling.caches
    used = {each.threads: scaling.fastest(each, caches) for each in scaling.reports}
    threads = min(used, key=lambda each: (used[each].cycles(caches), each))
    cycles, one = used[threads].cycles(caches), scaling.fastest(scaling.one, caches).cycles(caches)
    few = "of what was simulated, " if any(each.beside.left_out for each in scaling.reports) else ""
    told = f"{few}of {listed(sorted(used), 'and')} threads use {threads}, {_cut(used[threads].cut)}: "
    told += f"{cycles:,} cycles with {caches} caches"
    return told if threads == 1 else f"{told}, {faster(cycles, one)} one thread"


def _cut(cut: Cut) -> str:
    """What is cut into how many parts.

    >>> _cut(Cut("NK", 1, 4, 16, 8, 8, 8)), _cut(Cut("MN", 1, 1, 1, 8, 8, 8))
    ('N in 4 and K in 16', 'one thread')
    """
    parts = {"M": cut.p_m, "N": cut.p_n, "K": cut.p_k}
    return listed([f"{name} in {count}" for name, count in parts.items() if count > 1] or ["one thread"], "and")


def faster(fast: int, slow: int) -> str:
    """That something of `fast` cycles is faster than something of `slow` ones, in words that end before its name.

    fast, slow: cycles of the two.

    >>> faster(10, 15), faster(20_000, 20_001), faster(7, 7)
    ('1.500 times as fast as', '1 cycle less than', 'as fast as')
    """
    if fast == slow:
        return "as fast as"
    if f"{slow / fast:.3f}" == "1.000":
        return f"{counted(slow - fast, 'cycle')} less than"
    return f"{slow / fast:.3f} times as fast as"
