"""The published rows are reproduced as promised, on both engines, and whatever is edited in them is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.published import deepbench, intel_npu
from lstmsim.studies.validate.groups import (
    CPP,
    DESIGN,
    FITTED,
    FITTED_GROUP,
    HELD_OUT_GROUP,
    RTL,
    V100,
    Bench,
    brainwave_group,
    layers_of,
)
from lstmsim.studies.validate.rows import Group, Judgement, Validation, fit_null
from lstmsim.studies.validate.run import CLAIMS, GROUPS, read_published, validate
from tests.studies.validate.whole import small_kernels, whole

PUBLISHED = read_published()


def group(validation: Validation, key: str) -> Group:
    return next(each for each in validation.groups if each.key == key)


@pytest.mark.parametrize("key", [RTL, CPP])
def test_all_intel_rows_are_exact(key: str) -> None:
    rows = group(whole(), key).rows
    cycles = {row.name: row.simulated for row in rows if row.unit == "cycles"}
    tops = {row.name: row.simulated for row in rows if row.unit == "TOPS"}
    stated = {each.workload: each for each in intel_npu()}
    assert len(cycles) == len(tops) == 19
    name = "rtl" if key == RTL else "cpp"
    assert cycles == {each: getattr(row, f"{name}_cycles") for each, row in stated.items()}
    assert tops == {each: getattr(row, f"{name}_tops") for each, row in stated.items()}
    # TOPS are the cycles in another unit: 19 workloads are 19 facts
    assert (group(whole(), key).exact, group(whole(), key).promised) == (19, 19)


def test_a_note_on_the_figures_of_the_cpp_simulator_stands_with_them_alone() -> None:
    (noted,) = (each for each in intel_npu() if each.cpp_note)
    for key in (RTL, CPP):
        notes = {row.name: row.note for row in group(whole(), key).rows}
        assert ("1067 cycles" in notes[noted.workload]) == (key == CPP)
        # A note on the workload stands with both rows.
        assert notes["16_mlp5_512"].startswith("three products of this size")


def test_brainwave_is_within_its_band() -> None:
    fitted, held_out = group(whole(), FITTED_GROUP), group(whole(), HELD_OUT_GROUP)
    assert {row.name for row in fitted.rows} == set(FITTED)
    brainwave = {row.task for row in deepbench() if row.design == DESIGN}
    assert {row.name for row in held_out.rows} == brainwave - set(FITTED)
    assert len(held_out.rows) == 5
    for row in (*fitted.rows, *held_out.rows):
        assert abs(row.simulated / row.published - 1) <= 0.05, row


def test_nothing_fails() -> None:
    assert whole().failures == ()
    assert [each.key for each in whole().groups] == [each for each in GROUPS if each not in (V100, CLAIMS)]
    assert len(whole().claims) == len(PUBLISHED.claims)


@pytest.mark.long
@pytest.mark.parametrize("key", [RTL, CPP])
def test_the_reference_engine_finds_the_same_of_intel(key: str) -> None:
    validation = validate([key], engine="reference")
    assert validation.engine == "reference"
    assert validation.groups == (group(whole(), key),)
    assert validation.claims == ()


@pytest.mark.slow
@pytest.mark.parametrize("key", [FITTED_GROUP, HELD_OUT_GROUP])
def test_the_reference_engine_finds_the_same_of_brainwave(key: str) -> None:
    # The long GRUs take the reference engine half a minute.
    short = [row for row in PUBLISHED.deepbench if row.steps <= 25]
    own = brainwave_group(key, short, Bench("reference"))
    fast = {row.name: row for row in group(whole(), key).rows}
    assert own.rows
    # The short tasks alone fit no null model.
    assert own.rows == tuple(replace(fast[row.name], null=None) for row in own.rows)


@pytest.mark.parametrize("key", [RTL, CPP])
def test_edited_intel_rows_are_noticed(key: str) -> None:
    name = "rtl" if key == RTL else "cpp"
    slower = tuple(replace(row, **{f"{name}_cycles": getattr(row, f"{name}_cycles") + 1}) for row in PUBLISHED.intel)
    # The last digit of the last figure of every second row is changed by one.
    edited = tuple(
        replace(row, **{f"{name}_tops": round(getattr(row, f"{name}_tops") + 0.01, 2)}) if number % 2 else row
        for number, row in enumerate(slower)
    )
    failures = validate([key], figures=replace(PUBLISHED, intel=edited)).failures
    expected = []
    for number, row in enumerate(edited):
        expected += [
            f"{key}: {row.workload}: {each} published " for each in ("latency", "throughput")[: 1 + number % 2]
        ]
    assert len(failures) == len(expected) == 19 + 9
    for sentence, beginning in zip(failures, expected, strict=True):
        assert sentence.startswith(beginning)
        assert sentence.endswith("; expected the same figure")


@pytest.mark.parametrize("key", [RTL, CPP])
def test_a_lost_intel_row_is_noticed(key: str) -> None:
    validation = validate([key], figures=replace(PUBLISHED, intel=PUBLISHED.intel[:2]))
    assert validation.failures == (f"{key}: 2 rows, expected 19: published rows are missing",)


@pytest.mark.needs_core
def test_an_edited_brainwave_row_and_a_lost_one_are_noticed() -> None:
    rows = [row for row in PUBLISHED.deepbench if row.design == DESIGN and row.task not in FITTED]
    edited = (replace(rows[0], latency_ms=1.2 * (rows[0].latency_ms or 0)), *rows[1:-1])
    validation = validate([HELD_OUT_GROUP], figures=replace(PUBLISHED, deepbench=edited))
    sentence, lost = validation.failures
    assert sentence.startswith(f"brainwave-held-out: {rows[0].task}: latency published ")
    assert sentence.endswith("expected at most 5 % of error")
    assert lost == "brainwave-held-out: 4 rows, expected 5: published rows are missing"


@pytest.mark.needs_core
def test_parts_and_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    figures = replace(PUBLISHED, intel=PUBLISHED.intel[:2], claims=PUBLISHED.claims[:2])
    validation = validate([RTL], figures=figures, progress=lambda done, total: seen.append((done, total)))
    assert [each.key for each in validation.groups] == [RTL]
    assert seen == [(1, 2), (2, 2)]
    seen.clear()
    small_kernels(monkeypatch)
    validate([CLAIMS], figures=figures, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]


def test_unknown_groups_and_engines_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        validate(["claim"], engine="quick")
    group, engine = map(str, caught.value.mistakes)
    assert group == "group: no group called 'claim'; did you mean 'claims'?"
    assert engine.startswith("engine: no engine called 'quick'")


def test_layers_of_the_workloads() -> None:
    named = {each.workload: layers_of(each) for each in intel_npu()}
    cells = {each["cell"] for layers in named.values() for each in layers}
    assert cells == {"dense", "rnn", "gru-lbr0", "lstm"}
    assert [(each["input"], each["hidden"]) for each in named["18_mlp3_1024_512_256_256"]] == [
        (1024, 512),
        (512, 256),
        (256, 256),
    ]
    assert len(named["16_mlp5_512"]) == 3
    with pytest.raises(InputError, match="no cell called 'conv'; there are: gemv"):
        layers_of(replace(intel_npu()[0], cell="conv"))


def test_brainwave_stands_beside_a_null_model_that_saw_the_same_rows() -> None:
    """Start + k * steps, by numpy's least squares of relative errors on the fitted rows."""
    rows = [row for row in deepbench() if row.design == DESIGN]
    shown = {row.name: row for key in (FITTED_GROUP, HELD_OUT_GROUP) for row in group(whole(), key).rows}
    for cell in ("lstm", "gru"):
        own = [row for row in rows if row.cell == cell and row.task in FITTED]
        ways = np.array([[1 / (row.latency_ms or 0), row.steps / (row.latency_ms or 0)] for row in own])
        (start, per_step), *_ = np.linalg.lstsq(ways, np.ones(len(own)), rcond=None)
        for row in rows:
            if row.cell == cell:
                assert shown[row.task].null == pytest.approx(start + per_step * row.steps)
    judged = group(whole(), HELD_OUT_GROUP).judgement
    assert judged is not None
    assert judged.mean(judged.errors) == pytest.approx(0.0175, abs=1e-4)
    assert judged.mean(judged.null_errors) == pytest.approx(0.0222, abs=1e-4)
    assert max(map(abs, judged.null_errors)) == pytest.approx(0.0390, abs=1e-4)
    assert judged.noise == pytest.approx(0.077 / 0.074 - 1)
    assert judged.evidence is False
    assert judged.sentence.endswith("not evidence of size dependence")
    fitted = group(whole(), FITTED_GROUP).judgement
    assert fitted is not None
    assert fitted.evidence is None


def test_evidence_is_more_than_noise() -> None:
    assert Judgement((0.01,), (0.06,), False, 0.04, "").evidence is True
    assert Judgement((0.01,), (0.049,), False, 0.04, "").evidence is False
    with pytest.raises(ValueError, match="two different numbers of steps"):
        fit_null([row for row in deepbench() if row.design == DESIGN and row.task == "lstm-512-25"])


def test_without_the_fitted_rows_there_is_no_null_model() -> None:
    rows = [row for row in PUBLISHED.deepbench if row.design == DESIGN and row.task == "lstm-512-25"]
    own = brainwave_group(HELD_OUT_GROUP, rows, Bench("fast"))
    assert own.judgement is None
    assert own.rows[0].null is None
