"""Value change dumps and fast signal traces for wave viewers, with views for GTKWave and Surfer (docs/traces.md)."""

from __future__ import annotations

import io
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from vcd.gtkw import GTKWColor, GTKWSave
from vcd.writer import VCDWriter

from lstmsim.analysis.timeline import STATES, Row, Timeline
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import readable_file, whole_file
from lstmsim.program.unit_names import beside_cores

#: GTKWave's window and the columns left of the waves, in pixels. The zoom fills the rest of the window with the waves.
_WINDOW = (1600, 900)
_TREE_PIXELS, _NAMES_PIXELS = 220, 220
#: Pixels of frames, of the margin of the names, and of the scroll bar.
_BESIDE_PIXELS = 120
#: Most signals of groups that are open: a window has about 40 of them.
_MOST_SHOWN = 120
#: Form and colour of the variables of a row, in the order in which they stand.
_LOOKS = {"busy": ("bin", GTKWColor.green), "state": ("ascii", GTKWColor.orange), "job": ("ascii", GTKWColor.violet)}
#: At zoom 0 GTKWave draws one cycle on so many pixels, at zoom -1 two cycles, and so on.
_FRAME_PIXELS = 200


def scope(row: Row) -> str:
    """The scope in a wave file that holds the variables of a row. A memory or a link belongs to no core."""
    unit = row.title.replace(" ", "" if row.kind == "thread" else "_")
    return f"lstmsim.{unit}" if beside_cores(row.kind) else f"lstmsim.core{row.core}.{unit}"


def groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each core, and those of memories and links, by the name of the group."""
    result: dict[str, list[Row]] = {}
    for row in rows:
        result.setdefault(beside_cores(row.kind) or f"core {row.core}", []).append(row)
    return result


def zoom(cycles: int) -> float:
    """GTKWave's zoom at which `cycles` cycles fill the width of the waves."""
    pixels = _WINDOW[0] - _TREE_PIXELS - _NAMES_PIXELS - _BESIDE_PIXELS
    return min(0.0, -math.log2(max(cycles, 1) * _FRAME_PIXELS / pixels))


def save_file(timeline: Timeline, dump: str) -> str:
    """The text of a save file."""
    start, end = timeline.shown
    text = io.StringIO()
    save = GTKWSave(text)
    save.comment(", ".join(filter(None, ("lstmsim: 1 ns = 1 cycle", timeline.shown_text))))
    if dump.isprintable() and '"' not in dump:
        save.dumpfile(dump, abspath=False)
    save.timestart(start)
    save.size(*_WINDOW)
    save.zoom_markers(zoom(end - start))
    text.write(f"[sst_width] {_TREE_PIXELS}\n")
    save.signals_width(_NAMES_PIXELS)
    save.treeopen("lstmsim.")
    shown = 0
    for name, rows in groups(timeline.rows).items():
        # groups that have no room in the window are there, and closed
        shown += 3 * len(rows)
        with save.group(name, closed=shown > _MOST_SHOWN):
            for row in rows:
                for variable, (form, colour) in _LOOKS.items():
                    alias = f"{row.title} {variable}"
                    save.trace(f"{scope(row)}.{variable}", alias=alias, datafmt=form, color=colour)
    return text.getvalue()


#: The same colours by the names that Surfer's themes have for them.
_SURFER = {"busy": "Green", "state": "Orange", "job": "Violet"}


def command_file(timeline: Timeline, dump: str) -> str:
    """The text of a command file of Surfer: rows that have room, below a divider for each group, and the whole run."""
    lines = [", ".join(filter(None, ("# lstmsim: 1 ns = 1 cycle", timeline.shown_text)))]
    # a command ends at white space
    lines += [f"load_file {dump}"] * (dump == _plain(dump))
    items, shown = 0, 0
    for name, rows in groups(timeline.rows).items():
        shown += 3 * len(rows)
        if shown > _MOST_SHOWN:
            lines.append(f"# further groups are in the tree of scopes, from {name} on")
            break
        lines.append(f"divider_add {name.replace(' ', '_')}")
        items += 1
        for row, variable in ((row, variable) for row in rows for variable in _LOOKS):
            lines += [f"variable_add {scope(row)}.{variable}", f"item_focus {_place(items)}"]
            lines.append(f"item_set_color {_SURFER[variable]}")
            items += 1
    return "\n".join([*lines, "item_unfocus", "zoom_fit", ""])


def _place(number: int) -> str:
    """The number of an item as Surfer writes it: in hexadecimal digits, which are the letters from a to p."""
    return f"{number:x}".translate(str.maketrans("0123456789abcdef", "abcdefghijklmnop"))


@contextmanager
def _with_views(timeline: Timeline, path: str, views: Sequence[str]) -> Iterator[None]:
    """Write views beside the trace `path`, all files or none: they are there when the block has written the trace."""
    with ExitStack() as stack:
        for view in views:
            text = command_file if view.endswith(".sucl") else save_file
            stack.enter_context(whole_file(view)).write(text(timeline, os.path.basename(path)))
        yield


#: The state and the job of a row where it has no span.
NONE = "-"
#: So many events become text at once.
_CHUNK = 2**15
Numbers = NDArray[np.int64]
_BUSY = STATES.index("busy")


def _plain(text: str) -> str:
    """A text that every VCD reader takes as one word: ASCII, no white space, no `$`."""
    word = "".join("_" if char.isspace() or char in "$\\" else char for char in text)
    return "".join(char if "!" <= char <= "~" else "?" for char in word) or NONE


def comment(timeline: Timeline) -> str:
    """One line about a timeline: the meaning of time, the chip, the size of the run, and which part of it this is."""
    size = timeline.shown_text or f"{timeline.makespan_cycles:,} cycles"
    return f"1 ns = 1 cycle; chip {_plain(timeline.chip)}, {timeline.frequency_mhz:g} MHz, {size}"


def write_vcd(timeline: Timeline, path: str, views: Sequence[str] = ()) -> None:
    """Write a value change dump."""
    says: dict[str, Any] = {"timescale": "1 ns", "date": "", "version": "lstmsim", "comment": comment(timeline)}
    with _with_views(timeline, path, views), whole_file(path) as file, VCDWriter(file, **says) as writer:
        _emit(timeline, writer, file)


def _emit(timeline: Timeline, writer: VCDWriter, file: IO[str]) -> None:
    variables = []
    for row in timeline.rows:
        variables += [writer.register_var(scope(row), name, "string", init=NONE) for name in ("state", "job")]
        variables.append(writer.register_var(scope(row), "busy", "wire", size=1, init=0))
    values = words(timeline)
    before = np.array([*(f"s{word} " for word in values[:-2]), *values[-2:]], dtype=object)
    behind = np.array([f"{each.ident}\n" for each in variables], dtype=object)
    now, last = 0 if variables else -1, timeline.shown[1]
    for when, event, variable, word in changes(timeline, values):
        cycle = when[event]
        # the head of the file holds the values at cycle 0
        first = int(np.searchsorted(cycle, 1))
        for each, value in zip(variable[:first].tolist(), word[:first].tolist(), strict=True):
            writer.change(variables[each], 0, values[value])
        if first < len(cycle):
            writer.flush()
            text = np.full((len(cycle) - first, 3), "", dtype=object)
            new = np.flatnonzero(np.diff(cycle[first:], prepend=now))
            text[new, 0] = [f"#{each}\n" for each in cycle[first + new].tolist()]
            text[:, 1], text[:, 2] = before[word[first:]], behind[variable[first:]]
            file.write("".join(text.ravel().tolist()))
            now = int(cycle[-1])
    writer.flush()
    file.write(f"#{last}\n" if last > now else "")


def words(timeline: Timeline) -> list[str]:
    """All values that variables have: states, names of jobs, and as the last two 0 and 1 of `busy`."""
    return [*dict.fromkeys([*STATES, NONE, *map(_plain, timeline.jobs)]), "0", "1"]


def changes(timeline: Timeline, values: Sequence[str]) -> Iterator[tuple[Numbers, ...]]:
    """Yield the changes in the order of time, many at once: the cycles of events (of which some change nothing), and of
    each change its event, its variable and the place of the new value in `values`.

    Variables are numbered by rows; each row has state, job and busy.
    """
    row, start, end = timeline.row, timeline.start, timeline.end
    none, off = values.index(NONE), len(values) - 2
    place = {word: number for number, word in enumerate(values[:off])}
    jobs = np.array([*(place[_plain(name)] for name in timeline.jobs), none])
    gap = np.ones(len(timeline), dtype=bool)
    gap[:-1] = (row[1:] != row[:-1]) | (start[1:] != end[:-1])
    # each span is an event, and so is the end of one with a gap behind it
    span = np.repeat(np.arange(len(timeline)), 1 + gap)
    over = np.diff(span, prepend=-1) == 0
    when, where = np.where(over, end[span], start[span]), row[span]
    state = np.where(over, none, timeline.state[span])
    new = np.stack([state, np.where(over, none, jobs[timeline.job[span]]), off + (state == _BUSY)], axis=1)
    changed = np.ones(new.shape, dtype=bool)
    changed[1:] = new[1:] != new[:-1]
    first = np.diff(where, prepend=-1) != 0
    changed[first] = new[first] != (none, none, off)
    order = np.argsort(when, kind="stable")
    for part in range(0, len(order), _CHUNK):
        some = order[part : part + _CHUNK]
        event, variable = np.nonzero(changed[some])
        at = some[event]
        yield when[some], event, 3 * where[at] + variable, new[at, variable]


def fst_library(_: object, path: str) -> Any:
    """GTKWave's library; `InputError` if it is not installed."""
    try:
        import pylibfst
    except ImportError:
        sentence = (
            "writing FST needs the extra: pip install 'lstmsim[fst]' (Linux); or write .vcd and convert it by vcd2fst"
        )
        raise InputError(Mistake(path, sentence)) from None
    return pylibfst


def write_fst(timeline: Timeline, path: str, views: Sequence[str] = ()) -> None:
    """Write the variables of `write_vcd`. Equal timelines give equal bytes."""
    library = fst_library(timeline, path)
    # GTKWave's library opens files itself, by name: it writes into a folder of its own, and the whole file is moved.
    with tempfile.TemporaryDirectory(prefix="lstmsim-") as folder:
        made = os.path.join(folder, "trace.fst")
        _write(library, timeline, made)
        _require_whole(library, made, path, timeline.shown[1])
        with (
            _with_views(timeline, path, views),
            whole_file(path, "wb") as file,
            readable_file(made, kept=False) as source,
        ):
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
        _emit_fst(library.lib, writer, timeline, variables)
    finally:
        library.lib.fstWriterClose(writer)


def _variables(lib: Any, writer: Any, timeline: Timeline) -> list[int]:
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
    return [handle for row in timeline.rows for handle in handles[row]]


def _row(lib: Any, writer: Any, row: Row) -> tuple[int, int, int]:
    lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, scope(row).split(".")[-1].encode(), b"")
    text, wire, none = lib.FST_VT_GEN_STRING, lib.FST_VT_VCD_WIRE, lib.FST_VD_IMPLICIT
    state = lib.fstWriterCreateVar(writer, text, none, 0, b"state", 0)
    job = lib.fstWriterCreateVar(writer, text, none, 0, b"job", 0)
    busy = lib.fstWriterCreateVar(writer, wire, none, 1, b"busy", 0)
    lib.fstWriterSetUpscope(writer)
    return state, job, busy


def _emit_fst(lib: Any, writer: Any, timeline: Timeline, variables: list[int]) -> None:
    """Write all values at cycle 0, then each value that differs from the one before. All words are ASCII."""
    text, bit = lib.fstWriterEmitVariableLengthValueChange, lib.fstWriterEmitValueChange
    lib.fstWriterEmitTimeChange(writer, 0)
    for number, handle in enumerate(variables):
        if number % 3 < 2:
            text(writer, handle, NONE.encode(), len(NONE))
        else:
            bit(writer, handle, b"0")
    now, values = 0, words(timeline)
    coded = [word.encode() for word in values]
    for when, event, variable, word in changes(timeline, values):
        # the file also has the cycles in which no value changes
        cycles = iter(np.unique(when[when > now]).tolist())
        for cycle, each, place in zip(when[event].tolist(), variable.tolist(), word.tolist(), strict=True):
            while cycle > now:
                lib.fstWriterEmitTimeChange(writer, now := next(cycles))
            if each % 3 < 2:
                text(writer, variables[each], coded[place], len(coded[place]))
            else:
                bit(writer, variables[each], coded[place])
        for now in cycles:
            lib.fstWriterEmitTimeChange(writer, now)
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
