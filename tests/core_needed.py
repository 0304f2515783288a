"""Parameters of a test of which some take too long without the native core."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["names_with_core"]


def names_with_core(names: Iterable[str], need: Collection[str]) -> list[Any]:
    """All names as parameters; those in `need` are skipped where there is no native core.

    >>> [each.marks[0].name for each in names_with_core(["a", "b"], {"b"}) if each.marks]
    ['needs_core']
    """
    known = list(names)
    unknown = set(need) - set(known)
    assert not unknown, f"no such parameters: {unknown}"
    return [pytest.param(each, marks=[pytest.mark.needs_core] * (each in need)) for each in known]
