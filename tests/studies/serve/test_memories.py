"""Accounts of memories that cores share: what jobs ask of them, and which rates they certainly allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lstmsim import load_latency, load_scenario, run, saturate, serve
from lstmsim.studies.serve.demands import memory_cycles
from lstmsim.studies.serve.offered import traffic_of

STREAMED = {"kind": "column-npu", "name": "c", "frequency_mhz": 250, "memory": {"gb_per_s": 20}}
STREAMED |= {"cores": [{"npe": 1024, "ep": 8, "vp": 128, "threads": 2, "weight_kib": 256}] * 2}


@pytest.mark.parametrize(
    ("chip", "job"),
    [("epyc-7742", {"model": "lstm-256", "steps": 3, "threads": 5}), (STREAMED, {"model": "lstm-512", "steps": 3})],
    ids=["cpu", "streamed"],
)
def test_an_account_is_what_a_run_takes(chip: Any, job: dict[str, Any]) -> None:
    result = run({"chip": chip, "jobs": [job]})
    program, trace = result.program, result.trace
    busy = np.bincount(
        trace.issue("core"), weights=trace.issue("count") * trace.issue("cycles"), minlength=len(program.cores)
    )
    shared = [number for number, core in enumerate(program.cores) if core.shared]
    first = memory_cycles(program, program.tasks[0])[0]
    assert first.tolist() == busy[shared].tolist()
    assert min(first) > 0


@pytest.mark.needs_core
@pytest.mark.parametrize(
    ("chip", "lines", "cycles_per_line"), [("epyc-7742", 2**17 // 4, 4), ("xeon-gold-5122", 2**17, 5)]
)
def test_the_busiest_memory_is_in_the_bound(chip: str, lines: int, cycles_per_line: int) -> None:
    """2,048 x 1,024 weights of 4 bytes are 2^17 lines of 64 bytes, their pages dealt out to all memories; the rest of
    what a step reads and writes are vectors."""
    arrival = {"kind": "poisson", "rate_per_second": 1000}
    job = {"model": "lstm-512", "steps": 1, "threads": 1, "count": 30, "arrival": arrival}
    scenario = load_scenario({"chip": chip, "jobs": [job]})
    load = traffic_of(scenario).load
    assert load is not None
    cycles = load.parts["memory"] * scenario.chip.frequency_mhz * 1e6 / 1000
    assert lines * cycles_per_line < cycles < 1.02 * lines * cycles_per_line
    assert load.bound_per_second <= 1.0001 * 1000 / load.parts["memory"]
    assert load.parts["memory"] <= load.parts["saturated"]


@pytest.mark.slow
@pytest.mark.needs_core
def test_a_backlog_in_step_does_not_call_a_rate_unstable_that_the_cores_of_a_cpu_keep() -> None:
    """64 jobs of one length that start together meet in the memory again and again; at random they do not, and the
    queue stays short: the mean latency at 36,000/s is the same after 20,000 and after 80,000 requests."""
    arrival = {"kind": "poisson", "rate_per_second": 36_000}
    job = {"model": "lstm-256", "steps": 20, "threads": 1, "weights": "cold", "arrival": arrival}
    scenario = {"chip": "epyc-7742", "jobs": [job]}
    result = serve(scenario, requests=3000)
    load = result.serving.load
    assert load is not None
    assert load.rate_per_second / load.bound_per_second < 0.6 < 1 < load.parts["saturated"]
    assert result.serving.most_waiting < 30
    assert result.serving.verdict == "cannot tell"
    text = " ".join(result.to_text().split())
    assert "offered load 0.5499 to 1." in text
    assert "begin together and meet in the memory that cores share" in text
    found = saturate(scenario, 2.0, low=33_000, high=40_000, tolerance=0.5, percentile=90, most_requests=6000)
    assert {each.kept for each in found.runs} == {None}
    assert found.seen is not None
    assert found.seen == (40_000, None)
    text = " ".join(found.to_text().split())
    assert text.count("begin together") == 1
    assert "40,000.0 were seen to hold" in text
    assert "not certain" in text
    curve = load_latency(scenario, loads=(0.3,), requests=1000).to_text()
    assert "all that epyc-7742 does of a backlog of this mix" in " ".join(curve.split())
    arrival["rate_per_second"] = 70_000
    assert serve(scenario, requests=1000).serving.verdict == "unstable"


def test_weights_that_fit_beside_weights_that_do_not_are_served() -> None:
    comes = {"kind": "periodic", "interval_cycles": 2000, "jitter_cycles": 100}
    models = [{"layers": [{"cell": "lstm", "hidden": hidden, "input": 128}]} for hidden in (256, 32)]
    jobs = [{"model": each, "steps": 3, "count": 12, "arrival": comes} for each in models]
    load = traffic_of(load_scenario({"chip": STREAMED, "jobs": jobs})).load
    alone = traffic_of(load_scenario({"chip": STREAMED, "jobs": jobs[:1]})).load
    assert load is not None
    assert alone is not None
    assert dict(alone.parts)["memory"] > 0
    assert dict(load.parts)["memory"] == pytest.approx(dict(alone.parts)["memory"])
    large = {**STREAMED, "cores": [{**STREAMED["cores"][0], "weight_kib": room} for room in (256, 4096)]}
    either = traffic_of(load_scenario({"chip": large, "jobs": jobs[:1]})).load
    assert either is not None
    assert "memory" not in dict(either.parts)
