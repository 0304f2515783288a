"""The keys `objectives` and `device` of a sweep file: what points are judged by, and the FPGA to count on."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.studies.fit.device import Device
from lstmsim.studies.fit.devices_file import device, device_files
from lstmsim.studies.sweep.numbers import NUMBERS
from lstmsim.studies.sweep.objectives import Objective, worth
from lstmsim.studies.sweep.spec import Sweep

__all__ = ["device_file", "read_device_key", "read_objectives"]

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
    """Read the objectives of a sweep file, in their order; empty if it names none. Mistakes go to the document.

    sweep: its axes and derived values, which may be objectives.
    chip: the columns about the chip.
    on_device: whether the file names a device.
    """
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
        each for axis in sweep.axes if axis.name == name for each in axis.values if math.isnan(worth(_plain(each)))
    ]
    if texts:
        return f"{name} is an axis with a value that is no number ({show(texts[0])}): nothing is smaller or larger"
    return None


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
