"""One validation of everything, made once for all tests."""

from __future__ import annotations

from functools import cache

from lstmsim.validation.rows import Validation
from lstmsim.validation.run import validate


@cache
def whole() -> Validation:
    return validate()
