"""Precision and clock of published rows are said, and how far a chip is from the machine that it describes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.deepbench.tables import machines_markdown
from lstmsim.files.published import deepbench
from lstmsim.files.scenario.scenario_file import load_chip, load_scenario
from lstmsim.model.scenario import Chip
from lstmsim.studies.compare.report import comparison_rows
from lstmsim.studies.compare.result import Comparison
from lstmsim.studies.compare.run import compared as compare

ROWS = [row for row in deepbench() if row.design in ("Tesla V100", "Titan Xp") and (row.hidden, row.steps) == (512, 25)]
JOB = {"model": {"name": "small", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}, "steps": 2}


def compared(*chips: Chip) -> Comparison:
    """A small LSTM beside rows that are said to be of its sizes."""
    scenario = load_scenario({"chip": "v100", "jobs": [JOB]})
    rows = [replace(row, hidden=16, input=16, steps=2, latency_ms=0.01) for row in ROWS]
    return compare(scenario, chips or (scenario.chip,), published=rows)


def words(text: str) -> str:
    return " ".join(text.split())


def test_precision_clock_and_note_of_each_published_row_are_told() -> None:
    text = words(compared().to_text())
    assert "Simulated: v100 (elements of 4 bytes; 1530 MHz)." in text
    assert "Published: Tesla V100 (FP16; 1380 MHz), Titan Xp (FP32; clock not published)." in text
    assert "Tesla V100: FP16, TensorFlow 1.10 with cuDNN, time of the cells only" in text
    assert "Titan Xp: FP32, CUDA 8, cuDNN 6" in text


def test_it_is_told_how_far_off_the_model_is_and_of_what() -> None:
    comparison = compared()
    ratio = (comparison.entries[0][0].ms or 0) / 0.01
    (error,) = comparison.to_dict()["model_errors"]
    assert (error["machine"], error["published"]) == ("v100", "Tesla V100")
    assert error["geometric_mean"] == pytest.approx(ratio)
    text = words(comparison.to_text())
    assert f"v100 of Tesla V100: geometric mean {ratio:.2f} over 1 workload" in text
    differs = "simulated in elements of 4 bytes, published in FP16; simulated at 1530 MHz, published at 1380 MHz"
    assert f"{differs}; `element_bytes: 2` of the chip is FP16." in text
    assert f"{differs}; " in "\n".join(machines_markdown(comparison))
    head, first, *_ = comparison_rows(comparison)
    assert dict(zip(head, first, strict=True))["precision"] == "elements of 4 bytes"


def test_with_elements_of_its_precision_only_the_clock_differs() -> None:
    half = load_scenario({"chip": "v100", "jobs": [JOB]}, ["chip.element_bytes=2"]).chip
    text = words(compared(half).to_text())
    assert "published in FP16" not in text
    assert "simulated at 1530 MHz, published at 1380 MHz" in text


def test_a_changed_preset_says_what_it_has_other_than_the_machine_that_it_is_named_after() -> None:
    fewer = load_scenario({"chip": "v100", "jobs": [JOB]}, ["chip.partitions=2", "chip.launch=100"]).chip
    comparison = compared(fewer)
    sentence = "published at 1380 MHz; simulated with other partitions, launch than the preset has;"
    assert sentence in words(comparison.to_text())
    assert comparison.to_dict()["machines"][0]["changed"] == ["partitions", "launch"]
    assert "than the preset has" not in words(compared().to_text())


def test_a_chip_that_describes_none_of_the_published_machines_has_no_error() -> None:
    comparison = compared(load_chip("column-npu-16k"), load_chip("brainwave-s10"))
    assert comparison.to_dict()["model_errors"] == []
    text = comparison.to_text()
    assert "HOW FAR OFF" not in text
    assert "column-npu-16k (the same cycles in any precision; 260 MHz)" in words(text)
