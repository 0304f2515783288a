"""What all targets have in common: which core can run a job, how large a program may get, tasks made of phases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lstmsim.errors import InputError, Mistake
from lstmsim.program.program import Buffer, Core, Phase, Program, Task
from lstmsim.workload.dispatch import DISPATCH
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job

__all__ = ["MAX_JOB_OPERATIONS", "MAX_OPERATIONS", "AnyCore", "Parts", "assemble", "check_cores"]

#: Most operations of one job: a thread remembers up to 16 bytes of each, whichever of them are skipped.
MAX_JOB_OPERATIONS = 20_000_000
#: Most operations of a scenario: minutes for the compiled loop, where nothing repeats and nothing is skipped.
MAX_OPERATIONS = 2_000_000_000

Phases = tuple[Phase, ...]
#: Phases of a task by kind of core.
Variants = tuple[tuple[int, Phases], ...]


class AnyCore(Protocol):
    """What every target's core can say of a model."""

    def refusal(self, model: Model) -> str | None: ...


C = TypeVar("C", bound=AnyCore)


@dataclass(frozen=True)
class Parts(Generic[C]):
    """How a target makes the parts of a Program: a job's phases on a core, a core's buffers, a core of some kind; and a
    bound on the operations of one step of a model in a batch of some size."""

    operations: Callable[[Model, C, int], int]
    phases: Callable[[Job, C], Phases]
    buffers: Callable[[C], tuple[Buffer, ...]]
    core: Callable[[int, C], Core]


def check_cores(cores: Sequence[AnyCore], job: Job) -> None:
    """Raise `InputError` if there is no such core, or none that the job may use can run it.

    >>> from lstmsim.targets.column_npu import ColumnCore
    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> check_cores([ColumnCore(npe=64, ep=4, vp=2)], Job("a", Model("m", (Layer(cell("gru"), 8, 8),)), 1))
    Traceback (most recent call last):
    ...
    lstmsim.errors.InputError: job a: no core can run it: cell 'gru' has 3 gates and needs vp >= 3, got vp 2
    """
    if job.core is not None and not 0 <= job.core < len(cores):
        text = f"there is no core {job.core}; the chip has {len(cores)} (0 to {len(cores) - 1})"
        raise InputError(Mistake(f"job {job.name}: core", text))
    allowed = cores if job.core is None else (cores[job.core],)
    reasons = [core.refusal(job.model) for core in allowed]
    if None not in reasons:
        raise InputError(Mistake(f"job {job.name}", f"no core can run it: {reasons[0]}"))


def _check_size(cores: Sequence[C], jobs: Sequence[Job], operations: Callable[[Model, C, int], int]) -> None:
    total = 0
    known: dict[tuple[int, int, int, int | None], int] = {}
    for index, job in enumerate(jobs):
        # by identity: jobs are many, their models few, and comparing models takes longer than all the rest
        key = (id(job.model), job.steps, job.batch, job.core)
        if key not in known:
            allowed = cores if job.core is None else (cores[job.core],)
            able = [core for core in dict.fromkeys(allowed) if core.refusal(job.model) is None]
            known[key] = job.steps * max(operations(job.model, core, job.batch) for core in able)
        most = known[key]
        total += most
        if most > MAX_JOB_OPERATIONS or total > MAX_OPERATIONS:
            text = (
                f"too large: {job.steps:,} steps take up to {most:,} operations and bring the scenario to {total:,}; "
                f"at most {MAX_JOB_OPERATIONS:,} of a job and {MAX_OPERATIONS:,} in all are simulated"
            )
            raise InputError(Mistake(f"jobs.{index}.steps (job {job.name})", text))


def assemble(cores: Sequence[C], jobs: Sequence[Job], check: Callable[[Job], None], parts: Parts[C]) -> Program:
    """The Program of jobs on cores, both in their order; `InputError` if a job can run nowhere or all are too large.

    `check` says of a job whether the chip can run it; each distinct job is asked for once.
    """
    kinds = {core: kind for kind, core in enumerate(dict.fromkeys(cores))}
    checked: set[tuple[int, int | None, int]] = set()
    for job in jobs:
        if (id(job.model), job.core, job.batch) not in checked:
            check(job)
            checked.add((id(job.model), job.core, job.batch))
    _check_size(cores, jobs, parts.operations)
    known: dict[tuple[int, int, int, int | None, bool], tuple[Variants, tuple[int, ...]]] = {}
    buffers = tuple((kind, parts.buffers(core)) for core, kind in kinds.items())
    tasks = []
    for job in jobs:
        key = (id(job.model), job.steps, job.batch, job.core, job.frame_interval > 0)
        if key not in known:
            able = [(kind, core) for core, kind in kinds.items() if core.refusal(job.model) is None]
            variants = tuple((kind, parts.phases(job, core)) for kind, core in able)
            allowed = range(len(cores)) if job.core is None else (job.core,)
            known[key] = variants, tuple(i for i in allowed if cores[i].refusal(job.model) is None)
        variants, where = known[key]
        rank, from_arrival = DISPATCH[job.dispatch](job)
        times = (job.arrival, job.frame_interval)
        tasks.append(Task(job.name, variants, buffers, where, *times, rank, from_arrival, job.after))
    return Program(tuple(parts.core(kinds[each], each) for each in cores), tuple(tasks))
