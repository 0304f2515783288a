"""One axis of a sweep file: its name, its paths, and its values as a list, a range or an expression."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import Any

from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.studies.sweep.costs import PREFIX, chip_words
from lstmsim.studies.sweep.numbers import NUMBERS
from lstmsim.studies.sweep.spec import Axis, Derived, Value

__all__ = ["AxisReader"]

_MAX_VALUES = 1_000_000
#: Keys of an axis, and what each means.
AXIS_KEYS = {
    "path": "where the value stands in the scenario, like chip.cores.0.ep; or a list of paths",
    "values": "the values, in order; in place of from and to",
    "from": "the first number",
    "to": "the last number, if it is met",
    "step": "what is added from one number to the next; in place of factor",
    "factor": "what a number is multiplied by to give the next; in place of step",
    "expression": "a number worked out from other axes, like 16384 // ep; the axis then has no values of its own",
}
_INDEX = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
#: Columns that every table has; an axis of such a name would hide one. In expressions, words are taken too.
_TAKEN = {"point", "status", *NUMBERS, "objectives", "pareto", "knee", "reason", "key"}
_TAKEN |= {"and", "or", "not", "if", "else", "in", "is", "min", "max", "true", "false", "none", "lambda", "for"}


class AxisReader:
    """Reads the axes of one document; mistakes are noted in it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.names: dict[str, DataPath] = {}
        self.refused: set[str] = set()
        #: Where each path into the scenario is first set, by the path with its indexes in one spelling.
        self.targets: dict[tuple[str, ...], DataPath] = {}

    def keys(self, path: DataPath, known: Sequence[str]) -> None:
        """Note every key of the mapping at `path` that is not in `known`."""
        for key in self.document.at(path):
            if key not in known:
                hint = nearest(key, known) or f"; known keys: {listed(known, 'and')}"
                self.document.blame((*path, key), f"unknown key{hint}", key=True)

    def show(self, path: DataPath) -> str:
        """Give the value at `path` as the user wrote it."""
        return show(self.document.at(path), self.document.raw(path))

    def show_empty(self, path: DataPath) -> str:
        """Give the words for the value at `path` where something that is not empty is expected."""
        return "an empty one" if self.document.at(path) in ({}, []) else self.show(path)

    def axis(self, name: str, path: DataPath) -> Axis | Derived | None:
        """Read the axis or derived value at `path`; None if its values are wrong.

        name: of the axis, the key at `path`.
        """
        document = self.document
        self._check_name(name, path)
        entry = document.at(path)
        if not isinstance(entry, dict):
            text = "must be an axis like {path: chip.cores.0.ep, values: [8, 16]}"
            document.blame(path, f"{text}, got {self.show(path)}")
            return None
        self.keys(path, tuple(AXIS_KEYS))
        paths = self._paths(path)
        ways = [key for key in ("values", "from", "expression") if key in entry]
        if len(ways) != 1:
            document.blame(path, "needs one of: values (a list), from and to (a range), expression")
            return None
        if ways == ["expression"]:
            text = entry["expression"]
            if isinstance(text, bool) or not isinstance(text, str | int):
                document.blame((*path, "expression"), f"must be text, got {self.show((*path, 'expression'))}")
                return None
            return Derived(name, paths, str(text))
        others = {"values": ("from", "to", "step", "factor"), "from": ()}[ways[0]]
        for key in others:
            if key in entry:
                document.blame((*path, key), "belongs to a range (from, to), not beside values", key=True)
        values = self._listed(path) if ways == ["values"] else self._range(path, entry)
        return Axis(name, paths, values) if values else None

    def _check_name(self, name: str, path: DataPath) -> None:
        """Note a mistake if the name cannot be used, or is taken."""
        document = self.document
        taken = name.lower() in _TAKEN or name.lower() in {f"{PREFIX}{each}" for each in chip_words()}
        if taken or not _NAME.fullmatch(name):
            why = "is a word of tables or expressions" if taken else "cannot be used"
            document.blame(path, f"a name of letters, digits and _ is expected; {show(name)} {why}", key=True)
            self.refused.add(name.lower())
        elif name.lower() in self.names:
            document.blame(path, "there is an axis of that name in another place", key=True)
        self.names[name.lower()] = path

    def _paths(self, path: DataPath) -> tuple[str, ...]:
        """Read the paths that the axis sets; empty if they are wrong."""
        document = self.document
        if "path" not in document.at(path):
            document.blame((*path, "path"), "required key is missing (what it sets, for example chip.cores.0.ep)")
            return ()
        given = document.at(path)["path"]
        texts = given if isinstance(given, list) else [given]
        for index, text in enumerate(texts):
            place = (*path, "path", index) if isinstance(given, list) else (*path, "path")
            if not isinstance(text, str) or "" in text.split(".") or "=" in text or not text.isprintable():
                what = "must be a path into the scenario like chip.cores.0.ep"
                document.blame(place, f"{what}, got {self.show(place)}")
                return ()
        if not texts:
            document.blame((*path, "path"), "must hold at least one path")
        paths = tuple(dict.fromkeys(text.strip() for text in texts))
        for text in paths:
            self._claim(text, (*path, "path"))
        return paths

    def _claim(self, text: str, place: DataPath) -> None:
        """Note a mistake if another axis sets that path too: one of the two would have no effect."""
        spelled = tuple(str(int(part)) if _INDEX.fullmatch(part) else part for part in text.split("."))
        first = self.targets.setdefault(spelled, place)
        if first != place:
            self.document.blame(place, f"{text} is set by another axis too ({self.document.place(first)})")

    def _listed(self, path: DataPath) -> tuple[Value, ...]:
        """Read a list of values; empty if it is wrong."""
        document, place = self.document, (*path, "values")
        values = document.at(place)
        if not isinstance(values, list) or not values:
            document.blame(place, f"must be a list of at least one value, got {self.show_empty(place)}")
            return ()
        if len(values) > _MAX_VALUES:
            document.blame(place, f"must hold at most {_MAX_VALUES:,} values, got {len(values):,}")
            return ()
        for index, value in enumerate(values):
            if isinstance(value, list | dict) or not _plain(value):
                what = "must be a number below 2**63, text (no lone surrogates), true, false or nothing"
                document.blame((*place, index), f"{what}, got {self.show((*place, index))}")
                return ()
        return tuple(values)

    def _range(self, path: DataPath, entry: dict[str, Any]) -> tuple[Value, ...]:
        """Read the values of a range; empty if it is wrong."""
        document = self.document
        numbers: dict[str, int | float] = {}
        for key in ("from", "to", "step", "factor"):
            value = entry.get(key)
            if key in entry and (isinstance(value, bool) or not isinstance(value, int | float) or not _plain(value)):
                document.blame((*path, key), f"must be a number, got {self.show((*path, key))}")
                return ()
            if key in entry:
                numbers[key] = entry[key]
        if "to" not in numbers:
            document.blame((*path, "to"), "required key is missing (the last value of the range)")
            return ()
        problem = _range_problem(numbers)
        if problem is not None:
            document.blame((*path, problem[0]), problem[1])
            return ()
        low, high, factor = numbers["from"], numbers["to"], numbers.get("factor")
        values = _powers(low, high, factor) if factor is not None else _steps(low, high, numbers.get("step", 1))
        if len(values) > _MAX_VALUES:
            document.blame((*path, "to"), f"makes more than {_MAX_VALUES:,} values")
            return ()
        return values


def _range_problem(numbers: dict[str, int | float]) -> tuple[str, str] | None:
    """The key that is wrong with a range, and why; None if the range is right."""
    low, high = numbers["from"], numbers["to"]
    if "step" in numbers and "factor" in numbers:
        return "factor", "step and factor exclude each other"
    if high < low:
        return "to", f"must not be below from: {high} < {low}"
    if numbers.get("step", 1) <= 0:
        return "step", f"must be greater than 0, got {numbers['step']}"
    if "factor" not in numbers:
        too_many = (high - low) / numbers.get("step", 1) >= _MAX_VALUES
        return ("to", f"makes more than {_MAX_VALUES:,} values") if too_many else None
    if numbers["factor"] <= 1:
        return "factor", f"must be greater than 1, got {numbers['factor']}"
    return None if low > 0 else ("from", f"must be greater than 0 for a range by factor, got {low}")


def _steps(low: int | float, high: int | float, step: int | float) -> tuple[Value, ...]:
    """Values `step` apart: as many as the numbers of the file mean, whatever their rounding does.

    >>> _steps(0.1, 0.3, 0.1), _steps(1, 6, 2)
    ((0.1, 0.2, 0.3), (1, 3, 5))
    """
    if all(isinstance(each, int) for each in (low, high, step)):
        return tuple(range(int(low), int(high) + 1, int(step)))
    steps = (high - low) / step
    # Each of the three may be half a unit in its last place away from the decimal in the file.
    slack = 4 * sys.float_info.epsilon * (max(abs(low), abs(high)) / step + steps)
    # From the first value each time, so that steps like 0.1 do not add up their rounding.
    return (low, *(min(low + number * step, high) for number in range(1, math.floor(steps + slack) + 1)))


def _powers(low: int | float, high: int | float, factor: int | float) -> tuple[Value, ...]:
    """Values by a factor, at most one more than are allowed.

    >>> _powers(3, 30, 2), len(_powers(1, 1.331, 1.1))
    ((3, 6, 12, 24), 4)
    """
    values: list[Value] = []
    value = low
    # Every product of decimals may be rounded once more.
    slack = 0 if isinstance(low, int) and isinstance(factor, int) else 2 * sys.float_info.epsilon
    while value - high <= slack * len(values) * high and len(values) <= _MAX_VALUES:
        values.append(min(value, high))
        value = value * factor
    return tuple(values)


def _plain(value: Value) -> bool:
    """Whether a table can hold the value."""
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return not isinstance(value, float) or abs(value) < 1e300
