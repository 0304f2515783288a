"""Fast signal traces, read again by GTKWave's library: the same values at the same cycles as in the timeline."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from lstmsim.analysis.files import save_trace
from lstmsim.analysis.files import waves as fst
from lstmsim.analysis.timeline import STATES, Timeline, window
from lstmsim.base.errors import InputError, LstmsimError
from tests.strategies import examples
from tests.timelines import BUSY, busy_machine, small, timelines

library = pytest.importorskip("pylibfst")


def read(path: Path) -> tuple[dict[str, list[tuple[int, str]]], int]:
    """By variable its changes as (cycle, value), and the last cycle."""
    reader = library.lib.fstReaderOpen(os.fsencode(path))
    assert reader != library.ffi.NULL
    try:
        _, signals = library.get_scopes_signals2(reader)
        names = {handle: signal.name for handle, signal in signals.by_handle.items()}
        changes: dict[str, list[tuple[int, str]]] = {name: [] for name in names.values()}

        def fixed(_: object, cycle: int, handle: int, value: object) -> None:
            changes[names[handle]].append((cycle, library.string(value)))

        def text(_: object, cycle: int, handle: int, value: object, length: int) -> None:
            content = bytes(library.ffi.buffer(value, length)) if length else b""
            changes[names[handle]].append((cycle, content.decode()))

        library.lib.fstReaderSetFacProcessMaskAll(reader)
        library.fstReaderIterBlocks2(reader, fixed, text, None)
        return changes, library.lib.fstReaderGetEndTime(reader)
    finally:
        library.lib.fstReaderClose(reader)


def plain(name: str) -> str:
    """A job's name as one word of ASCII."""
    word = "".join("_" if char.isspace() or char in "$\\" else char if "!" <= char <= "~" else "?" for char in name)
    return word or "-"


def expected(timeline: Timeline) -> dict[str, list[tuple[int, str]]]:
    """What a row's variables are from which cycle on, told by its spans: none before, between and after them."""
    changes = {}
    for number, row in enumerate(timeline.rows):
        values = {0: ("-", "-", "0")}
        for span in np.flatnonzero(timeline.row == number):
            job, state = timeline.job[span], timeline.state[span]
            name = plain(timeline.jobs[job]) if job >= 0 else "-"
            values[int(timeline.start[span])] = (STATES[state], name, str(int(state == BUSY)))
            values[int(timeline.end[span])] = ("-", "-", "0")
        place = f"lstmsim.core{row.core}.{row.kind}{row.index if row.kind == 'thread' else ''}"
        for index, variable in enumerate(("state", "job", "busy")):
            changes[f"{place}.{variable}"] = joined([(cycle, each[index]) for cycle, each in values.items()])
    return changes


def joined(values: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The value that holds from each cycle on, without those that change nothing."""
    last = dict(values)
    kept: list[tuple[int, str]] = []
    for cycle, value in sorted(last.items()):
        if not kept or kept[-1][1] != value:
            kept.append((cycle, value))
    return kept


@given(timelines())
@settings(max_examples=examples(12), deadline=None)
def test_every_variable_changes_as_the_timeline_says(timeline):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.fst")
        save_trace(timeline, path)
        changes, last = read(path)
    assert {name: joined(values) for name, values in changes.items()} == expected(timeline)
    assert last == timeline.makespan_cycles


def test_a_window_ends_where_it_ends(tmp_path):
    save_trace(window(small(), 30, 100), tmp_path / "a.fst")
    changes, last = read(tmp_path / "a.fst")
    assert last == 100
    assert [value for cycle, value in joined(changes["lstmsim.core0.array.state"]) if cycle < 30] == ["-"]


def test_the_file_has_no_date_but_a_comment(tmp_path):
    save_trace(busy_machine(), tmp_path / "a.fst")
    reader = library.lib.fstReaderOpen(os.fsencode(tmp_path / "a.fst"))
    try:
        assert library.string(library.lib.fstReaderGetDateString(reader)).strip() == "-"
        assert library.lib.fstReaderGetTimescale(reader) == -9
    finally:
        library.lib.fstReaderClose(reader)


def test_a_file_that_the_library_left_short_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(fst, "_emit_fst", lambda *_: None)
    with pytest.raises(LstmsimError, match="nothing was written"):
        save_trace(small(), tmp_path / "a.fst")
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_extra_and_another_way_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pylibfst", None)
    with pytest.raises(InputError, match=r"needs the extra: pip install 'lstmsim\[fst\]' .*vcd2fst"):
        save_trace(small(), tmp_path / "a.fst")
    assert list(tmp_path.iterdir()) == []
