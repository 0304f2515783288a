"""HBP: the arrays of the golden cases, and matrices that come back as they went in."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.sparse.csr import Csr, csr_of_dense, firsts
from lstmsim.model.sparse.hbp import HASHES, Hashed, Hbp, hashed
from tests.model.sparse.golden import Case, cases, matrix_of
from tests.model.sparse.grouping import grouping, padded_groups, tiles
from tools.drawn_matrices import drawn_matrix


def hashed_case(case: Case) -> Hashed:
    options = case["options"]
    shift = tuple(options.get("shift") or (4, 8))
    strategy = options.get("hash") or "linear"
    return hashed(matrix_of(case), options["m"], options["n"], case["device"].get("warp", 32), strategy, shift)


@pytest.mark.parametrize("case", cases("hbp", "convert"), ids=lambda case: case["name"])
def test_the_arrays_of_the_golden_cases(case: Case) -> None:
    made, expected = hashed_case(case), case["expect"]
    names = [name for name in expected if name.startswith("array_")]
    begin_nnz = made.hbp.begin[made.hbp.partition.first_group[:-1]]
    arrays = {name: getattr(made.hbp, name.removeprefix("array_"), begin_nnz) for name in names}
    assert len(arrays) == 7
    assert {name: array.tolist() for name, array in arrays.items()} == {name: expected[name] for name in arrays}
    first = made.hbp.partition.first_position
    probes = [made.probes[start:stop].tolist() for start, stop in pairwise(first)]
    assert probes == expected["probes_per_row"]
    assert made.probes.sum() == expected["probes"]


def same(one: Csr, other: Csr) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("row_ptr", "cols", "values"))


SHAPES = {
    "plain": drawn_matrix(70, 50, 200, 3),
    "rows are a multiple of m": drawn_matrix(64, 9, 300, 5, True),
    "one column": drawn_matrix(40, 1, 500, 6),
    "one row": drawn_matrix(1, 40, 500, 6),
    "nothing": csr_of_dense(np.zeros((5, 4))),
    "no rows": csr_of_dense(np.zeros((0, 4))),
    "no columns": csr_of_dense(np.zeros((4, 0))),
    "a stored zero": Csr(2, 2, np.array([0, 1, 2]), np.array([1, 0]), np.array([0.0, 2.5])),
    "a full row": csr_of_dense(np.eye(33) + (np.arange(33)[:, None] == 7)),
}


def csr_of_hbp(hbp: Hbp) -> Csr:
    """The matrix again, from the arrays of HBP alone: every lane walks its row by `add_sign`."""
    partition = hbp.partition
    lane = np.arange(partition.positions) - partition.first_of_group[partition.group_of_position]
    some = np.flatnonzero(hbp.zero_row >= 0)
    at = hbp.begin[partition.group_of_position[some]] + lane[some] - hbp.zero_row[some]
    rows, places = [], []
    row = hbp.output_hash[some]
    while len(at):
        rows.append(row)
        places.append(at)
        distance = hbp.add_sign[at]
        on = distance >= 0
        row, at = row[on], (at + distance)[on]
    walked = np.concatenate(places) if places else np.zeros(0, np.int64)
    of_row = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    order = np.lexsort((hbp.cols[walked], of_row))
    row_ptr = firsts(np.bincount(of_row, minlength=partition.rows))
    walked = walked[order]
    return Csr(partition.rows, partition.columns, row_ptr, hbp.cols[walked], hbp.data[walked])


@pytest.mark.halved
@pytest.mark.parametrize("strategy", HASHES)
@pytest.mark.parametrize("matrix", SHAPES.values(), ids=list(SHAPES))
def test_walking_back_gives_the_matrix(matrix: Csr, strategy: str) -> None:
    for m, n, omega in ((32, 7, 32), (64, 1000, 32), (4, 1, 2)):
        made = hashed(matrix, m, n, omega, strategy)
        assert same(csr_of_hbp(made.hbp), matrix)
        assert made.hbp.data.dtype == matrix.values.dtype
        partition = made.hbp.partition
        of_blocks = np.split(made.hbp.output_hash, partition.first_position[1:-1])
        for block, rows in enumerate(of_blocks):
            first = block // partition.column_blocks * m
            assert sorted(rows.tolist()) == list(range(first, min(first + m, matrix.rows)))


def test_sizes_and_names_that_mean_nothing_are_refused() -> None:
    matrix = csr_of_dense(np.eye(3))
    with pytest.raises(InputError) as error:
        hashed(matrix, 33, 0, 32, "linaer", (4, 99))
    assert [each.location for each in error.value.mistakes] == ["m", "n", "hash", "shift"]
    assert "did you mean 'linear'?" in str(error.value)


def test_grouping_says_how_alike_neighbours_are() -> None:
    matrix = csr_of_dense([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
    mixed, alike = (grouping(hashed(matrix, 4, 4, 2, name)) for name in ("identity", "sort"))
    # groups (4, 1) and (4, 1), against (1, 1) and (4, 4)
    assert (mixed.deviation, mixed.lockstep, alike.deviation, alike.lockstep) == (1.5, 1.6, 0.0, 1.0)
    assert (mixed.probes, mixed.finds, mixed.comparisons) == (0.0, 0.0, 2.0)
    nothing = grouping(hashed(csr_of_dense(np.zeros((0, 2))), 2, 2, 2))
    assert nothing.lockstep == 0.0


def test_tiles_of_equal_numbers_of_non_zeros() -> None:
    matrix = csr_of_dense([[1, 1, 1], [0, 0, 0], [1, 1, 0]])
    made = tiles(matrix, lanes=2, depth=2)
    # two tiles of four places for five elements; lanes begin at elements 0, 2 and 4, the last two inside rows
    assert (made.tiles, made.lockstep, made.partial, made.empty_rows) == (2, 1.6, 2, 1)


def test_groups_filled_with_zeros() -> None:
    matrix = csr_of_dense([[1, 0, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]])
    made = padded_groups(matrix, m=4, n=4, omega=3)
    # lengths 1, 1, 4: one group stores 12 and costs 3; two store 6 and cost 6
    assert (made.groups, made.stored, made.fill, made.lockstep) == (2, 6, 1.0, 2.5)
    assert made.cells == 6
    assert padded_groups(csr_of_dense(np.zeros((2, 2))), 2, 2, 2).stored == 0
