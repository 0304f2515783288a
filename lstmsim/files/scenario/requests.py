"""The requests of a scenario one after another, without a list of them all, and its rates of random arrivals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_up
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.entries import JobRecord
from lstmsim.files.scenario.jobs import offers_of
from lstmsim.files.scenario.models import left_out
from lstmsim.files.scenario.pinned import keys_of_streams
from lstmsim.files.scenario.request_schema import ArrivalEntry
from lstmsim.files.scenario.scenario_file import apply_overrides, checked_scenario, open_scenario
from lstmsim.model.scenario import Job, Scenario
from lstmsim.traffic.arrivals import ClosedLoop, Stream, arrival_arrays, deadline_arrays
from lstmsim.traffic.lengths import InOrder, length_arrays
from lstmsim.traffic.streams import CHUNK

Ints = NDArray[np.int64]

#: Most requests of one run: a few hours.
MAX_REQUESTS = 1_000_000_000
#: Requests that are drawn ahead of all entries together, about 150 bytes each; of one entry so many at least.
_DRAWN, _LEAST_DRAWN = 2**19, 64


class Batch(NamedTuple):
    """Requests in the order in which they come, as columns of shape [requests].

    arrival: cycles in which they come.
    template: numbers of their templates among the jobs of `Requests.scenario`.
    due: latencies in cycles that they should not exceed; -1: no limit.
    tenant: indices of their tenants among `Requests.tenants`.
    """

    arrival: Ints
    template: Ints
    due: Ints
    tenant: Ints


@dataclass(frozen=True)
class Requests:
    """The requests of a scenario.

    scenario: one job for each entry and each number of steps that its requests may have, in this order: the templates.
        Entries of pinned and moved streams have one for each stream, or of pinned ones for each core where all have
        equally many streams.
    coming: the requests in the order of arrival, then of entries, in batches. It can be gone through once.
    count: most requests.
    tenants: every possible tenant, with the name of its model.
    entries: for each template, the number of its entry in the file.
    """

    scenario: Scenario
    coming: Iterator[Batch]
    count: int
    tenants: tuple[tuple[str, str], ...]
    entries: tuple[int, ...]


def load_requests(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = (), requests: int | None = None
) -> Requests:
    """Read the requests of a scenario.

    requests: how many requests in all; the processes of arrivals go on until then. None: `count` of each entry.
    `InputError` as for a scenario, and for clients, because they wait for answers.
    """
    if requests is not None and not 1 <= requests <= MAX_REQUESTS:
        raise InputError(Mistake("requests", f"must be from 1 to {MAX_REQUESTS:,}, got {requests:,}"))
    document, name = open_scenario(source)
    read = checked_scenario(document, overrides, name, single=True)
    jobs: list[Job] = []
    origins: list[int] = []
    tenants: list[tuple[str, str]] = []
    streams, total, ends = [], 0, []
    for index, each in enumerate(read.records):
        endless = requests is not None and each.process is not None
        count = requests if requests is not None and endless else each.count
        ends.append(0 if endless else each.count)
        ahead = max(_LEAST_DRAWN, min(CHUNK, _DRAWN // len(read.records)))
        chunk = max(1, count) if isinstance(each.entry.arrival, list) else ahead
        lengths, shared = each.steps.possible, read.keys_of_jobs(index)
        if shared["density"] is not None:
            shared["density"] = replace(shared["density"], place=index)
        drawn = InOrder(lengths) if isinstance(each.steps.lengths, int) else each.steps.lengths
        turns, first = keys_of_streams(each.entry, read.chip, index), len(jobs)
        templates = _templates(length_arrays(drawn, each.steps.stream, chunk), lengths, first)
        if turns:
            templates = _in_turn(len(turns), first, chunk)
        own = [Job(**shared | turn, steps=steps) for turn in turns or [{}] for steps in lengths]
        jobs += own
        origins += [index] * len(own)
        whose = each.tenants or [each.tenant]
        places = {name: len(tenants) + place for place, name in enumerate(dict.fromkeys(whose))}
        tenants += [(name, each.model.name) for name in places]
        coming = _in_arrays(each, read.chip.frequency_mhz, count, chunk)
        streams.append(_in_time(coming, templates, [places[name] for name in whose]))
        total += count
    if requests is not None and total < requests:
        owner = "file's" if isinstance(source, str | os.PathLike) else "scenario's"
        text = f"the {owner} arrivals end after {total:,} requests, and no arrival process goes on: leave it out"
        raise InputError(Mistake("requests", f"{text}, got {requests:,}"))
    count = total if requests is None else requests
    scenario = read.scenario(jobs, offers_of(read, ends))
    return Requests(scenario, _merged(streams, count), count, tuple(tenants), tuple(origins))


def _templates(blocks: Iterable[Ints], lengths: Sequence[int], first: int) -> Iterator[Ints]:
    """Turn numbers of steps into templates: `first` stands for the first of the possible `lengths`, and so on."""
    known = np.array(lengths)
    return (first + np.searchsorted(known, block) for block in blocks)


def _in_arrays(each: JobRecord, clock: float, count: int, chunk: int) -> Iterator[tuple[Ints, Ints | None]]:
    """Yield the arrivals of an entry in its order, and latency limits (None: there are none)."""
    stated, process = each.entry.arrival, each.process
    if process is None or not isinstance(stated, ArrivalEntry):
        cycles = each.rows.cycles if each.rows is not None else stated
        listed = np.array(cycles) if isinstance(cycles, list) else np.full(each.count, cycles)
        listed = listed.astype(np.int64, copy=False)[:count]
        return ((listed[first : first + chunk], None) for first in range(0, len(listed), chunk))
    if isinstance(process, ClosedLoop):
        text = "clients wait for their answers, which a stream of requests does not support: use simulate --serving"
        raise InputError(Mistake(each.place, text))
    blocks = arrival_arrays(process, count, clock, (stated.seed, *each.key), chunk)
    if isinstance(process, Stream):
        return _until_the_next(blocks, deadline_arrays(process, count, clock, chunk))
    return ((block, None) for block in blocks)


def _until_the_next(cycles: Iterator[Ints], following: Iterator[Ints]) -> Iterator[tuple[Ints, Ints]]:
    """Frames, each with the cycles until the next one comes. The next one of the last may be too late to come."""
    for block, ends in zip(cycles, following, strict=True):
        yield block[: len(ends)], ends - block[: len(ends)]


def _in_time(
    coming: Iterable[tuple[Ints, Ints | None]], templates: Iterable[Ints], whose: Sequence[int]
) -> Iterator[Ints]:
    """Yield the requests of an entry in the order of time, as arrays whose rows are the columns of a `Batch`."""
    owners = np.array(whose)
    first = 0
    for (cycles, due), own in zip(coming, templates, strict=False):
        number = len(cycles)
        tenants = owners if len(whose) == 1 else owners[first : first + number]
        first += number
        columns = Batch(cycles, own[:number], np.array(-1) if due is None else due, tenants)
        batch = np.stack(np.broadcast_arrays(*columns))
        # a list of arrivals is in any order, and each arrival has the steps of its place in the list
        yield batch if (np.diff(cycles) >= 0).all() else batch[:, np.argsort(cycles, kind="stable")]


def _in_turn(number: int, first: int, chunk: int) -> Iterator[Ints]:
    """The templates `first`, `first` + 1, ..., so many, again and again."""
    return (first + np.arange(at, at + chunk) % number for at in count_up(0, chunk))


def _merged(streams: Sequence[Iterator[Ints]], count: int) -> Iterator[Batch]:
    """Merge the streams in the order of arrival, then of streams, and end after `count` requests."""
    known = {number: block for number, stream in enumerate(streams) if (block := next(stream, None)) is not None}
    while known:
        last, ends = min((int(block[0, -1]), number) for number, block in known.items())
        parts = []
        for number, block in known.items():
            until = int(np.searchsorted(block[0], last, side="right" if number <= ends else "left"))
            parts.append(block[:, :until])
            known[number] = block[:, until:]
        batch = np.concatenate(parts, axis=1)
        order = np.argsort(batch[0], kind="stable")[:count]
        count -= len(order)
        # of many streams a batch is long: it is put in order, and handed on, piece by piece
        for first in range(0, len(order), CHUNK):
            yield Batch(*batch[:, order[first : first + CHUNK]])
        if not count:
            return
        for number in [each for each, block in known.items() if not block.shape[1]]:
            following = next(streams[number], None)
            if following is None:
                del known[number]
            else:
                known[number] = following


#: The key of the rate in each kind of arrivals that has one.
_KEYS = {"poisson": "rate_per_second", "bursty": "on_rate_per_second"}


@dataclass(frozen=True)
class ScenarioRates:
    """The rates of the poisson and bursty entries of a scenario, which change together.

    per_second: their sum in the long run, in requests per second.
    stated: path of a key -> its value in the file; of bursty entries this is the rate while they are on.
    """

    per_second: float
    stated: Mapping[str, float]

    @property
    def peak_ratio(self) -> float:
        """Requests per second while all bursty entries are on / requests per second in the long run."""
        return sum(self.stated.values()) / self.per_second


def rates_of(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> ScenarioRates:
    """Give the rates in a scenario; `InputError` if it has none."""
    stated, total = {}, 0.0
    for index, arrival in processes_of(source, overrides).items():
        key = _KEYS.get(str(arrival.get("kind")))
        if key and isinstance(arrival.get(key), int | float):
            rate = stated[f"jobs.{index}.arrival.{key}"] = float(arrival[key])
            total += rate * _share_on(arrival)
    if not stated:
        text = "no job comes at a rate: expected an arrival of kind poisson or bursty"
        raise InputError(Mistake(place_of_jobs(source), text))
    return ScenarioRates(total, stated)


def _share_on(arrival: Mapping[str, Any]) -> float:
    """The share of time in which requests of an entry arrive; 1 where its keys are wrong, which their check reports."""
    on, off = arrival.get("mean_on_ms"), arrival.get("mean_off_ms")
    if arrival["kind"] != "bursty" or not isinstance(on, int | float) or not isinstance(off, int | float):
        return 1.0
    return on / (on + off) if min(on, off) > 0 else 1.0


def place_of_jobs(source: str | os.PathLike[str] | Mapping[str, Any]) -> str:
    """Name the key `jobs` of a scenario where an option of that name might be meant."""
    return f"{'scenario' if isinstance(source, Mapping) else os.fspath(source)}: jobs"


def processes_of(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()
) -> dict[int, Mapping[str, Any]]:
    """Give the processes and files of arrivals of a scenario without mistakes: number of a job entry -> its keys."""
    arrivals = {index: job.get("arrival") for index, job in _entries(source, overrides).items()}
    return {index: arrival for index, arrival in arrivals.items() if isinstance(arrival, dict)}


def uncounted(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = ()) -> bool:
    """Say whether there are entries whose requests come at a rate, and none of these says how many come."""
    known = ((job, job.get("arrival")) for job in _entries(source, overrides).values())
    counts = ["count" in job for job, arrival in known if isinstance(arrival, dict) and arrival.get("kind") in _KEYS]
    return bool(counts) and not any(counts)


def batch_overrides(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str], size: int
) -> list[str]:
    """Make overrides by which all job entries form batches of up to `size`; 1: those without `batching` run alone."""
    waiting = {index: isinstance(job.get("batching"), dict) for index, job in _entries(source, overrides).items()}
    whole = [f"jobs.{index}.batching={{max_batch_size: {size}}}" for index, has in waiting.items() if not has]
    return [
        *(f"jobs.{index}.batching.max_batch_size={size}" for index, has in waiting.items() if has),
        *(whole if size > 1 else ()),
    ]


def _entries(source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str]) -> dict[int, dict[str, Any]]:
    """The job entries of a scenario, as far as they are mappings, by their numbers."""
    document, _ = open_scenario(source)
    apply_overrides(document, [each for each in overrides if each.startswith("jobs.")], lambda path: True, left_out)
    jobs = document.data.get("jobs")
    return {index: job for index, job in enumerate(jobs if isinstance(jobs, list) else []) if isinstance(job, dict)}


def rate_overrides(rates: ScenarioRates, rate: float) -> list[str]:
    """Make overrides that bring the rates to `rate` requests per second in the long run; each keeps its share."""
    return [f"{path}={value / rates.per_second * rate!r}" for path, value in rates.stated.items()]
