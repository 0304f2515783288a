"""The tables of a trace: described, ordered, and the same however rows come to them."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import HALTS, ISSUES, PAUSES, SWITCHES, TABLES, TASKS, THREAD_SLOTS, Trace, TraceBuilder

NONE = (0,) * len(CAUSES)


def test_every_table_is_described() -> None:
    assert [table.name for table in TABLES] == [each.name for each in fields(Trace)]
    for table in TABLES:
        assert table.row
        assert all(table.columns.values()), table.name
        assert set(table.order) <= set(table.columns), table.name
        assert table.empty().shape == (0, len(table.names))


def test_the_columns_that_files_and_tests_know_stay() -> None:
    assert ISSUES.names[:5] == ("start", "core", "unit", "context", "task")
    assert ISSUES.names[5:10] == ("phase", "iteration", "operation", "count", "cycles")
    assert ISSUES.names[10:] == tuple(f"{cause}_until" for cause in CAUSES)
    assert SWITCHES.names == ("start", "core", "unit", "cycles", "before", "after")
    assert TASKS.names == ("core", "context", "admitted", "finish", "arrived", "pauses", "taken", "batch")
    assert PAUSES.names == ("task", "core", "context", "paused", "resumed", "batch")
    assert THREAD_SLOTS.names == ("task", "member", "core", "context")
    assert HALTS.names == ("asked", "core", "unit", "context", "task", *ISSUES.names[10:])


small = st.integers(0, 3)


@st.composite
def recorded(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Rows of pauses, thread slots and switches; no two pauses or thread slots have the same place in time."""
    pauses = draw(
        st.lists(st.tuples(small, small, small, small, small), unique_by=lambda row: (row[3], row[1], row[2]))
    )
    thread_slots = draw(st.lists(st.tuples(small, st.integers(1, 3), small, small), unique_by=lambda row: row[:2]))
    switches = draw(st.lists(st.tuples(*[small] * 6), unique_by=lambda row: row[:3]))
    return pauses, thread_slots, switches


@settings(deadline=None)
@given(recorded())
def test_a_builder_gives_tables_in_order(rows) -> None:  # type: ignore[no-untyped-def]
    pauses, thread_slots, switches = rows
    builder = TraceBuilder(tasks=4)
    for task, core, context, paused, resumed in pauses:
        builder.pause(task, core, context, paused, -1, resumed=resumed)
    for task, member, core, context in thread_slots:
        builder.take_thread_slot(task, member=member, core=core, context=context)
    for start, core, unit, cycles, before, after in switches:
        builder.switch(start, core, unit, cycles, before, after)
    builder.halt(7, (1, 0, 2, 3), (9, *NONE[1:]))
    builder.issue(3, 2, 4, (1, 0, 2, 3, 0, 5, 6), NONE)
    built = builder.build()
    assert built.pause("resumed").tolist() == [row[4] for row in sorted(pauses, key=lambda row: (row[3], *row[1:3]))]
    assert built.thread_slot("member").tolist() == [row[1] for row in sorted(thread_slots)]
    assert built.halt(f"{CAUSES[0]}_until").tolist() == [7]
    assert built.task("pauses").tolist() == [sum(row[0] == task for row in pauses) for task in range(4)]


@pytest.mark.parametrize("name", [table.name for table in TABLES])
def test_traces_differ_if_any_table_does(name: str) -> None:
    builder = TraceBuilder(tasks=1)
    trace = builder.build()
    rows = np.zeros((1, len(next(table for table in TABLES if table.name == name).names)), dtype=np.int64)
    assert trace == replace(trace)
    assert trace != replace(trace, **{name: rows})
