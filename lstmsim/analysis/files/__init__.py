"""Traces as files: `save_trace` and `load_trace` choose the format by the file's suffix."""

from __future__ import annotations

import os
from importlib import import_module

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed

#: Suffix -> module, its writer, and its reader; None if the file does not hold all of a timeline.
_FORMATS: dict[str, tuple[str, str, str | None]] = {
    ".json": ("perfetto", "write_perfetto", "read_perfetto"),
    ".json.gz": ("perfetto", "write_perfetto", "read_perfetto"),
    ".csv": ("csv", "write_csv", "read_csv"),
    ".csv.gz": ("csv", "write_csv", "read_csv"),
    ".vcd": ("waves", "write_vcd", None),
    ".fst": ("waves", "write_fst", None),
    ".pftrace": ("perfetto", "write_pftrace", None),
    ".kanata": ("kanata", "write_kanata", None),
}

#: Suffixes of files that can be written.
SUFFIXES = tuple(_FORMATS)

#: Suffixes of files that can also be read back.
READABLE = tuple(suffix for suffix, (_, _, reader) in _FORMATS.items() if reader is not None)

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


def view_beside(path: str) -> str | None:
    """The GTKWave save file that belongs to the trace `path`; None if it is neither `.vcd` nor `.fst`."""
    return os.path.splitext(path)[0] + ".gtkw" if _suffix(path) in _WAVES else None


def save_trace(timeline: Timeline, path: str | os.PathLike[str], limit_bytes: int | None = LIMIT_BYTES) -> None:
    """Write a timeline, whole or not at all, in the format that the suffix names."""
    name = os.fspath(path)
    suffix = _suffix(name)
    if limit_bytes is not None:
        from lstmsim.analysis.files.sizes import require_small

        require_small(timeline, name, suffix, limit_bytes)
    module, writer, _ = _FORMATS[suffix]
    write = getattr(import_module(f"{__name__}.{module}"), writer)
    view = view_beside(name)
    # a view that is there already is not replaced: users save their own under that name
    if view is None or os.path.isfile(view):
        write(timeline, name)
    else:
        write(timeline, name, view)


def load_trace(path: str | os.PathLike[str]) -> Timeline:
    """Read the timeline that `save_trace` wrote as `.json`, `.json.gz`, `.csv` or `.csv.gz`, equal in every column."""
    name = os.fspath(path)
    module, _, reader = _FORMATS[_suffix(name, READABLE)]
    if reader is None:
        raise InputError(Mistake(name, f"cannot be read back: {listed(READABLE, 'and')} can"))
    timeline: Timeline = getattr(import_module(f"{__name__}.{module}"), reader)(name)
    return timeline
