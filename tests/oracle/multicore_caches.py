"""The caches of section 5 of docs/multicore.md, one access after the other."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

Level = defaultdict[tuple[int, int], OrderedDict[int, bool]]

COUNTS = ("l1", "l1_hit", "l2", "l2_hit", "llc", "llc_hit", "l1_l2", "l2_llc")
COUNTS = (*COUNTS, "memory_read", "memory_write", "remote", "transfers")


@dataclass(frozen=True)
class Array:
    """Pages from `first` on; `owner`: the core whose own array it is, None for an array of all."""

    first: int
    end: int
    owner: int | None
    shared: bool


class Space:
    """Arrays one behind the other, each from the next page on."""

    def __init__(self, m: Any) -> None:
        self.m = m
        self.pages = 0
        self.arrays: dict[int, Array] = {}

    def place(self, elements: int, owner: int | None = None, shared: bool = False) -> int:
        """Byte address of a new array."""
        first = self.pages
        self.pages += max(1, -(-elements * self.m.element_bytes // self.m.page))
        array = Array(first, self.pages, owner, shared)
        self.arrays |= dict.fromkeys(range(first, self.pages), array)
        return first * self.m.page

    def array(self, line: int) -> Array:
        return self.arrays[line * self.m.line // self.m.page]

    def home(self, line: int) -> int:
        owner = self.array(line).owner
        if owner is not None:
            return owner // self.m.cores_per_domain
        return line * self.m.line // self.m.page % -(-self.m.cores // self.m.cores_per_domain)


@cache
def irreducible(degree: int) -> int:
    """The least polynomial over GF(2) from 2**degree times the golden ratio on that is no product of two others."""
    first = int(2**degree * (1 + Decimal(5).sqrt()) / 2)
    products = {
        multiplied(a, b) for a in range(2, 2 << degree // 2) for b in range(2, 1 << (degree + 2 - a.bit_length()))
    }
    return next(each for each in range(first, 2 << degree) if each not in products)


def multiplied(a: int, b: int) -> int:
    result = 0
    for bit in range(b.bit_length()):
        result ^= (a << bit) * (b >> bit & 1)
    return result


def set_of(m: Any, line: int) -> int:
    """9, "Lines": the set of a line in the LLC."""
    power = 1
    while m.llc_sets % (2 * power) == 0:
        power *= 2
    if getattr(m, "llc_hash", "bits") == "bits" or power == 1:
        return int(line % m.llc_sets)
    # x**degree times the number of the block, divided digit by digit
    rest, divisor = line // m.llc_sets * power, irreducible(power.bit_length() - 1)
    while rest >= power:
        rest ^= divisor << (rest.bit_length() - divisor.bit_length())
    return int(line % m.llc_sets) ^ rest


class Caches:
    """L1 and L2 of each core, LLC of each group: (whose, set) -> line -> dirty, the oldest line first."""

    def __init__(self, m: Any, space: Space) -> None:
        self.m, self.space = m, space
        self.l1: Level = defaultdict(OrderedDict)
        self.l2: Level = defaultdict(OrderedDict)
        self.llc: Level = defaultdict(OrderedDict)
        self.written: set[int] = set()
        #: of the step that goes on: counts by name, and lines by domain
        self.counts: Counter[str] = Counter()
        self.memory: Counter[int] = Counter()
        self.core = 0

    def begin(self, core: int) -> None:
        self.core, self.counts, self.memory = core, Counter(), Counter()

    def group(self, core: int) -> int:
        return core // self.m.cores_per_llc

    def of_memory(self, line: int, name: str) -> None:
        home = self.space.home(line)
        self.counts[name] += 1
        self.memory[home] += 1
        self.counts["remote"] += home != self.core // self.m.cores_per_domain

    def access(self, line: int, write: bool) -> None:
        if self.space.array(line).shared:
            self.claim(line, write)
        core, n, ways = self.core, self.counts, self.l1[self.core, line % self.m.l1_sets]
        n["l1"] += 1
        if line in ways:
            n["l1_hit"] += 1
            ways.move_to_end(line)
        else:
            if len(ways) == self.m.l1_ways:
                victim, dirty = ways.popitem(last=False)
                if dirty:
                    n["l1_l2"] += 1
                    self.put_l2(core, victim, True)
            n["l1_l2"] += 1
            self.from_l2(core, line)
            ways[line] = False
        if write:
            ways[line] = True
            self.written.add(line)

    def from_l2(self, core: int, line: int) -> None:
        n, ways = self.counts, self.l2[core, line % self.m.l2_sets]
        n["l2"] += 1
        if line in ways:
            n["l2_hit"] += 1
            ways.move_to_end(line)
            return
        n["l2_llc"] += 1
        n["llc"] += 1
        last = self.llc[self.group(core), set_of(self.m, line)]
        if line in last:
            n["llc_hit"] += 1
            last.move_to_end(line)
        else:
            if self.space.array(line).owner is None or line in self.written:
                self.of_memory(line, "memory_read")
            self.put_llc(self.group(core), line, False)
        self.put_l2(core, line, False)

    def put_l2(self, core: int, line: int, dirty: bool) -> None:
        ways = self.l2[core, line % self.m.l2_sets]
        if line not in ways and len(ways) == self.m.l2_ways:
            victim, was_dirty = ways.popitem(last=False)
            if was_dirty:
                self.counts["l2_llc"] += 1
                self.put_llc(self.group(core), victim, True)
        ways[line] = ways.pop(line, False) or dirty

    def put_llc(self, group: int, line: int, dirty: bool) -> None:
        ways = self.llc[group, set_of(self.m, line)]
        if line not in ways and len(ways) == self.m.llc_ways:
            victim, was_dirty = ways.popitem(last=False)
            if was_dirty:
                self.of_memory(victim, "memory_write")
        ways[line] = ways.pop(line, False) or dirty

    def claim(self, line: int, write: bool) -> None:
        """5.2: what happens elsewhere before an access to a shared line."""
        sets = (line % self.m.l1_sets, line % self.m.l2_sets)
        for core in range(self.m.cores):
            levels = [level[core, at] for level, at in zip((self.l1, self.l2), sets, strict=True)]
            if core != self.core and any(level.get(line) for level in levels):
                for level in levels:
                    level.pop(line, None)
                self.counts["transfers"] += 1
                self.put_llc(self.group(core), line, True)
        for group in range(self.group(self.m.cores - 1) + 1):
            ways = self.llc[group, set_of(self.m, line)]
            if group != self.group(self.core) and ways.get(line):
                del ways[line]
                self.of_memory(line, "memory_write")
            if write and group != self.group(self.core):
                ways.pop(line, None)
        for core in range(self.m.cores) if write else ():
            if core != self.core:
                self.l1[core, sets[0]].pop(line, None)
                self.l2[core, sets[1]].pop(line, None)
