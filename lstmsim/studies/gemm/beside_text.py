"""What stands beside a planned matrix product as text: the fastest that was simulated, M/N threads, reliefs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lstmsim.base.wording import counted
from lstmsim.report.figures_text import percent
from lstmsim.report.tables import table
from lstmsim.studies.gemm.headline import faster, gemm_headline
from lstmsim.studies.gemm.plan_text import cut_text, relief_text
from lstmsim.studies.gemm.runs import GemmRow
from lstmsim.studies.shared.product_text import folded, wrapped

if TYPE_CHECKING:
    from lstmsim.studies.gemm.run import GemmReport

__all__ = ["ablation_text", "beside_text", "verdict_text"]

_BLIS = "M/N by BLIS's rule"
_BEST = "the best M/N pair"


def verdict_text(report: GemmReport) -> str:
    """The cut to use, in one sentence; then its name, and what the planner's rule would have taken."""
    beside, caches = report.beside, report.caches
    best, plan, blis = beside.fastest(caches), beside.plans[caches], beside.blis
    count = len(beside.simulated)
    reliefs = [each.name for each in beside.ablations if each.division == best.division]
    tried = {each.division for each in (*beside.candidates, *beside.pairs) if each is not None}
    relief = f" with relief {reliefs[0]}" if reliefs and best.division not in tried else ""
    told = f"{cut_text(best.cut)}{relief}: "
    told += f"the fastest of {count} that were simulated" if count > 1 else "no other cut was simulated"
    if best.division == plan.division:
        told += "; the planner's rule takes the same"
    else:
        other = plan.cut.short if plan.cut != best.cut else f"the same with {relief_text(plan.division)}"
        told += f"; the planner's rule would have taken {other}, which takes "
        told += _longer(plan.cycles(caches), best.cycles(caches))
    if blis is not None and blis.division not in (best.division, plan.division):
        told += f"; {_against('it', best, blis, _BLIS, caches)}"
    return "\n".join([*folded(gemm_headline(report)), "", *wrapped("cut", told)])


def beside_text(report: GemmReport) -> list[str]:
    """The plan beside M/N threads and the fastest, with warm and with cold caches; empty: nothing is beside."""
    if report.beside.blis is None:
        return []
    states = (report.caches, report.other_caches)
    rows = [["beside the plan", "cut", *(head for each in states for head in (f"{each}: cycles", "/ plan"))]]
    rows += [_row(name, each, report, states) for name, each in _named(report, states)]
    lines = table(rows, left=[0, 1])
    for each in states:
        lines += wrapped(f"{each} caches", "; ".join(_sentences(report, each)))
    return ["\n".join(lines)]


def _named(report: GemmReport, states: tuple[str, ...]) -> list[tuple[str, GemmRow]]:
    """Rows by their names; the best ones of both states, if they are not the same."""
    beside = report.beside
    named = [("the plan", beside.planned)]
    other = beside.plans[report.other_caches]
    if other.division != beside.planned.division:
        named.append((other.name, other))
    if report.otherwise:
        named.append((f"this run{f', relief {report.relief}' if report.relief != 'plan' else ''}", beside.ran))
    if beside.by_shapes is not None:
        named.append((beside.by_shapes.name, beside.by_shapes))
    if beside.blis is not None:
        named.append((_BLIS, beside.blis))
    for name, best in ((_BEST, beside.best_pair), ("the fastest simulated", beside.fastest)):
        rows = {state: row for state in states if (row := best(state)) is not None}
        one = len({row.division for row in rows.values()}) == 1
        named += [(name if one else f"{name}, {state}", row) for state, row in [*rows.items()][: 1 if one else None]]
    return named


def _row(name: str, row: GemmRow, report: GemmReport, states: tuple[str, ...]) -> list[str]:
    cells = []
    for each in states:
        cycles = row.cycles(each)
        cells += [f"{cycles:,}", f"{cycles / report.beside.planned.cycles(each):.3f}"]
    return [name, row.cut.short, *cells]


def _sentences(report: GemmReport, caches: str) -> list[str]:
    beside, plan = report.beside, report.beside.plans[caches]
    blis, pair, best = beside.blis, beside.best_pair(caches), beside.fastest(caches)
    name = "the plan" if plan.division == beside.planned.division else f"the plan for them, {plan.cut.short},"
    told = [] if blis is None else [_against(name, plan, blis, _BLIS, caches)]
    if report.cut is not None:
        told += _about_given(report, caches)
    if pair is not None:
        count = beside.pairs_known
        told.append(_against(name, plan, pair, _BEST if count == 1 else f"{_BEST} (of {count})", caches))
        if blis is not None and plan.cut.p_k > 1 and pair.cycles(caches) < blis.cycles(caches):
            told[-1] += f" (which itself {_faster(pair.cycles(caches), blis.cycles(caches))} that of BLIS's rule)"
    # what speaks against the plan stands first
    told.sort(key=lambda each: "loses" not in each)
    if not beside.left_out:
        regret, known = plan.cycles(caches) - best.cycles(caches), f"{len(beside.simulated)} simulated"
        longer = f"it takes that much longer than the fastest of {known}, {best.cut.short}"
        share = percent(regret, best.cycles(caches))
        told.append(f"regret {share}: {longer if regret else f'it is the fastest of {known}'}")
    return told


def _about_given(report: GemmReport, caches: str) -> list[str]:
    """How the cut that was given is against the plan for such caches, and against the fastest."""
    beside, ran = report.beside, report.beside.ran
    plan, best = beside.plans[caches], beside.fastest(caches)
    told = [_against("this run", ran, plan, "the plan", caches)]
    if best.division != plan.division:
        told.append(_against("this run", ran, best, "the fastest simulated", caches))
    return told


def _against(who: str, plan: GemmRow, row: GemmRow, name: str, caches: str) -> str:
    """How fast a plan, in words `who`, is against another division."""
    if row.division == plan.division:
        return f"{who} is {name}, {row.cut.short}"
    mine, other = plan.cycles(caches), row.cycles(caches)
    if mine > other:
        return f"{who} loses to {name}, {row.cut.short}: it takes {_longer(mine, other)}"
    if mine == other:
        return f"{who} takes as long as {name}, {row.cut.short}"
    return f"{who} {_faster(mine, other)} {name}, {row.cut.short}"


def _longer(slow: int, fast: int) -> str:
    """How much longer `slow` cycles are than `fast` ones, in words.

    >>> _longer(15, 10), _longer(20_004, 20_000)
    ('1.500 times as long', '4 cycles longer')
    """
    return f"{counted(slow - fast, 'cycle')} longer" if _close(slow, fast) else f"{slow / fast:.3f} times as long"


def _faster(fast: int, slow: int) -> str:
    """That something of `fast` cycles is faster than something of `slow` ones, in words.

    >>> _faster(10, 15), _faster(20_000, 20_001)
    ('is 1.500 times as fast as', 'takes 1 cycle less than')
    """
    return f"{'takes' if _close(slow, fast) else 'is'} {faster(fast, slow)}"


def _close(slow: int, fast: int) -> bool:
    """Whether a ratio would read as 1, though they differ."""
    return f"{slow / fast:.3f}" == "1.000"


def ablation_text(report: GemmReport) -> list[str]:
    """The plan's cut under each relief; empty: it was not asked for, or there is nothing to compare."""
    given = report.beside.ablations
    if not given:
        return []
    states = (report.caches, report.other_caches)
    heads = [f"{report.caches}: cycles", "/ none", "waits for C", "buffers", f"{report.other_caches}: cycles", "/ none"]
    rows = [[f"relief, {given[0].cut.short}", *heads]]
    for each in given:
        figures = each.figures[report.caches]
        cycles = [[f"{each.cycles(s):,}", f"{each.cycles(s) / given[0].cycles(s):.3f}"] for s in states]
        middle = [f"{figures.waits.get('contention', 0):,}", f"{figures.buffer_bytes:,}"]
        rows.append([each.name, *cycles[0], *middle, *cycles[1]])
    same = [each.name for each in given if each.division == report.beside.planned.division]
    told = "none: a lock round the whole block while it is computed, so it is no fair baseline"
    if same:
        told += f"; the plan is {same[0]}"
    elif report.cut is None:
        told += f"; none of these is the plan, which has {relief_text(report.beside.planned.division)}"
    return ["\n".join([*table(rows, left=[0]), *folded(told)])]
