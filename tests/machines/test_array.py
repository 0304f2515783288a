"""The structural PE array: trees add every product once, configurable tails have room for every legal ep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.replay.work import PeArray, tree_levels


@given(st.integers(1, 200))
def test_a_tree_needs_one_adder_less_than_it_has_leaves(leaves: int) -> None:
    levels = tree_levels(leaves)
    assert sum(levels) == leaves - 1
    assert len(levels) == (leaves - 1).bit_length()


@given(st.integers(0, 6), st.integers(1, 5), st.integers(1, 20), st.randoms(use_true_random=False))
def test_sums_of_every_reachable_ep(shifts: int, odd: int, vp: int, random: object) -> None:
    cat, tree_inputs = 2**shifts, odd * 2**shifts
    generator = np.random.default_rng(vp)
    for ep in ColumnCore(npe=tree_inputs * vp, ep=tree_inputs, vp=1, tree_inputs=tree_inputs, cat=cat).reachable_ep:
        array = PeArray(ep, vp, tree_inputs, cat)
        weights, elements = generator.integers(-99, 99, (vp, ep)), generator.integers(-99, 99, ep)
        products = array.products(weights, elements)
        assert products.shape == (array.trees, tree_inputs)
        held = np.zeros((array.trees, array.registers), np.int64)
        for _ in range(2):
            array.accumulate(held, array.partial_sums(products), np.add)
        assert array.rows(held).tolist() == (2 * weights @ elements).tolist()


@given(st.integers(0, 7), st.integers(0, 7), st.integers(1, 3))
def test_running_sums_have_places_of_their_own_above_the_levels_that_add(shifts: int, used: int, odd: int) -> None:
    cat, tree_inputs = 2**shifts, odd * 2 ** max(shifts, used)
    ep = tree_inputs >> used
    array = PeArray(ep, 4, tree_inputs, cat)
    if 2**used > cat:
        with pytest.raises(ReplayError, match="has no room"):
            _ = array.accumulators
        return
    places = array.accumulators
    assert len(set(places)) == array.rows_per_tree == 2**used
    levels = array.levels
    assert sum(levels) == tree_inputs - 1
    assert len(levels) == (tree_inputs - 1).bit_length()
    adders = {place for place in places if place[0] < len(levels)}
    assert all((ep - 1).bit_length() <= level and adder < levels[level] for level, adder in adders)
    # one accumulator at the root is all that is added to the tree
    assert len(adders) == array.rows_per_tree - 1


def test_floating_point_sums_go_pair_by_pair() -> None:
    array = PeArray(ep=4, vp=1)
    big = np.array([[1e16, 1.0, -1e16, 1.0]])
    assert array.partial_sums(array.products(big, np.ones(4))).tolist() == [[(1e16 + 1.0) + (-1e16 + 1.0)]]
