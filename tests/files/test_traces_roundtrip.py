"""What is written is what is read, for every timeline; what was not written by us is refused with a sentence."""

from __future__ import annotations

import csv
import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.analysis.files import SUFFIXES, load_trace, perfetto, save_trace
from lstmsim.analysis.files import csv as table
from lstmsim.base.errors import InputError
from tests.strategies import examples
from tests.timelines import assert_equal, busy_machine, small, timelines

READABLE = (".json", ".json.gz", ".csv", ".csv.gz")
#: Packages without which a format cannot be written.
NEEDS = {".fst": "pylibfst", ".pftrace": "perfetto"}


@given(timelines())
@settings(max_examples=examples(15), deadline=None)
def test_a_trace_comes_back_equal(timeline):
    with tempfile.TemporaryDirectory() as folder:
        for suffix in READABLE:
            path = Path(folder, "trace" + suffix)
            save_trace(timeline, path)
            assert_equal(load_trace(path), timeline)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_equal_timelines_give_equal_bytes(tmp_path, suffix):
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])
    saved = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        save_trace(busy_machine(2, 2, 3, 30), tmp_path / folder / ("trace" + suffix))
        saved.append({path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()})
    assert saved[0] == saved[1]
    assert "trace" + suffix in saved[0]


@pytest.mark.parametrize("name", ["trace.JSON", "trace.Csv", "trace.json.GZ", "trace.csv.GZ"])
def test_suffixes_in_capitals_are_understood(tmp_path, name):
    save_trace(small(), tmp_path / name)
    assert_equal(load_trace(tmp_path / name), small())


@pytest.mark.parametrize("name", ["trace", "trace.gz", "trace.txt", "json"])
@pytest.mark.parametrize(
    ("use", "more"), [(load_trace, "$"), (lambda path: save_trace(small(), path), r", \.vcd")], ids=["load", "save"]
)
def test_other_suffixes_are_refused_with_those_that_serve(tmp_path, name, use, more):
    with pytest.raises(InputError, match=r"expected it to end in \.json, \.json\.gz, \.csv, \.csv\.gz" + more):
        use(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", sorted(set(SUFFIXES) - set(READABLE)))
def test_what_cannot_be_read_is_refused_with_what_can(suffix):
    with pytest.raises(InputError, match=r"cannot be read back: \.json, \.json\.gz, \.csv and \.csv\.gz can"):
        load_trace("trace" + suffix)


@pytest.mark.parametrize("suffix", READABLE)
@given(data=st.data())
@settings(max_examples=examples(24), deadline=None)
def test_damage_is_an_input_error_or_harmless(suffix, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace" + suffix)
        save_trace(small(), path)
        content = bytearray(path.read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["cut", "change", "insert"])):
            case "cut":
                content = content[:at]
            case "change":
                content[at] = data.draw(st.integers(0, 255))
            case _:
                content[at:at] = data.draw(st.sampled_from([b"\x00", b"-", b"9" * 30, b"\n", b'"', b"\xff", b"NaN"]))
        path.write_bytes(content)
        refusal = None
        try:
            load_trace(path)
        except InputError as error:
            refusal = error
        if refusal is not None:
            assert refusal.mistakes[0].location == str(path)
            assert len(str(refusal).splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cut short"),
        (b"[]", "not a trace that lstmsim wrote"),
        (b"7", "not a trace that lstmsim wrote"),
        (
            b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "a", "pid": 1, "tid": 1}]}',
            "not a trace that lstmsim",
        ),
        (b'[{"ph": "X", "ts": 1}]', "not a trace that lstmsim wrote"),
        (b"[" * 100_000, "cut short"),
        (b'{"otherData": 1' + b"0" * 5000 + b"}", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"\x1f\x8b\x08not gzip", "damaged gzip"),
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_foreign_json_is_refused(tmp_path, content, reason, name):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=reason):
        load_trace(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "expected the columns"),
        (b"a,b\n1,2\n", "expected the columns"),
        (b"# hello\n", "expected `# key: value`"),
        (b"\xff\xfe,", "not UTF-8"),
        (b"x" * 200_000, "not a trace|not a span"),
    ],
)
def test_foreign_csv_is_refused(tmp_path, content, reason):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=reason):
        load_trace(tmp_path / "a.csv")


FACTS = [
    ("schema", "lstmsim/trace/99", "expected schema"),
    ("chip", 5, "chip"),
    ("frequency_mhz", 0, "frequency_mhz"),
    ("frequency_mhz", float("nan"), "frequency_mhz"),
    ("frequency_mhz", True, "frequency_mhz"),
    ("makespan_cycles", -1, "makespan_cycles"),
    ("makespan_cycles", 1.5, "makespan_cycles"),
    ("makespan_cycles", 100, "expected a part of 0 to 100"),
    ("makespan_cycles", 141, "core 0 array has spans for 140 of 141 cycles, perhaps cut short"),
    ("spans", 19, "holds 18 of 19 spans, perhaps cut short"),
    ("rows", [[0, "array", 0]], "row is"),
    ("rows", [[0, "lane", 0]] * 4, "rows"),
    ("rows", [[0, "array", 0]] * 4, "twice"),
    ("jobs", ["a"], "job is 1"),
    ("jobs", "ab", "jobs"),
]


@pytest.mark.parametrize(("key", "value", "reason"), FACTS)
def test_facts_that_cannot_be_are_named(tmp_path, key, value, reason):
    path = tmp_path / "a.json"
    save_trace(small(), path)
    whole = json.loads(path.read_text())
    whole["otherData"][key] = value
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError, match=reason):
        load_trace(path)


def test_overlapping_spans_are_refused(tmp_path):
    path = tmp_path / "a.json"
    save_trace(small(), path)
    whole = json.loads(path.read_text())
    next(event for event in whole["traceEvents"] if event["ph"] == "X")["args"]["cycles"] += 1
    path.write_text(json.dumps(whole))
    with pytest.raises(InputError, match="two spans of core 0 array overlap at cycle 40"):
        load_trace(path)


def test_a_table_cut_at_any_line_end_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    save_trace(small(), path)
    lines = path.read_text().splitlines(keepends=True)
    for kept in range(len(lines)):
        path.write_text("".join(lines[:kept]))
        with pytest.raises(InputError, match=r"cut short|not a trace that lstmsim wrote"):
            load_trace(path)


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
@pytest.mark.parametrize("lost", ["core 0 array", "core 0 tail"])
def test_a_trace_that_lacks_a_span_is_refused(tmp_path, suffix, lost):
    timeline = small()
    path = tmp_path / ("a" + suffix)
    save_trace(timeline, path)
    pack, unpack = (gzip.compress, gzip.decompress) if suffix == ".json.gz" else (bytes, bytes)
    whole = json.loads(unpack(path.read_bytes()))
    events = whole["traceEvents"]
    track = 1000 + [row.name for row in timeline.rows].index(lost)
    events.remove(next(each for each in events if each["ph"] == "X" and each["tid"] == track))
    path.write_bytes(pack(json.dumps(whole).encode()))
    with pytest.raises(InputError, match="holds 17 of 18 spans, perhaps cut short"):
        load_trace(path)
    # A program between us and the user may drop facts that it does not know.
    del whole["otherData"]["spans"]
    path.write_bytes(pack(json.dumps(whole).encode()))
    if lost == "core 0 tail":
        assert len(load_trace(path)) == 17
    else:
        with pytest.raises(InputError, match="core 0 array has spans for 100 of 140 cycles, perhaps cut short"):
            load_trace(path)


def test_the_order_of_events_in_a_file_does_not_matter(tmp_path):
    path = tmp_path / "a.json"
    save_trace(small(), path)
    whole = json.loads(path.read_text())
    whole["traceEvents"].reverse()
    path.write_text(json.dumps(whole, indent=1))
    assert_equal(load_trace(path), small())


@pytest.mark.slow
def test_a_packed_table_that_unpacks_to_too_much_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "LIMIT_BYTES", 2**20)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"# chip: 1\n" * 2**18))
    with pytest.raises(InputError, match="more than 1 MB"):
        load_trace(tmp_path / "a.csv.gz")


def test_a_gzip_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(perfetto, "LIMIT_BYTES", 2**20)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b" " * 2**24))
    with pytest.raises(InputError, match="more than 1 MB"):
        load_trace(tmp_path / "a.json.gz")


def test_csv_is_a_plain_table_below_its_head(tmp_path):
    path = tmp_path / "a.csv"
    save_trace(small(), path)
    lines = [line for line in path.read_text().splitlines() if not line.startswith("# ")]
    table = list(csv.DictReader(lines))
    assert len(table) == len(small())
    assert all(int(entry["end"]) - int(entry["start"]) == int(entry["cycles"]) for entry in table)
    assert {entry["job"] for entry in table if entry["state"] == "busy"} == set(small().jobs)
    assert [entry["row"] for entry in table] == [small().rows[number].name for number in small().row]


@pytest.mark.parametrize("suffix", [".json", ".csv", ".json.gz", ".csv.gz"])
def test_the_row_of_a_memory_comes_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"trace{suffix}"
    save_trace(small(memory=True), path)
    assert_equal(load_trace(path), small(memory=True))
    assert load_trace(path).rows[-1].name == "memory"
