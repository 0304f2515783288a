"""Statistics of one long run: Student's t, batch means, and confidence intervals that hold what they promise, or none.

The warm-up that is left out is the first tenth, whatever it holds. A cut that depends on the numbers that are kept, as
that of MSER-5, likes to cut peaks, which come in queues at any time: on M/D/1 from empty (400 runs of 5,000 requests
each) it makes the mean wait 0.5 %, 1.3 % and 5.7 % too small at loads 0.3, 0.7 and 0.9; the fixed tenth leaves less
than one standard error (0.2 %, 0.4 %, 1.1 %).

A queue forgets slowly. In heavy traffic every queue of one kind of server looks like the same Brownian motion once
requests are counted in units of its relaxation, (ca^2 + cs^2) / (1 - load)^2 requests (ca, cs: coefficients of
variation of gaps and work; Whitt: Planning queueing simulations; Management Science 35, 1989). What an interval covers
is therefore a matter of how many such units a run has, whatever the load; so the gates are numbers of units:

* mean: `MEAN_UNITS` of them. Then ten or more batches of at least ten units each give Student's t (Schmeiser: Batch
  size effects in the analysis of simulation output; Operations Research 30, 1982). Two corrections: neighbouring
  batches still share a unit or two, by which their variance is too small; and a quiet run has a low mean and a narrow
  interval at once, which the logarithm of the mean's excess over the least value does not have.
* a percentile p: also `TAIL_UNITS` independent excursions beyond it, of which n (1 - p) / relaxation are to be
  expected, because what lies beyond comes in clusters (Aldous: Probability approximations via the Poisson clumping
  heuristic; Springer, 1989, chapter D). The t interval is that of the share of requests below it, batch by batch; its
  ends are percentiles (Iglehart: Simulating stable stochastic systems VI: quantile estimation; Journal of the ACM 23,
  1976). No interval where it would reach beyond the largest value.

To choose by the run alone whether it is long enough would choose the lucky runs: at load 0.95 a quiet short run looks
as if it had nothing to forget. So the units come from the offered load. The data have a veto only: where batches vary
twice as much as the load explains, or neighbouring batches are alike. Where no load is known the relaxation is
estimated from the data, and multiplied by `UNKNOWN`. The constants were tuned on M/D/1, M/M/1 and M/G/1 with one set
of seeds; `experiments/serving/coverage.py` measures the coverage with another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import exp, fsum, inf, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake


@dataclass(frozen=True)
class Interval:
    """An estimate and its 95 % confidence interval: value ± half_width, or `ends`.

    value: the estimate.
    half_width: that of the larger side; None where there are too few requests for an interval.
    batches: number of batches from which the interval was made.
    correlation: that of neighbouring batches. It is clearly above 0 (twice 1 / sqrt(batches), say) if batches are too
        short to be independent of each other.
    ends: the ends where value ± half_width would reach beyond what is possible; None: it does not.
    """

    value: float
    half_width: float | None = None
    batches: int = 0
    correlation: float = 0.0
    ends: tuple[float, float] | None = None

    def holds(self, value: float) -> bool:
        """Say whether the interval holds this value; False where there is no interval."""
        return self.half_width is not None and abs(value - self.value) <= self.half_width

    def scaled(self, factor: float) -> Interval:
        """Give the interval in another unit."""
        half = None if self.half_width is None else self.half_width * factor
        ends = None if self.ends is None else (self.ends[0] * factor, self.ends[1] * factor)
        return Interval(self.value * factor, half, self.batches, self.correlation, ends)

    def within(self, least: float, most: float = inf) -> Interval:
        """Give the interval with ends from `least` to `most`, the possible values: it covers no less so."""
        half = self.half_width
        if half is None or (least <= self.value - half and self.value + half <= most):
            return self
        return replace(self, ends=(max(least, self.value - half), min(most, self.value + half)))


@dataclass(frozen=True)
class Warmup:
    """The warm-up of a run: the rule by which it was chosen, and how many requests at the beginning are left out."""

    rule: str
    requests: int


@cache
def student_t(confidence: float, degrees: int) -> float:
    """Give the t with P(|T| <= t) = `confidence` for Student's distribution with so many degrees of freedom."""
    if not 0 < confidence < 1 or degrees < 1:
        text = f"must be between 0 and 1, with at least 1 degree of freedom, got {confidence} with {degrees}"
        raise InputError(Mistake("confidence", text))
    # P(|T| > t) is the incomplete beta function at x = degrees / (degrees + t^2), which grows with x.
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if _incomplete_beta(degrees / 2, 0.5, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    return sqrt(degrees * (1 - high) / high)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized; by its continued fraction (Abramowitz and Stegun 26.5.8), where it converges fast."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    return front * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """1 / (1 + d1 / (1 + d2 / ...)), from the front (Lentz)."""
    upper, lower = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            lower, upper = 1 / (1 + term * lower), 1 + term / upper
            change = lower * upper
            value *= change
        if abs(change - 1) < 1e-15:
            break
    return value


def batch_interval(value: float, batches: Sequence[float]) -> Interval:
    """Give an estimate with the t interval that equal batches of the same run give for it, if there are 2 or more.

    The method of batch means; 10 to 30 batches are enough (Schmeiser: Batch size effects in the analysis of
    simulation output; Operations Research 30, 1982).
    """
    number = len(batches)
    if number < 2:
        return Interval(value)
    mean = fsum(batches) / number
    off = [batch - mean for batch in batches]
    squares = fsum(one * one for one in off)
    products = fsum(one * two for one, two in pairwise(off))
    half = student_t(CONFIDENCE, number - 1) * sqrt(squares / (number - 1) / number)
    return Interval(value, half, number, products / squares if squares else 0.0)


def warmup_of(requests: int, given: int | None = None) -> Warmup:
    """Give the warm-up of a run of so many requests: `given` of them; None: the first tenth."""
    if given is not None:
        return Warmup("given", given)
    return Warmup(f"the first tenth of {requests:,}", requests // 10)


def jain(shares: Sequence[float]) -> float:
    """Give Jain's index: 1 if all shares are equal, 1 / n if one has everything, 1 where nobody has anything.

    Source: Jain, Chiu, Hawe: A quantitative measure of fairness; DEC-TR-301, 1984.
    """
    squares = fsum(share * share for share in shares)
    return fsum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


#: That of every interval.
CONFIDENCE = 0.95
#: Fewest batches for confidence intervals, and most.
BATCHES, MOST_BATCHES = 10, 30
#: A mean has an interval from so many units of relaxation on.
MEAN_UNITS = 100.0
#: A percentile has an interval if so many units of relaxation lie beyond it.
TAIL_UNITS = 12.0
#: Where no load is known, the relaxation counts so many times what the data show of it.
UNKNOWN = 4.0
#: Where it is known, the data overrule it if they show so many times as much.
OVERRULED = 2.0
#: Neighbouring batches are alike if their correlation is above so many standard deviations of that of independent ones.
ALIKE = 2.0
#: The queue grows if the correlation of the means of batches with their number is larger.
GROWING = 0.97
#: Batches of this many units vary as independent ones would, but for a share of two units of their size.
_SHARED = 2.0


def requests_for(relaxation: float, percent: float | None = None) -> float:
    """Give how many requests the interval of the mean (None) or a percentile takes, the warm-up included."""
    units = 0.0 if percent is None else TAIL_UNITS / min(percent / 100, 1 - percent / 100)
    return max(MEAN_UNITS, units) * relaxation / 0.9


class Spread(NamedTuple):
    """The means of equal batches of a series, and how many numbers each batch holds."""

    means: Sequence[float]
    size: int


def batch_number(requests: int, relaxation: float) -> int:
    """Say in how many batches a series is best put: 10 to 30, of twenty units of relaxation where there is room."""
    return int(min(MOST_BATCHES, max(BATCHES, requests // (20 * relaxation))))


def forgetting(spreads: Sequence[Spread], variance: float, relaxation: float | None) -> float:
    """Give the relaxation for intervals: `relaxation`, unless the batches vary far more than it explains.

    In a stationary series size * variance of batch means / variance goes to twice the relaxation of a queue as batches
    grow. The largest of several sizes is taken, for small batches hide what is forgotten slowly.
    """
    seen = 1.0
    for means, size in spreads:
        if len(means) > 1 and variance > 0:
            average = fsum(means) / len(means)
            seen = max(seen, size * fsum((mean - average) ** 2 for mean in means) / (len(means) - 1) / variance / 2)
    return UNKNOWN * seen if relaxation is None else max(1.0, relaxation, seen / OVERRULED)


def mean_interval(value: float, least: float, spread: Spread, requests: int, units: float) -> Interval:
    """Give the interval of a mean; without half width if the requests are too few."""
    if requests < MEAN_UNITS * units or len(spread.means) < BATCHES:
        return Interval(value)
    plain = batch_interval(value, spread.means)
    half, excess = widened(plain, spread.size, units), value - least
    if half and excess > 0:
        half = excess * (exp(half / excess) - 1)
    return unless_alike(plain, half).within(least)


def tail_interval(
    percent: float, value: float, spread: Spread, requests: int, units: float, percentile: Callable[[float], float]
) -> Interval:
    """Give the interval of a percentile; without half width if too few requests lie beyond it."""
    share = percent / 100
    beyond = requests * min(share, 1 - share) / units
    if requests < MEAN_UNITS * units or beyond < TAIL_UNITS * (1 - 1e-9) or len(spread.means) < BATCHES:
        return Interval(value)
    plain = batch_interval(share, spread.means)
    # Where all batches are alike, the share is still no finer than one independent request (a unit) would change it.
    off = max(widened(plain, spread.size, units), units / requests)
    if share + off >= 1 or share - off <= 0:
        return Interval(value, None, plain.batches, plain.correlation)
    low, high = percentile(100 * (share - off)), percentile(100 * (share + off))
    made = unless_alike(plain, max(high - value, value - low, 0.0), value).within(percentile(0), percentile(100))
    return made if made.ends is None else replace(made, ends=(min(low, value), max(high, value)))


def widened(plain: Interval, size: float, units: float) -> float:
    """Give the half width of independent batches, widened as much as batches of this size vary too little."""
    return (plain.half_width or 0.0) / sqrt(1 - min(0.75, _SHARED * units / size))


def unless_skewed(half: float, values: NDArray[np.float64], units: float, degrees: int) -> float:
    """Give the half width of a mean that holds also where a few large values have all the weight.

    Runs without these have a mean and an interval that are too small at once. So t is put through the cubic by which
    the skewness of the mean bends it, on its worse side (Hall: On the removal of skewness by transformation; Journal
    of the Royal Statistical Society B 54, 1992).

    half: of Student's t with so many `degrees`.
    values: the series, of which batches of ten units give the skewness.
    """
    number = max(BATCHES, int(len(values) // (10 * units)))
    size = len(values) // number
    off = values[: size * number].reshape(number, size).mean(axis=1)
    off = off - off.mean()
    square = float(np.mean(off**2))
    skewness = float(np.mean(off**3)) / square**1.5 / sqrt(number) if square > 0 else 0.0
    if abs(skewness) < 1e-9:
        return half
    t = student_t(CONFIDENCE, degrees)
    bent = [3 / skewness * (float(np.cbrt(1 + skewness * (end - skewness / 6))) - 1) for end in (-t, t)]
    worse: float = max([t, *map(abs, bent)])
    return half * worse / t


def unless_alike(plain: Interval, half: float, value: float | None = None) -> Interval:
    """Give the interval around `value` (None: around `plain.value`), or none where neighbouring batches are alike."""
    alike = plain.correlation > ALIKE / sqrt(plain.batches) or half == inf
    middle = plain.value if value is None else value
    return Interval(middle, None if alike else half, plain.batches, plain.correlation)


def growing(means: Sequence[float]) -> bool:
    """Say whether the means of ten or more batches lie on a rising line, the last ones well above the first.

    At this level one stable queue in 100,000 would be said to grow, if its batches forget each other.
    """
    number = len(means)
    if number < BATCHES:
        return False
    third = number // 3
    first, last = fsum(means[:third]), fsum(means[-third:])
    spread = float(np.std(means))
    return spread > 0 and last > 2 * first and float(np.corrcoef(means, range(number))[0, 1]) > GROWING


def spreads_of(values: NDArray[np.int64], sizes: Sequence[int] = (10, 20, 40, 80, 160)) -> list[Spread]:
    """Cut a series into batches, once for each number of batches in `sizes` that leaves five or more values in each."""
    spreads = []
    for number in sizes:
        size = len(values) // number
        if size >= 5:
            means = values[: size * number].reshape(number, size).mean(axis=1, dtype=np.float64)
            spreads.append(Spread(means.tolist(), size))
    return spreads


def wilson(share: float, number: float, confidence: float = 0.95, widths: float = 1.0) -> tuple[float, float]:
    """Give the ends of the interval of a probability from a share of independent trials, `widths` times as wide.

    Source: Wilson, Probable inference, the law of succession, and statistical inference; Journal of the American
    Statistical Association 22, 1927.
    """
    if number <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2) * widths
    middle = share + z * z / (2 * number)
    half = z * sqrt(share * (1 - share) / number + z * z / (4 * number * number))
    least, most = ((middle + sign * half) / (1 + z * z / number) for sign in (-1, 1))
    return max(0.0, least), min(1.0, most)
