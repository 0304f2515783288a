"""The common part of all lowerings: which core can run a job, how large a program may get, tasks made of phases."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.sizes import PerStep, Tally, way_out
from lstmsim.model.dispatch import DISPATCH
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, distinct_jobs
from lstmsim.program.program import Buffer, Content, Core, Phase, Program, Task, Wide

__all__ = [
    "AnyCore",
    "Footprint",
    "Kinds",
    "Parts",
    "assemble",
    "check_cores",
    "check_size",
    "kinds_of",
    "usual_footprint",
]

Phases = tuple[Phase, ...]
#: Phases of a task by kind of core.
Variants = tuple[tuple[int, Phases], ...]


class AnyCore(Protocol):
    """The methods that the core of every target has: its mistakes as (key, sentence) pairs, its refusal of a model."""

    def mistakes(self) -> list[tuple[str, str]]: ...
    def refusal(self, model: Model) -> str | None: ...


C = TypeVar("C", bound=AnyCore)


#: Bounds on the operations of one step, as `lstmsim.machines.target.Target.per_step`.
Bound = Callable[[Sequence[C], Model, int, str, int], PerStep]


@record
class Footprint:
    """The needs of a job on a machine. The fields have the meanings of the fields of `Task`."""

    variants: Variants
    buffers: tuple[tuple[int, tuple[Buffer, ...]], ...]
    cores: tuple[int, ...]
    partners: tuple[tuple[int, ...], ...] = ()
    content: Content | None = None
    wide: tuple[Wide, ...] = ()


@record
class Parts(Generic[C]):
    """The functions with which a target makes the parts of a Program.

    per_step: bounds on the operations of one step, as `lstmsim.machines.target.Target.per_step`.
    phases: phases of a job on a core.
    buffers: buffers of a core.
    core: core of a program, from the number of its kind and its description.
    """

    per_step: Bound[C]
    phases: Callable[[Job, C], Phases]
    buffers: Callable[[C], tuple[Buffer, ...]]
    core: Callable[[int, C], Core]


def check_cores(cores: Sequence[AnyCore], job: Job) -> None:
    """`InputError` if a job names a core that does not exist, or if no core that it may use can run it.

    >>> from lstmsim.machines.column.npu import ColumnCore
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> check_cores([ColumnCore(npe=64, ep=4, vp=2)], Job("a", Model("m", (Layer(cell("gru"), 8, 8),)), 1))
    Traceback (most recent call last):
    ...
    lstmsim.InputError: job a: no core can run it: cell 'gru' has 3 gates and needs vp >= 3, got vp 2
    """
    unknown = [each for each in job.allowed(len(cores)) if not 0 <= each < len(cores)]
    if unknown:
        text = f"there is no core {unknown[0]}; the chip has {len(cores)} (0 to {len(cores) - 1})"
        raise InputError(Mistake(f"job {job.name}: core", text))
    allowed = job.allowed(len(cores))
    # of many cores the first one that can run it is enough
    if not job.together(len(cores)) and all(cores[each].refusal(job.model) is not None for each in allowed):
        reason = cores[allowed[0]].refusal(job.model)
        raise InputError(Mistake(f"job {job.name}", f"no core can run it: {reason}"))


@record
class Kinds(Generic[C]):
    """The cores of a chip, and which of them are alike: what one of a thousand equal cores can do is asked once.

    cores: in their order.
    each: the different cores, in the order of their first.
    of: for each core its kind, its place in `each`.
    """

    cores: tuple[C, ...]
    each: tuple[C, ...]
    of: tuple[int, ...]

    def allowed(self, job: Job) -> list[tuple[int, C]]:
        """The kinds that the job may use, with their cores, in the order in which the job names them."""
        if job.cores is None:
            return list(enumerate(self.each))
        return [(kind, self.each[kind]) for kind in dict.fromkeys(self.of[core] for core in job.cores)]


def kinds_of(cores: Sequence[C]) -> Kinds[C]:
    """Tell the kinds of cores apart.

    >>> from lstmsim.machines.column.npu import ColumnCore
    >>> kinds_of([ColumnCore(npe=64, ep=4, vp=2)] * 3).of
    (0, 0, 0)
    """
    places: dict[C, int] = {}
    of = tuple(places.setdefault(core, len(places)) for core in cores)
    return Kinds(tuple(cores), tuple(places), of)


def _per_step(kinds: Kinds[C], bound: Bound[C], job: Job, batch: int) -> PerStep:
    """Bounds on the operations of one step of a job, if it has some batch."""
    able = [core for _, core in kinds.allowed(job)]
    if not job.together(len(kinds.cores)):
        able = [core for core in able if core.refusal(job.model) is None]
    return bound(able, job.model, batch, job.split, job.members(len(kinds.cores)))


def check_size(kinds: Kinds[C], jobs: Sequence[Job], bound: Bound[C], *, templates: bool = False) -> None:
    """`InputError` if jobs are too many operations to simulate.

    kinds: the cores of the chip.
    bound: bounds on the operations of one step, as `lstmsim.machines.target.Target.per_step`.
    templates: as for `lstmsim.machines.lower`.
    """
    tally = Tally()
    known: dict[Hashable, PerStep] = {}
    for index, job in enumerate(jobs):
        key = job.configuration
        if key not in known:
            known[key] = _per_step(kinds, bound, job, job.batch)
        tally = Tally() if templates else tally
        wrong = tally.add(repr(job.model.name), known[key], job.steps)
        wrong = way_out(wrong, job.batch, partial(_per_step, kinds, bound, job))
        if wrong is not None:
            where = "" if wrong.what == "step" else ".steps"
            raise InputError(Mistake(f"jobs.{index}{where} (job {job.name})", wrong.sentence))


def usual_footprint(kinds: Kinds[C], job: Job, parts: Parts[C]) -> Footprint:
    """The footprint of a job that runs on one core: any core that it may use and that can run it."""
    able = {kind: core for kind, core in enumerate(kinds.each) if core.refusal(job.model) is None}
    variants = tuple((kind, parts.phases(job, core)) for kind, core in able.items())
    # in one order, so that jobs which may use the same cores wait in one queue
    where = tuple(each for each in sorted(set(job.allowed(len(kinds.cores)))) if kinds.of[each] in able)
    return Footprint(variants, tuple((kind, parts.buffers(core)) for kind, core in enumerate(kinds.each)), where)


def assemble(
    cores: Sequence[C],
    jobs: Sequence[Job],
    check: Callable[[Job], None],
    parts: Parts[C],
    footprint: Callable[[Job], Footprint] | None = None,
    machine: Callable[[], tuple[Core, ...]] | None = None,
    *,
    templates: bool = False,
) -> Program:
    """Make the Program of jobs on cores, both in their order.

    cores, jobs: the cores of the chip; the jobs.
    check: raises `InputError` if the chip cannot run a job; called once for each distinct job.
    parts: makes the parts of the Program.
    footprint: needs of a job, called once for each distinct job; None: `usual_footprint`.
    machine: gives the cores of the Program, if there are more than the cores of the chip.
    templates: as for `lstmsim.machines.lower`.
    `InputError` if a job can run nowhere, or if the jobs are too large.
    """
    kinds = kinds_of(cores)
    for job in distinct_jobs(jobs):
        check(job)
    check_size(kinds, jobs, parts.per_step, templates=templates)
    known: dict[Hashable, Footprint] = {}
    tasks = []
    for job in jobs:
        key = job.identity
        if key not in known:
            known[key] = footprint(job) if footprint else usual_footprint(kinds, job, parts)
        each = known[key]
        rank, from_arrival = DISPATCH[job.dispatch](job)
        task = Task(
            name=job.name,
            variants=each.variants,
            buffers=each.buffers,
            cores=each.cores,
            release=job.arrival,
            frame_interval=job.frame_interval,
            key=rank,
            key_from_arrival=from_arrival,
            after=job.after,
            partners=each.partners,
            content=each.content,
            # where weights never move, all cores hold them
            affine=job.affinity and each.content is not None,
            preempts=job.preempts and not each.partners and not each.wide,
            queue_limit=job.queue_limit,
            patience=job.patience,
            wide=each.wide,
        )
        tasks.append(task)
    described = machine() if machine else tuple(map(parts.core, kinds.of, cores))
    return Program(described, tuple(tasks))
