"""What no text of an experiment may say, though only a part of it was run."""

from __future__ import annotations

import re


def assert_no_range_of_one_value(text: str) -> None:
    """A range goes from one value to another one, and one case is not written in the plural."""
    line = " ".join(text.split())
    assert not re.search(r"(\d[\d.,]*) to \1\b(?![.,]\d)", line)
    assert not re.search(r"\b1 (tasks|cases|points|sets)\b", line)
