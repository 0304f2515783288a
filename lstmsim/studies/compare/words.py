"""Sentences of a comparison: first steps that load weights, where the baseline loses, and latencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lstmsim.report.figures_text import percent, three_digits
from lstmsim.studies.compare.result import PERCENTILES, Comparison, Entry, Latencies, not_comparable
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.load import VERDICTS

#: What the figures of first and later steps are; it takes the names of the machines that begin cold.
CAPTION = (
    "First step: cycles of the same jobs with one time step each; it loads the weights on {}. Later steps: what the "
    "others add."
)


def about_first_step(comparison: Comparison, row: int, column: int) -> str:
    """Say how long the base takes beside a machine, as a whole and by later steps.

    >>> from lstmsim.studies.compare.result import Entry, Machine, Workload
    >>> machines = Machine("a", False, 100, 250.0), Machine("b", False, 400, 250.0, begins_cold=True)
    >>> entries = Entry(cycles=10, ms=1.0, first_cycles=2), Entry(cycles=100, ms=10.0, first_cycles=60)
    >>> about_first_step(Comparison("s", "fast", False, machines, (Workload("s", 1, 9),), (entries,)), 0, 1)
    'a is 10.0 times as fast; 5.00 times by later steps (60.0 % of the cycles of b are its first step, which \
loads the weights)'
    """
    clause, speedup = by_later_steps(comparison, row, column), comparison.speedup(row, column)
    if not clause or speedup is None or comparison.by_latency:
        return clause
    base = comparison.machines[0].name
    if speedup > 1:
        return f"{base} takes {three_digits(speedup)} times as long; {clause}"
    return f"{base} is {three_digits(1 / speedup)} times as fast; {clause}"


def by_later_steps(comparison: Comparison, row: int, column: int) -> str:
    """Give the ratio by later steps in words, the way round of the whole ratio, or say why there is none."""
    machines, entries = comparison.machines, comparison.entries[row]
    speedup, later = comparison.speedup(row, column), comparison.later_speedup(row, column)
    cold = [each for each in dict.fromkeys((0, column)) if machines[each].begins_cold]
    if not cold or speedup is None or column == 0:
        return ""
    names = " and ".join(machines[each].name for each in cold)
    shares = [
        f"{percent(entry.first_cycles, entry.cycles)} of the cycles of {machines[each].name}"
        for each in cold
        if (entry := entries[each]).first_cycles is not None and entry.cycles
    ]
    if not shares:
        if comparison.way != "at once":
            return (
                f"later steps are not measured where jobs come over time: on {names} each job first loads its weights"
            )
        return f"no job has a second time step, so all of the time of {names} is a first step, which loads the weights"
    why = f"{' and '.join(shares)} are its first step, which loads the weights"
    if later is None:
        return f"by later steps it is not known, but {why}"
    times = later if speedup > 1 else 1 / later
    return f"{three_digits(times)} times by later steps ({why})"


_SHOWN_FROM = 0.01


@dataclass(frozen=True)
class Defeat:
    """A workload that takes longer on the base than on another machine.

    workload: its name.
    times: how many times as long it takes on the base.
    peak_ratio, utilization_ratio: the other's peak TOPS and utilization / those of the base, None: unknown; their
        product is `times`, for published figures as exactly as they were printed.
    losses: where the base's PE-cycles went, in words.
    later: how many times as long it takes by later steps, in words; empty: no machine begins cold.

    >>> Defeat("m", 1.5, 2.0, 0.75, "hazard 20.0 %").sentence
    "1.50 times as long; the other's peak is 2.00 times, its utilization 0.75 times as high; own loss: hazard 20.0 %"
    """

    workload: str
    times: float
    peak_ratio: float | None
    utilization_ratio: float | None
    losses: str
    later: str = ""

    @property
    def sentence(self) -> str:
        """The defeat in words, without the workload's name."""
        parts = [f"{self.times:.2f} times as long", *([self.later] if self.later else [])]
        if self.peak_ratio is not None and self.utilization_ratio is not None:
            peak = f"the other's peak is {self.peak_ratio:.2f} times"
            parts.append(f"{peak}, its utilization {self.utilization_ratio:.2f} times as high")
        return "; ".join([*parts, f"own loss: {self.losses}"])


def lost_shares(entry: Entry) -> str:
    """Name where PE-cycles were lost, with shares: all shares from 1 % on, at least the largest."""
    shares = sorted(
        ((share, name) for name, share in entry.losses.items() if name != "useful" and share > 0),
        key=lambda pair: -pair[0],
    )
    shown = [pair for pair in shares if pair[0] >= _SHOWN_FROM] or shares[:1]
    return ", ".join(f"{name} {percent(share, 1)}" for share, name in shown)


def defeats(comparison: Comparison, column: int) -> tuple[Defeat, ...]:
    """List the workloads that take longer on the base than on another machine, in their order."""
    base, other = comparison.machines[0], comparison.machines[column]
    peaks = other.peak_tops / base.peak_tops if other.peak_tops and base.peak_tops else None
    lost = []
    for row, (workload, entries) in enumerate(zip(comparison.workloads, comparison.entries, strict=True)):
        speedup, own, theirs = comparison.speedup(row, column), entries[0].utilization, entries[column].utilization
        if speedup is not None and speedup > 1:
            shares = theirs / own if own and theirs else None
            later = by_later_steps(comparison, row, column)
            lost.append(Defeat(workload.name, speedup, peaks, shares, lost_shares(entries[0]), later))
    return tuple(lost)


#: The columns of the CSV about latencies.
LATENCY_COLUMNS = (
    *("requests", "turned_away", "misses", "offered_load", "threads_taken", "verdict", "last_arrival_ms"),
    *("latency_mean_ms", "latency_mean_half_width_ms"),
    *(f"latency_p{each}_{what}" for each in PERCENTILES for what in ("ms", "half_width_ms")),
    *("mean_latency_ratio", "p99_latency_ratio", "sooner"),
)
#: What the way in which jobs come means for a comparison, a key of `lstmsim.model.scenario.ARRIVING`.
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
