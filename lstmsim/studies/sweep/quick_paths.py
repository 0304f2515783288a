"""Which numbers of a scenario can be changed without reading it anew: their places and ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from lstmsim.base.keys import Described, Key, keys_of, unwrapped
from lstmsim.files.scenario.schema import JobEntry, LayerEntry
from lstmsim.files.scenario.schema_types import Cycles, Steps
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.studies.sweep.spec import Value

__all__ = ["Place", "Range", "core_keys", "every_core_key", "job_range", "place_of", "quick_path"]

_LAYER_KEYS = ("hidden", "input", "projection")
_INDEX = re.compile(r"\d{1,5}", re.ASCII)
#: Paths that are kept; a sweep has some tens.
_MOST_KEPT = 4096


class Range(NamedTuple):
    """Smallest and largest value of a number; all others are left to the checks of scenario files.

    whole: whether only whole numbers will do.
    """

    low: int | float
    high: int | float
    whole: bool = True

    def has(self, value: Value) -> bool:
        """Whether the value is such a number; a truth value is none."""
        right = type(value) is int or (type(value) is float and not self.whole)
        return right and self.low <= value <= self.high  # type: ignore[operator]


def _range(key: Key | None) -> Range:
    """The range of a whole number of a job or a layer, all of which have both bounds."""
    assert key is not None
    assert key.low is not None
    assert key.high is not None
    return Range(key.low, key.high)


def _range_of(each: Described) -> Range | None:
    """The range of a key that varies; None if only the checks of scenario files can tell what may stand there."""
    key, kind = each.key, each.kind
    plain = kind in (int, float) and not each.several and key.above is None and key.below is None and key.rule is None
    if not key.vary or not plain or key.low is None or key.high is None:
        return None
    return Range(key.low, key.high, whole=kind is int)


@cache
def _job_keys() -> dict[str, Range]:
    """Numbers of a job's entry that may change without reading anything."""
    entry = keys_of(JobEntry)
    plain = {key: _range(entry[key].key) for key in ("count", "frame_interval")}
    # steps and arrivals may be more than numbers, which then go the long way
    return plain | {"steps": _range(unwrapped(Steps)[1]), "arrival": _range(unwrapped(Cycles)[1])}


@cache
def core_keys(machine: str) -> dict[str, Range]:
    """Numbers of a machine's cores that may change without reading anything, with a dot before a key of a part."""
    numbers: dict[str, Range] = {}
    for name, each in keys_of(target_of(machine).core).items():
        kind: Any = each.type
        below: Mapping[str, Described] = keys_of(each.type) if is_dataclass(kind) else {}
        keys = {name: each} | {f"{name}.{key}": part for key, part in below.items()}
        ranges = {path: _range_of(own) for path, own in keys.items()}
        numbers |= {path: each for path, each in ranges.items() if each is not None}
    return numbers


@cache
def every_core_key() -> frozenset[str]:
    """Every key of a core, of any machine, whose number may change without reading anything."""
    return frozenset(key for kind in KINDS for key in core_keys(kind))


@lru_cache(_MOST_KEPT)
def quick_path(path: str) -> bool:
    """Say whether a number at that path can be put in without reading anything, on some machine.

    >>> quick_path("chip.cores.0.ep"), quick_path("jobs.1.model.layers.0.hidden"), quick_path("chip")
    (True, True, False)
    """
    place = place_of(path)
    if place is None:
        return False
    return place.key in every_core_key() if place.of_core else job_range(place.key) is not None


class Place(NamedTuple):
    """A number's place in a scenario.

    of_core: whether it belongs to a core; otherwise it belongs to a job.
    number: of the core or job.
    key: the path below it.
    """

    of_core: bool
    number: int
    key: str


@lru_cache(_MOST_KEPT)
def place_of(path: str) -> Place | None:
    """The place that a path leads to; None if it leads to no core and no job."""
    for start, of_core in (("chip.cores.", True), ("jobs.", False)):
        index, dot, key = path.removeprefix(start).partition(".")
        if path.startswith(start) and dot and _INDEX.fullmatch(index):
            return Place(of_core, int(index), key)
    return None


def job_range(key: str) -> Range | None:
    """The smallest and the largest number at a key of a job; None for a key that is not quick."""
    if key in _job_keys():
        return _job_keys()[key]
    model, layers, index, name, *more = [*key.split("."), *[""] * 4][:5]
    quick = (model, layers) == ("model", "layers") and _INDEX.fullmatch(index) and name in _LAYER_KEYS
    return _range(keys_of(LayerEntry)[name].key) if quick and not any(more) else None
