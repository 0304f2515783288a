"""What changes would have made of a run, as text: what helps most, then tables of single changes and of pairs."""

from __future__ import annotations

import textwrap

from lstmsim.analysis.explanations.what_if import Alternative, WhatIf
from lstmsim.base.wording import counted
from lstmsim.report.figures_text import percent
from lstmsim.report.tables import table

__all__ = ["filled", "what_if_lines"]

#: Pairs in the text: so many that save most cycles, and so many that use the multipliers best.
_MOST_PAIRS = 3
_WIDTH = 100


def what_if_lines(tried: WhatIf, utilization: float, advice: list[str]) -> list[str]:
    """The section as lines; no lines if nothing was tried.

    utilization: of the run without a change. advice: sentences that stand first.
    """
    known = [each for each in tried.alternatives if each.cycles is not None]
    refused = [each for each in tried.alternatives if each.cycles is None]
    lines = []
    if known:
        rows = [["change", "", "cycles", "saved", "", "utilization"]]
        rows.append(["as it is", "", f"{tried.base_cycles:,}", "", "", percent(utilization, 1)])
        rows += [_row(each, tried.base_cycles) for each in known]
        lines += table(rows, (0, 1))
    for each in known:
        if each.work != 1 and each.cycles is not None:
            per = each.cycles / each.work
            lines.append(filled(f"{each.name}: {each.work:.3g} times the work, {per:,.0f} cycles for what the run did"))
    lines += [filled(f"not possible: {each.name} ({each.detail}): {each.refused}") for each in refused]
    if tried.left_out:
        lines.append(filled(f"not tried, because the run is long: {', '.join(tried.left_out)}"))
    if not lines:
        return []
    count = counted(len(known), "change") + " alone"
    if tried.pairs:
        count += f" and {counted(len(tried.pairs), 'pair')} of them"
    return [
        f"WHAT WOULD SHORTEN IT: {count}, each simulated",
        *(filled(each, "") for each in advice),
        *lines,
        *_pairs(tried, utilization),
    ]


def _row(each: Alternative, base: int) -> list[str]:
    saved = f"{each.saved_cycles:,}" if each.saved_cycles else "no effect"
    saved_share = 100 * each.saved_cycles / base if base else 0.0
    share = f"{saved_share:.{1 if abs(saved_share) >= 0.05 else 2}f} %" if each.saved_cycles else ""
    return [each.name, each.detail, f"{each.cycles:,}", saved, share, percent(each.utilization, 1)]


def _pairs(tried: WhatIf, utilization: float) -> list[str]:
    """The pairs that do most, of those that do more than each of their changes alone, and how many were simulated."""
    alone = {each.name: each for each in tried.alternatives}

    def best(pair: Alternative, of: str, otherwise: float) -> float:
        return max(getattr(alone[name], of) if name in alone else otherwise for name in pair.pair or ())

    saving = [each for each in tried.pairs if each.saved_cycles > max(0, best(each, "saved_cycles", 0))]
    filling = [
        each for each in tried.pairs if each.utilization > max(utilization, best(each, "utilization", utilization))
    ]
    filling.sort(key=lambda each: -each.utilization)
    chosen = [*saving[:_MOST_PAIRS], *filling[:_MOST_PAIRS]]
    shown = [each for each in tried.pairs if each in chosen]
    lines = [""] if tried.pairs else []
    if shown:
        rows = [["pair that does more than each change alone", "cycles", "saved", "", "utilization"]]
        for each in shown:
            name, _, *cells = _row(each, tried.base_cycles)
            rows.append([name, *cells])
        lines += table(rows, (0,))
    elif tried.pairs:
        lines.append("no pair that was simulated does more than each of its changes alone")
    if tried.pairs_left_out is None:
        lines.append("pairs of changes were not tried, because the run is long")
    elif tried.pairs_left_out:
        count = len(tried.pairs)
        told = (
            f"{count:,} of {count + tried.pairs_left_out:,} pairs of which a change helps alone were simulated, the "
            "most promising first"
        )
        lines.append(filled(told))
    return lines


def filled(text: str, indent: str = "  ") -> str:
    """A sentence in lines of at most 100 columns; a percent sign stays with its number.

    text: the sentence. indent: what lines but the first begin with.
    """
    return textwrap.fill(text.replace(" %", "\xa0%"), _WIDTH, subsequent_indent=indent).replace("\xa0", " ")
