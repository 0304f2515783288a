"""Sets of tasks on one core under five policies: first come first served, shortest first and highest priority, the two
latter with and without preemption.

One core of 65536 multipliers with one thread; sets of eight tasks that come at random times, with random priorities,
as in PREMA (Choi and Rhu, HPCA 2020, doi 10.1109/HPCA47549.2020.00027; arXiv:1909.04548), whose abstract says:
"preemptive NPU multi-tasking can achieve an average 7.8x, 1.4x, and 4.8x improvement in latency, throughput, and SLA
satisfaction". That these are ANTT, STP and misses against first come first served without preemption is what summaries
of the paper say; it was not verified in the paper itself, and neither was how its sets are drawn.

Measures: Eyerman and Eeckhout, IEEE Micro 28(3), 2008, doi 10.1109/MM.2008.44. NTT of a task is its latency divided by
that of the same task alone on the idle core; ANTT is the mean NTT of a set, STP the sum of the inverses.

Assumptions, because no source gives them: the mixes (the tasks of DeepBench, each equally likely); arrivals uniform
over a window, which is the set's time alone divided by the load; three priorities, equally likely; a task misses if it
takes longer than so many times its time alone. The rules of preemption are those of docs/timing.md, 11.10: at the
next boundary of steps, and neither stopping nor going on moves data.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from lstmsim import ColumnNpu, Scenario, load_scenario, run
from lstmsim.model.scenario import Chip, Job
from lstmsim.studies.serve.programs import alone

LSTMS = ("lstm-256-150", "lstm-512-25", "lstm-1024-25", "lstm-1536-50", "lstm-2048-25")
GRUS = ("gru-512-1", "gru-1024-1500", "gru-1536-375", "gru-2048-375", "gru-2560-375", "gru-2816-750")
MIXES = {"5 LSTMs": LSTMS, "5 LSTMs and 6 GRUs": LSTMS + GRUS}
LOADS = (0.5, 1, 2)
TASKS, SETS, SMALL_SETS, PRIORITIES = 8, 200, 4, 3
#: By name: `dispatch`, and whether it preempts.
POLICIES = {
    "first come, first served": ("fcfs", False),
    "shortest first": ("sjf", False),
    "shortest first, preemptive": ("sjf", True),
    "highest priority": ("priority", False),
    "highest priority, preemptive": ("priority", True),
}


@dataclass(frozen=True)
class Outcome:
    """One set under one policy.

    `ntt`: normalised turnaround time of each task. `priorities`: the priority of each. `longest`: the NTT of the task
    that takes longest alone. `makespan`: cycles until all are done. `stops`: how often a task was stopped.
    """

    ntt: tuple[float, ...]
    priorities: tuple[int, ...]
    longest: float
    makespan: int
    stops: int

    @property
    def antt(self) -> float:
        """Average normalised turnaround time."""
        return sum(self.ntt) / len(self.ntt)

    @property
    def stp(self) -> float:
        """System throughput."""
        return sum(1 / each for each in self.ntt)

    def misses(self, target: float) -> float:
        """The share of its tasks that took longer than so many times their time alone."""
        return sum(each > target for each in self.ntt) / len(self.ntt)

    @property
    def urgent(self) -> float | None:
        """The mean NTT of the tasks of the highest priority; None if the set has none."""
        own = [each for each, priority in zip(self.ntt, self.priorities, strict=True) if priority == PRIORITIES]
        return sum(own) / len(own) if own else None


#: By mix, load and policy: every set's outcome, in the order of the sets.
Results = dict[tuple[str, float, str], list[Outcome]]


@cache
def chip() -> ColumnNpu:
    """The preset's core with one thread."""
    machine = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 1}]}).chip
    assert isinstance(machine, ColumnNpu)
    return replace(machine, cores=tuple(replace(core, threads=1) for core in machine.cores))


@cache
def task(name: str, machine: Chip | None = None) -> tuple[Job, int]:
    """A task of DeepBench, and its cycles alone, on that machine (None: `chip()`)."""
    job = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": f"deepbench-{name}"}]}).jobs[0]
    return job, alone(machine or chip(), job).latency_cycles


def drawn(mix: str, number: int, load: float) -> list[Job]:
    """Set `number` of a mix: the same tasks and priorities at every load, at another pace."""
    # random() is the one method whose numbers are the same in every version of Python
    draw = random.Random(f"{mix}, set {number}").random
    names = [MIXES[mix][int(draw() * len(MIXES[mix]))] for _ in range(TASKS)]
    window = sum(task(name)[1] for name in names) / load
    return [
        replace(task(name)[0], name=f"{place}", arrival=int(draw() * window), priority=1 + int(draw() * PRIORITIES))
        for place, name in enumerate(names)
    ]


def outcome(jobs: Sequence[Job], policy: str, machine: Chip | None = None) -> Outcome:
    """A set under a policy, on that machine (None: `chip()`)."""
    dispatch, preempts = POLICIES[policy]
    ranked = tuple(replace(job, dispatch=dispatch, preempts=preempts) for job in jobs)
    report = run(Scenario(machine or chip(), ranked)).report
    by_itself = [alone_cycles(job, machine) for job in jobs]
    latencies = {each.number: each.latency for each in report.jobs}
    ntt = tuple(latencies[number] / cycles for number, cycles in enumerate(by_itself))
    longest = max(range(len(jobs)), key=by_itself.__getitem__)
    stops = sum(each.preempted for each in report.jobs)
    return Outcome(ntt, tuple(job.priority for job in jobs), ntt[longest], report.makespan_cycles, stops)


def alone_cycles(job: Job, machine: Chip | None = None) -> int:
    """Cycles of a task of a set by itself, on that machine (None: `chip()`)."""
    return task(job.model.name.removeprefix("deepbench-"), machine)[1]


def results(small: bool = False) -> Results:
    """Every mix at every load under every policy; `small`: some sets of the first mix at one load."""
    sets, loads, mixes = (SMALL_SETS, LOADS[1:2], list(MIXES)[:1]) if small else (SETS, LOADS, list(MIXES))
    return {
        (mix, load, policy): [outcome(drawn(mix, number, load), policy) for number in range(sets)]
        for mix in mixes
        for load in loads
        for policy in POLICIES
    }
