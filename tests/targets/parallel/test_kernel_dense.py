"""Dense kernels: streams and counts of the golden cases, products in the order of the lanes."""

from __future__ import annotations

import pytest

from lstmsim.targets.parallel.kernels.gemm import gemm
from lstmsim.targets.parallel.kernels.gemv import gemv
from lstmsim.targets.parallel.kernels.made import Made
from lstmsim.targets.parallel.kernels.options import options_of
from lstmsim.targets.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.targets.parallel.kernels.tiles import GemmOptions, tile_of
from tests.sparse.golden import Case, cases
from tests.targets.parallel.golden_device import as_shown, counted, device_of, expected_counts, laid_out, shown


def made_of(case: Case) -> Made:
    device = device_of(case["device"])
    if case["kind"] == "lstm":
        sizes = RecurrentSizes(case["H"], case["X"], case["N"], case["steps"])
        options = options_of(GemmOptions, case["options"])
        return recurrent_layer(sizes, tile_of(options), options.split, device)
    if case["kind"] == "gemv":
        return gemv(case["M"], case["K"], device)
    options = options_of(GemmOptions, case["options"])
    tile = tile_of(options)
    assert tile is not None
    return gemm((case["M"], case["K"], case["N"]), tile, options.split, device)


@pytest.mark.parametrize("case", cases("gemv", "gemm", "lstm"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    made, expect = made_of(case), case["expect"]
    if "streams" in expect:
        assert [shown(kernel) for kernel in made.run.kernels] == as_shown(expect["streams"])
        assert laid_out(made.run) == expect["arrays"]
    assert counted(made.run) == expected_counts(expect)
