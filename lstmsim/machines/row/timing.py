"""The timing of one block of a row-wise NPU's instructions: operations of the fetch unit, decoders and other units.

All units are in order, and within an operation one vector follows the other. Only where they wait for the row groups of
a product, one chunk or one group at a time, an instruction is several operations of a unit, its segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lstmsim.machines.row.npu import RowCore, Shape
from lstmsim.machines.row.plan import Chain, Item, Load, Product
from lstmsim.program.operations import Dependence, Operation

#: Units of a core: the fetch unit, decoders for the units that instructions have a slot for, those, the serializer.
UNITS = (
    *("fetch", "decode_mvu", "decode_evrf", "decode_mfu0", "decode_mfu1", "decode_loader"),
    *("mvu", "evrf", "mfu0", "mfu1", "loader", "serializer"),
)
FETCH, MVU, EVRF, MFU0, MFU1, LOADER, SERIALIZER = 0, 6, 7, 8, 9, 10, 11
_SLOTS = (MVU, EVRF, MFU0, MFU1, LOADER)
_DECODER = dict(zip(_SLOTS, range(1, 6), strict=True))


class Wait(NamedTuple):
    """Operation number `operation` of a block waits for the latest writer of `name`, from `delay` after its end on."""

    operation: int
    name: str
    delay: int


class Written(NamedTuple):
    """The operation of a block that writes a name (or uses a unit) last, and the cause of waiting for it."""

    operation: int
    cycles: int
    cause: str


class _Segment(NamedTuple):
    """Some cycles of a vector on its way."""

    operation: int  # the operation that gives them; -1 if they wait for nothing
    delay: int  # from the start of that operation until they reach the next unit
    first: int  # the first of them, counted from the beginning of the vector
    cycles: int  # how many


@dataclass
class BlockTimer:
    """The operations of one block."""

    core: RowCore
    dense: bool = False  # whether the block is a stack of dense layers
    paced: bool = False  # whether frames come one after another; then a wait for x is a wait for input
    operations: list[Operation] = field(default_factory=list)  # the operations so far
    # waits for a writer in another iteration or block, or for no writer (start states)
    waits: list[Wait] = field(default_factory=list)
    # name of a vector or unit -> its last writer in the block
    written: dict[str, Written] = field(default_factory=dict)
    # for each unit and decoder the empty slots since its last operation
    trailing: list[int] = field(default_factory=lambda: [0] * len(UNITS))
    loads: list[int] = field(default_factory=list)  # places of the loader operations
    counted: int = 0  # how many loader operations the compiler has counted
    fetched_cycles: int = 0  # cycles of the fetch unit so far

    def __post_init__(self) -> None:
        self.shape = Shape(self.core)
        self.operations.append(Operation(FETCH, label="fetch"))

    def add(self, item: Item) -> None:
        """Time one more item of the block."""
        if isinstance(item.what, Load):
            self._load(item, item.what)
        else:
            self._chain(item, item.what)
        cycles = self.fetched_cycles
        self.operations[0] = Operation(FETCH, cycles, result_cycles=cycles, label="fetch")

    def _instruction(self, item: Item, slots: Sequence[int]) -> int:
        """Add an instruction with operations in these slots. Returns when it is there, from the start of the fetch."""
        for unit in _SLOTS:
            if unit not in slots:
                self.trailing[_DECODER[unit]] += 1
                self.trailing[unit] += self.core.empty_slots
        there = self.fetched_cycles
        self.fetched_cycles += self.core.dispatch(item.cell).dispatch_cycles
        return there

    def _emit(
        self,
        unit: int,
        cycles: int,
        needs: Sequence[Dependence],
        item: Item,
        label: str,
        *,
        result_cycles: int | None = None,
        work: int = 0,
        frame: bool = False,
        ahead: int = 0,
    ) -> int:
        """Add an operation of a unit, after the empty slots before it. Returns its place."""
        number, name, gap = len(self.operations), UNITS[unit], self.trailing[unit]
        before = self.written.get(name)
        if before is None:
            self.waits.append(Wait(number, name, gap + 1))
        elif gap:
            needs = (*needs, Dependence(before.operation, before.cycles + gap, "dispatch"))
        self.trailing[unit] = 0
        self.written[name] = Written(number, cycles, "dispatch")
        result = cycles if result_cycles is None else result_cycles
        place = (*item.place, -1, -1)
        # by place, because a step has hundreds of operations, and names take longer than all the rest
        operation = Operation(unit, cycles, 1, tuple(needs), frame, None, None, result, work, label, place, ahead)
        self.operations.append(operation)
        return number

    def _decode(self, unit: int, there: int, cycles: int, item: Item, issue: int) -> Dependence:
        """Decode an operation of `cycles` cycles. Returns the dependence that its start has on the decoder."""
        own, fetched = self.core.decode_cycles, Dependence(0, there + self.core.latency.fetch, "dispatch")
        number = self._emit(_DECODER[unit], own + cycles, (fetched,), item, "decode")
        return Dependence(number, own + issue, "dispatch")

    def _read(self, names: Sequence[str], delay: int) -> list[Dependence]:
        """The dependences of the next operation on these vectors, as far as this block writes them."""
        needs = []
        for name in names:
            writer = self.written.get(name)
            if writer is None:
                self.waits.append(Wait(len(self.operations), name, delay))
            else:
                needs.append(Dependence(writer.operation, writer.cycles - 1 + delay, writer.cause))
        return needs

    def _load(self, item: Item, load: Load) -> None:
        """A vector from outside: a loader operation a tile, or one."""
        core, cycles = self.core, [self.shape.vectors(load.size)]
        if load.matrix:
            words = self.shape.words(load.size) * core.lanes * core.vectors
            parts = core.tiles if core.tile_loads else 1
            cycles = [-(-words * core.tiles // parts // core.vector_lanes)] * parts
        for number, length in enumerate(cycles):
            there = self._instruction(item, (LOADER,))
            need = self._decode(LOADER, there, length, item, core.latency.issue_loader)
            frame = load.frame and number == 0
            ahead = load.ahead if frame else 0
            self.loads.append(self._emit(LOADER, length, (need,), item, "load", frame=frame, ahead=ahead))
            self.counted += 1
        self._write(item.own + load.writes, "input" if load.frame and self.paced else "hazard")

    def _write(self, name: str, cause: str = "hazard") -> None:
        """The loader operations so far have written that name, as far as the compiler has counted them."""
        number = self.loads[self.counted - 1 if self.dense else -1]
        self.written[name] = Written(number, self.operations[number].cycles, cause)

    def _chain(self, item: Item, chain: Chain) -> None:
        """A product or a read vector, through the multi-function units to the loader."""
        latency, cycles = self.core.latency, self.shape.vectors(chain.size)
        names = {"x": item.x, "ones": ("ones",)}

        def full(operands: Sequence[str]) -> list[str]:
            return [each for name in operands for each in names.get(name, (item.own + name,))]

        apart = chain.matrix or (chain.output and not chain.writes)
        slots = [EVRF, MFU0, MFU1, *([MVU] if chain.product else []), *([] if apart else [LOADER])]
        there = self._instruction(item, slots)
        segments = [_Segment(-1, 0, 0, cycles)]
        if chain.product is not None:
            segments = self._product(item, chain.product, there, full([chain.product.vector]))
        words = self.shape.loader_words(chain.size) if apart else (self.shape.groups(chain.size),)
        if item.ends:
            # after the last result comes only padding, for which nothing waits
            kept = sum(words) * self.shape.passes()
            whole = [each for each in segments if each.first < kept]
            segments = [each._replace(cycles=min(each.cycles, kept - each.first)) for each in whole]
        passes = (
            (EVRF, latency.issue_evrf, latency.tag_evrf, [chain.read] if chain.read else [], latency.evrf),
            (MFU0, latency.issue_mfu, latency.tag_mfu, chain.first, latency.mfu0),
            (MFU1, latency.issue_mfu, latency.tag_mfu, chain.second, latency.mfu1),
        )
        for unit, issue, tag, operands, through in passes:
            need = self._decode(unit, there, cycles, item, issue)
            first = [need, *self._read(full(operands), tag)]
            segments = [
                self._pass(unit, each, () if index else first, item, through, chain.label)
                for index, each in enumerate(segments)
            ]
        self._write_back(item, chain, there, segments, words if apart else ())

    def _pass(
        self, unit: int, segment: _Segment, needs: Sequence[Dependence], item: Item, through: int, label: str
    ) -> _Segment:
        """A segment goes through a unit."""
        operation, delay, start, cycles = segment
        if operation >= 0:
            needs = (*needs, Dependence(operation, delay))
        return _Segment(self._emit(unit, cycles, needs, item, label), through, start, cycles)

    def _product(self, item: Item, product: Product, there: int, vector: list[str]) -> list[_Segment]:
        """A matrix-vector product: when the results of its chunks or row groups reach the register file."""
        latency, shape, size = self.core.latency, self.shape, self.core.serializer_cycles
        cycles, passes = shape.product_cycles(product.rows, product.columns), shape.passes()
        need = self._decode(MVU, there, cycles, item, latency.issue_mvu)
        needs = [need, *self._read(vector, latency.tag_mvu)]
        work = product.rows * product.columns * item.batch
        number = self._emit(MVU, cycles, needs, item, "product", work=work)
        groups = shape.groups(product.rows)
        after = shape.finished_after(groups, shape.words(product.columns))
        segments = []
        if size:
            for group, cycle in enumerate(after):
                left = (Dependence(number, cycle + latency.product),)
                freed = self._emit(SERIALIZER, size, left, item, "row group")
                segments.append(_Segment(freed, latency.serializer, group * passes, passes))
            return segments
        group = 0
        for chunk in shape.chunks(groups):
            segments.append(_Segment(number, after[group] + latency.product, group * passes, chunk * passes))
            group += chunk
        return segments

    def _write_back(
        self, item: Item, chain: Chain, there: int, segments: list[_Segment], words: tuple[int, ...]
    ) -> None:
        """Write results to their vectors, with the chain's own instruction, or `words` at a time with further ones.

        One more instruction throws padding away.
        """
        passes, done = self.shape.passes(), 0
        groups = self.shape.groups(chain.size)
        for length in words or (groups,):
            there = self._instruction(item, (LOADER,)) if words else there
            self._store(item, segments, there, (done, done + length * passes), output=chain.output)
            done += length * passes
            self.counted += bool(chain.writes) or self.core.count_flushes
        for name in chain.writes:
            self._write(item.own + name)
        if done < groups * passes and not item.ends:
            there = self._instruction(item, (LOADER,))
            self._store(item, segments, there, (done, groups * passes), output=False)
            self.counted += self.core.count_flushes

    def _store(self, item: Item, segments: list[_Segment], there: int, span: tuple[int, int], *, output: bool) -> None:
        """One loader operation takes the cycles `span` of the vector, wherever they are cut."""
        start, end = span
        needs = [self._decode(LOADER, there, end - start, item, self.core.latency.issue_loader)]
        for segment in segments:
            first, last = max(start, segment.first), min(end, segment.first + segment.cycles)
            if first < last:
                result = last - first + (self.core.latency.output if output else 0)
                late = Dependence(segment.operation, segment.delay + first - segment.first)
                label = "output" if output else "store"
                number = self._emit(LOADER, last - first, [*needs, late], item, label, result_cycles=result)
                needs = []
        self.loads.append(number)
