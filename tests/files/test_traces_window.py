"""Windows keep the run's cycles and are read back whole; traces too large are refused before they are written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.analysis.files import LIMIT_BYTES, READABLE, SUFFIXES, estimated_bytes, load_trace, save_trace
from lstmsim.analysis.timeline import Row, Timeline, parse_window, window
from lstmsim.base.errors import InputError
from tests.strategies import examples
from tests.timelines import BUSY, assert_equal, busy_machine, small, timeline_from, timelines

NEEDS = {".fst": "pylibfst", ".pftrace": "perfetto"}


def cycles(timeline: Timeline) -> dict[tuple[int, int], tuple[int, ...]]:
    """What each row does in each cycle."""
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    spans = zip(*(column.tolist() for column in columns), strict=True)
    return {(row, cycle): tuple(what) for row, start, end, *what in spans for cycle in range(start, end)}


@given(st.integers(0, 139), st.integers(1, 150))
@settings(max_examples=examples(12), deadline=None)
def test_a_window_shows_what_happened_in_its_cycles_and_nothing_else(start, length):
    whole, part = small(), window(small(), start, start + length)
    inside = {key: what for key, what in cycles(whole).items() if start <= key[1] < start + length}
    assert cycles(part) == inside
    assert part.makespan_cycles == whole.makespan_cycles
    assert (part.end > part.start).all()


def test_the_whole_run_is_a_window_of_itself_and_windows_have_windows():
    assert_equal(window(small(), 0), small())
    assert_equal(window(small(), 0, 10**9), small())
    assert_equal(window(window(small(), 10, 100), 30, 60), window(small(), 30, 60))


@given(timelines(), st.data())
@settings(max_examples=examples(10), deadline=None)
def test_a_saved_window_comes_back_equal(tmp_path_factory, timeline, data):
    start = data.draw(st.integers(0, timeline.makespan_cycles - 1))
    part = window(timeline, start, data.draw(st.integers(start + 1, timeline.makespan_cycles)))
    folder = tmp_path_factory.mktemp("window")
    for suffix in READABLE:
        save_trace(part, folder / ("a" + suffix))
        assert_equal(load_trace(folder / ("a" + suffix)), part)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_takes_a_window(tmp_path, suffix):
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])
    save_trace(window(busy_machine(2), 100, 300), tmp_path / ("a" + suffix))
    assert (tmp_path / ("a" + suffix)).stat().st_size > 100


def windowed(folder: Path) -> tuple[Path, dict]:
    path = folder / "a.json"
    save_trace(window(small(), 30, 100), path)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.json", "column-npu-64k (1 ns = 1 cycle), cycles 30 to 100 of 140"),
        ("a.csv", "# window: [30,100]"),
        ("a.vcd", "260 MHz, cycles 30 to 100 of 140 $end"),
        ("a.gtkw", "[*] lstmsim: 1 ns = 1 cycle, cycles 30 to 100 of 140"),
        ("a.kanata", "this log: cycles 30 to 100 of 140"),
    ],
)
def test_a_window_says_in_every_format_that_it_is_one(tmp_path, name, said):
    for folder, timeline in (("part", window(small(), 30, 100)), ("whole", small())):
        (tmp_path / folder).mkdir()
        save_trace(timeline, tmp_path / folder / name.replace(".gtkw", ".vcd"))
        assert (said in (tmp_path / folder / name).read_text()) == (folder == "part")


def test_packed_formats_say_what_the_texts_say():
    from lstmsim.analysis.files.perfetto import group_name
    from lstmsim.analysis.files.waves import comment

    part = window(small(), 30, 100)
    assert group_name(part).endswith(", cycles 30 to 100 of 140"), "of .json and .pftrace"
    assert comment(part).endswith(", cycles 30 to 100 of 140"), "of .vcd and .fst"


def test_a_window_of_units_alone_is_one_too(tmp_path):
    """No main unit names its cycles, so nothing but the window itself tells which they are."""
    bare = timeline_from([(0, 0, 90, BUSY, 0, 0, 0)], (Row(0, "tail"),), ("a",), 140)
    part = window(bare, 30, 100)
    assert part.shown == (30, 100)
    for suffix in READABLE:
        save_trace(part, tmp_path / f"a{suffix}")
        assert_equal(load_trace(tmp_path / f"a{suffix}"), part)


def test_a_window_says_so_in_words_and_as_data():
    part = window(small(), 30, 100)
    assert part.to_text().startswith("column-npu-64k: cycles 30 to 100 of 140 cycles, ")
    assert part.to_dict()["window"] == [30, 100]
    assert small().to_dict()["window"] is None


def test_a_window_says_so_and_the_whole_run_does_not(tmp_path):
    _, whole = windowed(tmp_path)
    assert whole["otherData"]["window"] == [30, 100]
    assert whole["otherData"]["makespan_cycles"] == 140
    counters = [1000 * event["ts"] for event in whole["traceEvents"] if event["ph"] == "C"]
    assert (min(counters), max(counters)) == (30, 100)
    save_trace(small(), tmp_path / "b.json")
    assert "window" not in json.loads((tmp_path / "b.json").read_text())["otherData"]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([30, 101], "core 0 array has spans for 70 of 71 cycles, perhaps cut short"),
        ([29, 100], "core 0 array has spans for 70 of 71 cycles, perhaps cut short"),
        ([30, 99], "expected a part of 30 to 99"),
        ([31, 100], "expected a part of 31 to 100"),
        ([30, 141], r"window: expected \[start, end\] within 0 to 140"),
        ([50, 50], "window: expected"),
        ([-1, 100], "window: expected"),
        ([30], "window: expected"),
        ("30:100", "window: expected"),
        (None, "window: expected"),
    ],
)
def test_a_window_that_the_file_does_not_hold_is_refused(tmp_path, value, reason):
    path, whole = windowed(tmp_path)
    whole["otherData"]["window"] = value
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError, match=reason):
        load_trace(path)


def test_a_window_without_its_fact_is_cut_short(tmp_path):
    path, whole = windowed(tmp_path)
    del whole["otherData"]["window"]
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError, match="core 0 array has spans for 70 of 140 cycles, perhaps cut short"):
        load_trace(path)


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (-1, 10, "must start at a cycle of the timeline, 0 to 139, got -1"),
        (140, 150, "must start at a cycle of the timeline, 0 to 139, got 140"),
        (10, 10, "must end after its start 10, got 10"),
        (10, 5, "must end after its start 10, got 5"),
    ],
)
def test_bad_windows_are_refused(start, end, reason):
    with pytest.raises(InputError, match=reason):
        window(small(), start, end)


@pytest.mark.parametrize("text", ["", ":", "5", "a:b", "1:2:3", "-1:5", "1.5:2", "9" * 30 + ":", "1_:2", "٣:٤"])
def test_what_is_no_window_is_refused(text):
    with pytest.raises(InputError, match="window: expected START:END in cycles, like 1000:2000, got"):
        parse_window(text)


@pytest.fixture(scope="module")
def big() -> Timeline:
    return busy_machine(4, 4, 16, 1000)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_estimates_are_near(big, tmp_path, suffix):
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])
    assert len(big) > 10_000
    path = tmp_path / ("a" + suffix)
    save_trace(big, path)
    assert 1 / 1.5 < path.stat().st_size / estimated_bytes(big, suffix) < 1.5


def long(spans: int) -> Timeline:
    """A timeline of so many spans that share their memory."""
    none = np.broadcast_to(np.zeros(1, dtype=np.int64), spans)
    return Timeline(
        "chip", 260.0, 1, (), (), row=none, start=none, end=none, state=none, job=none, layer=none, step=none
    )


def test_gigabytes_are_refused_with_what_helps(tmp_path):
    assert LIMIT_BYTES == 10**9
    with pytest.raises(InputError) as caught:
        save_trace(long(15_000_000), tmp_path / "a.json")
    assert str(caught.value) == (
        f"{tmp_path / 'a.json'}: 15,000,000 spans would take about 2.7 GB, the limit is 1 GB; "
        "cut out a window of cycles, or write .fst (33 MB) or .pftrace (114 MB) or .csv.gz (152 MB)"
    )
    with pytest.raises(InputError, match=r"the limit is 1 GB; cut out a window of cycles$"):
        save_trace(long(10**9), tmp_path / "a.fst")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_limit_is_the_callers(tmp_path, suffix):
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])
    path = tmp_path / ("a" + suffix)
    with pytest.raises(InputError, match="18 spans would take about"):
        save_trace(small(), path, limit_bytes=10)
    save_trace(small(), path, limit_bytes=None)
    assert path.exists()
