"""A timeline in words and as plain data: a record for each span."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.analysis.timeline import STATES, Timeline
from lstmsim.base.units import cycles_to_ms
from lstmsim.report.figures_text import four_digits
from lstmsim.report.results import Forms
from lstmsim.report.tables import table

__all__ = ["FORMS", "timeline_json", "timeline_records", "timeline_text"]


def timeline_records(timeline: Timeline) -> Iterator[dict[str, Any]]:
    """Yield each span with the names of its row, state and job. A value is None where there is none.

    `start` and `end` are cycles, `start <= cycle < end`.
    """
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    for row, start, end, state, job, layer, step in zip(*(each.tolist() for each in columns), strict=True):
        yield {
            "row": timeline.rows[row].name,
            "start": start,
            "end": end,
            "state": STATES[state],
            "job": None if job < 0 else timeline.jobs[job],
            "layer": None if layer < 0 else layer,
            "step": None if step < 0 else step,
        }


def timeline_json(timeline: Timeline) -> dict[str, Any]:
    """The timeline as plain data of schema `lstmsim/timeline/1`: the names once, and every span."""
    return {
        "schema": "lstmsim/timeline/1",
        "chip": timeline.chip,
        "frequency_mhz": timeline.frequency_mhz,
        "makespan_cycles": timeline.makespan_cycles,
        "window": None if timeline.window is None else list(timeline.window),
        "rows": [row.name for row in timeline.rows],
        "jobs": list(timeline.jobs),
        "spans": list(timeline_records(timeline)),
    }


def timeline_text(timeline: Timeline) -> str:
    """What a timeline shows, and for each row how many spans and how many busy cycles it has."""
    busy = STATES.index("busy")
    shown = [["row", "spans", "busy cycles"]]
    for number, row in enumerate(timeline.rows):
        own = timeline.row == number
        at_work = own & (timeline.state == busy)
        cycles = int((timeline.end - timeline.start)[at_work].sum())
        shown.append([row.name, f"{int(own.sum()):,}", f"{cycles:,}"])
    length = (
        f"{timeline.makespan_cycles:,} cycles = "
        f"{four_digits(cycles_to_ms(timeline.makespan_cycles, timeline.frequency_mhz))} ms"
    )
    length = f"{timeline.shown_text} cycles" if timeline.window else length
    title = f"{timeline.chip}: {length}, {len(timeline):,} spans of {len(timeline.jobs):,} jobs"
    return "\n".join([title, *table(shown, left=(0,))])


FORMS = Forms(timeline_json, timeline_text, timeline_records)
