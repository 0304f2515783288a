"""The greedy walk: over plateaus and bumps, and to an end that it explains."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.studies.search.array import Limits, Score, Scores, Searched
from lstmsim.studies.search.result import Point, Refused
from lstmsim.studies.search.strategies import TOLERANCE, walk
from tests.studies.search.useful import best_of_all

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "greedy_regret.py"
LIMITS = Limits(((4, 64),), (64,))


def scores(*cycles: int | None) -> Score:
    """The cycles of EP 1, 2, 4, ...; None cannot be simulated."""

    def score(ep: int, vp: int) -> Point | Refused:
        own = cycles[ep.bit_length() - 1]
        return Refused(ep, vp, "it is broken") if own is None else Point(ep, vp, "", own, 0.5, 0.0)

    return score


def lstm(hidden: int, npe: int, steps: int = 25, threads: int = 1) -> Searched:
    model = Model("m", (Layer(cell("lstm"), hidden, hidden),))
    chip = ColumnNpu("chip", 260, (ColumnCore(npe=npe, ep=1, vp=4, threads=threads),))
    return Searched(chip, tuple(Job(f"j{number}", model, steps) for number in range(threads)), (0,), npe)


def walked(searched: Searched, any_ep: bool = False) -> tuple[list[int], Point]:
    result = walk(searched.limits, searched.npe, Scores(searched, lambda: None), any_ep)
    return [point.ep for point in result.path], result.chosen


def test_a_plateau_does_not_end_the_walk() -> None:
    searched = lstm(1536, 65536)
    score = Scores(searched, lambda: None)
    cycles = {}
    for ep in (8, 16, 32):
        point = score(ep, min(6144, 65536 // ep))
        assert isinstance(point, Point)
        cycles[ep] = point.cycles
    assert cycles[16] >= 0.99 * cycles[8]  # a walk that wants every EP to be better ends here
    assert cycles[32] < 0.9 * cycles[8]
    assert walked(searched)[1].ep == 32


def test_the_patents_orderings_come_out() -> None:
    assert [(each.ep, each.vp) for each in (walked(lstm(size, 65536))[1] for size in (512, 1024))] == [
        (32, 2048),
        (16, 4096),
    ]


def test_the_walk_ends_at_the_first_ep_beyond_the_tolerance() -> None:
    more = 100 * (1 + TOLERANCE)
    result = walk(LIMITS, 4096, scores(200, 100, int(more), int(more) + 1, 1))
    assert [each.ep for each in result.path] == [1, 2, 4, 8]
    assert result.chosen.ep == 2
    assert result.stopped.startswith("EP 8 takes 21.0 % more cycles than EP 2; up to 20 % more")
    assert walk(LIMITS, 4096, scores(200, 100, int(more), 90, 200)).chosen.ep == 8
    assert [each.ep for each in walk(LIMITS, 4096, scores(2, 3, 1), tolerance=0).path] == [1, 2]


def test_among_equals_the_smallest_ep_is_chosen() -> None:
    assert walk(LIMITS, 64, scores(100, 90, 90, 90, 90)).chosen.ep == 2


def test_other_ends() -> None:
    falling = scores(*range(100, 80, -1))
    assert walk(LIMITS, 64, falling).stopped == "EP 32 would leave fewer than 4 rows, which one unit needs"
    wide = walk(LIMITS, 1 << 20, falling)
    assert wide.path[-1].ep == 64
    assert "EP 64 holds the longest vector (64)" in wide.stopped
    broken = walk(LIMITS, 4096, scores(9, 8, None, 1))
    assert [each.ep for each in broken.path] == [1, 2]
    assert broken.stopped == "EP 4 cannot be simulated: it is broken"
    assert [each.ep for each in broken.refused] == [4]


def test_what_cannot_be_simulated_at_first_is_passed_over() -> None:
    result = walk(LIMITS, 64, scores(None, None, 7, 8, 9))
    assert [each.ep for each in result.refused] == [1, 2]
    assert result.chosen.ep == 4
    with pytest.raises(InputError, match=r"no \(EP, VP\) of 64 multipliers .* it is broken"):
        walk(LIMITS, 64, scores(None, None, None, None, None))


def test_any_ep_is_at_least_as_good_and_mostly_finds_the_optimum() -> None:
    # npe is no multiple of a power of two times 4 * hidden, so that other EPs fit better
    searched = lstm(96, 9600, steps=6)
    powers, chosen = walked(searched)
    refined = walked(searched, any_ep=True)[1]
    score = Scores(searched, lambda: None)
    optimum = best_of_all(searched.limits, searched.npe, score, any_ep=True)
    assert all(ep & (ep - 1) == 0 for ep in powers)
    assert refined.ep & (refined.ep - 1)
    assert optimum.cycles <= refined.cycles < chosen.cycles
    assert refined.cycles <= 1.01 * optimum.cycles


@pytest.mark.slow
@pytest.mark.needs_core
def test_the_useful_vps_hold_the_optimum_of_equal_jobs() -> None:
    searched = lstm(70, 2048, steps=5, threads=2)
    score = Scores(searched, lambda: None)
    optimum = best_of_all(searched.limits, searched.npe, score)
    for ep in (1 << power for power in range(10)):
        for units in range(1, min(70, 2048 // ep // 4) + 1):
            answer = score(ep, 4 * units)
            assert isinstance(answer, Point)
            assert answer.cycles >= optimum.cycles


def benchmark() -> Any:
    spec = importlib.util.spec_from_file_location("greedy_regret", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.needs_core
@pytest.mark.skipif(not BENCHMARK.is_file(), reason="the benchmarks are not part of the installed package")
def test_regret_on_random_pairs() -> None:
    script = benchmark()
    regrets = script.regrets(20, seed=3)
    assert len({each.pair for each in regrets}) == 20
    assert script.share_found(regrets) >= 0.95
    assert all(each.percent >= 0 for each in regrets)
    strict = [each.rules[script.tolerance_name(0.0)][0] for each in regrets]
    assert sum(percent <= 1 for percent in strict) < 20 * 0.95  # so the tolerance is needed
    text = script.summary(regrets)
    assert f"{100 * script.share_found(regrets):.1f} % within 1 %" in text
    assert text.count("\n* ") == sum(each.percent > 1 for each in regrets)


@pytest.mark.skipif(not BENCHMARK.is_file(), reason="the benchmarks are not part of the installed package")
def test_pairs_stay_in_their_ranges() -> None:
    script, random = benchmark(), Random(0)
    for _ in range(200):
        searched = script.random_pair(random)
        (layer,) = searched.jobs[0].model.layers
        assert 1024 <= searched.npe <= 131072
        assert 64 <= layer.hidden <= 2048
        assert 32 <= layer.input <= 2048
        assert 5 <= searched.jobs[0].steps <= 25
        assert len(searched.jobs) == searched.chip.cores[0].threads <= 2
