"""Elements of 2 bytes: half the bytes of device memory, the same instructions; what reads 4 bytes alone is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS
from lstmsim.machines.parallel.kernel import Run as KernelRun
from lstmsim.machines.parallel.kernels.dense import Tile, gemm, gemv
from lstmsim.machines.parallel.lowering.program import traffic_of
from lstmsim.machines.parallel.traffic import addresses, priced
from lstmsim.studies.simulate.run import Run
from tools.drawn_matrices import drawn_matrix

SMALL = {
    "kind": "parallel-device",
    "frequency_mhz": 1000,
    "cores": [{"count": 2, "schedulers": 2, "max_warps": 16}],
    "partitions": 2,
    "launch": 100,
}


def chip(element_bytes: int, **others: Any) -> dict[str, Any]:
    return {**SMALL, "element_bytes": element_bytes, **others}


def view(element_bytes: int) -> ParallelDevice:
    cores = (ParallelCore(schedulers=2, max_warps=16),) * 2
    return ParallelDevice("small", 1000, cores, 2, launch=100, element_bytes=element_bytes)


def scenario(element_bytes: int, cell: str, batch: int, **others: Any) -> dict[str, Any]:
    model = {"layers": [{"cell": cell, "hidden": 8, "input": 24}]}
    return {"chip": chip(element_bytes, **others), "jobs": [{"model": model, "steps": 2, "batch": batch}]}


@pytest.mark.parametrize("columns", [100, 130, 7])
def test_a_matrix_times_a_vector_touches_the_sectors_of_its_bytes(columns: int) -> None:
    rows, run = 5, gemv(5, columns, view(2)).run
    kernel = run.kernels[0]
    behind_w = -(-2 * rows * columns // 256) * 256
    assert addresses(run.arrays) == [0, behind_w, behind_w - (-2 * columns // 256) * 256]
    touched: list[set[int]] = [set(), set(), set()]
    for row, array in enumerate(kernel.array.tolist()):
        if array >= 0:
            touched[array] |= set(kernel.sector[kernel.first_sector[row] : kernel.first_sector[row + 1]].tolist())
    elements = (rows * columns, columns, rows)
    assert touched == [{2 * each // 32 for each in range(count)} for count in elements]
    # a warp's loads of a row: 32 lanes of v elements; the load/store unit counts lines of 128 bytes
    v = 4 if columns % 4 == 0 else 2 if columns % 2 == 0 else 1
    first = next(row for row, kind in enumerate(kernel.instructions.kind.tolist()) if kind == CLASS["ldg"])
    assert kernel.lsu[first] == -(-2 * min(32 * v, columns) // 128)


@pytest.mark.parametrize("kind", ["gemv", "gemm"])
def test_the_instructions_are_those_of_4_bytes_and_half_the_sectors_come(kind: str) -> None:
    def run(element_bytes: int) -> KernelRun:
        if kind == "gemv":
            return gemv(64, 256, view(element_bytes)).run
        return gemm((64, 256, 64), Tile(64, 64, 8, 8, 4), 2, view(element_bytes)).run

    whole, half = run(4), run(2)
    for one, other in zip(whole.kernels, half.kernels, strict=True):
        for column in ("first", "kind", "count", "first_wait", "wait"):
            assert np.array_equal(getattr(one.instructions, column), getattr(other.instructions, column))
    counts = [traffic_of(each, priced(each, view(size))).counts for each, size in ((whole, 4), (half, 2))]
    assert counts[0]["dram_sectors"] == 2 * counts[1]["dram_sectors"]
    assert counts[0]["load_requests"] == counts[1]["load_requests"]


@pytest.mark.halved
@pytest.mark.parametrize(
    ("cell", "batch", "others"),
    [
        ("lstm", 1, {}),
        ("gru", 3, {"recurrent": "persistent"}),
        ("rnn", 1, {"fusion": "on"}),
        ("gru", 3, {"fusion": "on"}),
        *(
            pytest.param(cell, batch, others, marks=pytest.mark.long)
            for cell, batch, others in (
                ("lstm", 1, {"recurrent": "persistent"}),
                ("lstm", 1, {"fusion": "on"}),
                ("gru", 3, {}),
                ("rnn", 1, {}),
                ("rnn", 1, {"recurrent": "persistent"}),
            )
        ),
    ],
    ids=str,
)
def test_both_engines_agree_on_jobs_that_are_sooner_with_2_bytes(cell: str, batch: int, others: dict[str, Any]) -> None:
    asked = scenario(2, cell, batch, **others)
    fast = lstmsim.run(asked, engine="fast")
    assert fast.totals == Run(fast.scenario, "reference", fast.program).totals
    four = lstmsim.simulate(scenario(4, cell, batch, **others))
    assert fast.report.makespan_cycles < four.makespan_cycles
    assert sum(each.macs for each in fast.report.cores) == sum(each.macs for each in four.cores)
    without = scenario(4, cell, batch, **others)
    del without["chip"]["element_bytes"]
    assert lstmsim.simulate(without).makespan_cycles == four.makespan_cycles


def test_it_is_said_what_2_bytes_leave_out() -> None:
    said = ["no tensor cores" in "; ".join(lstmsim.simulate(scenario(each, "lstm", 1)).remarks) for each in (4, 2)]
    assert said == [False, True]
    matrix = drawn_matrix(9, 30, 200, 3)
    sizes = [[f"element_bytes={each}"] for each in (4, 2)]
    products = [
        lstmsim.run_sparse(matrix, "spmv", method="dense", chip="edge", chip_overrides=each, baselines=False)
        for each in sizes
    ]
    assert ["no tensor cores" in " ".join(each.to_text().split()) for each in products] == [False, True]


def test_what_reads_4_bytes_alone_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="element_bytes: must be 2 or 4, got 3"):
        lstmsim.simulate(scenario(3, "lstm", 1))
    half = ["element_bytes=2"]
    with pytest.raises(InputError, match=r"chip v100: element_bytes: a sparse kernel reads numbers .* method dense"):
        lstmsim.run_sparse("silero-vad-16k:l0", kernel="spmv", chip_overrides=half)
    with pytest.raises(InputError, match="chip v100: element_bytes: plans count values of 4 bytes"):
        lstmsim.run_fusion("ln-lstm", chip_overrides=half)
