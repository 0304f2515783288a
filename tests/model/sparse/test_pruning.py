"""Pruning of real and small matrices: the statistics that independent work measured, ties, parts of rows, blocks."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.matrices import weight_matrix
from lstmsim.model.sparse.csr import Csr, lockstep_waste, statistics
from lstmsim.model.sparse.made import PRUNINGS, pruned

#: Matrix, size, then for 70, 80 and 90 % (nnz, mean, CoV, empty rows, lockstep waste of 4 rows, the same sorted):
#: measured with an independent model of docs/sparse_kernels.md.
EXPECTED = {
    "resemblyzer:l0": (
        (1024, 296),
        (90932, 88.8, 0.48, 0, 1.232, 1.003),
        (60621, 59.2, 0.54, 0, 1.318, 1.005),
        (30311, 29.6, 0.63, 0, 1.511, 1.007),
    ),
    "resemblyzer:l1": (
        (1024, 512),
        (157287, 153.6, 0.35, 0, 1.181, 1.003),
        (104858, 102.4, 0.43, 0, 1.257, 1.003),
        (52429, 51.2, 0.56, 5, 1.400, 1.005),
    ),
    "g2p-en-encoder:l0": (
        (768, 512),
        (117965, 153.6, 0.20, 0, 1.191, 1.003),
        (78644, 102.4, 0.27, 0, 1.260, 1.004),
        (39322, 51.2, 0.37, 0, 1.389, 1.005),
    ),
    "silero-vad-16k:l0": (
        (512, 256),
        (39322, 76.8, 0.25, 0, 1.232, 1.005),
        (26215, 51.2, 0.33, 0, 1.316, 1.007),
        (13108, 25.6, 0.46, 0, 1.469, 1.011),
    ),
}


def bundled(matrix: Csr) -> tuple[float, float]:
    """Lockstep waste of bundles of 4 rows, in their order and sorted by length."""
    lengths = matrix.lengths
    order = np.lexsort((np.arange(len(lengths)), -lengths))
    return round(lockstep_waste(lengths, 4), 3), round(lockstep_waste(lengths[order], 4), 3)


#: The largest has empty rows, the smallest rows of nearly equal length; the others by the long version.
USUAL = ("resemblyzer:l1", "silero-vad-16k:l0")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in USUAL else pytest.mark.long) for each in EXPECTED]
)
def test_real_weights_have_the_measured_statistics(name: str) -> None:
    size, *rows = EXPECTED[name]
    weights, about = weight_matrix(name)
    assert weights.shape == size
    assert name.split(":")[0] in about
    for sparsity, expected in zip((0.7, 0.8, 0.9), rows, strict=True):
        matrix = pruned(weights, sparsity)
        of = statistics(matrix)
        given = (of.entries, round(of.mean_length, 1), round(of.variation, 2), of.empty_rows, *bundled(matrix))
        assert given == expected


def test_of_equal_weights_the_first_go() -> None:
    assert pruned(np.ones((2, 3)), 0.5).dense().tolist() == [[0, 0, 0], [1, 1, 1]]
    assert pruned(np.array([[-2.0, 2.0, -2.0]]), 0.4).dense().tolist() == [[0, 2, -2]]


def test_the_fraction_is_that_of_its_digits() -> None:
    # 0.29 * 100 is 28.999999999999996 in floating point
    assert pruned(np.arange(100.0).reshape(10, 10), 0.29).entries == 71


def test_rows_and_banks_lose_the_same_number() -> None:
    weights = np.random.default_rng(4).standard_normal((6, 8))
    by_row = pruned(weights, 0.5, "row")
    assert by_row.lengths.tolist() == [4] * 6
    banks = pruned(weights, 0.5, "bank", banks=2).dense() != 0
    assert (banks.reshape(12, 4).sum(axis=1) == 2).all()
    for row in range(6):
        kept = by_row.dense()[row] != 0
        assert np.abs(weights[row][kept]).min() > np.abs(weights[row][~kept]).max()


def test_blocks_go_by_their_squares() -> None:
    weights = np.array([[3.0, 0, 2, 2], [0, 0, 2, 2], [0, 1, 9, 0], [0, 0, 0, 0]])
    kept = pruned(weights, 0.5, "block", block=2)
    # squares of the blocks: 9, 16, 1, 81
    assert kept.dense().tolist() == [[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 9, 0], [0, 0, 0, 0]]
    # a 0 that stays is an entry
    assert kept.entries == 8


def test_everything_and_nothing() -> None:
    weights = np.ones((2, 4))
    for by in PRUNINGS:
        assert pruned(weights, 0, by, block=2).entries == 8
        assert pruned(weights, 1, by, block=2).entries == 0
    assert pruned(np.empty((0, 4)), 0.5).rows == 0
    assert pruned(np.empty((3, 0)), 0.5, "row").lengths.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sparsity": 1.5}, "prune: must be from 0 to 1, got 1.5"),
        (
            {"by": "magnitud"},
            "prune-by: must be magnitude, row, bank or block, got 'magnitud'; did you mean 'magnitude'?",
        ),
        ({"by": "bank", "banks": 3}, "banks: must divide the 4 columns into equal parts, got 3"),
        ({"by": "block", "block": 3}, "block: must divide the 2 rows and 4 columns, got 3"),
    ],
)
def test_what_cannot_be_pruned_is_told(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as caught:
        pruned(np.ones((2, 4)), **{"sparsity": 0.5, **wrong})  # type: ignore[arg-type]
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resemblyser:l1", "no model called 'resemblyser'; did you mean 'resemblyzer'?"),
        ("resemblyzer:l7", "model resemblyzer: has no matrix 'l7'; it has l0, l1 and l2"),
        (
            "lstm-512:l0",
            "model lstm-512: has no weights; of those that come with lstmsim, g2p-en-decoder, g2p-en-encoder, ",
        ),
        ("resemblyzer", "model resemblyzer: has 3 matrices, expected one of resemblyzer:l0, resemblyzer:l1 or "),
    ],
)
def test_a_matrix_that_is_not_there_is_told(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        weight_matrix(name)
    assert said in str(caught.value)
