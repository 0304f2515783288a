"""What held the slowest requests up: where their time went, beside where that of all requests went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.latency_shares import SHARES, WORK, latency_shares, share_words
from lstmsim.model.arriving import arriving
from lstmsim.model.figures import Words
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

__all__ = [
    "MAX_LISTED",
    "LatencyShare",
    "SlowRequest",
    "Slowest",
    "TailLatency",
    "slowest",
    "slowest_of",
    "tail_latency",
]

Numbers = NDArray[np.int64]

#: How many of the slowest requests are listed one by one.
MAX_LISTED = 10
#: One request of so many is among the slowest, rounded up.
_ONE_OF = 100


@dataclass(frozen=True)
class LatencyShare:
    """Cycles of a request that bear one name.

    name: a key of `lstmsim.analysis.explanations.latency_shares.SHARES`, but the name of the main unit for `WORK`.
    slowest: cycles, the mean over the slowest requests.
    all: cycles, the mean over all requests that were served.
    """

    name: str
    slowest: float
    all: float


@dataclass(frozen=True)
class SlowRequest:
    """One of the slowest requests.

    job: name of its job.
    arrival: cycle at which it came.
    latency_cycles: from its arrival to its last result.
    cycles: its cycles by name; they add up to the latency. Names of 0 cycles are left out.
    """

    job: str
    arrival: int
    latency_cycles: int
    cycles: dict[str, int]


@dataclass(frozen=True)
class TailLatency:
    """Latencies of a run in cycles.

    mean: of all requests that were served.
    slowest: the mean of the slowest requests.
    """

    mean: float
    slowest: float


@dataclass(frozen=True)
class Slowest:
    """The slowest 1 % of the requests of a run (rounded up, at least one) against all of them.

    requests: how many requests were served.
    count: how many of them are among the slowest.
    from_cycles: the least latency of the slowest.
    turned_away: how many more requests were turned away; they are not counted.
    latency: the mean latencies.
    shares: what the mean latencies consist of, the largest share of the slowest first; each column adds up to its mean.
    listed: the slowest requests one by one, at most `MAX_LISTED`.
    way: how jobs come, a key of `lstmsim.model.arriving.ARRIVING`.
    split: whether any request has threads on several cores.
    unit: the name of cycles in which a request's own work issues: that of the main unit.
    words: words of the machine.
    """

    requests: int
    count: int
    from_cycles: int
    turned_away: int
    latency: TailLatency
    shares: tuple[LatencyShare, ...]
    listed: tuple[SlowRequest, ...]
    way: str
    split: bool = False
    unit: str = WORK
    words: Mapping[str, Words] = field(default_factory=dict)

    def described(self, name: str) -> tuple[str, str]:
        """What goes on in cycles of that name, and the end of the sentence "they spent 71 % of their time ..."."""
        return share_words(WORK if name == self.unit else name, self.words)


def slowest_of(latencies: Numbers) -> Numbers:
    """Choose the slowest 1 % of latencies, rounded up. Returns their places, the slowest first; ties by place.

    >>> slowest_of(np.array([5, 9, 9, 1])).tolist(), len(slowest_of(np.arange(101)))
    ([1], 2)
    """
    count = -(-len(latencies) // _ONE_OF)
    places: Numbers = np.argsort(-latencies, kind="stable")[:count]
    return places


def tail_latency(latencies: Numbers) -> TailLatency:
    """The mean of all latencies, and the mean of the slowest 1 %.

    latencies: cycles, of at least one request.

    >>> tail_latency(np.array([5, 9, 9, 1]))
    TailLatency(mean=6.0, slowest=9.0)
    """
    return TailLatency(float(latencies.mean()), float(latencies[slowest_of(latencies)].mean()))


def slowest(
    jobs: Sequence[Job], program: Program, trace: Trace, unit: str = WORK, words: Mapping[str, Words] | None = None
) -> Slowest | None:
    """Say what held the slowest requests of a run up; None if all come in one cycle or fewer than two were served.

    jobs: jobs of the scenario.
    program, trace: the lowered scenario and its run.
    unit: what people call the main unit of a core.
    words: words of the machine.

    >>> from lstmsim.studies.simulate.run import run
    >>> arrival = {"kind": "fixed", "interval_cycles": 1000}
    >>> jobs = [{"model": "lstm-512", "steps": 20, "count": 3, "arrival": arrival}]
    >>> result = run({"chip": "column-npu-64k", "jobs": jobs}, overrides=["chip.cores.0.threads=1"])
    >>> slow = slowest(result.scenario.jobs, result.program, result.trace, "array")
    >>> slow.from_cycles, slow.listed[0].cycles
    (2269, {'queue': 846, 'array': 640, 'hazard': 722, 'drain': 61})
    """
    way = arriving(jobs)
    served = np.flatnonzero(trace.task("core")[: len(jobs)] >= 0)
    if way == "at once" or len(served) < 2:
        return None
    shares = latency_shares(program, trace, len(jobs))[served]
    latencies = (trace.task("finish") - trace.task("arrived"))[served]
    last = slowest_of(latencies)
    names = [unit if each == WORK else each for each in SHARES]
    means = [(each, shares[:, place]) for place, each in enumerate(names)]
    columns = [LatencyShare(name, float(column[last].mean()), float(column.mean())) for name, column in means]
    arrays = np.array([not core.shared for core in program.cores])
    return Slowest(
        requests=len(served),
        count=len(last),
        from_cycles=int(latencies[last[-1]]),
        turned_away=len(jobs) - len(served),
        latency=tail_latency(latencies),
        shares=tuple(sorted((each for each in columns if each.slowest or each.all), key=lambda each: -each.slowest)),
        listed=tuple(
            SlowRequest(
                jobs[served[row]].name,
                int(trace.task("arrived")[served[row]]),
                int(latencies[row]),
                {name: count for name, count in zip(names, shares[row].tolist(), strict=True) if count},
            )
            for row in last[:MAX_LISTED].tolist()
        ),
        way=way,
        split=bool(arrays[trace.seat("core")].any()),
        unit=unit,
        words=words or {},
    )
