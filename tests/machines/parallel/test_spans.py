"""Spans of kernels on real sizes, as an independent model of the contracts measured them."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.engines.fast.run import totals
from lstmsim.files.matrices import weight_matrix
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Run
from lstmsim.machines.parallel.kernels.dense import Tile
from lstmsim.machines.parallel.kernels.hbp import ConvertOptions, HbpOptions, hbp_conversion, hbp_spmv
from lstmsim.machines.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.lowering.program import program_of_kernels
from lstmsim.machines.parallel.traffic import priced
from lstmsim.model.sparse.made import pruned
from tests.machines.parallel.golden_device import device_of
from tools.parallel_outcome import Outcome, outcome_of

pytestmark = pytest.mark.needs_core
TILE = Tile(64, 16, 8, 4, 4)


def outcome(run: Run, device: ParallelDevice) -> Outcome:
    lowered = program_of_kernels(device, priced(run, device))
    return outcome_of(device, lowered, totals(lowered.flat, check=False))


def spans(run: Run, device: ParallelDevice) -> list[int]:
    return [each.span for each in outcome(run, device).kernels]


@pytest.mark.parametrize(
    ("preset", "hidden", "batch", "split", "expected"),
    [
        # weights of 2.1 MB stay in L2 of 6 MB, not in that of 0.5 MB; those of 8.4 MB in neither
        ("v100", 256, 1, 0, [6303, 1024, 1938, 818]),
        ("edge", 256, 1, 0, [26923, 1228, 26923, 1228]),
        pytest.param("v100", 512, 1, 0, [20502, 1026, 20502, 1026], marks=pytest.mark.long),
        ("v100", 256, 16, 0, [9893, 1998, 986]),
        ("v100", 256, 16, 1, [51959, 986]),
    ],
)
def test_lstm_steps(preset: str, hidden: int, batch: int, split: int, expected: list[int]) -> None:
    device = device_of({"preset": preset})
    steps = 2 if batch == 1 else 1
    run = recurrent_layer(RecurrentSizes(hidden, hidden, batch, steps), TILE, split, device).run
    assert spans(run, device) == expected


@pytest.mark.slow
def test_hbp_on_a_real_matrix() -> None:
    """Resemblyzer's second layer, 80 % pruned, on the edge device, in blocks of 64 x 512."""
    device = device_of({"preset": "edge"})
    matrix = pruned(weight_matrix("resemblyzer:l1")[0], 0.8)
    x = np.ones(matrix.columns, np.float32)
    # other hashes stand in test_study.py
    variants = {"linear": HbpOptions(64, 512), "atomic": HbpOptions(64, 512, merge="atomic")}
    sums = {name: sum(spans(hbp_spmv(matrix, x, each, device).run, device)) for name, each in variants.items()}
    assert sums == {"linear": 480815, "atomic": 480218}
    assert spans(hbp_conversion(matrix, ConvertOptions(64, 512), device).run, device) == [444435]


@pytest.mark.slow
def test_a_persistent_kernel_saves_launches_and_pays_for_barriers() -> None:
    device = device_of({"preset": "v100"})
    sizes = RecurrentSizes(128, 128, 1, 2)
    each, whole = (
        outcome(recurrent_layer(sizes, None, 0, device, persistent).run, device).makespan
        for persistent in (False, True)
    )
    # of two launches a step none is left but the first; two barriers a step cost 3830 cycles each
    assert 5000 + 4 * 3830 < whole < each - 3 * (5000 - 3830)


def test_a_persistent_kernel_whose_blocks_do_not_fit_is_not_written() -> None:
    device = device_of({"preset": "toy"})
    # a block for 4 of 256 rows; 2 SMs hold 16 each
    with pytest.raises(InputError, match=r"64 thread blocks .* room for 32 at once \(16 on each of 2 SMs\)"):
        recurrent_layer(RecurrentSizes(64, 8, 1, 1), None, 0, device, True)
    assert recurrent_layer(RecurrentSizes(32, 8, 1, 1), None, 0, device, True).run.kernels[0].shape.persistent
