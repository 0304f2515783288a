"""Fast signal traces for GTKWave and Surfer: the contents of a value change dump in a tenth of the bytes.

GTKWave's own library writes them, through `pylibfst` (extra `fst`), which has wheels for Linux only. On other systems
`vcd2fst`, which comes with GTKWave, turns a `.vcd` into the same file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import nullcontext
from typing import Any

from lstmsim.analysis.files.gtkw import groups, save_file, scope
from lstmsim.analysis.files.vcd import NONE, changes, comment
from lstmsim.analysis.timeline import Row, Timeline
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import readable_file, whole_file

__all__ = ["write_fst"]


def _library(path: str) -> Any:
    try:
        import pylibfst
    except ImportError:
        sentence = (
            "writing FST needs the extra: pip install 'lstmsim[fst]' (Linux); or write .vcd and convert it by vcd2fst"
        )
        raise InputError(Mistake(path, sentence)) from None
    return pylibfst


def write_fst(timeline: Timeline, path: str, view: str | None = None) -> None:
    """Write the variables of `write_vcd`. Equal timelines give equal bytes.

    path: file to write.
    view: GTKWave save file to write beside it; None for none.
    `InputError` without the package `pylibfst`.
    """
    library = _library(path)
    # GTKWave's library opens files itself, by name: it writes into a folder of its own, and the whole file is moved.
    with tempfile.TemporaryDirectory(prefix="lstmsim-") as folder:
        made = os.path.join(folder, "trace.fst")
        _write(library, timeline, made)
        _require_whole(library, made, path, timeline.shown[1])
        with nullcontext() if view is None else whole_file(view) as save, whole_file(path, "wb") as file:
            if save is not None:
                save.write(save_file(timeline, os.path.basename(path)))
            with readable_file(made, kept=False) as source:
                shutil.copyfileobj(source, file, 2**20)


def _write(library: Any, timeline: Timeline, made: str) -> None:
    writer = library.lib.fstWriterCreate(os.fsencode(made), 1)
    if writer == library.ffi.NULL:
        raise LstmsimError("the folder for temporary files cannot be written")
    try:
        library.lib.fstWriterSetTimescaleFromString(writer, b"1ns")
        library.lib.fstWriterSetVersion(writer, b"lstmsim")
        # Without a date the library takes the clock's.
        library.lib.fstWriterSetDate(writer, b"-")
        library.lib.fstWriterSetComment(writer, comment(timeline).encode())
        variables = _variables(library.lib, writer, timeline)
        _emit(library.lib, writer, timeline, variables)
    finally:
        library.lib.fstWriterClose(writer)


def _variables(lib: Any, writer: Any, timeline: Timeline) -> list[tuple[int, int, int]]:
    """Handles of the variables state, job and busy of each row, in scopes within scopes."""
    handles = {}
    lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, b"lstmsim", b"")
    for rows in groups(timeline.rows).values():
        # a row of a core lies in the core's scope
        above = scope(rows[0]).split(".")[1:-1]
        for name in above:
            lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, name.encode(), b"")
        for row in rows:
            handles[row] = _row(lib, writer, row)
        for _ in above:
            lib.fstWriterSetUpscope(writer)
    lib.fstWriterSetUpscope(writer)
    return [handles[row] for row in timeline.rows]


def _row(lib: Any, writer: Any, row: Row) -> tuple[int, int, int]:
    lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, scope(row).split(".")[-1].encode(), b"")
    text, wire, none = lib.FST_VT_GEN_STRING, lib.FST_VT_VCD_WIRE, lib.FST_VD_IMPLICIT
    state = lib.fstWriterCreateVar(writer, text, none, 0, b"state", 0)
    job = lib.fstWriterCreateVar(writer, text, none, 0, b"job", 0)
    busy = lib.fstWriterCreateVar(writer, wire, none, 1, b"busy", 0)
    lib.fstWriterSetUpscope(writer)
    return state, job, busy


def _emit(lib: Any, writer: Any, timeline: Timeline, variables: list[tuple[int, int, int]]) -> None:
    """Write all values at cycle 0, then each value that differs from the one before. All words are ASCII."""
    text, bit = lib.fstWriterEmitVariableLengthValueChange, lib.fstWriterEmitValueChange
    before = [(NONE, NONE, 0)] * len(variables)
    lib.fstWriterEmitTimeChange(writer, 0)
    for handles in variables:
        for handle in handles[:2]:
            text(writer, handle, NONE.encode(), len(NONE))
        bit(writer, handles[2], b"0")
    now = 0
    for cycle, row, state, job, busy in changes(timeline):
        if cycle > now:
            lib.fstWriterEmitTimeChange(writer, cycle)
            now = cycle
        old, handles = before[row], variables[row]
        before[row] = (state, job, busy)
        if state != old[0]:
            text(writer, handles[0], state.encode(), len(state))
        if job != old[1]:
            text(writer, handles[1], job.encode(), len(job))
        if busy != old[2]:
            bit(writer, handles[2], b"1" if busy else b"0")
    last = timeline.shown[1]
    if last > now:
        lib.fstWriterEmitTimeChange(writer, last)


def _require_whole(library: Any, made: str, path: str, last: int) -> None:
    """`LstmsimError` if the library cannot read its file up to the last cycle: it does not say when a disk is full."""
    reader = library.lib.fstReaderOpen(os.fsencode(made))
    if reader == library.ffi.NULL:
        raise LstmsimError(f"{path}: the folder for temporary files is full; nothing was written")
    try:
        end = library.lib.fstReaderGetEndTime(reader)
    finally:
        library.lib.fstReaderClose(reader)
    if end != last:
        raise LstmsimError(f"{path}: the file ends at cycle {end} of {last}; nothing was written")
