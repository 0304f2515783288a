"""How long do requests take, and how many can be served, on one large core, four smaller ones and eight small ones?

65536 multipliers in all: 1 x 65536, 4 x 16384 and 8 x 8192, each core with 1, 2 and 4 threads. The five LSTM tasks of
DeepBench (Zhao et al. 2019, arXiv:1909.13654, Table 6) are asked for equally often, each by a Poisson process of its
own, first come, first served. That is an assumption, because DeepBench gives no mix and no arrivals; without the GRUs,
because one of them takes a hundred times as long as a short LSTM and would decide every percentile alone.

The same requests come to every machine, at other loads at another pace. The theory that the numbers are held against:
M/D/1, M/D/c and M/G/1, Little's law, and that no thread is free while a request waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import takewhile
from math import exp, log

import numpy as np

from experiments.serving import coverage
from experiments.serving.queueing import md1_wait, mdc_wait
from lstmsim import ColumnNpu, Report, Scenario, load_scenario, run, serving
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.model.scenario import Job, Offer
from lstmsim.studies.search.run import reachable
from lstmsim.studies.serve.result import Serving
from lstmsim.traffic.arrivals import Poisson, arrivals
from lstmsim.traffic.intervals import Interval, student_t

TASKS = ("lstm-256-150", "lstm-512-25", "lstm-1024-25", "lstm-1536-50", "lstm-2048-25")
LOADS = (0.2, 0.4, 0.6, 0.7, 0.8, 0.9)
THREADS = (1, 2, 4)
#: Cores, multipliers of each, and the preset that gives all else.
SIZES = ((1, 65536, "column-npu-64k"), (4, 16384, "column-npu-16k"), (8, 8192, "column-npu-16k"))
#: Requests of a run on average.
REQUESTS = 12_000
#: And where that is too few for an interval of a wait that has a formula.
MORE_REQUESTS = 40_000
BACKLOG = 2_000
#: Milliseconds (assumption, because DeepBench states none: above the longest inference on the smallest core).
BOUND_MS = 1.0
#: Of the load, for the bisection.
TOLERANCE = 0.02
#: The theory's request, and how many come at its loads: enough for an interval of the mean.
LONE, LONE_REQUESTS = ("lstm-512-25",), {0.3: 20_000, 0.6: 20_000, 0.8: 20_000, 0.9: 100_000}
#: At most so many rows of the theory; their intervals together hold with 95 % (Bonferroni).
CHECKS = len(SIZES) * len(LONE_REQUESTS) + len(LOADS)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Machine:
    """A chip: so many equal cores."""

    cores: int
    npe: int
    preset: str
    threads: int

    @property
    def name(self) -> str:
        return f"{self.cores} x {self.npe // 1024}k, {self.threads} thread{'s' * (self.threads > 1)}"


@dataclass(frozen=True)
class Served:
    """One run of a machine.

    serving: what serving came to.
    useful: the useful share of all PE-cycles.
    idle_while_waiting: thread-cycles that were free while a request waited.
    alone_cycles: cycles of all requests, each by itself.
    """

    serving: Serving
    useful: float
    idle_while_waiting: int
    alone_cycles: int


@dataclass(frozen=True)
class Bound:
    """The highest rate whose 99th percentile was seen to keep the bound, and the lowest that was seen to break it.

    rate, fails_from: requests per second (None: there was no such rate).
    runs: how many runs that took.
    """

    rate: float | None
    fails_from: float | None
    runs: int


@dataclass(frozen=True)
class Check:
    """A run of a queue that has a formula for its mean wait, which is in cycles."""

    queue: str
    machine: Machine
    load: float
    run: Served
    formula: float

    @property
    def wait(self) -> Interval:
        """The simulated mean, with the interval that holds for all checks together."""
        each = self.run.serving.wait.mean
        assert each.half_width is not None
        confidence = 1 - (1 - CONFIDENCE) / CHECKS
        more = student_t(confidence, each.batches - 1) / student_t(CONFIDENCE, each.batches - 1)
        # an interval is one of the logarithm (`lstmsim.traffic.intervals`): the least wait is 0
        half = each.value * (exp(more * log(1 + each.half_width / each.value)) - 1)
        return replace(each, half_width=half)


@dataclass(frozen=True)
class Results:
    """The whole study.

    runs: all runs by machine and load.
    reference: the requests per second that load 1 stands for.
    capacity: what each machine can do at most, in requests per second.
    saturation: the load up to which each machine keeps the bound.
    checks: runs of queues that have a formula.
    coverage: what intervals cover.
    """

    runs: dict[Machine, dict[float, Served]]
    reference: float
    capacity: dict[Machine, float]
    saturation: dict[Machine, Bound]
    checks: tuple[Check, ...]
    coverage: list[coverage.Row]


def machines(small: bool = False) -> list[Machine]:
    """All nine; `small`: two of them."""
    every = [Machine(*size, threads) for size in SIZES for threads in THREADS]
    return [each for each in every if each.threads == 1 and each.cores in (1, 8)] if small else every


@cache
def known(preset: str) -> ColumnNpu:
    """A chip that comes with the package."""
    npu = load_chip(preset)
    assert isinstance(npu, ColumnNpu)
    return npu


@cache
def chip(machine: Machine, ep: int | None = None) -> ColumnNpu:
    """The cores of the preset with these multipliers and threads, and the EP that `best_ep` finds."""
    preset = known(machine.preset)
    ep = ep or best_ep(machine.cores, machine.npe, machine.preset)
    core = replace(preset.cores[0], npe=machine.npe, ep=ep, vp=machine.npe // ep, threads=machine.threads)
    return ColumnNpu(machine.name, preset.frequency_mhz, (core,) * machine.cores)


@cache
def task(name: str) -> Job:
    """One inference."""
    return load_scenario({"chip": SIZES[0][2], "jobs": [{"model": f"deepbench-{name}"}]}).jobs[0]


@cache
def cycles_alone(machine: Machine, name: str, ep: int | None = None) -> int:
    """Cycles of one inference on an empty machine."""
    return run(Scenario(chip(machine, ep), (task(name),))).report.makespan_cycles


@cache
def best_ep(cores: int, npe: int, preset: str) -> int:
    """Give the EP, of those that the preset's adder tree can be set to, with which the tasks take the least in all."""
    one = Machine(cores, npe, preset, 1)
    core = known(preset).cores[0]
    eps = reachable(core.tree_inputs or core.ep, core.cat)
    return min(eps, key=lambda ep: sum(cycles_alone(one, name, ep) for name in TASKS))


def one_thread_rate(machine: Machine, names: tuple[str, ...] = TASKS) -> float:
    """Requests per second of the cores if each has one of these tasks after another, without a pause."""
    alone = replace(machine, threads=1)
    mean = sum(cycles_alone(alone, name) for name in names) / len(names)
    return machine.cores / mean * chip(machine).frequency_mhz * 1e6


@lru_cache(maxsize=16)
def requests(rate: float, number: int, names: tuple[str, ...], key: str = "") -> tuple[Job, ...]:
    """So many requests on average, in the order of arrival, each of `names` at an equal share of the rate."""
    mhz = known(SIZES[0][2]).frequency_mhz
    horizon, coming = number / rate * mhz * 1e6, []
    for name in names:
        cycles = arrivals(Poisson(rate / len(names)), 2 * number, mhz, (1, key, name))
        coming += [(cycle, name) for cycle in takewhile(lambda cycle: cycle < horizon, cycles)]
    return tuple(
        replace(task(name), name=f"{name}-{at}", arrival=cycle) for at, (cycle, name) in enumerate(sorted(coming))
    )


def idle_while_waiting(report: Report, threads: int) -> int:
    """Thread-cycles that were free although a request waited; a request that could have had one counts a thread."""
    columns = np.array([(job.arrival, job.start, job.finish) for job in report.jobs]).T
    times = columns.ravel()
    one, none = np.ones(len(report.jobs), dtype=np.int64), np.zeros(len(report.jobs), dtype=np.int64)
    order = np.argsort(times, kind="stable")
    waiting = np.cumsum(np.concatenate([one, -one, none])[order])[:-1]
    free = threads - np.cumsum(np.concatenate([none, one, -one])[order])[:-1]
    return int((np.diff(times[order]) * np.minimum(waiting, free)).sum())


@cache
def served(
    machine: Machine, rate: float, names: tuple[str, ...] = TASKS, number: int = REQUESTS, key: str = ""
) -> Served:
    """One run of a machine at a rate in requests per second; other arrivals with another key."""
    offers = {task(name).tenant: Offer(rate / len(names), 1.0) for name in names}
    result = run(Scenario(chip(machine), requests(rate, number, names, key), offers=offers))
    measured, tenants = serving(result), {task(name).model.name: name for name in names}
    alone = sum(each.requests * cycles_alone(machine, tenants[each.name]) for each in measured.tenants.values())
    idle = idle_while_waiting(result.report, machine.cores * machine.threads)
    return Served(measured, result.report.utilization, idle, alone)


@cache
def capacity(machine: Machine) -> float:
    """Give the requests per second that the machine can do.

    With several threads it is the work of a backlog that is done until the last request of it starts; of requests in
    progress the share of their time counts. It is in requests of mean work, for short requests are done first.
    """
    if machine.threads == 1:
        return one_thread_rate(machine)
    jobs = run(Scenario(chip(machine), requests(100 * one_thread_rate(machine), BACKLOG, TASKS))).report.jobs
    last = max(job.start for job in jobs)
    done = sum(job.macs * min(1.0, (last - job.start) / (job.finish - job.start)) for job in jobs)
    mean = sum(task(name).macs for name in TASKS) / len(TASKS)
    return done / mean / last * chip(machine).frequency_mhz * 1e6


def p99_ms(machine: Machine, rate: float) -> float:
    """The 99th percentile of a run."""
    measured = served(machine, rate).serving
    return measured.ms(measured.latency.p99.value)


def bounded(machine: Machine, reference: float) -> Bound:
    """Find the highest rate that keeps the bound; the bisection begins where the table breaks the bound first, or
    above."""
    broken = [at for at, load in enumerate(LOADS) if p99_ms(machine, load * reference) > BOUND_MS]
    at = max(1, broken[0] if broken else len(LOADS))
    low, high = (load * reference for load in (*LOADS, 1.0)[at - 1 : at + 1])
    if p99_ms(machine, low) > BOUND_MS:
        return Bound(None, low, 1)
    if p99_ms(machine, high) <= BOUND_MS:
        return Bound(high, None, 2)
    runs, tolerance = 2, TOLERANCE * high
    while high - low > tolerance:
        middle, runs = (low + high) / 2, runs + 1
        low, high = (middle, high) if p99_ms(machine, middle) <= BOUND_MS else (low, middle)
    return Bound(low, high, runs)


def lone_checks(small: bool) -> list[Check]:
    """One task only, on cores with one thread: M/D/1 and M/D/c."""
    checks = []
    for cores, npe, preset in SIZES[: 2 if small else None]:
        machine = Machine(cores, npe, preset, 1)
        service = cycles_alone(machine, LONE[0])
        for load, number in list(LONE_REQUESTS.items())[: 1 if small else None]:
            rate, key = load * one_thread_rate(machine, LONE), f"{cores} at {load}"
            each = served(machine, rate, LONE, number, key)
            formula = md1_wait(load, service) if cores == 1 else mdc_wait(load, service, cores)
            checks.append(Check(f"M/D/{cores}, one task", machine, load, each, formula))
    return checks


def mix_checks(runs: dict[float, Served], reference: float) -> list[Check]:
    """All tasks on one core with one thread: Pollaczek-Khinchine (Kleinrock, Queueing Systems I (1975), 5.6)."""
    machine = machines()[0]
    services = [cycles_alone(machine, name) for name in TASKS]
    checks = []
    for share, each in runs.items():
        load = share * reference / one_thread_rate(machine)
        if load < 1:
            if each.serving.wait.mean.half_width is None:
                each = served(machine, share * reference, TASKS, MORE_REQUESTS)
            wait = load * sum(cycles**2 for cycles in services) / sum(services) / (2 * (1 - load))
            checks.append(Check("M/G/1, the mix", machine, load, each, wait))
    return checks


def results(small: bool = False) -> Results:
    """Everything; `small`: two machines at one load, and less of the theory."""
    reference = max(one_thread_rate(each) for each in machines())
    loads = LOADS[: 1 if small else None]
    runs = {each: {load: served(each, load * reference) for load in loads} for each in machines(small)}
    checks = lone_checks(small) + mix_checks(runs[machines()[0]], reference)
    able = {each: capacity(each) for each in runs}
    saturation = {} if small else {each: bounded(each, reference) for each in runs}
    return Results(runs, reference, able, saturation, tuple(checks), list(coverage.rows(small)))


def peak() -> float:
    """Requests per second if every multiplier had useful work in every cycle."""
    mean = sum(task(name).macs for name in TASKS) / len(TASKS)
    return SIZES[0][0] * SIZES[0][1] / mean * known(SIZES[0][2]).frequency_mhz * 1e6
