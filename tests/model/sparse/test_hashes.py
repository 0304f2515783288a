"""Places by the nearest free entry are those that looking one by one gives, with its number of looks."""

from __future__ import annotations

import random
import time
from fractions import Fraction

import numpy as np
import pytest

from lstmsim.model.sparse.hbp import Table, bases, literal_places, placed


def looked_at_one_by_one(base: list[int], end: int) -> tuple[list[int], list[int]]:
    """Places and probes as docs/sparse_kernels.md says them, the slow way."""
    free, places, probes = [True] * end, [], []
    for start in base:
        order = [start, *(start + sign * step for step in range(1, end + 1) for sign in (1, -1))]
        if start >= end:
            order = list(range(end - 1, -1, -1))
        looks = 0
        for each in order:
            if 0 <= each < end:
                looks += 1
                if free[each]:
                    free[each] = False
                    places.append(each)
                    break
        probes.append(looks)
    return places, probes


def test_the_nearest_free_entry_is_the_one_that_probing_takes() -> None:
    random.seed(5)
    for _ in range(800):
        end = random.randint(1, 20)
        base = [random.randint(0, random.choice([3, end, end + 4])) for _ in range(random.randint(0, end))]
        made = literal_places(np.array(base, dtype=np.int64), end)
        assert (made.place.tolist(), made.probes.tolist()) == looked_at_one_by_one(base, end), (base, end)


def test_a_full_table_costs_no_square_of_its_size() -> None:
    began = time.perf_counter()
    made = literal_places(np.zeros(50_000, np.int64), 50_000)
    assert time.perf_counter() - began < 2
    assert made.probes.sum() == 50_000 * 50_001 // 2
    assert made.finds < 10 * 50_000


def table(**changed: object) -> Table:
    given = {"m": 64, "end": 40, "columns": 10, "omega": 32, "scale": Fraction(7, 2)} | changed
    return Table(**given)  # type: ignore[arg-type]


def test_bases_of_each_strategy() -> None:
    counts = np.array([0, 1, 2, 3, 5], dtype=np.int64)
    # c * 64 * 3.5 / 20 = 11.2 c; behind the table all are alike
    assert bases("linear", counts, table()).tolist() == [0, 11, 22, 33, 40]
    # c * 2 * 3.5 / 20 = 0.35 c groups of 32
    assert bases("linear-warp", counts, table()).tolist() == [0, 0, 0, 32, 32]
    assert bases("shift", counts, table(shift=(1, 3))).tolist() == [0, 0, 8, 8, 16]
    # five rows: the low one is at floor(5 * 4 / 100) = 0, the high one at floor(95 * 4 / 100) = 3 of the sorted five
    assert bases("sampled", counts, table(end=5)).tolist() == [0, 1, 2, 4, 4]
    assert bases("sampled", np.array([2, 2, 2]), table(end=3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("strategy", ["linear", "linear-warp", "shift", "sampled"])
def test_without_non_zeros_every_base_is_zero(strategy: str) -> None:
    assert bases(strategy, np.zeros(4, np.int64), table(end=4, scale=Fraction(0))).tolist() == [0] * 4


def test_identity_and_sort_look_at_nothing() -> None:
    counts = np.array([3, 0, 3, 1], dtype=np.int64)
    kept, by_length = (placed(name, counts, table(end=4)) for name in ("identity", "sort"))
    assert kept.place.tolist() == [0, 1, 2, 3]
    assert by_length.place.tolist() == [2, 0, 3, 1]
    assert not kept.probes.any()
    assert not by_length.probes.any()


def test_a_base_of_a_huge_matrix_is_exact() -> None:
    huge = table(m=512, end=512, scale=Fraction(10**18, 10**6 + 1), columns=4096)
    assert bases("linear", np.array([1]), huge).tolist() == [512]
    assert bases("shift", np.array([2**40]), table(shift=(0, 60))).tolist() == [40]
