"""Machines. Each has a frozen description and one pure function that lowers jobs to a Program.

To add a target, write a folder whose `target.py` fills in `lstmsim.machines.target.Target`, and a line in
`registry.KINDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.assembly import MAX_REMEMBERED, MAX_STEP_OPERATIONS, remembered_fault
from lstmsim.machines.pools import lowered
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Chip, Job, distinct_jobs
from lstmsim.program.program import Program, TabledProgram

#: No job of so few steps has more operations than an engine remembers.
_SHORT = MAX_REMEMBERED // MAX_STEP_OPERATIONS


def lower(chip: Chip, jobs: Sequence[Job], *, templates: bool = False) -> Program:
    """Lower jobs to a Program. Its cores and tasks are in the order of the chip's cores and of the jobs.

    chip: description of the chip.
    jobs: the jobs.
    templates: whether the jobs stand for jobs that come later; then each job has to be small enough, but not all
        jobs together.
    `InputError` if the chip cannot run a job, or if the program is too large.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> len(lower(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),)), []).cores)
    1
    """
    target = target_of(chip.kind)
    if any(job.batching is not None for job in jobs):
        program = lowered(target, chip, jobs, templates=templates)
    else:
        program = target.lower(chip, jobs, templates=templates)
    program = _with_sessions(program, jobs)
    if not isinstance(program, TabledProgram) and max((job.steps for job in jobs), default=0) > _SHORT:
        _check_remembered(program, jobs)
    return program


def _with_sessions(program: Program, jobs: Sequence[Job]) -> Program:
    """The program whose tasks say which states they go on with. No machine knows of it."""
    sessions = {job.session: None for job in jobs if job.session is not None}
    if not sessions or isinstance(program, TabledProgram):
        return program
    numbers = {session: number for number, session in enumerate(sessions)}
    tasks = [
        task if job.session is None else replace(task, session=numbers[job.session], move_cycles=job.move_cycles)
        for job, task in zip(jobs, program.tasks, strict=False)
    ]
    return replace(program, tasks=(*tasks, *program.tasks[len(tasks) :]))


def _check_remembered(program: Program, jobs: Sequence[Job]) -> None:
    """`InputError` for a job whose later phases look back at more operations than an engine remembers."""
    seen: set[int] = set()
    for job, task in zip(jobs, program.tasks, strict=True):
        for _, _, phases, _ in task.all_variants:
            fault = "" if id(phases) in seen else remembered_fault(phases)
            seen.add(id(phases))
            if fault:
                raise InputError(Mistake(f"job {job.name}: steps", fault))


def refusals(chip: Chip, jobs: Sequence[Job]) -> tuple[Mistake, ...]:
    """List why the chip cannot run some of the jobs: one reason for each distinct job. No job is lowered.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> job = Job("a", Model("m", (Layer(cell("lstm"), 8, 8),)), steps=1, cores=(3,))
    >>> print(*refusals(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=16),)), [job]))
    job a: core: there is no core 3; the chip has 1 (0 to 0)
    """
    check = target_of(chip.kind).check
    mistakes: list[Mistake] = []
    for job in distinct_jobs(jobs):
        try:
            check(chip, job)
        except InputError as error:
            mistakes += error.mistakes
    return tuple(mistakes)
