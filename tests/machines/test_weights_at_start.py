"""What lies in the memories of cores at the start, what jobs share, what goes first (docs/timing.md, section 10)."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim import run
from lstmsim.engines import ENGINES

CORE = {"npe": 64, "ep": 4, "vp": 16, "weight_bits": 8}
LAYER = {"cell": "lstm", "hidden": 32, "input": 32}
#: Cycles in which 1 KiB is transferred, at 0.4 GB/s and 100 MHz. A model of `LAYER` has 8 row blocks of 1 KiB.
KIB = 256


def moved(kib: int, jobs: list[dict[str, Any]], prefetch_blocks: int = 1) -> list[float]:
    """KiB that are transferred for each job, on one core that holds so many; the same with both engines."""
    chip = {
        "kind": "column-npu",
        "frequency_mhz": 100,
        "cores": [{**CORE, "weight_kib": kib}],
        "memory": {"gb_per_s": 0.4, "latency_cycles": 10, "prefetch_blocks": prefetch_blocks},
    }
    results = [run({"chip": chip, "jobs": jobs}, engine=engine) for engine in ENGINES]
    assert results[0].trace == results[1].trace
    trace = results[0].trace
    transfers = trace.issue("core") == 1
    cycles = trace.issue("cycles") * trace.issue("count") * transfers
    return [float(cycles[trace.issue("task") == number].sum() / KIB) for number in range(len(jobs))]


def job(arrival: int, *, hidden: int = 32, steps: int = 1, **model: Any) -> dict[str, Any]:
    layers = [{**LAYER, "hidden": hidden}]
    return {"model": {"layers": layers, **model}, "steps": steps, "arrival": arrival}


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ({}, {}, True),
        ({"name": "a"}, {"name": "a"}, True),
        ({"name": "a"}, {"name": "b"}, False),
        ({"name": "a"}, {}, False),
        ({}, {"layer_order": "step"}, False),
    ],
)
def test_models_share_weights_if_their_names_layers_and_orders_are_equal(
    first: dict[str, Any], second: dict[str, Any], shared: bool
) -> None:
    """A core for one of them: the second is there, or has to be brought. Names of jobs play no part."""
    jobs = [{**job(0, **first), "name": "x"}, {**job(5000, **second), "name": "y"}]
    # a third model that is never there at the start, so that not everything fits
    jobs.append(job(20000, name="c"))
    assert moved(8, jobs) == [0, 0 if shared else 8, 8]


def test_what_was_never_used_goes_before_what_was_and_the_last_of_the_list_first() -> None:
    names = ["a", "b", "c", "d", "e"]
    # the core holds a, b and c at the start; d takes the place of c, e that of b
    arrivals = {"a": 20000, "b": 30000, "c": 40000, "d": 0, "e": 10000}
    jobs = [job(arrivals[name], name=name) for name in names]
    assert moved(24, jobs) == [0, 8, 8, 8, 8]
    # where a has been used before d and e come, b and c go all the same
    assert moved(24, [job(0, name="a"), *(job(5000 + arrivals[name], name=name) for name in names[1:])])[0] == 0
    assert moved(24, [*jobs, job(50000, name="a")]) == [0, 8, 8, 8, 8, 0]


def test_of_a_streamed_model_what_stays_is_there_at_the_start_if_it_is_the_first_on_the_core() -> None:
    """Of 7 KiB two are kept free for what is streamed: five row blocks stay, three come at every step."""
    large, small = job(0, steps=3), job(50000, hidden=4, name="small")
    assert moved(7, [large], 2) == [3 * 3]
    # all of the core is its own: of the small one (4 x 4 x 36 weights) nothing is there
    assert moved(7, [large, small], 2) == [9, 0.5625]
    # behind the small one nothing of it is there: it brings the five first
    later = job(5000, steps=3)
    assert moved(7, [job(0, hidden=4, name="small"), later], 2) == [0, 5 + 9]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_core_without_a_limit_holds_all_weights_beside_one_that_does_not(engine: str) -> None:
    """Four models of 8 KiB, two on each core: only the second of the core with room for one is transferred."""
    chip = {
        "kind": "column-npu",
        "frequency_mhz": 100,
        "cores": [{**CORE, "weight_kib": 8}, CORE],
        "memory": {"gb_per_s": 0.4, "latency_cycles": 10},
    }
    jobs = [{**job(5000 * number, name=name), "core": number % 2} for number, name in enumerate("abcd")]
    trace = run({"chip": chip, "jobs": jobs}, engine=engine).trace
    transfers = trace.issue("core") == 2
    cycles = trace.issue("cycles") * trace.issue("count") * transfers
    assert [cycles[trace.issue("task") == number].sum() / KIB for number in range(4)] == [0, 0, 8, 0]
