"""What kernels of rows share: options, rows stored, ordered, bundled and dealt, segments of text, sums in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from lstmsim.base.checks import Notes, type_checker
from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.wording import must_be, show
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, Mask, Memory, Narrow, Values
from lstmsim.machines.parallel.writing.streams import Grid, Piece, Result, Warps, at_place, later, places_before
from lstmsim.model.sparse.csr import Csr, Dcsr, firsts

T = TypeVar("T")


class Options:
    """Options of kernels: each value is checked by the `Key` of its field; `InputError` names all wrong ones."""

    def __post_init__(self) -> None:
        refuse(option_mistakes(self))


def option_mistakes(options: Any) -> Iterator[Mistake]:
    """Say what is wrong with each value of a record whose fields carry keys."""
    for name, each in keys_of(type(options)).items():
        value, notes = getattr(options, name), Notes()
        if each.key.choices:
            if value not in each.key.choices:
                yield Mistake(name, must_be(value, each.key.choices))
            continue
        numbers = [*value] if each.several and isinstance(value, tuple) else [value]
        type_checker(each.type, each.key)(numbers if each.several else value, (name,), notes)
        rule = each.key.wrong
        ruled = () if notes or each.type is bool else (rule(one) for one in numbers if one is not None)
        wrong = [note.message(value) for note in notes] + [f"{text}, got {show(value)}" for text in ruled if text]
        yield from (Mistake(name, text) for text in wrong[:1])


def options_of(kind: type[T], given: Mapping[str, Any]) -> T:
    """Make the options of a kernel: those of `given` that it has; null means the default, others are ignored."""
    own = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in given.items() if name in own and value is not None}
    refuse(
        Mistake(name, "is missing; the kernel needs it")
        for name, default in own.items()
        if default is MISSING and name not in values
    )
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def check_sizes(sizes: Mapping[str, int]) -> None:
    """`InputError` with every size of a product, by name, that is below 1."""
    rule = Key(low=1).wrong
    refuse(Mistake(name, f"{rule(size)}, got {size}") for name, size in sizes.items() if rule(size))


def fours(value: int) -> str:
    """The rule of a number that is a multiple of 4."""
    return "must be a multiple of 4" if value % 4 else ""


ALIGNMENTS = ("reverse", "none", "pad")

#: Keys that options of several kernels have.
ORDER = Key("rows as they are (plain) or longest first (sorted)", choices=("plain", "sorted"))
DISPATCH = Key(
    "blocks on demand, or given to multiprocessors beforehand in runs (static), in turn by falling load (round), or to "
    "and fro by falling load (snake); hybrid: the heavier half to and fro, the rest on demand",
    choices=("demand", "static", "round", "snake", "hybrid"),
)
VECTOR = Key(
    "elements that a lane loads, computes and stores at once",
    low=1,
    high=4,
    rule=lambda value: "" if value in (1, 2, 4) else "must be 1, 2 or 4",
)
REGISTERS = Key("registers of a thread", low=0)


def default_vector(size: int) -> int:
    """The widest vector of 4, 2 or 1 elements that divides a size."""
    return 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1


def allocated(entries: int) -> int:
    """How many entries an array has: at least 1, a multiple of 4."""
    return -(-max(1, entries) // 4) * 4


def bad_lanes(value: int | None, warp: int) -> Mistake | None:
    """What is wrong with the option `lanes`, or None."""
    if value is None or (0 < value <= warp and value & (value - 1) == 0):
        return None
    return Mistake("lanes", f"must be a power of two up to the {warp} lanes of a warp, got {value}")


def addressable(arrays: tuple[Memory, ...], element_bytes: int = 4) -> tuple[Memory, ...]:
    """These arrays; `InputError` if one has more elements than an address of a lane can tell apart."""
    most = np.iinfo(np.int32).max
    refuse(
        Mistake(each.name, f"must have at most {most} elements, got {each.elements}")
        for each in arrays
        if each.elements > most
    )
    return arrays if element_bytes == 4 else tuple(replace(each, bytes=element_bytes) for each in arrays)


def memories(element_bytes: int = 4, **sizes: int | None) -> tuple[Memory, ...]:
    """Arrays by name and elements, in the order of their declaration; without those of None elements."""
    arrays = tuple(Memory(name, size) for name, size in sizes.items() if size is not None)
    return addressable(arrays, element_bytes)


def numbered(arrays: Iterable[Memory]) -> dict[str, int]:
    """The number of each array by its name."""
    return {each.name: number for number, each in enumerate(arrays)}


def grids(device: ParallelDevice, arrays: Mapping[str, int] | Iterable[Memory]) -> Callable[[], Grid]:
    """Gives empty grids for the text of a kernel over these arrays."""
    places = arrays if isinstance(arrays, Mapping) else numbered(arrays)
    return lambda: Grid(device.core.warp, places, device.core.banks, device.element_bytes)


@dataclass(frozen=True, eq=False)
class Stored:
    """The rows of a matrix as a kernel finds them in memory, and where it begins and ends in each."""

    vector: int  # how many elements of `cols` and of `values` a lane loads at once
    row: Ints  # shape (n,); the row of the matrix that each stored row is
    length: Ints  # shape (n,); entries of each row, without fill
    masked: Ints  # shape (n,); how many elements before its first entry each row loads
    start: Ints  # shape (n,); where the loads of each row begin in `cols` and `values`
    end: Ints  # shape (n,); how many elements from there on each row has, masked ones and fill among them
    cols: Ints  # cols, values: shape (stored entries,); fill is column 0 and value 0
    values: Values


def stored(matrix: Csr | Dcsr, vector: int, align: str) -> Stored:
    """The matrix as a kernel finds it in memory."""
    offset = matrix.row_ptr[:-1]
    length = np.diff(matrix.row_ptr)
    row = matrix.row_numbers if isinstance(matrix, Dcsr) else np.arange(matrix.rows, dtype=np.int64)
    nothing = np.zeros(len(length), np.int64)
    if align == "none":
        return Stored(1, row, length, nothing, offset, length, matrix.cols, matrix.values)
    if align == "reverse":
        masked = np.where(length > 0, offset % vector, 0)
        return Stored(vector, row, length, masked, offset - masked, length + masked, matrix.cols, matrix.values)
    end = -(-length // vector) * vector
    start = np.cumsum(end) - end
    cols = np.zeros(int(end.sum()), np.int64)
    values = np.zeros(len(cols), matrix.values.dtype)
    place = np.arange(matrix.entries) + np.repeat(start - offset, length)
    cols[place], values[place] = matrix.cols, matrix.values
    return Stored(vector, row, length, nothing, start, end, cols, values)


@dataclass(frozen=True, eq=False)
class Dealt:
    """The blocks of a grid, and the rows of their bundles."""

    order: Ints  # shape (n,); places of stored rows in the order in which they are bundled
    tile: Ints  # tile, bundle: shape (blocks,); what each block of the grid works on
    bundle: Ints
    sm: Narrow  # shape (blocks,); its multiprocessor, -1 for any

    def rows(self, warps: int, rows: int, share: bool = False) -> Ints:
        """The places of the stored rows of each subwarp, -1 for none, shape (blocks * warps, rows)."""
        of_block = rows if share else rows * warps
        place = np.repeat(self.bundle * of_block, warps)
        if not share:
            place += np.tile(np.arange(warps) * rows, len(self.bundle))
        places = place[:, None] + np.arange(rows)
        padded = np.append(self.order, -1)
        which: Ints = padded[np.minimum(places, len(self.order))]
        return which


def ordered(length: Ints, order: str) -> Ints:
    """Places of rows as they are, or by length, longest first."""
    return np.argsort(-length, kind="stable") if order == "sorted" else np.arange(len(length), dtype=np.int64)


def dealt(order: Ints, loads: Ints, bundle: int, dispatch: str, sms: int) -> Dealt:
    """The grid of tiles and bundles of rows."""
    tiles, bundles = len(loads), -(-len(order) // bundle)
    blocks = tiles * bundles
    natural = np.arange(blocks, dtype=np.int64)
    sm = np.full(blocks, -1, np.int64)
    if dispatch == "static":
        sm = natural * sms // max(1, blocks)
    elif dispatch != "demand" and blocks:
        load = np.add.reduceat(loads[:, order], np.arange(0, len(order), bundle), axis=1).reshape(-1)
        ranks, natural = natural, np.argsort(-load, kind="stable")
        turn, place = ranks // sms, ranks % sms
        sm = np.where((turn % 2 == 1) & (dispatch != "round"), sms - 1 - place, place)
        if dispatch == "hybrid":
            sm[blocks // 2 :] = -1
    tile, which = np.divmod(natural, max(1, bundles))
    return Dealt(order, tile, which, sm.astype(np.int32))


def gathered(grid: Dealt, blocks: int) -> tuple[Dealt, Ints]:
    """The blocks of a grid in fewer thread blocks, each with several of them, one after the other.

    Returns the grid, and where the blocks of each thread block begin, shape (blocks + 1,).
    """
    side_by_side = np.argsort(grid.sm, kind="stable")
    first = np.searchsorted(grid.sm[side_by_side], np.arange(blocks + 1))
    anywhere = np.full(len(grid.sm), -1, np.int32)
    return Dealt(grid.order, grid.tile[side_by_side], grid.bundle[side_by_side], anywhere), first


#: With fewer sums than this still going on, each is finished on its own.
_FEW = 24
_AT_ONCE = 1 << 14


def add_in_order(sums: Values, first: Ints, term: Callable[[Ints], Values]) -> None:
    """Add to each sum its terms, one after the other."""
    lengths = np.diff(first)
    order = np.argsort(-lengths, kind="stable")
    begins, falling = first[:-1][order], -lengths[order]
    # so many sums have more than k terms, k = 0, 1, ..
    longest = int(-falling[0]) if len(falling) else 0
    work = sums[order]
    step = 0
    while step < longest:
        going = int(np.searchsorted(falling, -step, "left"))
        if going < _FEW:
            break
        work[:going] += term(begins[:going] + step)
        step += 1
    for which in range(int(np.searchsorted(falling, -step, "left")) if step < longest else 0):
        end = int(begins[which] - falling[which])
        for start in range(int(begins[which]) + step, end, _AT_ONCE):
            terms = term(np.arange(start, min(start + _AT_ONCE, end), dtype=np.int64))
            terms[0] += work[which]
            # unlike a sum, what accumulates gives every sum on the way, and so adds in order
            work[which] = np.add.accumulate(terms, axis=0)[-1]
    sums[order] = work


def tree(lanes: Values) -> Values:
    """The sum that lanes make by halves, shape (..,): lane l gets that of lane l + h, for h = half, quarter, .. 1."""
    half = lanes.shape[-1] // 2
    while half:
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
        half //= 2
    result: Values = lanes[..., 0]
    return result


def add_strips(sums: Values, stream: Ints, counts: Ints, term: Callable[[Ints], Values]) -> None:
    """Add the terms of strips to the sums of their streams, shape (streams, n, ..)."""
    begins = np.flatnonzero(np.diff(stream, prepend=-1))
    terms = np.add.reduceat(counts, begins, axis=1)
    which = (stream[begins][None, :], np.arange(len(counts))[:, None])
    own = sums[which]
    flat = own.reshape(terms.size, *sums.shape[2:])
    add_in_order(flat, firsts(terms.reshape(-1)), term)
    sums[which] = flat.reshape(own.shape)


@dataclass(frozen=True, eq=False)
class RowsPlan:
    """Which rows of a sparse matrix each warp of a kernel has."""

    options: Any  # of the kernel
    warp: int  # lanes of a warp
    lanes: int  # of a row
    v: int  # elements of a vector
    dealt: Dealt  # the grid
    which: Ints  # shape (streams, rows of a warp); the stored row of each subwarp, -1 for none

    @property
    def subwarps(self) -> int:
        """Rows of a warp."""
        return self.warp // self.lanes

    @cached_property
    def lane(self) -> Ints:
        """The index of each lane of a warp in its subwarp, shape (lanes of a warp,)."""
        return np.arange(self.warp) % self.lanes

    def spread(self, table: Values) -> Values:
        """A column for each lane, of a table with a column for each subwarp."""
        return np.repeat(table, self.lanes, axis=1)

    def warp_of(self, stream: Ints) -> Ints:
        """The number of each warp in its block."""
        warps: int = self.options.warps
        return stream % warps

    def listed(self, stream: Ints) -> Ints:
        """The index of each warp's first row in the order of rows."""
        warps: int = self.options.warps
        return (self.dealt.bundle[stream // warps] * warps + stream % warps) * self.subwarps

    def pointers(self, warps: Warps, stream: Ints, known: Result) -> tuple[Result, list[Result]]:
        """Load where rows begin and end; gives what the loads wait for, and the loads."""
        which = self.spread(self.which[stream])
        on = which >= 0
        if self.options.order == "sorted":
            place = self.spread(self.listed(stream)[:, None] + np.arange(self.subwarps))
            known = warps.ldg("perm", place, on, [known])
        return known, [warps.ldg("row_ptr", which + at, on, [known]) for at in (0, 1)]


class RowsText(ABC):
    """Writes the segments of a kernel that walks rows in strips: a prologue, strips, an epilogue.

    plan: what is written.
    take: gets what the lanes load in strips.
    alone: segments of a warp without rows.
    """

    def __init__(self, plan: Any, rows: Stored, entries: int, take: Callable[[Any, Any], None]) -> None:
        self.plan, self.take, self.alone = plan, take, 0
        # index -1 finds the row that is none
        columns = (rows.masked, rows.start, rows.end, rows.length)
        self._rows = tuple(np.append(column, 0)[plan.which] for column in columns)
        self._some = np.logical_or.reduce(plan.which >= 0, axis=1)
        self._strips = -(-self._rows[2].max(axis=1, initial=0) // entries)
        #: where in its stream each warp knows where its rows begin
        self._ready = np.full(len(plan.which), -1, np.int64)

    @property
    def counts(self) -> Ints:
        """Segments of each warp."""
        return np.where(self._some, self._strips + 2, self.alone)

    def write(self, piece: Piece) -> None:
        """Write some segments."""
        some = self._some[piece.stream]
        first, last = piece.place == 0, some & (piece.place == self._strips[piece.stream] + 1)
        middle = some & ~first & ~last
        # the first strip of a row has an instruction more if it may begin before the row
        opening = middle & (piece.place == 1) & (self.plan.options.align == "reverse") & (self.plan.v > 1)
        texts: tuple[tuple[Mask, Callable[[Warps, Ints, Ints], None]], ...] = (
            (first, lambda warps, stream, _: self._prologue(warps, stream)),
            (opening, partial(self._strip, shifted=True)),
            (middle & ~opening, partial(self._strip, shifted=False)),
            (last, lambda warps, stream, _: self._epilogue(warps, stream)),
        )
        for mask, write in texts:
            if mask.any():
                chosen, warps = piece.where(mask)
                write(warps, piece.stream[chosen], piece.place[chosen] - 1)

    @abstractmethod
    def _prologue(self, warps: Warps, stream: Ints) -> None: ...

    @abstractmethod
    def _strip(self, warps: Warps, stream: Ints, number: Ints, *, shifted: bool) -> None: ...

    @abstractmethod
    def _epilogue(self, warps: Warps, stream: Ints) -> None: ...

    def _last(self, warps: Warps, stream: Ints, distance: int) -> Result | None:
        """The last multiply-add, which stands so far before the epilogue; of warps without a strip the prologue."""
        long = self._strips[stream] > 0
        some, none = warps.part(long), warps.part(~long)
        return later(places_before(some, distance), at_place(none, self._ready[stream[~long]]))
