"""One validation of everything, made once for all tests."""

from __future__ import annotations

from functools import cache

import pytest

from lstmsim.engines.fast import library
from lstmsim.validation.rows import Validation
from lstmsim.validation.run import validate


def whole() -> Validation:
    """The validation; without the native core it takes minutes, and the test is skipped."""
    if not library.available():
        pytest.skip(f"needs the native core, which is missing: {library.absence()}")
    return _made()


@cache
def _made() -> Validation:
    return validate()
