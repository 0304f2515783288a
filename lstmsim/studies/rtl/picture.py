"""What the simulator and generated hardware did over time, one above the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from lstmsim.analysis.timeline import named_groups
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.rtl import Event
from lstmsim.report.pictures.figures import Picture, drawn, job_style, set_time, short
from lstmsim.report.styles import SCREEN, Look, Style
from lstmsim.studies.rtl.result import RtlReport
from lstmsim.studies.shared.loading import Path

_DIFFERS, _ALIKE = "#D00000", Style("#555555")
#: Most jobs that the legend names.
_MOST_NAMED = 8


@record
class Row:
    """A row of the picture."""

    name: str  # of the row
    # job (-1: all jobs alike), first cycle, and the cycle after the last one, of each span
    spans: tuple[tuple[int, int, int], ...]


def plot(
    panels: Sequence[tuple[str, Sequence[Row]]],
    jobs: Sequence[str],
    cycles: int,
    frequency_mhz: float,
    differs: int | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str = "",
    look: Look = SCREEN,
) -> Picture:
    """Draw panels (a name, and rows from the top) one above the other over the same time, and mark the cycle `differs`
    from which on they are different.
    """
    groups = named_groups(jobs) or tuple(jobs)
    names = list(dict.fromkeys(groups))
    place = {name: number for number, name in enumerate(names)}
    colour = [place[each] for each in groups]
    inches = max(0.9, min(4.0, 0.28 * max(len(each) for _, each in panels)))
    with drawn(path, (11, len(panels) * inches + 1.6), look=look) as figure:
        axes = list(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0])
        for each, (panel, its) in zip(axes, panels, strict=True):
            _draw(each, panel, its, colour)
            if differs is not None:
                each.axvline(differs, color=_DIFFERS, linewidth=1.0)
        set_time(axes[0], axes[-1], 0, max(1, cycles), frequency_mhz)
        figure.head([short(title, 130)], axes[0], loc="left")
        shown = {job for _, its in panels for row in its for job, _, _ in row.spans} - {-1}
        used = sorted({colour[job] for job in shown})[:_MOST_NAMED]
        patches = [_patch(each) for each in used]
        figure.name(patches, [short(names[each]) for each in used], below=True)
    return figure


def _patch(colour: int) -> Patch:
    look = job_style(colour)
    return Patch(facecolor=look.fill, edgecolor=look.ink, hatch=look.hatch, linewidth=0)


def _draw(axes: Axes, panel: str, rows: Sequence[Row], colour: Sequence[int]) -> None:
    """Draw the rows of a panel."""
    for place, row in enumerate(rows):
        for job in sorted({each[0] for each in row.spans}):
            look = job_style(colour[job]) if job >= 0 else _ALIKE
            shapes = [
                [(start, place - 0.4), (end, place - 0.4), (end, place + 0.4), (start, place + 0.4)]
                for own, start, end in row.spans
                if own == job
            ]
            axes.add_collection(
                # snapped to pixels, spans below a pixel would vanish or grow
                PolyCollection(
                    shapes,
                    facecolors=look.fill,
                    edgecolors=look.ink,
                    hatch=look.hatch or None,
                    linewidths=0,
                    snap=False,
                )
            )
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel(panel)


_Span = tuple[int, int, int]


def plot_rtl(report: RtlReport, path: Path | None = None, *, look: Look = SCREEN) -> Picture:
    """Draw which job issues when in each thread, and when the tail works: lstmsim above, the RTL below.

    report: what `run_rtl` gives with `verify=True`.
    path: the picture's file (.png, .svg or .pdf); None: no file.
    look: how wide it is, and what it is made for.

    `InputError` if the RTL was not simulated.
    """
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
    return plot(panels, names, end, scenario.chip.frequency_mhz, differs, path, title=title, look=look)


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
