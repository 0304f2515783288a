"""Pictures of generated hardware: the simulator's timeline and that of the RTL, one above the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake
from lstmsim.studies.rtl.run import RtlReport
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import expect

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.rtl.picture import Row

__all__ = ["plot_rtl"]

_Span = tuple[int, int, int]


def plot_rtl(report: RtlReport, path: Path | None = None) -> Picture:
    """Draw which job issues when in each thread, and when the tail works: lstmsim above, the RTL below.

    report: what `run_rtl` gives with `verify=True`.
    path: the picture's file (.png, .svg or .pdf); None: no file.

    `InputError` if the RTL was not simulated.
    """
    from lstmsim.studies.rtl import picture as plots

    expect(report, (RtlReport,), "plot_rtl", "what run_rtl gives")
    verified = report.verified
    if verified is None:
        raise InputError(
            Mistake("plot_rtl", "the RTL was not simulated: expected what run_rtl(..., verify=True) gives")
        )
    cores = len(report.run.scenario.chip.cores)
    logs = (("lstmsim", report.events), ("RTL", verified.log))
    keys = sorted({key for _, log in logs for key in _issues(log, cores)})
    panels = [(name, _rows(log, keys, cores)) for name, log in logs]
    differs = min((each.cycle for each in verified.compared.differences), default=None)
    end = max((each.cycle + 1 for _, log in logs for each in log), default=1)
    scenario = report.run.scenario
    equal = "equal" if verified.equal else f"different from cycle {differs:,} on"
    title = f"{scenario.name} on {scenario.chip.name}: lstmsim and its RTL are {equal}"
    names = [scenario.jobs[place].name for place in report.hardware.posted(report.design)]
    return plots.plot(panels, names, end, scenario.chip.frequency_mhz, differs, path, title=title)


def _issues(log: Iterable[Event], cores: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """The issues by core and thread: cycle and job of each."""
    issues: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for each in log:
        # a field may be unknown in a log of hardware
        if each.kind == "I" and all(isinstance(field, int) for field in each.fields):
            core = int(each.fields[-1]) if cores > 1 else 0
            issues.setdefault((core, int(each.fields[0])), []).append((each.cycle, int(each.fields[1])))
    return issues


def _rows(log: Sequence[Event], keys: Sequence[tuple[int, int]], cores: int) -> list[Row]:
    """A row for each thread of each core, and one for the tail of each core."""
    from lstmsim.studies.rtl.picture import Row

    issues, rows = _issues(log, cores), []
    for core in sorted({core for core, _ in keys}):
        where = f"core {core} " if cores > 1 else ""
        for key in keys:
            if key[0] == core:
                rows.append(Row(f"{where}thread {key[1]}", _spans(issues.get(key, []))))
        turns = [(each.cycle, 0) for each in log if each.kind == "T" and (cores == 1 or each.fields[-1] == core)]
        rows.append(Row(f"{where}tail", tuple((-1, start, end) for _, start, end in _spans(turns))))
    return rows


def _spans(cycles: Iterable[tuple[int, int]]) -> tuple[_Span, ...]:
    """Cycles that follow each other with the same job, as one span.

    >>> _spans([(3, 0), (4, 0), (5, 1), (9, 1)])
    ((0, 3, 5), (1, 5, 6), (1, 9, 10))
    """
    spans: list[_Span] = []
    for cycle, job in cycles:
        if spans and spans[-1][0] == job and spans[-1][2] == cycle:
            spans[-1] = (job, spans[-1][1], cycle + 1)
        else:
            spans.append((job, cycle, cycle + 1))
    return tuple(spans)
