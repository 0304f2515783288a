"""Weights that do not fit: who runs where, what is moved, on cores that are not alike."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim import check_numerics, run, simulate
from lstmsim.base.errors import InputError

TWO_LAYERS = {"layers": [{"cell": "lstm", "hidden": 16, "input": 16}, {"cell": "lstm", "hidden": 8, "input": 16}]}
WIDE = {"npe": 128, "ep": 4, "vp": 32, "weight_kib": 1}
NARROW = {"npe": 64, "ep": 4, "vp": 16, "weight_kib": 1}
#: 8 KiB of weights.
LSTM_32 = {"layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}


def data(cores: list[dict[str, Any]], jobs: list[dict[str, Any]], **memory: Any) -> dict[str, Any]:
    beside = {"gb_per_s": 0.4, "latency_cycles": 10, "prefetch_blocks": 1, **memory}
    return {"chip": {"kind": "column-npu", "frequency_mhz": 100, "cores": cores, "memory": beside}, "jobs": jobs}


@pytest.mark.parametrize("cores", [[WIDE], [NARROW], [WIDE, NARROW], [NARROW, WIDE]])
def test_every_layer_is_run_whatever_stays_on_which_kind_of_core(cores: list[dict[str, Any]]) -> None:
    """On the moldable core nothing stays beside the row block in use, on the narrow one some do."""
    scenario = data(cores, [{"model": TWO_LAYERS, "steps": 2, "count": 3}])
    result = run(scenario)
    assert sum(core.macs for core in result.report.cores) == 3 * 5632
    assert all(each.float_error < 1e-9 for each in check_numerics(result, random_weights=0))
    assert result.trace == run(scenario, engine="reference").trace


def test_a_streamed_model_runs_where_most_of_it_stays() -> None:
    job = {"model": LSTM_32, "steps": 3}
    room = [{**NARROW, "weight_kib": kib} for kib in (7, 3, 1)]
    alone = simulate(data(room[:1], [job], prefetch_blocks=2))
    for other in room[1:]:
        both = simulate(data([other, room[0]], [job], prefetch_blocks=2))
        assert both.jobs[0].core == 1
        assert both.makespan_cycles == alone.makespan_cycles
        assert both.memory_busy_cycles == alone.memory_busy_cycles
    # two row blocks on their way need 2 KiB
    with pytest.raises(InputError, match=r"a core keeps 1 KiB; .* prefetch_blocks 2 row blocks must fit: 2 KiB"):
        simulate(data(room[2:], [job], prefetch_blocks=2))


def test_the_same_model_stays_on_one_core_and_is_streamed_on_another() -> None:
    cores = [{**NARROW, "weight_kib": 8}, {**NARROW, "weight_kib": 4}]
    jobs = [
        {"model": LSTM_32, "steps": 2, "cores": [1], "name": "pinned"},
        {"model": LSTM_32, "steps": 2, "name": "free"},
    ]
    result = run(data(cores, jobs))
    pinned, free = result.report.jobs
    assert (pinned.core, free.core) == (1, 0)
    assert result.report.cores[0].cycles["weights"] == 0 < result.report.cores[1].cycles["weights"]
    assert all(each.float_error < 1e-9 for each in check_numerics(result, random_weights=0))


def test_a_transfer_takes_its_bytes_over_the_bandwidth() -> None:
    """By hand: 32 bits a cycle (0.4 GB/s at 100 MHz). Nothing of LSTM 32 stays in 1 KiB but the row block in use: 8 row
    blocks of 1 KiB, each 256 cycles, 3 steps."""
    report = simulate(data([NARROW], [{"model": LSTM_32, "steps": 3}]))
    assert report.memory_busy_cycles == 3 * 8 * 256


def test_who_needs_what_is_on_its_way_waits_for_it() -> None:
    """Two requests for a model that has to be brought: the second one starts when the first one's transfer is there."""
    other = {"layers": [{"cell": "lstm", "hidden": 31, "input": 32}]}
    core = {**NARROW, "weight_kib": 8, "threads": 3}
    jobs = [{"model": LSTM_32, "steps": 1}, {"model": other, "steps": 1, "count": 2, "arrival": 2000}]
    report = simulate(data([core], jobs))
    first, second = report.jobs[1:]
    moved = 4 * 31 * (32 + 31)
    assert first.start == 2000
    assert second.start == 2000 + -(-moved * 8 // 32) + 10
    assert report.cores[0].cycles["reload"] == second.start - first.start


@pytest.mark.parametrize("memory", [None, {"gb_per_s": 0.4}])
def test_a_core_without_a_limit_holds_all_that_does_not_fit_on_another(memory: dict[str, Any] | None) -> None:
    """Section 10.2 and 10.5 of docs/timing.md: both models go where their weights lie, one after the other."""
    core = {"npe": 64, "ep": 4, "vp": 16}
    other = {"layers": [{"cell": "lstm", "hidden": 31, "input": 32}]}
    jobs = [{"model": LSTM_32, "steps": 2, "name": "a"}, {"model": other, "steps": 2, "name": "b"}]
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{**core, "weight_kib": 3}, core]}
    alone = simulate({"chip": {**chip, "cores": [core]}, "jobs": jobs})
    both = simulate({"chip": chip | ({"memory": memory} if memory else {}), "jobs": jobs})
    assert [(job.core, job.start, job.finish) for job in both.jobs] == [
        (1, job.start, job.finish) for job in alone.jobs
    ]
