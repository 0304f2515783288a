"""The plan of a threaded matrix product as text: what is planned, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lstmsim.base.wording import counted, listed
from lstmsim.machines.gemm import CONDITIONS, Cut, Division, SubBlocks
from lstmsim.report.tables import table
from lstmsim.studies.gemm.beside import BY_SHAPES
from lstmsim.studies.shared.product_text import wrapped

if TYPE_CHECKING:
    from lstmsim.studies.gemm.run import GemmReport

__all__ = ["RECONSTRUCTION", "cut_text", "plan_text", "relief_text"]

RECONSTRUCTION = (
    "the planner is a reconstruction: the patent on threads along K says which quantities are weighed and ranked, and "
    "gives no formula, weight or limit"
)
#: Sub-blocks in the text; the others are counted.
_MOST_SUB_BLOCKS = 3


def plan_text(report: GemmReport) -> str:
    """What is planned, the candidates with their conditions, what was dropped."""
    parts = [_plan(report), _candidates(report), _conditions(report)]
    idle = ", ".join(each.short for each in report.plan.idle)
    parts.append("\n".join(wrapped("idle cuts", f"{idle}: threads would have nothing to do" if idle else "none")))
    return "\n\n".join(parts)


def _plan(report: GemmReport) -> str:
    plan = report.plan
    cut, chosen = plan.division.cut, plan.ranked[plan.chosen]
    told = f"{cut_text(cut)}, blocks of {_size(cut)}; rank {plan.chosen} of {counted(len(plan.ranked), 'candidate')}, "
    told += f"fitness {chosen.fitness:.6f}"
    if plan.chosen:
        told += f"; {counted(plan.chosen, 'candidate')} before it could not be accepted"
    lines = wrapped("plan", told)
    if cut.p_k > 1:
        lines += wrapped("", f"{cut.p_k} threads add into each block of C: {relief_text(plan.division)}")
        rest = [
            f"{_sub_blocks(each.sub_blocks)} {each.fitness:.4f}" for each in plan.sub_ranked[1 : 1 + _MOST_SUB_BLOCKS]
        ]
        more = len(plan.sub_ranked) - 1 - len(rest)
        if rest:
            lines += wrapped("", f"next best sub-blocks: {', '.join(rest)}" + (f" and {more} more" if more > 0 else ""))
    if report.division != report.beside.planned.division or report.otherwise:
        why = report.otherwise or f"cut {report.division.cut.short}, the fastest that was simulated"
        lines += wrapped("", f"what runs, by {why}: {_what_runs(report)}")
    blocks = ", ".join(f"{name} {size:,}" for name, size in plan.blocks.items())
    lines += wrapped("", f"blocks that fit the caches: {blocks}")
    changed = ", ".join(f"{name} {report.settings[name]}" for name in report.task.settings)
    lines += wrapped("planner", RECONSTRUCTION + (f"; changed: {changed}" if changed else ""))
    given = " ".join(f"--set {name}={value}" for name, value in report.machine.by_shapes.items())
    return "\n".join([*lines, *wrapped("", f"{BY_SHAPES}: {given}; {report.machine.meanings['by_shapes']}")])


def _what_runs(report: GemmReport) -> str:
    """What runs in the plan's place: another cut, or the plan's cut with another relief."""
    relief, cut = relief_text(report.division), report.division.cut
    if cut == report.plan.division.cut:
        return relief
    ranked = [each.cut for each in report.plan.ranked]
    rank = f"rank {ranked.index(cut)} of the candidates" if cut in ranked else "none of the candidates"
    return f"{_parts(cut)} cut, blocks of {_size(cut)}, {rank}; {relief}"


def cut_text(cut: Cut) -> str:
    """A cut, and what it cuts.

    >>> cut_text(Cut("MN", 1, 8, 1, 8, 8, 8))
    'MN 1x8x1 (p_m x p_n x p_k: columns of C are cut)'
    """
    return f"{cut.short} (p_m x p_n x p_k: {_parts(cut)} cut)"


def _parts(cut: Cut) -> str:
    """What is cut into more than one part, with its verb.

    >>> [_parts(Cut("MK", p_m, 1, p_k, 8, 8, 8)) for p_m, p_k in ((4, 2), (4, 1), (1, 8), (1, 1))]
    ['rows of C and K are', 'rows of C are', 'K is', 'nothing is']
    """
    sides = [name for name, parts in {"rows": cut.p_m, "columns": cut.p_n}.items() if parts > 1]
    named = [*([f"{listed(sides, 'and')} of C"] if sides else []), *(["K"] if cut.p_k > 1 else [])]
    return f"{listed(named, 'and')} {'are' if sides else 'is'}"


def _size(cut: Cut) -> str:
    return f"{cut.mb:,} x {cut.nb:,} x {cut.kb:,} (m x n x k)"


def _sub_blocks(each: SubBlocks) -> str:
    return f"{each.s_m} x {each.s_n} of {each.sm} x {each.sn}"


def relief_text(division: Division) -> str:
    """How threads that add into the same block keep out of each other's way, in words."""
    if division.cut.p_k == 1:
        return "no two threads add into the same block"
    buffer = "each in a buffer of its own, added into C at the end" if division.buffer else "no buffers"
    if division.sub_blocks is None:
        return f"no sub-blocks; {buffer}"
    return f"sub-blocks {_sub_blocks(division.sub_blocks)}, visited in rotated order; {buffer}"


def _candidates(report: GemmReport) -> str:
    plan, rows = report.plan, [["rank", "cut", "mb x nb x kb", "fitness", "cycles", "/ plan", ""]]
    base = report.planned_cycles
    # of one alone nobody can say that it is the fastest
    best = report.beside.fastest(report.caches).cut if len(report.beside.simulated) > 1 else None
    for rank, (of, ran) in enumerate(zip(plan.ranked, report.beside.candidates, strict=True)):
        cycles = None if ran is None else ran.cycles(report.caches)
        verdict = f"rejected: {', '.join(of.why_not)}" if of.why_not else "accepted" if rank > plan.chosen else "chosen"
        verdict += ", fastest" if of.cut == best else ""
        size = f"{of.cut.mb} x {of.cut.nb} x {of.cut.kb}"
        numbers = ["-", "-"] if cycles is None else [f"{cycles:,}", f"{cycles / base:.3f}"]
        rows.append([str(rank), of.cut.short, size, f"{of.fitness:.6f}", *numbers, verdict])
    return "\n".join(table(rows, left=[1, 2, 6]))


def _conditions(report: GemmReport) -> str:
    rows = [["raw (norm.)", *CONDITIONS]]
    for of in report.plan.ranked:
        cells = (f"{_short(of.raw[name])} ({of.normalised[name]:.2f})" for name in CONDITIONS)
        rows.append([of.cut.short, *cells])
    rows.append(["weight", *(f"{report.settings[name]:g}" for name in CONDITIONS)])
    told = [line for name in CONDITIONS for line in wrapped(name, report.machine.meanings.get(name, ""))]
    about = wrapped("norm.", "normalised: 1 is the best of the candidates, the others have their ratio to it")
    return "\n".join([*table(rows, left=[0]), *told, *about])


def _short(value: float) -> str:
    """A number of few letters.

    >>> _short(0.0442), _short(16.0), _short(4260000.0)
    ('0.044', '16', '4.26M')
    """
    for letter, size in {"G": 1e9, "M": 1e6, "k": 1e3}.items():
        if value >= 10 * size or (value >= size and letter != "k"):
            return f"{value / size:.3g}{letter}"
    return f"{value:.4g}" if value >= 1 else f"{value:.2g}"
