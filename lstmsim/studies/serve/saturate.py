"""How many requests a machine can bear: runs at rates that a bisection chooses, each as long as its verdict needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, inf, log2
from time import process_time
from typing import Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.requests import ScenarioRates, load_requests, rate_overrides, rates_of
from lstmsim.studies.serve import saturation
from lstmsim.studies.serve.offered import capacity_of, least_latency, load_of
from lstmsim.studies.serve.request import SaturateRequest
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.serve.run import serve_on_horizon
from lstmsim.studies.shared.loading import Path, drawn_anew
from lstmsim.studies.shared.request import Source, takes, wrong_value
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.traffic.intervals import MEAN_UNITS, TAIL_UNITS
from lstmsim.traffic.latencies import Distribution

#: Most requests of one run: up to half a minute each.
MOST_REQUESTS = 1_000_000
#: CPU seconds of a search, unless its runs are bounded by `most_requests`.
EFFORT_SECONDS = 20.0
#: A run begins with so many at least, and has this many times as many whenever that does not tell.
FIRST_REQUESTS = 2_000
_TIMES = 4
#: A run that could go on is ended only by a bound that lies this many half widths away: who looks at an interval
#: again and again is wrong more often than its confidence says.
_EARLY = 2.0
#: Where requests may be rejected, the highest rate is doubled so many times at most.
_DOUBLINGS = 10
#: Where so many times as many requests lie beyond a bound as may, a longer run is likely to tell that it is broken.
_FAR = 2.0
#: Requests beyond the percentile that a run begins with.
_BEYOND = 50
#: A run has so many times the requests that an interval needs, for the warm-up is left out.
_SPARE = 1.2


@takes(SaturateRequest)
def saturate(request: SaturateRequest) -> saturation.Saturation:
    """Find the highest rate at which latencies certainly keep their bounds, and the lowest at which they do not.

    Jobs with arrivals of kind poisson or bursty change their rates together, each in its share; all entries go on until
    the last request of a run. At every rate a run grows until the 95 % interval of the percentile lies below or above
    its bound, or to `most_requests`: then the rate is undecided. A rate at which the machine has more work than it can
    do, or its queue grows, is unstable and keeps no bound. Where it is not known whether the load is below 1, runs show
    what is `seen`, not certain. If more than 1 - percentile of the requests are rejected (Wilson's interval of the
    share), the rate keeps no bound either. Where requests may be rejected (`queue_limit`, `patience`), `high` is
    doubled, unless it is given, until a bound is broken.

    With an `effort` that is done with few requests first, and again with four times as many. The clock only ends the
    search: less time means that less is known, and nothing else.

    `InputError` for a scenario without rates, for clients who wait for answers, and for tenants that are not there.
    Ctrl-C or SIGTERM after the first run is a `SearchInterrupted`, whose `found` is the answer as far as it is known.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 200, "arrival": arrival}]
    >>> answer = saturate({"chip": "column-npu-16k", "jobs": jobs}, 0.002, tolerance=0.2, most_requests=10_000)
    >>> answer.bound_per_second > answer.rate > 1e5
    True
    """
    bounds, low, high, tolerance = dict(request.bounds_ms or {}), request.low, request.high, request.tolerance
    refuse(*(wrong_value("a name in bounds_ms", name, str) for name in bounds))
    refuse(*(wrong_value(f"bound of {show(name)}", each, float) for name, each in bounds.items()))
    bounded = request.effort is None and request.most_requests is not None
    watch = _Watch(None if bounded else request.effort or EFFORT_SECONDS, request.progress)
    asked = drawn_anew(request.scenario), tuple(request.overrides)
    runs = _Runs(*asked, request.bound_ms, bounds, request.percentile, rates_of(*asked), watch, request.most_requests)
    ends = runs.ends(low, high, tolerance)
    if watch.seconds is not None:
        runs.sizes = runs.sizes[0], min(runs.sizes[1], _TIMES * runs.sizes[0])
    watch.about = 6 + 2 * max(0, ceil(log2((ends[1] - ends[0]) / (tolerance * ends[1]))))
    doublings = _DOUBLINGS if runs.leaving and high is None else 0

    def close(lower: float, upper: float) -> bool:
        return upper - lower <= tolerance * upper

    def found(known: saturation.Known) -> saturation.Saturation:
        alone, whose = runs.alone_beyond() if known.best is None else (None, "")
        answer = replace(runs.answer(known), ended=known.ended, seen=known.seen)
        return replace(answer, effort_seconds=watch.seconds, alone_ms=alone, alone_of=whose)

    how: dict[str, Any] = {"close": close, "doublings": doublings, "look": partial(runs.judge, seen=True)}
    try:
        more = None if watch.seconds is None else runs.longer
        return found(saturation.bisect_verdicts(runs.judge, *ends, more=more, **how))
    except saturation.SearchInterrupted as stopped:
        stopped.found = found(stopped.known)
        raise


def judge_rate(
    scenario: Source,
    bound_ms: float,
    rate: float,
    *,
    percentile: float = 99.0,
    most_requests: int | None = None,
    overrides: Sequence[str] = (),
) -> saturation.Tried:
    """Judge one rate as `saturate` does.

    >>> jobs = [{"model": "lstm-256", "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e5}}]
    >>> judge_rate({"chip": "column-npu-16k", "jobs": jobs}, 0.002, 1e5, most_requests=10_000).verdict
    'below'
    """
    asked = drawn_anew(scenario), tuple(overrides)
    runs = _Runs(*asked, bound_ms, {}, percentile, rates_of(*asked), _Watch(None, None), most_requests)
    return runs.judge(rate)


def _sizes(percentile: float, most: int | None) -> tuple[int, int]:
    """Give the fewest and the most requests of a run."""
    limit = MOST_REQUESTS if most is None else most
    return min(limit, max(FIRST_REQUESTS, ceil(_BEYOND / (1 - percentile / 100)))), limit


@dataclass
class _Watch:
    """The CPU seconds that a search may take (None: no limit), and of about how many rates which one is judged."""

    seconds: float | None
    progress: Callable[[int, int], None] | None
    done: int = 0
    about: int = 1

    def __post_init__(self) -> None:
        self._began = process_time()
        if self.progress is not None:
            self.progress(0, 1000)

    def __call__(self, requests: int, of: int) -> None:
        """Report that so many requests of a run are served; `EffortSpent` if there is no time for more."""
        part = min(max(0, self.done - 1) + requests / of, self.about) / self.about
        if self.seconds is not None:
            part = (process_time() - self._began) / self.seconds
            if part >= 1:
                raise saturation.EffortSpent
        if self.progress is not None:
            self.progress(int(1000 * part), 1000)


@dataclass
class _Runs:
    """The question, and runs at one rate after another that answer it.

    most_requests: the most requests of a run; None: `MOST_REQUESTS`. At present runs have from `sizes` to `sizes`.
    leaving: names of the tenants whose requests may be rejected.
    least_share: of all requests, how many belong to the rarest tenant that has a bound.
    """

    scenario: Path | Mapping[str, Any]
    overrides: tuple[str, ...]
    bound_ms: float | None
    bounds_ms: dict[str, float]
    percentile: float
    rates: ScenarioRates
    watch: _Watch
    most_requests: int | None
    known: dict[tuple[float, int], saturation.Tried] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """`InputError` for a question that cannot be judged."""
        wrong = []
        if self.bound_ms is None and not self.bounds_ms:
            wrong.append(Mistake("bound_ms", "is missing: expected a bound on all requests, or on a tenant"))
        if not 0 < self.percentile < 100:
            wrong.append(Mistake("percentile", f"must be above 0 and below 100, got {self.percentile:g}"))
        drawn = self.drawn = load_requests(self.scenario, self.overrides, 1)
        self.stamp = stamp_of_scenario(drawn.scenario)
        names = [name for name, _ in drawn.tenants]
        for name in self.bounds_ms:
            if name not in names:
                hint = nearest(name, names)
                wrong.append(Mistake(f"bound of {name!r}", f"there is no job entry of that name{hint}"))
        refuse(wrong)
        jobs = drawn.scenario.jobs
        self.leaving = {job.tenant for job in jobs if job.may_leave}
        if self.leaving:
            # Those that only a file of arrivals names may be of any entry.
            self.leaving |= set(names) - {job.tenant for job in jobs}
        rates = {name: each.rate_per_second for name, each in drawn.scenario.offers.items()}
        shares = [rates[name] / sum(rates.values()) for name in self.bounds_ms if rates.get(name)]
        self.least_share = min(shares, default=1.0)
        self.capacity = capacity_of(self.scenario, self.overrides)
        self.sizes = _sizes(self.percentile, self.most_requests)
        self.most = self.sizes[1]

    def ends(self, low: float | None, high: float | None, tolerance: float) -> tuple[float, float]:
        """Give the rates between which to search; `InputError` for rates between which there is no search."""
        bound = self.capacity.bound_per_second
        if low is not None and bound <= low < inf and not self.leaving:
            text = f"must be below {bound:,.1f} requests/s, the most that this machine can possibly do, got {low:,.1f}"
            raise InputError(Mistake("saturation: low", text))
        low = bound / 100 if low is None else low
        if self.leaving:
            high = max(bound, 2 * low) if high is None else high
        else:
            high = bound if high is None else min(high, bound)
        bounds = {} if self.bound_ms is None else {"bound_ms": self.bound_ms}
        saturation.check_search(
            low, high, tolerance, bounds | {f"bound of {name}": ms for name, ms in self.bounds_ms.items()}
        )
        return low, high

    def answer(self, known: saturation.Known) -> saturation.Saturation:
        """Give the result of these runs."""
        best, worst, undecided, runs, *_ = known
        machine = self.capacity.bound_per_second, self.capacity.limits_per_second, self.capacity.not_counted
        made = saturation.Saturation(
            best, worst, self.bound_ms, runs, undecided, self.percentile, self.bounds_ms, *machine, stamp=self.stamp
        )
        return replace(made, peak_ratio=self.rates.peak_ratio)

    def alone_beyond(self) -> tuple[float | None, str]:
        """The ms that requests take alone, and of which entry of several, if that breaks a bound; None: it does not."""
        scenario, kinds = self.drawn.scenario, []
        for job in scenario.jobs:
            offer = scenario.offers[job.tenant]
            weight = offer.rate_per_second * dict(offer.lengths).get(job.steps, 1.0)
            ms = least_latency(scenario.chip, job) / (scenario.chip.frequency_mhz * 1e3)
            kinds.append((ms, weight, offer.entry or job.tenant))
        for name, bound in [(None, self.bound_ms or inf), *self.bounds_ms.items()]:
            own = [each for each in kinds if name in (None, each[2])]
            beyond = [each for each in own if each[0] > bound]
            if self.leaving and len(beyond) < len(own):
                continue  # it may be these that are rejected
            if sum(each[1] for each in beyond) > (1 - self.percentile / 100) * sum(each[1] for each in own):
                ms, _, whose = min(beyond)
                return ms, whose if len({entry for *_, entry in kinds}) > 1 else ""
        return None, ""

    def longer(self) -> bool:
        """Let runs have more requests from now on; False if they have the most already."""
        more = min(self.most, _TIMES * self.sizes[1])
        changed, self.sizes = more > self.sizes[1], (self.sizes[1], more)
        return changed

    def judge(self, rate: float, *, seen: bool = False) -> saturation.Tried:
        """Judge one rate, by as many requests as its verdict needs; seen: also where nothing is certain."""
        self.watch(0, 1)
        self.watch.done += 1
        offered = load_of(self.scenario, [*self.overrides, *rate_overrides(self.rates, rate)], self.most)
        # What preemption adds does not grow in proportion to the rate.
        load = self.capacity.load(rate) if offered.preemption is None else offered.offered
        if offered.unsure and not seen:
            return saturation.Tried(rate, None, None, verdict="cannot tell", load=load, missing=offered.unsure)
        # Where requests may leave the queue it may be stable at any load.
        if load >= 1 - 1e-9 and not self.leaving and not offered.unsure:
            return saturation.Tried(rate, None, saturation.VERDICTS["unstable"], verdict="unstable", load=load)
        needs, (size, most) = self._needs(offered.relaxation), self.sizes
        while True:
            if (rate, size) not in self.known:
                self.known[rate, size] = self._tried(rate, load, size, offered.unsure)
            tried = self.known[rate, size]
            following = min(most, self._next(size, needs, tried))
            if tried.kept is not None or tried.verdict in saturation.SEEN or tried.missing or following <= size:
                return replace(tried, needs=needs, missing=tried.missing or offered.unsure)
            size = following

    def _next(self, size: int, needs: int | None, tried: saturation.Tried) -> int:
        """Say how many requests the next run has, after one that could not tell; `size`: there is none.

        Far more requests beyond a bound than may be show sooner than an interval that the bound is broken. Where the
        need is more than there may be, a shorter run shows whether that is likely.
        """
        first, most = self.sizes
        if tried.beyond > _FAR * (1 - self.percentile / 100):
            return size * _TIMES
        if needs is None:
            return most
        if needs > most:
            return most // _TIMES if size == first else size
        return size * _TIMES if size >= needs else needs

    def _needs(self, relaxation: float | None) -> int | None:
        """Say how many requests an interval needs with this relaxation; None: that is not known."""
        if relaxation is None or relaxation == inf:
            return None
        beyond = 1 - self.percentile / 100
        units = max(relaxation, 1 / self.least_share)
        return ceil(_SPARE * units * max(MEAN_UNITS, TAIL_UNITS / beyond))

    def _tried(self, rate: float, load: float, size: int, unsure: str) -> saturation.Tried:
        """Serve so many requests; unsure: why no verdict is certain, if that is so."""
        overrides, last = [*self.overrides, *rate_overrides(self.rates, rate)], size == self.most
        wanted = tuple(sorted({99.0, self.percentile, *saturation.far_above(self.percentile)}))
        served = serve_on_horizon(self.scenario, size, overrides, wanted, progress=self.watch, believed=bool(unsure))
        serving = served.serving
        came = serving.requests + serving.rejected
        away = serving.rejected / came
        if served.full_at is not None and not unsure:
            # one giant burst may be the cause: where a run is cut off says nothing of what comes behind
            text = f"more than {served.window:,} requests were in the machine at once, where the run ended"
            return saturation.Tried(rate, None, None, away, "cannot tell", came, load, missing=text)
        if serving.verdict == "unstable" and last:
            verdict = "seen above" if unsure else "unstable"
            return saturation.Tried(rate, None, saturation.VERDICTS[verdict], away, verdict, came, load)
        widths = 1.0 if last else _EARLY
        every = self._judged(serving, serving.latency, None, serving.requests, serving.rejected, widths)
        tenants = {
            name: self._judged(serving, each.latency, name, each.requests, each.rejected, widths)
            for name, each in serving.tenants.items()
            if name in self.bounds_ms and each.latency is not None
        }
        parts = [*tenants.values(), *([] if self.bound_ms is None else [every])]
        missing = set(self.bounds_ms) - set(tenants)
        verdict = saturation.joined([*(each.verdict for each in parts), *["too few"] * bool(missing)])
        if served.full_at is not None:
            verdict = "above" if any((each.percentile_ms or 0.0) > each.bound_ms for each in parts) else "cannot tell"
        verdict = f"seen {verdict}" if unsure and verdict in ("below", "above") else verdict
        return saturation.Tried(
            rate=rate,
            p99_ms=serving.ms(serving.latency.p99.value) if serving.requests else None,
            kept=saturation.VERDICTS[verdict],
            rejected=away,
            verdict=verdict,
            requests=came,
            load=load,
            percentile_ms=every.percentile_ms,
            half_width_ms=every.half_width_ms,
            ends_ms=every.ends_ms,
            tenants=tenants,
            beyond=max((each.beyond for each in parts), default=0.0),
        )

    def _judged(
        self, serving: Serving, latency: Distribution, name: str | None, served: int, away: int, widths: float
    ) -> saturation.Judged:
        """Judge one bound: of all requests (None) or of a tenant."""
        interval = latency.percentiles[self.percentile].scaled(serving.ms(1))
        # A queue of so many places is a random walk that has been everywhere after its square.
        walk, load = float(serving.most_waiting) ** 2, serving.load
        alike = max(1.0, min(walk if load is None or load.relaxation is None else load.relaxation, walk))
        bound = self.bounds_ms[name] if name is not None else self.bound_ms
        return saturation.judged(
            interval,
            interval.value if bound is None else bound,
            self.percentile,
            served=served,
            rejected=away,
            may_leave=bool(self.leaving) if name is None else name in self.leaving,
            alike=alike,
            widths=widths,
            others={
                each: serving.ms(latency.percentiles[each].value) for each in saturation.far_above(self.percentile)
            },
            units=latency.units,
        )
