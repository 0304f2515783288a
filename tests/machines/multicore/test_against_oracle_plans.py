"""Random plans against the model of `tests/oracle`, which is written from the text alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.machines.gemm import RELIEFS, Product
from lstmsim.machines.multicore.chip import MulticoreCpu, blocks_of
from lstmsim.machines.multicore.cuts import division_of, mn_cuts
from lstmsim.machines.multicore.planner import DOCUMENTED, plan
from tests.machines.multicore.chips import changed, flat
from tests.machines.multicore.random_work import cut_of, machines, modelled
from tests.oracle import multicore_plan as model

#: 5,000 and more by LSTMSIM_EXAMPLES=5000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))

sizes = st.one_of(st.integers(1, 20), st.integers(1, 300), st.sampled_from([1, 64, 512, 4096, 65536]))
asked = st.builds(Product, sizes, sizes, sizes)
#: Most are 0, so that candidates are equal.
few_weights = st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=6, max_size=6).filter(any)
numbers = st.one_of(st.integers(1, 12), st.sampled_from([16, 24, 36, 48, 60, 64, 61]))


def weighed(conditions: Mapping[str, float]) -> dict[str, float]:
    """Those that the text has."""
    return {name: conditions[name] for name in model.NAMES}


@settings(max_examples=EXAMPLES, deadline=None)
@given(machines(), asked, numbers, st.booleans())
def test_a_plan_with_all_that_led_to_it(machine: MulticoreCpu, product: Product, threads: int, even: bool) -> None:
    if even:
        # rows and columns alike, so that sub-blocks are equal the other way round
        machine = changed(machine, mr=4, nr=4, line=8, element_bytes=8, page=64)
        product = replace(product, n=product.m)
    said = plan(machine, product, threads, DOCUMENTED)
    expected = model.plan(flat(machine), (product.m, product.n, product.k), threads)
    assert tuple(blocks_of(machine)) == expected.blocks
    ranked = [
        (cut_of(each.cut), weighed(each.raw), weighed(each.normalised), each.fitness, list(each.why_not))
        for each in said.ranked
    ]
    assert ranked == expected.ranked
    assert said.chosen == expected.chosen
    assert [cut_of(cut) for cut in said.idle] == expected.idle
    subs = [
        ((sub.sm, sub.sn, sub.s_m, sub.s_n), dict(each.raw), dict(each.normalised), each.fitness)
        for each in said.sub_ranked
        for sub in [each.sub_blocks]
    ]
    assert subs == expected.sub_ranked
    assert modelled(said.division).sub == expected.sub
    assert said.buffer == expected.buffer


@settings(max_examples=EXAMPLES, deadline=None)
@given(machines(), asked, numbers, few_weights)
def test_other_weights_rank_as_the_text_says(
    machine: MulticoreCpu, product: Product, threads: int, weights: list[int]
) -> None:
    said = plan(machine, product, threads, replace(DOCUMENTED, **dict(zip(model.NAMES, weights, strict=True))))
    expected = model.plan(flat(machine), (product.m, product.n, product.k), threads, tuple(weights))
    assert [(cut_of(each.cut), each.fitness) for each in said.ranked] == [each[::3][:2] for each in expected.ranked]
    assert said.chosen == expected.chosen


@settings(max_examples=EXAMPLES, deadline=None)
@given(machines(), asked, numbers, st.sampled_from(RELIEFS))
def test_the_second_stage_of_every_candidate(
    machine: MulticoreCpu, product: Product, threads: int, relief: str
) -> None:
    for cut in (each.cut for each in plan(machine, product, threads, DOCUMENTED).ranked if each.cut.p_k > 1):
        division = modelled(division_of(machine, product, cut, relief))
        assert (division.sub, division.buffer) == model.relieved(flat(machine), cut_of(cut), relief)


@settings(max_examples=EXAMPLES, deadline=None)
@given(asked, numbers)
def test_pairs_of_rows_and_columns(product: Product, threads: int) -> None:
    said = [cut_of(cut) for cut in mn_cuts(product, threads)]
    expected = model.mn_cuts((product.m, product.n, product.k), threads)
    assert said[0] == expected[0]
    assert sorted(said) == sorted(expected)
