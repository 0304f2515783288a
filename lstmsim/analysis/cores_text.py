"""Where the cycles of each core went, as a table: of a few cores each, of many cores the extremes and the sum."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.analysis.report import CoreReport, Report
from lstmsim.program.cycles import CYCLES, names_of
from lstmsim.report.figures_text import percent
from lstmsim.report.tables import table

__all__ = ["cores_text", "shown_accounts"]

#: Most cores with rows of their own.
_MOST_CORES = 16

#: Most names for which a table has room even if nothing bears them.
_MOST_NAMES = 9


def shown_accounts(report: Report) -> tuple[str, ...]:
    """The names of cycles for a table: of a machine with many names only the stalls that occur.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> shown_accounts(Report("chip", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0)))
    ()
    """
    names = report.accounts
    if len(names) <= _MOST_NAMES and not any(each.before_work and each.name in names for each in CYCLES):
        return names
    always = names_of("work", "rest")
    return tuple(each for each in names if each in always or any(core.cycles.get(each) for core in report.cores))


def cores_text(report: Report) -> str:
    """The table of the cores, with a row of cycles and a row of shares for each.

    Of more than 16 cores it has the busiest, the least busy and the sum of all.

    >>> from lstmsim.analysis.report import LatencyMs
    >>> print(cores_text(Report("chip", "fast", 260.0, 0, (), (), 0.0, 0.0, LatencyMs(0.0, 0.0, 0.0, 0.0, 0.0))))
    CORES: where the cycles went
    core  useful
    """
    names = shown_accounts(report)
    rows = [["core", *report.columns, "useful", *names]]
    many = len(report.cores) > _MOST_CORES
    for label, cores in _summed(report.cores) if many else [(str(core.index), [core]) for core in report.cores]:
        rows += _rows(report, label, cores, names)
    notes = [f"{len(report.cores):,} cores; --json FILE has each of them"] if many else []
    return "\n".join(["CORES: where the cycles went", *table(rows), *notes])


def _summed(cores: Sequence[CoreReport]) -> list[tuple[str, Sequence[CoreReport]]]:
    """The core with the most busy cycles, the one with the fewest, and all of them."""
    by_work = sorted(cores, key=lambda core: -core.cycles.get("busy", 0))
    most, least = by_work[0], by_work[-1]
    return [(f"busiest, {most.index}", [most]), (f"least busy, {least.index}", [least]), ("sum of all", cores)]


def _rows(report: Report, label: str, cores: Sequence[CoreReport], names: Sequence[str]) -> list[list[str]]:
    """Two rows: cycles of these cores by name, and their shares."""
    sizes = [_size(cores, name) for name in report.columns]
    useful = cores[0].utilization if len(cores) == 1 else report.utilization
    counts = [sum(core.cycles.get(name, 0) for core in cores) for name in names]
    whole = report.makespan_cycles * sum(core.figures.ways for core in cores)
    shares = (percent(count, whole, "-") for count in counts)
    shape = [label, *sizes, f"{100 * useful:.1f} %"]
    return [[*shape, *(f"{count:,}" for count in counts)], ["" for _ in shape] + [*shares]]


def _size(cores: Sequence[CoreReport], name: str) -> str:
    """A size that all these cores have, or a dash."""
    sizes = {core.columns.get(name) for core in cores}
    size = sizes.pop()
    return "-" if sizes or size is None else str(size)
