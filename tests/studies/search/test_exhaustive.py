"""The optimum against every possible (EP, VP): no pair that is left out is better, and open proofs are named."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.studies.search.array import (
    Score,
    Scores,
    Searched,
    different_vps,
    doublings,
    least_of,
    vp_starts,
    widest_vp,
)
from lstmsim.studies.search.result import Exhaustive, Point, Refused
from lstmsim.studies.search.strategies import MOST, best_of_every, count_pairs
from tests.studies.search.useful import best_of_all

CELLS = ("lstm", "gru", "rnn", "gru-lbr0", "mingru", "lstm-layernorm", "slstm", "dense")


def model(name: str, hidden: int, width: int, kind: str = "lstm") -> Model:
    return Model(name, (Layer(cell(kind), hidden, width),))


def on_one_core(*jobs: Job, npe: int, threads: int = 1, tail_width: int = 64) -> Searched:
    core = ColumnCore(npe=64, ep=1, vp=64, threads=threads, tail_width=tail_width)
    return Searched(ColumnNpu("chip", 260, (core,)), jobs, (0,), npe)


def random_searched(random: Random, npe: int) -> Searched:
    cores = random.choice((1, 1, 2))
    core = ColumnCore(
        npe=64,
        ep=1,
        vp=64,
        threads=random.randint(1, 3),
        tail_width=random.choice((1, 2, 5)),
        accumulator_banks=random.choice((1, 2, 8)),
        thread_policy=random.choice(("coarse", "fine")),
        switch_cycles=random.choice((0, 0, 3)),
        block_order=random.choice(("row", "row", "column")),
    )
    jobs = []
    for number in range(random.randint(1, 4)):
        layers = [Layer(cell(random.choice(CELLS)), random.randint(2, 14), random.randint(2, 20))]
        if random.random() < 0.4:
            layers.append(Layer(cell("gru"), random.randint(2, 9), layers[0].hidden))
        order = random.choice(("layer", "step"))
        home = random.choice((None, None, (cores - 1,)))
        made = Model(f"m{number}", tuple(layers), layer_order=order)
        jobs.append(
            Job(f"j{number}", made, random.randint(1, 4), random.choice((0, 0, 60)), random.choice((0, 9)), home)
        )
    searched = random.choice(((0,), tuple(range(cores)))) if cores > 1 else (0,)
    if not any(job.may_use(searched) for job in jobs):
        jobs[0] = Job("j0", jobs[0].model, 2)
    return Searched(ColumnNpu("chip", 260, (core,) * cores), tuple(jobs), searched, npe)


def brute_force(searched: Searched, score: Score, any_ep: bool) -> int | None:
    """The fewest cycles of all EPs and all VPs that hold a unit of every model."""
    gates = searched.limits.gates
    eps = range(1, searched.npe + 1) if any_ep else doublings(searched.limits, searched.npe)
    answers = [score(ep, vp) for ep in eps for vp in range(gates, searched.npe // ep + 1)]
    return min((each.cycles for each in answers if isinstance(each, Point)), default=None)


@pytest.mark.halved
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(each, marks=pytest.mark.long) for each in range(8, 14))])
def test_no_pair_is_better_than_the_optimum(seed: int) -> None:
    random = Random(seed)
    searched = random_searched(random, random.choice((20, 27, 32)))
    limits, npe, any_ep = searched.limits, searched.npe, seed % 2 == 1
    score, least = Scores(searched, lambda: None), least_of(searched)
    best = brute_force(searched, score, any_ep)
    if best is None:
        with pytest.raises(InputError):
            best_of_every(limits, npe, score, least, any_ep)
        return
    result = best_of_every(limits, npe, score, least, any_ep)
    assert (result.proven, result.optimum.cycles) == (True, best)
    assert result.simulated + result.refused + result.excluded == result.pairs == count_pairs(limits, npe, any_ep)


@pytest.mark.halved
@pytest.mark.parametrize("seed", range(100, 106))
def test_no_pair_takes_fewer_cycles_than_its_bound(seed: int) -> None:
    searched = random_searched(Random(seed), 30)
    score, least = Scores(searched, lambda: None), least_of(searched)
    gates = searched.limits.gates
    for ep in (1, 2, 3, 5, 8):
        bounds = [least(ep, vp) for vp in range(gates, searched.npe // ep + 1)]
        assert bounds == sorted(bounds, reverse=True)
        for vp, bound in enumerate(bounds, gates):
            answer = score(ep, vp)
            assert isinstance(answer, Refused) or answer.cycles >= bound


def test_the_bound_counts_tiles() -> None:
    late = Job("b", model("m", 8, 8), steps=3, arrival=1000)
    searched = on_one_core(Job("a", model("m", 8, 8), steps=5), late, npe=64, threads=2)
    # 2 blocks of 4 units, 2 groups of x and 2 of h; an MVM of 16 cycles
    assert least_of(searched)(4, 16) == 1000 + 3 * 8 + 16
    frames = on_one_core(Job("a", model("m", 8, 8), steps=5, frame_interval=100), npe=64)
    assert least_of(frames)(4, 16) == 4 * 100 + 8 + 16
    stack = Model("stack", (Layer(cell("lstm"), 8, 8), Layer(cell("gru"), 8, 8, bidirectional=True)))
    both = on_one_core(Job("a", stack, steps=5), npe=64)
    assert least_of(both)(4, 16) == 5 * (8 + 2 * 8) + 16


def test_vps_between_those_that_differ_give_equal_cycles() -> None:
    jobs = (Job("a", model("a", 7, 5), 3), Job("b", model("b", 9, 4, "gru"), 2), Job("c", model("c", 12, 6, "rnn"), 3))
    searched = on_one_core(*jobs, npe=80, threads=2, tail_width=2)
    score, starts = Scores(searched, lambda: None), vp_starts(searched.limits)
    for ep in (1, 2, 4, 8):
        widest = widest_vp(searched.limits, 80, ep)[0]
        different = different_vps(starts, widest)
        assert different == tuple(sorted(different, reverse=True))
        for vp in range(searched.limits.gates, widest + 1):
            start = max(each for each in starts if each <= vp)
            alike = min(each for each in different if each >= start)
            assert cycles(score, ep, vp) == cycles(score, ep, alike)


def cycles(score: Score, ep: int, vp: int) -> int:
    answer = score(ep, vp)
    assert isinstance(answer, Point)
    return answer.cycles


@cache
def three_on_two_threads() -> Searched:
    jobs = (
        Job("a", model("m0", 33, 7), 3),
        Job("b", model("m1", 17, 37, "rnn"), 1),
        Job("c", model("m2", 14, 19, "rnn"), 3),
    )
    return on_one_core(*jobs, npe=200, threads=2, tail_width=1)


def every(searched: Searched, most: int = MOST) -> Exhaustive:
    score = Scores(searched, lambda: None)
    return best_of_every(searched.limits, searched.npe, score, least_of(searched), most=most)


def test_with_several_models_the_useful_vps_are_not_enough() -> None:
    searched = three_on_two_threads()
    useful = best_of_all(searched.limits, 200, Scores(searched, lambda: None))
    result = every(searched)
    assert result.proven
    assert (result.optimum.ep, result.optimum.vp, result.optimum.cycles) == (2, 80, 283)
    assert useful.cycles > 283


def test_a_bounded_search_is_not_proven() -> None:
    searched = three_on_two_threads()
    few, whole = every(searched, most=0), every(searched)
    assert not few.proven
    assert few.simulated < whole.simulated
    assert few.simulated + few.excluded < few.pairs == whole.pairs
    assert every(searched, most=whole.pairs) == whole


def test_what_is_too_large_leaves_a_gap_unless_its_tiles_exclude_it() -> None:
    limits = on_one_core(Job("a", model("m", 16, 16), 1), npe=64).limits

    def score(ep: int, vp: int) -> Point | Refused:
        return Refused(ep, vp, "too large", too_large=True) if vp == 12 else Point(ep, vp, "", 100, 0.5, 0.0)

    assert not best_of_every(limits, 64, score, lambda ep, vp: 90).proven
    result = best_of_every(limits, 64, score, lambda ep, vp: 90 + 20 * (vp < 13))
    assert (result.proven, result.refused) == (True, 0)

    def broken(ep: int, vp: int) -> Point | Refused:
        result = score(ep, vp)
        return Refused(ep, vp, "no bank") if isinstance(result, Refused) else result

    assert best_of_every(limits, 64, broken, lambda ep, vp: 90).proven


def test_too_large_is_told_from_impossible() -> None:
    long = on_one_core(Job("a", model("m", 400, 8), 1_000_000), npe=4096)
    narrow = Scores(long, lambda: None)(1, 4)
    assert isinstance(narrow, Refused)
    assert narrow.too_large
    assert "operations on this chip, a job may have 2,000,000,000" in narrow.reason
    few_rows = Scores(long, lambda: None)(1, 3)
    assert isinstance(few_rows, Refused)
    assert not few_rows.too_large


def test_simulations_saved_are_told() -> None:
    skipped: list[int] = []
    searched = three_on_two_threads()
    score = Scores(searched, lambda: None)
    result = best_of_every(searched.limits, 200, score, least_of(searched), skip=skipped.append)
    assert sum(skipped) == result.excluded
