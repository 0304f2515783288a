"""The caches in plain Python: what runs without a compiler, and what the native ones are held to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.multicore.lines.hashing import order_of_blocks, polynomial_for
from lstmsim.machines.multicore.lines.space import COLUMNS, OWN, SHARED, Array, Runs, pages_of
from lstmsim.machines.multicore.machine import Machine


class _Cache:
    """Lines of one cache with their dirty marks, of each set the least recently used first.

    sets, ways: how many.
    order: of each block of lines what its sets are XORed with; empty: nothing.
    """

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
    """All caches of a machine (`lstmsim.machines.multicore.lines.caches.Caches`).

    machine: whose caches they are.
    arrays: the whole space, one behind the other; `ValueError` if they do not lie so.
    """

    def __init__(self, machine: Machine, arrays: Sequence[Array]) -> None:
        self._machine = machine
        homes, kinds = pages_of(machine, arrays)
        self._homes, self._kinds = homes.tolist(), kinds.tolist()
        self._lines_of_page = machine.page // machine.line
        self._l1 = [_Cache(machine.l1_sets, machine.l1_ways) for _ in range(machine.cores)]
        self._l2 = [_Cache(machine.l2_sets, machine.l2_ways) for _ in range(machine.cores)]
        blocks = len(homes) * self._lines_of_page // machine.llc_sets + 1
        order = order_of_blocks(polynomial_for(machine.llc_hash, machine.llc_sets), blocks).tolist()
        self._llc = [_Cache(machine.llc_sets, machine.llc_ways, order) for _ in range(machine.groups)]
        self._written: set[int] = set()
        self._count: dict[str, int] = {}
        self._memory: list[int] = []
        self._core = 0

    def drive(self, cores: Sequence[int], runs: Sequence[Runs]) -> NDArray[np.int64]:
        """See `Caches.drive`."""
        if len(cores) != len(runs):
            raise ValueError(f"there are {len(cores)} cores for {len(runs)} steps")
        rows = np.zeros((len(runs), len(COLUMNS) + self._machine.domains), dtype=np.int64)
        for core, each in zip(cores, runs, strict=True):
            self._check(core, each)
        for row, core, each in zip(rows, cores, runs, strict=True):
            self._core = core
            self._count = dict.fromkeys(COLUMNS, 0)
            self._memory = [0] * self._machine.domains
            size = self._machine.line
            for address, length, write in zip(
                each.address.tolist(), each.size.tolist(), each.write.tolist(), strict=True
            ):
                if length:
                    for line in range(address // size, (address + length - 1) // size + 1):
                        self._access(line, write)
            row[:] = [*self._count.values(), *self._memory]
        return rows

    def _check(self, core: int, runs: Runs) -> None:
        if not 0 <= core < self._machine.cores:
            raise ValueError(f"there is no core {core} among {self._machine.cores}")
        end = len(self._homes) * self._machine.page
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
        group = self._machine.group(self._core)
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
            self._into_llc(self._machine.group(self._core), victim, dirty=True)

    def _into_llc(self, group: int, line: int, *, dirty: bool) -> None:
        victim = self._llc[group].put(line, dirty)
        if victim is not None:
            self._memory_line(victim, "memory_write")

    def _memory_line(self, line: int, way: str) -> None:
        home = self._homes[line // self._lines_of_page]
        self._count[way] += 1
        self._memory[home] += 1
        self._count["remote"] += home != self._machine.domain(self._core)

    def _share(self, line: int, write: bool) -> None:
        """What others have of a line goes where this core finds it; if it writes, others keep nothing."""
        machine, core = self._machine, self._core
        here = machine.group(core)
        for other, (l1, l2) in enumerate(zip(self._l1, self._l2, strict=True)):
            if other != core and (l1.dirty(line) or l2.dirty(line)):
                l1.drop(line)
                l2.drop(line)
                self._count["transfers"] += 1
                self._into_llc(machine.group(other), line, dirty=True)
        for group, llc in enumerate(self._llc):
            if group != here and llc.dirty(line):
                llc.drop(line)
                self._memory_line(line, "memory_write")
        if write:
            for other in range(machine.cores):
                if other != core:
                    self._l1[other].drop(line)
                    self._l2[other].drop(line)
            for group, llc in enumerate(self._llc):
                if group != here:
                    llc.drop(line)
