"""Figures of layers add up to those of the cores, on every machine whose operations belong to layers."""

from __future__ import annotations

import json

import pytest

import lstmsim

TWO = {
    "name": "two",
    "layers": [
        {"cell": "lstm", "input": 96, "hidden": 64, "bidirectional": True},
        {"cell": "gru", "input": 128, "hidden": 33},
    ],
}


@pytest.mark.parametrize("chip", ["column-npu-4x16k", "intel-npu-rtl", "brainwave-s10", "epyc-7742"])
def test_layers_add_up_to_what_the_cores_did(chip: str) -> None:
    jobs = [{"model": TWO, "steps": 5, "count": 3}, {"model": "lstm-256", "steps": 2}]
    report = lstmsim.simulate({"chip": chip, "jobs": jobs})
    assert [(each.model, each.layer, each.cell) for each in report.layers] == [
        ("two", 0, "lstm"),
        ("two", 1, "gru"),
        ("lstm-256", 0, "lstm"),
    ]
    assert sum(each.macs for each in report.layers) == sum(core.macs for core in report.cores)
    busy = sum(core.cycles["busy"] for core in report.cores)
    assert 0 < sum(each.cycles for each in report.layers) <= busy
    if chip == "column-npu-4x16k":
        assert sum(each.cycles for each in report.layers) == busy
        assert report.layers[1].macs == 3 * 5 * 3 * 33 * (128 + 33)
    assert "LAYERS: " in report.to_text()
    assert json.loads(json.dumps(report.to_dict()))["layers"][1]["hidden"] == 33


def test_a_split_job_counts_on_all_of_its_cores() -> None:
    job = {"model": "lstm-512", "steps": 4, "cores": [0, 1], "split": "rows"}
    report = lstmsim.simulate({"chip": "column-npu-4x16k", "jobs": [job]})
    (layer,) = report.layers
    assert layer.cycles == sum(core.cycles["busy"] for core in report.cores)
    assert layer.macs == sum(core.macs for core in report.cores)
    assert "LAYERS" not in report.to_text()


def test_kernels_of_a_parallel_device_belong_to_no_layer() -> None:
    assert lstmsim.simulate({"chip": "edge", "jobs": [{"model": "lstm-256", "steps": 1}]}).layers == ()
