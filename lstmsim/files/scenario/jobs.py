"""Checked job entries become `Job`s, with their models, names, cores and numbers of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounds import MAX_JOBS
from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.files.scenario.job_arrivals import Coming, JobArrivals, job_names, tenant_names
from lstmsim.files.scenario.job_checks import Initials, Runnable, check_cores, initial_file, named_cores
from lstmsim.files.scenario.models import STAND_IN, Cores, blame_all, file_path, frames_path, read_model
from lstmsim.files.scenario.schema import (
    MAX_LENGTHS,
    JobEntry,
    Measure,
    ScenarioFile,
    StepsEntry,
    measure_of,
    random_lengths,
    steps_mistakes,
)
from lstmsim.files.yaml.document import Document, WrongPaths, usable
from lstmsim.machines.assembly import Tally, TooLarge, way_out
from lstmsim.model.cell import Cell
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, Offer
from lstmsim.traffic.lengths import InOrder, Lengths, Weighted, drawn_lengths, length_arrays, possible, shares
from lstmsim.traffic.streams import StreamKey


class JobSteps:
    """The steps of a document's jobs; each file of lengths is read once."""

    def __init__(self, document: Document, arrivals: JobArrivals) -> None:
        self.document, self.arrivals = document, arrivals
        self.different = 0
        self._numbers: dict[Hashable, set[int]] = {}
        self._known: dict[int, Lengths] = {}
        self._files: dict[tuple[str, Measure], Sequence[int] | InputError] = {}

    def check(self, index: int, entry: JobEntry, count: int, own: int | None, alike: Hashable = None) -> Lengths | None:
        """Check the steps of entry number `index`, and give their distribution; None if they are missing or wrong."""
        place: DataPath = ("jobs", index, "steps")
        try:
            lengths = self._lengths(index, entry, own)
        except InputError as error:
            self.document.mistakes.extend(error.mistakes)
            return None
        if isinstance(entry.steps, list) and len(entry.steps) != count:
            text = f"must hold as many numbers as there are jobs ({count:,}), got {len(entry.steps):,}"
            self.document.blame(place, f"{text}; {{kind: list, values: [...]}} draws from some")
            return None
        if lengths is None:
            return None
        before, self.different = self.different, self.different + self._new(possible(lengths), alike)
        if before <= MAX_LENGTHS < self.different:
            text = f"may be {self.different:,} different numbers, with those of the jobs before"
            hint = "; per_step makes fewer of a column" if isinstance(entry.steps, StepsEntry) else ""
            self.document.blame(place, f"{text}, at most {MAX_LENGTHS:,} are simulated{hint}")
            return None
        self._known[index] = lengths
        return lengths

    def _new(self, numbers: Sequence[int], alike: Hashable) -> int:
        """Count the numbers that no earlier entry with the same `alike` had."""
        if alike is None or len(numbers) > MAX_LENGTHS:
            return len(numbers)
        seen = self._numbers.setdefault(alike, set())
        before = len(seen)
        seen.update(numbers)
        return len(seen) - before

    def known(self, index: int) -> bool:
        """Tell whether entry number `index` has been checked and is right."""
        return index in self._known

    def total(self, index: int, entry: JobEntry, key: tuple[str, int], count: int) -> int:
        """Add up the steps of the first `count` jobs of an entry that has been checked."""
        return sum(islice(self.of_jobs(index, entry, key), count))

    def of_jobs(self, index: int, entry: JobEntry, key: tuple[str, int]) -> Iterator[int]:
        """Yield the steps of one job after another, of an entry that has been checked."""
        return drawn_lengths(self._known[index], _stream_key(entry, key))

    def in_arrays(self, index: int, entry: JobEntry, key: tuple[str, int], chunk: int) -> Iterator[NDArray[np.int64]]:
        """Yield the same steps as `of_jobs` in arrays of shape [chunk]."""
        return length_arrays(self._known[index], _stream_key(entry, key), chunk)

    def possible(self, index: int) -> Sequence[int]:
        """Give the possible numbers of steps, ascending, of an entry that has been checked."""
        return possible(self._known[index])

    def shares(self, index: int) -> tuple[tuple[int, float], ...]:
        """Give the possible numbers of steps, each with its share of jobs; empty if there is only one number."""
        lengths = shares(self._known[index])
        return tuple(lengths.items()) if len(lengths) > 1 else ()

    def _lengths(self, index: int, entry: JobEntry, own: int | None) -> Lengths | None:
        if isinstance(entry.steps, StepsEntry):
            return self._of_kind(index, entry, entry.steps)
        if isinstance(entry.steps, list):
            return InOrder(entry.steps)
        if entry.steps is not None:
            return InOrder((entry.steps,))
        try:
            rows = self.arrivals.rows(index, entry)
        except InputError:  # the check of the arrivals has noted the mistake
            return None
        column = None if rows is None else rows.steps()
        if column:
            return InOrder(column)
        return None if own is None else InOrder((own,))

    def _of_kind(self, index: int, entry: JobEntry, steps: StepsEntry) -> Lengths | None:
        place: DataPath = ("jobs", index, "steps")
        mistakes = steps_mistakes(steps)
        for key, text in mistakes:
            self.document.blame((*place, key), text)
        if mistakes:
            return None
        drawn = random_lengths(steps)
        if drawn is not None:
            return drawn
        if steps.kind == "empirical":
            return Weighted(self._of_file((*place, "path"), steps))
        if self.arrivals.comes_from(index, entry) is None:
            text = "column takes the steps from the rows of a file of arrivals, and this job comes from none"
            self.document.blame((*place, "kind"), f"{text}: empirical draws from the rows of any file")
            return None
        try:
            rows = self.arrivals.rows(index, entry)
        except InputError:  # the check of the arrivals has noted the mistake
            return None
        column = None if rows is None else rows.steps(measure_of(steps))
        return InOrder(column) if column else None

    def _of_file(self, place: DataPath, steps: StepsEntry) -> Sequence[int]:
        # most scenarios have no such file
        from lstmsim.files.scenario.arrival_file import read_lengths

        key = file_path(self.document, place, steps.path), measure_of(steps)
        if key not in self._files:
            try:
                self._files[key] = read_lengths(*key)
            except InputError as error:
                self._files[key] = error
        lengths = self._files[key]
        if isinstance(lengths, InputError):
            named = self.document.place(place)
            raise InputError(
                [Mistake(named, str(each)) if each.location == key[0] else each for each in lengths.mistakes]
            )
        return lengths


def _stream_key(entry: JobEntry, key: tuple[str, int]) -> StreamKey:
    seed = entry.steps.seed if isinstance(entry.steps, StepsEntry) else 0
    return (seed, *key, "steps")


def check_jobs(
    document: Document,
    wrong: WrongPaths,
    cores: Cores,
    cells: Mapping[str, Cell | None],
    arrivals: JobArrivals,
    steps: JobSteps,
    *,
    single: bool = False,
) -> list[Model | None]:
    """Check all job entries, and give the model of each; None for a wrong model."""
    jobs = document.data.get("jobs")
    jobs = jobs if isinstance(jobs, list) else []
    models = _one_of_each([_model(document, wrong, cells, index, data) for index, data in enumerate(jobs)])
    wrong_of = [wrong.below(("jobs", index)) for index in range(len(jobs))]
    entries = [usable(JobEntry, data, keys, {"model": STAND_IN}) for data, keys in zip(jobs, wrong_of, strict=True)]
    names = [(one and one.name) or (model and model.name) or "" for one, model in zip(entries, models, strict=True)]
    arrivals.prepare([None if model is None else entry for entry, model in zip(entries, models, strict=True)], names)
    able = Runnable(document, cores)
    initials = Initials(document, entries, names, models)
    counts = [0] * len(entries)
    total_jobs = 0
    tally = Tally()
    for index, (data, entry, model, key) in enumerate(zip(jobs, entries, models, entry_keys(names), strict=True)):
        path: DataPath = ("jobs", index)
        if entry is None:
            continue
        _check_entry(document, path, entry, cores, wrong_of[index])
        all_jobs = counts[index] = arrivals.check(index, entry)
        from_file = arrivals.comes_from(index, entry) is not None
        initials.check(index, counts, comes_from_file=from_file, single=single)
        count = 1 if single else all_jobs
        total_jobs += count
        if total_jobs - count <= MAX_JOBS < total_jobs:
            document.blame((*path, "count" if "count" in data else "arrival"), f"more than {MAX_JOBS} jobs in all")
        # serving keeps tables for each entry, so no two entries are alike
        alike = None if single else (id(model), named_cores(entry), entry.split, entry.batch, entry.threads)
        most = _check_steps(document, index, entry, wrong_of[index], steps, all_jobs, alike)
        runnable = [] if model is None else able.cores(path, entry, model)
        if model is None or not runnable or cores.target is None:
            continue
        members, split = entry.threads or len(named_cores(entry) or cores.cores), entry.split or ""
        bound = partial(cores.target.per_step, runnable, model, split=split, members=members)
        exact = partial(steps.total, index, entry, key, count) if steps.known(index) and not single else None
        wrong_size = tally.add(show(model.name), bound(entry.batch), most, count, exact)
        _blame_size(document, path, way_out(wrong_size, entry.batch, bound))
    return models


def _one_of_each(models: Sequence[Model | None]) -> list[Model | None]:
    """Replace equal models by one object, because other functions tell models apart by identity."""
    one: dict[tuple[object, ...], Model] = {}
    return [
        None if each is None else one.setdefault((each, each.weights, each.states_from, each.states_whole), each)
        for each in models
    ]


def _model(
    document: Document, wrong: WrongPaths, cells: Mapping[str, Cell | None], index: int, data: Any
) -> Model | None:
    has_model = isinstance(data, dict) and "model" in data
    return read_model(document, ("jobs", index, "model"), wrong, cells) if has_model else None


def entry_keys(names: list[str]) -> list[tuple[str, int]]:
    """Give for each entry its name and how many earlier entries have that name: the key of its random numbers."""
    named = Counter[str]()
    keys = []
    for name in names:
        keys.append((name, named[name]))
        named[name] += 1
    return keys


def _check_entry(document: Document, path: DataPath, entry: JobEntry, cores: Cores, keys: set[str | int]) -> None:
    if isinstance(entry.arrival, list) and "count" not in keys and len(entry.arrival) != entry.count:
        text = f"must hold as many arrivals as there are jobs (count {entry.count}), got {len(entry.arrival)}"
        document.blame((*path, "arrival"), text)
    if cores.target is not None:
        known = len(cores.cores) if cores.known else None
        blame_all(document, path, cores.target.job_faults(entry.batch, entry.split, entry.threads, known))
    check_cores(document, path, entry, cores)


def _check_steps(
    document: Document, index: int, entry: JobEntry, keys: set[str | int], steps: JobSteps, count: int, alike: Hashable
) -> int:
    """Check the steps of an entry, and give the most steps that a job of it may have; 1 if they are unknown."""
    path: DataPath = ("jobs", index)
    model = document.at(path).get("model")
    own = model.get("steps") if isinstance(model, dict) else None
    lengths = steps.check(index, entry, count, own if isinstance(own, int) else None, alike)
    missing = entry.steps is None and lengths is None and own is None and "steps" not in keys
    if missing and isinstance(model, dict) and not steps.arrivals.unread(index, entry):
        document.blame((*path, "steps"), "required key is missing (the model states no steps of its own)")
    return 1 if lengths is None else steps.possible(index)[-1]


def _blame_size(document: Document, path: DataPath, wrong: TooLarge | None) -> None:
    """Note jobs that are too large, at the key whose value would have to be smaller."""
    if wrong is None:
        return
    keys = {"step": (), "job": ("steps", "model"), "all": ("steps", "count", "model")}[wrong.what]
    here = next((key for key in keys if key in document.at(path)), None)
    document.blame(path if here is None else (*path, here), wrong.sentence)


def build_jobs(
    document: Document, order: ScenarioFile, models: list[Model], arrivals: JobArrivals, steps: JobSteps
) -> tuple[Job, ...]:
    """Build the jobs of a file without mistakes, with `count` expanded and unique names."""
    templates = job_templates(document, order, models)
    names = [each.name for each in templates]
    keys = entry_keys(names)
    initials = Initials(document, order.jobs, names, models)
    coming: list[list[Coming]] = []
    firsts = [0]
    for index, (entry, key) in enumerate(zip(order.jobs, keys, strict=True)):
        each_of = arrivals.coming(index, entry, *key, firsts[-1])
        before = initials.follows(index)
        if before is not None:
            each_of = [(cycle, firsts[before] + place, due) for place, (cycle, _, due) in enumerate(each_of)]
        coming.append(each_of)
        firsts.append(firsts[-1] + len(each_of))
    unique = iter(job_names(names, list(map(len, coming))))
    jobs: list[Job] = []
    for index, (entry, template, each_of) in enumerate(zip(order.jobs, templates, coming, strict=True)):
        numbers = islice(steps.of_jobs(index, entry, keys[index]), len(each_of))
        tenants = arrivals.tenants(index, entry, template.tenant) or [template.tenant] * len(each_of)
        follows = initials.follows(index) is not None
        # `replace` would look up all values of the template for each job
        kept = {each.name: getattr(template, each.name) for each in fields(template)}
        jobs += [
            Job(
                **kept
                | {
                    "name": next(unique),
                    "steps": number,
                    "arrival": arrival,
                    "after": after,
                    "states_of": after if follows else None,
                    "deadline": due if template.deadline is None else template.deadline,
                    "tenant": tenant,
                }
            )
            for (arrival, after, due), number, tenant in zip(each_of, numbers, tenants, strict=True)
        ]
    return tuple(jobs)


def job_templates(document: Document, order: ScenarioFile, models: list[Model]) -> tuple[Job, ...]:
    """Build one job for each entry of a file without mistakes: it comes at cycle 0 and has one step."""
    jobs: list[Job] = []
    tenants = tenant_names([entry.name or model.name for entry, model in zip(order.jobs, models, strict=True)])
    plain = ("frame_interval", "threads", "batch", "priority", "deadline", "queue_limit", "patience")
    for index, (entry, model) in enumerate(zip(order.jobs, models, strict=True)):
        job = Job(
            entry.name or model.name,
            model,
            steps=1,
            cores=named_cores(entry),
            split=entry.split or "",
            inputs=frames_path(document, ("jobs", index, "inputs"), entry.inputs),
            initial=initial_file(document, index, entry),
            dispatch=order.dispatch,
            preempts=order.preemption,
            affinity=order.placement == "affinity",
            tenant=tenants[index],
            **{key: getattr(entry, key) for key in plain},
        )
        jobs.append(job)
    return tuple(jobs)


def tenant_offers(
    order: ScenarioFile, jobs: tuple[Job, ...], arrivals: JobArrivals, steps: JobSteps, counts: Sequence[int]
) -> dict[str, Offer]:
    """Give by the name of an entry or tenant the rate at which its jobs come in the long run."""
    offers: dict[str, Offer] = {}
    initials = Initials(arrivals.document, order.jobs, [job.name for job in jobs], [])
    firsts: list[int] = []
    for index, (entry, job) in enumerate(zip(order.jobs, jobs, strict=True)):
        lengths, before = steps.shares(index), initials.follows(index)
        # jobs come as often as the jobs that they follow, which stand before them in the file
        comes = index if before is None else firsts[before]
        firsts.append(comes)
        offer = replace(
            arrivals.offer(comes, order.jobs[comes]), entry=job.tenant, lengths=lengths, requests=counts[index]
        )
        offers |= dict.fromkeys([job.tenant, *(arrivals.tenants(index, entry, job.tenant) or ())], offer)
    return offers
