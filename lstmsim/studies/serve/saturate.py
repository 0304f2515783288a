"""How many requests a machine can bear: runs at rates that a bisection chooses, each as long as its verdict needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log2
from typing import Any

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.requests import ScenarioRates, load_requests, rate_overrides, rates_of
from lstmsim.studies.serve import saturation
from lstmsim.studies.serve.offered import capacity_of, load_of
from lstmsim.studies.serve.request import SaturateRequest
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.serve.run import serve_on_horizon
from lstmsim.studies.shared.loading import Path, drawn_anew
from lstmsim.studies.shared.request import Source, takes, wrong_value
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.traffic.intervals import MEAN_UNITS, TAIL_UNITS
from lstmsim.traffic.latencies import Distribution

#: Most requests of one run: up to half a minute each, and a minute or two for a whole search.
MOST_REQUESTS = 1_000_000
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
    do, or its queue grows, is unstable and keeps no bound. If more than 1 - percentile of the requests are rejected
    (Wilson's interval of the share), the rate keeps no bound either. Where requests may be rejected (`queue_limit`,
    `patience`), `high` is doubled, unless it is given, until a bound is broken.

    `InputError` for a scenario without rates, for clients who wait for answers, and for tenants that are not there.
    Ctrl-C after the first run is a `SearchInterrupted`, whose `found` is the answer as far as it is known.

    >>> arrival = {"kind": "poisson", "rate_per_second": 1e5}
    >>> jobs = [{"model": "lstm-256", "steps": 1, "count": 200, "arrival": arrival}]
    >>> answer = saturate({"chip": "column-npu-16k", "jobs": jobs}, 0.002, tolerance=0.2, most_requests=10_000)
    >>> answer.bound_per_second > answer.rate > 1e5
    True
    """
    bounds, low, high, tolerance = dict(request.bounds_ms or {}), request.low, request.high, request.tolerance
    refuse(*(wrong_value("a name in bounds_ms", name, str) for name in bounds))
    refuse(*(wrong_value(f"bound of {show(name)}", each, float) for name, each in bounds.items()))
    asked = drawn_anew(request.scenario), tuple(request.overrides)
    runs = _Runs(*asked, request.bound_ms, bounds, request.percentile, rates_of(*asked), request.progress)
    ends = runs.ends(low, high, tolerance)
    runs.sizes = _sizes(request.percentile, request.most_requests)
    runs.about = 6 + 2 * max(0, ceil(log2((ends[1] - ends[0]) / (tolerance * ends[1]))))
    doublings = _DOUBLINGS if runs.leaving and high is None else 0

    def close(lower: float, upper: float) -> bool:
        return upper - lower <= tolerance * upper

    try:
        return runs.answer(saturation.bisect_verdicts(runs.judge, *ends, close=close, doublings=doublings))
    except saturation.SearchInterrupted as stopped:
        stopped.found = replace(runs.answer(stopped.known), complete=False)
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
    runs = _Runs(*asked, bound_ms, {}, percentile, rates_of(*asked), None)
    runs.sizes = _sizes(percentile, most_requests)
    return runs.judge(rate)


def _sizes(percentile: float, most: int | None) -> tuple[int, int]:
    """Give the fewest and the most requests of a run."""
    limit = MOST_REQUESTS if most is None else most
    return min(limit, max(FIRST_REQUESTS, ceil(_BEYOND / (1 - percentile / 100)))), limit


@dataclass
class _Runs:
    """The question, and runs at one rate after another that answer it.

    leaving: names of the tenants whose requests may be rejected.
    least_share: of all requests, how many belong to the rarest tenant that has a bound.
    """

    scenario: Path | Mapping[str, Any]
    overrides: tuple[str, ...]
    bound_ms: float | None
    bounds_ms: dict[str, float]
    percentile: float
    rates: ScenarioRates
    progress: Callable[[int, int], None] | None

    def __post_init__(self) -> None:
        """`InputError` for a question that cannot be judged."""
        wrong = []
        if self.bound_ms is None and not self.bounds_ms:
            wrong.append(Mistake("bound_ms", "is missing: expected a bound on all requests, or on a tenant"))
        if not 0 < self.percentile < 100:
            wrong.append(Mistake("percentile", f"must be above 0 and below 100, got {self.percentile:g}"))
        drawn = load_requests(self.scenario, self.overrides, 1)
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
        self.sizes, self.done, self.about = (1, 1), 0, 1

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
        best, worst, undecided, runs = known
        machine = self.capacity.bound_per_second, self.capacity.limits_per_second, self.capacity.not_counted
        made = saturation.Saturation(
            best, worst, self.bound_ms, runs, undecided, self.percentile, self.bounds_ms, *machine, stamp=self.stamp
        )
        return replace(made, peak_ratio=self.rates.peak_ratio)

    def judge(self, rate: float) -> saturation.Tried:
        """Judge one rate, and report that it is done."""
        tried = self._judge(rate)
        self.done += 1
        if self.progress is not None:
            self.progress(min(self.done, self.about), self.about)
        return tried

    def _judge(self, rate: float) -> saturation.Tried:
        """Judge one rate, by as many requests as its verdict needs."""
        known = load_of(self.scenario, [*self.overrides, *rate_overrides(self.rates, rate)], self.sizes[1])
        # What preemption adds does not grow in proportion to the rate.
        load = self.capacity.load(rate) if known.preemption is None else known.offered
        if known.unsure:
            return saturation.Tried(rate, None, None, verdict="cannot tell", load=load, missing=known.unsure)
        # Where requests may leave the queue it may be stable at any load.
        if load >= 1 - 1e-9 and not self.leaving:
            return saturation.Tried(rate, None, saturation.VERDICTS["unstable"], verdict="unstable", load=load)
        needs, (size, most) = self._needs(known.relaxation), self.sizes
        while True:
            tried = self._tried(rate, load, size, size == most)
            following = min(most, self._next(size, needs, tried))
            if tried.kept is not None or tried.missing or following <= size:
                return replace(tried, needs=needs)
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

    def _tried(self, rate: float, load: float, size: int, last: bool) -> saturation.Tried:
        overrides = [*self.overrides, *rate_overrides(self.rates, rate)]
        wanted = tuple(sorted({99.0, self.percentile, *saturation.far_above(self.percentile)}))
        served = serve_on_horizon(self.scenario, size, overrides, wanted)
        serving = served.serving
        came = serving.requests + serving.rejected
        away = serving.rejected / came
        if served.full_at is not None:
            # one giant burst may be the cause: where a run is cut off says nothing of what comes behind
            text = f"more than {served.window:,} requests were in the machine at once, where the run ended"
            return saturation.Tried(rate, None, None, away, "cannot tell", came, load, missing=text)
        if serving.verdict == "unstable" and last:
            return saturation.Tried(rate, None, saturation.VERDICTS["unstable"], away, "unstable", came, load)
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
