"""Sweep files: read with the line of every value, checked as a whole, turned into a `Sweep` and its scenario."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Entry, Key, keys_of
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.yaml.document import Document, document_of
from lstmsim.files.yaml.source import read_document
from lstmsim.studies.fit.device import Device, device, device_files
from lstmsim.studies.sweep.columns import NUMBERS, PREFIX, ChipColumns, chip_columns, chip_words
from lstmsim.studies.sweep.expressions import ExpressionError, parse
from lstmsim.studies.sweep.spec import Axis, Derived, Group, Objective, Sweep, Value, default_objectives, worth

MAX_POINTS = 10_000_000
_MAX_VALUES = 1_000_000
_MAX_LETTERS = 200
_COMBINE, _SENSES = ("product", "zip"), ("minimise", "maximise")


class AxisEntry(Entry):
    """An axis of a sweep."""

    path: Annotated[str | list[str], Key("where the value stands in the scenario, like chip.cores.0.ep; or several")]
    values: Annotated[
        list[Value], Key("the values, in order; instead of from and to", low=1, high=_MAX_VALUES, follows="the range's")
    ]
    from_: Annotated[float | None, Key("the first number")] = None
    to: Annotated[float | None, Key("the last number, if it is met")] = None
    step: Annotated[float, Key("what is added from one number to the next; instead of factor", above=0)] = 1
    factor: Annotated[float | None, Key("what each is multiplied by to give the next; instead of step", above=1)] = None
    expression: Annotated[str | int | None, Key("worked out from others, like 16384 // ep; instead of values")] = None


#: What gives an axis its values, exactly one of these, and the further keys of each.
AXIS_KEYS: Mapping[str, tuple[str, ...]] = {"values": (), "from": ("to", "step", "factor"), "expression": ()}


class GroupEntry(Entry):
    """A group of axes."""

    axes: Annotated[Mapping[str, AxisEntry], Key("axes of the group, by name")]
    combine: Annotated[str, Key("how they go together, in all combinations or in step", choices=_COMBINE)] = "product"


class SweepEntry(Entry):
    """A sweep file."""

    name: Annotated[
        str, Key("name of the sweep, in its tables and pictures", low=1, high=_MAX_LETTERS, follows="the file's")
    ]
    scenario: Annotated[str | Mapping[str, Any], Key("the scenario that points change: a path, or its keys")]
    axes: Annotated[Mapping[str, AxisEntry] | list[GroupEntry], Key("what varies, by name; or a list of groups")]
    combine: Annotated[str, Key("how axes go together, in all combinations or in step", choices=_COMBINE)] = "product"
    constraints: Annotated[
        list[str], Key("expressions over names of axes; points that break one are infeasible", follows="none")
    ]
    device: Annotated[
        str | None, Key("an FPGA that each point's chip is fitted to: a name of `lstmsim list devices`, or a path")
    ] = None
    objectives: Annotated[
        Mapping[str, str | list[str]],
        Key("columns to minimise or maximise, which make the Pareto front", follows="latency_ms_mean and npe"),
    ]


_INDEX = re.compile(r"[0-9]{1,9}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")
#: Columns that every table has; an axis of such a name would hide one. In expressions, words are taken too.
_TAKEN = {"point", "status", *NUMBERS, "objectives", "pareto", "knee", "reason", "key"}
_TAKEN |= {"and", "or", "not", "if", "else", "in", "is", "min", "max", "true", "false", "none", "lambda", "for"}
#: Columns that need a device: where the file names none, the mistake says so.
_OF_DEVICES = {"dsp", "m20k", "logic", "memory", "ramb18", "fits", "dsp_share", "m20k_share", "logic_share"}


@dataclass(frozen=True, eq=False)
class SweepFile:
    """A sweep and the scenario that its points change. It is not yet checked: the axes may bring missing parts.

    scenario, scenario_name: the scenario's document, and its name unless the document has one.
    places: where the paths of each axis stand in the file, by the name of the axis.
    chip: columns about the chip of each point, on the file's `device` if it names one.
    objectives: what points are judged by.
    device_file: the file of that device; None for a known device.
    """

    sweep: Sweep
    scenario: Document
    scenario_name: str
    places: Mapping[str, str]
    chip: ChipColumns
    objectives: tuple[Objective, ...]
    device_file: str | None = None


def load_sweep(source: str | os.PathLike[str] | Mapping[str, Any], most: int = MAX_POINTS) -> SweepFile:
    """Read the sweep of a file, or of data laid out like one; `InputError` with every mistake, file, line and column.

    most: points that it may have.

    >>> axes = {"ep": {"path": "chip.cores.0.ep", "from": 1, "to": 8, "factor": 2}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> load_sweep({"scenario": scenario, "axes": axes}).sweep.axes[0].values
    (1, 2, 4, 8)
    """
    if isinstance(source, Mapping):
        document, name = document_of(source), "sweep"
    else:
        document, name = read_document(source), Path(source).stem
    if not document.data.keys() & {"axes", "scenario"} and document.data.keys() >= {"chip", "jobs"}:
        text = "is a scenario, no sweep: `lstmsim simulate` runs it; a sweep names it (`scenario: FILE`) and has `axes`"
        raise InputError(Mistake(document.name, text))
    return _Reader(document, most).read(name)


class _Reader:
    """Reads one document; mistakes are noted in it and raised together.

    names: the path of each axis by its name in small letters.
    refused: names in small letters that cannot be used.
    targets: where each path into the scenario is first set, by the path with its indexes in one spelling.
    derived: computed values, with their paths.
    """

    def __init__(self, document: Document, most: int) -> None:
        self.document, self.data, self.most = document, document.data, most
        self.names: dict[str, DataPath] = {}
        self.refused: set[str] = set()
        self.targets: dict[tuple[str, ...], DataPath] = {}
        self.derived: list[tuple[Derived, DataPath]] = []

    def read(self, default_name: str) -> SweepFile:
        document = self.document
        self._keys((), SweepEntry)
        groups = self._groups()
        name = self.data.get("name", default_name)
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _MAX_LETTERS:
            self._wrong(("name",), "must be printable text")
            name = default_name
        known = [name for name, path in self.names.items() if "expression" not in self._entry(path)]
        for each, path in self.derived:
            self._expression(each.text, (*path, "expression"), known)
            known.append(each.name.lower())
        sweep = Sweep(tuple(groups), tuple(each for each, _ in self.derived), tuple(self._constraints()), name)
        if groups and all(axis.values for axis in sweep.axes) and sweep.size > self.most:
            document.blame(("axes",), f"make {sweep.size:,} points, at most {self.most:,} are possible")
        scenario, scenario_name = self._scenario()
        chip = chip_columns(sweep.names, self._device())
        objectives = self._objectives(sweep, chip.names)
        if document.mistakes:
            raise InputError(sorted(dict.fromkeys(document.mistakes), key=_line))
        places = {str(path[-1]): document.place((*path, "path")) for path in self.names.values()}
        judged_by = objectives or default_objectives(chip.names)
        return SweepFile(sweep, scenario, scenario_name, places, chip, judged_by, _device_file(document))

    def _keys(self, path: DataPath, entry: type[Entry]) -> None:
        """Note every key of the mapping at `path` that the entry does not have."""
        known = keys_of(entry)
        for key in self.document.at(path):
            if key not in known:
                self._unknown((*path, key), key, tuple(known))

    def _unknown(self, path: DataPath, key: object, known: Sequence[str]) -> None:
        hint = nearest(str(key), known) or f"; known keys: {listed(known, 'and')}"
        self.document.blame(path, f"unknown key{hint}", key=True)

    def _wrong(self, path: DataPath, sentence: str, more: str = "") -> None:
        """Note a mistake in the value at `path`, which is shown as the user wrote it."""
        value = self.document.at(path)
        empty = "at least" in sentence and value in ({}, [])
        shown = "an empty one" if empty else show(value, self.document.raw(path))
        self.document.blame(path, f"{sentence}, got {shown}{more}")

    def _entry(self, path: DataPath) -> dict[str, Any]:
        entry = self.document.at(path)
        return entry if isinstance(entry, dict) else {}

    def _groups(self) -> list[Group]:
        document, axes = self.document, self.data.get("axes")
        if "axes" not in self.data:
            example = "required key is missing (what to vary, for example ep: {path: ..., values: ...})"
            document.blame(("axes",), example)
            return []
        if not isinstance(axes, list):
            return [*self._group(("axes",), ("combine",))]
        if "combine" in self.data:
            document.blame(("combine",), "stands in each group where `axes` is a list of groups", key=True)
        if not axes:
            document.blame(("axes",), "must be a list of at least 1 group, got 0")
        groups: list[Group] = []
        for index, each in enumerate(axes):
            path: DataPath = ("axes", index)
            if not isinstance(each, dict):
                self._wrong(path, "must be a group {axes: ..., combine: ...}")
                continue
            self._keys(path, GroupEntry)
            if "axes" in each:
                groups += self._group((*path, "axes"), (*path, "combine"))
            else:
                document.blame((*path, "axes"), "required key is missing (the axes of the group)")
        return groups

    def _group(self, path: DataPath, combine_path: DataPath) -> Iterator[Group]:
        """The group of axes at a path, unless it is wrong or has none."""
        document, entries = self.document, self.document.at(path)
        if not isinstance(entries, dict) or not entries:
            self._wrong(path, "must be a mapping of names to axes, at least 1")
            return
        combine = document.at(combine_path[:-1]).get("combine", GroupEntry.combine)
        if keys_of(GroupEntry)["combine"].key.wrong(combine):
            self._wrong(
                combine_path, "must be product or zip", nearest(combine, _COMBINE) if isinstance(combine, str) else ""
            )
            combine = "product"
        axes = []
        for name in entries:
            axis = self._axis(name, (*path, name))
            if isinstance(axis, Derived):
                self.derived.append((axis, (*path, name)))
            elif axis is not None:
                axes.append(axis)
        if combine == "zip" and len({len(axis.values) for axis in axes}) > 1:
            each = listed([f"{axis.name} {len(axis.values)}" for axis in axes], "and")
            document.blame(combine_path, f"zip needs axes of equal length, got {each} values")
        elif axes:
            yield Group(tuple(axes), combine)

    def _axis(self, name: str, path: DataPath) -> Axis | Derived | None:
        """The axis or derived value at `path`; None if its values are wrong."""
        document = self.document
        self._check_name(name, path)
        entry = document.at(path)
        if not isinstance(entry, dict):
            self._wrong(path, "must be an axis like {path: chip.cores.0.ep, values: [8, 16]}")
            return None
        self._keys(path, AxisEntry)
        paths = self._paths(path)
        kinds = [key for key in AXIS_KEYS if key in entry]
        if len(kinds) != 1:
            document.blame(path, "needs one of: values (a list), from and to (a range), expression")
            return None
        for key in AXIS_KEYS["from"]:
            if key in entry and kinds != ["from"]:
                document.blame((*path, key), f"belongs to a range (from, to), not to {kinds[0]}", key=True)
        if kinds == ["expression"]:
            text = entry["expression"]
            if isinstance(text, bool) or not isinstance(text, str | int):
                self._wrong((*path, "expression"), "must be text")
                return None
            return Derived(name, paths, str(text))
        values = self._range(path, entry) if kinds == ["from"] else self._listed((*path, "values"))
        return Axis(name, paths, values) if values else None

    def _check_name(self, name: str, path: DataPath) -> None:
        """Note a mistake if the name cannot be used, or is taken."""
        taken = name.lower() in _TAKEN or name.lower() in {f"{PREFIX}{each}" for each in chip_words()}
        if taken or not _NAME.fullmatch(name):
            why = "is a word of tables or expressions" if taken else "cannot be used"
            self.document.blame(path, f"a name of letters, digits and _ is expected; {show(name)} {why}", key=True)
            self.refused.add(name.lower())
        elif name.lower() in self.names:
            self.document.blame(path, "another axis has that name", key=True)
        self.names[name.lower()] = path

    def _paths(self, path: DataPath) -> tuple[str, ...]:
        """The paths that the axis sets; empty if they are wrong."""
        document, where = self.document, (*path, "path")
        if "path" not in document.at(path):
            document.blame(where, "required key is missing (what it sets, for example chip.cores.0.ep)")
            return ()
        given = document.at(where)
        several = isinstance(given, list)
        for index, text in enumerate(given if several else [given]):
            if not isinstance(text, str) or "" in text.split(".") or "=" in text or not text.isprintable():
                self._wrong(
                    (*where, index) if several else where, "must be a path into the scenario like chip.cores.0.ep"
                )
                return ()
        if given == []:
            document.blame(where, "must hold at least one path")
        paths = tuple(dict.fromkeys(text.strip() for text in (given if several else [given])))
        for text in paths:
            # Of two axes that set one path, one would have no effect.
            spelled = tuple(str(int(part)) if _INDEX.fullmatch(part) else part for part in text.split("."))
            first = self.targets.setdefault(spelled, where)
            if first != where:
                document.blame(where, f"{text} is set by another axis too ({document.place(first)})")
        return paths

    def _listed(self, path: DataPath) -> tuple[Value, ...]:
        """A list of values; empty if it is wrong."""
        values = self.document.at(path)
        if not isinstance(values, list) or not values:
            self._wrong(path, "must be a list of at least one value")
            return ()
        if len(values) > _MAX_VALUES:
            self.document.blame(path, f"must hold at most {_MAX_VALUES:,} values, got {len(values):,}")
            return ()
        for index, value in enumerate(values):
            if isinstance(value, list | dict) or not _plain(value):
                what = "must be a number below 2**63, text (no lone surrogates), true, false or nothing"
                self._wrong((*path, index), what)
                return ()
        return tuple(values)

    def _range(self, path: DataPath, entry: dict[str, Any]) -> tuple[Value, ...]:
        """The values of a range; empty if it is wrong."""
        numbers: dict[str, Any] = {key: entry[key] for key in ("from", "to", "step", "factor") if key in entry}
        for key, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not _plain(value):
                self._wrong((*path, key), "must be a number")
                return ()
        problem = _range_problem(numbers)
        values: tuple[Value, ...] = ()
        if problem is None:
            low, high = numbers["from"], numbers["to"]
            factor, step = numbers.get("factor"), numbers.get("step", 1)
            values = _powers(low, high, factor) if factor is not None else _steps(low, high, step)
            if len(values) > _MAX_VALUES:
                problem, values = ("to", f"makes more than {_MAX_VALUES:,} values"), ()
        if problem is not None:
            self.document.blame((*path, problem[0]), problem[1])
        return values

    def _expression(self, text: str, place: DataPath, known: Sequence[str]) -> None:
        """Note what is wrong with an expression over known names."""
        try:
            names = parse(text).names
        except ExpressionError as error:
            self.document.blame(place, str(error))
            return
        choices = [str(self.names[each][-1]) for each in known if each not in self.refused]
        for name in names:
            # A name that is refused at its axis is not refused once more where it is used.
            if name not in choices and name.lower() not in self.refused:
                hint = nearest(name, choices) or f"; there are: {listed(choices, 'and')}"
                self.document.blame(place, f"no axis called {show(name)}{hint}")

    def _constraints(self) -> list[str]:
        given = self.data.get("constraints", [])
        if not isinstance(given, list):
            self._wrong(("constraints",), "must be a list of expressions like 'ep * vp <= 65536'")
            return []
        for index, text in enumerate(given):
            if isinstance(text, str):
                self._expression(text, ("constraints", index), list(self.names))
            else:
                self._wrong(("constraints", index), "must be an expression like 'ep * vp <= 65536'")
        return [str(text) for text in given]

    def _scenario(self) -> tuple[Document, str]:
        """The scenario's own document: that of its file, or the part of the sweep's document that holds it."""
        document, given = self.document, self.data.get("scenario")
        if isinstance(given, str):
            path = str(document.folder / given)
            try:
                return read_document(path), Path(path).stem
            except InputError as error:
                self._take(("scenario",), error)
            return document, ""
        if not isinstance(given, dict):
            what = "required key is missing" if "scenario" not in self.data else "must be a mapping or a path"
            document.blame(("scenario",), f"{what} (the scenario: a path, or its keys)")
            return document, ""
        own = Document(given, document.name, document.folder)
        for mine, theirs in ((own.values, document.values), (own.keys, document.keys)):
            mine.update({path[1:]: place for path, place in theirs.items() if path[:1] == ("scenario",)})
        return own, "scenario"

    def _take(self, path: DataPath, error: InputError) -> None:
        """Note the mistakes of another file; those without a place are at `path`."""
        where = self.document.place(path)
        self.document.mistakes += [each if each.location else Mistake(where, each.sentence) for each in error.mistakes]

    def _device(self) -> Device | None:
        """The device that `device` names: a known one or a file counted from the sweep file's folder."""
        given = self.data.get("device")
        if "device" not in self.data:
            return None
        if not isinstance(given, str) or not given or "\0" in given:
            self._wrong(("device",), "must be the name of an FPGA or its file")
            return None
        try:
            return device(_device_file(self.document) or given)
        except InputError as error:
            self._take(("device",), error)
            return None

    def _objectives(self, sweep: Sweep, chip: Sequence[str]) -> tuple[Objective, ...]:
        """The objectives in their order; empty if the file names none."""
        if "objectives" not in self.data:
            return ()
        given = self.data["objectives"]
        if not isinstance(given, dict) or not given:
            self._wrong(("objectives",), "must be like {minimise: [latency_ms_p99, npe], maximise: [tops]}")
            return ()
        objectives: dict[str, Objective] = {}
        for sense, names in given.items():
            place: DataPath = ("objectives", sense)
            if sense not in _SENSES:
                self._unknown(place, sense, _SENSES)
            elif names == []:
                self.document.blame(place, "must name at least one column")
            elif not isinstance(names, str | list):
                self._wrong(place, "must be a list of columns of the table")
            else:
                for index, name in enumerate([names] if isinstance(names, str) else names):
                    problem = self._problem(name, [*sweep.names, *chip, *NUMBERS], sweep, objectives)
                    if problem is None:
                        objectives[name] = Objective(name, sense == "maximise")
                    else:
                        self.document.blame(place if isinstance(names, str) else (*place, index), problem)
        return tuple(objectives.values())

    def _problem(self, name: Any, known: Sequence[str], sweep: Sweep, before: Mapping[str, Objective]) -> str | None:
        """Why a column cannot be an objective; None if it can."""
        if not isinstance(name, str):
            return f"must be a column of the table, got {show(name)}"
        if name in before:
            return f"{name} is an objective already ({before[name].phrase})"
        if name not in known:
            if name in _OF_DEVICES and "device" not in self.data:
                return f"{name} is counted on an FPGA: name one, for example `device: stratix-10-gx-2800`"
            return f"no column called {show(name)}{nearest(name, known) or '; there are: ' + listed(known, 'and')}"
        values = [each for axis in sweep.axes if axis.name == name for each in axis.values]
        texts = [each for each in values if not isinstance(each, bool) and math.isnan(worth(each))]
        if texts:
            return f"{name} is an axis with a value that is no number ({show(texts[0])}): nothing is smaller or larger"
        return None


def _device_file(document: Document) -> str | None:
    """The file that `device` names, counted from the sweep file; None for the name of a known device."""
    given = document.data.get("device")
    if not isinstance(given, str) or "\0" in given or given in device_files():
        return None
    path = str(document.folder / given)
    return path if os.path.isfile(path) else None


def _range_problem(numbers: Mapping[str, int | float]) -> tuple[str, str] | None:
    """The key that is wrong with a range, and why; None if the range is right."""
    if "to" not in numbers:
        return "to", "required key is missing (the last value of the range)"
    low, high, step = numbers["from"], numbers["to"], numbers.get("step", 1)
    if "step" in numbers and "factor" in numbers:
        return "factor", "step and factor exclude each other"
    if high < low:
        return "to", f"must not be below from: {high} < {low}"
    for name in ("step", "factor"):
        if name in numbers and (sentence := keys_of(AxisEntry)[name].key.wrong(numbers[name])):
            return name, f"{sentence}, got {numbers[name]}"
    if "factor" not in numbers:
        too_many = (high - low) / step >= _MAX_VALUES
        return ("to", f"makes more than {_MAX_VALUES:,} values") if too_many else None
    return None if low > 0 else ("from", f"must be greater than 0 for a range by factor, got {low}")


def _steps(low: int | float, high: int | float, step: int | float) -> tuple[Value, ...]:
    """Values `step` apart: as many as the numbers of the file mean, whatever their rounding does."""
    if all(isinstance(each, int) for each in (low, high, step)):
        return tuple(range(int(low), int(high) + 1, int(step)))
    steps = (high - low) / step
    # Each of the three may be half a unit in its last place away from the decimal in the file.
    slack = 4 * sys.float_info.epsilon * (max(abs(low), abs(high)) / step + steps)
    # From the first value each time, so that steps like 0.1 do not add up their rounding.
    return (low, *(min(low + number * step, high) for number in range(1, math.floor(steps + slack) + 1)))


def _powers(low: int | float, high: int | float, factor: int | float) -> tuple[Value, ...]:
    """Values by a factor, at most one more than are allowed."""
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


def _line(mistake: Mistake) -> tuple[int, int]:
    """The line and column of a mistake, (0, 0) without these."""
    match = re.match(r".*?:(\d+):(\d+)", mistake.location)
    return (int(match[1]), int(match[2])) if match else (0, 0)
