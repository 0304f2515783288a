"""Sweep files: read with the place of every value, checked as a whole, turned into a `Sweep` and its scenario."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.yaml.document import DataPath, Document, document_of
from lstmsim.files.yaml.source import read_document
from lstmsim.studies.sweep.axis_entries import AxisReader
from lstmsim.studies.sweep.costs import ChipColumns, chip_columns
from lstmsim.studies.sweep.expressions import ExpressionError, parse
from lstmsim.studies.sweep.objective_entries import device_file, read_device_key, read_objectives
from lstmsim.studies.sweep.objectives import Objective, default_objectives
from lstmsim.studies.sweep.spec import Derived, Group, Sweep

__all__ = ["GROUP_KEYS", "MAX_POINTS", "SWEEP_KEYS", "SweepFile", "load_sweep"]

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
