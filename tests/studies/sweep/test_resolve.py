"""The quick way to a point's scenario gives the same scenario as the long way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.base.keys import keys_of
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.model.scenario import Scenario
from lstmsim.studies.sweep.evaluate import digest, scenario_key
from lstmsim.studies.sweep.resolve import Prepared, Resolver, Setup, quick_path
from lstmsim.studies.sweep.run import prepare

#: 1,000 and more by LSTMSIM_EXAMPLES=1000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "16"))

CORES = [
    {"npe": 256, "ep": 8, "count": 2},
    {"npe": 1024, "ep": 16, "vp": 64, "tree_inputs": 32, "cat": 4, "threads": 2},
]
JOBS: list[dict[str, Any]] = [
    {"model": {"layers": [{"cell": "lstm", "hidden": 16, "input": 8}]}, "steps": 3, "count": 2},
    {"model": "lstm-2x512", "steps": 2, "core": 2, "name": "named"},
    {"model": {"name": "p", "layers": [{"cell": "lstm-projection", "hidden": 12, "input": 5, "projection": 6}]}}
    | {"steps": 4, "arrival": [1, 2], "count": 2},
]
SCENARIO = {"chip": {"kind": "column-npu", "frequency_mhz": 100, "cores": CORES}, "jobs": JOBS}

CHOICES: dict[str, list[Any]] = {
    "chip.cores.0.npe": [64, 512, 0],
    "chip.cores.0.ep": [1, 16, 512, 2.0, True],
    "chip.cores.0.vp": [4, 32, None, 10**7 + 1],
    "chip.cores.0.count": [1, 3],
    "chip.cores.1.ep": [8, 16, 12],
    "chip.cores.1.threads": [1, 3],
    "chip.cores.1.latency.activation": [1, 20, 0],
    "chip.cores.1.latency.read": [0, 2],
    "chip.cores.0.block_order": ["row", "column", "diagonal"],
    "chip.frequency_mhz": [50, 260.5],
    "jobs.0.model.layers.0.hidden": [4, 40],
    "jobs.0.count": [1, 3],
    "jobs.0.arrival": [0, 7],
    "jobs.1.model": ["lstm-512", "gru-512", "no-such-model"],
    "jobs.1.model.layers.0.input": [512, 9],
    "jobs.1.model.layers.1.input": [512, 9],
    "jobs.1.steps": [1, 10**9],
    "jobs.1.frame_interval": [0, 5],
    "jobs.2.model.layers.0.projection": [1, 9],
    "jobs.2.count": [2, 3],
    "jobs.2.arrival": [3],
    "precision.weight_bits": [4, 8],
}


ROW_CORES = [{"tiles": 2, "engines": 4, "lanes": 4, "by_cell": {"gru": {"start_cycles": 9}}, "dispatch_cycles": 2}]
ROW: dict[str, Any] = {
    "chip": {"kind": "row-npu", "frequency_mhz": 100, "cores": ROW_CORES},
    "jobs": [
        {"model": {"layers": [{"cell": "gru", "hidden": 16, "input": 8}]}, "steps": 3, "batch": 3},
        {"model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}, "steps": 2},
    ],
}
ROW_CHOICES: dict[str, list[Any]] = {
    "chip.cores.0.tiles": [1, 3, 0, 10**6],
    "chip.cores.0.engines": [2, 8, 10**6],
    "chip.cores.0.dispatch_cycles": [1, 5, 0],
    "chip.cores.0.start_cycles": [0, 40],
    "chip.cores.0.by_cell.gru.start_cycles": [0, 5],
    "chip.cores.0.matrix_words": [1, 10**6, None],
    "chip.cores.0.latency.mfu0": [1, 30, 0],
    "chip.cores.0.latency.output": [0, 30],
    "chip.cores.0.tile_loads": [True, False],
    "chip.cores.0.ep": [4],
    "jobs.0.batch": [1, 4],
    "jobs.1.steps": [1, 10**9],
    "jobs.1.model.layers.0.hidden": [8, 40],
}


SMALL = {"layers": [{"cell": "lstm", "hidden": 16, "input": 8}]}
POISSON = {"kind": "poisson", "rate_per_second": 1e5, "seed": 3}
STREAMS: dict[str, Any] = {
    "chip": SCENARIO["chip"],
    "jobs": [
        {"model": SMALL, "steps": 3, "count": 2, "name": "before"},
        {"model": SMALL, "steps": 2, "count": 3, "arrival": POISSON},
        {"model": SMALL, "steps": 2, "count": 4, "arrival": {"kind": "closed", "clients": 2, "think_ms": 0.01}},
        {"model": SMALL, "steps": 4, "count": 2, "initial": {"job": "before"}},
        {"model": SMALL, "steps": 4, "count": 3, "name": "last", "arrival": {"kind": "stream", "frame_ms": 0.01}},
    ],
}
STREAM_CHOICES: dict[str, list[Any]] = {
    "chip.cores.0.npe": [64, 512],
    "chip.cores.1.latency.activation": [1, 20],
    "chip.frequency_mhz": [50, 260.5],
    "jobs.0.count": [1, 3],
    "jobs.0.arrival": [7],
    "jobs.1.steps": [1, 9],
    "jobs.1.count": [2],
    "jobs.1.arrival.rate_per_second": [1000, 1e6],
    "jobs.2.model.layers.0.hidden": [4, 40],
    "jobs.2.frame_interval": [5],
    "jobs.3.steps": [1, 5],
    "jobs.4.arrival": [7],
    "jobs.4.model.layers.0.hidden": [4, 40],
}


def outcome(make: Any) -> Scenario | None:
    try:
        scenario: Scenario = make()
    except InputError:
        return None
    return scenario


@pytest.mark.slow
@settings(derandomize=True, max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_the_quick_way_and_the_long_way_agree(data: st.DataObject) -> None:
    agree(data, SCENARIO, CHOICES)


@settings(derandomize=True, max_examples=EXAMPLES // 2, deadline=None)
@given(st.data())
def test_they_agree_on_a_row_wise_machine(data: st.DataObject) -> None:
    agree(data, ROW, ROW_CHOICES)


@pytest.mark.slow
@settings(derandomize=True, max_examples=EXAMPLES, deadline=None)
@given(st.data())
def test_they_agree_on_jobs_that_come_by_a_process(data: st.DataObject) -> None:
    agree(data, STREAMS, STREAM_CHOICES)


def agree(data: st.DataObject, scenario: dict[str, Any], choices: dict[str, list[Any]]) -> None:
    paths = data.draw(st.lists(st.sampled_from(sorted(choices)), min_size=1, max_size=5, unique=True))
    axes = {f"a{number}": {"path": path, "values": choices[path]} for number, path in enumerate(paths)}
    try:
        setup = prepare({"scenario": scenario, "axes": axes})
    except InputError:
        # An unknown model or key is told before any point.
        assert {"jobs.1.model", "chip.cores.0.ep"} & set(paths)
        return
    point = data.draw(st.integers(0, len(setup.sweep) - 1))
    resolver = Resolver(setup)
    values = setup.sweep.values(point)
    quick, checked = outcome(lambda: resolver.scenario(values)), outcome(lambda: resolver.checked(values))
    assert quick == checked
    if quick is not None and checked is not None:
        assert [job.name for job in quick.jobs] == [job.name for job in checked.jobs]
        assert scenario_key(quick) == scenario_key(checked)


def prepared(axes: dict[str, Any]) -> tuple[Setup, Resolver]:
    setup = prepare({"scenario": SCENARIO, "axes": axes})
    return setup, Resolver(setup)


def test_numbers_of_cores_jobs_and_layers_really_go_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    setup, resolver = prepared(
        {
            "ep": {"path": "chip.cores.0.ep", "values": [2, 4]},
            "hidden": {"path": "jobs.0.model.layers.0.hidden", "values": [16, 32]},
            "bits": {"path": "precision.weight_bits", "values": [4, 8]},
        }
    )
    monkeypatch.setattr(resolver, "checked", lambda values: pytest.fail("went the long way"))
    scenarios = [resolver.scenario(setup.sweep.values(point)) for point in range(8)]
    assert len({digest(str(each)) for each in scenarios}) == 8
    # One reading for each value of the axis that needs it.
    assert [isinstance(each, Prepared) for each in resolver.prepared.values()] == [True, True]


def test_a_list_of_arrivals_has_one_for_each_job() -> None:
    setup, resolver = prepared({"count": {"path": "jobs.2.count", "values": [2, 3]}})
    assert [job.arrival for job in resolver.scenario(setup.sweep.values(0)).jobs[3:]] == [1, 2]
    with pytest.raises(InputError, match="arrival"):
        resolver.scenario(setup.sweep.values(1))


def test_numbers_of_a_row_wise_machine_go_the_quick_way_too(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = {
        "tiles": {"path": "chip.cores.0.tiles", "values": [1, 2]},
        "mfu0": {"path": "chip.cores.0.latency.mfu0", "values": [1, 25]},
    }
    setup = prepare({"scenario": ROW, "axes": axes})
    resolver = Resolver(setup)
    monkeypatch.setattr(resolver, "checked", lambda values: pytest.fail("went the long way"))
    scenarios = [resolver.scenario(setup.sweep.values(point)) for point in range(4)]
    assert len({digest(str(each)) for each in scenarios}) == 4


def test_jobs_that_come_by_a_process_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = {
        "npe": {"path": "chip.cores.0.npe", "values": [64, 512]},
        "steps": {"path": "jobs.1.steps", "values": [1, 9]},
        "hidden": {"path": "jobs.4.model.layers.0.hidden", "values": [4, 40]},
    }
    setup = prepare({"scenario": STREAMS, "axes": axes})
    resolver = Resolver(setup)
    monkeypatch.setattr(resolver, "checked", lambda values: pytest.fail("went the long way"))
    scenarios = [resolver.scenario(setup.sweep.values(point)) for point in range(8)]
    assert len({digest(str(each)) for each in scenarios}) == 8


@pytest.mark.parametrize("kind", ["stream", "closed", "file"])
def test_an_axis_may_take_the_place_of_a_process(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("arrival_cycles\n5\n6\n7\n")
    processes: dict[str, dict[str, Any]] = {
        "stream": {"frame_ms": 1},
        "closed": {"clients": 1, "think_ms": 1},
        "file": {"path": str(tmp_path / "a.csv")},
    }
    job = {"model": "lstm-512", "steps": 2, "name": "p", "arrival": {"kind": kind, **processes[kind]}}
    if kind != "file":
        job["count"] = 2
    axes = {"when": {"path": "jobs.0.arrival", "values": [3, 4]}, "steps": {"path": "jobs.1.steps", "values": [2, 3]}}
    setup = prepare({"scenario": {**SCENARIO, "jobs": [job, JOBS[0]]}, "axes": axes})
    resolver = Resolver(setup)
    values = setup.sweep.values(0)
    assert resolver.scenario(values) == resolver.checked(values)
    assert {each.deadline for each in resolver.scenario(values).jobs} == {None}


def test_shorter_paths_are_set_first_whatever_the_order_of_the_axes() -> None:
    setup, resolver = prepared(
        {
            "ep": {"path": "chip.cores.0.ep", "values": [16]},
            "chip": {"path": "chip", "values": ["column-npu-64k", "column-npu-16k"]},
            "core": {"path": ["jobs.1.core"], "values": [0]},
        }
    )
    chips = [resolver.scenario(setup.sweep.values(point)).chip for point in range(2)]
    assert [(chip.cores[0].npe, chip.cores[0].ep) for chip in chips] == [(65536, 16), (16384, 16)]


def test_a_scenario_that_needs_its_axes_is_still_a_sweep() -> None:
    lacking = {**SCENARIO, "jobs": [{"model": "lstm-512"}]}
    setup = prepare({"scenario": lacking, "axes": {"t": {"path": "jobs.0.steps", "values": [2, 3]}}})
    resolver = Resolver(setup)
    assert [resolver.scenario(setup.sweep.values(point)).jobs[0].steps for point in range(2)] == [2, 3]


def test_a_row_wise_chip_has_adders_too() -> None:
    chip = load_chip("intel-npu-rtl")
    # 39 in each engine's tree, 6 over the tiles and an accumulator for each row and inference
    assert target_of("row-npu").adders(chip) == 7 * 40 * 6 * 39 + 40 * 6 * (6 + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_that_varies_is_quick(kind: str) -> None:
    """A key whose bounds only a file's checks can hold would make all sweeps over it slow, and nobody would notice."""
    keys = keys_of(target_of(kind).core)
    parts = {f"{name}.{key}": own for name, each in keys.items() for key, own in keys_of(each.kind).items()}
    varied = [name for name, each in {**keys, **parts}.items() if each.key.vary]
    assert len(varied) > 5
    assert [name for name in varied if not quick_path(f"chip.cores.0.{name}")] == []
