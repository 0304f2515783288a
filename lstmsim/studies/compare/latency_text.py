"""Latencies in a comparison, as text and as plain data; and what may be said about which machine is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lstmsim.report.figures_text import percent, three_digits
from lstmsim.studies.compare.latencies import PERCENTILES, Latencies, not_comparable
from lstmsim.studies.compare.result import Comparison
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.load import VERDICTS

__all__ = ["LATENCY_COLUMNS", "latency_figures", "latency_json", "latency_notes", "latency_row", "latency_verdicts"]

#: The columns of the CSV about latencies.
LATENCY_COLUMNS = (
    *("requests", "turned_away", "misses", "offered_load", "threads_taken", "verdict", "last_arrival_ms"),
    *("latency_mean_ms", "latency_mean_half_width_ms"),
    *(f"latency_p{each}_{what}" for each in PERCENTILES for what in ("ms", "half_width_ms")),
    *("mean_latency_ratio", "p99_latency_ratio", "sooner"),
)
#: What the way in which jobs come means for a comparison, a key of `lstmsim.model.arriving.ARRIVING`.
_WAYS = {
    "at once": "",
    "open": "The jobs come over time, at the same times to every chip.",
    "closed": "Some jobs come after others have been answered, so a faster chip is asked sooner.",
}
#: A p99 of fewer requests is hardly less than the maximum.
_FEWEST_FOR_P99 = 100

Cell = Callable[[int, int], str | None]


def latency_figures(comparison: Comparison) -> dict[str, Cell]:
    """Give the figures about latencies that are shown of an entry, in order; none where all jobs come at once.

    The result gives for each title a function of row and column.
    """
    known = [each.latencies for row in comparison.entries for each in row if each.latencies is not None]
    if not known:
        return {}

    def of(text: Callable[[Latencies], str | None]) -> Cell:
        def cell(row: int, column: int) -> str | None:
            own = comparison.entries[row][column].latencies
            return None if own is None else text(own)

        return cell

    cells = {"requests served": of(lambda own: f"{own.requests:,}")}
    if any(own.turned_away for own in known):
        cells["turned away"] = of(_turned_away)
    if any(own.misses is not None for own in known):
        cells["late"] = of(lambda own: None if own.misses is None else _part(own.misses, own.requests))
    cells["mean latency ms"] = of(lambda own: _interval(own.mean))
    for each in PERCENTILES:
        cells[f"p{each} latency ms"] = of(lambda own, each=each: _interval(own.percentiles[each]))  # type: ignore[misc]
    if any(own.offered_load is not None for own in known):
        cells["offered load"] = of(lambda own: None if own.offered_load is None else f"{own.offered_load:#.3g}")
    cells["threads taken"] = of(lambda own: f"{100 * own.threads_taken:.1f} %")
    cells["verdict"] = of(lambda own: own.verdict)
    cells["times as fast (mean)"] = lambda row, column: _ratio(comparison.latency_ratio(row, column))
    cells["times as fast (p99)"] = lambda row, column: _ratio(comparison.latency_ratio(row, column, 99))
    cells["requests sooner"] = of(lambda own: None if own.sooner is None else _part(own.sooner, own.requests))
    return cells


def _turned_away(own: Latencies) -> str:
    return _part(len(own.turned_away), own.requests + len(own.turned_away))


def _part(count: int, whole: int) -> str:
    return f"{count:,} ({percent(count, whole)})"


def _interval(each: Interval) -> str:
    value = three_digits(each.value)
    return f"{value} (too few)" if each.half_width is None else f"{value} +- {each.half_width:.2g}"


def _ratio(value: float | None) -> str | None:
    return None if value is None else three_digits(value)


def latency_notes(comparison: Comparison) -> list[str]:
    """Write paragraphs on how the latencies were measured, and what they leave open."""
    base = comparison.machines[0].name
    (row,) = comparison.entries
    known = [(machine.name, each.latencies) for machine, each in zip(comparison.machines, row, strict=True)]
    own = [(name, each) for name, each in known if each is not None]
    if not own:
        return []
    notes = [
        f"{_WAYS[comparison.way]} Latency: from arrival to finish, without the first "
        "requests (warm-up); +- is half of a 95 % interval, and 'too few' says that there are too few requests to tell "
        f"how far another run would be from this one. Times as fast: latency of {base} / latency of the machine."
    ]
    if comparison.way == "open":
        notes.append(_makespans(comparison))
    if min(each.requests for _, each in own) < _FEWEST_FOR_P99:
        notes.append(f"A p99 of fewer than {_FEWEST_FOR_P99} requests is hardly less than the maximum of this run.")
    for verdict in ("unstable", "cannot tell", "no steady state"):
        which = [name for name, each in own if each.verdict == verdict]
        if which:
            notes.append(f"{verdict} on {', '.join(which)}: {VERDICTS[verdict]}.")
    if any(each.turned_away for _, each in own):
        notes.append("All figures are of the requests that were served: who turns more of them away has less to do.")
    return notes


def _makespans(comparison: Comparison) -> str:
    """Say which part of each makespan no chip can shorten."""
    shares = comparison.before_last_arrival
    least, most = (f"{100 * share:.3g} %" for share in (min(shares), max(shares)))
    before = least if least == most else f"{least} to {most}"
    what = "The ratio of makespans is fixed by the arrivals" if comparison.by_latency else "Makespans"
    return f"{what}: {before} of the makespans are over when the last request comes, whatever the chip does."


def latency_verdicts(comparison: Comparison) -> list[str]:
    """Say for each other machine whether the base's latency is longer, as far as this run can tell."""
    (row,) = comparison.entries
    base, lines = row[0].latencies, []
    for column, machine in enumerate(comparison.machines[1:], start=1):
        other = row[column].latencies
        if base is None or other is None:
            lines.append(f"than {machine.name}: not known")
            continue
        lines.append(f"than {machine.name}: {_verdict(comparison, base, other, column)}")
    return lines


def _verdict(comparison: Comparison, base: Latencies, other: Latencies, column: int) -> str:
    reason = not_comparable(base, other)
    if reason:
        return f"not comparable; {reason}"
    ratio = comparison.latency_ratio(0, column)
    assert ratio is not None
    run = f"{ratio:.3g} times as long"
    if base.mean.half_width is None or other.mean.half_width is None:
        return f"too few requests to tell; in this run {run}{_sooner(other)}"
    apart = abs(base.mean.value - other.mean.value) > base.mean.half_width + other.mean.half_width
    if not apart:
        return f"cannot tell, the intervals of the means overlap; in this run {run}{_sooner(other)}"
    return f"{'yes' if ratio > 1 else 'no'}, {run}{_sooner(other)}"


def _sooner(other: Latencies) -> str:
    return "" if other.sooner is None else f"; {other.sooner:,} of {other.requests:,} requests are sooner there"


def latency_json(comparison: Comparison, row: int, column: int) -> dict[str, Any] | None:
    """Give the latencies of an entry as plain data; None where it has none."""
    own = comparison.entries[row][column].latencies
    if own is None:
        return None
    named = {"mean": own.mean, **{f"p{each}": own.percentiles[each] for each in PERCENTILES}}
    return {
        "requests": own.requests,
        "turned_away": len(own.turned_away),
        "misses": own.misses,
        **{f"{name}_ms": {"value": each.value, "half_width": each.half_width} for name, each in named.items()},
        "offered_load": own.offered_load,
        "threads_taken": own.threads_taken,
        "verdict": own.verdict,
        "last_arrival_ms": own.last_arrival_ms,
        "mean_latency_ratio": comparison.latency_ratio(row, column),
        "p99_latency_ratio": comparison.latency_ratio(row, column, 99),
        "sooner": own.sooner,
    }


def latency_row(comparison: Comparison, row: int, column: int) -> dict[str, Any]:
    """Give the latencies of an entry by `LATENCY_COLUMNS`; None for unknown figures."""
    data = latency_json(comparison, row, column)
    if data is None:
        return dict.fromkeys(LATENCY_COLUMNS)
    intervals = {name: data[f"{name}_ms"] for name in ("mean", *(f"p{each}" for each in PERCENTILES))}
    values = {f"latency_{name}_ms": each["value"] for name, each in intervals.items()}
    halves = {f"latency_{name}_half_width_ms": each["half_width"] for name, each in intervals.items()}
    return {name: (data | values | halves)[name] for name in LATENCY_COLUMNS}
