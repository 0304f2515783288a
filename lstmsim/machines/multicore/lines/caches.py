"""The caches of all cores, driven line by line (section 5 of docs/multicore.md): in C++, or else in plain Python.

The set of a line is its number mod the sets, or an XOR of many bits (section 9). A block is as many lines as there are
sets. Within a block each set has one line, hashed or not; a hash gives the lines of each block another order.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int64, c_void_p
from functools import cache, lru_cache
from math import isqrt
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.space import COLUMNS, OWN, SHARED, Array, Ints, Runs, pages_of
from lstmsim.native.library import Library, warn_once

#: The polynomial 1, by which every rest is 0: nothing is hashed.
NO_HASH = 1


@lru_cache(maxsize=64)
def polynomial_for(kind: str, sets: int) -> int:
    """A polynomial over GF(2) without divisors, with the power of two in `sets` as its degree; bit i is x**i.

    It is the least from 2**degree times the golden ratio on. So about half of its bits are set, and high bits of a
    line's number reach all bits of its set. With few bits set, runs of lines a power of two apart would share sets.
    """
    degree = (sets & -sets).bit_length() - 1
    if kind == "bits" or not degree:
        return NO_HASH
    polynomial = (1 << degree) + isqrt(5 << 2 * degree) >> 1
    while any(not _rest(polynomial, by) for by in range(2, 1 << degree // 2 + 1)):
        polynomial += 1
    return polynomial


def _rest(number: int, by: int) -> int:
    """The rest of a division of polynomials."""
    degree = by.bit_length()
    while number.bit_length() >= degree:
        number ^= by << number.bit_length() - degree
    return number


def order_of_blocks(polynomial: int, blocks: int) -> Ints:
    """Of each block of lines what the lowest bits of its sets are XORed with; shape (blocks,).

    It is the rest of x**degree times the block's number, so each bit of it is an XOR of bits of that number.
    """
    order = np.zeros(blocks, dtype=np.int64)
    image, bit = polynomial ^ (1 << polynomial.bit_length() - 1), 1
    while bit < blocks:
        order[bit : 2 * bit] = order[: min(bit, blocks - bit)] ^ image
        image, bit = _rest(image << 1, polynomial), 2 * bit
    return order


def sets_of(kind: str, sets: int, lines: int) -> Callable[[Ints], Ints]:
    """The function from numbers of lines to the sets in which a cache keeps them."""
    polynomial = polynomial_for(kind, sets)
    if polynomial == NO_HASH:
        return lambda numbers: numbers % sets
    order = order_of_blocks(polynomial, lines // sets + 1)

    def found(numbers: Ints) -> Ints:
        blocks, rest = np.divmod(numbers, sets)
        found: Ints = rest ^ order[blocks]
        return found

    return found


class Caches(Protocol):
    """All caches of a chip, in the state in which the accesses so far have left them."""

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> Ints:
        """Let steps touch their lines; what was counted, shape (steps, len(COLUMNS) + memories)."""


class _PlainCache:
    """Lines of one cache with their dirty marks, of each set the least recently used first."""

    def __init__(self, sets: int, ways: int, order: Sequence[int] = ()) -> None:
        self._count, self._ways, self._order = sets, ways, order
        self._sets: defaultdict[int, dict[int, bool]] = defaultdict(dict)

    def _set_of(self, line: int) -> dict[int, bool]:
        block, rest = divmod(line, self._count)
        return self._sets[rest ^ self._order[block] if self._order else rest]

    def touch(self, line: int) -> bool:
        """Make a line the youngest of its set; whether it is there."""
        own = self._set_of(line)
        if line not in own:
            return False
        own[line] = own.pop(line)
        return True

    def room(self, line: int) -> int | None:
        """Make room for a line that is not there; the line that had to go, if it was dirty."""
        own = self._set_of(line)
        if len(own) < self._ways:
            return None
        victim = next(iter(own))
        return victim if own.pop(victim) else None

    def put(self, line: int, dirty: bool) -> int | None:
        """Put a line in as the youngest; the line that had to go, if it was dirty."""
        own = self._set_of(line)
        if line in own:
            own[line] = own.pop(line) or dirty
            return None
        victim = self.room(line)
        own[line] = dirty
        return victim

    def mark(self, line: int) -> None:
        """Mark a line that is there as dirty."""
        self._set_of(line)[line] = True

    def dirty(self, line: int) -> bool:
        """Whether a line is there and dirty."""
        return self._set_of(line).get(line, False)

    def drop(self, line: int) -> None:
        """Remove a line if it is there."""
        self._set_of(line).pop(line, None)


class PlainCaches:
    """All caches, line by line; `ValueError` if the arrays of the space do not lie one after the other."""

    def __init__(self, chip: MulticoreCpu, arrays: Sequence[Array]) -> None:
        self._chip = chip
        homes, kinds = pages_of(chip, arrays)
        self._homes, self._kinds = homes.tolist(), kinds.tolist()
        self._lines_of_page = chip.page // chip.line
        self._l1 = [_PlainCache(chip.core.l1_sets, chip.core.l1_ways) for _ in range(len(chip.cores))]
        self._l2 = [_PlainCache(chip.core.l2_sets, chip.core.l2_ways) for _ in range(len(chip.cores))]
        blocks = len(homes) * self._lines_of_page // chip.llc_sets + 1
        order = order_of_blocks(polynomial_for(chip.llc_hash, chip.llc_sets), blocks).tolist()
        self._llc = [_PlainCache(chip.llc_sets, chip.llc_ways, order) for _ in range(chip.groups)]
        self._written: set[int] = set()
        self._count: dict[str, int] = {}
        self._memory: list[int] = []
        self._core = 0

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> Ints:
        """See `Caches.drive`."""
        if len(cores) != len(runs):
            raise ValueError(f"there are {len(cores)} cores for {len(runs)} steps")
        rows = np.zeros((len(runs), len(COLUMNS) + self._chip.domains), dtype=np.int64)
        for core, each in zip(cores, runs, strict=True):
            self._check(core, each)
        for row, core, each in zip(rows, cores, runs, strict=True):
            self._core = core
            self._count, self._memory = dict.fromkeys(COLUMNS, 0), [0] * self._chip.domains
            first, last = each.address // self._chip.line, (each.address + each.size - 1) // self._chip.line
            for begin, end, length, write in zip(first.tolist(), last.tolist(), each.size, each.write, strict=True):
                for line in range(begin, end + 1) if length else ():
                    self._access(line, write)
            row[:] = [*self._count.values(), *self._memory]
        return rows

    def _check(self, core: int, runs: Runs) -> None:
        if not 0 <= core < len(self._chip.cores):
            raise ValueError(f"there is no core {core} among {len(self._chip.cores)}")
        end = len(self._homes) * self._chip.page
        address, size = runs.address, runs.size
        if np.any((address < 0) | (size < 0) | (address > end) | (size > end - address)):
            raise ValueError(f"a run is not inside the space of {end} bytes")

    def _access(self, line: int, write: bool) -> None:
        count, core = self._count, self._core
        kind = self._kinds[line // self._lines_of_page]
        if kind & SHARED:
            self._share(line, write)
        l1 = self._l1[core]
        count["l1"] += 1
        if l1.touch(line):
            count["l1_hit"] += 1
        else:
            self._fetch(line, bool(kind & OWN))
            l1.put(line, False)
        if write:
            l1.mark(line)
            if kind & OWN:
                self._written.add(line)

    def _fetch(self, line: int, own: bool) -> None:
        """Make room in L1, and get a line into L2."""
        count, l2 = self._count, self._l2[self._core]
        victim = self._l1[self._core].room(line)
        if victim is not None:
            count["l1_l2"] += 1
            self._into_l2(victim, dirty=True)
        count["l1_l2"] += 1
        count["l2"] += 1
        if l2.touch(line):
            count["l2_hit"] += 1
            return
        group = self._chip.group(self._core)
        count["l2_llc"] += 1
        count["llc"] += 1
        if self._llc[group].touch(line):
            count["llc_hit"] += 1
        else:
            if not own or line in self._written:
                self._memory_line(line, "memory_read")
            self._into_llc(group, line, dirty=False)
        self._into_l2(line, dirty=False)

    def _into_l2(self, line: int, *, dirty: bool) -> None:
        victim = self._l2[self._core].put(line, dirty)
        if victim is not None:
            self._count["l2_llc"] += 1
            self._into_llc(self._chip.group(self._core), victim, dirty=True)

    def _into_llc(self, group: int, line: int, *, dirty: bool) -> None:
        victim = self._llc[group].put(line, dirty)
        if victim is not None:
            self._memory_line(victim, "memory_write")

    def _memory_line(self, line: int, way: str) -> None:
        home = self._homes[line // self._lines_of_page]
        self._count[way] += 1
        self._memory[home] += 1
        self._count["remote"] += home != self._chip.domain(self._core)

    def _share(self, line: int, write: bool) -> None:
        """What others have of a line goes where this core finds it; if it writes, others keep nothing."""
        chip, core = self._chip, self._core
        here = chip.group(core)
        for other, (l1, l2) in enumerate(zip(self._l1, self._l2, strict=True)):
            if other != core and (l1.dirty(line) or l2.dirty(line)):
                l1.drop(line)
                l2.drop(line)
                self._count["transfers"] += 1
                self._into_llc(chip.group(other), line, dirty=True)
        for group, llc in enumerate(self._llc):
            if group != here and llc.dirty(line):
                llc.drop(line)
                self._memory_line(line, "memory_write")
        if write:
            for other in range(len(chip.cores)):
                if other != core:
                    self._l1[other].drop(line)
                    self._l2[other].drop(line)
            for group, llc in enumerate(self._llc):
                if group != here:
                    llc.drop(line)


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
    """All caches in C++; errors as of `PlainCaches`."""

    def __init__(self, chip: MulticoreCpu, arrays: Sequence[Array]) -> None:
        self._core = _functions()
        self._width = len(COLUMNS) + chip.domains
        self._own = c_void_p()
        # `Shape` of the library
        shape = np.array(
            [
                *(len(chip.cores), chip.cores_per_llc, chip.cores_per_domain, chip.line, chip.page),
                *(chip.core.l1_sets, chip.core.l1_ways, chip.core.l2_sets, chip.core.l2_ways),
                *(chip.llc_sets, chip.llc_ways, polynomial_for(chip.llc_hash, chip.llc_sets)),
            ],
            dtype=np.int64,
        )
        homes, kinds = pages_of(chip, arrays)
        pages = (homes.ctypes.data, kinds.ctypes.data, len(homes))
        _call(self._core.lstmsim_open, shape.ctypes.data, len(shape), *pages, byref(self._own))

    def __del__(self) -> None:
        if hasattr(self, "_own") and self._own.value is not None:
            self._core.lstmsim_close(self._own)

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> Ints:
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

    def _drive(self, cores: Sequence[int], runs: Sequence[Runs], rows: Ints) -> None:
        numbers = np.array(cores, dtype=np.int64)
        address = np.concatenate([each.address for each in runs]).astype(np.int64, copy=False)
        size = np.concatenate([each.size for each in runs]).astype(np.int64, copy=False)
        write = np.concatenate([each.write for each in runs]).astype(np.uint8, copy=False)
        ends = np.cumsum([len(each.address) for each in runs], dtype=np.int64)
        if not len(address) == len(size) == len(write):
            raise ValueError("runs have not as many addresses as sizes and writes")
        of_runs = (address.ctypes.data, size.ctypes.data, write.ctypes.data, len(address))
        of_steps = (numbers.ctypes.data, ends.ctypes.data, len(runs))
        _call(self._core.lstmsim_drive, self._own, *of_steps, *of_runs, rows.ctypes.data, rows.size)


def _call(function: Any, *arguments: Any) -> None:
    """Call a function of the library; raise what its failure is in Python."""
    message = ctypes.create_string_buffer(_ROOM)
    code = function(*arguments, message, _ROOM)
    if code:
        said = message.value.decode(errors="replace")
        if code == _REFUSED:
            raise ValueError(said)
        if code == _NO_MEMORY:
            raise MemoryError(said)
        raise RuntimeError(f"internal error of the caches' library: {said}")


def open_caches(chip: MulticoreCpu, arrays: Sequence[Array]) -> Caches:
    """Empty caches for the lines of some arrays: those in C++, or the plain ones with the same numbers, and a warning.

    `ValueError` if the arrays do not lie so.
    """
    reason = OWN_LIBRARY.absence
    if reason is None:
        return NativeCaches(chip, arrays)
    what = f"the caches of a multi-core CPU have no library, because {reason}"
    warn_once(what, "plain Python counts instead", stacklevel=2)
    return PlainCaches(chip, arrays)
