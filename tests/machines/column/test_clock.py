"""The clock model: columns of designs against one design by itself, and each reason why a clock cannot be told."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from lstmsim.machines.column.clock import clock, clocks
from lstmsim.studies.shared.loading import load_scenario
from tests.machines.column.clocks import MODEL

CORE = {"npe": 16, "ep": 2, "vp": 4, "threads": 2, "tail_width": 1, "latency": {"convert": 7}}
LAYER = {"cell": "lstm", "hidden": 16, "input": 16}


def scenario(core: dict[str, Any] = {}, layer: dict[str, Any] = {}, **keys: Any) -> Any:  # noqa: B006
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{**CORE, **core}], **keys.pop("chip", {})}
    job = {"model": {"layers": [{**LAYER, **layer}]}, "steps": 4, "count": 4, **keys.pop("job", {})}
    return load_scenario({"chip": chip, "precision": {"formats": "shared", "shift": "common"}, "jobs": [job], **keys})


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.machines.column.clock.model", lambda: MODEL)


def test_columns_are_the_designs_one_by_one() -> None:
    values = list(itertools.product((2, 4, 16), (4, 8), (1, 2, 4, 8), (1, 2)))
    names = ("ep", "vp", "threads", "tail_width")
    columns = {name: np.array(each) for name, each in zip(names, zip(*values, strict=True), strict=True)}
    mhz, why = clocks(scenario(), [{**CORE, **columns}], [1])
    for place, each in enumerate(values):
        core = {**dict(zip(names, each, strict=True)), "npe": 256}
        own = {name for name, wrong in why.items() if np.broadcast_to(wrong, len(values))[place]}
        told, reason = clock(scenario(core))
        assert told == np.broadcast_to(mhz, len(values))[place]
        assert set(reason.split(", ")) - {""} == own


def test_rows_that_are_left_out_follow_from_the_multipliers() -> None:
    core = {name: value for name, value in CORE.items() if name != "vp"}
    columns = {"npe": np.array([8, 16, 16]), "ep": np.array([2, 2, 4])}
    told, why = clocks(scenario(), [{**core, **columns}], [1])
    own, own_why = clocks(scenario(), [{**CORE, **columns, "vp": np.array([4, 8, 4])}], [1])
    assert (np.array_equal(told, own), why) == (True, own_why)


@pytest.mark.parametrize(
    ("design", "why"),
    [
        ({"core": {"accumulator_banks": 3}}, "accumulator_banks not 2"),
        ({"core": {"latency": {"convert": 7, "read": 3}}}, "latency.read not "),
        ({"core": {"latency": {"convert": 12}}}, "convert not from "),
        ({"core": {"threads": 64}}, "threads not from "),
        ({"core": {"tail_width": 4}}, "lanes of cell lstm"),
        ({"layer": {"hidden": 512}}, "hidden not from "),
        ({"layer": {"bidirectional": True}}, "in one direction"),
        ({"chip": {"cores": [CORE, CORE]}}, "several cores"),
        ({"precision": {"weight_bits": 4}}, "other widths"),
        ({"job": {"count": 1000}}, "jobs not from "),
        ({"job": {"model": {"layers": [{**LAYER, "hidden": 32}, {**LAYER, "hidden": 8, "input": 32}]}}}, "widths"),
        ({"job": {"model": {"layers": [LAYER, LAYER], "layer_order": "step"}}}, "layer_order not layer"),
        ({"dispatch": "sjf"}, "not written as Verilog"),
    ],
)
def test_what_is_unlike_the_designs_of_the_fit_cannot_be_told(design: dict[str, Any], why: str) -> None:
    assert clock(scenario())[1] == ""
    assert clock(scenario(job={"model": {"layers": [LAYER, LAYER]}}))[1] == ""
    assert why in clock(scenario(**design))[1]


def test_a_clock_is_the_inverse_of_the_sum_of_its_features() -> None:
    assert clock(scenario())[0] == 100.0
    assert clock(scenario({"threads": 1, "latency": {"convert": 4}}))[0] == round(1000 / 9, 1)
