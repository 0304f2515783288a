"""Do the intervals hold what they promise? Many runs of M/D/1, whose truth is known, each judged like a run of `serve`.

The intervals are of nominally 95 %. For each load and number of requests the study counts in how many runs the mean
latency, its 99th and its 99.9th percentile have an interval, and in how many of those the interval holds the true
value. The true mean is Pollaczek and Khinchine's; the true percentiles are of Erlang's distribution of the wait. The
seeds are not those that the constants were tuned with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
from numpy.typing import NDArray

from experiments.serving.queueing import md1_wait
from lstmsim.traffic.latencies import Series
from lstmsim.traffic.streams import UNIT, exponential_arrays

LOADS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
#: Requests of a run, and how many runs of that length.
RUNS = {300: 400, 1_000: 400, 5_000: 400, 20_000: 200, 200_000: 60}
PERCENTILES = (99.0, 99.9)
#: Cycles of a service: so many that whole cycles make no difference.
SERVICE = 100_000


@dataclass(frozen=True)
class Row:
    """What a load and a number of requests gave.

    reported: how many of the runs have an interval, for the mean and each percentile.
    held: how many of these intervals hold the truth.
    """

    load: float
    requests: int
    runs: int
    reported: tuple[int, ...]
    held: tuple[int, ...]


def waits(load: float, requests: int, number: int) -> NDArray[np.int64]:
    """Waits in M/D/1 that begins empty (Lindley's recursion as a reflected sum), in cycles; run number `number`."""
    blocks = exponential_arrays(("coverage", f"{load:g}", requests, number), requests - 1)
    steps = SERVICE - next(blocks) / UNIT * (SERVICE / load)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return np.floor(walk - np.minimum.accumulate(walk)).astype(np.int64)


def waits_at_most(load: Decimal, services: Decimal) -> Decimal:
    """P(wait <= t) in M/D/1 (Erlang 1909): (1 - a) sum over k <= t of (a (k - t))^k / k! exp(-a (k - t)).

    Terms alternate and are far larger than their sum, so that it takes many digits.
    """
    total, factorial = Decimal(0), Decimal(1)
    for k in range(int(services) + 1):
        factorial *= max(1, k)
        off = load * (k - services)
        total += (off**k if k else 1) / factorial * (-off).exp()
    return (1 - load) * total


@cache
def truths(load: float) -> tuple[float, ...]:
    """The true mean latency and percentiles, in cycles."""
    values = [SERVICE + md1_wait(load, SERVICE)]
    with localcontext() as context:
        context.prec = 120
        for percent in PERCENTILES:
            low, high = Decimal(0), Decimal(200)
            for _ in range(50):
                middle = (low + high) / 2
                below = waits_at_most(Decimal(str(load)), middle) < Decimal(str(percent)) / 100
                low, high = (middle, high) if below else (low, middle)
            values.append(SERVICE * (1 + float(low)))
    return tuple(values)


def row(load: float, requests: int, runs: int) -> Row:
    """Runs of so many requests at a load; the first tenth of each is left out."""
    reported, held = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for number in range(runs):
        series = Series()
        series.add(waits(load, requests, number) + SERVICE)
        measured = series.distribution(requests // 10, relaxation=1 / (1 - load) ** 2, percentiles=PERCENTILES)
        intervals = (measured.mean, *measured.percentiles.values())
        reported += [each.half_width is not None for each in intervals]
        held += [each.holds(truth) for each, truth in zip(intervals, truths(load), strict=True)]
    return Row(load, requests, runs, tuple(reported.tolist()), tuple(held.tolist()))


def rows(small: bool = False) -> Iterator[Row]:
    """The whole study; `small`: a part of it."""
    for load in LOADS[1::3] if small else LOADS:
        for requests, runs in list(RUNS.items())[: 3 if small else None]:
            yield row(load, requests, runs)


def table(coverage_rows: list[Row]) -> list[str]:
    """For each load and length: share of runs with an interval, and of these the share that hold the truth."""
    lines = ["| load | requests | runs | mean | p99 | p99.9 |", "| ---: | ---: | ---: | ---: | ---: | ---: |"]
    for each in coverage_rows:
        cells = [
            f"{100 * reported / each.runs:.0f} %: {100 * held / reported:.1f} %" if reported else "too few"
            for reported, held in zip(each.reported, each.held, strict=True)
        ]
        lines.append(f"| {each.load:g} | {each.requests:,} | {each.runs} | {' | '.join(cells)} |")
    return lines
