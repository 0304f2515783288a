"""From checked job entries to `Job`s: their models, their names, and where they can run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from lstmsim import targets
from lstmsim.formats.catalog import input_files
from lstmsim.formats.chip_entries import AnyCore, Cores, usable, wrong_keys
from lstmsim.formats.document import DataPath, Document
from lstmsim.formats.job_arrivals import Coming, JobArrivals
from lstmsim.formats.job_cores import check_cores, named_cores, runnable_cores
from lstmsim.formats.model_entries import STAND_IN, file_path, read_model
from lstmsim.formats.schema import JobEntry, ScenarioFile
from lstmsim.formats.schema_types import MAX_JOBS
from lstmsim.formats.wording import show
from lstmsim.targets.assembly import MAX_JOB_OPERATIONS, MAX_OPERATIONS
from lstmsim.targets.column_npu import ColumnCore
from lstmsim.targets.column_split import split_operations_per_step, spreads_over
from lstmsim.workload.cell import Cell
from lstmsim.workload.model import Model
from lstmsim.workload.offer import Offer
from lstmsim.workload.scenario import Job

__all__ = [
    "MAX_STEP_OPERATIONS",
    "build_jobs",
    "check_jobs",
    "job_templates",
    "tenant_names",
    "tenant_offers",
    "unique_names",
]

#: Most operations of one step: a program holds them one by one.
MAX_STEP_OPERATIONS = 500_000


def check_jobs(
    document: Document,
    wrong: list[DataPath],
    cores: Cores,
    cells: Mapping[str, Cell | None],
    arrivals: JobArrivals,
    *,
    single: bool = False,
) -> list[Model | None]:
    """One model per job entry; everything that is wrong between jobs, models and cores is noted in the document.

    `cells` are those of the scenario. `single`: each entry counts as one job, however many it stands for.
    """
    jobs = document.data.get("jobs")
    models: list[Model | None] = []
    refusals: dict[tuple[AnyCore, Model], str | None] = {}
    total_jobs = total = 0
    for index, data in enumerate(jobs if isinstance(jobs, list) else []):
        path: DataPath = ("jobs", index)
        has_model = isinstance(data, dict) and "model" in data
        model = read_model(document, (*path, "model"), wrong, cells) if has_model else None
        models.append(model)
        keys = wrong_keys(path, wrong)
        entry = usable(JobEntry, data, keys, {"model": STAND_IN})
        if entry is None:
            continue
        _check_entry(document, path, entry, cores, keys)
        count = arrivals.check(index, entry)
        count = 1 if single else count
        total_jobs += count
        if total_jobs - count <= MAX_JOBS < total_jobs:
            key = "count" if "count" in data else "arrival"
            document.blame((*path, key), f"more than {MAX_JOBS} jobs in all")
        steps = _steps(document, path, entry, keys)
        runnable = [] if model is None else runnable_cores(document, path, entry, model, cores, refusals)
        if model is None or not runnable:
            continue
        step, held = _per_step(entry, model, cores, runnable)
        before, total = total, total + step * steps * count
        if step * steps > MAX_JOB_OPERATIONS:
            text = f"takes up to {step * steps:,} operations on this chip, a job may have {MAX_JOB_OPERATIONS:,}"
            key = "steps" if "steps" in data else "model"
            document.blame((*path, key), f"{text}; fewer steps show the same rhythm")
            continue
        _check_size(document, path, model, held, before, total)
    return models


def _per_step(entry: JobEntry, model: Model, cores: Cores, runnable: list[AnyCore]) -> tuple[int, int]:
    """A bound on the operations of one step, wherever the job runs, and on those of all ways in which it can run."""
    members, core, split = len(named_cores(entry) or cores.cores), runnable[0], [0]
    if entry.split is not None and members > 1 and isinstance(core, ColumnCore):
        if entry.split != "auto":
            only = split_operations_per_step(model, core, entry.split, members)
            return only, only
        split += [split_operations_per_step(model, core, "rows", some) for some in spreads_over(model, core, members)]
    one = max(targets.operations_per_step(cores.kind, model, core, entry.batch) for core in runnable)
    return max(one, *split), one + sum(split)


def _check_entry(document: Document, path: DataPath, entry: JobEntry, cores: Cores, keys: set[str | int]) -> None:
    if isinstance(entry.arrival, list) and "count" not in keys and len(entry.arrival) != entry.count:
        text = f"must hold as many arrivals as there are jobs (count {entry.count}), got {len(entry.arrival)}"
        document.blame((*path, "arrival"), text)
    if entry.batch > 1 and cores.kind == "column-npu":
        text = "column-npu runs no batches, batched inputs go to its threads: leave batch out and use `count`"
        document.blame((*path, "batch"), f"{text}, got {entry.batch}")
    check_cores(document, path, entry, cores)


def _steps(document: Document, path: DataPath, entry: JobEntry, keys: set[str | int]) -> int:
    if entry.steps is not None:
        return entry.steps
    model = document.at(path).get("model")
    own = model.get("steps") if isinstance(model, dict) else None
    if own is None and "steps" not in keys and isinstance(model, dict):
        document.blame((*path, "steps"), "required key is missing (the model states no steps of its own)")
    return own if isinstance(own, int) else 1


def _check_size(document: Document, path: DataPath, model: Model, step: int, before: int, total: int) -> None:
    if step > MAX_STEP_OPERATIONS:
        text = (
            f"one step of {show(model.name)} takes up to {step:,} operations on this chip, "
            f"more than {MAX_STEP_OPERATIONS:,}"
        )
        document.blame(path, f"{text}: too many to simulate")
    elif before <= MAX_OPERATIONS < total:
        text = (
            f"this job and those before it take up to {total:,} operations on this chip, more than {MAX_OPERATIONS:,}"
        )
        key = next((key for key in ("steps", "count") if key in document.at(path)), "model")
        document.blame((*path, key), f"{text}: too many to simulate; fewer steps show the same rhythm")


def build_jobs(document: Document, order: ScenarioFile, models: list[Model], arrivals: JobArrivals) -> tuple[Job, ...]:
    """The jobs of a file without mistakes, `count` expanded in place, with unique names; `InputError` for arrivals that
    are too late."""
    templates = job_templates(document, order, models)
    names = [each.name for each in templates]
    coming = _coming(order.jobs, names, arrivals)
    unique = iter(unique_names([name for name, each_of in zip(names, coming, strict=True) for _ in each_of]))
    return tuple(
        replace(
            template,
            name=next(unique),
            arrival=arrival,
            after=after,
            deadline=due if template.deadline is None else template.deadline,
        )
        for template, each_of in zip(templates, coming, strict=True)
        for arrival, after, due in each_of
    )


def job_templates(document: Document, order: ScenarioFile, models: list[Model]) -> tuple[Job, ...]:
    """One job for each entry of a file without mistakes, as it would come at cycle 0; names may be equal."""
    jobs: list[Job] = []
    tenants = tenant_names([entry.name or model.name for entry, model in zip(order.jobs, models, strict=True)])
    for index, (entry, model) in enumerate(zip(order.jobs, models, strict=True)):
        steps = entry.steps or entry.model.steps or 1
        inputs = file_path(document, ("jobs", index, "inputs"), entry.inputs)
        came_along = input_files().get(entry.inputs or "")
        if came_along is not None and not os.path.lexists(inputs):
            inputs = str(came_along)
        job = Job(
            entry.name or model.name,
            model,
            steps,
            frame_interval=entry.frame_interval,
            cores=named_cores(entry),
            split=entry.split or "",
            batch=entry.batch,
            inputs=inputs,
            priority=entry.priority,
            deadline=entry.deadline,
            dispatch=order.dispatch,
            preempts=order.preemption,
            affinity=order.placement == "affinity",
            queue_limit=entry.queue_limit,
            patience=entry.patience,
            tenant=tenants[index],
        )
        jobs.append(job)
    return tuple(jobs)


def tenant_offers(order: ScenarioFile, jobs: tuple[Job, ...], arrivals: JobArrivals) -> dict[str, Offer]:
    """At which rate the jobs of each tenant come in the long run; `jobs`: the templates, one for each entry."""
    return {
        job.tenant: arrivals.offer(index, entry)
        for index, (entry, job) in enumerate(zip(order.jobs, jobs, strict=True))
    }


def _coming(entries: list[JobEntry], names: list[str], arrivals: JobArrivals) -> list[list[Coming]]:
    found: list[list[Coming]] = []
    named: Counter[str] = Counter()
    first = 0
    for index, (entry, name) in enumerate(zip(entries, names, strict=True)):
        found.append(arrivals.coming(index, entry, name, named[name], first))
        named[name] += 1
        first += len(found[-1])
    return found


def tenant_names(names: list[str]) -> list[str]:
    """The names of entries as tenants: those that occur more than once get a number each.

    >>> tenant_names(["a", "b", "a"])
    ['a #1', 'b', 'a #2']
    """
    times, place = Counter(names), Counter[str]()
    unique = []
    for name in names:
        place[name] += 1
        unique.append(f"{name} #{place[name]}" if times[name] > 1 else name)
    return unique


def unique_names(names: list[str]) -> list[str]:
    """Names that occur more than once get a letter each; letters, because trace viewers ignore digits in colours.

    >>> unique_names(["a", "b", "a", "a-a"])
    ['a-b', 'b', 'a-c', 'a-a']
    """
    times: Mapping[str, int] = Counter(names)
    taken = set(names)
    letters: dict[str, Iterator[str]] = {}
    unique = []
    for name in names:
        if times[name] > 1:
            suffixes = letters.setdefault(name, _letters())
            name = next(full for suffix in suffixes if (full := f"{name}-{suffix}") not in taken)
            taken.add(name)
        unique.append(name)
    return unique


def _letters() -> Iterator[str]:
    number = 0
    while True:
        word, rest = "", number
        while rest >= 0:
            word = chr(ord("a") + rest % 26) + word
            rest = rest // 26 - 1
        yield word
        number += 1
