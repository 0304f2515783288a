"""The traffic of the golden cases, instruction by instruction where they show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Run
from lstmsim.machines.parallel.kernels.dense import GemmOptions, gemm, gemv, tile_of
from lstmsim.machines.parallel.kernels.hbp import ConvertOptions, HbpOptions, hbp_conversion, hbp_spmv
from lstmsim.machines.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.kernels.rows import options_of
from lstmsim.machines.parallel.kernels.sddmm import SddmmOptions, sddmm
from lstmsim.machines.parallel.kernels.spmm import SpmmOptions, spmm
from lstmsim.machines.parallel.kernels.spmv import SpmvOptions, spmv
from lstmsim.model.sparse.made import drawn_dense
from tests.machines.parallel.golden_device import device_of
from tests.machines.parallel.golden_traffic import expected_traffic, shown_traffic
from tests.model.sparse.golden import Case, cases, matrix_of


def _convert(case: Case, device: ParallelDevice) -> Run:
    return hbp_conversion(matrix_of(case), options_of(ConvertOptions, case["options"]), device).run


def _gemm(case: Case, device: ParallelDevice) -> Run:
    options = options_of(GemmOptions, case["options"])
    tile = tile_of(options)
    assert tile is not None
    return gemm((case["M"], case["K"], case["N"]), tile, options.split, device).run


def _gemv(case: Case, device: ParallelDevice) -> Run:
    return gemv(case["M"], case["K"], device).run


def _hbp(case: Case, device: ParallelDevice) -> Run:
    matrix = matrix_of(case)
    x = drawn_dense(matrix.columns, 1, case["B_seed"])[:, 0]
    return hbp_spmv(matrix, x, options_of(HbpOptions, case["options"]), device).run


def _lstm(case: Case, device: ParallelDevice) -> Run:
    sizes = RecurrentSizes(case["H"], case["X"], case["N"], case["steps"])
    options = options_of(GemmOptions, case["options"])
    return recurrent_layer(sizes, tile_of(options), options.split, device).run


def _spmm(case: Case, device: ParallelDevice) -> Run:
    matrix = matrix_of(case)
    return spmm(matrix, np.zeros((matrix.columns, case["N"])), options_of(SpmmOptions, case["options"]), device).run


def _spmv(case: Case, device: ParallelDevice) -> Run:
    matrix = matrix_of(case)
    return spmv(matrix, np.zeros(matrix.columns), options_of(SpmvOptions, case["options"]), device).run


def _sddmm(case: Case, device: ParallelDevice) -> Run:
    matrix = matrix_of(case, "C")
    left, right = np.zeros((matrix.rows, case["K"])), np.zeros((matrix.columns, case["K"]))
    return sddmm(matrix, left, right, options_of(SddmmOptions, case["options"]), device).run


WRITERS: dict[str, Callable[[Case, ParallelDevice], Run]] = {
    "convert": _convert,
    "gemm": _gemm,
    "gemv": _gemv,
    "hbp": _hbp,
    "lstm": _lstm,
    "sddmm": _sddmm,
    "spmm": _spmm,
    "spmv": _spmv,
}


@pytest.mark.parametrize(
    "case", [c for c in cases(*WRITERS) if "makespan" in c["expect"]], ids=lambda case: case["name"]
)
def test_golden_cases(case: Case) -> None:
    device = device_of(case["device"])
    run: dict[str, Any] = shown_traffic(WRITERS[case["kind"]](case, device), device)
    assert run == expected_traffic(case["expect"], run)
