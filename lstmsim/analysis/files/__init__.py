"""Traces as files: `save_trace` and `load_trace` choose the format by the file's suffix."""

from __future__ import annotations

import os
from importlib import import_module

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed

#: Suffix -> bytes for each span, module, writer, and reader (None if the file does not hold all of a timeline).
#: Bytes were measured on timelines of 10^5 and 10^6 spans (tests/files/test_traces_window.py measures again): a long
#: run makes gigabytes faster than a user notices. Long names of jobs make text formats larger. Regular traces make
#: packed formats smaller.
_FORMATS: dict[str, tuple[float, str, str, str | None]] = {
    ".json": (181.0, "perfetto", "write_perfetto", "read_perfetto"),
    ".json.gz": (15.0, "perfetto", "write_perfetto", "read_perfetto"),
    ".csv": (72.0, "csv", "write_csv", "read_csv"),
    ".csv.gz": (10.1, "csv", "write_csv", "read_csv"),
    ".vcd": (21.4, "waves", "write_vcd", None),
    ".fst": (2.2, "waves", "write_fst", None),
    ".pftrace": (7.6, "perfetto", "write_pftrace", None),
    ".kanata": (68.0, "kanata", "write_kanata", None),
}

#: What the formats refuse that not every place or trace can have: module, function of a timeline and a path.
_REFUSALS = {".fst": ("waves", "fst_library"), ".pftrace": ("perfetto", "builder"), ".kanata": ("kanata", "pipeline")}

#: Suffixes to offer instead of a file that is too large, the smallest file first.
_SMALL = (".fst", ".pftrace", ".csv.gz")

#: Suffixes of files that can be written.
SUFFIXES = tuple(_FORMATS)

#: Suffixes of files that can also be read back.
READABLE = tuple(suffix for suffix, (*_, reader) in _FORMATS.items() if reader is not None)

#: Suffixes of files for GTKWave: a view of the trace is written beside such a file.
_WAVES = (".vcd", ".fst")

#: Size above which a trace is not written unless the caller says so: 1 GB.
LIMIT_BYTES = 10**9


def _suffix(path: str, offered: tuple[str, ...] = SUFFIXES) -> str:
    """The suffix of a trace's name; `InputError` with the `offered` suffixes if it has none."""
    lower = path.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if lower.endswith(suffix):
            return suffix
    raise InputError(Mistake(path, f"not a trace's name: expected it to end in {', '.join(offered)}"))


def views_beside(path: str) -> dict[str, str]:
    """The files of views, by viewer, that belong to the trace `path`; none if it is neither `.vcd` nor `.fst`."""
    stem = os.path.splitext(path)[0]
    return {"GTKWave view": f"{stem}.gtkw", "Surfer view": f"{stem}.sucl"} if _suffix(path) in _WAVES else {}


def refuse_trace(timeline: Timeline, name: str, limit_bytes: int | None = LIMIT_BYTES) -> None:
    """Raise the `InputError` with which `save_trace` would refuse a timeline; nothing is written."""
    suffix = _suffix(name)
    size = estimated_bytes(timeline, suffix)
    if limit_bytes is not None and size > limit_bytes:
        others = [
            f"{each} ({_megabytes(estimated_bytes(timeline, each))})"
            for each in _SMALL
            if _FORMATS[each][0] < _FORMATS[suffix][0]
        ]
        instead = f", or write {' or '.join(others)}" if others else ""
        takes = f"{len(timeline):,} spans would take about {_megabytes(size)}, the limit is {_megabytes(limit_bytes)}"
        raise InputError(Mistake(name, f"{takes}; cut out a window of cycles{instead}"))
    if suffix in _REFUSALS:
        module, refusing = _REFUSALS[suffix]
        getattr(import_module(f"{__name__}.{module}"), refusing)(timeline, name)


def save_trace(timeline: Timeline, path: str | os.PathLike[str], limit_bytes: int | None = LIMIT_BYTES) -> None:
    """Write a timeline, whole or not at all, in the format that the suffix names."""
    name = os.fspath(path)
    refuse_trace(timeline, name, limit_bytes)
    _, module, writer, _ = _FORMATS[_suffix(name)]
    write = getattr(import_module(f"{__name__}.{module}"), writer)
    # a view that is there already is not replaced: users save their own under that name
    views = [each for each in views_beside(name).values() if not os.path.isfile(each)]
    if views:
        write(timeline, name, views)
    else:
        write(timeline, name)


def estimated_bytes(timeline: Timeline, suffix: str) -> int:
    """Estimate the bytes of a timeline in a file."""
    return round(_FORMATS[suffix][0] * len(timeline))


def _megabytes(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.2g} {unit}" if size < 100 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size / 10**6:.2g} MB"


def load_trace(path: str | os.PathLike[str]) -> Timeline:
    """Read the timeline that `save_trace` wrote as `.json`, `.json.gz`, `.csv` or `.csv.gz`, equal in every column."""
    name = os.fspath(path)
    _, module, _, reader = _FORMATS[_suffix(name, READABLE)]
    if reader is None:
        raise InputError(Mistake(name, f"cannot be read back: {listed(READABLE, 'and')} can"))
    timeline: Timeline = getattr(import_module(f"{__name__}.{module}"), reader)(name)
    return timeline
