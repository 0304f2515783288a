"""Traces as their viewers see them: Perfetto's rules for slices, and value changes read by another reader."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from vcd.reader import TokenKind, tokenize

from lstmsim.analysis.files import SUFFIXES, save_trace
from lstmsim.analysis.files.perfetto import slice_names, track_names
from lstmsim.analysis.timeline import Timeline, window
from lstmsim.base.errors import InputError, LstmsimError
from tests.strategies import examples
from tests.timelines import BUSY, busy_machine, small, timelines

#: Packages without which a format cannot be written.
NEEDS = {".fst": "pylibfst", ".pftrace": "perfetto"}


def saved(timeline: Timeline, suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace" + suffix)
        save_trace(timeline, path)
        return path.read_bytes()


def events(timeline: Timeline) -> list[dict]:
    return json.loads(saved(timeline, ".json"), parse_float=Decimal)["traceEvents"]


def busy_cycles(timeline: Timeline) -> dict[str, int]:
    cycles = {}
    for number, row in enumerate(timeline.rows):
        mine = (timeline.row == number) & (timeline.state == BUSY)
        cycles[row.name] = int((timeline.end - timeline.start)[mine].sum())
    return cycles


@given(timelines())
@settings(max_examples=examples(12), deadline=None)
def test_slices_of_a_track_follow_each_other_and_add_up(timeline):
    tracks, busy, names = defaultdict(list), defaultdict(int), {}
    for event in events(timeline):
        track = (event["pid"], event.get("tid"))
        if event["ph"] == "X":
            start, length = (1000 * event[key] for key in ("ts", "dur"))
            assert start == start.to_integral_value()
            assert (start, length) == (event["args"]["cycle"], event["args"]["cycles"])
            tracks[track].append((start, start + length))
            busy[track] += int(length) * (event["cat"] == "busy")
        elif event["name"] == "thread_name":
            names[track] = event["args"]["name"]
    for spans in tracks.values():
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
    expected = dict(zip(track_names(timeline.rows), busy_cycles(timeline).values(), strict=True))
    assert {names[track]: busy[track] for track in names} == expected


def test_every_slice_is_on_a_named_track_of_the_one_process():
    timeline = busy_machine(3, 2, 4, 20)
    listed = events(timeline)
    named = {(event["pid"], event["tid"]) for event in listed if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in listed if event["ph"] == "X"} <= named
    assert len(named) == len(timeline.rows)
    processes = {event["args"]["name"] for event in listed if event["name"] == "process_name"}
    # Viewers open a process if it is the only one.
    assert processes == {f"{timeline.chip} (1 ns = 1 cycle)"}
    assert {event["args"]["name"] for event in listed if event["name"] == "thread_name"} == {
        row.name for row in timeline.rows
    }


@pytest.mark.parametrize("cores", [1, 3])
def test_counters_integrate_to_the_busy_cycles(cores):
    timeline = busy_machine(cores, 2, 4, 50)
    counters = defaultdict(list)
    for event in events(timeline):
        if event["ph"] == "C":
            counters[event["name"].partition(" busy")[0]].append((1000 * event["ts"], event["args"]["busy %"]))
    assert len(counters) == (1 if cores == 1 else cores + 1)
    totals = {}
    for process, values in counters.items():
        assert values[-1] == (timeline.makespan_cycles, 0)
        totals[process] = float(sum(value / 100 * (then[0] - now) for (now, value), then in pairwise(values)))
    busy = busy_cycles(timeline)
    arrays = [busy[f"core {core} array"] for core in range(cores)]
    expected = {f"core {core} array": cycles for core, cycles in enumerate(arrays)} | {"all arrays": np.mean(arrays)}
    expected = expected if cores > 1 else {"array": arrays[0]}
    assert totals == pytest.approx(expected, abs=0.001 * timeline.makespan_cycles)


def test_the_trace_states_its_time_and_facts():
    other = json.loads(saved(small(), ".json"))["otherData"]
    assert other["schema"] == "lstmsim/trace/1"
    assert other["time"] == "1 ns = 1 cycle"
    assert (other["chip"], other["frequency_mhz"], other["makespan_cycles"]) == ("column-npu-64k", 260.0, 140)


def test_jobs_keep_apart_without_their_digits():
    jobs = tuple(f"lstm-512 #{number}" for number in range(100))
    bare = {"".join(char for char in name if not char.isdigit()) for name in slice_names(jobs)}
    assert len(bare) == 100
    stalls = {event["name"] for event in events(small()) if event["ph"] == "X" and event["cat"] != "busy"}
    waits = {
        "stall: hazard",
        "stall: input",
        "stall: backpressure",
        "stall: dispatch",
        "switch",
        "drain",
        "idle",
        "ready",
    }
    assert stalls == waits


def test_packed_and_plain_traces_have_the_same_text():
    assert gzip.decompress(saved(small(), ".json.gz")) == saved(small(), ".json")


def with_scopes(content: bytes) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The tokens of a VCD, each with the scopes in which it stands; by the other half of the VCD library."""
    scopes: list[str] = []
    for token in tokenize(io.BytesIO(content)):
        if token.kind == TokenKind.SCOPE:
            scopes.append(token.scope.ident)
        elif token.kind == TokenKind.UPSCOPE:
            scopes.pop()
        yield token, tuple(scopes)


def read_vcd(content: bytes) -> tuple[dict[str, int], int, list[str]]:
    """Busy cycles by row, the last time stamp, and the states seen."""
    names, busy, since, states, now = {}, defaultdict(int), {}, [], 0
    for token, scopes in with_scopes(content):
        match token.kind:
            case TokenKind.VAR:
                names[token.var.id_code] = (*scopes[1:], token.var.reference)
            case TokenKind.CHANGE_TIME:
                assert token.time_change >= now
                now = token.time_change
            case TokenKind.CHANGE_SCALAR:
                code, value = token.scalar_change.id_code, token.scalar_change.value
                if value == "1":
                    since[code] = now
                elif code in since:
                    busy[code] += now - since.pop(code)
            case TokenKind.CHANGE_STRING:
                states.append(token.string_change.value)
    for code, start in since.items():
        busy[code] += now - start
    return {"/".join(name[:-1]): busy[code] for code, name in names.items() if name[-1] == "busy"}, now, states


@given(timelines())
@settings(max_examples=examples(12), deadline=None)
def test_a_vcd_read_again_has_the_same_busy_cycles(timeline):
    busy, last, _ = read_vcd(saved(timeline, ".vcd"))
    expected = busy_cycles(timeline)
    assert busy == {
        f"core{row.core}/{row.kind}{row.index if row.kind == 'thread' else ''}": expected[row.name]
        for row in timeline.rows
    }
    assert last == timeline.makespan_cycles


def test_a_vcd_names_states_and_jobs_and_its_time():
    content = saved(small(), ".vcd")
    assert b"1 ns = 1 cycle" in content
    assert b"$date" not in content
    assert {"busy", "hazard", "backpressure", "drain", "lstm-512_#0"} <= set(read_vcd(content)[2])


def test_the_save_file_shows_every_row_in_its_cores_group(tmp_path):
    timeline = busy_machine(2, 2, 3, 10)
    save_trace(timeline, tmp_path / "run.vcd")
    text = (tmp_path / "run.gtkw").read_text()
    assert '[dumpfile] "run.vcd"' in text
    assert str(tmp_path) not in text
    assert text.count("-core 0\n") == text.count("-core 1\n") == 2
    for variable in ("state", "job", "busy"):
        assert text.count(f".{variable}\n") == len(timeline.rows)


def test_the_save_file_colours_what_signals_are_and_closes_what_has_no_room(tmp_path):
    save_trace(busy_machine(12, 2, 3, 10), tmp_path / "run.vcd")
    colour, seen, opened = "", {}, []
    for line in (tmp_path / "run.gtkw").read_text().splitlines():
        if line.startswith("[color]"):
            colour = line.split()[1]
        elif line.startswith("+{"):
            seen.setdefault(line.rsplit(".", 1)[1], set()).add(colour)
        elif line.startswith("@"):
            opened.append(int(line[1:], 16))
    assert seen == {"busy": {"4"}, "state": {"2"}, "job": {"7"}}
    groups = [flags for flags in opened if flags & 0x800000]
    # 4 rows of 3 signals a core: ten groups have room
    assert [bool(flags & 0x400000) for flags in groups] == [False] * 10 + [True] * 2


#: The commands that are used, as Surfer's documentation names them, and whether they take a word.
SURFER = {
    **dict.fromkeys(("load_file", "divider_add", "variable_add", "item_focus", "item_set_color"), True),
    **dict.fromkeys(("item_unfocus", "zoom_fit"), False),
}


def test_the_command_file_for_surfer_shows_rows_in_groups_and_colours(tmp_path):
    timeline = busy_machine(12, 2, 3, 10)
    save_trace(timeline, tmp_path / "run.vcd")
    content = (tmp_path / "run.vcd").read_bytes()
    lines = (tmp_path / "run.sucl").read_text().splitlines()
    commands = [line.split() for line in lines if not line.startswith("#")]
    assert all(len(words) == 1 + SURFER[words[0]] for words in commands)
    assert commands[0] == ["load_file", "run.vcd"]
    assert commands[-2:] == [["item_unfocus"], ["zoom_fit"]]
    items, colours, focus = [], {}, None
    for command, *words in commands:
        if command in ("divider_add", "variable_add"):
            items += words
        elif command == "item_focus":
            # hexadecimal digits from a on
            focus = int("".join(f"{ord(letter) - ord('a'):x}" for letter in words[0]), 16)
        elif command == "item_set_color":
            colours.setdefault(items[focus].rpartition(".")[2], set()).add(words[0])
    assert colours == {"busy": {"Green"}, "state": {"Orange"}, "job": {"Violet"}}
    # 4 rows of 3 signals a core: ten cores have room
    assert [each for each in items if "." not in each] == [f"core_{core}" for core in range(10)]
    assert lines[-3] == "# further groups are in the tree of scopes, from core 10 on"
    assert len(items) == 10 * (1 + 12)
    variables = [(token.var, scopes) for token, scopes in with_scopes(content) if token.kind == TokenKind.VAR]
    known = {".".join([*scopes, variable.reference]) for variable, scopes in variables}
    assert {each for each in items if "." in each} <= known


def test_a_name_with_white_space_is_not_loaded_by_the_command_file(tmp_path):
    save_trace(small(), tmp_path / "my run.vcd")
    assert "load_file" not in (tmp_path / "my run.sucl").read_text()


def test_a_save_file_that_is_there_stays(tmp_path):
    (tmp_path / "run.gtkw").write_text("my view")
    save_trace(small(), tmp_path / "run.vcd")
    assert (tmp_path / "run.gtkw").read_text() == "my view"
    assert (tmp_path / "run.sucl").is_file()
    assert (tmp_path / "run.vcd").read_bytes() == saved(small(), ".vcd")


@pytest.mark.parametrize("suffix", [".vcd", ".fst"])
@pytest.mark.parametrize("cycles", [(0, 140), (30, 100)])
def test_the_save_file_opens_at_the_whole_trace(tmp_path, suffix, cycles):
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])
    save_trace(window(small(), *cycles), tmp_path / f"run{suffix}")
    lines = (tmp_path / "run.gtkw").read_text().splitlines()
    assert f'[dumpfile] "run{suffix}"' in lines
    assert f"[timestart] {cycles[0]}" in lines
    width, names, tree = (
        int(next(line for line in lines if line.startswith(f"[{key}]")).split()[1])
        for key in ("size", "signals_width", "sst_width")
    )
    doublings = -float(next(line for line in lines if line.startswith("*")).split()[0][1:])
    # GTKWave draws 2 ** doublings cycles on 200 pixels; the waves have what the other columns leave, less their frames.
    pixels = (cycles[1] - cycles[0]) / 2**doublings * 200
    assert pixels <= width - names - tree - 80
    assert pixels >= (width - names - tree) * 0.85
    shown = {line.split()[-1] for line in lines if "lstmsim.core" in line}
    assert len(shown) == 3 * len(small().rows)


def test_a_folder_in_the_place_of_the_save_file_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "run.gtkw").mkdir()
    with pytest.raises(InputError, match=r"run\.gtkw: is a folder"):
        save_trace(small(), tmp_path / "run.vcd")
    assert [path.name for path in tmp_path.iterdir()] == ["run.gtkw"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_trace_that_fails_half_way_leaves_nothing(tmp_path, monkeypatch, suffix):
    import lstmsim.base.files as files

    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(LstmsimError, match="no space left on the disk"):
        save_trace(small(), tmp_path / ("trace" + suffix))
    assert list(tmp_path.iterdir()) == []
