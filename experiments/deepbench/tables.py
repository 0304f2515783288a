"""The tables of a comparison as Markdown: machines, milliseconds, TOPS, and how many times as fast the first one is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lstmsim.report.figures_text import three_digits
from lstmsim.studies.compare.published import FITTED, model_errors
from lstmsim.studies.compare.report import about_first_step
from lstmsim.studies.compare.result import Comparison, Machine


def machines_markdown(comparison: Comparison) -> list[str]:
    """Write the lines of a table of the machines: PEs, clock, peak, precision; then how far off models are."""
    rows = []
    for each in comparison.machines:
        kind = "published" if each.published else "simulated"
        rows.append(
            [f"{each.name} ({kind})", *map(_number, (each.pes, each.frequency_mhz, each.peak_tops)), each.precision]
        )
    table = _table(["machine", f"{comparison.part}s", "MHz", "peak TOPS", "precision"], rows)
    errors = [f"* Simulated / published, {each.sentence}." for each in model_errors(comparison)]
    return [*table, *errors, f"* {FITTED}", ""] if errors else table


def comparison_markdown(
    comparison: Comparison, starred: Collection[tuple[str, str]] = (), beside: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Write the lines of three tables: milliseconds; TOPS with utilization; how many times as fast the base is.

    The last table has, for each other machine, 1 / speed-up and the geometric mean. Published figures have the digits
    that were printed.
    """
    machines, others = comparison.machines, range(1, len(comparison.machines))
    titles = ["task", *(f"{each.name}{' (published)' if each.published else ''}" for each in machines)]
    ms, tops, faster = [], [], []
    for row, (workload, entries) in enumerate(zip(comparison.workloads, comparison.entries, strict=True)):
        name = workload.name
        pairs = list(zip(entries, machines, strict=True))
        stars = ["\\*" if (name, each.name) in starred else "" for each in machines]
        times = [_number(entry.ms, machine) for entry, machine in pairs]
        ms.append([name, *(text + star for text, star in zip(times, stars, strict=True))])
        shares = ["" if each.utilization is None else f" ({100 * each.utilization:.1f})" for each in entries]
        values = [_number(entry.tops, machine) for entry, machine in pairs]
        tops.append([name, *(value + share for value, share in zip(values, shares, strict=True))])
        faster.append([name, *(_times(comparison.speedup(row, column)) for column in others)])
    means = [_times(comparison.mean_speedup(column)) for column in others]
    lines = ["Milliseconds:", "", *_table(titles, ms)]
    lines += ["TOPS (in brackets: utilization in %):", "", *_table(titles, tops)]
    lines += [f"{machines[0].name} is so many times as fast:", ""]
    extra = beside or {}
    last = [[*row, *(texts[number] for texts in extra.values())] for number, row in enumerate(faster)]
    last.append(["geometric mean", *means, *("" for _ in extra)])
    return [*lines, *_table(["task", *titles[2:], *extra], last), *_later_steps(comparison, titles)]


def _later_steps(comparison: Comparison, titles: Sequence[str]) -> list[str]:
    """The last table by later steps, with a sentence for each pair; nothing where no machine begins cold."""
    others = range(1, len(comparison.machines))
    pairs = [(row, column) for row in range(len(comparison.workloads)) for column in others]
    names = [comparison.workloads[row].name for row, _ in pairs]
    texts = [about_first_step(comparison, row, column) for row, column in pairs]
    reported = [f"* {name}: {text}." for name, text in zip(names, texts, strict=True) if text]
    if not reported:
        return []
    rows = [
        [workload.name, *(_times(comparison.later_speedup(row, column)) for column in others)]
        for row, workload in enumerate(comparison.workloads)
    ]
    rows.append(["geometric mean", *(_times(comparison.mean_later_speedup(column)) for column in others)])
    head = f"{comparison.machines[0].name} is so many times as fast by later steps, without the first:"
    return [head, "", *_table(["task", *titles[2:]], rows), *reported, ""]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in [head, *rows]]
    return [lines[0], "| --- |" + " ---: |" * (len(head) - 1), *lines[1:], ""]


def _times(speedup: float | None) -> str:
    return "" if speedup is None else _number(1 / speedup)


def _number(value: float | None, machine: Machine | None = None) -> str:
    """Three digits, and all before the point; figures of a published machine have the digits that were printed."""
    if value is None:
        return ""
    if machine is not None and machine.published:
        return f"{value:g}"
    return three_digits(value)
