"""Sparse kernels against a writer that goes from warp to warp and lane to lane, on random matrices and options."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernel import CLASSES, Kernel, Made, Run
from lstmsim.machines.parallel.kernels.sddmm import SddmmOptions, sddmm
from lstmsim.machines.parallel.kernels.spmm import SpmmOptions, spmm
from lstmsim.machines.parallel.kernels.spmv import SpmvOptions, spmv
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.made import drawn_dense
from tests.machines.parallel.golden_device import device_of, order_of, placing_of
from tests.oracle.plain_rows import PlainSddmm, PlainSpmv
from tests.oracle.plain_spmm import PlainSpmm
from tools.drawn_matrices import drawn_matrix

COMMON = {"order": ["plain", "sorted"], "dispatch": ["demand", "static", "round", "snake", "hybrid"]}
SPMM = COMMON | {
    "tile": [None, 8, 16, 32, 64],
    "v": [None, 1, 2, 4],
    "warps": [1, 2, 3, 4],
    "k_tile": [4, 8, 12, 32],
    "align": ["reverse", "none", "pad"],
    "share": [False, True],
    "fetch": ["needed", "all"],
    "format": ["csr", "dcsr"],
    "blocks": [None],
}
SPMV = COMMON | {"lanes": [None, 1, 2, 4, 8, 16, 32], "v": [1, 2, 4], "warps": [1, 2, 4], "align": ["reverse", "none"]}
SDDMM = COMMON | {
    "tile": [1, 3, 8, 32],
    "v": [None, 1, 2, 4],
    "lanes": [None, 1, 4, 32],
    "warps": [1, 2],
    "mode": ["values", "indicator"],
}


#: Further hundreds of seeds.
LONG = [pytest.param(each, marks=pytest.mark.long) for each in (2, 3)]


def drawn(seed: int, choices: dict[str, list[Any]]) -> tuple[random.Random, dict[str, Any], Csr, dict[str, int]]:
    """Random numbers, options, a matrix and a device."""
    chance = random.Random(seed)
    options = {name: chance.choice(values) for name, values in choices.items()}
    rows, columns = chance.choice([1, 2, 7, 20, 33]), chance.choice([1, 3, 9, 40, 70])
    matrix = drawn_matrix(rows, columns, chance.choice([0, 60, 250, 700, 1000]), seed, chance.random() < 0.5)
    return chance, options, matrix, {"warp": chance.choice([32, 32, 64]), "sms": chance.choice([1, 2, 3])}


def listed(matrix: Csr) -> list[list[tuple[int, int]]]:
    """Column and value of the entries of each row."""
    return [
        list(zip(matrix.cols[a:b].tolist(), matrix.values[a:b].tolist(), strict=True))
        for a, b in zip(matrix.row_ptr, matrix.row_ptr[1:], strict=False)
    ]


def reported(run: Run, kernel: Kernel) -> list[list[list[list[Any]]]]:
    """The streams of a kernel as the plain writers have them."""
    text, names = kernel.instructions, [memory.name for memory in run.arrays]
    rows = [
        [
            CLASSES[text.kind[row]],
            int(text.count[row]),
            text.wait[text.first_wait[row] : text.first_wait[row + 1]].tolist(),
            int(kernel.lsu[row]),
            names[kernel.array[row]] if kernel.array[row] >= 0 else "",
            kernel.sector[kernel.first_sector[row] : kernel.first_sector[row + 1]].tolist(),
        ]
        for row in range(len(text.kind))
    ]
    streams = [rows[a:b] for a, b in zip(text.first, text.first[1:], strict=False)]
    return [streams[at : at + kernel.shape.warps] for at in range(0, len(streams), kernel.shape.warps)]


def agree(made: Made, plain: Any) -> None:
    """The streams of the last kernel, the rows and their places are the same, and so are the counts."""
    assert reported(made.run, made.run.kernels[-1]) == plain.blocks
    assert (order_of(made), placing_of(made)) == (plain.order, plain.placing)
    assert (made.metrics["lanes"], made.metrics["lane_slots"]) == (plain.L, plain.slots)


def spmm_agrees(seed: int, choices: dict[str, list[Any]] = SPMM) -> bool:
    """Whether a random case could be run; it is then the same."""
    chance, options, matrix, device = drawn(seed, choices)
    n = chance.choice([1, 2, 3, 6, 8, 20, 36, 68])
    dense = drawn_dense(matrix.columns, n, seed + 1)
    try:
        made = spmm(matrix, dense, SpmmOptions(**options), device_of({"preset": "toy"} | device))
    except InputError:
        return False
    full = asdict(SpmmOptions(**options))
    plain = PlainSpmm(listed(matrix), dense.tolist(), n, full, device)
    agree(made, plain)
    assert [reported(made.run, kernel) for kernel in made.run.kernels[:-1]] == ([plain.zeros] if plain.zeros else [])
    names = ("masked", "tail", "lane_active")
    assert [made.metrics[name] for name in names] == [plain.masked, plain.tail, plain.active]
    assert made.result is not None
    assert made.result.tolist() == plain.C == (matrix.dense() @ dense).tolist()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("hundred", [0, 1, *LONG])
def test_spmm(hundred: int) -> None:
    tried = [spmm_agrees(1000 * hundred + seed) for seed in range(18)]
    assert sum(tried) > 5


@pytest.mark.slow
def test_several_tiles_of_a_thread_block_follow_each_other() -> None:
    several = SPMM | {"blocks": [1, 2, 3, 7, 50], "warps": [1], "share": [False], "dispatch": ["demand"]}
    assert sum(spmm_agrees(5000 + seed, several) for seed in range(15)) > 5


def spmv_agrees(seed: int) -> bool:
    """A random case is the same."""
    _, options, matrix, device = drawn(seed, SPMV)
    x = drawn_dense(matrix.columns, 1, seed)[:, 0]
    made = spmv(matrix, x, SpmvOptions(**options), device_of({"preset": "toy"} | device))
    plain = PlainSpmv(listed(matrix), x.tolist(), asdict(SpmvOptions(**options)), device)
    agree(made, plain)
    assert made.metrics["masked"] == plain.masked
    assert made.result is not None
    assert made.result.tolist() == plain.y == (matrix.dense() @ x).tolist()
    return True


@pytest.mark.parametrize("hundred", [0, *LONG])
def test_spmv(hundred: int) -> None:
    for seed in range(40):
        assert spmv_agrees(1000 * hundred + seed)


def sddmm_agrees(seed: int) -> bool:
    """Whether a random case could be run; it is then the same."""
    chance, options, matrix, device = drawn(seed, SDDMM)
    k = chance.choice([0, 1, 2, 6, 20, 36])
    left, right = drawn_dense(matrix.rows, k, seed), drawn_dense(matrix.columns, k, seed + 1)
    try:
        made = sddmm(matrix, left, right, SddmmOptions(**options), device_of({"preset": "toy"} | device))
    except InputError:
        return False
    plain = PlainSddmm(listed(matrix), left.tolist(), right.tolist(), k, asdict(SddmmOptions(**options)), device)
    agree(made, plain)
    assert made.metrics["idle_blocks"] == plain.idle
    expected = (left @ right.T)[matrix.entry_rows, matrix.cols]
    if options["mode"] == "values":
        expected = expected * matrix.values
    assert made.result is not None
    assert made.result.tolist() == plain.D == np.asarray(expected).tolist()
    return True


@pytest.mark.slow
@pytest.mark.parametrize("hundred", [0, *LONG])
def test_sddmm(hundred: int) -> None:
    assert sum(sddmm_agrees(1000 * hundred + seed) for seed in range(40)) > 20


@pytest.mark.slow
def test_pieces_may_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Big kernels are written in pieces of many segments or blocks; here a piece has one to three."""
    for module in ("spmm", "spmv", "sddmm"):
        monkeypatch.setattr(f"lstmsim.machines.parallel.kernels.{module}._AT_ONCE", 100)
    monkeypatch.setattr("lstmsim.machines.parallel.kernels.spmm._BLOCKS", 2)
    assert sum(spmm_agrees(7000 + seed) for seed in range(12)) > 4
    for seed in range(7000, 7010):
        assert spmv_agrees(seed)
    assert sum(sddmm_agrees(seed) for seed in range(7000, 7010)) > 4
