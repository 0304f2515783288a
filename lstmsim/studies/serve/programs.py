"""The program that serves jobs: that of the machine, or one of whole jobs where these run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, machines
from lstmsim.analysis.batches import batches_of
from lstmsim.base.errors import refuse
from lstmsim.machines.pools import in_company, lowered
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import DISPATCH, Chip, Job, cores_at_once
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.stall_reasons import CYCLE_NAMES, CYCLES
from lstmsim.program.trace import TASKS, Totals
from lstmsim.studies.serve.whole import condensed

Ints = NDArray[np.int64]

#: Names of cycles in which a thread lets another one have the array.
_GIVEN_UP = tuple(CYCLE_NAMES.index(each.name) for each in CYCLES if each.kind == "wait" and not each.before_work)
_BUSY = CYCLE_NAMES.index("busy")

#: What a job is among others, and what stands for it when there are none.
_AMONG_OTHERS: dict[str, Any] = {
    "arrival": 0,
    "after": None,
    "priority": 0,
    "deadline": None,
    "dispatch": "fcfs",
    "preempts": False,
    "queue_limit": None,
    "patience": None,
    "session": None,
    "move_cycles": 0,
}


class Alone(NamedTuple):
    """The cycles of a job that has the chip to itself.

    array_cycles: cycles in which the PE arrays of its cores issue for it, summed over the cores.
    array_share: what these are of all cycles of all arrays of the chip.
    stalls: whether it ever cannot issue between its first tile and its last; only then a coarse-grained core turns to
        another thread.
    """

    latency_cycles: int
    array_cycles: int
    cores: int
    stalls: bool
    array_share: float


def bare(job: Job) -> Job:
    """Give the job without the keys that rank it among others, reject it, or say when it comes."""
    return replace(job, **_AMONG_OTHERS, batching=job.batching and job.batching.alone)


def alone(chip: Chip, job: Job) -> Alone:
    """Simulate the job by itself, where it would run on an idle chip; jobs that run alike are simulated once."""
    return _alone(chip, _kind(job))


def _kind(job: Job) -> Job:
    """The job with nothing but what its cycles depend on."""
    return replace(bare(job), name="job", tenant="", inputs="", initial="", states_of=None)


@lru_cache(maxsize=8192)
def _alone(chip: Chip, job: Job) -> Alone:
    totals = _ran(chip, job, "fast")
    arrays = totals.cycles[: len(chip.core_figures)]
    busy = int(arrays[:, _BUSY].sum())
    return Alone(
        totals.makespan_cycles,
        busy,
        max(1, len(cores_at_once(chip, job, taken=int(totals.task("taken")[0])))),
        bool(arrays[:, _GIVEN_UP].sum()),
        busy / max(1, int(arrays.sum())),
    )


@lru_cache(maxsize=256)
def _ran(chip: Chip, job: Job, engine: str) -> Totals:
    """The totals of a job alone; of its tasks only the row of the job itself."""
    totals = engines.totals(machines.lower(chip, (job,)), engine, check=False)
    return replace(totals, tasks=totals.tasks[:1])


def one_by_one(chip: Chip) -> bool:
    """Whether the chip runs one job after the other, so that its jobs are served as whole ones."""
    return target_of(chip.kind).one_by_one


def serving_program(chip: Chip, jobs: Sequence[Job], *, templates: bool = False) -> Program:
    """Give the program by which jobs are served; arguments and errors are those of `lstmsim.machines.lower`.

    Where the machine runs one job after the other, or jobs never meet on its cores (`condensed`), a job or batch is one
    operation that takes as long as it takes alone: it is simulated once, and the cycles of its arrival, start and
    finish are those of a simulation of all jobs.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> model = {"name": "m", "layers": [{"cell": "rnn", "hidden": 8, "input": 8}]}
    >>> jobs = load_scenario({"chip": "edge", "jobs": [{"model": model, "steps": 1}]})
    >>> len(serving_program(jobs.chip, jobs.jobs).cores)
    1
    """
    if not one_by_one(chip):
        return condensed(machines.lower(chip, jobs, templates=templates))
    if any(job.batching is not None for job in jobs):
        return lowered(target_of(chip.kind), chip, jobs, templates=templates, lower=partial(_whole_jobs, chip))
    return _whole_jobs(chip, jobs)


#: What a report of such a run says.
ONE_BY_ONE = "each batch takes the cycles that it takes on a device that has run nothing before"


def in_batches(chip: Chip, jobs: Sequence[Job]) -> bool:
    """Whether the chip runs whole batches one after the other, so that its program has no operations of kernels."""
    return any(job.batching is not None for job in jobs) and one_by_one(chip)


def simulated(chip: Chip, jobs: Sequence[Job], engine: str = "fast") -> tuple[Program, Totals]:
    """Simulate jobs: the program, and its totals.

    Where whole batches run one after the other (`in_batches`), each kind of them is simulated once, and the cycles of
    the run are those of all of its batches, and idle between them. `InputError` if the chip refuses the jobs.
    """
    if not in_batches(chip, jobs):
        program = machines.lower(chip, jobs)
        return program, engines.totals(program, engine, check=False)
    refuse(machines.refusals(chip, jobs))
    lower = partial(_whole_jobs, chip, engine=engine)
    program = lowered(target_of(chip.kind), chip, jobs, templates=False, lower=lower)
    return program, _accounted(chip, jobs, engines.totals(program, engine, check=False), engine)


def _accounted(chip: Chip, jobs: Sequence[Job], whole: Totals, engine: str) -> Totals:
    """The totals of whole batches with the cycles and the useful work that each takes on the cores of the chip."""
    sums: list[Ints] = []
    rows, core = np.zeros(0, dtype=np.int64), 0
    left = whole.makespan_cycles
    for batch in batches_of(jobs, whole):
        members = [jobs[number] for number in batch.members]
        longest, steps = max(members, key=lambda job: job.steps), sum(job.steps for job in members)
        size = longest.batch if longest.batching is None else len(members)
        own = _ran(chip, _kind(replace(in_company(longest), batch=size)), engine)
        # steps that only pad are no work; what does not divide is that of the cores with the largest remainders
        useful = np.array(shared_out(own.work.tolist(), steps, len(members) * longest.steps))
        columns = own.cycles, useful[:, None], own.issues[:, None]
        sums = [each + more for each, more in zip(sums, columns, strict=True)] if sums else list(columns)
        left -= own.makespan_cycles
        rows, core = own.cycles.sum(axis=1) // max(1, own.makespan_cycles), int(own.task("core")[0])
    tasks = whole.tasks.copy()
    TASKS.of(tasks, "core")[:] = core
    cycles = sums[0].copy()
    cycles[:, CYCLE_NAMES.index("idle")] += left * rows
    return Totals(cycles, sums[1][:, 0], sums[2][:, 0], tasks, whole.pauses)


def shared_out(work: Sequence[int], part: int, whole: int) -> list[int]:
    """The part of the work of each core: of all cores together exactly, of each rounded.

    >>> shared_out([3, 3, 2], 1, 2)
    [2, 1, 1]
    """
    each = [divmod(cycles * part, whole) for cycles in work]
    left = sum(work) * part // whole - sum(full for full, _ in each)
    more = sorted(range(len(work)), key=lambda core: -each[core][1])[:left]
    return [full + (core in more) for core, (full, _) in enumerate(each)]


def _whole_jobs(chip: Chip, jobs: Sequence[Job], engine: str = "fast") -> Program:
    """A program of one thread in which each job is one operation, as long as the job takes alone."""
    bodies: dict[tuple[int, int], Phase] = {}
    tasks: dict[int, Task] = {}
    for job in {id(job): job for job in jobs}.values():
        cycles = alone(chip, job).latency_cycles if engine == "fast" else _ran(chip, _kind(job), engine).makespan_cycles
        phase = bodies.get((cycles, job.macs))
        if phase is None:
            whole = Operation(unit=0, cycles=cycles, result_cycles=cycles, work=job.macs, label="job")
            phase = bodies[cycles, job.macs] = Phase(Body((whole,)), 1)
        rank, from_arrival = DISPATCH[job.dispatch](job)
        tasks[id(job)] = Task(
            name=job.name,
            variants=((0, (phase,)),),
            buffers=(),
            cores=(0,),
            release=job.arrival,
            key=rank,
            key_from_arrival=from_arrival,
            after=job.after,
        )
    return Program((Core(0, (Unit("device", "fifo"),)),), tuple(tasks[id(job)] for job in jobs))


#: Kinds of jobs that are run one after the other to see whether a job takes longer for what ran before it.
_TRIED = 6


def differences(chip: Chip, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Say how far jobs that follow each other differ from jobs alone, where the machine runs one after the other.

    Schedulers remember who issued last, also from job to job. Each kind of job is simulated after itself and after the
    kind before it in the list; nothing is said where all of them take as long as alone.
    """
    if not one_by_one(chip):
        return ()
    # of batches the smallest and the largest
    sizes = [job if job.batching is None else replace(job, batch=job.batching.max_batch_size) for job in jobs]
    kinds = list({_kind(job): None for both in zip(jobs, sizes, strict=True) for job in both})
    tried = kinds[:_TRIED]
    row = [each for kind in tried for each in (kind, kind)] + [tried[0]] * (len(tried) > 1)
    totals = engines.totals(machines.lower(chip, row), check=False)
    taken = totals.task("finish")[: len(row)] - totals.task("admitted")[: len(row)]
    apart = max(abs(int(cycles) - alone(chip, job).latency_cycles) for cycles, job in zip(taken, row, strict=True))
    untried = len(kinds) - len(tried)
    rest = f"; {untried:,} further kinds of jobs were not tried" if untried else ""
    if not apart and not rest:
        return ()
    text = "each job is served with the cycles that it takes on a device that has run nothing before"
    if not apart:
        return (f"{text}; the first {len(tried)} kinds take as long after each other{rest}.",)
    return (
        f"{text}. Schedulers remember from job to job who issued last: after each other jobs take up to "
        f"{apart:,} cycles more or less in `simulate`{rest}.",
    )


def servers_of(chip: Chip, program: Program) -> int:
    """Count the jobs that run at once: the threads of the program, but those that only belong to a memory."""
    if one_by_one(chip):
        return 1
    return sum(core.contexts for core in program.cores if not core.shared)
