"""A row-wise NPU once more, micro-operation by micro-operation: what each unit does with each vector, and when.

Recurrences over time stamps, from docs/row_npu.md; nothing is shared with the package but its descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from lstmsim.machines.row.npu import RowCore

UNITS = ("mvu", "evrf", "mfu0", "mfu1", "loader")


@dataclass
class Instruction:
    """Slots by unit; a slot holds its size in words (row groups) and the tag that it waits for."""

    mvu: tuple[int, int, int] | None = None  # row groups, words, tag
    evrf: tuple[int, int] | None = None  # row groups, tag
    mfu0: tuple[int, int] | None = None
    mfu1: tuple[int, int] | None = None
    loader: tuple[int, bool, bool] | None = None  # words, from outside, to outside


@dataclass
class Compiler:
    """Instructions of a program, with tags: how many loader operations must be over before an operand is there."""

    core: RowCore
    dense: bool = False
    instructions: list[Instruction] = field(default_factory=list)
    count: int = 0
    tags: dict[str, int] = field(default_factory=dict)

    def words(self, size: int) -> int:
        native = -(-size // self.core.native_dimension) * self.core.native_dimension
        return -(-native // (self.core.tiles * self.core.lanes))

    def groups(self, size: int) -> int:
        return max(-(-size // self.core.engines), self.core.chunk_groups)

    def load(self, name: str, size: int) -> None:
        for _ in range(self.core.tiles):
            self.instructions.append(Instruction(loader=(self.words(size), True, False)))
            self.count += 1
        self.tags[name] = self.count

    def load_register(self, name: str, size: int) -> None:
        self.instructions.append(Instruction(loader=(self.groups(size), True, False)))
        self.count += 1
        self.tags[name] = self.count

    def chain(
        self, size: int, product: tuple[str, int] | None = None, read: str = "", *operands: tuple[str, ...]
    ) -> None:
        groups, (first, second) = self.groups(size), (*operands, (), ())[:2]
        tag = [max((self.tags.get(name, 0) for name in names), default=0) for names in (first, second)]
        made = Instruction(evrf=(groups, self.tags.get(read, 0)), mfu0=(groups, tag[0]), mfu1=(groups, tag[1]))
        if product is not None:
            made.mvu = (groups, self.words(product[1]), self.tags.get(product[0], 0))
        self.instructions.append(made)

    def keep(self, name: str, size: int) -> None:
        self.instructions[-1].loader = (self.groups(size), False, False)
        self.count += 1
        self.tags[name] = self.count

    def to_matrix_unit(self, name: str, size: int, *, output: bool = False, stored: bool = True) -> None:
        rest, words = self.groups(size), self.words(size)
        for _ in range(self.core.tiles):
            if rest > 0:
                self.instructions.append(Instruction(loader=(min(words, rest), False, output)))
                rest -= words
                self.count += stored or not self.dense or self.core.count_flushes
        self.tags[name] = self.count
        if rest > 0:
            self.instructions.append(Instruction(loader=(rest, False, False)))
            self.count += self.core.count_flushes or not self.dense


def compiled(core: RowCore, cell: str, sizes: list[int], steps: int, rounds: int) -> list[Instruction]:
    """The program of one layer of a cell, or of a stack of dense layers."""
    c = Compiler(core, dense=cell == "dense")
    if cell == "dense":
        for layer, (i, n) in enumerate(pairwise(sizes)):
            last = layer == len(sizes) - 2
            for _ in range(rounds):
                if layer == 0:
                    c.load("h0", i)
                c.chain(n, (f"h{layer}", i))
                c.to_matrix_unit(f"h{layer + 1}", n, output=last, stored=not last)
        return c.instructions
    i, n = sizes
    if cell == "gru-lbr0":
        c.load_register("ones", n)
    for _ in range(rounds):
        for name in [name for name in c.tags if name != "ones"]:
            del c.tags[name]
        c.load("x", i)
        for step in range(steps):
            last = step == steps - 1
            for gate in {"rnn": "h", "lstm": "fcio", "gru-lbr0": "zrc"}[cell]:
                c.chain(n, ("x", i))
                c.keep("x" + gate, n)
            if not last:
                c.load("x", i)
            _recurrent(c, cell, n, output=last)
    return c.instructions


def _recurrent(c: Compiler, cell: str, n: int, *, output: bool) -> None:
    if cell == "rnn":
        c.chain(n, ("h", n), "", ("xh",))
    elif cell == "lstm":
        for gate in "fio":
            c.chain(n, ("h", n), "", ("x" + gate,))
            c.keep(gate, n)
        c.chain(n, ("h", n), "", ("xc",), ("i",))
        c.keep("ig", n)
        c.chain(n, None, "c", ("f",), ("ig",))
        c.keep("c", n)
        c.chain(n, None, "c", ("o",))
    else:
        c.chain(n, ("h", n), "", ("xz",))
        c.keep("z", n)
        c.chain(n, None, "ones", ("z",), ("h",))
        c.keep("zh", n)
        c.chain(n, ("h", n), "", ("xr",), ("h",))
        c.to_matrix_unit("rh", n)
        c.chain(n, ("rh", n), "", ("xc",))
        c.keep("c", n)
        c.chain(n, None, "c", ("z",), ("zh",))
    c.to_matrix_unit("h", n, output=output)


@dataclass
class Machine:
    """Time stamps of each unit and decoder: when it did its last step."""

    core: RowCore
    decoded: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UNITS, -1))
    stepped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UNITS, -1))
    over: list[int] = field(default_factory=list)  # last step of each loader operation
    serialized: int = -1
    queue: list[int] = field(default_factory=list)
    finish: int = 0

    def run(self, instructions: list[Instruction]) -> int:
        core = self.core
        for index, each in enumerate(instructions):
            there = core.start_cycles + index * core.dispatch_cycles + core.latency.fetch
            for unit in UNITS:
                slot = getattr(each, unit)
                begin = max(self.decoded[unit] + 1, there)
                if slot is None:
                    self.decoded[unit] = begin
                    if core.empty_slots:
                        self.stepped[unit] = max(self.stepped[unit] + 1, begin + 1)
                else:
                    self.decoded[unit] = begin + core.decode_cycles - 1
                    getattr(self, unit)(slot, each)
        return self.finish

    def step(self, unit: str, issue: int, *others: int) -> int:
        """One micro-operation: decoded after the one before it, done when all it waits for is there."""
        self.decoded[unit] += 1
        self.stepped[unit] = max(self.stepped[unit] + 1, self.decoded[unit] + issue, *others)
        return self.stepped[unit]

    def tag(self, number: int, latency: int) -> int:
        return self.over[number - 1] + latency if number else -1

    def mvu(self, slot: tuple[int, int, int], _: Instruction) -> None:
        groups, words, tag = slot
        latency, self.queue = self.core.latency, []
        begun = 0
        while begun < groups:
            chunk = self.core.chunk_groups if groups - begun >= 2 * self.core.chunk_groups else groups - begun
            for word in range(words):
                for _group in range(chunk):
                    at = self.step("mvu", latency.issue_mvu, self.tag(tag, latency.tag_mvu))
                    if word == words - 1:
                        self.leave(at + latency.product)
            begun += chunk

    def leave(self, cycle: int) -> None:
        """The vectors of a row group leave: together, or one after another through the serializer."""
        count = self.core.vectors * self.core.engines // self.core.vector_lanes
        if not self.core.serializer_cycles:
            self.queue += [cycle] * count
            return
        start = max(cycle, self.serialized)
        self.serialized = start + self.core.serializer_cycles
        self.queue += [start + self.core.latency.serializer + k for k in range(count)]

    def evrf(self, slot: tuple[int, int], each: Instruction) -> None:
        groups, tag = slot
        latency = self.core.latency
        count = groups * self.core.vectors * self.core.engines // self.core.vector_lanes
        come = self.queue if each.mvu is not None else [-1] * count
        assert len(come) == count
        wait = self.tag(tag, latency.tag_evrf)
        self.queue = [self.step("evrf", latency.issue_evrf, wait, vector) + latency.evrf for vector in come]

    def mfu0(self, slot: tuple[int, int], _: Instruction) -> None:
        self.mfu("mfu0", slot[1], self.core.latency.mfu0)

    def mfu1(self, slot: tuple[int, int], _: Instruction) -> None:
        self.mfu("mfu1", slot[1], self.core.latency.mfu1)

    def mfu(self, unit: str, tag: int, through: int) -> None:
        latency = self.core.latency
        wait = self.tag(tag, latency.tag_mfu)
        self.queue = [self.step(unit, latency.issue_mfu, wait, vector) + through for vector in self.queue]

    def loader(self, slot: tuple[int, bool, bool], _: Instruction) -> None:
        words, outside, output = slot
        count = words * self.core.vectors * self.core.engines // self.core.vector_lanes
        for _vector in range(count):
            come = -1 if outside else self.queue.pop(0)
            at = self.step("loader", self.core.latency.issue_loader, come)
            if output:
                self.finish = max(self.finish, at + self.core.latency.output + 1)
        self.over.append(self.stepped["loader"])
