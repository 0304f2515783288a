"""A native library: looked for once in a process, why it is not there, and the one warning that it is not."""

from __future__ import annotations

import ctypes
import warnings
from functools import cached_property
from pathlib import Path

from lstmsim.base.errors import EngineWarning
from lstmsim.native.sources import digest_in, digest_of, library_of


class Library:
    """A native library of the package, next to the folder of its sources, which an installed package lacks.

    version: of what passes between the library and Python; it must have been built for the same.
    """

    def __init__(self, core: Path, version: int) -> None:
        self.path = library_of(core)
        self.core, self.version = core, version

    @cached_property
    def _found(self) -> tuple[ctypes.CDLL | None, str | None]:
        return load(self.path, self.core, self.version)

    @cached_property
    def absence(self) -> str | None:
        """Why the library cannot be used, in words that go on after "because"; None if it can."""
        return self._found[1]

    def loaded(self) -> ctypes.CDLL:
        """Give the library; `RuntimeError` if it cannot be used."""
        loaded, reason = self._found
        if loaded is None:
            raise RuntimeError(f"there is no native core, because {reason}")
        return loaded


def load(path: Path, core: Path, version: int) -> tuple[ctypes.CDLL | None, str | None]:
    """Load a library built for a version, of its sources if there are any, or say why it cannot be used."""
    if not path.exists():
        return None, "it was not built"
    try:
        loaded = ctypes.CDLL(str(path))
        loaded.lstmsim_format.argtypes, loaded.lstmsim_format.restype = (), ctypes.c_int64
        built_for = loaded.lstmsim_format()
    except (OSError, AttributeError) as error:
        return None, f"it cannot be loaded ({error})"
    if built_for != version:
        return None, f"it was built for version {built_for} of what it is given, and this is version {version}"
    expected = digest_of(core)
    if expected is not None and digest_in(loaded) != expected:
        return None, "it was built of other sources than those that are here"
    return loaded, None


#: What has been warned of in this process. One library is rarely missing alone, and one remedy is for all.
_TOLD: list[str] = []


def warn_once(what: str, instead: str, stacklevel: int) -> None:
    """Warn that a library is missing (`EngineWarning`), if nothing has been warned of in this process.

    A process that another one has started leaves it to that one.
    what: who has no library, and why.
    instead: what does its work.
    stacklevel: of the caller's caller for whom it is told, as for `warnings.warn`.
    """
    import multiprocessing

    if _TOLD or multiprocessing.parent_process() is not None:
        return
    text = (
        f"{what}: {instead}, with the same numbers, and takes some hundred times as long. Install a C++17 compiler, "
        "then lstmsim again."
    )
    _TOLD.append(text)
    warnings.warn(text, EngineWarning, stacklevel=stacklevel + 1)
