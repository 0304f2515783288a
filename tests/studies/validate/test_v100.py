"""V100's latencies: what is simulated of a task, how far off that is allowed to be, and what is left out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from lstmsim.files.published import deepbench
from lstmsim.studies.validate.groups import FACTOR, V100, Bench, layer, step_by_step_ms, v100_group, v100_rows
from lstmsim.studies.validate.rows import Group, Row, Validation

ROWS = {row.task: row for row in v100_rows(deepbench())}
BENCH = Bench()
HALVES = ["chip.element_bytes=2"]

pytestmark = pytest.mark.needs_core


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("hidden", "steps"), [(256, 5), *(pytest.param(*each, marks=pytest.mark.long) for each in ((512, 3), (1024, 2)))]
)
def test_the_time_of_all_steps_is_that_of_the_first_ones_drawn_out(hidden: int, steps: int) -> None:
    row = replace(ROWS["lstm-512-25"], hidden=hidden, input=hidden, steps=steps)
    whole = BENCH.on_preset(V100, [layer("lstm", hidden, hidden)], steps, overrides=HALVES)
    assert step_by_step_ms(row, BENCH) == pytest.approx(whole.latency_ms.max, rel=1e-12)


@cache
def small() -> Group:
    """The group with the tasks that are quick, and two that are left out."""
    return v100_group([ROWS[each] for each in ("lstm-256-150", "lstm-512-25", "lstm-1024-25", "gru-512-1")], BENCH)


@pytest.mark.slow
def test_rows_are_within_the_factor_beside_a_null_model_that_saw_them() -> None:
    group = small()
    assert [row.name for row in group.rows] == ["lstm-256-150", "lstm-512-25", "lstm-1024-25"]
    assert {row.name: round(row.simulated, 3) for row in group.rows} == {
        "lstm-256-150": 1.207,
        "lstm-512-25": 0.232,
        "lstm-1024-25": 0.837,
    }
    assert group.within == 3
    assert group.worst is not None
    assert (group.worst.name, group.factor) == ("lstm-512-25", FACTOR)
    assert group.judgement is not None
    assert "fitted to these rows" in group.judgement.sentence
    assert group.judgement.evidence is False
    assert group.failures == ("v100: 3 rows, expected 10: published rows are missing",)


@pytest.mark.slow
def test_what_is_left_out_is_told_with_the_reason() -> None:
    group = small()
    text = words(Validation("fast", (group,), ()).to_text())
    assert "gru-512-1, which is one step: 0.0128 ms simulated, 0.39 published" in text
    assert "suspect initialisation" in text
    assert "3 of 10 within a factor of 3; mean error 35.88 %, worst lstm-512-25, -61.25 %" in text
    assert "simulated / published 0.39 to 1.18, geometric mean 0.69" in text
    assert text.endswith("3 of 10 within a factor of 3")
    assert "3 of 10 within a factor of 3" in Validation("fast", (group,), ()).to_markdown()
    assert Validation("fast", (group,), ()).to_dict()["groups"][0]["remarks"] == list(group.remarks)


def test_a_task_that_is_refused_is_left_out_with_its_sentence() -> None:
    (remark,) = v100_group([replace(ROWS["gru-2816-750"], hidden=16384, input=16384)], BENCH).remarks[2:]
    assert remark.startswith("left out: gru-16384-750: one step of ")
    assert "too many to simulate" in remark


def test_a_ratio_beyond_the_factor_fails_either_way() -> None:
    row = Row(V100, "task", "latency", "ms", 3.0, 1.0, 0.0, "a paper", factor=3.0)
    assert [replace(row, simulated=each).ok for each in (0.99, 1.0, 9.0, 9.01)] == [False, True, True, False]
    (failure,) = Group(V100, "V100", V100, (replace(row, simulated=0.5),), 1).failures
    assert failure.endswith("expected a factor of at most 3")
