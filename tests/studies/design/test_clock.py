"""Designs at clocks that the model tells, against every design by itself; and at one clock for all."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.machines.registry import capability
from lstmsim.studies.design.result import Design
from lstmsim.studies.shared.loading import load_scenario
from tests.machines.column.clocks import MODEL

pytestmark = pytest.mark.needs_core

SCENARIO: dict[str, Any] = {
    "name": "tiny",
    "chip": {
        "kind": "column-npu",
        "name": "tiny",
        "frequency_mhz": 100,
        "cores": [{"npe": 32, "ep": 2, "tail_width": 1}],
    },
    "precision": {"formats": "shared", "shift": "common"},
    "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}, "steps": 4, "count": 4}],
}
AXES: dict[str, list[int]] = {
    "chip.cores.0.ep": [2, 4],
    "chip.cores.0.vp": [4, 8, 16],
    "chip.cores.0.threads": [1, 2],
    "chip.cores.0.latency.convert": [4, 7],
}


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capability("column-npu", "clock"), "model", lambda: MODEL)


def every() -> dict[int, tuple[int, float | None]]:
    """Cycles and MHz of each design of the space by its number; None: outside of what the model was made from."""
    found = {}
    for point, values in enumerate(itertools.product(*AXES.values())):
        own = copy.deepcopy(SCENARIO)
        ep, vp, threads, convert = values
        own["chip"]["cores"] = [
            {**own["chip"]["cores"][0], "ep": ep, "vp": vp, "threads": threads, "latency": {"convert": convert}}
        ]
        if ep * vp <= 32:
            mhz, why = capability("column-npu", "clock").clock(load_scenario(own))
            found[point] = lstmsim.run(own).report.makespan_cycles, None if why else mhz
    return found


def asked(**options: Any) -> Design:
    return lstmsim.design(SCENARIO, "none", axes=AXES, jobs=1, clock="model", **options)


def test_the_best_at_told_clocks_and_those_that_its_error_leaves() -> None:
    truth, found = every(), asked(minimise=["us"])
    us = {point: cycles / mhz for point, (cycles, mhz) in truth.items() if mhz is not None}
    best = found.best[0]
    assert best.objective[0] == min(us.values()) == us[best.point]
    assert best.mhz == truth[best.point][1]
    near = {point for point, each in us.items() if each <= us[best.point] * MODEL.pairs * (1 + 1e-12)}
    assert {each.choice.point for each in found.alike} == near - {best.point}
    assert sum(found.untimed.values()) == len(truth) - len(us) > 0
    assert not found.proven
    labels = (found.infeasible, found.untimed, found.pruned)
    assert sum(sum(each.values()) for each in labels) + found.simulated == found.space
    text = " ".join(found.to_text().split())
    assert f"MHz, predicted for {MODEL.family} ({MODEL.judged})" in text
    assert f"of {len(truth) - len(us)} more the clock cannot be told" in text
    assert f"Clock: {best.mhz:g} MHz, predicted (" in text


def test_a_front_says_which_designs_stay_on_it() -> None:
    truth, found = every(), asked(minimise=["us", "cycles"])
    own = {point: (cycles / mhz, cycles) for point, (cycles, mhz) in truth.items() if mhz is not None}

    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        return one[0] <= other[0] and one[1] <= other[1] and one != other

    on = {point for point, each in own.items() if not any(beats(other, each) for other in own.values())}
    assert {each.point for each in found.best} == on
    hopes = {point: (us / MODEL.pairs, cycles) for point, (us, cycles) in own.items()}
    shaky = {each for each in on if any(beats(hopes[other], own[each]) for other in own if other != each)}
    assert set(found.shaky) == shaky
    may = {each for each in own if each not in on and not any(beats(own[other], hopes[each]) for other in on)}
    assert {each.choice.point for each in found.alike} == may
    sure = len(on) - len(shaky)
    assert f"{sure} stay{'s' * (sure == 1)} on it within the clock model's error" in " ".join(found.to_text().split())


def test_one_clock_for_all_designs(tmp_path: Path) -> None:
    (tmp_path / "clock.json").write_text('{"mhz": {"1": 80.0}, "tools": "yosys 0.70"}')
    axes = {"chip.cores.0.threads": [1, 2]}
    cycles = lstmsim.design(SCENARIO, "none", axes=axes, jobs=1).best[0].objective[0]
    asked, built = (
        lstmsim.design(SCENARIO, "none", axes=axes, jobs=1, minimise=["us"], clock=clock)
        for clock in ("80", tmp_path / "clock.json")
    )
    assert asked.best[0].objective[0] == built.best[0].objective[0] == pytest.approx(cycles / 80)
    assert asked.proven
    assert "us at 80 MHz, asked for, proven best" in " ".join(asked.to_text().split())
    assert "us at 80 MHz, built (one seed; yosys 0.70), proven best" in " ".join(built.to_text().split())
    assert "that each of them reaches it is not known" in " ".join(built.to_text().split())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "clock: model changes times only"),
        ({"minimise": ["p95_ms"]}, "minimise p95_ms: does not go with clock model"),
        ({"minimise": ["us"], "bound_ms": 1.0}, "bound_ms: does not go with clock model"),
        ({"minimise": ["us"], "stability": 0.5}, "stability: does not go with clock model"),
        ({"minimise": ["us"], "overrides": ["chip.frequency_mhz=5"]}, "does not go with chip.frequency_mhz"),
        ({"minimise": ["us"], "overrides": ["jobs.0.arrival={kind: stream, frame_ms: 1}"]}, "by the second"),
    ],
)
def test_what_told_clocks_do_not_answer(options: dict[str, Any], text: str) -> None:
    with pytest.raises(lstmsim.InputError, match=text):
        asked(**options)


def test_a_device_of_another_family_and_another_machine() -> None:
    with pytest.raises(lstmsim.InputError, match="of another family than the clock model: ECP5"):
        lstmsim.design(SCENARIO, "alveo-u250", axes=AXES, minimise=["us"], clock="model", jobs=1)
    with pytest.raises(lstmsim.InputError, match="clock: there is no clock model of row-npu"):
        lstmsim.run({"chip": "brainwave-s10", "jobs": [{"model": "lstm-256", "steps": 1}]}, clock="model")


def test_a_simulation_at_the_told_clock() -> None:
    own = copy.deepcopy(SCENARIO)
    own["chip"]["cores"][0]["vp"] = 8
    ran = lstmsim.run(own, clock="model")
    mhz = capability("column-npu", "clock").clock(load_scenario(own))[0]
    assert ran.scenario.chip.frequency_mhz == mhz
    assert f"Clock: {mhz:g} MHz, predicted (" in " ".join(ran.to_text().split())
    with pytest.raises(lstmsim.InputError, match=r"clock: cannot tell: .*vp not from \d+ to \d+"):
        lstmsim.run("experiments/scenarios/demo.yaml", clock="model")
