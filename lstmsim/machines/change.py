"""A change to a chip or to its jobs that is worth a try, and helpers to make changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.model.scenario import Chip, Job

#: In place of a price, where a change gives other outputs.
OTHER_NUMBERS = "it changes what is computed: see `lstmsim accuracy`"


@record
class Change:
    """A changed chip, or changed jobs."""

    name: str  # the change in words
    detail: str  # what was before, and what is after
    chip: Chip | None  # the chip with the change; None if it cannot be built
    jobs: tuple[Job, ...]  # the jobs with the change
    refused: str = ""  # why the chip cannot be built; else empty
    no_price: str = ""  # why it cannot be bought, as it is no part of the chip; else empty


def halved(latency: object) -> dict[str, int]:
    """All latencies halved and rounded up, so that no latency becomes 0 that was not 0.

    latency: a description whose fields are cycles.
    """
    values = vars(latency)
    return {key: -(-value // 2) for key, value in values.items() if value is not None}


def one_more_core(chip: Any, jobs: Sequence[Job]) -> list[Change]:
    """The change to a chip with its last core once more; none for a single job, which runs on one core or is split.

    chip: a description with a tuple of `cores`.
    """
    if len(jobs) < 2:
        return []
    count = len(chip.cores)
    name, detail = "one more core", f"cores {count} -> {count + 1}"
    try:
        return [Change(name, detail, replace(chip, cores=(*chip.cores, chip.cores[-1])), tuple(jobs))]
    except InputError as error:
        return [Change(name, detail, None, tuple(jobs), error.mistakes[0].sentence)]


def detail_of(pairs: Sequence[tuple[object, Mapping[str, object]]], unreported: Collection[str] = ()) -> str:
    """The details of a change in words: `threads 2 -> 3`. For unlike cores only the common details are given.

    pairs: each core, and its fields that change.
    unreported: fields that the name of the change tells already, but for halves of latencies that are rounded up.
    """
    texts: list[str] = []
    for key in pairs[0][1] if pairs else ():
        if key in unreported:
            both = [(vars(getattr(core, key)), vars(new[key])) for core, new in pairs if key == "latency"]
            odd = {(old[name], new) for old, half in both for name, new in half.items() if new and 2 * new > old[name]}
            shown = " and ".join(f"{old} -> {half}" for old, half in sorted(odd - {(1, 1)})[:2])
            texts += [f"rounded up, like {shown}"] if shown else ["1 stays 1"] if odd else []
            continue
        reported = {
            f"{key} {getattr(core, key)} -> {new[key]}" for core, new in pairs if getattr(core, key) != new[key]
        }
        texts += reported if len(reported) == 1 else [f"{key} of each core"] if reported else []
    return ", ".join(texts)
