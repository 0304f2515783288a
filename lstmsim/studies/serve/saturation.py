"""The highest rate that a machine can bear: bisection over runs with certain verdicts, or none, and how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isclose, log, sqrt
from typing import Any, NamedTuple

from lstmsim.base.errors import Mistake, refuse
from lstmsim.report.document import Column, Document, Grid, Section, Text, remark
from lstmsim.report.figures_text import with_interval
from lstmsim.report.results import Forms, Table, plain
from lstmsim.report.stamp import Stamp
from lstmsim.traffic.arrivals import positive
from lstmsim.traffic.intervals import Interval, wilson

PEAKS = "requests/s: in the long run; while on/s: while all bursty entries are on"

#: Far below what any run can tell apart, and far above the spacing of doubles, where halving would not end.
LEAST_TOLERANCE = 1e-9

#: What a run says about a bound, and whether the bound is kept (None: unknown).
VERDICTS: Mapping[str, bool | None] = {
    "below": True,
    "above": False,
    "unstable": False,
    "too few": None,
    "cannot tell": None,
    "seen below": None,
    "seen above": None,
}
#: What runs show of a bound where it is not known whether the load is below 1: nothing certain.
SEEN = {"seen below": True, "seen above": False}


class Known(NamedTuple):
    """The ends of a bracket, the lowest and the highest undecided rate in it, all runs; the rest as in `Saturation`."""

    best: float | None
    worst: float | None
    undecided: tuple[float, float] | None
    runs: tuple[Tried, ...]
    seen: tuple[float | None, float | None] | None
    ended: str


@dataclass(frozen=True)
class Judged:
    """A percentile of latency held against its bound, both in ms; of one tenant, or of all requests.

    percentile_ms: None where there is no such number (unstable, or no request was served).
    verdict: a key of `VERDICTS`.
    rejected: the share of the requests that came and were rejected.
    beyond: at least this share of the served requests lies beyond the bound; 0: no more than may, or not known.
    ends_ms: ends of the interval where value and half width would reach beyond what is possible; None: they do not.
    """

    bound_ms: float
    percentile_ms: float | None
    half_width_ms: float | None
    verdict: str
    requests: int = 0
    rejected: float = 0.0
    beyond: float = 0.0
    ends_ms: tuple[float, float] | None = None


@dataclass(frozen=True)
class Tried:
    """One run at a rate.

    rate: requests per second.
    p99_ms: the 99th percentile; None where the run is unstable and there is no such number.
    kept: whether every bound is kept; None where that is not known.
    rejected: the share of requests that were rejected.
    verdict: a key of `VERDICTS`.
    requests: number of requests simulated.
    load: the offered load, work that comes / work that the machine can do.
    percentile_ms, half_width_ms: the judged percentile of all requests, and the half width of its 95 % interval.
    tenants: the verdicts on tenants with a bound, by name.
    needs: number of requests until the percentile has an interval; None: not known beforehand.
    missing: why more requests would not help to decide, in words; empty: they might.
    beyond, ends_ms: the largest `Judged.beyond` of its bounds, and `Judged.ends_ms` of all requests.
    """

    rate: float
    p99_ms: float | None
    kept: bool | None
    rejected: float = 0.0
    verdict: str = ""
    requests: int = 0
    load: float | None = None
    percentile_ms: float | None = None
    half_width_ms: float | None = None
    tenants: Mapping[str, Judged] = field(default_factory=dict)
    needs: int | None = None
    missing: str = ""
    beyond: float = 0.0
    ends_ms: tuple[float, float] | None = None


@dataclass(frozen=True)
class Saturation(Table, forms="lstmsim.studies.serve.saturation"):
    """Rates (per second) that keep the bounds: `rate` certainly does, `fails_from` certainly does not.

    rate: the highest rate that was seen to keep the bounds; None if none was, not even the lowest.
    fails_from: the lowest rate that was seen to break a bound; None if none was, not even the highest.
    bound_ms: the bound of all requests; None: only tenants have bounds.
    runs: all runs, in the order in which they were made.
    undecided: the lowest and the highest undecided rate between the two; None where there is none.
    percentile: percentile of latency that is bounded.
    bounds_ms: the bounds of tenants, by name.
    bound_per_second: the highest rate that the machine can possibly do of this mix; None where it is unknown.
    limits_per_second: rates at which each resource of the machine is used up, by its name; `saturated` is measured.
    not_counted: requests that come but are in no load, in words.
    ended: why the search ended: `done`, `effort` (the CPU seconds that were allowed are used up), or `interrupted`.
    seen: the highest rate at which a run kept the bounds, and the lowest at which one broke them, where that is not
        certain; None: there were no such runs.
    effort_seconds: the CPU seconds that were allowed; None: no limit.
    alone_ms: a request alone takes so long that no rate can keep the bounds; None: that is not so.
    alone_of: the name of its job entry.
    stamp: what the cycles are exact against, and which keys are assumptions.
    peak_ratio: the rate while all bursty entries are on / the rate in the long run, which all rates here are.
    """

    rate: float | None
    fails_from: float | None
    bound_ms: float | None
    runs: tuple[Tried, ...]
    undecided: tuple[float, float] | None = None
    percentile: float = 99.0
    bounds_ms: Mapping[str, float] = field(default_factory=dict)
    bound_per_second: float | None = None
    limits_per_second: Mapping[str, float] = field(default_factory=dict)
    not_counted: tuple[str, ...] = ()
    ended: str = "done"
    seen: tuple[float | None, float | None] | None = None
    effort_seconds: float | None = None
    alone_ms: float | None = None
    stamp: Stamp | None = field(default=None, compare=False, repr=False)
    peak_ratio: float = 1.0
    alone_of: str = ""

    @property
    def complete(self) -> bool:
        """Whether the search ended by itself; otherwise `rate` and `fails_from` may lie further apart than asked."""
        return self.ended == "done"

    @property
    def monotone(self) -> bool:
        """Whether no run up to `rate` breaks a bound, and no run from `fails_from` on keeps all."""
        least, most = self.fails_from or inf, self.rate or 0.0
        low = all(run.kept is not False for run in self.runs if run.rate <= most)
        return low and all(run.kept is not True for run in self.runs if run.rate >= least) and most < least


class EffortSpent(Exception):
    """The CPU seconds that a search may take are used up."""


class SearchInterrupted(KeyboardInterrupt):
    """A search was interrupted after its first run, `by` Ctrl-C or a signal; `saturate` fills in what was `found`."""

    def __init__(self, known: Known, by: BaseException) -> None:
        super().__init__()
        self.known, self.by = known, by
        self.found: Saturation | None = None


def bisect_verdicts(
    judge: Callable[[float], Tried],
    low: float,
    high: float,
    *,
    close: Callable[[float, float], bool],
    probes: int = 2,
    doublings: int = 0,
    more: Callable[[], bool] | None = None,
    look: Callable[[float], Tried] | None = None,
) -> Known:
    """Search for the highest rate that certainly keeps the bounds and the lowest that certainly breaks them.

    The bracket is halved until `close(lower, upper)`. Where a middle is undecided, both sides of the undecided part
    are halved instead, so that the certain rates come as near to it as they can. With `more`, which lets runs be longer
    if it can, that is done coarsely, and again and again, without probes, which draw nothing closer. Where no number of
    requests decides, `look` shows runs.
    """
    search, looked = _Search(judge), _Search(look or judge, SEEN)
    highs, coarse = [high * 2**each for each in range(doublings + 1)], more is not None
    try:
        while search.halve(low, highs, close, coarse):
            parts = [search]
            if look is not None and any(run.missing and not run.requests for run in search.between()):
                parts.append(looked.inside(search))
                looked.halve(low, highs, close, coarse)
            if more is None or all(part.settled(close) for part in parts) or not more():
                if not coarse:
                    break
                coarse = False
        if more is None:
            search.probe(low, probes)
    except EffortSpent:
        return search.known(looked, "effort")
    except (KeyboardInterrupt, SystemExit) as stop:
        if not search.runs:
            raise
        raise SearchInterrupted(search.known(looked, "interrupted"), stop) from None
    return search.known(looked, "done")


class _Search:
    """The ends of the bracket, and the undecided rates between them; verdicts: what some say that are not certain."""

    def __init__(self, judge: Callable[[float], Tried], verdicts: Mapping[str, bool] | None = None) -> None:
        self.judge, self.verdicts, self.runs = judge, verdicts or {}, list[Tried]()
        self.best: float | None = None
        self.worst: float | None = None
        self.undecided: tuple[float, float] | None = None

    def known(self, looked: _Search, ended: str) -> Known:
        """Give what is certain, and what was seen where nothing is."""
        rates, again = [run.rate for run in self.between()], {run.rate for run in looked.runs}
        runs = (*(run for run in self.runs if run.rate not in again), *looked.runs)
        ends = (looked.best, self.best), (looked.worst, self.worst)
        keeps, breaks = (None if seen == certain else seen for seen, certain in ends)
        undecided = (min(rates), max(rates)) if rates else None
        return Known(self.best, self.worst, undecided, runs, (keeps, breaks) if looked.runs else None, ended)

    def inside(self, certain: _Search) -> _Search:
        """Take over what is certain."""
        self.best = max((each for each in (self.best, certain.best) if each is not None), default=None)
        self.worst = min((each for each in (self.worst, certain.worst) if each is not None), default=None)
        return self

    def probe(self, low: float, probes: int) -> None:
        """Look at rates below the bracket."""
        for place in range(1, probes + 1) if self.best is not None else ():
            rate = low + ((self.best or low) - low) * place / (probes + 1)
            # a middle of the bracket is there already, whatever the last digits of either
            if not any(isclose(run.rate, rate) for run in self.runs):
                self.kept(rate)

    def halve(
        self, low: float, highs: Sequence[float], close: Callable[[float, float], bool], coarse: bool = False
    ) -> bool:
        """Halve the bracket until it is close, or coarsely so; False if `low` breaks the bound."""
        self.undecided = None
        if self.best is None and self.note(low) is False:
            return False
        for high in highs if self.worst is None else ():
            if self.note(high) is False:
                break
        while (middle := self.middle(close, coarse)) is not None:
            self.note(middle)
        return True

    def between(self) -> list[Tried]:
        """The undecided runs between the ends of the bracket."""
        least, most = self.best or 0.0, self.worst or inf
        open_ = (run for run in self.runs if self.verdicts.get(run.verdict, run.kept) is None)
        return [run for run in open_ if least < run.rate < most]

    def settled(self, close: Callable[[float, float], bool]) -> bool:
        """Whether longer runs would not draw the bracket closer, or need not."""
        near = self.best is not None and self.worst is not None and close(self.best, self.worst)
        return near or all(run.missing and not run.requests for run in self.between())

    def kept(self, rate: float) -> bool | None:
        """Make a run at the rate, and say whether it keeps the bounds."""
        run = self.judge(rate)
        self.runs = [*(each for each in self.runs if each.rate != rate), run]
        return self.verdicts.get(run.verdict, run.kept)

    def note(self, rate: float) -> bool | None:
        """Draw the bracket closer; a certain rate on the wrong side of an undecided rate makes that one worthless."""
        least, most = self.undecided or (inf, -inf)
        kept = self.kept(rate)
        if kept is None:
            self.undecided = (min(least, rate), max(most, rate))
            return None
        if kept:
            self.best = rate if self.best is None else max(self.best, rate)
        else:
            self.worst = rate if self.worst is None else min(self.worst, rate)
        if self.undecided is not None and (rate >= least if kept else rate <= most):
            self.undecided = None
        return kept

    def middle(self, close: Callable[[float, float], bool], coarse: bool) -> float | None:
        """The next rate to try; None when all is close enough: coarsely, a quarter of the bracket is."""
        if self.undecided is None:
            gaps = [(self.best, self.worst)]
        else:
            gaps = [(self.best, self.undecided[0]), (self.undecided[1], self.worst)]
        for lower, upper in gaps:
            if lower is None or upper is None or close(lower, upper):
                continue
            if not coarse or upper - lower > ((self.worst or upper) - (self.best or 0.0)) / 4:
                return (lower + upper) / 2
        return None


def check_search(low: float, high: float, tolerance: float, bounds_ms: Mapping[str, float]) -> None:
    """Raise `InputError` for ends, a tolerance (as a share) and bounds that no search can work with."""
    positive("saturation", **{"low": low, "high": high, **bounds_ms, "tolerance": tolerance})
    wrong = []
    if not low < high:
        wrong.append(Mistake("saturation: high", f"must be above the lowest rate ({low}), got {high}"))
    if tolerance < LEAST_TOLERANCE:
        wrong.append(Mistake("saturation: tolerance", f"must be at least {LEAST_TOLERANCE}, got {tolerance}"))
    refuse(wrong)


#: Chance that `of_beyond` says `above` of a percentile that keeps its bound, at each look.
_WRONG = 0.0025
#: Each look at the share of requests beyond a bound is so many times as far out as the one before.
_FURTHER = 1.5


def far_above(percentile: float) -> tuple[float, ...]:
    """Give the percentiles that show how many requests lie beyond a bound: those of 1.5, 2.25 ... times as many."""
    share, wanted = 1 - percentile / 100, []
    while (share := share * _FURTHER) < 1:
        wanted.append(100 * (1 - share))
    return tuple(wanted)


def of_beyond(share: float, most: float, units: float) -> bool:
    """Say whether so large a share of requests beyond a bound is certainly more than `most`, interval or not.

    Requests beyond a high level come in clumps whose number is that of a Poisson process and whose sizes are
    exponential, of one relaxation on average (Aldous: Probability approximations via the Poisson clumping heuristic;
    Springer, 1989). Of such a sum S with mean m, in relaxations, Chernoff's bound is
    P(S >= s) <= exp(-(sqrt(s) - sqrt(m))^2).

    >>> of_beyond(0.3, 0.01, units=40), of_beyond(0.3, 0.01, units=20), of_beyond(0.02, 0.01, units=1000)
    (True, False, False)
    """
    return share > most and (sqrt(share) - sqrt(most)) ** 2 * units >= -log(_WRONG)


def of_interval(interval: Interval, bound: float, widths: float = 1.0) -> str:
    """Say where an interval lies: `below` or `above` the bound, `cannot tell` (around it), `too few` (no interval)."""
    if interval.half_width is None:
        return "too few"
    if interval.value + widths * interval.half_width <= bound:
        return "below"
    return "above" if interval.value - widths * interval.half_width > bound else "cannot tell"


def of_share(rejected: int, came: int, most: float, *, alike: float = 1.0, widths: float = 1.0) -> str:
    """Say whether the share of requests that are rejected is at most `most`, by the interval of `wilson`."""
    least, highest = wilson(rejected / came if came else 0.0, came / max(1.0, alike), widths=widths)
    if highest <= most:
        return "below"
    return "above" if least > most else "cannot tell"


def joined(verdicts: Iterable[str]) -> str:
    """Give the verdict on all bounds together: one broken bound is enough to break them, and all must be kept."""
    known = set(verdicts)
    return next(each for each in ("unstable", "above", "too few", "cannot tell", "below") if each in known)


def judged(
    interval: Interval,
    bound_ms: float,
    percentile: float,
    *,
    served: int,
    rejected: int,
    may_leave: bool,
    alike: float = 1.0,
    widths: float = 1.0,
    others: Mapping[float, float] | None = None,
    units: float = 0.0,
) -> Judged:
    """Judge a percentile of latencies against its bound; a share above 1 - percentile rejected breaks the bound too."""
    came, most = served + rejected, 1 - percentile / 100
    verdicts = [of_interval(interval, bound_ms, widths) if served else "too few"]
    beyond = max((1 - each / 100 for each, value in (others or {}).items() if value > bound_ms), default=0.0)
    if of_beyond(beyond, most, units):
        verdicts = ["above"]
    if may_leave:
        verdicts.append(of_share(rejected, came, most, alike=alike, widths=widths))
    share = rejected / came if came else 0.0
    value = interval.value if served else None
    return Judged(bound_ms, value, interval.half_width, joined(verdicts), served, share, beyond, interval.ends)


def document(saturation: Saturation) -> Document:
    """Show the answer, the most that the machine can possibly do, and a row for each rate."""
    remarks = (remark(sentence, 2) for sentence in _remarks(saturation))
    return Document.of(_answer(saturation), _bound(saturation), _rates(saturation), Section.of(*remarks))


def _rates(saturation: Saturation) -> Section:
    name, names = f"p{saturation.percentile:g}", sorted(saturation.bounds_ms)
    rejects, bursts = any(run.rejected for run in saturation.runs), saturation.peak_ratio > 1
    columns = [
        Column("requests/s", digits=1, form=lambda rate: f"{rate:,.1f}"),
        *[Column("while on/s", digits=1)] * bursts,
        Column("load", digits=3),
        Column("requests"),
        Column(f"{name} ms", left=True),
        *(Column(f"{name} ms of {tenant}", left=True) for tenant in names),
        *[Column("rejected")] * rejects,
        Column("verdict", left=True),
    ]

    def row(run: Tried) -> tuple[str | int | float | None, ...]:
        tenants = [_judged(run.tenants.get(tenant)) for tenant in names]
        share = [f"{100 * run.rejected:.2f} %"] * rejects
        value = _value(run.percentile_ms, run.half_width_ms, run.ends_ms)
        peak = [run.rate * saturation.peak_ratio] * bursts
        return (run.rate, *peak, run.load, run.requests or None, value, *tenants, *share, run.verdict)

    rows = sorted(saturation.runs, key=lambda run: run.rate)
    return Section.of(Grid(tuple(columns), tuple(map(row, rows)), repeated=1), title="RATES")


def _value(value: float | None, half: float | None, ends: tuple[float, float] | None) -> str | None:
    """The value with its interval; None where there is no such number."""
    if value is None:
        return None
    return f"{value:.4g} (too few)" if half is None else latency_text(value, half, ends)


def latency_text(value: float, half: float, ends: tuple[float, float] | None = None) -> str:
    """A latency with its interval: +- half, or both ends: those that are given, or where it would reach below 0."""
    return with_interval(f"{value:.4g}", half, ends or ((0.0, value + half) if half > value else None))


def _judged(judged: Judged | None) -> str | None:
    if judged is None:
        return None
    return f"{_value(judged.percentile_ms, judged.half_width_ms, judged.ends_ms) or '-'} {judged.verdict}"


def _bound(saturation: Saturation) -> Text | None:
    """The most that the machine could do."""
    if saturation.bound_per_second is None:
        return None
    line = f"MACHINE: at most {saturation.bound_per_second:,.0f} requests/s of this mix, whatever their latency"
    if any(run.rate > saturation.bound_per_second for run in saturation.runs):
        line += ", the rest is rejected"
    line += f"; used up at {limits_text(saturation.limits_per_second)}"
    return Text(line + (f"; not counted: {', '.join(saturation.not_counted)}" if saturation.not_counted else ""))


def limits_text(limits_per_second: Mapping[str, float]) -> str:
    """Name each resource with the rate at which it is used up, the first one first."""
    ordered = sorted(limits_per_second.items(), key=lambda item: item[1])
    return ", ".join(f"{rate:,.0f}/s ({name})" for name, rate in ordered)


def _bounds(saturation: Saturation) -> str:
    parts = [] if saturation.bound_ms is None else [f"a p{saturation.percentile:g} of {saturation.bound_ms:g} ms"]
    parts += [
        f"a p{saturation.percentile:g} of {ms:g} ms for {name}" for name, ms in sorted(saturation.bounds_ms.items())
    ]
    return " and ".join(parts)


def _answer(saturation: Saturation) -> str:
    if saturation.alone_ms is not None:
        alone = f"{saturation.alone_ms:.3g} ms" if saturation.alone_ms >= 0.1 else f"{1e3 * saturation.alone_ms:.3g} us"
        whose = f" of {saturation.alone_of}" * bool(saturation.alone_of)
        return f"no rate can keep {_bounds(saturation)}: one request{whose} alone takes {alone}"
    return _known(saturation) if saturation.complete else f"so far: {_known(saturation)}"


def _known(saturation: Saturation) -> str:
    bounds, between = _bounds(saturation), _between(saturation)
    if saturation.rate is None and saturation.fails_from is None:
        return f"no rate is known to keep {bounds}, nor to break it{between}"
    if saturation.rate is None:
        if saturation.undecided is None:
            return f"not even {saturation.fails_from:,.1f} requests/s keep {bounds}"
        return f"no rate is known to keep {bounds}, {saturation.fails_from:,.1f} requests/s do not{between}"
    if saturation.fails_from is None:
        if saturation.undecided is None:
            return f"{saturation.rate:,.1f} requests/s, the highest rate tried, still keep {bounds}"
        return f"{saturation.rate:,.1f} requests/s keep {bounds}; no rate was seen to break it{between}"
    run = next(run for run in saturation.runs if run.rate == saturation.fails_from)
    why = " (unstable)" if run.verdict == "unstable" else ""
    return f"{saturation.rate:,.1f} requests/s keep {bounds}, {saturation.fails_from:,.1f} do not{why}{between}"


def _between(saturation: Saturation) -> str:
    if saturation.undecided is None:
        return ""
    low, high = saturation.undecided
    several = f"from {low:,.1f} to {high:,.1f}" if low < high else f"at {low:,.1f}"
    keeps, breaks = saturation.seen or (None, None)
    seen = [f"{keeps:,.1f} were seen to hold"] if keeps is not None else []
    seen += [f"{breaks:,.1f} were seen to break it"] if breaks is not None else []
    return f"; {several} it is undecided{'; ' * bool(seen)}{', '.join(seen)}{', not certain' * bool(seen)}"


def _remarks(saturation: Saturation) -> list[str]:
    """Sentences that the reader needs to understand the answer."""
    lines = []
    if saturation.ended == "interrupted":
        lines.append("interrupted: the search was not done; more runs would draw the answer closer")
    if saturation.peak_ratio > 1:
        lines.append(PEAKS)
    if any(run.verdict == "unstable" and not run.requests for run in saturation.runs):
        open_ = any(run.missing and (run.load or 0.0) >= 1 for run in saturation.runs)
        unless = ", but where that is undecided" if open_ else ""
        lines.append(f"a load of 1 or more is unstable without a run{unless}: more work comes than the machine can do")
    for missing, number in Counter(run.missing for run in saturation.runs if run.missing).items():
        lines.append(f"undecided: at {number} rate{'s' * (number > 1)} {missing}")
    if saturation.ended == "effort":
        spent = f"stopped after {saturation.effort_seconds:g} CPU seconds with the rates that were decided until then"
        lines.append(f"{spent}: a faster machine decides more, and --effort allows more seconds")
    if any(run.verdict in SEEN for run in saturation.runs):
        lines.append("seen: what runs there show, by intervals of a queue as busy as the threads of the run; no proof")
    low, high = saturation.rate or 0.0, saturation.fails_from or inf
    unclear = [each for each in saturation.runs if each.kept is None and not each.missing and low < each.rate < high]
    if unclear:
        few = [run for run in unclear if run.verdict == "too few"]
        # a queue that remembers for longer than its load says has no interval after so many requests either
        needs = min((run.needs for run in few if run.needs is not None and run.needs > run.requests), default=0)
        most = f" (the lowest needs {needs:,})" if needs else ""
        kinds = [f"{_have(len(few))} too few requests for an interval{most}"] * bool(few)
        kinds += [f"{_have(len(unclear) - len(few))} the bound within the interval"] * (len(few) < len(unclear))
        more = "" if saturation.ended == "effort" else "; --most-requests allows more"
        lines.append(f"undecided: {', '.join(kinds)}{more}")
    if not saturation.monotone:
        lines.append("not every lower rate keeps it: the order of service may be unfair")
    return lines


def _have(number: int) -> str:
    return "1 rate has" if number == 1 else f"{number} rates have"


def _data(saturation: Saturation) -> dict[str, Any]:
    """Plain data of schema `lstmsim/saturation/2`; rates per second, latencies in ms."""
    return {"schema": "lstmsim/saturation/2", **plain(saturation), "complete": saturation.complete}


FORMS = Forms(_data, document, lambda saturation: plain(saturation.runs))
