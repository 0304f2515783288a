"""The plan of a sweep: axes of values, how they combine, which points are wanted, and what they are judged by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import nearest
from lstmsim.studies.sweep.expressions import Expression, ExpressionError, parse

#: What an axis can set: plain values of YAML.
Value = int | float | str | bool | None

#: Keys of a job that say on which cores it is done, how it is spread over them and with whom it runs: not which work.
WHERE = frozenset({"core", "cores", "split", "threads", "batching"})


@dataclass(frozen=True)
class Axis:
    """A quantity that varies: the name of its column, the paths in the scenario that take its value, and its values.

    >>> Axis("ep", ("chip.cores.0.ep",), (1, 2, 4)).key
    'ep'
    """

    name: str
    paths: tuple[str, ...]
    values: tuple[Value, ...]

    @property
    def key(self) -> str:
        """The last word of its first path: the key that it varies, whatever its name."""
        return self.paths[0].rpartition(".")[2] if self.paths else self.name

    @property
    def of_workload(self) -> bool:
        """Whether it varies the work and not the machine: its points are then no rivals of each other."""
        return any(_is_work(path.split(".")) for path in self.paths)


def _is_work(path: Sequence[str]) -> bool:
    """Whether a value at a place of the scenario says what is done; some keys of a job only say where."""
    return path[0] == "cells" or (path[0] == "jobs" and not (len(path) > 2 and path[2] in WHERE))


@dataclass(frozen=True)
class Derived:
    """A value computed from the axes at each point: its column, the paths that take it, and its expression."""

    name: str
    paths: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Group:
    """Axes that combine: as a `product` (the last axis changes fastest) or by `zip` (all axes step together)."""

    axes: tuple[Axis, ...]
    combine: str = "product"

    @property
    def size(self) -> int:
        """How many combinations there are, also where they are too many for `len`."""
        if self.combine == "zip":
            return len(self.axes[0].values)
        return prod(len(axis.values) for axis in self.axes)

    def values(self, number: int) -> list[Value]:
        """Give the values of the axes at combination `number`."""
        if self.combine == "zip":
            return [axis.values[number] for axis in self.axes]
        chosen = []
        for axis in reversed(self.axes):
            number, index = divmod(number, len(axis.values))
            chosen.append(axis.values[index])
        return chosen[::-1]


@dataclass(frozen=True)
class Sweep:
    """The points of a sweep.

    groups: of axes; they are multiplied, the last one changes fastest.
    derived, constraints: values computed from the axes, and expressions that wanted points satisfy.
    """

    groups: tuple[Group, ...]
    derived: tuple[Derived, ...] = ()
    constraints: tuple[str, ...] = ()
    name: str = field(default="sweep", compare=False)

    @property
    def size(self) -> int:
        """How many points there are, also where they are too many for `len`."""
        return prod(group.size for group in self.groups)

    def __len__(self) -> int:
        return self.size

    def __getstate__(self) -> dict[str, object]:
        # Compiled expressions stay in the process that compiled them.
        return {key: getattr(self, key) for key in ("groups", "derived", "constraints", "name")}

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """All axes in the order of the groups."""
        return tuple(axis for group in self.groups for axis in group.axes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns that a point sets: axes, then derived values."""
        return tuple(self.paths)

    @cached_property
    def paths(self) -> Mapping[str, tuple[str, ...]]:
        """The paths that each name sets."""
        derived = {each.name: each.paths for each in self.derived}
        return {axis.name: axis.paths for axis in self.axes} | derived

    @cached_property
    def _sizes(self) -> tuple[tuple[Group, int], ...]:
        """The groups with their sizes, the last one first."""
        return tuple((group, group.size) for group in reversed(self.groups))

    @cached_property
    def rules(self) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
        """The expressions of derived values, and those of constraints."""
        return tuple(parse(each.text) for each in self.derived), tuple(parse(each) for each in self.constraints)

    def values(self, number: int) -> dict[str, Value]:
        """Give the values of point `number`, from 0, by name; None for a value that cannot be computed."""
        chosen: list[Value] = []
        rest = number
        for group, size in self._sizes:
            rest, index = divmod(rest, size)
            chosen[:0] = group.values(index)
        values = dict(zip(self.paths, chosen, strict=False))
        for each, rule in zip(self.derived, self.rules[0], strict=True):
            try:
                values[each.name] = kept(each, rule, values)
            except ExpressionError:
                values[each.name] = None
        return values

    def broken(self, values: Mapping[str, Value]) -> str | None:
        """Say why a point is not wanted: the first constraint that is false or cannot be computed; else None."""
        try:
            for each, rule in zip(self.derived, self.rules[0], strict=True):
                if values[each.name] is None:
                    kept(each, rule, values)
            for text, rule in zip(self.constraints, self.rules[1], strict=True):
                if not rule(values):
                    return f"{text} is false"
        except ExpressionError as error:
            return str(error)
        return None


def kept(derived: Derived, rule: Expression, values: Mapping[str, Value]) -> Value:
    """A derived value; `ExpressionError` if it cannot be computed, or no table can hold it."""
    value: Value = rule(values)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ExpressionError(f"{derived.text}: a whole number of 2**63 or more fits in no table")
    return value


@dataclass(frozen=True)
class Objective:
    """One column of the table that points are judged by: less is better, unless it is to be maximised.

    >>> Objective("tops", maximise=True).phrase
    'maximise tops'
    """

    column: str
    maximise: bool = False

    @property
    def phrase(self) -> str:
        """The objective in words."""
        return f"{'maximise' if self.maximise else 'minimise'} {self.column}"

    def cost(self, value: Any) -> float:
        """Give a value of the column as a number to be made small; NaN where it is no number."""
        number = worth(value)
        return -number if self.maximise else number


def worth(value: Any) -> float:
    """Give a value of a table as a number: truth values are 1 and 0, nothing and other text are NaN."""
    if isinstance(value, str):
        return {"true": 1.0, "false": 0.0}.get(value, float("nan"))
    return float(value) if isinstance(value, int | float) else float("nan")


def default_objectives(chip_columns: Collection[str]) -> tuple[Objective, ...]:
    """Give the objectives of a sweep whose file names none: the mean latency and the multipliers of the chip."""
    multipliers = "npe" if "npe" in chip_columns else "chip_npe"
    return (Objective("latency_ms_mean"), Objective(multipliers))


def described(objectives: Iterable[Objective]) -> str:
    """Describe objectives in one line, equal verbs together, in their order."""
    parts: list[str] = []
    before: bool | None = None
    for each in objectives:
        if each.maximise == before:
            parts[-1] += f", {each.column}"
        else:
            parts.append(each.phrase)
        before = each.maximise
    return "; ".join(parts)


def drawn_pair(known: Sequence[Objective], wanted: Sequence[str]) -> tuple[Objective, ...]:
    """Choose the objectives on the axes of a front, (x, y).

    known, wanted: all objectives, and names of two of them; none: the second and the first of all.
    `InputError` for a name that is no objective, or for another number than two.
    """
    by_name = {each.column: each for each in known}
    for name in wanted:
        if name not in by_name:
            hint = nearest(name, by_name) or f"; there are: {', '.join(by_name)}"
            raise InputError(Mistake("--plot-objectives", f"no objective called {name!r}{hint}"))
    if wanted and len(set(wanted)) != 2:
        raise InputError(Mistake("--plot-objectives", f"expected two objectives, got {len(set(wanted))}"))
    return tuple(by_name[name] for name in wanted) if wanted else tuple(known[:2][::-1])
