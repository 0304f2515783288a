"""The search: its walk, its regret against all pairs, mixes on one adder tree, and what it refuses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, Scenario, cell, simulate
from lstmsim.errors import InputError
from lstmsim.search.search import search


def scenario(hidden: int, name: str = "lstm", width: int | None = None, threads: int = 1, steps: int = 10) -> Scenario:
    model = Model(f"{name}-{hidden}", (Layer(cell(name), hidden, width or hidden),))
    core = ColumnCore(npe=4096, ep=4, vp=1024, threads=threads)
    return Scenario(ColumnNpu("chip", 260, (core,)), tuple(Job(f"j{each}", model, steps) for each in range(threads)))


def test_every_step_of_the_walk_is_a_simulation_of_its_own() -> None:
    asked = scenario(512, threads=2)
    result = search(asked, 65536)
    walk = result.common.walk
    assert [point.ep for point in walk.path] == [2**k for k in range(len(walk.path))]
    for point in walk.path:
        assert point.vp == min(4 * 512, 65536 // point.ep)
        core = replace(asked.chip.cores[0], npe=65536, ep=point.ep, vp=point.vp)  # type: ignore[attr-defined]
        report = simulate(Scenario(ColumnNpu("chip", 260, (core,)), asked.jobs))
        assert (report.makespan_cycles, report.utilization) == (point.cycles, point.utilization)
    assert walk.chosen.cycles == min(point.cycles for point in walk.path)


def test_the_walk_goes_on_over_a_plateau() -> None:
    walk = search(scenario(1536, steps=25), 65536).common.walk
    cycles = {point.ep: point.cycles for point in walk.path}
    # EP 8 and 16 are close together, a wider one is better than both
    assert cycles[16] >= 0.99 * cycles[8]
    assert walk.chosen.ep > 16
    assert walk.chosen.cycles < min(cycles[8], cycles[16])


def test_greedy_is_within_a_percent_of_the_optimum_for_nearly_all_pairs() -> None:
    draw = random.Random(7)
    regrets = []
    for _ in range(20):
        hidden, width = draw.randint(64, 700), draw.randint(32, 700)
        asked = scenario(hidden, draw.choice(["lstm", "gru"]), width, draw.randint(1, 2), draw.randint(5, 12))
        found = search(asked, 2 ** draw.randint(10, 17), exhaustive=True).common
        assert found.regret_percent is not None
        assert found.regret_percent >= 0
        regrets.append(found.regret_percent)
    assert sum(each <= 1 for each in regrets) >= 19


def test_any_ep_is_never_worse_than_powers_of_two() -> None:
    asked = scenario(96, width=40)
    plain, finer = (search(asked, 5000, any_ep=each).common.walk.chosen for each in (False, True))
    assert finer.cycles <= plain.cycles


def test_a_mix_names_the_tree_that_serves_each_model_at_its_own_ep() -> None:
    small, large = scenario(256), scenario(1024)
    both = Scenario(small.chip, (*small.jobs, replace(large.jobs[0], name="other")))
    mix = search(both, 65536).mix
    assert mix is not None
    chosen = [each.found.walk.chosen.ep for each in mix.models]
    assert mix.sufficient is not None
    reachable = {mix.sufficient.tree_inputs >> shift for shift in range(mix.sufficient.cat.bit_length())}
    assert set(chosen) <= reachable
    assert mix.sufficient.cat == max(chosen) // min(chosen)
    for model, job in zip(mix.models, both.jobs, strict=True):
        point = model.found.walk.chosen
        core = ColumnCore(npe=65536, ep=point.ep, vp=point.vp)
        assert simulate(Scenario(ColumnNpu("c", 260, (core,)), (job,))).makespan_cycles == point.cycles
        assert model.cycles_at_common_ep >= point.cycles


@pytest.mark.parametrize("npe", [0, -5, 3])
def test_arrays_too_small_for_a_unit_are_refused(npe: int) -> None:
    with pytest.raises(InputError) as caught:
        search(scenario(64), npe)
    assert str(caught.value)


def test_other_cores_are_refused() -> None:
    asked = scenario(64)
    core = asked.chip.cores[0]  # type: ignore[attr-defined]
    unequal = Scenario(ColumnNpu("c", 260, (core, replace(core, threads=2))), asked.jobs)
    with pytest.raises(InputError, match="core"):
        search(unequal, 4096)
    with pytest.raises(InputError, match="core"):
        search(asked, 4096, core=7)
    assert search(unequal, 4096, core=1).cores == (1,)
