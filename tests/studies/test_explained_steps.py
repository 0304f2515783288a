"""Of a run whose trace is too long to keep, the first time steps are explained, and that is said."""

from __future__ import annotations

from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError

JOB = {"model": {"layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}, "steps": 20}
CHIP = {"kind": "column-npu", "frequency_mhz": 250, "cores": [{"npe": 1024, "ep": 16, "vp": 64}]}


def asked(*jobs: dict[str, Any]) -> dict[str, Any]:
    return {"chip": CHIP, "jobs": list(jobs)}


@pytest.mark.slow
def test_a_long_run_is_explained_by_its_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lstmsim.run(asked(JOB, {**JOB, "steps": 3}))
    assert lstmsim.explain(whole).window is None
    most = whole.operations // 2
    monkeypatch.setattr("lstmsim.studies.simulate.run.MAX_TRACE_OPERATIONS", most)
    monkeypatch.setattr("lstmsim.studies.simulate.run._WINDOW_OPERATIONS", whole.operations // 4)
    explanation = lstmsim.explain(whole)
    window = explanation.window
    assert window is not None
    assert 2 <= window.steps < 20
    part = lstmsim.run(asked({**JOB, "steps": window.steps}, {**JOB, "steps": min(3, window.steps)}))
    assert part.operations <= most
    assert explanation.makespan_cycles == part.report.makespan_cycles
    assert (window.whole_steps, window.whole_cycles) == (20, whole.report.makespan_cycles)
    said = " ".join(explanation.to_text().split())
    assert said.startswith(
        f"A WINDOW IS EXPLAINED, not the whole run: the first {window.steps} time steps of at most 20"
    )
    assert f"the whole run takes {whole.report.makespan_cycles:,}. A trace" in said
    assert "a step)" not in said, "the window's shorter job has another share of all steps than the whole's"
    assert explanation.to_dict()["window"]["steps"] == window.steps


def test_a_window_has_fewer_steps_than_wanted_where_these_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lstmsim.run(asked({**JOB, "steps": 2}))
    monkeypatch.setattr("lstmsim.studies.simulate.run.MAX_TRACE_OPERATIONS", whole.operations - 1)
    explanation = lstmsim.explain(whole)
    assert explanation.window is not None
    assert explanation.window.steps == 1
    each = explanation.makespan_cycles, whole.report.makespan_cycles / 2
    assert [f"({cycles:,.0f} a step)" in " ".join(explanation.to_text().split()) for cycles in each] == [True, True]
    assert "the first time step of at most 2 of each job, simulated alone, so nothing was used before" in " ".join(
        explanation.to_text().split()
    )


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        (
            (JOB, {**JOB, "arrival": 5}),
            r"explain: .* recorded; explain fewer requests \(fewer entries .*, or requests of fewer `steps`",
        ),
        ((JOB,), "one time step alone is too long as well: explain fewer jobs, or a smaller model"),
    ],
)
def test_what_has_no_window_is_refused_with_a_way_out(
    jobs: tuple[dict[str, Any], ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = lstmsim.run(asked(*jobs))
    monkeypatch.setattr("lstmsim.studies.simulate.run.MAX_TRACE_OPERATIONS", 3)
    with pytest.raises(InputError, match=said):
        lstmsim.explain(result)
