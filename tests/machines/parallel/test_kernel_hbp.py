"""The HBP kernel: arrays and counts of the golden cases, results against scipy, odd sizes."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernel import Made
from lstmsim.machines.parallel.kernels.hbp import HbpOptions, hbp_spmv
from lstmsim.machines.parallel.kernels.rows import options_of
from lstmsim.model.sparse.csr import Csr, csr_of_dense
from lstmsim.model.sparse.hbp import HASHES
from lstmsim.model.sparse.made import drawn_dense
from tests.machines.parallel.golden_device import device_of, laid_out
from tests.model.sparse.golden import Case, cases, matrix_of
from tools.drawn_matrices import checksum

TOY = device_of({"preset": "toy"})


def made_of(case: Case) -> Made:
    matrix = matrix_of(case)
    x = drawn_dense(matrix.columns, 1, case["B_seed"])[:, 0]
    return hbp_spmv(matrix, x, options_of(HbpOptions, case["options"]), device_of(case["device"]))


@pytest.mark.parametrize("case", cases("hbp"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    made, expect = made_of(case), case["expect"]
    if "arrays" in expect:
        assert laid_out(made.run) == expect["arrays"]
    metrics = {name: made.metrics[name] for name in made.metrics if name != "finds"}
    assert metrics == {name: expect[name] for name in metrics}
    assert made.result is not None
    if "checksum" in expect:
        assert checksum(made.result) == expect["checksum"]


def some_matrix(seed: int) -> Csr:
    """A matrix of odd size, with long, short and empty rows."""
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 150)), int(rng.integers(1, 90))
    share = rng.choice([0.0, 0.05, 0.3, 1.0], rows)[:, None]
    return csr_of_dense(np.where(rng.random((rows, columns)) < share, rng.integers(1, 6, (rows, columns)), 0))


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize("merge", ["kernel", "atomic"])
@pytest.mark.parametrize("fixed", [0, 50, 100])
def test_results_are_exact(merge: str, fixed: int) -> None:
    for seed in range(12):
        matrix = some_matrix(seed)
        x = np.random.default_rng(seed).integers(-4, 5, matrix.columns)
        m, n, name = 32 * (1 + seed % 3), (1, 7, 64, 1000)[seed % 4], HASHES[seed % 6]
        options = HbpOptions(m, n, name, (1, 3), 1 + seed % 3, 1 + seed % 2, fixed, 1 + seed % 5, merge)
        made = hbp_spmv(matrix, x, options, TOY)
        assert made.result is not None
        assert np.array_equal(made.result, matrix.dense() @ x)
        assert made.metrics["lane_active"] == matrix.entries
        assert sorted(made.plan.part.block.tolist()) == list(range(made.plan.hbp.partition.blocks))


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-6), (np.float64, 1e-12)])
def test_results_in_float(dtype: type, bound: float) -> None:
    matrix = some_matrix(3)
    real = Csr(matrix.rows, matrix.columns, matrix.row_ptr, matrix.cols, (matrix.values / 3).astype(dtype))
    x = np.random.default_rng(1).standard_normal(matrix.columns).astype(dtype)
    made = hbp_spmv(real, x, HbpOptions(32, 16), TOY).result
    assert made is not None
    assert made.dtype == dtype
    # y[r] = 0 + (sum of its first columns) + (sum of its next columns) + ..
    expected = np.zeros(matrix.rows, dtype)
    for first in range(0, matrix.columns, 16):
        part = np.zeros(matrix.rows, dtype)
        for row in range(matrix.rows):
            for at in range(real.row_ptr[row], real.row_ptr[row + 1]):
                if first <= real.cols[at] < first + 16:
                    part[row] += real.values[at] * x[real.cols[at]]
        expected = expected + part
    assert np.array_equal(made, expected)
    whole = real.dense().astype(np.float64)
    assert np.all(np.abs(made - whole @ x) <= bound * (np.abs(whole) @ np.abs(x)) + 1e-30)


def test_infinities_go_through_without_a_warning() -> None:
    matrix = csr_of_dense(np.array([[np.inf, 1.0, -np.inf], [1e308, 1e308, 1.0]]))
    made = hbp_spmv(matrix, np.array([1.0, 10.0, 1.0]), HbpOptions(32, 1), TOY)
    assert made.result is not None
    assert np.isnan(made.result[0])
    assert made.result[1] == np.inf


def test_small_whole_numbers_do_not_run_over() -> None:
    made = hbp_spmv(csr_of_dense(np.full((2, 64), 100, np.int8)), np.full(64, 100, np.int8), HbpOptions(32, 16), TOY)
    assert made.result is not None
    assert made.result.tolist() == [640_000] * 2


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (5, 4), (0, 0)])
def test_nothing_to_multiply(rows: int, columns: int) -> None:
    for merge in ("kernel", "atomic"):
        empty = csr_of_dense(np.zeros((rows, columns)))
        made = hbp_spmv(empty, np.zeros(columns), HbpOptions(32, 2, merge=merge), TOY)
        assert made.result is not None
        assert made.result.tolist() == [0.0] * rows
        assert made.metrics["lane_slots"] == 0


def test_the_fixed_parts_are_for_the_thread_blocks_that_fit() -> None:
    # 24000 columns of 4 bytes: one thread block of the two asked for fits an SM, so two on two SMs
    matrix = csr_of_dense(np.ones((64, 24_000), np.int64)[:, :1] * (np.arange(24_000) % 500 == 0))
    made = hbp_spmv(matrix, np.ones(24_000, np.int64), HbpOptions(32, 24_000, warps=1), TOY)
    assert (made.plan.part.share, len(made.plan.part.columns), made.plan.part.batches) == (1, 2, 0)


def test_more_thread_blocks_than_work() -> None:
    """More places than blocks of the matrix: no part is fixed, all is in the pool."""
    matrix = csr_of_dense(np.eye(40, dtype=np.int64))
    made = hbp_spmv(matrix, np.ones(40, np.int64), HbpOptions(32, 100, blocks_per_sm=32), TOY)
    assert (made.metrics["share"], made.metrics["pool"], made.metrics["batches"]) == (0, 2, 1)


def test_what_cannot_be_run() -> None:
    matrix = csr_of_dense(np.eye(3))
    with pytest.raises(InputError, match="x: must have 3 elements"):
        hbp_spmv(matrix, np.zeros(4), HbpOptions(32, 2), TOY)
    with pytest.raises(InputError, match="m: must be a positive multiple of the 32 lanes of a warp, got 40"):
        hbp_spmv(matrix, np.zeros(3), HbpOptions(40, 2), TOY)
    with pytest.raises(InputError, match="shared_bytes"):
        hbp_spmv(csr_of_dense(np.ones((1, 30_000))), np.zeros(30_000), HbpOptions(32, 30_000), TOY)
    with pytest.raises(InputError) as error:
        options_of(HbpOptions, {"n": 0, "merge": "atom", "fixed_percent": 101, "shift": [1], "tile": 3})
    assert [each.location for each in error.value.mistakes] == ["m"]
    with pytest.raises(InputError) as error:
        HbpOptions(32, 0, "lineal", (1,), 0, True, 101, 2.5, "atom")  # type: ignore[arg-type]
    places = ["n", "hash", "shift", "warps", "blocks_per_sm", "fixed_percent", "batch", "merge"]
    assert [each.location for each in error.value.mistakes] == places
    assert options_of(HbpOptions, {"m": 32, "n": 2, "hash": None, "shift": [1, 2]}) == HbpOptions(32, 2, shift=(1, 2))
