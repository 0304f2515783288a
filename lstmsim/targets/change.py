"""One change to a chip or to its jobs that is worth a try, and what machines need to make some."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lstmsim.workload.scenario import Chip, Job

__all__ = ["Change", "detail_of", "halved"]


@dataclass(frozen=True)
class Change:
    """A changed chip (None: it cannot be built, `refused` says why) or changed jobs; `detail`: from what to what."""

    name: str
    detail: str
    chip: Chip | None
    jobs: tuple[Job, ...]
    refused: str = ""


def halved(latency: object) -> dict[str, int]:
    """All latencies halved and rounded up, so that none falls to 0 that was not.

    latency: a description whose fields are cycles.
    """
    values = vars(latency)
    return {key: -(-value // 2) for key, value in values.items()}


def detail_of(pairs: Sequence[tuple[object, Mapping[str, object]]], untold: Collection[str] = ()) -> str:
    """From what to what, in words: `threads 2 -> 3`; of unlike cores only what all have in common.

    pairs: each core with its fields that change. untold: fields that the change's name tells already.
    """
    texts: list[str] = []
    for key in pairs[0][1] if pairs else ():
        if key in untold:
            continue
        told = {f"{key} {getattr(core, key)} -> {new[key]}" for core, new in pairs if getattr(core, key) != new[key]}
        texts += told if len(told) == 1 else [f"{key} of each core"] if told else []
    return ", ".join(texts)
