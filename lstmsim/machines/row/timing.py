"""The timing of one block of a row-wise NPU's instructions: operations of the fetch unit, decoders and other units.

All units are in order, and within an operation one vector follows the other. Only where they wait for the row groups of
a product, one chunk or one group at a time, an instruction is several operations of a unit, its segments. A step has
hundreds of them in few runs of equal ones, so runs are written, and numpy makes the rows of a body of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lstmsim.machines.row.npu import RowCore, Shape
from lstmsim.machines.row.plan import Chain, Item, Load, Product
from lstmsim.program.flat import FLAT_TABLES, WIDTHS
from lstmsim.program.operations import CAUSE_NUMBERS, Name, Rows
from lstmsim.program.program import Body

#: Units of a core: the fetch unit, decoders for the units that instructions have a slot for, those, the serializer.
UNITS = (
    *("fetch", "decode_mvu", "decode_evrf", "decode_mfu0", "decode_mfu1", "decode_loader"),
    *("mvu", "evrf", "mfu0", "mfu1", "loader", "serializer"),
)
FETCH, MVU, EVRF, MFU0, MFU1, LOADER, SERIALIZER = 0, 6, 7, 8, 9, 10, 11
_SLOTS = (MVU, EVRF, MFU0, MFU1, LOADER)
_DECODER = dict(zip(_SLOTS, range(1, 6), strict=True))
_DISPATCH = CAUSE_NUMBERS["dispatch"]
_HAZARD = CAUSE_NUMBERS["hazard"]
_INPUT = CAUSE_NUMBERS["input"]
_FIRST_NEED, _NEEDS = (FLAT_TABLES["operations"].place(name) for name in ("first_need", "needs"))
#: Numbers of a run: how many, and the row of `operations`; how many, `together`, who waits, and the row of `needs`.
_RUN, _NEEDS_RUN = 1 + WIDTHS["operations"], 3 + WIDTHS["needs"]
#: Segments of a vector: how many in a row, and the cycles of each.
_Segments = list[tuple[int, int]]


class Wait(NamedTuple):
    """Operation number `operation` of a block waits for the latest writer of `name`, from `delay` after its end on."""

    operation: int
    name: str
    delay: int


class Written(NamedTuple):
    """The operation of a block that writes a name (or uses a unit) last, and the cause of waiting for it."""

    operation: int
    cycles: int
    cause: int  # its number in the flat form


class _Given(NamedTuple):
    """Segments in a row, each as an operation gives it."""

    number: int  # how many
    operation: int  # the operation that gives the first
    delay: int  # from the start of that operation until the segment reaches the next unit
    together: int = 0  # 1: one operation gives them all, each a cycle after the one before; 0: each has its own


def _cut(segments: _Segments, cycles: int) -> tuple[_Segments, _Segments]:
    """Cut segments after some cycles: those before, and those after."""
    before, after = [], []
    for count, each in segments:
        whole = min(count, cycles // each)
        part = min(cycles - whole * each, each) if whole < count else 0
        left = count - whole - (part > 0)
        before += [run for run in ((whole, each), (1, part)) if all(run)]
        after += [run for run in ((1, each - part if part else 0), (left, each)) if all(run)]
        cycles -= whole * each + part
    return before, after


def _count(segments: _Segments) -> int:
    return sum(count for count, _ in segments)


@dataclass
class BlockTimer:
    """The operations of one block."""

    core: RowCore
    dense: bool = False  # whether the block is a stack of dense layers
    paced: bool = False  # whether frames come one after another; then a wait for x is a wait for input
    size: int = 1  # how many operations there are so far; the first is that of the fetch unit
    # waits for a writer in another iteration or block, or for no writer (start states)
    waits: list[Wait] = field(default_factory=list)
    # name of a vector or unit -> its last writer in the block
    written: dict[str, Written] = field(default_factory=dict)
    # for each unit and decoder the empty slots since its last operation
    trailing: list[int] = field(default_factory=lambda: [0] * len(UNITS))
    loads: list[Written] = field(default_factory=list)  # the loader operations
    counted: int = 0  # how many loader operations the compiler has counted
    fetched_cycles: int = 0  # cycles of the fetch unit so far
    names: list[Name] = field(default_factory=lambda: [("fetch", ())])  # label and place of each operation

    def __post_init__(self) -> None:
        self.shape = Shape(self.core)
        self._dispatch: dict[str, int] = {}
        self._runs: list[int] = []
        self._needs: list[int] = []

    def add(self, item: Item) -> None:
        """Time one more item of the block."""
        self._place = (*item.place, -1, -1)
        if isinstance(item.what, Load):
            self._load(item, item.what)
        else:
            self._chain(item, item.what)

    def need(self, waiting: int, row: Sequence[int]) -> None:
        """Let an operation wait; `row`: of `needs`, but for barriers."""
        self._needs += (1, 0, waiting, *row, 0)

    def body(self) -> Body:
        """The body of all items."""
        cycles = self.fetched_cycles
        fetch = (1, FETCH, cycles, 1, 0, -1, -1, cycles, 0, 0, 0, 0, 0, -1, -1, 0)
        runs = np.array([*fetch, *self._runs], dtype=np.int64).reshape(-1, _RUN)
        operations = np.repeat(runs[:, 1:], runs[:, 0], axis=0)
        runs = np.array(self._needs, dtype=np.int64).reshape(-1, _NEEDS_RUN)
        needs = np.repeat(runs[:, 1:], runs[:, 0], axis=0)
        # how many rows of the same run are before a row
        further = np.arange(len(needs)) - np.repeat(np.cumsum(runs[:, 0]) - runs[:, 0], runs[:, 0])
        together, waiting = needs[:, 0], needs[:, 1]
        waiting += further
        needs[:, 2] += further * (1 - together)
        needs[:, 3] += further * together
        own = np.bincount(waiting, minlength=self.size)
        operations[:, _NEEDS], operations[:, _FIRST_NEED] = own, np.cumsum(own) - own
        needs = needs[np.argsort(waiting, kind="stable"), 2:]
        # as rows a body takes less than half the memory, and no engine looks at its operations
        return Body.of_rows(Rows(operations.ravel(), needs.ravel()), self.names)

    def _instruction(self, item: Item, slots: Sequence[int]) -> int:
        """Add an instruction with operations in these slots. Returns when it is there, from the start of the fetch."""
        for unit in _SLOTS:
            if unit not in slots:
                self.trailing[_DECODER[unit]] += 1
                self.trailing[unit] += self.core.empty_slots
        there, cell = self.fetched_cycles, item.cell
        if cell not in self._dispatch:
            self._dispatch[cell] = self.core.dispatch(cell).dispatch_cycles
        self.fetched_cycles += self._dispatch[cell]
        return there

    def _wait(self, operation: int, delay: int, cause: int = _HAZARD) -> None:
        """Let the next operation wait for another one of the block."""
        self._needs += (1, 0, self.size, operation, delay, cause, 0, -1, 0, 0)

    def _emit(
        self, unit: int, segments: _Segments, label: str, late: int = 0, work: int = 0, ahead: int | None = None
    ) -> int:
        """Add operations of a unit, one for each segment, after the empty slots before them. Returns the first's place.

        late: cycles after their end until their results are there; ahead: of an input frame, else None.
        """
        first, name, gap, cycles = self.size, UNITS[unit], self.trailing[unit], 0
        before = self.written.get(name)
        if before is None:
            self.waits.append(Wait(first, name, gap + 1))
        elif gap:
            self._wait(before.operation, before.cycles + gap, _DISPATCH)
        self.trailing[unit], frame = 0, ahead is not None
        for count, cycles in segments:
            self._runs += (count, unit, cycles, 1, frame, -1, -1, cycles + late, work, 0, 0, ahead or 0, 0, -1, -1, 0)
            self.size += count
        self.written[name] = Written(self.size - 1, cycles, _DISPATCH)
        self.names += [(label, self._place)] * (self.size - first)
        return first

    def _decode(self, unit: int, there: int, cycles: int, issue: int) -> None:
        """Decode the next operation, of `cycles` cycles, which waits for its decoder."""
        own = self.core.decode_cycles
        self._wait(0, there + self.core.latency.fetch, _DISPATCH)
        number = self._emit(_DECODER[unit], [(1, own + cycles)], "decode")
        self._wait(number, own + issue, _DISPATCH)

    def _read(self, names: Sequence[str], delay: int) -> None:
        """Let the next operation wait for these vectors."""
        for name in names:
            writer = self.written.get(name)
            if writer is None:
                self.waits.append(Wait(self.size, name, delay))
            else:
                self._wait(writer.operation, writer.cycles - 1 + delay, writer.cause)

    def _load(self, item: Item, load: Load) -> None:
        """A vector from outside: a loader operation a tile, or one."""
        core, cycles = self.core, [self.shape.vectors(load.size)]
        if load.matrix:
            words = self.shape.words(load.size) * core.lanes * core.vectors
            parts = core.tiles if core.tile_loads else 1
            cycles = [-(-words * core.tiles // parts // core.vector_lanes)] * parts
        for number, length in enumerate(cycles):
            there = self._instruction(item, (LOADER,))
            self._decode(LOADER, there, length, core.latency.issue_loader)
            self._emit(LOADER, [(1, length)], "load", ahead=load.ahead if load.frame and number == 0 else None)
            self.loads.append(self.written[UNITS[LOADER]])
            self.counted += 1
        self._write(item.own + load.writes, _INPUT if load.frame and self.paced else _HAZARD)

    def _write(self, name: str, cause: int = _HAZARD) -> None:
        """The loader operations so far have written that name, as far as the compiler has counted them."""
        self.written[name] = self.loads[self.counted - 1 if self.dense else -1]._replace(cause=cause)

    def _chain(self, item: Item, chain: Chain) -> None:
        """A product or a read vector, through the multi-function units to the loader."""
        latency, cycles = self.core.latency, self.shape.vectors(chain.size)
        names = {"x": item.x, "ones": ("ones",)}

        def full(operands: Sequence[str]) -> list[str]:
            return [each for name in operands for each in names.get(name, (item.own + name,))]

        apart = chain.matrix or (chain.output and not chain.writes)
        slots = [EVRF, MFU0, MFU1, *([MVU] if chain.product else []), *([] if apart else [LOADER])]
        there = self._instruction(item, slots)
        given: list[_Given] = []
        segments = [(1, cycles)]
        if chain.product is not None:
            given, segments = self._product(item, chain.product, there, full([chain.product.vector]))
        words = self.shape.loader_words(chain.size) if apart else (self.shape.groups(chain.size),)
        if item.ends:
            # after the last result comes only padding, for which nothing waits
            segments = _cut(segments, sum(words) * self.shape.passes())[0]
            count = _count(segments)
            given = [each._replace(number=min(each.number, count)) for each in given[:count]]
        passes = (
            (EVRF, latency.issue_evrf, latency.tag_evrf, [chain.read] if chain.read else [], latency.evrf),
            (MFU0, latency.issue_mfu, latency.tag_mfu, chain.first, latency.mfu0),
            (MFU1, latency.issue_mfu, latency.tag_mfu, chain.second, latency.mfu1),
        )
        for unit, issue, tag, operands, through in passes:
            self._decode(unit, there, cycles, issue)
            self._read(full(operands), tag)
            given = [self._pass(unit, given, segments, chain.label, through)]
        self._write_back(item, chain, there, given[0], segments, words if apart else ())

    def _pass(self, unit: int, given: Sequence[_Given], segments: _Segments, label: str, through: int) -> _Given:
        """Segments go through a unit, each as it is given. Returns how the unit gives them."""
        self._follow(given)
        first = self._emit(unit, segments, label)
        return _Given(self.size - first, first, through)

    def _follow(self, given: Sequence[_Given]) -> None:
        """Let the next operations wait for these segments, one for each."""
        waiting = self.size
        for count, operation, delay, together in given:
            self._needs += (count, together, waiting, operation, delay, _HAZARD, 0, -1, 0, 0)
            waiting += count

    def _product(self, item: Item, product: Product, there: int, vector: list[str]) -> tuple[list[_Given], _Segments]:
        """A matrix-vector product: how the results of its chunks or row groups reach the register file."""
        latency, shape, size = self.core.latency, self.shape, self.core.serializer_cycles
        passes, groups, words = shape.passes(), shape.groups(product.rows), shape.words(product.columns)
        cycles = groups * words
        self._decode(MVU, there, cycles, latency.issue_mvu)
        self._read(vector, latency.tag_mvu)
        work = product.rows * product.columns * item.batch
        number = self._emit(MVU, [(1, cycles)], "product", work=work)
        given, segments, done = [], [], 0
        for chunk in shape.chunks(groups):
            # the first row group of a chunk has its last word after all words before of all groups of the chunk
            given.append(_Given(chunk if size else 1, number, done + (words - 1) * chunk + latency.product, 1))
            segments.append((1, chunk * passes))
            done += words * chunk
        if size:
            given = [self._pass(SERIALIZER, given, [(groups, size)], "row group", latency.serializer)]
            segments = [(groups, passes)]
        return given, segments

    def _write_back(
        self, item: Item, chain: Chain, there: int, given: _Given, segments: _Segments, words: tuple[int, ...]
    ) -> None:
        """Write results to their vectors, with the chain's own instruction, or `words` at a time with further ones.

        One more instruction throws padding away.
        """
        passes, groups, taken = self.shape.passes(), self.shape.groups(chain.size), 0
        label, late = ("output", self.core.latency.output) if chain.output else ("store", 0)
        left = groups - sum(words or (groups,))
        for length in words or (groups,):
            there = self._instruction(item, (LOADER,)) if words else there
            given, segments, taken = self._store(given, segments, taken, there, length * passes, label, late)
            self.counted += bool(chain.writes) or self.core.count_flushes
        for name in chain.writes:
            self._write(item.own + name)
        if left and not item.ends:
            there = self._instruction(item, (LOADER,))
            self._store(given, segments, taken, there, left * passes, "store")
            self.counted += self.core.count_flushes

    def _store(
        self, given: _Given, segments: _Segments, taken: int, there: int, cycles: int, label: str, late: int = 0
    ) -> tuple[_Given, _Segments, int]:
        """One loader operation takes the next cycles of the vector, wherever they are cut. Returns what remains.

        taken: cycles of the first segment that the operation before has taken.
        """
        self._decode(LOADER, there, cycles, self.core.latency.issue_loader)
        now, rest = _cut(segments, cycles)
        count, (_, operation, delay, _) = _count(now), given
        self._follow((_Given(1, operation, delay + taken), _Given(count - 1, operation + 1, delay)))
        self._emit(LOADER, now, label, late)
        self.loads.append(self.written[UNITS[LOADER]])
        cut = count + _count(rest) - _count(segments)
        taken = cut * (now[-1][1] + (taken if count == 1 else 0))
        return given._replace(operation=operation + count - cut), rest, taken
