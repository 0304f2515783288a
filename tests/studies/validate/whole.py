"""One validation, made once for all tests: all but the group v100, and small sparse products for the claims."""

from __future__ import annotations

from functools import cache, partial

import pytest

from lstmsim.engines.fast.run import OWN
from lstmsim.studies.validate import run as claims
from lstmsim.studies.validate.groups import V100
from lstmsim.studies.validate.rows import Validation
from lstmsim.studies.validate.run import GROUPS, Kernels, validate

#: Rows and columns of a sparse matrix, entries of a row, columns of the dense operand, deviation of lengths.
SMALL = (64, 128, 32, 32, 0.3)


def small_kernels(patch: pytest.MonkeyPatch) -> None:
    """Claims on sparse products are simulated with a small matrix."""
    patch.setattr(claims, "Kernels", partial(Kernels, sparse=SMALL))


def whole() -> Validation:
    """The validation; without the native core it takes minutes, and the test is skipped."""
    if OWN.absence is not None:
        pytest.skip(f"needs the native core, which is missing: {OWN.absence}")
    return _made()


@cache
def _made() -> Validation:
    with pytest.MonkeyPatch.context() as patch:
        small_kernels(patch)
        return validate([each for each in GROUPS if each != V100])
