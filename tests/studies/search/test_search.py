"""A whole search: the simulated points, the searched cores and models, mixes, and refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from lstmsim import simulate
from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.studies.search.result import Point
from lstmsim.studies.search.run import AtEp, cat_choices, reachable, search, trees_for

SMALL = Model("small", (Layer(cell("lstm"), 32, 48),))
LARGE = Model("large", (Layer(cell("gru"), 200, 64), Layer(cell("rnn"), 60, 200)))
CORE = ColumnCore(npe=64, ep=4, vp=16, threads=2, tail_width=8, latency=Latency(activation=11), tree_inputs=8, cat=2)


def scenario(*jobs: Job, cores: tuple[ColumnCore, ...] = (CORE,)) -> Scenario:
    return Scenario(ColumnNpu("chip", 260, cores), jobs or (Job("a", SMALL, 4), Job("b", SMALL, 6, arrival=30)))


def on(original: Scenario, indices: tuple[int, ...], npe: int, point: Point) -> Scenario:
    """The scenario with a point's array in some cores, put together by hand."""
    chip = original.chip
    assert isinstance(chip, ColumnNpu)
    cores = tuple(
        replace(core, npe=npe, ep=point.ep, vp=point.vp, tree_inputs=None, cat=1) if index in indices else core
        for index, core in enumerate(chip.cores)
    )
    return replace(original, chip=replace(chip, cores=cores))


@pytest.mark.parametrize("indices", [(0,), (0, 1)])
def test_every_point_is_a_simulation_of_the_scenario(indices: tuple[int, ...]) -> None:
    original = scenario(cores=(CORE,) * len(indices))
    result = search(original, 2048)
    assert result.cores == indices
    assert result.mix is None
    assert len(result.common.walk.path) > 3
    for point in result.common.walk.path:
        report = simulate(on(original, indices, 2048, point))
        assert point.vp == min(128, 2048 // point.ep)
        assert point.cycles == report.makespan_cycles
        assert point.utilization == pytest.approx(report.utilization)
        hazard = sum(core.cycles["hazard"] for core in report.cores)
        assert point.hazard == pytest.approx(hazard / report.makespan_cycles / len(indices))


@pytest.mark.slow
@pytest.mark.needs_core
def test_one_core_of_several() -> None:
    small = replace(CORE, npe=32, ep=2, tree_inputs=None, cat=1, threads=1)
    jobs = (Job("a", SMALL, 4, cores=(1,)), Job("b", LARGE, 3, cores=(0,)), Job("c", SMALL, 5))
    original = scenario(*jobs, cores=(CORE, small))
    result = search(original, 512, core=1, exhaustive=True)
    # The large model may not run on core 1, so it does not count there.
    assert (result.models, result.rows, result.mix) == (("small",), 128, None)
    for point in result.common.walk.path:
        report = simulate(on(original, (1,), 512, point))
        assert point.cycles == report.makespan_cycles
        assert point.utilization == pytest.approx(report.cores[1].utilization)


def test_exhaustive_is_never_worse_and_counts() -> None:
    calls: list[tuple[int, int]] = []
    result = search(scenario(), 2000, exhaustive=True, progress=lambda done, total: calls.append((done, total)))
    brute = result.common.exhaustive
    assert brute is not None
    assert brute.optimum.cycles <= result.common.walk.chosen.cycles
    assert brute.simulated > len(result.common.walk.path)
    assert [done for done, _ in calls] == list(range(1, brute.simulated + 1))
    assert all(done <= total for done, total in calls)
    regret = result.common.regret_percent
    assert regret == 100 * (result.common.walk.chosen.cycles / brute.optimum.cycles - 1)
    assert search(scenario(), 2000).common.regret_percent is None


@pytest.mark.needs_core
def test_regret_shows_where_greedy_misses() -> None:
    # 3 row blocks of 341, 341 and 209 units take longer in the tail than 3 of 297: no doubling of EP finds that
    model = Model("m", (Layer(cell("gru"), 891, 1063),))
    chip = ColumnNpu("chip", 260, (ColumnCore(npe=131072, ep=1, vp=4, threads=2),))
    result = search(Scenario(chip, (Job("a", model, 12), Job("b", model, 12))), 131072, exhaustive=True).common
    assert result.exhaustive is not None
    assert result.regret_percent is not None
    assert result.regret_percent > 5
    assert result.exhaustive.optimum.bound == "blocks"
    assert result.exhaustive.optimum.vp < 131072 // result.exhaustive.optimum.ep


def test_a_mix_has_a_choice_for_each_model() -> None:
    jobs = (Job("a", SMALL, 4, arrival=500), Job("b", LARGE, 3), Job("c", SMALL, 4, arrival=900))
    result = search(scenario(*jobs), 2048)
    assert result.mix is not None
    assert [(each.model, each.jobs) for each in result.mix.models] == [("small", 2), ("large", 1)]
    assert (
        result.common.walk.chosen.cycles
        == simulate(on(scenario(*jobs), (0,), 2048, result.common.walk.chosen)).makespan_cycles
    )
    # a model's jobs are simulated alone, from the arrival of the first
    alone = scenario(Job("a", SMALL, 4), Job("c", SMALL, 4, arrival=400))
    own = result.mix.models[0]
    assert own.found == search(alone, 2048).common
    common = simulate(on(alone, (0,), 2048, result.common.walk.chosen))
    assert own.cycles_at_common_ep == common.makespan_cycles >= own.found.walk.chosen.cycles


def test_the_cat_of_a_mix_reaches_every_choice_and_no_smaller_one_does() -> None:
    result = search(scenario(Job("a", SMALL, 4), Job("b", LARGE, 3)), 4096)
    mix = result.mix
    assert mix is not None
    assert mix.sufficient is not None
    choices = {each.found.walk.chosen.ep for each in mix.models}
    assert len(choices) == 2
    assert mix.sufficient.cat == max(choices) // min(choices)
    assert choices <= set(reachable(mix.sufficient.tree_inputs, mix.sufficient.cat))
    assert mix.cats[-1] == mix.sufficient
    assert mix.sufficient.cycles == sum(each.found.walk.chosen.cycles for each in mix.models)
    cycles = [each.cycles for each in mix.cats]
    assert cycles == sorted(cycles, reverse=True)
    # the chip that is proposed can be built, with every model's choice
    for choice in mix.models:
        core = replace(CORE, npe=4096, ep=choice.found.walk.chosen.ep, vp=choice.found.walk.chosen.vp)
        assert replace(core, tree_inputs=mix.sufficient.tree_inputs, cat=mix.sufficient.cat).mistakes() == []


def test_a_narrower_vp_of_the_model_is_the_full_vp_of_the_array() -> None:
    """A model of a mix is scored with VP = min(Hw, NPE // EP), the array has NPE // EP rows: the same cycles."""
    result = search(scenario(Job("a", SMALL, 4)), 4096).common.walk
    narrow = [point for point in result.path if point.bound == "Hw"]
    assert narrow
    for point in narrow:
        full = replace(point, vp=4096 // point.ep)
        assert full.vp > point.vp
        assert simulate(on(scenario(Job("a", SMALL, 4)), (0,), 4096, full)).makespan_cycles == point.cycles


def test_smaller_cats_pick_the_best_tree() -> None:
    # model -> cycles at its EP; 8 and 32 are the choices
    models = at_eps({8: 10, 16: 14, 32: 40}, {8: 90, 16: 60, 32: 50})
    sufficient, every = cat_choices([8, 32], models, POWERS)
    assert sufficient is not None
    assert [(each.cat, each.tree_inputs, each.eps, each.cycles) for each in every] == [
        (1, 16, (16, 16), 74),
        (2, 32, (16, 32), 64),
        (4, 32, (8, 32), 60),
    ]


def test_trees_without_a_choice_are_looked_at_too() -> None:
    """The best common EP may be smaller or larger than every model's own EP, and a multiple of none."""
    low = cat_choices([8, 16], at_eps({4: 20, 8: 10, 16: 40}, {4: 20, 8: 60, 16: 11}), POWERS)[1]
    assert (low[0].cat, low[0].tree_inputs, low[0].cycles) == (1, 4, 40)
    high = cat_choices([8, 16], at_eps({8: 10, 16: 90, 32: 20}, {8: 90, 16: 11, 32: 20}), POWERS)[1]
    assert (high[0].cat, high[0].tree_inputs, high[0].cycles) == (1, 32, 40)


def test_the_smallest_cat_among_equals_is_sufficient() -> None:
    models = at_eps({1: 50, 8: 50}, {1: 90, 8: 60})
    sufficient, every = cat_choices([1, 8], models, POWERS)
    assert sufficient == every[0]
    assert (sufficient.cat, sufficient.tree_inputs, sufficient.eps, len(every)) == (1, 8, (8, 8), 1)


def test_every_tree_of_powers_of_two_is_tried() -> None:
    assert trees_for([4, 16], POWERS) == POWERS
    result = search(scenario(Job("a", SMALL, 4), Job("b", LARGE, 3)), 4096).mix
    assert result is not None
    assert result.trees == tuple(1 << power for power in range(11))  # 4096 // 4 rows of the LSTM's four gates
    any_ep = search(scenario(Job("a", SMALL, 4), Job("b", LARGE, 3)), 1000, any_ep=True).mix
    assert any_ep is not None
    assert set(any_ep.trees) >= {each.found.walk.chosen.ep for each in any_ep.models}


POWERS = (1, 2, 4, 8, 16, 32, 64)


def at_eps(*tables: dict[int, int]) -> list[AtEp]:
    """Models by their cycles at some EPs; at all others they are slow."""
    return [lambda ep, own=own: Point(ep, 4, "", own.get(ep, 999), 0.0, 0.0) for own in tables]  # type: ignore[misc]


@dataclass(frozen=True)
class OtherChip:
    name: str = "other"
    kind: str = "row-npu"
    frequency_mhz: float = 1.0
    core_figures: tuple[()] = ()


@pytest.mark.parametrize(
    ("original", "npe", "core", "text"),
    [
        (scenario(), 0, None, "npe: must be at least 1, got 0"),
        (scenario(), -5, None, "npe: must be at least 1, got -5"),
        (scenario(), 10_000_001, None, "npe: must be at most 10,000,000, as in a chip's file, got 10,000,001"),
        (scenario(), 10**21, None, "npe: must be at most 10,000,000, as in a chip's file, got 1,000,000,000,000,000,0"),
        (scenario(), 3, None, "npe: must be at least 4, the gates of one unit of the largest cell, got 3"),
        (scenario(), 64, 1, "core: there is no core 1; the chip has 1 (0 to 0)"),
        (scenario(), 64, -1, "core: there is no core -1; the chip has 1 (0 to 0)"),
        (scenario(cores=(CORE, replace(CORE, threads=1))), 64, None, "core: the 2 cores of chip chip are not equal; "),
        (
            scenario(Job("a", SMALL, 1, cores=(0,)), cores=(CORE, CORE)),
            64,
            1,
            "core: no job may run on core 1: all are",
        ),
        (Scenario(OtherChip(), (Job("a", SMALL, 1),)), 64, None, "chip other: is of kind 'row-npu', which has no EP"),
        (scenario(Job("a", SMALL, 1, batch=65)), 64, None, "no (EP, VP) of 64 multipliers can be simulated; (1, 64): "),
        (
            scenario(cores=(replace(CORE, block_order="column"),)),
            16,
            None,
            "no (EP, VP) of 16 multipliers can be simulated; (1, 16): job a: no core can run it: block_order 'column'",
        ),
    ],
)
def test_refused(original: Scenario, npe: int, core: int | None, text: str) -> None:
    with pytest.raises(InputError) as caught:
        search(original, npe, core=core)
    assert str(caught.value).startswith(text)


def test_few_banks_narrow_the_walk() -> None:
    """In column order every row block needs a bank: an EP that leaves too few rows ends the walk with that reason."""
    core = replace(CORE, block_order="column", accumulator_banks=2)
    result = search(scenario(cores=(core,)), 256, exhaustive=True).common
    assert [point.ep for point in result.walk.path] == [1, 2, 4]
    assert "EP 8 cannot be simulated" in result.walk.stopped
    assert "accumulator_banks >= 4" in result.walk.stopped
    assert result.exhaustive is not None
    assert result.exhaustive.refused > 0
