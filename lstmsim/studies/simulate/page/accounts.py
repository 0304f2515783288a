"""The section on where the cycles and the PE-cycles went, core by core."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.analysis.cores_text import shown_accounts
from lstmsim.analysis.report import CoreReport, Report
from lstmsim.analysis.report_text import meaning, part_cycles, remedy
from lstmsim.report.html.markup import Markup, Section, element, joined, percent, region, table
from lstmsim.report.html.svg import Scale, bottom_axis, picture, rectangle, swatch, words
from lstmsim.studies.simulate.page.looks import state_class

__all__ = ["accounts_section"]

#: More cores than this are not drawn; the table has as many as `_TABLE_CORES`, closed above `_OPEN_CORES`.
_BARS, _TABLE_CORES, _OPEN_CORES = 48, 256, 8
_WIDTH, _LEFT, _RIGHT = 480, 52, 458
#: A bar shorter than this has no room for its share.
_ROOM = 38


def accounts_section(report: Report) -> Section:
    """Make the section: bars for every core, what each name means and how to get less of it, and a table."""
    pe_names = tuple(report.losses)
    bars = element(
        "div",
        _bars(f"{part_cycles(report)}: what the multipliers did", report, pe_names, pe=True),
        _bars(f"Cycles: what the {report.unit.name} did", report, report.accounts, pe=False),
        class_="pair",
    )
    numbers = _core_table(report)
    if len(report.cores) > _OPEN_CORES:
        numbers = element("details", element("summary", "Every core in numbers"), numbers)
    return Section("cycles", "Where the cycles went", joined([bars, _names(report), _busy_note(report), numbers]))


def _counts(core: CoreReport, pe: bool) -> Mapping[str, int]:
    return core.pe_cycles if pe else core.cycles


def _bars(title: str, report: Report, names: tuple[str, ...], pe: bool) -> Markup:
    shown = report.cores[:_BARS]
    height = 26 if len(shown) <= 8 else 13
    scale = Scale(0, 100, _LEFT, _RIGHT)
    parts = []
    for number, core in enumerate(shown):
        top, counts = 4 + number * (height + 5), _counts(core, pe)
        total, before = max(1, sum(counts.values())), 0
        parts.append(words(_LEFT - 6, top + height / 2 + 4, f"core {core.index}", "tick", "end"))
        for name in names:
            count = counts.get(name, 0)
            left, right = scale(100 * before / total), scale(100 * (before + count) / total)
            before += count
            if not count:
                continue
            share = f"{name}: {percent(count, total)}"
            text = f"core {core.index}, {share} ({count:,} {part_cycles(report) if pe else 'cycles'})"
            parts.append(
                rectangle(round(left, 2), top, round(right - left, 2), height, f"{state_class(name)} edge", text)
            )
            if name in ("useful", "busy", "padding") and right - left > _ROOM and height > 20:
                ink = "t0" if name != "padding" else "ink"
                place = (round((left + right) / 2, 1), top + height / 2 + 4)
                parts.append(words(*place, percent(count, total), f"{ink} on", "middle"))
    base = 4 + len(shown) * (height + 5)
    parts.append(bottom_axis(scale, base, "", [0, 25, 50, 75, 100], unit=" %"))
    drawn = picture(
        _WIDTH, base + 20, f"{title}, as bars for {len(shown)} cores; the table below has the numbers", *parts
    )
    hidden = len(report.cores) - len(shown)
    note = [element("p", f"and {hidden:,} more cores, in the table below", class_="note")] if hidden else []
    return element("figure", element("figcaption", title), drawn, *note)


def _names(report: Report) -> Markup:
    losses = report.losses
    total = sum(losses.values())
    rows = []
    for name, count in losses.items():
        if count:
            sample = joined([swatch(state_class(name)), name], "&nbsp;")
            text = meaning(name, report)
            advice = remedy(name, report)
            cell = joined([text, element("span", advice, class_="muted")], "<br>") if advice else text
            rows.append([sample, f"{count:,}", percent(count, total), cell])
    where = "all cores" if len(report.cores) > 1 else "the core"
    head = ["name", part_cycles(report), "share", "what it means, and what would lessen it"]
    return table(
        head, rows, left=(0, 3), caption=f"{part_cycles(report)} of {where}: a multiplier in a cycle, useful or not"
    )


def _busy_note(report: Report) -> Markup:
    text = f"In cycles, busy means that the {report.unit.name} issues work; its {part_cycles(report)} are useful"
    text += " and padding." if not report.losses.get("unmapped") else ", padding and unmapped."
    return element("p", text, class_="note")


def _core_table(report: Report) -> Markup:
    names, sizes = shown_accounts(report), report.columns
    rows = []
    for core in report.cores[:_TABLE_CORES]:
        values = (f"{core.columns[each]:,}" if each in core.columns else "–" for each in sizes)
        shape = [f"core {core.index}", *values, f"{100 * core.utilization:.1f} %"]
        counts = (core.cycles.get(name, 0) for name in names)
        whole = report.makespan_cycles * core.figures.ways
        cells = [joined([f"{count:,}", percent(count, whole)], "<br>") for count in counts]
        rows.append([*shape, *cells])
    head = ["core", *sizes, "useful", *names]
    hidden = len(report.cores) - len(rows)
    note = element("p", f"and {hidden:,} more cores", class_="note") if hidden else Markup("")
    return region("Cores in numbers", "scroll", table(head, rows, caption="Cycles by name, and their share"), note)
