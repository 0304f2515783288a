"""The library of the native core, and why it is not there if it is not."""

from __future__ import annotations

import ctypes
from pathlib import Path

from lstmsim.native.library import Library
from lstmsim.program.flat import FORMAT

__all__ = ["OWN", "absence", "available", "library"]

#: The library; its version is that of the program format.
OWN = Library(Path(__file__).with_name("core"), FORMAT)


def available() -> bool:
    """Whether the library can be used.

    >>> available() == (absence() is None)
    True
    """
    return absence() is None


def absence() -> str | None:
    """Say why the library cannot be used, in words that go on after "because"; None if it can."""
    return OWN.absence()


def library() -> ctypes.CDLL:
    """Give the library, loaded; `RuntimeError` if it cannot be used."""
    return OWN.loaded()
