"""Sentences of a comparison: first steps that load weights, where the baseline loses, and latencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lstmsim.report.figures_text import percent, three_digits
from lstmsim.studies.compare.result import PERCENTILES, Comparison, Entry, Latencies, not_comparable
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.load import VERDICTS


def about_first_step(comparison: Comparison, row: int, column: int) -> str:
    """Say how long the base takes in comparison with a machine, as a whole and by later steps."""
    clause, speedup = _by_later_steps(comparison, row, column), comparison.speedup(row, column)
    if not clause or speedup is None or comparison.by_latency:
        return clause
    base = comparison.machines[0].name
    if speedup > 1:
        return f"{base} takes {three_digits(speedup)} times as long; {clause}"
    return f"{base} is {three_digits(1 / speedup)} times as fast; {clause}"


def _by_later_steps(comparison: Comparison, row: int, column: int) -> str:
    """The ratio by later steps in words, in the direction of the whole ratio, or why there is none."""
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
    if not shares and comparison.way != "at once":
        return f"later steps are not measured where jobs come over time: on {names} each job first loads its weights"
    if not shares:
        return f"no job has a second time step, so all of the time of {names} is a first step, which loads the weights"
    why = f"{' and '.join(shares)} are its first step, which loads the weights"
    if later is None:
        return f"by later steps it is not known, but {why}"
    return f"{three_digits(later if speedup > 1 else 1 / later)} times by later steps ({why})"


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
    shown = [pair for pair in shares if pair[0] >= 0.01] or shares[:1]
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
            later = _by_later_steps(comparison, row, column)
            lost.append(Defeat(workload.name, speedup, peaks, shares, lost_shares(entries[0]), later))
    return tuple(lost)


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

    def faster(percentile: int | None = None) -> Cell:
        def cell(row: int, column: int) -> str | None:
            ratio = comparison.latency_ratio(row, column, percentile)
            return None if ratio is None else three_digits(ratio)

        return cell

    def quantile(percentile: int) -> Cell:
        return of(lambda own: _interval(own.percentiles[percentile]))

    cells = {"requests served": of(lambda own: f"{own.requests:,}")}
    if any(own.turned_away for own in known):
        cells["rejected"] = of(lambda own: _part(len(own.turned_away), own.requests + len(own.turned_away)))
    if any(own.misses is not None for own in known):
        cells["late"] = of(lambda own: None if own.misses is None else _part(own.misses, own.requests))
    cells["mean latency ms"] = of(lambda own: _interval(own.mean))
    cells |= {f"p{each} latency ms": quantile(each) for each in PERCENTILES}
    if any(own.offered_load is not None for own in known):
        cells["offered load"] = of(lambda own: None if own.offered_load is None else f"{own.offered_load:#.3g}")
    return cells | {
        "threads taken": of(lambda own: f"{100 * own.threads_taken:.1f} %"),
        "verdict": of(lambda own: own.verdict),
        "times as fast (mean)": faster(),
        "times as fast (p99)": faster(99),
        "requests sooner": of(lambda own: None if own.sooner is None else _part(own.sooner, own.requests)),
    }


def _part(count: int, whole: int) -> str:
    return f"{count:,} ({percent(count, whole)})"


def _interval(each: Interval) -> str:
    value = three_digits(each.value)
    return f"{value} (too few)" if each.half_width is None else f"{value} +- {each.half_width:.2g}"


def latency_notes(comparison: Comparison) -> list[str]:
    """Write paragraphs on how the latencies were measured, and what they leave open."""
    base = comparison.machines[0].name
    pairs = zip(comparison.machines, comparison.entries[0], strict=True)
    own = [(machine.name, each.latencies) for machine, each in pairs if each.latencies is not None]
    if not own:
        return []
    notes = [
        f"{_WAYS[comparison.way]} Latency: from arrival to finish, without the first requests (warm-up); +- is half "
        "of a 95 % interval, and 'too few' says that there are too few requests to tell how far another run would be "
        f"from this one. Times as fast: latency of {base} / latency of the machine."
    ]
    if comparison.way == "open":
        least, most = (f"{100 * end(comparison.before_last_arrival):.3g} %" for end in (min, max))
        fixed = "The ratio of makespans is fixed by the arrivals" if comparison.by_latency else "Makespans"
        part = least if least == most else f"{least} to {most}"
        notes.append(f"{fixed}: {part} of the makespans are over when the last request comes, whatever the chip does.")
    if min(each.requests for _, each in own) < _FEWEST_FOR_P99:
        notes.append(f"A p99 of fewer than {_FEWEST_FOR_P99} requests is hardly less than the maximum of this run.")
    for verdict in ("unstable", "cannot tell", "no steady state"):
        which = [name for name, each in own if each.verdict == verdict]
        if which:
            notes.append(f"{verdict} on {', '.join(which)}: {VERDICTS[verdict]}.")
    if any(each.turned_away for _, each in own):
        notes.append(
            "All figures are of the requests that were served: a machine that rejects more of them has less to do."
        )
    return notes


def latency_verdicts(comparison: Comparison) -> list[str]:
    """Say for each other machine whether the base's latency is longer, as far as this run can tell."""
    base, *others = comparison.entries[0]
    return [
        f"than {machine.name}: {_verdict(comparison, base.latencies, other.latencies, column)}"
        for column, (machine, other) in enumerate(zip(comparison.machines[1:], others, strict=True), start=1)
    ]


def _verdict(comparison: Comparison, base: Latencies | None, other: Latencies | None, column: int) -> str:
    if base is None or other is None:
        return "not known"
    reason, ratio = not_comparable(base, other), comparison.latency_ratio(0, column)
    if reason or ratio is None:
        return f"not comparable; {reason}"
    sooner = f"; {other.sooner:,} of {other.requests:,} requests are sooner there" if other.sooner is not None else ""
    run = f"{ratio:.3g} times as long{sooner}"
    if base.mean.half_width is None or other.mean.half_width is None:
        return f"too few requests to tell; in this run {run}"
    if abs(base.mean.value - other.mean.value) <= base.mean.half_width + other.mean.half_width:
        return f"cannot tell, the intervals of the means overlap; in this run {run}"
    return f"{'yes' if ratio > 1 else 'no'}, {run}"
