"""The planner where the golden cases say nothing: edges, ties, settings of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.gemm import CONDITIONS, Cut, Division, Product, SubBlocks
from lstmsim.machines.multicore.chip import blocks_of
from lstmsim.machines.multicore.cuts import division_of, k_cuts, mn_cuts, second_stage
from lstmsim.machines.multicore.planner import DOCUMENTED, Settings, plan, settings_of
from tests.machines.multicore.chips import TOY, changed

MANY = changed(TOY, cores=128)
NAMES = "k_fit, mn_fit, padding, balance, contention, traffic, cycles, least_kb, most_padding, most_p_k and mn"
WEIGHTS = "k_fit, mn_fit, padding, balance, contention, traffic and cycles"


def only(name: str, **others: Any) -> Settings:
    """Settings with one weight."""
    weights: dict[str, Any] = dict.fromkeys(CONDITIONS, 0) | {name: 1}
    return Settings(**weights | others)


def pairs(cuts: tuple[Cut, ...]) -> list[tuple[str, int, int, int]]:
    return [(cut.kind, cut.p_m, cut.p_n, cut.p_k) for cut in cuts]


def test_a_prime_number_of_threads_has_one_cut_of_k_for_rows_and_none_for_columns() -> None:
    product = Product(64, 64, 4096)
    assert pairs(k_cuts(MANY, product, 61)) == [("MK", 1, 1, 61)]
    assert pairs(mn_cuts(product, 61)) == [("MN", 1, 61, 1), ("MN", 61, 1, 1)]


def test_one_element_on_many_threads_is_left_to_one_of_them() -> None:
    of = plan(MANY, Product(1, 1, 1), 6, DOCUMENTED)
    assert pairs(tuple(each.cut for each in of.ranked)) == [("MN", 2, 3, 1)]
    assert pairs(of.idle) == [("MK", 3, 1, 2), ("MK", 2, 1, 3), ("MK", 1, 1, 6), ("NK", 1, 3, 2), ("NK", 1, 2, 3)]
    assert of.ranked[0].raw["balance"] == 6.0
    assert of.division == Division(Product(1, 1, 1), of.ranked[0].cut)


def test_a_k_that_has_too_few_units_is_cut_into_fewer_parts_only() -> None:
    """K = 20 has three units of 8: no cut into 4 parts, but the last of 3 or 2 may be ragged."""
    product = Product(48, 48, 20)
    of = plan(MANY, product, 12, DOCUMENTED)
    assert pairs(of.idle) == [*(("MK", 12 // each, 1, each) for each in (4, 6, 12)), ("NK", 1, 3, 4), ("NK", 1, 2, 6)]
    parts = [cut for cut in k_cuts(MANY, product, 12) if cut.p_k == 3]
    assert [cut.kb for cut in parts] == [8, 8]
    assert [cut.owned(2, product)[2] for cut in parts] == [(16, 20), (16, 20)]


def test_a_part_of_k_is_never_longer_than_k() -> None:
    (whole, half) = k_cuts(MANY, Product(8, 8, 5), 2)[0], k_cuts(MANY, Product(8, 8, 9), 2)[0]
    assert (whole.kb, half.kb) == (5, 8)


def test_a_very_long_k() -> None:
    of = plan(MANY, Product(3, 5, 100_000), 16, DOCUMENTED)
    best = of.ranked[of.chosen]
    assert (best.cut.kind, best.cut.p_k, best.cut.kb) == ("MK", 16, 6256)
    assert of.buffer
    assert best.cut.owned(15, of.product)[2] == (15 * 6256, 100_000)


def test_fits_have_an_end_where_blocks_are_larger_than_the_caches_want() -> None:
    blocks = blocks_of(TOY)
    of = plan(TOY, Product(2 * blocks.mc + 1, blocks.nc, 4 * blocks.kc), 2, Settings(mn="all"))
    rows = {(each.cut.kind, each.cut.p_m): each for each in of.ranked}
    assert set(rows) == {("MN", 1), ("MN", 2), ("MK", 1)}
    assert rows["MK", 1].raw["mn_fit"] == 1.0
    assert rows["MN", 1].raw["mn_fit"] == (1 / 2) ** 0.5
    assert rows["MN", 2].raw["mn_fit"] == 1.0
    assert all(each.raw["k_fit"] == 1.0 for each in of.ranked)


def test_a_tie_in_fitness_goes_to_fewer_parts_of_k_and_then_to_rows() -> None:
    of = plan(MANY, Product(16, 64, 512), 8, only("padding", mn="blis"))
    assert {each.fitness for each in of.ranked} == {1.0}
    kinds = [(each.cut.kind, each.cut.p_k) for each in of.ranked]
    assert kinds == [("MN", 1), ("MK", 2), ("NK", 2), ("MK", 4), ("NK", 4), ("MK", 8)]


def test_a_tie_of_pairs_goes_to_fewer_parts_of_rows() -> None:
    assert [(cut.p_m, cut.p_n) for cut in mn_cuts(Product(10, 10, 4), 6)] == [(2, 3), (1, 6), (3, 2), (6, 1)]


def test_a_tie_of_sub_blocks_goes_to_fewer_and_then_to_fewer_along_the_rows() -> None:
    """A square block whose rows and columns have equal units: every way to cut has a mirror image."""
    square = changed(MANY, mr=16, nr=16)
    ranked = second_stage(square, Cut("MK", 1, 1, 4, 64, 64, 64)).ranked
    order = [(-each.fitness, each.sub_blocks.count, each.sub_blocks.s_m) for each in ranked]
    assert order == sorted(order)
    mirrored = [each for each in ranked if each.sub_blocks.s_m != each.sub_blocks.s_n]
    assert [each.sub_blocks.s_m for each in mirrored[:2]] == sorted(each.sub_blocks.s_m for each in mirrored[:2])
    assert mirrored[0].fitness == mirrored[1].fitness


def test_sub_blocks_are_cut_at_most_twice_as_often_as_there_are_parts_of_k() -> None:
    ranked = second_stage(MANY, Cut("MK", 1, 1, 2, 200, 1600, 64)).ranked
    assert {each.sub_blocks.s_m for each in ranked} == {each.sub_blocks.s_n for each in ranked} == {1, 2, 3, 4}
    assert min(each.sub_blocks.count for each in ranked) == 2


def test_a_line_of_c_is_never_in_two_sub_blocks() -> None:
    """nr is 4 elements here and a line is 16."""
    assert {each.sub_blocks.sn % 16 for each in second_stage(MANY, Cut("NK", 1, 2, 4, 4, 100, 64)).ranked} == {0}


def test_a_block_too_large_for_a_buffer_and_too_small_for_sub_blocks_is_not_accepted() -> None:
    """A micro-tile as large as the block, and a cache of which no part may be a buffer."""
    stubborn = changed(MANY, mr=64, nr=64, buffer_fill=(1, 1000))
    of = plan(stubborn, Product(64, 64, 4096), 4, Settings(mn="blis"))
    reasons = {(each.cut.kind, each.cut.p_k): each.why_not for each in of.ranked}
    assert reasons["MK", 4] == ("no relief",)
    assert reasons["MN", 1] == ()
    assert of.ranked[of.chosen].cut.p_k == 1


def test_limits_of_acceptance_are_those_of_the_settings() -> None:
    product = Product(8, 64, 4096)
    assert [each.why_not for each in plan(MANY, product, 8).ranked].count(()) == 9
    strict = Settings(least_kb=1, most_p_k=2, most_padding=0.5)
    reasons = {each.cut.kind + str(each.cut.p_k): each.why_not for each in plan(MANY, product, 8, strict).ranked}
    assert reasons["MN1"] == ()
    assert reasons["NK2"] == ("padding > 0.5",)
    assert reasons["MK8"] == ("padding > 0.5", "p_k > 2")
    short = plan(MANY, Product(8, 64, 64), 8, Settings(least_kb=0.75)).ranked
    assert {each.why_not for each in short if each.cut.p_k == 8} == {("kb < 0.75 kc",)}


def test_a_part_of_k_as_long_as_the_least_is_accepted() -> None:
    """K of 64 in 8 parts of 8: the limit is below kb, not at it."""
    kc = blocks_of(MANY).kc
    ranked = plan(MANY, Product(8, 64, 64), 8, Settings(least_kb=8 / kc)).ranked
    assert {each.cut.kb for each in ranked if each.cut.p_k == 8} == {8}
    assert not [each for each in ranked if any(reason.startswith("kb <") for reason in each.why_not)]


def test_all_pairs_are_candidates_also_those_that_leave_threads_without_work() -> None:
    product = Product(4, 64, 64)
    blis, every = (plan(MANY, product, 16, only("padding", mn=mn)) for mn in ("blis", "all"))
    assert pairs(mn_cuts(product, 16)) == [("MN", p_m, 16 // p_m, 1) for p_m in (1, 2, 4, 8, 16)]
    of_mn = tuple(each.cut for each in every.ranked if each.cut.kind == "MN")
    assert of_mn == mn_cuts(product, 16)
    assert every.idle == blis.idle
    assert [each.cut for each in blis.ranked if each.cut.kind == "MN"] == list(of_mn[:1])
    assert {each.raw["balance"] for each in every.ranked if each.cut.p_m == 16} == {4.0}


@pytest.mark.parametrize(("relief", "sub", "buffer"), [
    ("plan", True, True), ("none", False, False), ("sub", True, False), ("buffer", False, True), ("both", True, True),
])  # fmt: skip
def test_reliefs(relief: str, sub: bool, buffer: bool) -> None:
    product, cut = Product(4, 8, 64), Cut("MK", 1, 1, 2, 4, 8, 32)
    own = SubBlocks(2, 16, 2, 1) if sub else None
    assert division_of(TOY, product, cut, relief) == Division(product, cut, own, buffer)
    whole = Cut("MN", 1, 2, 1, 4, 4, 64)
    assert division_of(TOY, product, whole, relief) == Division(product, whole)


def test_a_buffer_is_for_blocks_of_less_than_half_a_caches_and_for_more_of_k_than_a_cache_holds() -> None:
    chip = changed(TOY, l2_sets=1, llc_sets=2)
    blocks = blocks_of(chip)
    assert (blocks.mc, blocks.nc, blocks.kc) == (2, 8, 16)
    assert not second_stage(chip, Cut("MK", 1, 1, 2, 1, 4, 16)).buffer
    assert second_stage(chip, Cut("MK", 1, 1, 2, 1, 3, 16)).buffer
    assert second_stage(chip, Cut("MK", 1, 1, 2, 1, 4, 17)).buffer


def test_a_buffer_that_does_not_fit_is_not_recommended_but_may_be_asked_for() -> None:
    product, cut = Product(64, 64, 64), Cut("MK", 1, 1, 2, 64, 64, 32)
    assert not division_of(TOY, product, cut).buffer
    assert division_of(TOY, product, cut, "both").buffer


@pytest.mark.parametrize(("given", "reported"), [
    ({"trafic": 1}, "trafic: unknown key; did you mean 'traffic'?"),
    ({"zzz": 1}, "zzz: unknown key; known keys: " + NAMES),
    ({"padding": -1}, "padding: must be at least 0, got -1"),
    ({"padding": float("nan")}, "padding: must be a finite number, got nan"),
    ({"padding": "much"}, "padding: must be a number, got 'much'"),
    ({"balance": True}, "balance: must be a number, got true"),
    ({"most_p_k": 0}, "most_p_k: must be at least 1, got 0"),
    ({"most_p_k": 2.5}, "most_p_k: must be a whole number, got 2.5"),
    ({"least_kb": 2}, "least_kb: must be at most 1, got 2"),
    ({"most_padding": 0}, "most_padding: must be greater than 0, got 0"),
    ({"mn": "al"}, "mn: must be 'blis' or 'all', got 'al'; did you mean 'all'?"),
    (dict.fromkeys(CONDITIONS, 0), WEIGHTS + ": one of these weights must be above 0, all are 0"),
])  # fmt: skip
def test_settings_that_are_wrong(given: Mapping[str, Any], reported: str) -> None:
    with pytest.raises(InputError) as error:
        settings_of(given)
    assert str(error.value) == reported


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(InputError) as error:
        settings_of({"padding": -1, "mn": 3, "kfit": 1})
    assert [each.location for each in error.value.mistakes] == ["padding", "mn", "kfit"]


def test_settings_that_are_right() -> None:
    assert settings_of({}) == Settings()
    assert settings_of({"traffic": 3, "mn": "all", "most_p_k": 4}) == Settings(traffic=3, mn="all", most_p_k=4)
    assert list(Settings().weights) == list(CONDITIONS)
