"""The key `batching` of job entries: its keys, and what goes with what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import ceil
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from lstmsim.files.scenario.models import ChipRead
from lstmsim.machines.pools import policy_faults
from lstmsim.model.batching import Batching

if TYPE_CHECKING:
    from lstmsim.files.scenario.request_schema import BatchingEntry
    from lstmsim.files.scenario.schema import JobEntry, ScenarioFile
    from lstmsim.files.yaml.document import Document
    from lstmsim.model.model import Model


def batching_of(entry: BatchingEntry, name: str, frequency_mhz: float) -> Batching:
    """What an entry says; `name`: the job entry's own, among all entries."""
    wait = entry.max_wait_cycles
    if entry.max_wait_us is not None:
        # imported here, because few jobs have it
        from fractions import Fraction

        # as people write the numbers, not as the machine rounds them
        wait = ceil(Fraction(repr(entry.max_wait_us)) * Fraction(repr(frequency_mhz)))
    pool = entry.pool or ""
    return Batching(entry.max_batch_size, entry.policy, wait, entry.lengths, pool, "" if pool else name)


def keys_of_batching(batching: Batching) -> dict[str, Any]:
    """The keys of a file that say the same."""
    return {key: value for key, value in asdict(batching).items() if key != "entry" and value != ""}


def check_batching_of_job(document: Document, entry: JobEntry, preempts: bool) -> None:
    """Note what `batching` of a job that stands in no file does not go with."""
    if entry.batching is None:
        return
    for key, text in _faults(entry, entry.batching, ChipRead()):
        document.blame(key, text)
    if preempts:
        document.blame(("preempts",), "running batches are not interrupted: leave it out, or leave out `batching`")
    if entry.batching.max_wait_us is not None:
        document.blame(("batching", "max_wait_us"), "a job knows no clock: give max_wait_cycles")


def check_batching(document: Document, order: ScenarioFile, models: Sequence[Model | None], chip: ChipRead) -> None:
    """Note what `batching` does not go with, and what is not simulated."""
    if order.preemption:
        document.blame(("preemption",), "running batches are not interrupted: leave it out, or leave out `batching`")
    firsts: dict[str, int] = {}
    for index, entry in enumerate(order.jobs):
        if entry.batching is None:
            continue
        for key, text in _faults(entry, entry.batching, chip, models[index]):
            document.blame(("jobs", index, *key), text)
        pool = entry.batching.pool
        if pool is None:
            continue
        first = firsts.setdefault(pool, index)
        what = _unequal(order.jobs[first], entry, models[first], models[index])
        if what:
            text = (
                f"entries of a pool are equal but for steps and arrivals: {what} of entry {index} is not that of entry"
            )
            document.blame(("jobs", index, "batching", "pool"), f"{text} {first}")


def _faults(
    entry: JobEntry, own: BatchingEntry, chip: ChipRead, model: Model | None = None
) -> Iterator[tuple[tuple[str, ...], str]]:
    if own.max_wait_us is not None and "max_wait_cycles" in own.given:
        yield ("batching", "max_wait_us"), "says the same as max_wait_cycles: give one of them"
    if entry.batch > 1:
        yield ("batch",), "says how many inferences a request is; beside `batching` a request is one"
    if entry.split is not None:
        yield ("split",), "a batch runs in one place: leave it out, or leave out `batching`"
    if entry.frame_interval > 0:
        yield ("frame_interval",), "members of a batch have all their frames from the start: leave it out"
    if chip.target is not None:
        for fault in chip.target.job_faults(own.max_batch_size, None):
            yield ("batching", "max_batch_size"), fault.sentence
        for word, sentence in policy_faults(chip.target, batching_of(own, "", 1), model):
            yield ("batching", word), sentence


def _unequal(first: JobEntry, other: JobEntry, model: Model | None, other_model: Model | None) -> str:
    """The key in which an entry differs from the first one of its pool; empty if they are equal."""
    assert first.batching is not None, "it is of a pool"
    assert other.batching is not None, "it is of that pool, too"
    for key in ("max_batch_size", "policy", "max_wait_cycles", "max_wait_us", "lengths"):
        if getattr(first.batching, key) != getattr(other.batching, key):
            return f"batching.{key}"
    if _cores(first) != _cores(other):
        return "cores"
    different = next((key for key in ("threads", "weights") if getattr(first, key) != getattr(other, key)), "")
    if different or model is None or other_model is None:
        return different
    network = attrgetter("name", "layers", "layer_order")
    if network(model) != network(other_model):
        return "model"
    return "" if model.weights == other_model.weights else "weights of the model"


def _cores(entry: JobEntry) -> frozenset[int] | None:
    if entry.cores is not None:
        return frozenset(entry.cores)
    return None if entry.core is None else frozenset({entry.core})
