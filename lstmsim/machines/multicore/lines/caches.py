"""The caches of all cores, driven line by line (section 5 of docs/multicore.md); C++ is behind `core/interface.cpp`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.multicore.lines.hashing import polynomial_for
from lstmsim.machines.multicore.lines.plain import PlainCaches
from lstmsim.machines.multicore.lines.space import COLUMNS, Array, Runs, pages_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.native.library import Library, warn_once

#: The library. Its version is `FORMAT` of `core/caches.hpp`.
OWN_LIBRARY = Library(Path(__file__).with_name("core"), 2)
#: Room for a sentence of the library.
_ROOM = 400
#: Failures of the library (`Failure` of `lstmsim/native/common/interface.hpp`).
_REFUSED, _NO_MEMORY = 4, 6
#: Runs after which the library comes back, so that Python sees a key press: some tens of milliseconds.
_RUNS = 50_000


@cache
def _functions() -> Any:
    """The functions of the library with the types of their arguments."""
    core = OWN_LIBRARY.loaded()
    said: list[Any] = [c_char_p, c_int64]
    many = [c_void_p, c_int64]
    for name, result, arguments in (
        ("open", c_int64, [*many, c_void_p, *many, POINTER(c_void_p), *said]),
        ("drive", c_int64, [c_void_p, c_void_p, *many, c_void_p, c_void_p, *many, *many, *said]),
        ("close", None, [c_void_p]),
    ):
        function = getattr(core, f"lstmsim_{name}")
        function.restype, function.argtypes = result, arguments
    return core


class NativeCaches:
    """All caches of a machine (`lstmsim.machines.multicore.lines.caches.Caches`).

    machine: whose caches they are.
    arrays: the whole space, one behind the other; `ValueError` if they do not lie so.
    """

    def __init__(self, machine: Machine, arrays: Sequence[Array]) -> None:
        self._core = _functions()
        self._width = len(COLUMNS) + machine.domains
        self._own = c_void_p()
        # `Shape` of the library
        shape = np.array(
            [
                *(machine.cores, machine.cores_per_llc, machine.cores_per_domain, machine.line, machine.page),
                *(machine.l1_sets, machine.l1_ways, machine.l2_sets, machine.l2_ways),
                *(machine.llc_sets, machine.llc_ways, polynomial_for(machine.llc_hash, machine.llc_sets)),
            ],
            dtype=np.int64,
        )
        homes, kinds = pages_of(machine, arrays)
        message = ctypes.create_string_buffer(_ROOM)
        code = self._core.lstmsim_open(
            *(shape.ctypes.data, len(shape), homes.ctypes.data, kinds.ctypes.data, len(homes)),
            *(byref(self._own), message, _ROOM),
        )
        _check(code, message)

    def __del__(self) -> None:
        if hasattr(self, "_own") and self._own.value is not None:
            self._core.lstmsim_close(self._own)

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> NDArray[np.int64]:
        """See `Caches.drive`."""
        if len(cores) != len(runs):
            raise ValueError(f"there are {len(cores)} cores for {len(runs)} steps")
        rows = np.zeros((len(runs), self._width), dtype=np.int64)
        ends = np.cumsum([len(each.size) for each in runs])
        first = 0
        while first < len(runs):
            before = ends[first - 1] if first else 0
            last = max(int(np.searchsorted(ends, before + _RUNS, side="right")), first + 1)
            self._drive(cores[first:last], runs[first:last], rows[first:last])
            first = last
        return rows

    def _drive(self, cores: Sequence[int], runs: Sequence[Runs], rows: NDArray[np.int64]) -> None:
        numbers = np.array(cores, dtype=np.int64)
        address = np.concatenate([each.address for each in runs]).astype(np.int64, copy=False)
        size = np.concatenate([each.size for each in runs]).astype(np.int64, copy=False)
        write = np.concatenate([each.write for each in runs]).astype(np.uint8, copy=False)
        ends = np.cumsum([len(each.address) for each in runs], dtype=np.int64)
        if not len(address) == len(size) == len(write):
            raise ValueError("runs have not as many addresses as sizes and writes")
        message = ctypes.create_string_buffer(_ROOM)
        code = self._core.lstmsim_drive(
            *(self._own, numbers.ctypes.data, ends.ctypes.data, len(runs)),
            *(address.ctypes.data, size.ctypes.data, write.ctypes.data, len(address)),
            *(rows.ctypes.data, rows.size, message, _ROOM),
        )
        _check(code, message)


def _check(code: int, message: ctypes.Array[ctypes.c_char]) -> None:
    """Raise what a failure of the library is in Python."""
    if code:
        said = message.value.decode(errors="replace")
        if code == _REFUSED:
            raise ValueError(said)
        if code == _NO_MEMORY:
            raise MemoryError(said)
        raise RuntimeError(f"internal error of the caches' library: {said}")


class Caches(Protocol):
    """All caches of a machine, in the state in which the accesses so far have left them."""

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> NDArray[np.int64]:
        """Let steps touch their lines; what was counted, shape (steps, len(COLUMNS) + memories)."""


def open_caches(machine: Machine, arrays: Sequence[Array]) -> Caches:
    """Empty caches for the lines of some arrays: those in C++, or the plain ones with the same numbers, and a warning.

    `ValueError` if the arrays do not lie so.
    """
    reason = OWN_LIBRARY.absence()
    if reason is None:
        return NativeCaches(machine, arrays)
    what = f"the caches of a multi-core CPU have no library, because {reason}"
    warn_once(what, "plain Python counts instead", stacklevel=2)
    return PlainCaches(machine, arrays)
