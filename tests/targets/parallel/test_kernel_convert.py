"""The conversion to HBP: streams and counts of the golden cases, and what its lanes store."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.targets.parallel.kernels.convert import ConvertOptions, hbp_conversion
from lstmsim.targets.parallel.kernels.options import options_of
from tests.sparse.golden import Case, cases, matrix_of
from tests.targets.parallel.golden_device import as_shown, counted, device_of, expected_counts, laid_out, shown


@pytest.mark.parametrize("case", cases("convert"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    made = hbp_conversion(matrix_of(case), options_of(ConvertOptions, case["options"]), device_of(case["device"]))
    expect = case["expect"]
    if "streams" in expect:
        assert [shown(kernel) for kernel in made.run.kernels] == as_shown(expect["streams"])
        assert laid_out(made.run) == expect["arrays"]
    assert counted(made.run) == expected_counts(expect)
    assert {name: made.metrics[name] for name in ("search_steps", "probes")} == {
        name: expect[name] for name in ("search_steps", "probes")
    }
    for name in ("output_hash", "zero_row", "cols", "data", "add_sign", "begin"):
        assert np.array_equal(getattr(made.stored, name), getattr(made.hashed.hbp, name)), name
