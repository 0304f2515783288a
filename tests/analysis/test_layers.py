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


FORWARD = {
    "name": "forward",
    "layers": [{"cell": "lstm", "input": 40, "hidden": 64}, {"cell": "gru", "input": 64, "hidden": 33}],
}


@pytest.mark.parametrize("batching", [{"policy": "window", "max_wait_cycles": 5000}, {"policy": "continuous"}])
@pytest.mark.parametrize("chip", ["column-npu-4x16k", "intel-npu-rtl"])
def test_layers_of_batches_add_up_too_without_the_padding(chip: str, batching: dict[str, object]) -> None:
    pool = {"max_batch_size": 3, "pool": "p", **batching}
    some = [
        {"model": FORWARD, "steps": steps, "arrival": [0, 40, 900], "count": 3, "batching": pool} for steps in (5, 2)
    ]
    report = lstmsim.simulate({"chip": chip, "jobs": [*some, {"model": "lstm-256", "steps": 2}]})
    assert any(len({report.jobs[each].macs for each in batch.members}) > 1 for batch in report.batches)
    layers = {(each.model, each.layer): each for each in report.layers}
    assert set(layers) == {("forward", 0), ("forward", 1), ("lstm-256", 0)}
    assert layers["forward", 0].macs == 3 * (5 + 2) * 4 * 64 * (40 + 64)
    assert sum(each.macs for each in report.layers) == sum(core.macs for core in report.cores)
    busy = sum(core.cycles["busy"] for core in report.cores)
    cycles = sum(each.cycles for each in report.layers)
    assert cycles == busy if chip == "column-npu-4x16k" else 0 < cycles <= busy
    assert "LAYERS: " in report.to_text()


def test_ragged_batches_have_no_layers() -> None:
    pool = {"max_batch_size": 3, "pool": "p", "lengths": "ragged"}
    some = [{"model": FORWARD, "steps": steps, "arrival": [0, 40], "count": 2, "batching": pool} for steps in (5, 2)]
    report = lstmsim.simulate({"chip": "column-npu-16k", "jobs": some})
    assert report.batches
    assert report.layers == ()
