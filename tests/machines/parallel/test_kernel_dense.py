"""Dense kernels: golden cases, products in the order of the lanes, cells, steps, what a persistent kernel does."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASSES, Kernel, Made, Run
from lstmsim.machines.parallel.kernels.dense import GemmOptions, Tile, default_tiles, gemm, gemv, slices_of, tile_of
from lstmsim.machines.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.kernels.rows import options_of
from tests.machines.parallel.golden_device import device_of, laid_out
from tests.machines.parallel.golden_traffic import expected_traffic, shown_traffic
from tests.model.sparse.golden import Case, cases

TOY = device_of({"preset": "toy"})
SMALL = Tile(64, 16, 8, 4, 4)


def made_of(case: Case, device: ParallelDevice) -> Made:
    if case["kind"] == "gemv":
        return gemv(case["M"], case["K"], device)
    options = options_of(GemmOptions, case["options"])
    tile = tile_of(options)
    if case["kind"] == "lstm":
        sizes = RecurrentSizes(case["H"], case["X"], case["N"], case["steps"])
        return recurrent_layer(sizes, tile, options.split, device)
    assert tile is not None
    return gemm((case["M"], case["K"], case["N"]), tile, options.split, device)


@pytest.mark.parametrize("case", cases("gemv", "gemm", "lstm"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    device, expect = device_of(case["device"]), case["expect"]
    run = made_of(case, device).run
    shown = shown_traffic(run, device)
    assert shown == expected_traffic(expect, shown)
    assert laid_out(run) == expect.get("arrays", laid_out(run))


def issues(run: Run) -> Counter[str]:
    """Issues by class of all kernels."""
    total: Counter[str] = Counter()
    for kernel in run.kernels:
        for kind, count in zip(kernel.instructions.kind.tolist(), kernel.instructions.count.tolist(), strict=True):
            total[CLASSES[kind]] += count
    return total


def stream(kernel: Kernel, number: int) -> list[tuple[str, int, list[int]]]:
    """Class, count and waits of a stream's instructions."""
    text = kernel.instructions
    return [
        (
            CLASSES[text.kind[row]],
            int(text.count[row]),
            text.wait[text.first_wait[row] : text.first_wait[row + 1]].tolist(),
        )
        for row in range(text.first[number], text.first[number + 1])
    ]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 3), (9, 130), (4, 256), (3, 258)])
def test_matrix_times_vector(rows: int, columns: int) -> None:
    rng = np.random.default_rng(columns)
    whole = rng.integers(-4, 5, (rows, columns)), rng.integers(-4, 5, columns)
    result = gemv(rows, columns, TOY, whole).result
    assert result is not None
    assert np.array_equal(result, whole[0] @ whole[1])
    real = tuple(rng.standard_normal(each.shape).astype(np.float32) for each in whole)
    single = gemv(rows, columns, TOY, (real[0], real[1])).result
    assert single is not None
    assert single.dtype == np.float32
    # lanes in turn, each element by element, then the tree
    v = 4 if columns % 4 == 0 else 2 if columns % 2 == 0 else 1
    for row in range(rows):
        lanes = [np.float32(0)] * 32
        for k in range(columns):
            lanes[k // v % 32] += real[0][row, k] * real[1][k]
        for half in (16, 8, 4, 2, 1):
            lanes = [lanes[place] + lanes[place + half] for place in range(half)]
        assert lanes[0] == single[row]


@pytest.mark.parametrize(("sizes", "split"), [((10, 40, 6), 1), ((70, 25, 17), 3), ((1, 1, 1), 0), ((3, 200, 2), 0)])
def test_matrix_times_matrix(sizes: tuple[int, int, int], split: int) -> None:
    rows, inner, columns = sizes
    rng = np.random.default_rng(inner)
    a, b = rng.integers(-4, 5, (rows, inner)), rng.integers(-4, 5, (inner, columns))
    made = gemm(sizes, SMALL, split, TOY, (a, b))
    assert made.result is not None
    assert np.array_equal(made.result, a @ b)
    assert made.metrics == {"macs": rows * inner * columns}
    real = a.astype(np.float64) / 3, b.astype(np.float64) / 7
    close = gemm(sizes, SMALL, split, TOY, real).result
    assert close is not None
    assert np.abs(close - real[0] @ real[1]).max() <= 1e-12 * (np.abs(real[0]) @ np.abs(real[1])).max()


def test_slices_by_the_rule_are_added_up_by_a_kernel() -> None:
    # one tile, two SMs: min(floor(300 / 64), floor(4 / 1)) = 4 slices of roundup(75, 8) = 80 elements
    made = gemm((20, 300, 10), SMALL, 0, TOY)
    assert slices_of((64, 300, 16), SMALL, 0, 2) == [(0, 80), (80, 160), (160, 240), (240, 300)]
    assert [kernel.shape.name for kernel in made.run.kernels] == ["gemm", "reduce"]
    assert (made.run.arrays[-1].name, made.run.arrays[-1].elements) == ("partial", 4 * 200)
    reduce = made.run.kernels[1]
    assert (reduce.shape.warps, reduce.shape.registers, len(reduce.sm)) == (4, 16, 2)
    adding = [("ldg", 1, [0]), ("fma", 1, [1]), ("ldg", 1, [0]), ("fma", 1, [3, 2])]
    assert stream(reduce, 6)[1:5] == adding
    assert stream(reduce, 6)[-1] == ("stg", 1, [8])
    assert stream(reduce, 7) == []
    # 13 elements are one slice of 16 if two are asked for, for slices are whole tiles
    assert slices_of((64, 13, 16), SMALL, 2, 2) == [(0, 8), (8, 13)]
    assert slices_of((64, 8, 16), SMALL, 2, 2) == [(0, 8)]


def test_small_whole_numbers_do_not_run_over() -> None:
    ones, tall = np.full((2, 64), 100, np.int8), np.full((64, 3), 100, np.int8)
    vector, matrix = gemv(2, 64, TOY, (ones, tall[:, 0])).result, gemm((2, 64, 3), SMALL, 0, TOY, (ones, tall)).result
    assert vector is not None
    assert matrix is not None
    assert vector.tolist() == [640_000] * 2
    assert matrix.tolist() == [[640_000] * 3] * 2


def test_infinities_go_through_without_a_warning() -> None:
    row = np.array([[np.inf, -np.inf, 1.0, 1e308 * 10]])
    for result in (
        gemv(1, 4, TOY, (row, np.ones(4))).result,
        gemm((1, 4, 1), SMALL, 2, TOY, (row, np.ones((4, 1)))).result,
    ):
        assert result is not None
        assert np.isnan(result).all()


def test_default_tiles() -> None:
    assert [default_tiles(columns)[0].bn for columns in (16, 17, 33)] == [16, 32, 64]
    assert default_tiles(64)[0] == Tile(64, 64, 8, 8, 4)
    assert default_tiles(64)[-1] == Tile(128, 128, 8, 8, 8)
    assert default_tiles(8) == (SMALL,)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bm": 64}, "bn: is missing"),
        ({"bm": 64, "bn": 16, "bk": 6, "tm": 4, "tn": 4}, "bk: must be a multiple of 4, got 6"),
        ({"split": -1}, "split: must be at least 0, got -1"),
        ({"bm": 64.5, "bn": 16, "bk": 8, "tm": 4, "tn": 4}, "bm: must be a whole number, got 64.5"),
    ],
)
def test_options_of_tiles_that_do_not_fit(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        options_of(GemmOptions, options)


def test_products_that_cannot_be_written() -> None:
    assert options_of(GemmOptions, {"split": None, "bm": None, "lanes": 5}) == GemmOptions()
    with pytest.raises(InputError, match="whole warps of 32 threads, got 16 threads"):
        gemm((8, 8, 8), Tile(16, 16, 8, 4, 4), 1, TOY)
    with pytest.raises(InputError, match="cut evenly by threads of 8 x 4"):
        gemm((8, 8, 8), Tile(68, 16, 8, 8, 4), 1, TOY)
    with pytest.raises(InputError, match="K: must be at least 1, got 0"):
        gemm((8, 0, 8), SMALL, 1, TOY)
    with pytest.raises(InputError, match="shared_bytes"):
        gemm((8, 8, 8), Tile(64, 16, 2048, 4, 4), 1, TOY)
    with pytest.raises(InputError, match="data"):
        gemm((8, 8, 8), SMALL, 1, TOY, (np.zeros((8, 7)), np.zeros((8, 8))))
    with pytest.raises(InputError, match="data"):
        gemv(2, 3, TOY, (np.zeros((2, 2)), np.zeros(3)))
    with pytest.raises(InputError, match="W: must have at most 2147483647 elements, got 10000000000"):
        gemv(100_000, 100_000, TOY)
    with pytest.raises(InputError, match="partial: must have at most"):
        gemm((40_000, 80, 20_000), SMALL, 3, TOY)
    with pytest.raises(InputError, match="tile: is missing"):
        recurrent_layer(RecurrentSizes(4, 4, 2, 1), None, 0, TOY)
    with pytest.raises(InputError, match="did you mean 'lstm'"):
        RecurrentSizes(4, 4, 2, 1, "lstn")


#: Class, count and waits of the kernel behind the product, by cell.
STREAMS = {
    "gru": [
        *[("ldg", 1, [0])] * 9,
        ("fma", 4, [1, 2, 3, 4, 5, 6, 7, 8]),
        ("sfu", 2, [10]),
        ("fma", 1, [11]),
        ("sfu", 1, [12]),
        ("fma", 2, [13, 9]),
        ("stg", 1, [14]),
    ],
    "rnn": [*[("ldg", 1, [0])] * 2, ("fma", 1, [1, 2]), ("sfu", 1, [3]), ("stg", 1, [4])],
    "rnn-relu": [*[("ldg", 1, [0])] * 2, ("fma", 1, [1, 2]), ("alu", 1, [3]), ("stg", 1, [4])],
}


@pytest.mark.parametrize("cell", STREAMS)
def test_cells(cell: str) -> None:
    run = recurrent_layer(RecurrentSizes(40, 8, 1, 2, cell), None, 0, TOY).run
    assert [kernel.shape.name for kernel in run.kernels] == ["gemv", "cell"] * 2
    assert run.kernels[1] is run.kernels[3]
    assert stream(run.kernels[1], 1) == [("alu", 4, []), *STREAMS[cell]]
    assert stream(run.kernels[1], 2) == []


def test_a_gru_that_resets_before_its_second_product() -> None:
    made = recurrent_layer(RecurrentSizes(32, 8, 1, 1, "gru-lbr0"), None, 0, TOY)
    first, reset, second, new = made.run.kernels
    assert made.metrics["macs"] == 3 * 32 * 40
    assert (len(first.sm), len(second.sm)) == (16, 8)
    resetting = [("alu", 4, []), *[("ldg", 1, [0])] * 3, ("fma", 1, [1, 2]), ("sfu", 1, [4]), ("fma", 1, [5, 3])]
    assert stream(reset, 0) == [*resetting, ("stg", 1, [6])]
    ending = [("fma", 2, [1, 2, 3, 4]), ("sfu", 2, [6]), ("fma", 2, [7, 5]), ("stg", 1, [8])]
    assert stream(new, 0) == [("alu", 4, []), *[("ldg", 1, [0])] * 5, *ending]
    names = ["W", "xh", "gates", "bias", "Wn", "xrh", "new", "bias_new", "rh", "h"]
    assert [each.name for each in made.run.arrays] == names


@pytest.mark.slow
def test_rows_of_a_gru_read_no_columns_that_are_all_zero() -> None:
    """The rows of n over x and those over h do not read each other's columns, as vector and as tiles."""
    wide, high = 256, 512
    made = recurrent_layer(RecurrentSizes(high, wide, 1, 1, "gru"), None, 0, TOY)
    loads = [sum(name == "ldg" for name, _, _ in stream(made.run.kernels[0], row * high)) for row in range(4)]
    # vectors of 4 in 32 lanes: 6 pairs of loads for all columns, 2 for x, 4 for h
    assert loads == [12, 12, 4, 8]
    assert made.metrics["macs"] == 3 * high * (high + wide)
    tiled = recurrent_layer(RecurrentSizes(high, wide, 8, 1, "gru"), SMALL, 1, TOY).run.kernels[0]
    warps = tiled.shape.warps
    multiplied = [sum(name == "fma" for name, _, _ in stream(tiled, tile * 8 * warps)) for tile in range(4)]
    assert multiplied == [768, 768, 256, 512]


@pytest.mark.halved
@pytest.mark.parametrize("cell", ["lstm", "gru", "gru-lbr0", "rnn"])
@pytest.mark.parametrize(("batch", "split"), [(1, 0), (3, 1), (3, 2)])
def test_a_persistent_kernel_does_the_same_between_its_barriers(cell: str, batch: int, split: int) -> None:
    sizes = RecurrentSizes(24, 16, batch, 3, cell)
    each, whole = (recurrent_layer(sizes, SMALL, split, TOY, persistent) for persistent in (False, True))
    (kernel,) = whole.run.kernels
    assert kernel.shape.persistent
    mine, theirs = issues(whole.run), issues(each.run)
    streams = len(kernel.sm) * kernel.shape.warps
    assert mine.pop("gridbar") == streams * len(each.run.kernels)
    assert mine == theirs
    assert [memory.name for memory in whole.run.arrays] == [memory.name for memory in each.run.arrays]
    for number in range(streams):
        own = stream(kernel, number)
        assert sum(name == "gridbar" for name, _, _ in own) == len(each.run.kernels)
        stored: list[int] = []
        for place, (name, _, waits) in enumerate(own):
            stored += [place] * (name == "stg")
            if name == "gridbar":
                assert waits == [place for place in stored if place in waits]
                assert len(waits) == len(stored)
                stored = []
        assert not stored
