"""Sparse products on the device come out as an independent model of the contract measured them, to the cycle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lstmsim import engines
from lstmsim.files.matrices import weight_matrix
from lstmsim.machines.kernels import KernelWork, SparseFigures, SparseTask
from lstmsim.machines.parallel import sparse
from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice, ParallelLatency
from lstmsim.machines.parallel.sparse import METHODS
from lstmsim.model.sparse.csr import Csr, csr_of_dense
from lstmsim.model.sparse.made import drawn_operands, largest_error, pruned
from lstmsim.studies.sparse.run import run_sparse

pytestmark = pytest.mark.needs_core

#: 16 SMs of a V100 and half of its partitions for each, warm; how many blocks an SM holds.
SIXTEEN = ParallelDevice("v100/16", 1530, (ParallelCore(),) * 16, partitions=8, l2_state="warm")
FEW = replace(SIXTEEN, cores=(ParallelCore(max_blocks=4),) * 16)
EDGE = replace(
    SIXTEEN,
    name="edge",
    frequency_mhz=1377,
    cores=(ParallelCore(latency=ParallelLatency(dram=594)),) * 8,
    dram=3,
    l2_bytes=524288,
    launch=13770,
)
NAMES = {"l0": "resemblyzer:l0", "l1": "resemblyzer:l1", "g2p": "g2p-en-encoder:l0", "silero": "silero-vad-16k:l0"}


@cache
def matrix(name: str, percent: int) -> Csr:
    return pruned(weight_matrix(NAMES[name])[0], percent / 100)


def ran(
    chip: ParallelDevice, given: Csr, kernel: str, method: str, columns: int = 32, **options: Any
) -> tuple[SparseTask, KernelWork, SparseFigures]:
    task = SparseTask(kernel, method, given, drawn_operands(kernel, given, columns, 1), options)
    work = sparse.lower(chip, task)
    return task, work, sparse.figures(chip, task, work, engines.totals(work.flat, check=False))


def span(chip: ParallelDevice, name: str, percent: int, **options: Any) -> tuple[int, float]:
    figures = ran(chip, matrix(name, percent), "spmm", "csr", **options)[2]
    return figures.span, round(figures.imbalance, 3)


#: plain static; sorted round, snake; plain on demand; sorted on demand: 4 blocks an SM.
BALANCE = {
    ("l1", 90): ((36794, 1.419), (22850, 1.103), (21880, 1.040), (28790, 1.100), (21406, 1.020)),
    ("l0", 90): ((25263, 1.565), (15891, 1.123), (14926, 1.069), (17814, 1.060), (14588, 1.034)),
    ("g2p", 90): ((23997, 1.288), (16776, 1.102), (15893, 1.039), (21548, 1.079), (15669, 1.045)),
    ("silero", 90): ((10243, 1.411), (8433, 1.204), (7429, 1.122), (9234, 1.318), (7310, 1.074)),
    ("l1", 70): ((64133, 1.272), (51116, 1.051), (49578, 1.010), (55865, 1.057), (49091, 1.043)),
}
ORDERS = (("plain", "static"), ("sorted", "round"), ("sorted", "snake"), ("plain", "demand"), ("sorted", "demand"))


def cases(measured: dict[tuple[str, int], Any]) -> list[Any]:
    """The cases that were measured; in the usual run the smallest matrix, other tests have a larger one."""
    return [pytest.param(each, marks=() if each == ("silero", 90) else pytest.mark.long) for each in measured]


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(BALANCE))
def test_balance_is_as_measured(case: tuple[str, int]) -> None:
    assert tuple(span(FEW, *case, order=order, dispatch=dispatch) for order, dispatch in ORDERS) == BALANCE[case]


@pytest.mark.slow
def test_tiles_dealt_beforehand_in_part_and_lists_of_tiles() -> None:
    """16 SMs with room for 4 blocks each: 64 thread blocks with lists of tiles are there at once, nothing is dispatched
    later, and the next tile of a list begins while the last results of the one before are on their way."""
    assert span(FEW, "l1", 90, order="sorted", dispatch="hybrid") == (21448, 1.018)
    # so few that each SM has one warp at a time
    assert span(FEW, "l1", 90, order="sorted", blocks=16) == (59069, 1.040)
    task, work, figures = ran(FEW, matrix("l1", 90), "spmm", "csr", order="sorted", blocks=64)
    assert work.result is not None
    assert largest_error("spmm", task.matrix, task.operands, work.result) < 1e-6
    assert (figures.span, round(figures.imbalance, 3)) == (16669, 1.049)
    assert (figures.counts["blocks_in_grid"], figures.kernels[0].blocks) == (64, 64)


#: On demand with 32 blocks an SM: plain and sorted spans, lane efficiency plain and sorted.
RESIDENT = {
    ("l1", 90): (10296, 9263, 0.699, 0.950),
    ("l0", 90): (7349, 6684, 0.639, 0.915),
    ("g2p", 90): (8219, 7815, 0.704, 0.950),
    ("silero", 90): (4977, 6112, 0.653, 0.902),
    ("l1", 70): (20894, 20163, 0.839, 0.982),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(RESIDENT))
def test_what_is_resident_at_once_gains_little_from_sorting(case: tuple[str, int]) -> None:
    plain, by_length = (ran(SIXTEEN, matrix(*case), "spmm", "csr", order=each)[2] for each in ("plain", "sorted"))
    efficiency = (round(each.counts["efficiency"], 3) for each in (plain, by_length))
    assert (plain.span, by_length.span, *efficiency) == RESIDENT[case]


#: Span, and requests and sectors of `cols` and `values`, by alignment.
ALIGNED = {
    "l1": {"none": (10053, 3516, 25192), "reverse": (9263, 1110, 16082), "pad": (9146, 1086, 15688)},
    "g2p": {"none": (8320, 2638, 18874), "reverse": (7815, 824, 12060), "pad": (7720, 800, 11734)},
    "silero": {"none": (5964, 942, 6514), "reverse": (6112, 336, 4288), "pad": (5904, 324, 4196)},
}


@pytest.mark.parametrize("name", ["silero", *(pytest.param(each, marks=pytest.mark.long) for each in ("l1", "g2p"))])
def test_alignment_is_as_measured(name: str) -> None:
    for align, expected in ALIGNED[name].items():
        figures = ran(SIXTEEN, matrix(name, 90), "spmm", "csr", order="sorted", align=align)[2]
        loads = [each for each in figures.loads if each.array in ("cols", "values")]
        requests = sum(each.requests for each in loads)
        # every sector that was touched, wherever it was found
        sectors = sum(each.sectors["L1"] + each.sectors["L2"] for each in loads)
        assert (figures.span, requests, sectors) == expected


@pytest.mark.slow
def test_the_edge_gains_and_the_large_device_does_not() -> None:
    """Resemblyzer l1 at 90 %: sparse against dense, with one column."""
    given = matrix("l1", 90)
    large = ParallelDevice("v100", 1530, (ParallelCore(),) * 80, l2_state="warm")
    assert [ran(large, given, "spmv", each)[2].span for each in ("csr", "dense")] == [2021, 1938]
    assert [ran(EDGE, given, "spmv", each)[2].span for each in ("csr", "dense")] == [5269, 26923]


@pytest.mark.long
def test_the_edge_gains_more_with_16_columns() -> None:
    given = matrix("l1", 90)
    sparse, dense = ran(EDGE, given, "spmm", "csr", 16, order="sorted")[2], ran(EDGE, given, "spmm", "dense", 16)[2]
    assert [sparse.span, dense.span] == [16582, 96429]


@pytest.mark.long
def test_fewer_lanes_for_a_row_take_longer() -> None:
    given = matrix("l1", 80)
    assert [ran(EDGE, given, "spmv", each)[2].span for each in ("csr-1", "csr-4")] == [130861, 32426]


@pytest.mark.slow
def test_hbp_loses_on_a_recurrent_matrix() -> None:
    given = matrix("l1", 80)
    assert ran(EDGE, given, "spmv", "csr-32")[2].span == 13103
    blocks = {"m": 64, "n": 512}
    # the hash of its own stands in test_spans.py
    assert ran(EDGE, given, "spmv", "2d", **blocks)[2].span == 506404
    assert ran(EDGE, given, "spmv", "hbp", hash="sort", **blocks)[2].span == 447642


@pytest.mark.slow
def test_blocks_of_hbp_are_chosen_by_the_matrix_and_the_device() -> None:
    given = matrix("silero", 90)
    large = ParallelDevice("v100", 1530, (ParallelCore(),) * 80)
    # 512 x 256: even the smallest blocks are fewer than 640 warps
    task, _, figures = ran(large, given, "spmv", "hbp")
    assert ({name: figures.options[name] for name in ("m", "n")}, figures.span) == ({"m": 32, "n": 64}, 26714)
    assert figures.by_rule == ("m", "n")
    assert ran(large, given, "spmv", "hbp", m=512, n=4096)[2].span == 228696
    # 8 * 2 * 4 warps, 4 columns of blocks: 16 rows of them
    assert sparse.lower(EDGE, task).own.options["m"] == 32
    one = sparse.lower(EDGE, replace(task, options={"warps": 1, "blocks_per_sm": 1, "n": 256})).own
    assert (one.options["m"], one.options["n"], one.by_rule) == (64, 256, ("m",))


def test_a_row_beside_hbp_has_its_blocks() -> None:
    given = matrix("silero", 90)
    task = SparseTask("spmv", "hbp", given, drawn_operands("spmv", given, 1, 1), {"warps": 1, "blocks_per_sm": 1})
    convert = next(each for each in sparse.baselines(EDGE, task) if each.method == "convert")
    assert dict(convert.options) == {"m": 256, "n": 64}
    assert {(each.options["m"], each.options["n"]) for each in sparse.ablations(EDGE, task)} == {(256, 64)}


def small() -> Csr:
    """A matrix with an empty row, a full row, and rows of other lengths."""
    full = np.random.default_rng(5).standard_normal((7, 9)) * (np.random.default_rng(6).random((7, 9)) < 0.4)
    full[2], full[4] = 0, np.arange(1, 10)
    return csr_of_dense(full)


@pytest.mark.parametrize(("kernel", "method"), [(kernel, each) for kernel, some in METHODS.items() for each in some])
def test_every_method_computes_the_product(kernel: str, method: str) -> None:
    for given in (small(), csr_of_dense(np.array([[3.0]]))):
        task, work, figures = ran(SIXTEEN, given, kernel, method, 6)
        assert sum(figures.accounts.values()) == figures.account_cycles
        assert figures.span == sum(each.ends - each.arrives for each in figures.kernels) > 0
        assert set(figures.counts) <= set(sparse.MEANINGS)
        if (kernel, method) == ("sddmm", "dense"):
            assert work.result is None
        else:
            assert work.result is not None
            ones = replace(given, values=given.values * 0 + 1) if method == "gradient" else given
            assert largest_error(kernel, ones, task.operands, work.result) < 1e-12


def beside(kernel: str, method: str) -> SparseTask:
    """A method's task on a matrix of 40 by 33."""
    given = csr_of_dense(np.random.default_rng(7).random((40, 33)) * (np.random.default_rng(8).random((40, 33)) < 0.2))
    return SparseTask(kernel, method, given, drawn_operands(kernel, given, 16, 1))


@cache
def span_beside(kernel: str, method: str, options: tuple[tuple[str, Any], ...]) -> int:
    """The span of a setting: many methods have the same baselines."""
    task = replace(beside(kernel, method), options=dict(options))
    work = sparse.lower(SIXTEEN, task)
    return sparse.figures(SIXTEEN, task, work, engines.totals(work.flat, check=False)).span


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize(("kernel", "method"), [(kernel, each) for kernel, some in METHODS.items() for each in some])
def test_everything_beside_a_product_and_every_ablation_runs(kernel: str, method: str) -> None:
    task = beside(kernel, method)
    baselines, ablations = sparse.baselines(SIXTEEN, task), sparse.ablations(SIXTEEN, task)
    assert baselines
    assert len({each.name for each in ablations}) == len(ablations)
    for each in (*baselines, *ablations):
        assert span_beside(kernel, each.method, tuple(sorted(each.options.items()))) > 0


@pytest.mark.slow
def test_blocks_of_one_warp_say_that_the_hash_has_nothing_to_do() -> None:
    for rows, said in ((32, 1), (64, 0)):
        report = run_sparse(
            "silero-vad-16k:l0", kernel="spmv", method="hbp", options={"m": rows, "n": 64}, prune=0.9, baselines=False
        )
        assert sum("all hashes are equal" in each for each in report.remarks) == said
