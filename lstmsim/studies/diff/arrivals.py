"""Latencies at open arrivals: differences with intervals, in pairs where the same requests come on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot, inf

import numpy as np

from lstmsim.analysis.report import Report
from lstmsim.base.errors import InputError
from lstmsim.base.wording import counted
from lstmsim.model.scenario import Scenario, arriving
from lstmsim.studies.compare.result import LATE
from lstmsim.studies.diff.result import Arrivals, Verdict
from lstmsim.studies.diff.sides import Pairing, Side
from lstmsim.studies.serve.metrics import served
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.simulate.run import Run
from lstmsim.traffic.intervals import Interval
from lstmsim.traffic.load import VERDICTS
from lstmsim.traffic.paired import PERCENTILES, Fractions, in_pairs


def arrivals_of(a: Side, b: Side, pairs: Sequence[Pairing]) -> Arrivals | None:
    """Compare latencies; None where the makespans say more.

    pairs: the jobs by their numbers on both sides.

    Latencies count where jobs come at open arrivals on both sides: as a process, or at given times of which the last
    one is late in the makespan (`Comparison.by_latency` has the same rule).
    """
    if not isinstance(a.run, Run) or not isinstance(b.run, Run):
        return None
    runs = a.run, b.run
    drawn = any(_drawn(each.scenario) for each in runs)
    late = any(max(job.arrival for job in each.scenario.jobs) >= LATE * each.report.makespan_cycles for each in runs)
    if not (drawn or late) or not all(arriving(each.scenario.jobs) == "open" for each in runs):
        return None
    latency, came = ([_by_number(each.report, name) for each in runs] for name in ("latency", "arrival"))
    both = [(i, j) for i, j in pairs if i in latency[0] and j in latency[1]]
    both.sort(key=lambda pair: came[0][pair[0]])
    same = all(None not in pair for pair in pairs) and _alike(runs, pairs)
    servings = [_serving(each) for each in runs]
    rows = np.array([(latency[0][i], latency[1][j]) for i, j in both], dtype=np.int64).reshape(-1, 2)
    ms: Fractions = rows / np.array([each.report.frequency_mhz * 1000 for each in runs])
    reason = ""
    if not same and drawn:
        differences = _combined(servings)
        reason = "" if differences["mean"].half_width is not None else _why(servings, "too few requests")
    else:
        ms = ms[len(ms) // 10 if drawn else 0 :]
        differences = in_pairs(ms, _relaxation(servings)) if len(ms) else {}
        if drawn and (not differences or differences["mean"].half_width is None):
            reason = _why(servings, f"{counted(len(ms), 'request')} are too few for an interval")
    only = [sum(i in latency[0] and j is not None and j not in latency[1] for i, j in pairs)]
    only += [sum(j in latency[1] and i is not None and i not in latency[0] for i, j in pairs)]
    means = runs[0].report.latency_ms.mean, runs[1].report.latency_ms.mean
    return Arrivals(same, drawn, len(ms), only[0], only[1], means, differences, reason)


def verdict_of(arrivals: Arrivals) -> Verdict:
    """Say whether B is faster by the mean latency.

    A side that serves fewer of the requests that both have is not called faster, for who rejects more has less to do.
    """
    mean = arrivals.difference_ms.get("mean")
    if mean is None or (arrivals.drawn and mean.half_width is None):
        return "cannot tell"
    if not mean.value and not mean.half_width:
        return "same" if arrivals.only_a == arrivals.only_b == 0 else "cannot tell"
    if arrivals.drawn and mean.holds(0.0):
        return "cannot tell"
    if mean.value < 0:
        return "faster" if arrivals.only_a <= arrivals.only_b else "cannot tell"
    return "slower" if arrivals.only_a >= arrivals.only_b else "cannot tell"


def _by_number(report: Report, name: str) -> dict[int | None, int]:
    return {each.number: getattr(each, name) for each in report.jobs}


def _alike(runs: tuple[Run, Run], pairs: Sequence[Pairing]) -> bool:
    """Whether all jobs come at the same times. In cycles of unlike clocks a time is rounded."""
    clocks = [each.report.frequency_mhz for each in runs]
    off = 0.0 if clocks[0] == clocks[1] else 1 / min(clocks)
    jobs = [each.scenario.jobs for each in runs]
    times = ((jobs[0][i or 0].arrival / clocks[0], jobs[1][j or 0].arrival / clocks[1]) for i, j in pairs)
    return all(abs(one - other) <= off for one, other in times)


def _drawn(scenario: Scenario) -> bool:
    return bool(scenario.seeds) or any(each.rate_per_second > 0 for each in scenario.offers.values())


def _serving(run: Run) -> Serving | str:
    """The figures of serving, or why there are none."""
    try:
        return served(run.scenario, run.program, run.report, run.totals)
    except InputError as error:
        return "; ".join(each.sentence for each in error.mistakes)


def _why(servings: Sequence[Serving | str], otherwise: str) -> str:
    """Why no interval is known: what a machine refuses, or an unsettled queue, or else `otherwise`."""
    for side, each in zip("AB", servings, strict=True):
        if isinstance(each, str):
            return f"{side}: {each}"
        if each.verdict not in ("settled", "too few"):
            return f"{side}: {VERDICTS[each.verdict]}"
    return otherwise


def _relaxation(servings: Sequence[Serving | str]) -> float | None:
    """About how many requests pass until both queues have forgotten their past; None: unknown."""
    known = [inf if isinstance(each, str) else each.relaxation for each in servings]
    return None if None in known else max(each for each in known if each is not None)


def _combined(servings: Sequence[Serving | str]) -> Mapping[str, Interval]:
    """Differences of runs that have nothing to do with each other."""
    known = [each for each in servings if not isinstance(each, str)]
    if len(known) < 2:
        return {"mean": Interval(0.0)}
    found = {}
    for name in ("mean", *PERCENTILES):
        a, b = (
            (one.latency.mean if name == "mean" else one.latency.percentiles[PERCENTILES[name]]).scaled(
                1 / one.frequency_mhz / 1000
            )
            for one in known
        )
        half = None if a.half_width is None or b.half_width is None else hypot(a.half_width, b.half_width)
        found[name] = Interval(b.value - a.value, half, min(a.batches, b.batches))
    return found
