"""Traces as files: `save_trace` and `load_trace` choose the format by the file's suffix."""

from __future__ import annotations

import os

from lstmsim.errors import InputError, Mistake
from lstmsim.metrics.timeline import Timeline

__all__ = ["SUFFIXES", "load_trace", "save_trace", "view_beside"]

#: What can be written; all but `.vcd` can also be read back.
SUFFIXES = (".json", ".json.gz", ".csv", ".vcd")


def _suffix(path: str) -> str:
    lower = path.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if lower.endswith(suffix):
            return suffix
    raise InputError(Mistake(path, f"not a trace's name: expected it to end in {', '.join(SUFFIXES)}"))


def view_beside(path: str) -> str | None:
    """The GTKWave save file that belongs to the trace `path`; None if it is no `.vcd`.

    >>> view_beside("run/a.vcd"), view_beside("a.csv")
    ('run/a.gtkw', None)
    """
    return os.path.splitext(path)[0] + ".gtkw" if _suffix(path) == ".vcd" else None


def save_trace(timeline: Timeline, path: str | os.PathLike[str]) -> None:
    """Write a timeline, whole or not at all: `.json`, `.json.gz` (Perfetto), `.vcd` (and a `.gtkw` beside it), `.csv`.

    A `.gtkw` that is there already stays as it is: users save their own views under that name. An unknown suffix
    or a path that cannot be written is an `InputError`, a full disk an `LstmsimError`.

    >>> save_trace(None, "trace.xls")
    Traceback (most recent call last):
    lstmsim.errors.InputError: trace.xls: not a trace's name: expected it to end in .json, .json.gz, .csv, .vcd
    """
    name = os.fspath(path)
    match _suffix(name):
        case ".csv":
            from lstmsim.formats.traces.csv import write_csv

            write_csv(timeline, name)
        case ".vcd":
            from lstmsim.formats.traces.vcd import write_vcd

            view = view_beside(name)
            write_vcd(timeline, name, None if view is None or os.path.isfile(view) else view)
        case _:
            from lstmsim.formats.traces.perfetto import write_perfetto

            write_perfetto(timeline, name)


def load_trace(path: str | os.PathLike[str]) -> Timeline:
    """The timeline that `save_trace` wrote as `.json`, `.json.gz` or `.csv`, equal in every column.

    Anything else, and anything broken, is an `InputError`.

    >>> load_trace("trace.vcd")
    Traceback (most recent call last):
    lstmsim.errors.InputError: trace.vcd: a VCD lacks layers and steps; .json, .json.gz and .csv can be read back
    """
    name = os.fspath(path)
    match _suffix(name):
        case ".csv":
            from lstmsim.formats.traces.csv import read_csv

            return read_csv(name)
        case ".vcd":
            sentence = "a VCD lacks layers and steps; .json, .json.gz and .csv can be read back"
            raise InputError(Mistake(name, sentence))
        case _:
            from lstmsim.formats.traces.perfetto import read_perfetto

            return read_perfetto(name)
