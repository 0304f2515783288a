"""Rows in order, bundled, dealt; segments of streams; sums term by term."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.machines.parallel.kernel import KernelShape
from lstmsim.machines.parallel.kernels.rows import add_in_order, dealt, ordered, stored, tree
from lstmsim.machines.parallel.writing.streams import Grid, Piece, at_place, places_before, written
from lstmsim.model.sparse.csr import csr_of_coo, dcsr_of

LENGTHS = np.array([5, 1, 4, 2, 3, 0, 2])


def test_sorted_rows_of_one_length_keep_their_order() -> None:
    assert ordered(LENGTHS, "plain").tolist() == list(range(7))
    assert ordered(LENGTHS, "sorted").tolist() == [0, 2, 4, 3, 6, 1, 5]


@pytest.mark.parametrize(
    ("dispatch", "tiles", "bundles", "sms"),
    [
        ("demand", [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3], [-1] * 8),
        # block i of 8 on SM floor(i * 3 / 8)
        ("static", [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3], [0, 0, 0, 1, 1, 1, 2, 2]),
        # loads 6, 6, 3, 2 in the first tile, 1, 1, 0, 0 in the second
        ("round", [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 2, 0, 1, 2, 0, 1]),
        ("snake", [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 2, 2, 1, 0, 0, 1]),
        # the heavier half as in snake, the others where there is room
        ("hybrid", [0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 2, 2, -1, -1, -1, -1]),
    ],
)
def test_blocks_of_each_dispatch(dispatch: str, tiles: list[int], bundles: list[int], sms: list[int]) -> None:
    loads = np.stack([LENGTHS, [1, 0, 0, 1, 0, 0, 0]])
    grid = dealt(np.arange(7), loads, 2, dispatch, 3)
    assert (grid.tile.tolist(), grid.bundle.tolist(), grid.sm.tolist()) == (tiles, bundles, sms)


def test_heavy_blocks_come_first_in_round_and_snake() -> None:
    loads = np.array([[1, 0, 9, 9, 2, 1, 9]])
    grid = dealt(np.arange(7), loads, 2, "snake", 2)
    assert grid.bundle.tolist() == [1, 3, 2, 0]
    assert grid.sm.tolist() == [0, 1, 1, 0]


def test_rows_of_warps_and_of_shared_blocks() -> None:
    grid = dealt(ordered(LENGTHS, "sorted"), LENGTHS[None, :], 4, "demand", 2)
    assert grid.rows(2, 2).tolist() == [[0, 2], [4, 3], [6, 1], [5, -1]]
    shared = dealt(ordered(LENGTHS, "sorted"), LENGTHS[None, :], 4, "demand", 2)
    assert shared.rows(2, 4, share=True).tolist() == [[0, 2, 4, 3]] * 2 + [[6, 1, 5, -1]] * 2


def test_what_lies_in_memory_by_alignment() -> None:
    # rows of 3, 0 and 2 entries: offsets 0, 3, 3
    matrix = csr_of_coo(3, 4, [0, 0, 0, 2, 2], [0, 1, 3, 2, 3], [1, 2, 3, 4, 5])
    rows = stored(matrix, 2, "reverse")
    assert (rows.vector, rows.start.tolist(), rows.masked.tolist(), rows.end.tolist()) == (
        *(2, [0, 3, 2], [0, 0, 1], [3, 0, 3]),
    )
    rows = stored(matrix, 2, "none")
    assert (rows.vector, rows.start.tolist(), rows.end.tolist()) == (1, [0, 3, 3], [3, 0, 2])
    rows = stored(matrix, 2, "pad")
    assert (rows.start.tolist(), rows.end.tolist(), rows.length.tolist()) == ([0, 4, 4], [4, 0, 2], [3, 0, 2])
    assert (rows.cols.tolist(), rows.values.tolist()) == ([0, 1, 3, 0, 2, 3], [1, 2, 3, 0, 4, 5])
    assert stored(dcsr_of(matrix), 2, "reverse").row.tolist() == [0, 2]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_segments_stand_one_behind_the_other_and_waits_reach_across(size: int) -> None:
    begins = np.zeros(3, np.int64)

    def text(piece: Piece) -> None:
        chosen, warps = piece.where(piece.place == 0)
        if len(warps):
            begins[piece.stream[chosen]] = warps.alu(1).places
        chosen, warps = piece.where(piece.place > 0)
        if len(warps):
            first = warps.alu(2, [at_place(warps, begins[piece.stream[chosen]]), places_before(warps, 1)])
            warps.fma(1, [first])

    counts = np.array([3, 0, 2])
    kernel = written(text, counts, lambda: Grid(32, {}), KernelShape("k", 1), np.full(3, -1, np.int32), size)
    lines = kernel.instructions
    assert lines.first.tolist() == [0, 5, 5, 8]
    assert lines.count.tolist() == [1, 2, 1, 2, 1, 1, 2, 1]
    waits = [lines.wait[a:b].tolist() for a, b in zip(lines.first_wait, lines.first_wait[1:], strict=False)]
    assert waits == [[], [0, 0], [1], [0, 2], [3], [], [0, 0], [1]]


@pytest.mark.parametrize("sums", [3, 200])
def test_terms_are_added_one_after_the_other(sums: int) -> None:
    chance = np.random.default_rng(sums)
    lengths = chance.integers(0, 40, sums)
    lengths[0] = 40_000
    first = np.concatenate([[0], np.cumsum(lengths)])
    terms = chance.standard_normal((first[-1], 2)).astype(np.float32)
    made = np.full((sums, 2), 0.5, np.float32)
    add_in_order(made, first, lambda numbers: terms[numbers])
    for each in range(sums):
        for column in range(2):
            total = np.float32(0.5)
            for term in terms[first[each] : first[each + 1], column]:
                total = total + term
            assert made[each, column] == total


def test_a_tree_adds_halves() -> None:
    lanes = np.array([1e8, 1, -1e8, 1], np.float32)
    assert tree(lanes) == 2, "(1e8 - 1e8) + (1 + 1)"
    assert tree(np.array([[7]])).tolist() == [7]
