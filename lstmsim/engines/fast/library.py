"""The library of the native core: looked for once in a process, and why it is not there if it is not."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from lstmsim.engines.fast.sources import CORE, LIBRARY, digest_in, digest_of
from lstmsim.program.flat import FORMAT

__all__ = ["absence", "available", "library"]


def available() -> bool:
    """Whether the library can be used.

    >>> available() == (absence() is None)
    True
    """
    return absence() is None


def absence() -> str | None:
    """Say why the library cannot be used, in words that go on after "because"; None if it can."""
    return _looked_for()[1]


def library() -> ctypes.CDLL:
    """Give the library, loaded; `RuntimeError` if it cannot be used."""
    loaded, reason = _looked_for()
    if loaded is None:
        raise RuntimeError(f"there is no native core, because {reason}")
    return loaded


@cache
def _looked_for() -> tuple[ctypes.CDLL | None, str | None]:
    return load(LIBRARY, CORE)


def load(path: Path, sources: Path) -> tuple[ctypes.CDLL | None, str | None]:
    """Load a library, or say why it cannot be used.

    path: the library's file.
    sources: the folder of the core's sources. If it has any, the library must have been built of them.
    """
    if not path.exists():
        return None, "it was not built"
    try:
        loaded = ctypes.CDLL(str(path))
        loaded.lstmsim_format.argtypes, loaded.lstmsim_format.restype = (), ctypes.c_int64
        version = loaded.lstmsim_format()
    except (OSError, AttributeError) as error:
        return None, f"it cannot be loaded ({error})"
    if version != FORMAT:
        return None, f"it was built for version {version} of the program format, and this is version {FORMAT}"
    expected = digest_of(sources)
    if expected is not None and digest_in(loaded) != expected:
        return None, "it was built of other sources than those that are here"
    return loaded, None
