"""Accounts and timelines say the same as the trace, and add up."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from lstmsim import run
from lstmsim.analysis.timeline import STATES
from lstmsim.model.scenario import Scenario
from lstmsim.program.accounts import PRIORITY, core_spans, named_cycles
from tests.strategies import examples, scenarios


@settings(max_examples=examples(15))
@given(scenarios())
def test_names_follow_the_threads_cycle_by_cycle(scenario: Scenario) -> None:
    result = run(scenario)
    for core in range(len(result.program.cores)):
        spans = core_spans(result.program, result.trace, core)
        present: list[set[str]] = [set() for _ in range(result.trace.makespan_cycles)]
        for name, each in {"busy": spans.busy, "switch": spans.switch, **spans.waits}.items():
            for start, end in zip(each.start.tolist(), each.end.tolist(), strict=True):
                for cycle in range(start, end):
                    present[cycle].add(name)
        named = named_cycles(result.program, result.trace, core)
        names = np.repeat(np.array(named.names)[named.name], np.diff(named.edges))
        for cycle, name in enumerate(names):
            assert name == next((each for each in PRIORITY if each in present[cycle]), "idle")


@settings(max_examples=examples(15))
@given(scenarios())
def test_timeline_rows_are_complete_and_never_overlap(scenario: Scenario) -> None:
    result = run(scenario)
    timeline = result.timeline
    for number, row in enumerate(timeline.rows):
        mine = timeline.row == number
        start, end, state = timeline.start[mine], timeline.end[mine], timeline.state[mine]
        assert np.all(start[1:] >= end[:-1])
        assert np.all(end > start)
        lengths = {name: int((end - start)[state == index].sum()) for index, name in enumerate(STATES)}
        cycles = result.report.cores[row.core].cycles
        if row.kind == "array":
            assert {name: count for name, count in lengths.items() if count} == {k: v for k, v in cycles.items() if v}
        elif row.kind == "thread":
            on = [job for job in result.report.jobs if (job.core, job.thread) == (row.core, row.index)]
            assert sum(lengths.values()) == sum(job.finish - job.start for job in on)
    arrays = [sum(r.core == c and r.kind == "thread" for r in timeline.rows) for c in range(len(result.report.cores))]
    assert arrays == [core.contexts for core in result.program.cores]


@settings(max_examples=examples(15))
@given(scenarios())
def test_busy_cycles_of_threads_add_up_to_those_of_the_array(scenario: Scenario) -> None:
    timeline = run(scenario).timeline
    busy = timeline.state == STATES.index("busy")
    lengths = timeline.end - timeline.start
    for core in {row.core for row in timeline.rows}:
        by_kind = {
            kind: sum(
                int(lengths[busy & (timeline.row == number)].sum())
                for number, row in enumerate(timeline.rows)
                if (row.core, row.kind) == (core, kind)
            )
            for kind in ("array", "thread")
        }
        assert by_kind["array"] == by_kind["thread"]
