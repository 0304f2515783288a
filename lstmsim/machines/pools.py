"""Jobs that wait for company become tasks of pools. No machine knows of it: a batch is a job with `batch: b`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.target import Entries, Target
from lstmsim.model.batching import Batching
from lstmsim.model.model import Model
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
    _refuse_policies(target, jobs)
    alone = [without_company(job) for job in jobs]
    first, others = _others(jobs, members, templates)
    try:
        program = lower([*alone, *others])
    except InputError as error:
        # perhaps the jobs are refused even without company, in words of their own
        lower(alone)
        raise _refused(jobs, error) from None
    if isinstance(program, TabledProgram):
        text = f"a {target.title} forms batches in simulations of whole ones only: leave it out"
        raise InputError(Mistake("batching", text))
    made: dict[Hashable, _Sizes] = {}
    tasks = []
    for job, task in zip(jobs, program.tasks, strict=False):
        if job.batching is None:
            tasks.append(task)
            continue
        key = job.batching.pool_of(job.steps)
        if job.batching.in_rounds and (task.weight_set is not None or any(task.gang)):
            text = "continuous is not simulated where weights take turns or are streamed: choose dynamic or window"
            raise InputError(Mistake(f"job {job.name}: batching.policy", text))
        own = (_alike(job), key)
        if own not in made:
            rows = range(first[own][0], first[own][1])
            made[own] = _shrinking(job, tuple(program.tasks[len(jobs) + row].variants for row in rows))
        sizes = made[own]
        if job.batching.in_rounds:
            task, sizes = replace(task, variants=sizes[0]), sizes[1:]
        tasks.append(replace(task, pool=pools[key], sizes=sizes, length=job.steps))
    described = tuple(Pool(each.max_batch_size, each.max_wait_cycles, each.policy, each.ragged) for each, _ in pools)
    return replace(program, tasks=tuple(tasks), pools=described)


def without_company(job: Job) -> Job:
    """The same request without company. One that runs round by round runs all layers of a step, then the next step."""
    model = job.model
    if job.batching is not None and job.batching.in_rounds and len(model.layers) > 1:
        model = replace(model, layer_order="step")
    return replace(job, model=model, batching=None)


def in_company(job: Job) -> Job:
    """What a request runs in a batch: all of its steps, or in rounds one."""
    one = without_company(job)
    return replace(one, steps=1) if job.batching is not None and job.batching.in_rounds else one


def _alike(job: Job) -> Hashable:
    """What jobs of a pool share that run alike in a batch, as `in_company` says."""
    return job.configuration if job.batching is not None and job.batching.in_rounds else job.identity


def policy_faults(target: Entries, batching: Batching, model: Model | None) -> Iterator[tuple[str, str]]:
    """Yield what a machine does not have of batching: the key and a sentence; model: None if it is not known."""
    if batching.in_rounds:
        if not target.rounds:
            yield "policy", f"a {target.title} has no continuous batching: choose dynamic or window"
        for number, layer in enumerate(model.layers if model else ()):
            if layer.bidirectional or layer.reverse:
                how = "is bidirectional" if layer.bidirectional else "runs in reverse"
                yield "policy", f"continuous needs layers that go forward, and layer {number} {how}"
    if batching.lengths == "ragged" and not target.ragged:
        yield "lengths", f"a {target.title} has no ragged batches: choose pad or equal"


def _refuse_policies(target: Target, jobs: Sequence[Job]) -> None:
    for job in distinct_pools(jobs):
        assert job.batching is not None, "it is of a pool"
        for key, text in policy_faults(target, job.batching, job.model):
            raise InputError(Mistake(f"job {job.name}: batching.{key}", text))


def distinct_pools(jobs: Sequence[Job]) -> Sequence[Job]:
    """The first job of each model and pool."""
    return tuple({(job.model, job.batching): job for job in reversed(jobs) if job.batching is not None}.values())


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
        own = (_alike(job), key)
        if own not in places:
            one = in_company(job)
            most = job.batching.max_batch_size if templates else min(job.batching.max_batch_size, members[key])
            # a request alone is a batch of one, but for one that runs round by round
            least = 1 if job.batching.in_rounds else 2
            sizes = [replace(one, batch=size, after=None, states_of=None) for size in range(least, most + 1)]
            places[own] = (len(others), len(others) + len(sizes))
            others += sizes
    return places, others


def _shrinking(job: Job, sizes: _Sizes) -> _Sizes:
    """The batches of a job; `InputError` if they are ragged, and an inference gives back a slot that others took.

    Then nobody would give it back in the steps which that inference leaves out.
    """
    for variants in sizes if job.batching is not None and job.batching.ragged else ():
        balance: Counter[tuple[int, int, int | None]] = Counter()
        for kind, phases in variants:
            for operation in (each for phase in phases for each in phase.body.operations):
                balance[kind, operation.inference, operation.takes] += operation.takes is not None
                balance[kind, operation.inference, operation.frees] -= operation.frees is not None
        if any(balance.values()):
            text = "ragged is not simulated where weights are streamed: choose pad or equal"
            raise InputError(Mistake(f"job {job.name}: batching.lengths", text))
    return sizes


def _refused(jobs: Sequence[Job], error: InputError) -> InputError:
    """What the machine says of a batch, at the key that asks for it."""
    largest = max((job for job in jobs if job.batching is not None), key=_most)
    place = f"job {largest.name}: batching.max_batch_size"
    return InputError(Mistake(place, f"a batch is refused: {error.mistakes[0].sentence}"))


def _most(job: Job) -> int:
    return 0 if job.batching is None else job.batching.max_batch_size
