"""The one warning of a process that a native library is missing, and plain Python does its work."""

from __future__ import annotations

import warnings

from lstmsim.base.errors import EngineWarning

__all__ = ["warn_once"]

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
