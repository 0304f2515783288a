"""Sweep files: read with the line of every value, checked as a whole, turned into a `Sweep` and its scenario."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.yaml.document import Document, document_of
from lstmsim.files.yaml.source import read_document
from lstmsim.studies.fit.device import Device, device, device_files
from lstmsim.studies.sweep.columns import NUMBERS, PREFIX, ChipColumns, chip_columns, chip_words
from lstmsim.studies.sweep.expressions import ExpressionError, parse
from lstmsim.studies.sweep.spec import Axis, Derived, Group, Objective, Sweep, Value, default_objectives, worth

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
        """Read the axis or derived value at `path`; None if its values are wrong."""
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
    """Values `step` apart: as many as the numbers of the file mean, whatever their rounding does."""
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


_SENSES = ("minimise", "maximise")
#: Columns that need a device: where the file names none, the mistake says so.
_OF_DEVICES = {"dsp", "m20k", "logic", "memory", "ramb18", "fits", "dsp_share", "m20k_share", "logic_share"}


def device_file(document: Document) -> str | None:
    """Give the file that `device` names, counted from the sweep file; None for the name of a known device."""
    given = document.data.get("device")
    if not isinstance(given, str) or "\0" in given or given in device_files():
        return None
    path = str(document.folder / given)
    return path if os.path.isfile(path) else None


def read_device_key(document: Document) -> Device | None:
    """Read the device that `device` names: a known one or a file counted from the sweep file's folder.

    None without that key, or for a mistake, which goes to the document.
    """
    given = document.data.get("device")
    if "device" not in document.data:
        return None
    place = ("device",)
    if not isinstance(given, str) or not given or "\0" in given:
        document.blame(place, f"must be the name of an FPGA or its file, got {show(given, document.raw(place))}")
        return None
    try:
        return device(device_file(document) or given)
    except InputError as error:
        where = document.place(place)
        document.mistakes += [each if each.place else Mistake(where, each.sentence) for each in error.mistakes]
        return None


def read_objectives(document: Document, sweep: Sweep, chip: Sequence[str], *, on_device: bool) -> tuple[Objective, ...]:
    """Read the objectives of a sweep file, in their order; empty if it names none. Mistakes go to the document."""
    if "objectives" not in document.data:
        return ()
    given = document.data["objectives"]
    if not isinstance(given, dict) or not given:
        text = "must be like {minimise: [latency_ms_p99, npe], maximise: [tops]}"
        document.blame(("objectives",), f"{text}, got {show(given, document.raw(('objectives',)))}")
        return ()
    known = [*sweep.names, *chip, *NUMBERS]
    objectives: dict[str, Objective] = {}
    for sense, names in given.items():
        if sense not in _SENSES:
            hint = nearest(str(sense), _SENSES) or f"; known keys: {listed(_SENSES, 'and')}"
            document.blame(("objectives", sense), f"unknown key{hint}", key=True)
            continue
        for place, name in _named(document, sense, names):
            problem = _problem(name, known, sweep, objectives, on_device)
            if problem is None:
                objectives[str(name)] = Objective(str(name), sense == "maximise")
            else:
                document.blame(place, problem)
    return tuple(objectives.values())


def _named(document: Document, sense: str, names: Any) -> list[tuple[DataPath, Any]]:
    """Each name below a sense, with its place."""
    place: DataPath = ("objectives", sense)
    if isinstance(names, str):
        return [(place, names)]
    if names == []:
        document.blame(place, "must name at least one column")
        return []
    if not isinstance(names, list):
        document.blame(place, f"must be a list of columns of the table, got {show(names, document.raw(place))}")
        return []
    return [((*place, index), name) for index, name in enumerate(names)]


def _problem(
    name: Any, known: Sequence[str], sweep: Sweep, before: Mapping[str, Objective], on_device: bool
) -> str | None:
    """Why a column cannot be an objective; None if it can."""
    if not isinstance(name, str):
        return f"must be a column of the table, got {show(name)}"
    if name in before:
        return f"{name} is an objective already ({before[name].phrase})"
    if name not in known:
        if name in _OF_DEVICES and not on_device:
            return f"{name} is counted on an FPGA: name one, for example `device: stratix-10-gx-2800`"
        return f"no column called {show(name)}{nearest(name, known) or '; there are: ' + listed(known, 'and')}"
    texts = [
        each for axis in sweep.axes if axis.name == name for each in axis.values if math.isnan(worth(_spelled(each)))
    ]
    if texts:
        return f"{name} is an axis with a value that is no number ({show(texts[0])}): nothing is smaller or larger"
    return None


def _spelled(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


MAX_POINTS = 10_000_000
#: Keys of a sweep file, and what each means.
SWEEP_KEYS = {
    "name": "name of the sweep, in its tables and pictures; default: the file's",
    "scenario": "the scenario that points change: a path, or its keys in place; required",
    "axes": "what varies, by name; or a list of groups of axes; required",
    "combine": "how axes go together: product (all combinations) or zip (in step); default: product",
    "constraints": "expressions over names of axes and of chip figures; points that break one are infeasible",
    "device": "an FPGA that each point's chip is fitted to: a name of `lstmsim list devices`, or a path; default: none",
    "objectives": "columns to minimise or maximise, which make the Pareto front; default: latency_ms_mean and npe",
}
#: Keys of a group of axes.
GROUP_KEYS = {"axes": "axes of the group, by name", "combine": "how they go together: product or zip"}
_COMBINE = ("product", "zip")


@dataclass(frozen=True, eq=False)
class SweepFile:
    """A sweep and the scenario that its points change. It is not yet checked: the axes may bring missing parts.

    sweep: axes, derived values and constraints.
    scenario, scenario_name: the scenario's document, and its name unless the document has one.
    places: for each axis by its name, the place of its paths in the file.
    chip: columns about the chip of each point, on the file's `device` if it names one.
    objectives: what points are judged by.
    device_file: the file of that device; None for a known device.
    """

    sweep: Sweep
    scenario: Document
    scenario_name: str
    #: Where the paths of each axis stand, by its name.
    places: Mapping[str, str]
    chip: ChipColumns
    objectives: tuple[Objective, ...]
    device_file: str | None = None


def load_sweep(source: str | os.PathLike[str] | Mapping[str, Any]) -> SweepFile:
    """Read the sweep of a file, or of data laid out like one; `InputError` with every mistake, file, line and column.

    >>> axes = {"ep": {"path": "chip.cores.0.ep", "from": 1, "to": 8, "factor": 2}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> load_sweep({"scenario": scenario, "axes": axes}).sweep.axes[0].values
    (1, 2, 4, 8)
    """
    if isinstance(source, Mapping):
        document, name = document_of(source), "sweep"
    else:
        document = read_document(source)
        name = Path(source).stem
    if not document.data.keys() & {"axes", "scenario"} and document.data.keys() >= {"chip", "jobs"}:
        text = "is a scenario, no sweep: `lstmsim simulate` runs it; a sweep names it (`scenario: FILE`) and has `axes`"
        raise InputError(Mistake(document.name, text))
    return _Reader(document).read(name)


class _Reader(AxisReader):
    """Reads one document; mistakes are noted in it and raised together."""

    def read(self, default_name: str) -> SweepFile:
        document = self.document
        self.keys((), tuple(SWEEP_KEYS))
        groups, derived = self._groups()
        name = document.data.get("name", default_name)
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:
            document.blame(("name",), f"must be printable text, got {show(name, document.raw(('name',)))}")
            name = default_name
        self._expressions(derived)
        constraints = self._constraints()
        sweep = Sweep(tuple(groups), tuple(each for each, _ in derived), tuple(constraints), name)
        if groups and all(axis.values for axis in sweep.axes) and sweep.size > MAX_POINTS:
            document.blame(("axes",), f"make {sweep.size:,} points, at most {MAX_POINTS:,} are possible")
        scenario, scenario_name = self._scenario()
        device = read_device_key(document)
        chip = chip_columns(sweep.names, device)
        objectives = read_objectives(document, sweep, chip.names, on_device="device" in document.data)
        if document.mistakes:
            raise InputError(sorted(dict.fromkeys(document.mistakes), key=_line))
        places = {str(path[-1]): document.place((*path, "path")) for path in self.names.values()}
        judged_by = objectives or default_objectives(chip.names)
        return SweepFile(sweep, scenario, scenario_name, places, chip, judged_by, device_file(document))

    def _groups(self) -> tuple[list[Group], list[tuple[Derived, DataPath]]]:
        document = self.document
        axes = document.data.get("axes")
        if "axes" not in document.data:
            document.blame(
                ("axes",), "required key is missing (what to vary, for example ep: {path: ..., values: ...})"
            )
            return [], []
        derived: list[tuple[Derived, DataPath]] = []
        if not isinstance(axes, list):
            group = self._group(("axes",), ("combine",), derived)
            return [group] if group is not None else [], derived
        if "combine" in document.data:
            document.blame(("combine",), "stands in each group where `axes` is a list of groups", key=True)
        if not axes:
            document.blame(("axes",), "must be a list of at least 1 group, got 0")
        groups = []
        for index, each in enumerate(axes):
            path: DataPath = ("axes", index)
            if not isinstance(each, dict):
                document.blame(path, f"must be a group {{axes: ..., combine: ...}}, got {self.show(path)}")
                continue
            self.keys(path, tuple(GROUP_KEYS))
            if "axes" not in each:
                document.blame((*path, "axes"), "required key is missing (the axes of the group)")
                continue
            group = self._group((*path, "axes"), (*path, "combine"), derived)
            groups += [group] if group is not None else []
        return groups, derived

    def _group(self, path: DataPath, combine_path: DataPath, derived: list[tuple[Derived, DataPath]]) -> Group | None:
        document = self.document
        entries = document.at(path)
        if not isinstance(entries, dict) or not entries:
            document.blame(path, f"must be a mapping of names to axes, at least 1, got {self.show_empty(path)}")
            return None
        holder = document.at(combine_path[:-1])
        combine = holder.get("combine", "product")
        if combine not in _COMBINE:
            hint = nearest(combine, _COMBINE) if isinstance(combine, str) else ""
            document.blame(combine_path, f"must be product or zip, got {self.show(combine_path)}{hint}")
            combine = "product"
        axes = []
        for name in entries:
            axis = self.axis(name, (*path, name))
            if isinstance(axis, Derived):
                derived.append((axis, (*path, name)))
            elif axis is not None:
                axes.append(axis)
        lengths = {len(axis.values) for axis in axes}
        if combine == "zip" and len(lengths) > 1:
            each = listed([f"{axis.name} {len(axis.values)}" for axis in axes], "and")
            document.blame(combine_path, f"zip needs axes of equal length, got {each} values")
            return None
        return Group(tuple(axes), combine) if axes else None

    def _expressions(self, derived: list[tuple[Derived, DataPath]]) -> None:
        known = [name for name, path in self.names.items() if "expression" not in self._entry(path)]
        for each, path in derived:
            self._check_expression(each.text, (*path, "expression"), known)
            known.append(each.name.lower())

    def _entry(self, path: DataPath) -> dict[str, Any]:
        entry = self.document.at(path)
        return entry if isinstance(entry, dict) else {}

    def _check_expression(self, text: str, place: DataPath, known: Sequence[str]) -> None:
        try:
            names = parse(text).names
        except ExpressionError as error:
            self.document.blame(place, str(error))
            return
        spelled = {name.lower(): str(path[-1]) for name, path in self.names.items()}
        choices = [spelled[each] for each in known if each not in self.refused]
        for name in names:
            # A name that is refused at its axis is not refused once more where it is used.
            if name not in choices and name.lower() not in self.refused:
                hint = nearest(name, choices) or f"; there are: {listed(choices, 'and')}"
                self.document.blame(place, f"no axis called {show(name)}{hint}")

    def _constraints(self) -> list[str]:
        document = self.document
        given = document.data.get("constraints", [])
        if not isinstance(given, list):
            text = "must be a list of expressions like 'ep * vp <= 65536'"
            document.blame(("constraints",), f"{text}, got {self.show(('constraints',))}")
            return []
        for index, text in enumerate(given):
            place = ("constraints", index)
            if isinstance(text, str):
                self._check_expression(text, place, list(self.names))
            else:
                document.blame(place, f"must be an expression like 'ep * vp <= 65536', got {self.show(place)}")
        return [str(text) for text in given]

    def _scenario(self) -> tuple[Document, str]:
        """The scenario's own document: that of its file, or the part of the sweep's document that holds it."""
        document = self.document
        given = document.data.get("scenario")
        if isinstance(given, str):
            path = str(document.folder / given)
            try:
                return read_document(path), Path(path).stem
            except InputError as error:
                where = document.place(("scenario",))
                document.mistakes += [each if each.place else Mistake(where, each.sentence) for each in error.mistakes]
            return document, ""
        if not isinstance(given, dict):
            what = "required key is missing" if "scenario" not in document.data else "must be a mapping or a path"
            document.blame(("scenario",), f"{what} (the scenario: a path, or its keys in place)")
            return document, ""
        head = ("scenario",)
        own = Document(given, document.name, document.folder)
        for mine, theirs in ((own.values, document.values), (own.keys, document.keys)):
            mine.update({path[1:]: place for path, place in theirs.items() if path[:1] == head})
        return own, "scenario"


def _line(mistake: Mistake) -> tuple[int, int]:
    """The line and column of a mistake, (0, 0) without these."""
    match = re.match(r".*?:(\d+):(\d+)", mistake.place)
    return (int(match[1]), int(match[2])) if match else (0, 0)
