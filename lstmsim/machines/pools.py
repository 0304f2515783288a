"""Jobs that wait for company become tasks of pools. No machine knows of it: a batch is a job with `batch: b`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.target import Target
from lstmsim.model.batching import Batching
from lstmsim.model.scenario import Chip, Job
from lstmsim.program.program import Phase, Pool, Program, TabledProgram

#: What a task of a pool has in a batch of each size: its variants.
_Sizes = tuple[tuple[tuple[int, tuple[Phase, ...]], ...], ...]
#: What the jobs of a pool have in common.
_Key = tuple[Batching, int]


def lowered(
    target: Target,
    chip: Chip,
    jobs: Sequence[Job],
    *,
    templates: bool,
    lower: Callable[[Sequence[Job]], Program] | None = None,
) -> Program:
    """Lower jobs of which some wait in pools; arguments and errors as of `lstmsim.machines.lower`.

    A pool that never has more than some jobs has no larger batches.

    lower: makes the program of jobs and batches in the target's place.
    """
    if lower is None:
        lower = partial(target.lower, chip, templates=templates)
    pools: dict[_Key, int] = {}
    members: Counter[_Key] = Counter()
    firsts: dict[str, Job] = {}
    for job in jobs:
        if job.batching is not None:
            key = job.batching.pool_of(job.steps)
            pools.setdefault(key, len(pools))
            members[key] += 1
            if job.batching.pool:
                _refuse_unequal(firsts.setdefault(job.batching.pool, job), job)
    alone = [replace(job, batching=None) for job in jobs]
    first, others = _others(jobs, members, templates)
    try:
        program = lower([*alone, *others])
    except InputError as error:
        # perhaps the jobs are refused even without company, in words of their own
        lower(alone)
        raise _refused(jobs, error) from None
    if isinstance(program, TabledProgram):
        text = f"a {target.title} forms batches in serve, saturate and load-latency only: leave it out"
        raise InputError(Mistake("batching", text))
    made: dict[Hashable, _Sizes] = {}
    tasks = []
    for job, task in zip(jobs, program.tasks, strict=False):
        if job.batching is None:
            tasks.append(task)
            continue
        key = job.batching.pool_of(job.steps)
        own = (job.identity, key)
        if own not in made:
            rows = range(first[own][0], first[own][1])
            made[own] = tuple(program.tasks[len(jobs) + row].variants for row in rows)
        tasks.append(replace(task, pool=pools[key], sizes=made[own], length=job.steps))
    each = [batching for batching, _ in pools]
    described = tuple(Pool(one.max_batch_size, one.max_wait_cycles, one.policy == "window") for one in each)
    return replace(program, tasks=tuple(tasks), pools=described)


def _refuse_unequal(first: Job, job: Job) -> None:
    """`InputError` if jobs that name one pool differ in what runs, where, or how they wait.

    Of a file that is noted before, with its place.
    """
    words = ("model", "cores", "threads", "weights", "batching")
    different = next((word for word in words if getattr(first, word) != getattr(job, word)), None)
    if different is not None:
        text = f"names the pool of job {first.name}, whose `{different}` differs: name another pool"
        raise InputError(Mistake(f"job {job.name}: batching.pool", text))


def _others(
    jobs: Sequence[Job], members: Counter[_Key], templates: bool
) -> tuple[dict[Hashable, tuple[int, int]], list[Job]]:
    """The jobs that stand for batches of 2, 3, ..., and for each job with its pool where they begin and end."""
    places: dict[Hashable, tuple[int, int]] = {}
    others: list[Job] = []
    for job in jobs:
        if job.batching is None:
            continue
        key = job.batching.pool_of(job.steps)
        own = (job.identity, key)
        if own not in places:
            most = job.batching.max_batch_size if templates else min(job.batching.max_batch_size, members[key])
            sizes = [replace(job, batch=size, batching=None, after=None, states_of=None) for size in range(2, most + 1)]
            places[own] = (len(others), len(others) + len(sizes))
            others += sizes
    return places, others


def _refused(jobs: Sequence[Job], error: InputError) -> InputError:
    """What the machine says of a batch, at the key that asks for it."""
    largest = max((job for job in jobs if job.batching is not None), key=_most)
    place = f"job {largest.name}: batching.max_batch_size"
    return InputError(Mistake(place, f"a batch is refused: {error.mistakes[0].sentence}"))


def _most(job: Job) -> int:
    return 0 if job.batching is None else job.batching.max_batch_size
