"""The simulator as a queue: one thread, equal jobs, Poisson arrivals; M/D/1 down to the formula."""

from __future__ import annotations

import os
from functools import cache
from itertools import repeat

import pytest

import lstmsim as api
from experiments.serving.queueing import md1_wait
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.arrivals import Poisson, arrivals
from lstmsim.traffic.load import Load
from tests.studies.serve.collecting import Collector
from tests.traffic.lindley import Finished, served

MHZ = 250.0
#: Requests at each load: as many as an interval of the mean takes, and some more.
#: Jobs at each load; all loads in the long run.
COUNTS = {0.3: 4000, 0.5: 4000, 0.7: 4000, 0.8: 6000, 0.9: 20_000}
COUNTS = COUNTS if "LSTMSIM_EXAMPLES" in os.environ else {each: COUNTS[each] for each in (0.3, 0.8)}
LOADS = tuple(COUNTS)


def simulate(cycles: list[int]) -> list[Finished]:
    """The jobs of a small network that come at these cycles, as simulated on one core with one thread."""
    core = {"npe": 64, "ep": 8, "vp": 8}
    model = {"layers": [{"cell": "rnn", "hidden": 8, "input": 8}]}
    jobs = [{"model": model, "steps": 1, "count": len(cycles), "arrival": cycles}]
    report = api.simulate({"chip": {"kind": "column-npu", "frequency_mhz": MHZ, "cores": [core]}, "jobs": jobs})
    return [(number, job.arrival, job.start, job.finish) for number, job in enumerate(report.jobs)]


@cache
def service() -> int:
    [(_, _, start, finish)] = simulate([17])
    assert start == 17
    return finish - start


@cache
def run(load: float) -> tuple[list[int], list[Finished], Serving]:
    cycles = list(arrivals(Poisson(load / service() * MHZ * 1e6), COUNTS[load], MHZ, (1, f"load {load}")))
    rows = simulate(cycles)
    collector = Collector(MHZ)
    for row in rows:
        collector.add(*row)
    rate = load / service() * MHZ * 1e6
    known = Load(load, {"threads": load}, rate, rate / load, relaxation=1 / (1 - load) ** 2)
    return cycles, rows, collector.figures(load=known)


@pytest.mark.slow
@pytest.mark.parametrize("load", LOADS)
def test_the_simulator_is_lindleys_queue(load: float) -> None:
    """Cycle by cycle the recursion: no job starts late, none is served longer (work conservation)."""
    cycles, rows, _ = run(load)
    assert rows == list(served(cycles, repeat(service())))


@pytest.mark.parametrize("load", LOADS)
def test_waits_are_those_of_the_formula(load: float) -> None:
    """Floored arrivals leave the mean wait of M/D/1 unchanged: time lost between slots is won within slots."""
    _, _, result = run(load)
    assert result.wait.mean.holds(md1_wait(load, service()))
    assert result.wait.exact


@pytest.mark.parametrize("load", LOADS)
def test_laws_hold_on_every_run(load: float) -> None:
    _, _, result = run(load)
    assert result.little.difference == result.little_waiting.difference == 0
    assert result.service_cycles == COUNTS[load] * service()
    idle = sum(each.width_cycles for each in result.windows) - sum(each.running_cycles for each in result.windows)
    assert result.span_cycles == result.service_cycles + idle
    assert result.utilization == pytest.approx(load, rel=0.05)


def test_floored_arrivals_leave_the_mean_wait() -> None:
    """Slots with a Poisson number of arrivals each, solved exactly: V' = max(0, V + D A - 1) before each slot.

    E V = D^2 rate / (2 (1 - load)) - load / 2 for the work left, and load / 2 more for those of the same slot.
    """
    duration, load = 34, 0.6
    rate = load / duration
    left = duration**2 * rate / (2 * (1 - load)) - load / 2
    ahead = rate / 2 * duration
    assert left + ahead == pytest.approx(md1_wait(load, duration))
