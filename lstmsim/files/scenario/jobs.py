"""A scenario and its jobs are built from the records of its entries alone; a single job, from its keys."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import count, islice
from itertools import cycle as endlessly
from typing import TYPE_CHECKING, Annotated, Any

from lstmsim.base.bounds import MAX_CYCLES
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.base.wording import show
from lstmsim.files.scenario.batching import batching_of, check_batching_of_job, keys_of_batching
from lstmsim.files.scenario.entries import JobRecord, check_cores, job_names, named_cores
from lstmsim.files.scenario.first_states import ZERO, check_initial, names_job
from lstmsim.files.scenario.models import STAND_IN, ChipRead, Numbers, file_path, frames_path
from lstmsim.files.scenario.pinned import is_pinned, keys_of_streams
from lstmsim.files.scenario.request_schema import ArrivalEntry, StepsEntry
from lstmsim.files.scenario.schema import InitialEntry, JobEntry, ScenarioFile, Text, check
from lstmsim.files.yaml.document import Document, document_of
from lstmsim.machines.registry import target_of
from lstmsim.model.batching import Batching
from lstmsim.model.model import Model
from lstmsim.model.scenario import DISPATCH, Chip, Density, Job, Offer, OnMachines, Scenario, estimated_offer

if TYPE_CHECKING:
    from lstmsim.traffic.arrivals import ClosedLoop, OpenArrivals
    from lstmsim.traffic.streams import StreamKey

#: Arrival of a job, position of the job that it comes after (or None), latency that it should not exceed (or None).
Coming = tuple[int, int | None, int | None]
#: Keys of a job that stand in its entry.
_PLAIN = ("frame_interval", "threads", "batch", "priority", "deadline", "queue_limit", "patience")


@record
class ReadScenario:
    """A scenario document without mistakes; `name` is the scenario's if the document gives none.

    on: of each entry its values by machine.
    served: whether each entry stands for requests that keep coming: then `weights` is warm where nothing is said.
    """

    order: ScenarioFile
    name: str
    chip: Chip
    records: tuple[JobRecord, ...]
    numbers: Numbers
    served: bool = False
    on: tuple[OnMachines, ...] = ()

    def scenario(self, jobs: Iterable[Job], offers: Mapping[str, Offer]) -> Scenario:
        """Build the scenario with these jobs."""
        own = self.numbers
        seeds = {
            f"jobs.{index}.{key}": part.seed
            for index, entry in enumerate(self.order.jobs)
            for key, part in (("arrival", entry.arrival), ("steps", entry.steps))
            if isinstance(part, ArrivalEntry | StepsEntry) and part.random
        }
        called = self.order.name or self.name
        made = Scenario(self.chip, tuple(jobs), called, own.precision, offers, own.given, own.calibration, seeds)
        return with_numbers(made)

    def keys_of_jobs(self, place: int) -> dict[str, Any]:
        """Give the keys that all jobs of an entry share; a single job of it has just these, and steps."""
        each = self.records[place]
        return {
            "name": each.key[0],
            "model": each.model,
            "cores": named_cores(each.entry),
            "split": each.entry.split or "",
            "inputs": each.inputs,
            "initial": each.initial,
            "dispatch": self.order.dispatch,
            "preempts": self.order.preemption,
            "affinity": self.order.placement == "affinity",
            "tenant": each.tenant,
            "density": _density(each.entry, 0),
            "batching": each.entry.batching and batching_of(each.entry.batching, each.tenant, self.chip.frequency_mhz),
            **{key: getattr(each.entry, key) for key in _PLAIN},
            "on": self.on[place] if self.on else (),
            "weights": each.entry.weights or ("warm" if self.served and target_of(self.chip.kind).warms else None),
        }


def with_numbers(scenario: Scenario) -> Scenario:
    """The scenario with the numbers that its jobs compute on, where the chip's cycles depend on them.

    They are read when somebody asks for them. Jobs with a density, and jobs without `inputs`, have none.
    """
    if not target_of(scenario.chip.kind).reads_numbers(scenario.chip):
        return scenario
    from lstmsim.files.scenario.numbers import job_data
    from lstmsim.model.numerics.jobs import AllNumbers, OwnNumbers

    precision = scenario.precision if scenario.precision_given else None
    every, own = AllNumbers(partial(job_data, scenario), precision), [_files(job) for job in scenario.jobs]
    # formats are calibrated on all jobs together
    context = hashlib.sha256(repr((precision, sorted(scenario.calibration.items()), own)).encode()).hexdigest()
    jobs = []
    for index, (job, files) in enumerate(zip(scenario.jobs, own, strict=True)):
        if job.density is None and job.inputs:
            job = replace(job, numbers=OwnNumbers(every, index, (files, context)))
        jobs.append(job)
    return replace(scenario, jobs=tuple(jobs))


def _files(job: Job) -> Hashable:
    """What the numbers of a job are read from, each file as it is now."""
    paths = job.model.weights, job.inputs, job.initial
    versions = []
    for path in paths:
        try:
            known = os.stat(path) if path else None
        except OSError:
            known = None
        versions.append(known and (known.st_mtime_ns, known.st_size))
    network = id(job.model.network) if job.model.network is not None else None
    return paths, tuple(versions), network, job.steps, job.states_of


def build_scenario(read: ReadScenario) -> Scenario:
    """Build a scenario whose entries are expanded to jobs with unique names."""
    coming: list[list[Coming]] = []
    firsts = [0]
    for each in read.records:
        each_of = _coming(each, read.chip.frequency_mhz, firsts[-1])
        if each.follows is not None:
            each_of = [(cycle, firsts[each.follows] + place, due) for place, (cycle, _, due) in enumerate(each_of)]
        coming.append(each_of)
        firsts.append(firsts[-1] + len(each_of))
    offers = offers_of(read, [each.count for each in read.records])
    return read.scenario(_jobs(read, coming), offers)


def _density(entry: JobEntry, place: int) -> Density | None:
    own = entry.density
    return None if own is None else Density(own.x, own.h, own.seed, place)


def _jobs(read: ReadScenario, coming: Sequence[Sequence[Coming]]) -> Iterator[Job]:
    keys = [read.keys_of_jobs(place) for place in range(len(read.records))]
    places = count()
    unique = iter(job_names([each.key[0] for each in read.records], list(map(len, coming))))
    for index, (each, shared, each_of) in enumerate(zip(read.records, keys, coming, strict=True)):
        follows = each.follows is not None
        tenants = each.tenants or [each.tenant] * len(each_of)
        numbers = islice(each.steps.drawn(), len(each_of))
        streams = isinstance(each.entry.arrival, ArrivalEntry)
        turns = keys_of_streams(each.entry, read.chip, index) if streams else []
        for (arrival, after, due), number, tenant, turn in zip(
            each_of, numbers, tenants, islice(endlessly(turns or [{}]), len(each_of)), strict=True
        ):
            own = {"name": next(unique), "steps": number, "arrival": arrival, "after": after, "tenant": tenant}
            own |= turn
            own["states_of"] = after if follows else None
            place = next(places)
            if each.entry.density:
                own["density"] = _density(each.entry, place)
            if each.entry.deadline is None:
                own["deadline"] = due
            yield Job(**shared | own)


def _coming(each: JobRecord, clock: float, first: int) -> list[Coming]:
    """Give the arrivals of the jobs of an entry; `first`: position of the first one among all jobs."""
    stated = each.entry.arrival
    if each.rows is not None:
        drawn: Iterator[Coming] = ((cycle, None, None) for cycle in each.rows.cycles)
    elif each.process is not None and isinstance(stated, ArrivalEntry):
        drawn = _drawn(each.process, each.count, clock, (stated.seed, *each.key), first)
    else:
        assert not isinstance(stated, ArrivalEntry), "it has a process or rows"
        return [(cycle, None, None) for cycle in (stated if isinstance(stated, list) else [stated] * each.count)]
    coming: list[Coming] = []
    try:
        for one in drawn:
            if one[0] > MAX_CYCLES:
                text = f"job {len(coming) + 1:,} of this entry comes as late as cycle {one[0]:,}"
                raise InputError(Mistake(each.place, f"{text}, at most {MAX_CYCLES:,} are simulated"))
            coming.append(one)
    except InputError as error:
        raise InputError([Mistake(each.place, wrong.sentence) for wrong in error.mistakes]) from None
    return coming


def _drawn(
    process: OpenArrivals | ClosedLoop, count: int, clock: float, key: StreamKey, first: int
) -> Iterator[Coming]:
    from lstmsim.traffic.arrivals import ClosedLoop, Stream, arrivals, think_cycles

    if isinstance(process, ClosedLoop):
        many = min(process.clients, count)
        thinking = [think_cycles(process, client, clock, key) for client in range(many)]
        for number in range(count):
            yield next(thinking[number % many]), None if number < many else first + number - many, None
    elif isinstance(process, Stream):
        coming = arrivals(process, count + process.streams, clock, key)
        frames = deque(islice(coming, process.streams))
        for following in coming:
            cycle = frames.popleft()
            yield cycle, None, following - cycle
            frames.append(following)
    else:
        for cycle in arrivals(process, count, clock, key):
            yield cycle, None, None


def offers_of(read: ReadScenario, requests: Sequence[int]) -> dict[str, Offer]:
    """Give by the name of an entry or tenant the rate at which its jobs come in the long run.

    requests: how many jobs of each entry come in all; 0: as many as the user asks for.
    """
    offers: dict[str, Offer] = {}
    firsts: list[JobRecord] = []
    for each, ends in zip(read.records, requests, strict=True):
        # jobs come as often as the jobs that they follow, which stand before them in the file
        firsts.append(each if each.follows is None else firsts[each.follows])
        stated, clock, offer = firsts[-1].entry.arrival, read.chip.frequency_mhz, Offer()
        if firsts[-1].rows is not None:
            offer = estimated_offer(firsts[-1].rows.cycles, clock)
        elif firsts[-1].process is not None:
            from lstmsim.traffic.arrivals import offer_of

            offer = replace(offer_of(firsts[-1].process, clock), pinned=is_pinned(each.entry))
            if isinstance(stated, ArrivalEntry):
                offer = replace(offer, move_cycles=stated.move_cycles)
        elif isinstance(stated, list):
            offer = estimated_offer(sorted(stated), clock)
        offer = replace(offer, entry=each.tenant, lengths=each.steps.shares, requests=ends)
        offers |= dict.fromkeys([each.tenant, *(each.tenants or ())], offer)
    return offers


class _OneJob(JobEntry):
    """The keys of an entry, and those that a file states once or that follow from the position of an entry."""

    after: int | None = None
    states_of: int | None = None
    dispatch: Annotated[str, Key(choices=tuple(DISPATCH))] = "fcfs"
    preempts: bool = False
    affinity: bool = False
    tenant: Text = ""


_DEFAULTS = {each.name: each.default for each in fields(Job)}


def checked_job(model: Model, stated: int | None, keys: Mapping[str, Any]) -> Job:
    """Make a job of a model.

    model: the model.
    stated: the steps that the model itself states; None: it states none.
    keys: fields of `Job`; a field with None or its default counts as not given.
    `InputError` with every mistake, in the words of a scenario file.
    """
    given = {key: value for key, value in keys.items() if value is not None and not _is_default(key, value)}
    if isinstance(given.get("batching"), Batching):
        given["batching"] = keys_of_batching(given["batching"])
    document = document_of({"model": STAND_IN, **given})
    entry, _ = check(_OneJob, document)
    _check_single(document, given)
    if entry is not None:
        check_initial(document, ("initial",), entry)
        check_cores(document, (), entry, ChipRead())
        check_batching_of_job(document, entry, bool(given.get("preempts")))
    steps = given.get("steps", stated)
    if steps is None:
        document.blame(("steps",), "required key is missing (the model states no steps of its own)")
    if entry is None or document.mistakes or steps is None:
        raise InputError(document.mistakes)
    values = {key: getattr(entry, key) for key in given if key not in ("steps", "cores", "inputs", "initial")}
    if entry.density is not None:
        values["density"] = _density(entry, 0)
    if entry.batching is not None:
        values["batching"] = batching_of(entry.batching, str(given.get("name", model.name)), 1)
    if entry.cores is not None:
        values["cores"] = tuple(entry.cores)
    if entry.inputs is not None:
        values["inputs"] = frames_path(document, ("inputs",), entry.inputs)
    if "initial" in given:
        values["initial"] = _initial(document, entry)
    return Job(**({"name": model.name} | values), model=model, steps=int(steps))


def _initial(document: Document, entry: JobEntry) -> str:
    """A file of states, `zero`, or the name of another job, which means something once the jobs stand together."""
    given = entry.initial
    word = str((given.job or given.file) if isinstance(given, InitialEntry) else given)
    return word if word == ZERO or names_job(word) else file_path(document, ("initial",), word)


def _is_default(key: str, value: Any) -> bool:
    default = _DEFAULTS[key]
    return type(value) is type(default) and value == default


def _check_single(document: Document, given: Mapping[str, Any]) -> None:
    """Note keys that make many jobs of an entry, because the keys here describe a single job."""
    more = {"arrival": "a process or a list of arrivals", "steps": "a distribution or a list of steps"}
    for key, what in more.items():
        if isinstance(given.get(key), list | tuple | Mapping):
            text = f"must be a whole number, got {show(given[key])}: {what} belongs to a mapping, which is many jobs"
            document.blame((key,), text)
    if "on" in given:
        document.blame(("on",), "belongs to a mapping in the jobs of a scenario, whose chip says what counts")
