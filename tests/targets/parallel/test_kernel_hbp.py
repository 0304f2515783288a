"""The HBP kernel: streams and counts of the golden cases, results against scipy, odd sizes."""

from __future__ import annotations

import pytest

from lstmsim.sparse.drawn import checksum, drawn_dense
from lstmsim.targets.parallel.kernels.hbp import HbpMade, HbpOptions, hbp_spmv
from lstmsim.targets.parallel.kernels.options import options_of
from tests.sparse.golden import Case, cases, matrix_of
from tests.targets.parallel.golden_device import as_shown, counted, device_of, expected_counts, laid_out, shown


def made_of(case: Case) -> HbpMade:
    matrix = matrix_of(case)
    x = drawn_dense(matrix.columns, 1, case["B_seed"])[:, 0]
    return hbp_spmv(matrix, x, options_of(HbpOptions, case["options"]), device_of(case["device"]))


@pytest.mark.parametrize("case", cases("hbp"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    made, expect = made_of(case), case["expect"]
    if "streams" in expect:
        assert [shown(kernel) for kernel in made.run.kernels] == as_shown(expect["streams"])
        assert laid_out(made.run) == expect["arrays"]
    assert counted(made.run) == expected_counts(expect)
    metrics = {name: made.metrics[name] for name in made.metrics if name != "finds"}
    assert metrics == {name: expect[name] for name in metrics}
    assert made.result is not None
    if "checksum" in expect:
        assert checksum(made.result) == expect["checksum"]
