"""SpMM, SpMV and SDDMM: golden cases, odd sizes, numbers bit by bit, and what is refused.

`test_traffic_golden.py` holds the streams of the cases, `test_plain_kernels.py` those of random ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernel import Made
from lstmsim.machines.parallel.kernels.rows import options_of
from lstmsim.machines.parallel.kernels.sddmm import SddmmOptions, sddmm
from lstmsim.machines.parallel.kernels.spmm import SpmmOptions, spmm
from lstmsim.machines.parallel.kernels.spmv import SpmvOptions, spmv
from lstmsim.model.sparse.csr import Csr, csr_of_coo, csr_of_dense, lockstep_waste, transposed
from lstmsim.model.sparse.made import drawn_dense
from tests.machines.parallel.golden_device import device_of, laid_out, order_of, placing_of
from tests.model.sparse.golden import Case, cases, matrix_of
from tools.drawn_matrices import checksum, drawn_matrix

TOY = device_of({"preset": "toy"})
NOTHING = [(0, 0), (0, 5), (5, 0), (1, 1), (4, 3), (70, 40)]


def made_of(case: Case) -> Made:
    """What a golden case computes."""
    device, kind = device_of(case["device"]), case["kind"]
    matrix = matrix_of(case, "C" if kind == "sddmm" else "A")
    if kind == "spmm":
        dense = drawn_dense(matrix.columns, case["N"], case["B_seed"])
        return spmm(matrix, dense, options_of(SpmmOptions, case["options"]), device)
    if kind == "spmv":
        vector = drawn_dense(matrix.columns, 1, case["B_seed"])[:, 0]
        return spmv(matrix, vector, options_of(SpmvOptions, case["options"]), device)
    left = drawn_dense(matrix.rows, case["K"], case["A_seed"])
    right = drawn_dense(matrix.columns, case["K"], case["B_seed"])
    return sddmm(matrix, left, right, options_of(SddmmOptions, case["options"]), device)


@pytest.mark.parametrize("case", cases("spmm", "spmv", "sddmm"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    made, expect = made_of(case), case["expect"]
    if "arrays" in expect:
        assert laid_out(made.run) == expect["arrays"]
    counts = {name: value for name, value in made.metrics.items() if name in expect}
    assert counts == {name: expect[name] for name in counts}
    assert len(counts) >= 5
    assert order_of(made) == expect["order"]
    assert placing_of(made) == expect.get("placing", placing_of(made))
    assert made.result is not None
    assert checksum(made.result) == expect["checksum"]


def in_order(terms: list[Any], kind: Any) -> Any:
    """The sum of terms, one after the other, each addition rounded."""
    total = kind(0)
    for term in terms:
        total = kind(total + term)
    return total


def random_floats(seed: int, kind: Any, size: tuple[int, int] = (37, 50)) -> tuple[Csr, np.ndarray]:
    chance = np.random.default_rng(seed)
    full = chance.standard_normal(size).astype(kind) * (chance.random(size) < 0.4)
    return csr_of_dense(full), chance.standard_normal((size[1], 9)).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("order", "align", "share"), [("plain", "reverse", True), ("sorted", "pad", False)])
def test_floats_of_spmm_have_the_bits_of_an_ordered_sum(kind: Any, order: str, align: str, share: bool) -> None:
    matrix, dense = random_floats(1, kind)
    options = SpmmOptions(order=order, align=align, share=share, k_tile=8, v=1, warps=2 if share else 1)
    result = spmm(matrix, dense, options, TOY).result
    assert result is not None
    assert result.dtype == kind
    full = matrix.dense()
    for row in range(matrix.rows):
        for column in range(dense.shape[1]):
            terms = [kind(full[row, k] * dense[k, column]) for k in np.flatnonzero(full[row])]
            assert result[row, column] == in_order(terms, kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats_of_spmv_have_the_bits_of_lanes_and_their_tree(kind: Any) -> None:
    matrix, dense = random_floats(2, kind)
    x, lanes, v = dense[:, 0], 4, 2
    result = spmv(matrix, x, SpmvOptions(lanes=lanes, v=v), TOY).result
    assert result is not None
    assert result.dtype == kind
    for row in range(matrix.rows):
        begin, end = matrix.row_ptr[row : row + 2]
        # loads begin at a multiple of v
        start = begin - begin % v
        sums = []
        for lane in range(lanes):
            own = [at for at in range(begin, end) if (at - start) // v % lanes == lane]
            sums.append(in_order([kind(matrix.values[at] * x[matrix.cols[at]]) for at in own], kind))
        assert result[row] == kind(kind(sums[0] + sums[2]) + kind(sums[1] + sums[3]))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("mode", ["values", "indicator"])
def test_floats_of_sddmm_have_the_bits_of_lanes_and_their_tree(kind: Any, mode: str) -> None:
    chance = np.random.default_rng(3)
    matrix, _ = random_floats(3, kind, (9, 12))
    left, right = (chance.standard_normal((size, 22)).astype(kind) for size in (9, 12))
    result = sddmm(matrix, left, right, SddmmOptions(lanes=4, v=2, tile=3, mode=mode), TOY).result
    assert result is not None
    assert result.dtype == kind
    for at, (row, column) in enumerate(zip(matrix.entry_rows, matrix.cols, strict=True)):
        sums = [
            in_order([kind(left[row, k] * right[column, k]) for k in range(22) if k // 2 % 4 == lane], kind)
            for lane in range(4)
        ]
        total = kind(kind(sums[0] + sums[2]) + kind(sums[1] + sums[3]))
        assert result[at] == (kind(total * matrix.values[at]) if mode == "values" else total)


def test_a_long_row_is_added_in_order_as_well() -> None:
    chance = np.random.default_rng(4)
    values = chance.standard_normal(20_000).astype(np.float32)
    matrix = Csr(2, 20_000, [0, 0, 20_000], np.arange(20_000), values)
    ones = np.ones((20_000, 2), np.float32)
    expected = in_order(list(values), np.float32)
    assert expected != values.sum(), "numpy adds in another order"
    by_spmm = spmm(matrix, ones, SpmmOptions(), TOY).result
    by_spmv = spmv(matrix, ones[:, 0], SpmvOptions(lanes=1), TOY).result
    assert by_spmm is not None
    assert by_spmv is not None
    assert by_spmm.tolist() == [[0, 0], [expected, expected]]
    assert by_spmv.tolist() == [0, expected]


def test_what_is_masked_adds_nothing_not_even_infinity() -> None:
    matrix = csr_of_coo(3, 4, [0, 1, 1, 2], [3, 1, 2, 3], np.ones(4, np.float32))
    dense = np.full((4, 4), 2, np.float32)
    dense[0] = np.inf
    for align in ("reverse", "pad"):
        made = spmm(matrix, dense, SpmmOptions(align=align), TOY)
        assert made.result is not None
        assert made.result.tolist() == [[2.0] * 4, [4.0] * 4, [2.0] * 4]
    # rows begin at entries 0, 1 and 3
    assert spmm(matrix, dense, SpmmOptions(), TOY).metrics["masked"] == 0 + 1 + 3
    made = spmv(matrix, dense[:, 0], SpmvOptions(v=4), TOY)
    assert made.result is not None
    assert made.result.tolist() == [2.0, 4.0, 2.0]
    assert made.metrics["masked"] == 4


def test_whole_numbers_stay_whole_and_do_not_wrap() -> None:
    matrix = csr_of_dense(np.full((1, 2), 100, np.int8))
    made = spmm(matrix, np.full((2, 1), 100, np.int8), SpmmOptions(), TOY)
    assert made.result is not None
    assert (made.result.dtype, made.result.tolist()) == (np.int64, [[20_000]])


@pytest.mark.parametrize("size", NOTHING)
@pytest.mark.parametrize("columns", [0, 1, 20])
def test_matrices_without_entries(size: tuple[int, int], columns: int) -> None:
    matrix = csr_of_coo(*size, [], [], np.zeros(0, np.float32))
    dense = np.ones((size[1], columns), np.float32)
    for options in (
        SpmmOptions(),
        SpmmOptions(order="sorted", dispatch="snake", share=True, warps=2),
        SpmmOptions(format="dcsr", fetch="all", dispatch="static"),
        SpmmOptions(align="pad", fetch="all", order="sorted", format="dcsr", dispatch="round"),
    ):
        result = spmm(matrix, dense, options, TOY).result
        assert result is not None
        assert np.array_equal(result, np.zeros((size[0], columns)))
    for of_vector in (SpmvOptions(), SpmvOptions(lanes=8, v=4, order="sorted", dispatch="snake")):
        result = spmv(matrix, np.ones(size[1], np.float32), of_vector, TOY).result
        assert result is not None
        assert np.array_equal(result, np.zeros(size[0]))
    made = sddmm(matrix, np.ones((size[0], columns)), np.ones((size[1], columns)), SddmmOptions(), TOY)
    assert made.result is not None
    assert made.result.shape == (0,)
    assert made.metrics["blocks_in_grid"] == made.metrics["idle_blocks"]


def test_an_empty_grid_has_no_blocks_and_keeps_its_arrays() -> None:
    made = spmm(drawn_matrix(5, 4, 500, 1), np.zeros((4, 0)), SpmmOptions(), TOY)
    (kernel,) = made.run.kernels
    assert (len(kernel.sm), len(kernel.instructions.kind), made.metrics["blocks_in_grid"]) == (0, 0, 0)
    assert {memory.name: memory.elements for memory in made.run.arrays}["C"] == 0
    dcsr = spmm(csr_of_coo(3, 3, [], [], []), np.zeros((3, 4)), SpmmOptions(format="dcsr"), TOY)
    assert [(kernel.shape.name, len(kernel.sm)) for kernel in dcsr.run.kernels] == [("zero", 3), ("spmm", 0)]


def test_products_of_no_elements_are_zeros_with_all_their_loads() -> None:
    matrix = drawn_matrix(5, 6, 400, 3)
    made = sddmm(matrix, np.zeros((5, 0)), np.zeros((6, 0)), SddmmOptions(), TOY)
    assert made.result is not None
    assert made.result.tolist() == [0.0] * 14
    assert (made.metrics["lanes"], made.metrics["macs"], made.metrics["lane_slots"]) == (1, 0, 0)
    (kernel,) = made.run.kernels
    names = [memory.name for memory in made.run.arrays]
    touched = [names[place] for place in kernel.array if place >= 0]
    # the longest row has 5 entries, one lane, and no product to wait for
    expected = {"row_ptr": 2, "cols": 5, "values": 5, "A": 0, "Bt": 0, "D": 5}
    assert {name: touched.count(name) for name in names} == expected


def test_other_sides() -> None:
    matrix, chance = drawn_matrix(20, 12, 300, 4), np.random.default_rng(5)
    left, right = chance.integers(-4, 5, (7, 20)), chance.integers(-4, 5, (20, 6))
    full = matrix.dense()
    for storage in ("csr", "dcsr"):
        options = SpmmOptions(format=storage, v=1)
        # B sparse, and X sparse: C^T = B^T A^T, and the CSC of A is the CSR of A^T
        made = spmm(transposed(matrix), left.T, options, TOY)
        assert made.result is not None
        assert np.array_equal(made.result.T, left @ full)
        # the columns of B are the rows that the kernel has, and those of A^T its columns
        assert {each.name: each.elements for each in made.run.arrays}["B"] == 20 * 7
        made = spmm(transposed(matrix), right, options, TOY)
        assert made.result is not None
        assert np.array_equal(made.result, full.T @ right)


def test_lockstep_waste_counts_rows_of_bundles() -> None:
    matrix = csr_of_coo(4, 8, [0] * 8 + [1, 1, 2, 3], [*range(8), 0, 1, 0, 0], np.ones(12))
    # a tile of 32 columns with vectors of 4 has 4 rows of 8 lanes
    made = spmm(matrix, np.zeros((8, 32)), SpmmOptions(), TOY)
    assert lockstep_waste(made.plan.stored.length[made.plan.dealt.order], made.plan.subwarps) == 8 * 4 / 12
    made = spmv(matrix, np.zeros(8), SpmvOptions(lanes=32, warps=2), TOY)
    assert lockstep_waste(made.plan.stored.length[made.plan.dealt.order], 2) == (8 * 2 + 1 * 2) / 12


@pytest.mark.parametrize(
    ("options", "columns", "sentence"),
    [
        ({"v": 3}, 8, "v: must be 1, 2 or 4, got 3"),
        ({"v": 4}, 6, "v: must divide the 6 columns of B, got 4"),
        ({"tile": 0}, 8, "tile: must be at least 1, got 0"),
        ({"tile": 6, "v": 4}, 8, "tile: must be a multiple of v 4, got 6"),
        ({"tile": 12, "v": 1}, 8, "tile: must be whole vectors of 8 lanes x v 1 for each warp, got 12"),
        ({"tile": 8, "share": True, "warps": 3}, 8, "tile: must be a multiple of warps 3 x v 4 to be shared, got 8"),
        ({"k_tile": 6}, 8, "k_tile: must be a multiple of 4, got 6"),
        ({"k_tile": 4096}, 8, "k_tile: must fit 98304 bytes of shared memory, got 4096: 524288 bytes of rows"),
        ({"fetch": "all", "tile": 8, "warps": 64}, 8, "fetch: must fit 98304 bytes of shared memory, got all"),
        ({"order": "sort"}, 8, "order: must be plain or sorted, got 'sort'; did you mean 'sorted'?"),
        ({"dispatch": "snail"}, 8, "dispatch: must be demand, static, round, snake or hybrid, got 'snail'"),
        ({"align": "padded"}, 8, "align: must be reverse, none or pad, got 'padded'"),
        ({"share": "yes"}, 8, "share: must be true or false, got 'yes'"),
        ({"fetch": 1}, 8, "fetch: must be needed or all, got 1"),
        ({"format": "csc"}, 8, "format: must be csr or dcsr, got 'csc'"),
        ({"warps": 1.5}, 8, "warps: must be a whole number, got 1.5"),
        ({"blocks": 0}, 8, "blocks: must be at least 1, got 0"),
        ({"blocks": 4, "warps": 2}, 8, "blocks: needs warps 1 and dispatch demand"),
        ({"blocks": 4, "dispatch": "snake"}, 8, "blocks: needs warps 1 and dispatch demand"),
        ({"k_tile": "a"}, 8, "k_tile: must be a whole number, got 'a'"),
    ],
)
def test_options_of_spmm_that_do_not_fit(options: dict[str, Any], columns: int, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        spmm(drawn_matrix(5, 6, 400, 3), np.ones((6, columns)), options_of(SpmmOptions, options), TOY)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lanes": 3}, "lanes: must be a power of two up to the 32 lanes of a warp, got 3"),
        ({"lanes": 64}, "lanes: must be a power of two up to the 32 lanes of a warp, got 64"),
        ({"lanes": 0}, "lanes: must be at least 1, got 0"),
        ({"align": "pad"}, "align: must be reverse or none, got 'pad'"),
        ({"v": True}, "v: must be a whole number, got true"),
    ],
)
def test_options_of_spmv_that_do_not_fit(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        spmv(drawn_matrix(5, 6, 400, 3), np.ones(6), options_of(SpmvOptions, options), TOY)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "value"}, "mode: must be values or indicator, got 'value'; did you mean 'values'?"),
        ({"v": 4}, "v: must divide the 6 columns of A, got 4"),
        ({"tile": -1}, "tile: must be at least 1, got -1"),
        ({"lanes": 5}, "lanes: must be a power of two up to the 32 lanes of a warp, got 5"),
    ],
)
def test_options_of_sddmm_that_do_not_fit(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        sddmm(drawn_matrix(5, 6, 400, 3), np.ones((5, 6)), np.ones((6, 6)), options_of(SddmmOptions, options), TOY)
    assert str(refusal.value).startswith(sentence)


def test_null_is_the_default_and_strange_options_are_ignored() -> None:
    assert options_of(SpmvOptions, {"lanes": None, "v": None, "k_tile": 3}) == SpmvOptions()


def test_operands_of_other_sizes_are_refused() -> None:
    matrix, ones = drawn_matrix(5, 6, 400, 3), np.ones
    for call, sentence in [
        (lambda: spmm(matrix, ones((5, 2)), SpmmOptions(), TOY), "dense operand: must have 6 rows and 2 dimensions"),
        (lambda: spmm(matrix, ones(6), SpmmOptions(), TOY), "dense operand: must have 6 rows and 2 dimensions"),
        (lambda: spmv(matrix, ones(5), SpmvOptions(), TOY), r"vector: must have the shape \(6,\), got \(5,\)"),
        (lambda: sddmm(matrix, ones((6, 2)), ones((6, 2)), SddmmOptions(), TOY), "A: must have 5 rows"),
        (lambda: sddmm(matrix, ones((5, 2)), ones((6, 3)), SddmmOptions(), TOY), r"Bt: must have the shape \(6, 2\)"),
    ]:
        with pytest.raises(InputError, match=sentence):
            call()


def test_arrays_that_no_lane_can_address_are_refused() -> None:
    wide = csr_of_coo(2, 70_000, [0], [69_999], [1])
    with pytest.raises(InputError, match="B: must have at most 2147483647 elements, got 2800000000"):
        spmm(wide, np.broadcast_to(0, (70_000, 40_000)), SpmmOptions(), TOY)
    with pytest.raises(InputError, match="Bt: must have at most 2147483647 elements, got 2800000000"):
        sddmm(wide, np.broadcast_to(0, (2, 40_000)), np.broadcast_to(0, (70_000, 40_000)), SddmmOptions(), TOY)
