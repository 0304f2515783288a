"""`weights: cold|warm`: what the caches of a CPU and of a parallel device hold when a job begins."""

from typing import Any

import pytest

import lstmsim
from lstmsim.machines.multicore.jobs import runs_in_a_row, settled, shape_of
from lstmsim.machines.multicore.lines.space import COLUMNS
from lstmsim.studies.serve.request import Row
from lstmsim.studies.shared.loading import load_scenario


def _job(hidden: int, **more: Any) -> dict[str, Any]:
    layer = {"cell": "lstm", "hidden": hidden, "input": hidden}
    return {"model": {"name": "m", "layers": [layer]}, "steps": 4, **more}


def _cycles(chip: Any, job: dict[str, Any], **changes: Any) -> int:
    overrides = [f"chip.{key}={value}" for key, value in changes.items()]
    return lstmsim.simulate({"chip": chip, "jobs": [job]}, overrides=overrides).makespan_cycles


@pytest.mark.parametrize(("hidden", "threads", "batch"), [(64, 1, 1), (64, 8, 1), (96, 4, 3), (512, 2, 1)])
def test_a_third_run_of_a_cpu_is_as_the_second(hidden: int, threads: int, batch: int) -> None:
    job = _job(hidden, weights="warm", threads=threads, batch=batch)
    scenario = load_scenario({"chip": "epyc-7742", "jobs": [job]})
    chip = scenario.chip.bare  # type: ignore[attr-defined]
    runs = runs_in_a_row(chip, shape_of(chip, scenario.jobs[0]), 0)
    assert len(runs) == 3
    assert settled(runs)
    assert not settled(runs[:2])


def test_what_fits_in_the_caches_comes_from_no_memory_when_warm() -> None:
    scenario = load_scenario({"chip": "epyc-7742", "jobs": [_job(64, weights="warm", threads=2)]})
    chip = scenario.chip.bare  # type: ignore[attr-defined]
    first, *_, last = runs_in_a_row(chip, shape_of(chip, scenario.jobs[0]), 0)
    of_memory = [
        sum(int(step.counts[:, len(COLUMNS) :].sum()) for one in run for step in one.steps) for run in (first, last)
    ]
    weights = 4 * 64 * 128 * 4 // 64
    assert of_memory[0] > weights
    assert of_memory[1] == 0


def test_a_cpu_begins_cold_where_nothing_is_said() -> None:
    plain, cold, warm = (_cycles("epyc-7742", _job(64, threads=4, **each)) for each in ({}, _COLD, _WARM))
    assert plain == cold > warm


_COLD, _WARM = {"weights": "cold"}, {"weights": "warm"}


@pytest.mark.slow
def test_a_device_begins_with_the_l2_of_its_own_state_where_all_fits_there() -> None:
    of_chip = {state: _cycles("v100", _job(64), l2_state=state) for state in ("cold", "warm")}
    assert of_chip["warm"] < of_chip["cold"]
    for state in ("cold", "warm"):
        assert _cycles("v100", _job(64, **_COLD), l2_state=state) == of_chip["cold"]
        assert _cycles("v100", _job(64, **_WARM), l2_state=state) == of_chip["warm"]


def test_layers_that_do_not_fit_in_l2_together_find_it_empty() -> None:
    layer = {"cell": "lstm", "hidden": 64, "input": 64}
    job = {"model": {"name": "m", "layers": [layer, layer]}, "steps": 2}
    # the weights of one layer are 131,072 bytes
    room = {"l2_bytes": 200_000}
    assert _cycles("v100", {**job, **_WARM}, **room) == _cycles("v100", {**job, **_COLD}, **room)
    assert _cycles("v100", {**job, **_WARM}, l2_bytes=400_000) < _cycles("v100", {**job, **_COLD}, l2_bytes=400_000)
    alone = {**job, "model": {"name": "m", "layers": [layer]}}
    assert _cycles("v100", {**alone, **_WARM}, **room) < _cycles("v100", {**alone, **_COLD}, **room)


def test_machines_without_caches_say_nothing_of_a_default() -> None:
    arrival = {"kind": "poisson", "rate_per_second": 100}
    served = lstmsim.serve({"chip": "column-npu-16k", "jobs": [_job(64, arrival=arrival)]}, requests=2)
    assert served.remarks == ()


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["epyc-7742", "v100"])
def test_requests_that_keep_coming_find_their_weights_warm(chip: str) -> None:
    arrival = {"arrival": {"kind": "poisson", "rate_per_second": 100}}
    threads = {"threads": 4} if chip == "epyc-7742" else {}
    for said, meant in (({}, _WARM), (_WARM, _WARM), (_COLD, _COLD)):
        rows: list[Row] = []
        served = lstmsim.serve(
            {"chip": chip, "jobs": [_job(64, **arrival, **threads, **said)]}, requests=2, rows=rows.extend
        )
        assert {each.finish - each.start for each in rows} == {_cycles(chip, _job(64, **threads, **meant))}
        assert any("weights: warm" in each for each in served.remarks) == (meant is _WARM)
