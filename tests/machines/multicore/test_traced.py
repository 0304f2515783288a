"""Products through the caches: rounds, cold and warm passes, what is refused."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks
from lstmsim.machines.multicore import product as module
from lstmsim.machines.multicore.product import Traced, traced
from lstmsim.machines.multicore.steps import (
    MOST_ACCESSES,
    MOST_STEPS,
    check_division,
    check_length,
    estimated_accesses,
    estimated_steps,
    in_rounds,
    steps_of,
)
from tests.machines.multicore.chips import TOY, changed
from tests.machines.multicore.drawn import drawn_division, many_cores

MACHINE = many_cores(80)


def fresh(division: Division, caches: str) -> Traced:
    module._kept.cache_clear()
    return traced(MACHINE, division, caches)


def test_rounds_go_from_thread_to_thread() -> None:
    division = Division(Product(4, 8, 40), Cut("MK", 1, 1, 2, 4, 8, 32), SubBlocks(2, 8, 2, 1), buffer=True)

    rounds = [(step.number, step.thread) for step in in_rounds(steps_of(TOY, division))]
    assert rounds == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]


@pytest.mark.parametrize("seed", range(8))
def test_what_is_kept_and_in_which_batches_does_not_matter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    division = drawn_division(seed, most=20)
    warm = fresh(division, "warm")
    cold = traced(MACHINE, division, "cold")

    assert cold == fresh(division, "cold")
    assert warm == traced(MACHINE, division, "warm")
    monkeypatch.setattr(module, "_HELD", 10)
    monkeypatch.setattr(module, "_KEPT", 0)
    assert warm == fresh(division, "warm")


def test_a_warm_product_that_fits_brings_nothing_from_memory() -> None:
    division = Division(Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16))
    cold, made = (traced(TOY, division, caches).counts for caches in ("cold", "warm"))

    # section 8, example B: A, B and C have 2, 4 and 1 lines; the packed ones are created
    assert (cold.l1, cold.memory_read, cold.memory) == (32, 7, (7,))
    assert (made.l1, made.memory_read, made.memory) == (32, 0, (0,))


def test_steps_carry_their_useful_work() -> None:
    division = Division(Product(4, 8, 40), Cut("MK", 1, 1, 2, 4, 8, 32), SubBlocks(2, 8, 2, 1), buffer=True)
    steps = [step for steps in traced(TOY, division).stage.steps for step in steps]

    assert sum(step.work for step in steps) == division.product.macs
    assert [step.work for step in steps if step.label == "update"] == [0] * 4


def test_a_buffer_of_threads_that_are_alone_is_left_out() -> None:
    division = Division(Product(4, 8, 40), Cut("MN", 2, 1, 1, 2, 8, 40), buffer=True)
    made = traced(TOY, division)

    assert made.division == replace(division, buffer=False)
    assert made == traced(TOY, made.division)


@pytest.mark.parametrize(
    ("division", "said"),
    [
        (
            Division(Product(4, 8, 0), Cut("MN", 1, 0, 1, 4, 8, 1)),
            "k: must be at least 1, got 0\np_n: must be at least 1",
        ),
        (
            Division(Product(4, 8, 9), Cut("MN", 1, 1, 1, 4, 8, 9), SubBlocks(0, 4, 1, 1)),
            "sm: must be at least 1, got 0",
        ),
        (
            Division(Product(4, 9, 9), Cut("MK", 1, 2, 2, 4, 4, 4)),
            "nb: 2 parts of 4 columns do not hold all 9 columns; at least 5 columns a part are needed\n"
            "kb: 2 parts of 4 elements of K do not hold all 9 elements of K; at least 5",
        ),
    ],
)
def test_divisions_that_leave_something_out_are_refused(division: Division, said: str) -> None:
    with pytest.raises(InputError, match=said):
        check_division(division)
    with pytest.raises(InputError, match=said):
        steps_of(TOY, division)
    with pytest.raises(InputError, match=said):
        traced(TOY, division)


def test_more_threads_than_cores_are_refused() -> None:
    with pytest.raises(InputError, match="threads: must be at most 2, the number of cores, got 3"):
        traced(TOY, Division(Product(3, 4, 5), Cut("MN", 3, 1, 1, 1, 4, 5)))


def test_products_that_are_too_long_are_refused_before_their_steps_are_listed() -> None:
    """The bound itself is allowed."""
    huge = Division(Product(100_000, 100_000, 10**9), Cut("MN", 1, 1, 1, 100_000, 100_000, 10**9))

    with pytest.raises(
        InputError, match=r"sizes: 100000 x 100000 x 1000000000 touches about .* take a smaller m, n or k"
    ):
        traced(TOY, huge)
    # with so large a first cache K is few steps
    machine = changed(TOY, l1_sets=1 << 16, l1_ways=64)
    edge = Division(Product(2, 4, 1), Cut("MN", 1, 1, 1, 2, 4, 1))
    ks = range(10**10)
    longest = bisect_right(ks, MOST_ACCESSES, key=lambda k: estimated_accesses(machine, of_length(edge, k))) - 1
    assert longest > 10**8
    check_length(machine, of_length(edge, longest))
    with pytest.raises(InputError, match="about 2,000,000,"):
        check_length(machine, of_length(edge, longest + 1))


def test_products_of_too_many_steps_are_refused() -> None:
    """Few lines each, but a step for each block of 16 of K; more threads have no more steps."""
    alone = Division(Product(1, 1, 16 * (MOST_STEPS + 1)), Cut("MN", 1, 1, 1, 1, 1, 16 * (MOST_STEPS + 1)))

    with pytest.raises(InputError, match=r"has about 500,001 steps, cut like this, .* larger blocks have fewer steps"):
        traced(TOY, alone)
    check_length(TOY, of_length(alone, 16 * MOST_STEPS))


def test_the_estimate_of_steps_is_near() -> None:
    for seed in range(25):
        division = drawn_division(seed)
        steps = sum(map(len, steps_of(MACHINE, division)))
        assert steps <= estimated_steps(MACHINE, division) < 8 * steps + 1, seed


def of_length(division: Division, k: int) -> Division:
    return replace(division, product=replace(division.product, k=k), cut=replace(division.cut, kb=k))


@pytest.mark.slow
def test_the_estimate_is_near() -> None:
    """Of drawn divisions with ragged edges and threads without work; it errs upwards, for whole blocks count."""
    for seed in range(25):
        division = drawn_division(seed)
        accesses = traced(MACHINE, division).counts.l1
        assert 0.6 < estimated_accesses(MACHINE, division) / accesses < 6, seed
