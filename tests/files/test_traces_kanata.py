"""Kanata logs, read by the format's rules: cycles go forward, stages of a lane follow each other, all is retired."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from lstmsim.analysis.files import kanata, save_trace
from lstmsim.analysis.timeline import STATES, Timeline, window
from lstmsim.base.errors import InputError
from tests.timelines import BUSY, busy_machine, small


@dataclass
class Operation:
    """One row of the viewer."""

    thread: int
    first: int
    label: str = ""
    detail: str = ""
    last: int | None = None
    open: dict[str, tuple[str, int]] = field(default_factory=dict)
    stages: dict[str, list[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(list))


def read(path: Path) -> list[Operation]:
    """The operations, read as docs/kanata-log-format.md of Konata says; `C=` is read past, as Konata does."""
    head, *lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert head == "Kanata\t0004"
    now, operations, retired = 0, [], 0
    for line in lines:
        match line.split("\t"):
            case ["C=", "0"]:
                assert not operations
            case ["C", cycles]:
                assert int(cycles) > 0
                now += int(cycles)
            case ["I", number, _, thread]:
                assert int(number) == len(operations)
                operations.append(Operation(int(thread), now))
            case ["L", number, "0", text]:
                operations[int(number)].label += text
            case ["L", number, "1", text]:
                operations[int(number)].detail += text
            case ["S", number, lane, stage]:
                assert operations[int(number)].last is None
                assert lane not in operations[int(number)].open, "stages of a lane overlap"
                operations[int(number)].open[lane] = (stage, now)
            case ["E", number, lane, stage]:
                name, start = operations[int(number)].open.pop(lane)
                assert name == stage
                operations[int(number)].stages[lane].append((start, now, stage))
            case ["R", number, order, "0"]:
                assert operations[int(number)].last is None
                assert int(order) == retired
                operations[int(number)].last, retired = now, retired + 1
            case _:
                raise AssertionError(line)
    assert all(each.last is not None and not each.open for each in operations)
    return operations


def expected(timeline: Timeline) -> dict[tuple[int, str], set[tuple[str, int, int, str]]]:
    """By job and label the stages as (lane, start, end, name)."""
    units = [row.kind for row in timeline.rows if row.kind not in ("array", "thread")]
    lanes = {"array": "0", **{kind: str(2 + place) for place, kind in enumerate(dict.fromkeys(units))}}
    stages = defaultdict(set)
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    for row, start, end, state, job, layer, step in zip(*(column.tolist() for column in columns), strict=True):
        kind = timeline.rows[row].kind
        label = f"{timeline.jobs[job]}, layer {layer}, step {step}"
        if kind != "thread" and state == BUSY:
            stages[job, label].add((lanes[kind], start, end, kind))
        elif kind == "thread" and state != BUSY and STATES[state] not in ("drain", "idle"):
            stages[job, label].add(("1", start, end, STATES[state]))
    return stages


@pytest.mark.parametrize("timeline", [small(), busy_machine(2, 2, 3, 40), window(busy_machine(1, 2, 4, 60), 100, 400)])
def test_every_step_is_a_row_with_its_stages(tmp_path, timeline):
    save_trace(timeline, tmp_path / "a.kanata")
    operations = read(tmp_path / "a.kanata")
    stages = {
        (each.thread, each.label): {(lane, *stage) for lane, stages in each.stages.items() for stage in stages}
        for each in operations
    }
    assert len(stages) == len(operations)
    assert stages == expected(timeline)
    for each in operations:
        times = [time for stages in each.stages.values() for stage in stages for time in stage[:2]]
        assert (each.first, each.last) == (min(times), max(times))
        detail = f"cycles {each.first:,} to {each.last:,} ({each.last - each.first:,})"
        assert each.detail == detail + (f"; this log: {timeline.shown_text}" if timeline.window else "")
        for stages in each.stages.values():
            assert all(one[1] <= other[0] for one, other in pairwise(stages))
    assert all(one.first <= other.first for one, other in pairwise(operations))


def test_a_name_with_tabs_stays_on_its_line(tmp_path):
    timeline = small()
    object.__setattr__(timeline, "jobs", ("a\tb\nc", "é"))
    save_trace(timeline, tmp_path / "a.kanata")
    assert {each.label.split(",")[0] for each in read(tmp_path / "a.kanata")} == {"a b c", "é"}


def test_more_rows_than_anyone_reads_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(kanata, "MAX_OPERATIONS", 3)
    save_trace(window(small(), 0, 80), tmp_path / "a.kanata")
    assert len(read(tmp_path / "a.kanata")) == 3
    with pytest.raises(InputError, match=r"b\.kanata: a Kanata log would have 4 rows, .* at most 3 .* window"):
        save_trace(small(), tmp_path / "b.kanata")
    assert not (tmp_path / "b.kanata").exists()
