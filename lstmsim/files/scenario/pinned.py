"""Streams whose states stay on one core (`session: pinned`) or are moved (`moved`): what that does not go with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.files.scenario.request_schema import ArrivalEntry
from lstmsim.files.scenario.schema import JobEntry, ScenarioFile
from lstmsim.machines.registry import target_of
from lstmsim.machines.target import Target
from lstmsim.model.scenario import Chip

#: Most pinned streams of which some cores have one more than others: each is a kind of job of its own in `serve`.
MOST_UNEVEN = 4096


def pinned_faults(entry: JobEntry, chip: Chip | None, target: Target | None) -> Iterator[tuple[DataPath, str]]:
    """Say what pinned streams do not go with, each with the path of the key in the entry.

    >>> from lstmsim.files.scenario.models import STAND_IN
    >>> arrival = ArrivalEntry(kind="stream", frame_ms=1.0, session="pinned")
    >>> [path for path, _ in pinned_faults(JobEntry(model=STAND_IN, arrival=arrival, split="rows"), None, None)]
    [('split',)]
    """
    if isinstance(entry.arrival, ArrivalEntry) and entry.arrival.session == "moved":
        yield from _moved_faults(entry, entry.arrival, chip)
    elif isinstance(entry.arrival, ArrivalEntry) and "move_cycles" in entry.arrival.given:
        yield ("arrival", "move_cycles"), "means something with session moved only: leave it out"
    if not is_pinned(entry):
        return
    if entry.split is not None:
        yield ("split",), "a pinned stream has its states on one core: leave it out, or choose session anywhere"
    if entry.batching is not None and (chip is None or _cores(entry, chip, target)):
        text = "requests of a batch run on one core, and pinned streams have their states on several"
        yield ("batching",), f"{text}: leave it out, or choose session anywhere"
    if not isinstance(entry.steps, int | None):
        yield ("steps",), "frames of pinned streams have one number of steps"
    cores, streams = () if chip is None else _cores(entry, chip, target), _streams(entry)
    if cores and streams > MOST_UNEVEN and streams % len(cores):
        text = f"above {MOST_UNEVEN:,} pinned streams must be a multiple of the {len(cores)} cores, got {streams:,}"
        yield ("arrival", "streams"), text
    if chip is not None and chip.core_figures[0].spreads:
        text = "jobs of this machine run on several cores at once, so that no core has a stream's states"
        yield ("arrival", "session"), f"{text}: choose anywhere"


def _moved_faults(entry: JobEntry, arrival: ArrivalEntry, chip: Chip | None) -> Iterator[tuple[DataPath, str]]:
    """Say what streams whose states move do not go with, each with the path of the key in the entry."""
    if "move_cycles" not in arrival.given:
        yield ("arrival", "move_cycles"), "required key is missing for session moved"
    if entry.split is not None:
        yield ("split",), "a moved stream has its states on one core: leave it out, or choose session anywhere"
    if entry.batching is not None:
        text = "the states of one stream are moved, not those of a batch"
        yield ("batching",), f"{text}: leave it out, or choose session anywhere"
    if not isinstance(entry.steps, int | None):
        yield ("steps",), "frames of moved streams have one number of steps"
    if arrival.streams > MOST_UNEVEN:
        yield ("arrival", "streams"), f"at most {MOST_UNEVEN:,} streams are moved, got {arrival.streams:,}"
    if chip is not None and chip.core_figures[0].spreads:
        text = "jobs of this machine run on several cores at once, so that no core has a stream's states"
        yield ("arrival", "session"), f"{text}: choose anywhere"


def order_faults(order: ScenarioFile) -> Iterator[tuple[str, str]]:
    """Say what keys of a scenario with moved streams do not go with them: the key and a sentence."""
    if order.preemption:
        yield "preemption", "frames whose states are moved are not interrupted: leave it out, or choose session pinned"
    if order.placement != "least-loaded":
        text = "the core that has a moved stream's states is not preferred"
        yield "placement", f"{text}: choose least-loaded, or session pinned"


def keys_of_streams(entry: JobEntry, chip: Chip, index: int) -> list[dict[str, Any]]:
    """Keys of jobs for requests 0, 1, 2 ..., which then begin anew: where they run, or whose states they go on with.

    index: number of the entry. Empty: all requests are alike.
    """
    arrival = entry.arrival
    if isinstance(arrival, ArrivalEntry) and arrival.session == "moved":
        # also where there is one core: `compare` may run the jobs where there are more
        return [{"session": (index, stream), "move_cycles": arrival.move_cycles} for stream in range(arrival.streams)]
    return [{"cores": home} for home in homes_of(entry, chip)]


def homes_of(entry: JobEntry, chip: Chip) -> list[tuple[int, ...]]:
    """The cores of requests 0, 1, 2 ..., which then begin anew; empty: a frame may go to any of the entry's cores.

    Stream k is on the (k modulo their number)-th of the entry's cores. Request r belongs to stream r modulo `streams`.
    """
    cores = _cores(entry, chip, target_of(chip.kind)) if is_pinned(entry) else ()
    if not cores:
        return []
    streams = _streams(entry)
    # where all cores have equally many streams the order repeats sooner
    number = len(cores) if streams % len(cores) == 0 else streams
    return [(cores[stream % len(cores)],) for stream in range(number)]


def is_pinned(entry: JobEntry) -> bool:
    """Whether the frames of each stream of the entry stay on one core."""
    return isinstance(entry.arrival, ArrivalEntry) and entry.arrival.session == "pinned"


def _streams(entry: JobEntry) -> int:
    return entry.arrival.streams if isinstance(entry.arrival, ArrivalEntry) else 1


def _cores(entry: JobEntry, chip: Chip, target: Target | None) -> tuple[int, ...]:
    """The cores over which streams are dealt out; empty: there is one place."""
    if target is not None and target.one_by_one:
        return ()
    named = entry.cores if entry.cores is not None else None if entry.core is None else [entry.core]
    cores = tuple(range(len(chip.core_figures)) if named is None else named)
    return cores if len(cores) > 1 else ()
