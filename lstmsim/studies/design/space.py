"""The space of designs: keys with the values to try, as points of a sweep, in boxes of columns.

A box has all points that need one reading of the scenario. Their other values are numbers of cores, which stand in
columns: what is asked of all points is asked of columns, and of no point alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import as_data
from lstmsim.files.scenario.models import own_keys
from lstmsim.files.yaml.document import LABEL
from lstmsim.machines.assembly import SIZE_WORDS
from lstmsim.model.scenario import Scenario
from lstmsim.studies.sweep.columns import NUMBERS
from lstmsim.studies.sweep.resolve import Resolver, Setup, core_keys, key_path_of, override, quick_path
from lstmsim.studies.sweep.run import prepare
from lstmsim.studies.sweep.spec import Axis, Value
from lstmsim.studies.sweep.spec_file import MAX_POINTS

Numbers = NDArray[np.int64]
#: Columns of a sweep's table that no axis may be called by.
_TAKEN = {"point", "status", "objectives", "pareto", "knee", "reason", "key", "min", "max", "if", "in", "is", *NUMBERS}


#: Most points of a box, for their columns are in memory at once.
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Box:
    """Points that need one reading of the scenario.

    points: their numbers, ascending.
    scenario: one of them.
    entries: of each entry of cores its keys, with columns (a number for each point) in place of those that vary.
    counts: the cores of each entry.
    """

    points: Numbers
    scenario: Scenario
    entries: tuple[Mapping[str, Any], ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Broken:
    """Points that are no designs, and the rule that they break."""

    points: Numbers
    reason: str


@dataclass(frozen=True)
class Space:
    """The designs.

    setup: the sweep whose points they are.
    keys: the key of each axis, by the name of its column.
    """

    setup: Setup
    keys: Mapping[str, str]

    @property
    def size(self) -> int:
        """How many designs there are."""
        return self.setup.sweep.size

    def values(self, point: int) -> dict[str, Value]:
        """Give the values of a point by key."""
        return {self.keys[name]: value for name, value in self.setup.sweep.values(point).items()}

    def settings(self, point: int) -> tuple[str, ...]:
        """Give the values of a point as texts `KEY=VALUE`."""
        return tuple(override(key, value) for key, value in self.values(point).items())

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes; the last one changes fastest."""
        return self.setup.sweep.axes

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """By how much the number of a point grows from one value of each axis to the next."""
        sizes = [len(axis.values) for axis in self.axes]
        return tuple(prod(sizes[place + 1 :]) for place in range(len(sizes)))

    def neighbours(self, point: int) -> Iterator[tuple[str, int]]:
        """Give (key, number) of every point in which one key has another value."""
        for axis, stride in zip(self.axes, self.strides, strict=True):
            own = point // stride % len(axis.values)
            for place in range(len(axis.values)):
                if place != own:
                    yield self.keys[axis.name], point + (place - own) * stride

    def boxes(self) -> Iterator[Box | Broken]:
        """Give all points, each once."""
        resolver = Resolver(self.setup)
        apart, inside = self._split(resolver)
        within = self._numbers(inside)
        digits = {axis: within // stride % len(self.axes[axis].values) for axis, stride in enumerate(self.strides)}
        for chosen in np.ndindex(*(len(self.axes[axis].values) for axis in apart)):
            base = sum(place * self.strides[axis] for axis, place in zip(apart, chosen, strict=True))
            columns = {
                path: np.array(self.axes[axis].values)[digits[axis]]
                for axis in inside
                for path in self.axes[axis].paths
            }
            for axis, place in zip(apart, chosen, strict=True):
                value = self.axes[axis].values[place]
                own = [path for path in self.axes[axis].paths if (where := key_path_of(path)) and where.of_core]
                columns |= {path: np.full(len(within), value) for path in own if quick_path(path) and _whole(value)}
            yield from self._box(resolver, within + base, columns)

    def _split(self, resolver: Resolver) -> tuple[list[int], list[int]]:
        """The axes whose values need a reading of their own, and those whose values stand in columns."""
        quick = {name for _, name in resolver.quick}
        apart: list[int] = []
        inside: list[int] = []
        size = 1
        for number, axis in enumerate(self.axes):
            paths = [key_path_of(path) for path in axis.paths] if axis.name in quick else [None]
            plain = all(each is not None and each.of_core for each in paths)
            plain = plain and all(_whole(each) for each in axis.values) and size * len(axis.values) <= _LARGEST
            (inside if plain else apart).append(number)
            size *= len(axis.values) if plain else 1
        return apart, inside

    def _numbers(self, axes: Sequence[int]) -> Numbers:
        """The numbers of the points in which all other axes have their first value, ascending."""
        numbers = np.zeros(1, np.int64)
        for axis in axes:
            own = np.arange(len(self.axes[axis].values)) * self.strides[axis]
            numbers = (numbers[:, None] + own).reshape(-1)
        return numbers

    def _box(self, resolver: Resolver, points: Numbers, columns: Mapping[str, Numbers]) -> Iterator[Box | Broken]:
        """The points of one reading; one by one where there is no such reading."""
        values = self.setup.sweep.values(int(points[0]))
        unusual = any(path not in columns for path, _ in resolver.quick)
        prepared = None if unusual else resolver.prepared_for(values)
        if prepared is None:
            yield from self._one_by_one(resolver, points)
            return
        keys = core_keys(prepared.target.kind)
        fine = np.ones(len(points), bool)
        entries: list[dict[str, Any]] = [own_keys(entry, set()) for entry in prepared.core_entries]
        for path, column in columns.items():
            where = key_path_of(path)
            assert where is not None
            bounds = keys.get(where.key)
            if bounds is None or where.number >= len(entries):
                yield from self._one_by_one(resolver, points)
                return
            wrong = fine & ((column < bounds.low) | (column > bounds.high))
            if bounds.rule:
                against = [each for each in np.unique(column[fine & ~wrong]).tolist() if bounds.rule(each)]
                wrong |= fine & np.isin(column, against)
            for value in np.unique(column[wrong]).tolist():
                text = f"must be at least {bounds.low}" if value < bounds.low else f"must be at most {bounds.high}"
                if bounds.rule and bounds.low <= value <= bounds.high:
                    text = bounds.rule(value)
                yield Broken(points[wrong & (column == value)], f"{path}: {text}")
            fine &= ~wrong
        if not fine.any():
            return
        for path, column in columns.items():
            where = key_path_of(path)
            assert where is not None
            name, _, part = where.key.partition(".")
            entry = entries[where.number]
            entry[name] = {**(entry.get(name) or {}), part: column[fine]} if part else column[fine]
        counts = tuple(int(entry.get("count", 1)) for entry in prepared.core_entries)
        yield Box(points[fine], prepared.base, tuple(entries), counts)

    def _one_by_one(self, resolver: Resolver, points: Numbers) -> Iterator[Box | Broken]:
        """Each point by itself; all at once where what is wrong with the first one is wrong with all."""
        for place, point in enumerate(points.tolist()):
            values = self.setup.sweep.values(point)
            try:
                scenario = resolver.scenario(values)
            except InputError as error:
                reason = _reason(error.mistakes[0])
                if too_many(str(error)):
                    # the simulation says so again; how good it is, nobody knows
                    continue
                if place == 0 and self._of_all(error, resolver, points):
                    yield Broken(points, reason)
                    return
                yield Broken(points[place : place + 1], reason)
                continue
            every = scenario.chip.cores
            cores = every[:1] if len(set(every)) == 1 else every
            count = len(every) // len(cores)
            yield Box(points[place : place + 1], scenario, tuple(map(as_data, cores)), (count,) * len(cores))

    def _of_all(self, error: InputError, resolver: Resolver, points: Numbers) -> bool:
        """Whether a mistake of the first point lies in a value that all of these points have."""
        if len(points) < 2:
            return True
        first, last = (self.setup.sweep.values(int(points[place])) for place in (0, -1))
        shared = {path for path, name in resolver.places if first[name] == last[name]}
        places = [each.location for each in error.mistakes if each.location.startswith(LABEL)]
        labels = {each.removeprefix(LABEL).partition("=")[0] for each in places}
        # a value that is wrong by itself is called by its own key alone
        return (
            bool(labels & shared)
            and all(path in shared for path in labels)
            and not any(path.startswith("chip.cores.") for path in labels)
        )


def _whole(value: Value) -> bool:
    return type(value) is int and abs(value) < 2**62


def _reason(mistake: Mistake) -> str:
    """What is wrong with a point, by its key or where it stands in a file, without the file's name."""
    place = _key(mistake)
    return f"{place}: {rule_of(mistake.sentence)}" if place else rule_of(mistake.sentence)


def _key(mistake: Mistake) -> str:
    if mistake.location.startswith(LABEL):
        return mistake.location.removeprefix(LABEL).partition("=")[0]
    return mistake.location.rpartition(": ")[2]


def too_many(reason: str) -> bool:
    """Whether a design is refused for the size of its simulation, which is no rule that a chip breaks."""
    return SIZE_WORDS in reason


def rule_of(reason: str) -> str:
    """The rule in a sentence about one point: its numbers are left out, so that equal rules are counted together.

    >>> rule_of("core: ep * vp must not exceed npe: 4 * 16 = 64 > 32")
    'core: ep * vp must not exceed npe'
    """
    head = re.split(r":(?= [\d*])|, got |; got ", reason, maxsplit=1)[0]
    # a bound is the same for all
    return (head if head.startswith("must be") else re.sub(r"\b\d[\d,]*\b", "N", head))[:200]


def space_of(
    scenario: Any, axes: Mapping[str, Sequence[Any]], overrides: Sequence[str], most: int = MAX_POINTS
) -> Space:
    """Make a space; `InputError` for axes that lead nowhere, say what is done, or make more than `most` points."""
    if not axes:
        raise InputError(Mistake("axes", "at least one key with its values is expected, got none"))
    names: dict[str, str] = {}
    entries = {}
    for key, values in axes.items():
        named: Any = key
        given: Any = values
        if not isinstance(named, str) or isinstance(given, str) or not isinstance(given, Sequence) or not given:
            raise InputError(Mistake(f"axes {key}", "must be a key with a list of at least one value"))
        if not all(isinstance(each, int | float | str | None) for each in given):
            raise InputError(Mistake(f"axes {key}", "its values must be numbers, words, true, false or null"))
        if len({(type(each), each) for each in values}) < len(values):
            raise InputError(Mistake(f"axes {key}", "has a value twice"))
        if Axis("axis", (key,), tuple(values)).of_workload:
            text = "says what is done, not with which chip: designs that do other work cannot be compared"
            raise InputError(Mistake(f"axes {key}", text))
        names[_name(key, names)] = key
        entries[list(names)[-1]] = {"path": key, "values": list(values)}
    size = prod(len(values) for values in axes.values())
    if size > most:
        more = ", or let --trials choose some" if most == MAX_POINTS else ""
        text = f"make {size:,} designs, at most {most:,} are possible: name fewer values{more}"
        raise InputError(Mistake("axes", text))
    try:
        setup = prepare({"scenario": scenario, "axes": entries}, overrides, most)
    except InputError as error:
        raise InputError([_renamed(each, names) for each in error.mistakes]) from None
    space = Space(setup, names)
    wrong = list(_wrong(space))
    if wrong:
        raise InputError(wrong)
    return space


def _wrong(space: Space) -> Iterator[Mistake]:
    """Values that are wrong in themselves, whatever the others are: words, types, numbers out of range.

    Of whole numbers the least and the largest are asked, because a range has no gaps.
    """
    resolver = Resolver(space.setup)
    for axis, stride in zip(space.axes, space.strides, strict=True):
        key, whole = space.keys[axis.name], [each for each in axis.values if type(each) is int]
        ends = {min(whole), max(whole)} if whole else set()
        for place, value in enumerate(axis.values):
            if _whole(value) and value not in ends:
                continue
            first = place * stride
            last = space.size - 1 - (len(axis.values) - 1 - place) * stride
            said = [_said(resolver, space.setup.sweep.values(each), key) for each in (first, last)]
            if said[0] and said[0] == said[1]:
                yield Mistake(f"axes {key}", said[0])


def _said(resolver: Resolver, values: Mapping[str, Value], key: str) -> str:
    """What is said of the value at a key alone, not of how it goes with others; empty: nothing."""
    try:
        resolver.scenario(values)
    except InputError as error:
        keys = key, key.removeprefix("chip.")
        return next((each.sentence for each in error.mistakes if each.alone and _key(each) in keys), "")
    return ""


def _name(key: str, taken: Mapping[str, str]) -> str:
    """A name for the column of a key: its last words, as few as make it one of its own."""
    words = [re.sub(r"\W", "_", each, flags=re.ASCII) for each in key.split(".")]
    lower = {each.lower() for each in taken} | _TAKEN
    for number in range(1, len(words) + 1):
        name = "_".join(words[-number:])[:40]
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name.lower() not in lower:
            return name
    return f"axis_{len(taken)}"


def _renamed(mistake: Mistake, names: Mapping[str, str]) -> Mistake:
    """The mistake with the key of an axis in place of where the sweep has it."""
    for name, key in names.items():
        if mistake.location.startswith(f"axes.{name}") or f".axes.{name}" in mistake.location:
            return Mistake(f"axes {key}", mistake.sentence.removeprefix(f"{key}: "))
    return mistake
