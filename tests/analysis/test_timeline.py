"""Timelines, windows of time and what is drawn of them: each against a count cycle by cycle."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import run
from lstmsim.analysis.spans import ROW_LIMIT, Spans, busy_windows, covered_cycles, spans_of, window_edges
from lstmsim.analysis.timeline import STATES, Row, Timeline
from lstmsim.model.scenario import Scenario
from tests.strategies import examples, scenarios
from tests.timelines import BUSY, timeline_from, timelines

IDLE = STATES.index("idle")
#: Of a cycle of a row: state, job and, of timelines, layer and step.
Cells = dict[tuple[Row, int], tuple[int, ...]]
#: Few enough cycles to go through them one by one.
SHORT = timelines().filter(lambda timeline: timeline.makespan_cycles <= 100)


def cells_of(drawn: Timeline | Spans) -> Cells:
    """Every cycle of every row; no two spans of a row may have one in common."""
    columns = [drawn.row, drawn.start, drawn.end, drawn.state, drawn.job]
    columns += [drawn.layer, drawn.step] if isinstance(drawn, Timeline) else []
    cells: Cells = {}
    for row, start, end, *what in zip(*(column.tolist() for column in columns), strict=True):
        for cycle in range(start, end):
            assert (drawn.rows[row], cycle) not in cells
            cells[drawn.rows[row], cycle] = tuple(what)
    return cells


@settings(max_examples=examples(15))
@given(scenarios())
def test_a_row_is_busy_where_the_trace_has_issues_and_says_whose(scenario: Scenario) -> None:
    result = run(scenario)
    program, trace, expected = result.program, result.trace, {}
    columns = ("start", "core", "unit", "context", "task", "phase", "iteration", "operation", "count", "cycles")
    for issue in zip(*(trace.issue(name).tolist() for name in columns), strict=True):
        start, core, unit, context, task, number, iteration, operation, count, cycles = issue
        phase = program.tasks[task].phases(program.cores[core].kind)[number]
        own = phase.body.operations[operation]
        what = (BUSY, task, own.place[0], phase.step(iteration, own.ahead))
        rows = [Row(core, program.cores[core].units[unit].name)]
        if unit == program.cores[core].accounted:
            rows.append(Row(core, "thread", context))
        expected |= {(row, start + cycle): what for row in rows for cycle in range(count * cycles)}
    cells = cells_of(result.timeline)
    assert {place: what for place, what in cells.items() if what[0] == BUSY} == expected
    # where it does not work, the array's row says only why
    assert {what[1:] for (row, _), what in cells.items() if row.kind == "array" and what[0] != BUSY} <= {(-1, -1, -1)}


@settings(max_examples=examples(15))
@given(scenarios())
def test_spans_of_a_timeline_are_as_long_as_they_can_be(scenario: Scenario) -> None:
    timeline = run(scenario).timeline
    same = timeline.end[:-1] == timeline.start[1:]
    for column in (timeline.row, timeline.state, timeline.job, timeline.layer, timeline.step):
        same &= column[:-1] == column[1:]
    assert not same.any()
    assert np.all(np.diff(timeline.row) >= 0)


@given(st.integers(0, 50), st.integers(1, 200), st.integers(1, 40))
def test_windows_are_equal_but_for_the_last_and_no_more_than_asked_for(start: int, length: int, windows: int) -> None:
    edges = window_edges(start, start + length, windows).tolist()
    lengths = np.diff(edges).tolist()
    assert (edges[0], edges[-1]) == (start, start + length)
    assert len(lengths) <= windows
    assert len(set(lengths[:-1])) <= 1
    assert 0 < lengths[-1] <= lengths[0]
    # as short as that number of windows allows
    assert lengths[0] == 1 or (lengths[0] - 1) * windows < length


@given(st.sets(st.integers(0, 60), max_size=12), st.sets(st.integers(0, 70), min_size=2, max_size=9))
def test_covered_cycles_are_those_of_a_count(cuts: set[int], edges: set[int]) -> None:
    ends = sorted(cuts)[: len(cuts) // 2 * 2]
    start, end = np.array(ends[::2], dtype=np.int64), np.array(ends[1::2], dtype=np.int64)
    inside = {cycle for one, two in zip(ends[::2], ends[1::2], strict=True) for cycle in range(one, two)}
    places = sorted(edges)
    expected = [len(inside & set(range(one, two))) for one, two in pairwise(places)]
    assert covered_cycles(start, end, np.array(places)).tolist() == expected


@given(SHORT, st.integers(1, 9))
def test_a_core_is_busy_for_the_share_of_a_window_in_which_its_array_is(timeline: Timeline, windows: int) -> None:
    edges = window_edges(0, timeline.makespan_cycles, windows)
    busy = {place for place, what in cells_of(timeline).items() if what[0] == BUSY and place[0].kind == "array"}
    for core, shares in busy_windows(timeline, edges).items():
        counts = [
            sum((Row(core, "array"), cycle) in busy for cycle in range(one, two))
            for one, two in zip(edges.tolist(), edges[1:].tolist(), strict=False)
        ]
        assert shares.tolist() == pytest.approx(
            [each / size for each, size in zip(counts, np.diff(edges), strict=True)]
        )


@pytest.mark.slow
@given(SHORT, st.data())
def test_what_is_drawn_shows_every_cycle_of_the_window_but_the_idle_ones(
    timeline: Timeline, data: st.DataObject
) -> None:
    cuts = st.tuples(*[st.integers(0, timeline.makespan_cycles)] * 2).map(sorted).filter(lambda cut: cut[0] < cut[1])
    low, high = window = data.draw(st.none() | cuts.map(tuple)) or (0, timeline.makespan_cycles)
    cores = data.draw(st.none() | st.sets(st.integers(0, 3)).map(sorted))
    spans = spans_of(timeline, window, cores)
    expected = {
        (row, cycle): (state, job if state == BUSY else -1)
        for (row, cycle), (state, job, *_) in cells_of(timeline).items()
        if low <= cycle < high and state != IDLE and (cores is None or row.core in cores)
    }
    assert cells_of(spans) == expected
    # what touches and looks the same is one
    same = (spans.end[:-1] == spans.start[1:]) & (spans.row[:-1] == spans.row[1:])
    assert not (same & (spans.state[:-1] == spans.state[1:]) & (spans.job[:-1] == spans.job[1:])).any()
    kinds = list(spans.kinds())
    assert sorted(index for *_, indices in kinds for index in indices.tolist()) == list(range(len(spans)))
    assert len({each[:3] for each in kinds}) == len(kinds)
    for row, state, job, indices in kinds:
        assert {*spans.row[indices]} == {row}
        assert {*spans.state[indices]} == {state}
        assert {*spans.job[indices]} == {job}
        assert np.all(np.diff(spans.start[indices]) > 0)


@pytest.mark.parametrize(
    ("cores", "kinds", "shown", "left_out"),
    [
        (30, ("array", "thread", "thread", "tail"), 120, ""),
        (31, ("array", "thread", "thread", "tail"), 93, "31 tail rows"),
        (40, ("array", "mfu0", "mfu1", "thread"), 120, "40 mfu0 rows"),
        (100, ("array", "thread", "thread", "tail"), 100, "100 tail rows and 200 thread rows"),
        (130, ("array", "thread", "tail"), 120, "130 tail rows and 130 thread rows and 10 more array rows"),
        # threads that can never be shown do not take other rows with them
        (2, ("array", *["thread"] * 70, *(f"dram{each}" for each in range(40))), 82, "140 thread rows"),
        (3, ("array", *(f"dram{each}" for each in range(42))), 120, "3 dram0 rows and 3 dram1 rows and 3 dram10 rows"),
        (3, ("array", *(f"dram{each}" for each in range(43))), 120, "12 rows of 4 other units"),
        # the only kind there is stays as far as it fits
        (125, ("thread",), 120, "5 more thread rows"),
    ],
)
def test_of_too_many_rows_units_go_first_then_threads_then_the_last(
    cores: int, kinds: tuple[str, ...], shown: int, left_out: str
) -> None:
    rows = tuple(Row(core, kind, kinds[:at].count(kind)) for core in range(cores) for at, kind in enumerate(kinds))
    timeline = timeline_from([(row, 0, 5, BUSY, 0, 0, 0) for row in range(len(rows))], rows, ("job",), 5)
    spans = spans_of(timeline)
    assert (len(spans.rows), spans.left_out) == (shown, left_out)
    assert len(spans) == shown <= ROW_LIMIT
    assert spans.rows == tuple(row for row in rows if row.kind in {each.kind for each in spans.rows})[:ROW_LIMIT]


def test_threads_go_first_where_that_is_enough_and_no_other_kind_is() -> None:
    rows = [Row(core, kind) for core in range(59) for kind in ("array", "thread")]
    rows += [Row(59 + number, "memory", number + 1) for number in range(3)]
    timeline = timeline_from([(row, 0, 5, BUSY, 0, 0, 0) for row in range(len(rows))], tuple(rows), ("job",), 5)
    # 121 rows: without the memories the rest would fit, too
    assert (len(rows), spans_of(timeline).left_out) == (121, "3 memory rows")
    more = [*rows[:4], *rows]
    timeline = timeline_from([(row, 0, 5, BUSY, 0, 0, 0) for row in range(len(more))], tuple(more), ("job",), 5)
    assert spans_of(timeline).left_out == "61 thread rows"
    assert [row.name for row in spans_of(timeline).rows[-2:]] == ["memory 1", "memory 2"]


def test_a_wait_belongs_to_what_comes_of_it_and_to_nothing_where_a_pause_does() -> None:
    """A job that waits for its second frame, due at 500, is paused at 300; its thread is free again before that."""
    late = {"model": "lstm-512", "steps": 2, "frame_interval": 500}
    urgent = {"model": "lstm-256", "steps": 2, "arrival": 300, "priority": 1}
    chip = {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 65536, "ep": 32, "vp": 2048}]}
    result = run({"chip": chip, "dispatch": "priority", "preemption": True, "jobs": [late, urgent]})
    (_, _, _, paused, resumed, _) = result.trace.pauses[0].tolist()
    assert 300 <= paused < resumed < 500
    cells, thread, waits = cells_of(result.timeline), Row(0, "thread", 0), STATES.index("input")
    assert {cells[thread, cycle] for cycle in range(200, 300)} == {(waits, 0, -1, -1)}
    assert {cells[thread, cycle] for cycle in range(resumed, 500)} == {(waits, 0, 0, 1)}
    assert cells[thread, 500] == (BUSY, 0, 0, 1)


def test_names_of_rows_are_different_and_say_what_they_are() -> None:
    rows = [Row(0, "array"), Row(0, "thread"), Row(0, "thread", 1), Row(0, "tail"), Row(1, "array"), Row(2, "memory")]
    names = ["core 0 array", "core 0 thread 0", "core 0 thread 1", "core 0 tail", "core 1 array", "memory"]
    assert [row.name for row in rows] == names


def test_a_span_that_ends_where_the_window_begins_is_not_drawn() -> None:
    table = {name: np.array([0, 0, 0]) for name in ("row", "layer", "step", "job")}
    times = {"start": np.array([0, 3, 6]), "end": np.array([3, 6, 9]), "state": np.array([BUSY] * 3)}
    table["job"] = np.array([0, 1, 0])
    timeline = Timeline("c", 260, 9, (Row(0, "array"),), ("a", "b"), **table, **times)
    drawn = spans_of(timeline, window=(3, 6))
    assert (drawn.start.tolist(), drawn.end.tolist(), drawn.job.tolist()) == ([3], [6], [1])
