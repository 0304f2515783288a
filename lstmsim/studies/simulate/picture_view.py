"""The part of a timeline that a picture shows: chosen rows, a window of time, spans clipped and joined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lstmsim.analysis.drawn import Spans, spans_of
from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake

__all__ = ["View", "view_of"]


@dataclass(frozen=True, eq=False)
class View(Spans):
    """Spans to draw.

    start_cycle, end_cycle: the window of time.
    cores: numbers of the chosen cores.
    """

    start_cycle: int
    end_cycle: int
    cores: tuple[int, ...]


def view_of(timeline: Timeline, start: int | None, end: int | None, cores: Iterable[int] | None) -> View:
    """Give the part of a timeline to draw; one `InputError` for windows and cores that it does not have.

    start, end: cycles; None: from the first, to the last that the timeline shows.
    cores: their numbers; None: all.
    """
    low, high, chosen = _window(timeline, start, end, cores)
    return View(**vars(spans_of(timeline, (low, high), chosen)), start_cycle=low, end_cycle=high, cores=chosen)


def _window(
    timeline: Timeline, start: int | None, end: int | None, cores: Iterable[int] | None
) -> tuple[int, int, tuple[int, ...]]:
    """Start, end and cores of the view; `InputError` for all that is wrong."""
    (first, last), mistakes = timeline.shown, []
    low = first if start is None else start
    high = last if end is None else min(end, last)
    known = sorted({row.core for row in timeline.rows})
    chosen = sorted(set(known if cores is None else cores))
    if last < 1 or not known:
        mistakes.append(Mistake("timeline", "nothing to draw: it has no cycles"))
    elif not first <= low < last:
        mistakes.append(Mistake("start", f"must be a cycle of the timeline, {first} to {last - 1}, got {low}"))
    elif high <= low:
        mistakes.append(Mistake("end", f"must be after the start {low}, got {end}"))
    for core in chosen:
        if core not in known and known:
            mistakes.append(Mistake("cores", f"no core {core} in this timeline, it has {_listed(known)}"))
    if not chosen and known:
        mistakes.append(Mistake("cores", f"choose at least one of {_listed(known)}"))
    if mistakes:
        raise InputError(mistakes)
    return low, high, tuple(chosen)


def _listed(cores: list[int]) -> str:
    """Core numbers, as a range where they follow each other."""
    whole = len(cores) > 2 and cores == list(range(cores[0], cores[-1] + 1))
    return f"{cores[0]} to {cores[-1]}" if whole else ", ".join(map(str, cores))
