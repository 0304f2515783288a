"""The writer of kernels: one text for all warps that do the same at the same index of their streams.

A line of the text is a call, and its result is what later lines wait for. All warps that reach a line are written at
once; loops in Python go over lines and steps, never over warps. A stream may be written in segments (a prologue, the
rounds of a loop, an epilogue), all rounds of all warps at once, which are then put one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.machines.parallel.kernel import CLASS, Instructions, Ints, Kernel, KernelShape, Mask, Narrow, Values
from lstmsim.machines.parallel.writing.addresses import OFF, Touched, atomic_touches, touched, wavefronts
from lstmsim.model.sparse.csr import firsts, regrouped

_REMEMBERED = 16


class Result:
    """The index of an instruction in its stream, for each warp that issued it.

    numbers: shape (n,); ascending numbers of the streams.
    places: shape (n,); its index in each.
    """

    __slots__ = ("numbers", "places")

    def __init__(self, numbers: Ints, places: Narrow) -> None:
        self.numbers = numbers
        self.places = places


def later(first: Result | None, then: Result | None) -> Result | None:
    """For each warp what `then` has of it, or else what `first` has: the last instruction of its kind."""
    if first is None or then is None:
        return then if first is None else first
    if first.numbers is then.numbers:
        return then
    where = np.searchsorted(first.numbers, then.numbers)
    inside = np.minimum(where, len(first.numbers) - 1)
    if len(first.numbers) and (first.numbers[inside] == then.numbers).all():
        places = first.places.copy()
        places[where] = then.places
        return Result(first.numbers, places)
    numbers = np.union1d(first.numbers, then.numbers)
    places = np.empty(len(numbers), np.int32)
    for each in (first, then):
        places[np.searchsorted(numbers, each.numbers)] = each.places
    return Result(numbers, places)


class Places:
    """How some warps look up the places of results that other warps may have as well.

    numbers: shape (n,); ascending numbers of their streams.
    """

    __slots__ = ("_known", "numbers")

    def __init__(self, numbers: Ints) -> None:
        self.numbers = numbers
        #: By identity of other warps' numbers: these, where these warps stand among them, which of these do not.
        self._known: dict[int, tuple[Ints, NDArray[np.intp], Mask | None]] = {}

    def part_of(self, others: Ints, where: NDArray[np.intp]) -> None:
        """Take it as known that these warps stand at `where` among others."""
        self._known[id(others)] = (others, where, None)

    def of(self, result: Result) -> Narrow:
        """Shape (n,); the index of a result in each stream, -1 where it has none."""
        if result.numbers is self.numbers:
            return result.places
        if not len(result.numbers):
            return np.full(len(self.numbers), -1, np.int32)
        known = self._known.get(id(result.numbers))
        if known is None:
            known = self._known[id(result.numbers)] = self._searched(result.numbers)
            if len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        _, where, missing = known
        places = result.places[where]
        if missing is not None:
            places[missing] = -1
        return places

    def _searched(self, others: Ints) -> tuple[Ints, NDArray[np.intp], Mask | None]:
        where = np.searchsorted(others, self.numbers)
        where[where == len(others)] = 0
        missing = others[where] != self.numbers
        return others, where, missing if missing.any() else None


_ATOM = CLASS["atom"]


@dataclass(frozen=True, eq=False, slots=True)
class Slab:
    """One instruction of all warps that issue it together."""

    streams: Ints  # shape (n,); ascending numbers of the streams
    places: Narrow  # shape (n,); its index in each
    kind: int  # number of its class in `CLASSES`
    count: int | Narrow  # issues in a row: one number for all, or shape (n,)
    # places of the instructions that it waits for, each of shape (n,), -1 where a stream has none
    waits: tuple[Narrow, ...]
    array: int = -1  # number among the arrays of the run; -1 for shared memory and where there is no access
    vector: int = 1  # elements that a lane takes
    table: Narrow | None = None  # shape (n, lanes); element or byte address of each lane, `OFF` where it is off


@dataclass(frozen=True, eq=False)
class Batch:
    """Slabs in columns, one row for each instruction."""

    streams: Narrow  # streams, places, kind, count, lsu, array: shape (n,)
    places: Narrow
    kind: NDArray[np.int8]
    count: Narrow
    lsu: Narrow
    array: NDArray[np.int16]
    wait_counts: Narrow  # wait_counts, waits: how many places each row waits for, and these
    waits: Narrow
    sector_counts: Narrow  # sector_counts, sectors: how many sectors each row names, and these
    sectors: Narrow


def packed(slabs: Iterable[Slab], banks: int, element_bytes: int = 4) -> list[Batch]:
    """The slabs in columns: one batch for each kind of access and number of waits."""
    groups: dict[tuple[str, int, int], list[Slab]] = {}
    for slab in slabs:
        form = "none" if slab.table is None else "shared" if slab.array < 0 else "global"
        form = "atom" if slab.kind == _ATOM else form
        groups.setdefault((form, slab.vector, len(slab.waits)), []).append(slab)
    return [_batch(form, vector, waits, each, (banks, element_bytes)) for (form, vector, waits), each in groups.items()]


def _batch(form: str, vector: int, waits: int, slabs: list[Slab], widths: tuple[int, int]) -> Batch:
    lengths = np.array([len(slab.streams) for slab in slabs])
    n = int(lengths.sum())
    columns = np.empty((n, waits), np.int32)
    for place in range(waits):
        columns[:, place] = np.concatenate([slab.waits[place] for slab in slabs])
    given = columns >= 0
    array = [slab.array for slab in slabs]
    lsu, counts, sectors = _accesses(form, vector, slabs, n, widths)
    return Batch(
        np.concatenate([slab.streams for slab in slabs]).astype(np.int32),
        np.concatenate([slab.places for slab in slabs]),
        np.repeat(np.array([slab.kind for slab in slabs], np.int8), lengths),
        _counts(slabs, lengths),
        lsu,
        np.repeat(np.array(array, np.int16), lengths),
        given.sum(axis=1, dtype=np.int32),
        columns[given],
        counts,
        sectors,
    )


def _counts(slabs: list[Slab], lengths: Ints) -> Narrow:
    if all(isinstance(slab.count, int) for slab in slabs):
        return np.repeat(np.array([slab.count for slab in slabs], np.int32), lengths)
    each = [np.broadcast_to(np.asarray(slab.count, np.int32), len(slab.streams)) for slab in slabs]
    return np.concatenate(each)


def _accesses(
    form: str, vector: int, slabs: list[Slab], n: int, widths: tuple[int, int]
) -> tuple[Narrow, Narrow, Narrow]:
    """The load/store unit's cycles, how many sectors each row names, and these; widths: banks, bytes of an element."""
    nothing = np.zeros(n, np.int32)
    if form == "none":
        return nothing, nothing, np.zeros(0, np.int32)
    table = np.concatenate([slab.table for slab in slabs if slab.table is not None])
    if table.view(np.uint32).max(initial=0) > 1 << 31:
        raise ValueError(f"address {table[(table < 0) & (table != OFF)][0]} of a lane that is on is negative")
    if vector > 1:
        unit = vector if form != "shared" else 4 * vector
        crooked = table[(table % unit != 0) & (table != OFF)]
        if len(crooked):
            raise ValueError(f"address {crooked[0]} of a vector of {vector} is not a multiple of {unit}")
    if form == "shared":
        return wavefronts(table, vector, widths[0]), nothing, np.zeros(0, np.int32)
    rule: Callable[[Narrow, int], Touched] = atomic_touches if form == "atom" else touched
    each = rule(table, widths[1])
    return each.lines, each.counts, each.sectors


def laid_out(batches: list[Batch], shape: KernelShape, sm: Narrow) -> Kernel:
    """The kernel whose instructions stand in the batches."""
    streams = len(sm) * shape.warps
    lengths = np.zeros(streams, np.int64)
    for batch in batches:
        lengths += np.bincount(batch.streams, minlength=streams)
    first = firsts(lengths)
    n = int(first[-1])
    rows = [first[batch.streams] + batch.places for batch in batches]
    wait_first, (wait,) = regrouped(rows, [each.wait_counts for each in batches], [[each.waits for each in batches]], n)
    sectors = [each.sectors for each in batches]
    sector_first, (sector,) = regrouped(rows, [each.sector_counts for each in batches], [sectors], n)
    kind, count = np.empty(n, np.int8), np.empty(n, np.int32)
    lsu, array = np.empty(n, np.int32), np.empty(n, np.int16)
    for batch, row in zip(batches, rows, strict=True):
        kind[row], count[row], lsu[row], array[row] = batch.kind, batch.count, batch.lsu, batch.array
    instructions = Instructions(first, kind, count, wait_first, wait)
    return Kernel(shape, sm, instructions, lsu, array, sector_first, sector)


#: When the slabs at hand are packed: so many of them, or so many addresses in them.
_SLABS, _ADDRESSES = 4096, 1 << 21


#: Results that an instruction needs; None: nothing.
Waits = Sequence[Result | None]


class Warps:
    """Warps that execute the same instructions, written together. Made by `Grid.warps` and `Warps.part`.

    grid: what they write into.
    numbers: shape (n,); ascending numbers of their streams: block * warps of a block + warp.

    Every writing method takes `waits`, the results that the instruction needs, in the order of the text; a warp that
    has no part in a result does not wait for it, nor anyone for None. It returns the instruction's own result.
    """

    __slots__ = ("_places", "grid", "numbers")

    def __init__(self, grid: Grid, numbers: Ints) -> None:
        self.grid = grid
        self.numbers = numbers
        self._places = Places(numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, mask: Mask) -> Warps:
        """The warps of a mask, shape (n,); these themselves if it names all."""
        if mask.all():
            return self
        where = np.flatnonzero(mask)
        some = Warps(self.grid, self.numbers[where])
        some._places.part_of(self.numbers, where)
        return some

    def alu(self, count: int | ArrayLike = 1, waits: Waits = ()) -> Result:
        """Integer work: `count` issues in a row, one number or one for each warp."""
        return self._write("alu", count, waits)

    def fma(self, count: int | ArrayLike = 1, waits: Waits = ()) -> Result:
        """Multiply-adds, adds, multiplications: `count` issues in a row, one number or one for each warp."""
        return self._write("fma", count, waits)

    def sfu(self, count: int | ArrayLike = 1, waits: Waits = ()) -> Result:
        """Functions such as tanh: `count` issues in a row, one number or one for each warp."""
        return self._write("sfu", count, waits)

    def shfl(self, waits: Waits = ()) -> Result:
        """A value that goes from lane to lane."""
        return self._write("shfl", 1, waits)

    def bar(self, waits: Waits = ()) -> Result:
        """A meeting of the warps of a block."""
        return self._write("bar", 1, waits)

    def gridbar(self, waits: Waits = ()) -> Result:
        """A meeting of all blocks of the kernel."""
        return self._write("gridbar", 1, waits)

    def lds(self, address: ArrayLike, on: ArrayLike = True, vector: int = 1, waits: Waits = ()) -> Result:
        """A load from shared memory."""
        return self._write("lds", 1, waits, address, on, "", vector)

    def sts(self, address: ArrayLike, on: ArrayLike = True, vector: int = 1, waits: Waits = ()) -> Result:
        """A store to shared memory; arguments as of `lds`."""
        return self._write("sts", 1, waits, address, on, "", vector)

    def ldg(self, array: str, index: ArrayLike, on: ArrayLike = True, waits: Waits = (), vector: int = 1) -> Result:
        """A load from device memory."""
        return self._write("ldg", 1, waits, index, on, array, vector)

    def stg(self, array: str, index: ArrayLike, on: ArrayLike = True, waits: Waits = (), vector: int = 1) -> Result:
        """A store to device memory; arguments as of `ldg`."""
        return self._write("stg", 1, waits, index, on, array, vector)

    def atom(self, array: str, index: ArrayLike, on: ArrayLike = True, waits: Waits = ()) -> Result:
        """An atomic operation on device memory, one element a lane; arguments as of `ldg`."""
        return self._write("atom", 1, waits, index, on, array, 1)

    def ldg_if(self, array: str, index: ArrayLike, on: ArrayLike, waits: Waits = (), vector: int = 1) -> Result | None:
        """As `ldg`, by the warps with some lane on; None if no warp has one."""
        part, index, on = self._some(index, on)
        return part.ldg(array, index, on, waits, vector) if len(part) else None

    def stg_if(self, array: str, index: ArrayLike, on: ArrayLike, waits: Waits = (), vector: int = 1) -> Result | None:
        """As `stg`, by the warps with some lane on; None if no warp has one."""
        part, index, on = self._some(index, on)
        return part.stg(array, index, on, waits, vector) if len(part) else None

    def atom_if(self, array: str, index: ArrayLike, on: ArrayLike, waits: Waits = ()) -> Result | None:
        """As `atom`, by the warps with some lane on; None if no warp has one."""
        part, index, on = self._some(index, on)
        return part.atom(array, index, on, waits) if len(part) else None

    def _some(self, index: ArrayLike, on: ArrayLike) -> tuple[Warps, ArrayLike, ArrayLike]:
        """The warps with some lane on, with their rows of the tables."""
        lanes = np.asarray(on, bool)
        if lanes.ndim < 2 or len(lanes) != len(self.numbers):
            lanes = np.broadcast_to(lanes, (len(self.numbers), self.grid.lanes))
        mask: Mask = np.logical_or.reduce(lanes, axis=1)
        part = self.part(mask)
        if part is self:
            return self, index, on
        return part, _rows(index, mask), _rows(on, mask)

    def _write(
        self,
        kind: str,
        count: int | ArrayLike,
        waits: Waits,
        index: ArrayLike | None = None,
        on: ArrayLike = True,
        array: str = "",
        vector: int = 1,
    ) -> Result:
        numbers, table = self.numbers, None
        counts = count if isinstance(count, int) else np.asarray(count, np.int32)
        needed = tuple(self._places.of(wait) for wait in waits if wait is not None)
        places = self.grid._next(numbers)
        if index is not None:
            table = np.empty((len(numbers), self.grid.lanes), np.int32)
            table[:] = index
            if on is not True:
                np.copyto(table, OFF, where=np.logical_not(on))
        if len(numbers):
            number = self.grid.arrays[array] if array else -1
            self.grid._take(Slab(numbers, places, CLASS[kind], counts, needed, number, vector, table))
        return Result(numbers, places)


def _rows(table: ArrayLike, mask: Mask) -> ArrayLike:
    """The rows of a mask, of a table that has a row for each warp or one for all."""
    values = np.asarray(table)
    return values[mask] if values.ndim == 2 and len(values) == len(mask) else values


class Grid:
    """A kernel, or some consecutive blocks of one, while it is written.

    lanes: lanes of a warp.
    arrays: place of each array among the run's arrays, by its name.
    banks: of shared memory.
    element_bytes: bytes of an element of device memory, the same for all arrays.
    """

    def __init__(self, device_warp: int, arrays: Mapping[str, int], banks: int = 32, element_bytes: int = 4) -> None:
        self.lanes = device_warp
        self.arrays = dict(arrays)
        self.banks = banks
        self.element_bytes = element_bytes
        self._lengths = np.zeros(0, np.int32)
        self._slabs: list[Slab] = []
        self._addresses = 0
        self._batches: list[Batch] = []

    def warps(self, numbers: ArrayLike) -> Warps:
        """The warps with these ascending numbers of streams: block in this grid * warps of a block + warp."""
        each = np.asarray(numbers, np.int64).reshape(-1)
        if len(each) and (each[0] < 0 or (each[1:] <= each[:-1]).any()):
            raise ValueError("numbers of streams ascend from 0 on")
        if len(each) and each[-1] >= len(self._lengths):
            self._lengths = np.pad(self._lengths, (0, int(each[-1]) + 1 - len(self._lengths)))
        return Warps(self, each)

    def kernel(self, shape: KernelShape, sm: ArrayLike) -> Kernel:
        """What has been written, stream after stream, on these multiprocessors: one for each block, -1 for any."""
        where = np.asarray(sm, np.int32).reshape(-1)
        if len(self._lengths) > len(where) * shape.warps:
            raise ValueError(f"{len(where)} blocks of {shape.warps} warps have no stream {len(self._lengths) - 1}")
        self._pack()
        return laid_out(self._batches, shape, where)

    def _next(self, numbers: Ints) -> Narrow:
        """The next index in each of these streams, which is then taken."""
        places = self._lengths[numbers]
        self._lengths[numbers] = places + 1
        return places

    def _take(self, slab: Slab) -> None:
        self._slabs.append(slab)
        self._addresses += 0 if slab.table is None else slab.table.size
        if len(self._slabs) >= _SLABS or self._addresses >= _ADDRESSES:
            self._pack()

    def _pack(self) -> None:
        self._batches += packed(self._slabs, self.banks, self.element_bytes)
        self._slabs, self._addresses = [], 0


#: Waits of a segment are below this; what is above names an index of the stream, or a distance before the segment.
_OF_STREAM, _BEFORE = 1 << 28, 1 << 29


@dataclass(frozen=True, eq=False)
class Piece:
    """Some consecutive segments, while they are written."""

    grid: Grid  # what they are written into; a segment is a stream of it
    stream: Ints  # shape (n,); the stream of each segment
    place: Ints  # shape (n,); which segment of its stream it is, from 0

    def where(self, mask: Mask) -> tuple[Ints, Warps]:
        """The segments of a mask: their indices in this piece, and what writes them."""
        chosen = np.flatnonzero(mask)
        return chosen, self.grid.warps(chosen)


def at_place(warps: Warps, places: NDArray[np.integer]) -> Result:
    """The instructions that stand at these indices of their streams."""
    return Result(warps.numbers, (places + _OF_STREAM).astype(np.int32))


def places_before(warps: Warps, distance: int) -> Result:
    """The instructions that stand so many indices before the beginning of each segment."""
    return Result(warps.numbers, np.full(len(warps), _BEFORE + distance, np.int32))


def written(
    text: Callable[[Piece], None], counts: Ints, grid: Callable[[], Grid], shape: KernelShape, sm: Narrow, size: int
) -> Kernel:
    """The kernel whose streams consist of segments, of which `size` are written at once.

    text: writes segments; counts: shape (streams,); segments of each stream; grid: gives an empty grid.
    """
    begins = firsts(counts)
    total = int(begins[-1])
    if not total:
        return grid().kernel(shape, sm)

    def piece(start: int) -> Kernel:
        numbers = np.arange(start, min(start + size, total), dtype=np.int64)
        stream = np.searchsorted(begins, numbers, "right") - 1
        into = grid()
        text(Piece(into, stream, numbers - begins[stream]))
        return into.kernel(KernelShape("segment", 1), np.full(len(numbers), -1, np.int32))

    return chained(joined(piece(start) for start in range(0, total, size)), begins, shape, sm)


def chained(segments: Kernel, begins: Ints, shape: KernelShape, sm: Narrow) -> Kernel:
    """The kernel whose streams are these segments, one after the other."""
    text = segments.instructions
    first = text.first[begins]
    offsets = (text.first[:-1] - np.repeat(first[:-1], np.diff(begins))).astype(np.int32)
    offset = np.repeat(offsets, np.diff(text.first_wait[text.first]))
    wait = text.wait
    known, before = (wait >= _OF_STREAM) & (wait < _BEFORE), wait >= _BEFORE
    places = wait + offset
    places[known] = wait[known] - _OF_STREAM
    places[before] = offset[before] - (wait[before] - _BEFORE)
    instructions = replace(text, first=first, wait=places)
    return replace(segments, shape=shape, sm=np.asarray(sm, np.int32), instructions=instructions)


def joined(pieces: Iterable[Kernel]) -> Kernel:
    """One kernel with the blocks of the pieces, one piece after the other."""
    shapes: set[KernelShape] = set()
    columns: list[list[Values]] = [[] for _ in range(10)]
    for piece in pieces:
        text = piece.instructions
        shapes.add(piece.shape)
        parts: list[Values] = [text.first, text.first_wait, piece.first_sector, piece.sm, text.count, text.wait]
        parts += [piece.lsu, piece.sector, text.kind, piece.array]
        for column, part in zip(columns, parts, strict=True):
            column.append(part)
    if len(shapes) != 1:
        raise ValueError(f"pieces of one kernel are wanted, these are of {len(shapes)}")
    for bounds in columns[:3]:
        ends = np.cumsum([0] + [int(first[-1]) for first in bounds])
        bounds[:] = [first[:-1] + end for first, end in zip(bounds, ends[:-1], strict=True)] + [ends[-1:]]
    first, first_wait, first_sector, sm, count, wait, lsu, sector, kind, array = map(_drained, columns)
    text = Instructions(first, kind, count, first_wait, wait)
    return Kernel(shapes.pop(), sm, text, lsu, array, first_sector, sector)


def _drained(column: list[Values]) -> Values:
    """The parts as one, given up as soon as they are copied."""
    whole = column[0] if len(column) == 1 else np.concatenate(column)
    column.clear()
    return whole
