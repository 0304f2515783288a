"""The conversion to HBP: arrays and counts of the golden cases, and what its lanes store."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernels.hbp import ConvertOptions, hbp_conversion
from lstmsim.machines.parallel.kernels.rows import options_of
from lstmsim.model.sparse.csr import csr_of_dense
from tests.machines.parallel.golden_device import device_of, laid_out
from tests.model.sparse.golden import Case, cases, matrix_of

TOY = device_of({"preset": "toy"})


@pytest.mark.parametrize("case", cases("convert"), ids=lambda case: case["name"])
def test_golden_cases(case: Case) -> None:
    made = hbp_conversion(matrix_of(case), options_of(ConvertOptions, case["options"]), device_of(case["device"]))
    expect = case["expect"]
    if "arrays" in expect:
        assert laid_out(made.run) == expect["arrays"]
    assert {name: made.metrics[name] for name in ("search_steps", "probes")} == {
        name: expect[name] for name in ("search_steps", "probes")
    }
    for name in ("output_hash", "zero_row", "cols", "data", "add_sign", "begin"):
        assert np.array_equal(getattr(made.plan.stored, name), getattr(made.plan.made.hbp, name)), name


def test_nothing_to_convert() -> None:
    for rows, columns in ((0, 3), (5, 0), (40, 2)):
        made = hbp_conversion(csr_of_dense(np.zeros((rows, columns))), ConvertOptions(32, 2, "sort"), TOY)
        assert made.metrics == {"search_steps": 0, "probes": 0, "finds": 0}
        assert made.plan.stored.output_hash.tolist() == list(range(rows))


def test_what_cannot_be_run() -> None:
    with pytest.raises(InputError, match="shared_bytes"):
        hbp_conversion(csr_of_dense(np.eye(3)), ConvertOptions(32 * 1024, 2), TOY)
    with pytest.raises(InputError, match="did you mean 'shift'"):
        ConvertOptions(32, 2, "shifd")


def test_a_search_looks_at_the_middle() -> None:
    """A row of eight elements: three looks for a column in the middle, which halve what is left each time."""
    made = hbp_conversion(csr_of_dense(np.ones((1, 8))), ConvertOptions(32, 4, "identity"), TOY)
    # for column 0: middles 4, 2, 1, 0; for column 4: 4, 2, 3
    assert made.metrics["search_steps"] == 4 + 3
