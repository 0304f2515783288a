"""The address space, and the runs of bytes that a step touches in it, in order (section 5 of docs/multicore.md).

Steps of equal sizes touch the same runs at other addresses. An address is a base, which each step has for itself, and
an offset: so a step that is like one before it costs an addition for each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.chip import MulticoreCpu, blocks_of, up
from lstmsim.machines.multicore.steps import Step

Ints = NDArray[np.int64]

#: Numbers that the caches count for each step; then come the lines of each memory.
COLUMNS = (
    *("l1", "l1_hit", "l2", "l2_hit", "llc", "llc_hit", "l1_l2", "l2_llc"),
    *("memory_read", "memory_write", "remote", "transfers"),
)


@record
class Array:
    """An array in the address space. It begins with a page."""

    name: str
    first: int  # first, size: address of its first byte; how many bytes it has
    size: int
    # the memory where all of its pages are; None: page i of the space is in memory `i mod domains`
    domain: int | None = None
    own: bool = False  # whether it is a thread's own: a line of it that was never written comes from no memory
    shared: bool = False  # whether several threads use lines of it that one of them writes


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of bytes that a step touches, in order: addresses, sizes, and whether they are written; shape (runs,) each.

    A run touches each of its lines once.
    """

    address: Ints
    size: Ints
    write: NDArray[np.bool_]


class TimedStep(NamedTuple):
    """A step as the clock sees it."""

    cycles: int  # how long it takes its core
    lines: tuple[int, ...]  # lines of each memory
    # (thread, number) of the step of this stage whose end it waits for, because both are on one piece of C
    after: tuple[int, int] | None = None
    work: int = 0  # useful multiply-accumulates
    label: str = ""  # label, place: for people; the place is layer and direction of a recurrent job
    place: tuple[int, ...] = ()
    of_memory: int = 0  # how many of the cycles its core has only because of lines from and to memory; less than all


@record
class Stage:
    """What threads do between two barriers: of each thread its steps, in order; a thread may have none."""

    steps: tuple[tuple[TimedStep, ...], ...]
    frames: bool = False  # whether the first step of each thread also waits for the input frame


#: Bits of a page, as `pages_of` gives them.
OWN, SHARED = 1, 2


class Matrix(NamedTuple):
    """Where a row-major matrix is: its first element, and bytes from row to row."""

    address: int
    stride: int


class Segment(NamedTuple):
    """Where some columns of A are. In recurrent jobs a row of A is x from one array and h from another."""

    first: int  # first, end: the range of K
    end: int
    address: int  # address, stride: of the first of these elements in row 0; bytes from row to row
    stride: int


class Own(NamedTuple):
    """Addresses of a thread's own arrays; without a buffer if nobody else adds into its block of C."""

    packed_a: int
    packed_b: int
    buffer: int | None = None


class Places(NamedTuple):
    """Where everything is that a product touches."""

    a: tuple[Segment, ...]  # segments of A along K, in order
    b: Matrix  # b, c: B (its stride counts only if it is not packed), and C
    c: Matrix
    own: tuple[Own, ...]  # of each thread


class Space:
    """An address space that arrays are laid into, each from the next page on."""

    def __init__(self, chip: MulticoreCpu) -> None:
        self._page, self._arrays, self._end = chip.page, list[Array](), 0

    def add(self, name: str, size: int, *, domain: int | None = None, own: bool = False, shared: bool = False) -> Array:
        """Lay an array after the others; it takes at least one page."""
        array = Array(name, self._end, size, domain, own, shared)
        self._arrays.append(array)
        self._end += max(up(size, self._page), 1) * self._page
        return array

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays, in order."""
        return tuple(self._arrays)


def operands(space: Space, chip: MulticoreCpu, division: Division, *, job: bool = False, first: int = 0) -> Places:
    """Lay all arrays of a product into a space: A, B, C and the threads' own.

    job: whether it is part of a recurrent job: then C is shared whatever the cut is, and the caller puts the segments
        of A in place of those that are given.
    first: core of thread 0; thread t runs on core `first + t`.
    """
    product, cut, blocks, size = division.product, division.cut, blocks_of(chip), chip.element_bytes
    mr, nr = chip.core.mr, chip.core.nr
    width = up(product.n, nr) * nr if division.packed else product.n
    a = space.add("A", product.m * product.k * size)
    b = space.add("B", product.k * width * size)
    c = space.add("C", product.m * product.n * size, shared=job or cut.p_k > 1)
    depth = min(blocks.kc, cut.kb)
    rows, columns = min(blocks.mc, up(cut.mb, mr) * mr), min(blocks.nc, up(cut.nb, nr) * nr)
    sizes = {"packed A": rows * depth, "packed B": columns * depth}
    sizes |= {"buffer": cut.mb * cut.nb} if cut.p_k > 1 else {}
    own = []
    for thread in range(cut.threads):
        domain = chip.domain(first + thread)
        added = [
            space.add(f"{name} of {thread}", numbers * size, domain=domain, own=True).first
            for name, numbers in sizes.items()
        ]
        own.append(Own(*added))
    segment = Segment(0, product.k, a.first, product.k * size)
    return Places((segment,), Matrix(b.first, width * size), Matrix(c.first, product.n * size), tuple(own))


def pages_of(chip: MulticoreCpu, arrays: Sequence[Array]) -> tuple[Ints, Ints]:
    """Of each page its memory, and the bits `OWN` and `SHARED`; `ValueError` if arrays are not one after the other."""
    homes: list[Ints] = []
    kinds: list[Ints] = []
    end = 0
    for array in arrays:
        pages = max(up(array.size, chip.page), 1)
        if array.first != end * chip.page or array.size < 0:
            raise ValueError(f"{array.name} does not begin behind the array before it, with page {end}")
        if array.domain is not None and not 0 <= array.domain < chip.domains:
            raise ValueError(f"{array.name} is in memory {array.domain} of {chip.domains}")
        numbers = np.arange(end, end + pages, dtype=np.int64)
        homes.append(numbers % chip.domains if array.domain is None else np.full(pages, array.domain))
        kinds.append(np.full(pages, OWN * array.own + SHARED * array.shared))
        end += pages
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *homes]), np.concatenate([empty, *kinds])


#: Bases of a block of multiplications: where B of the step begins (packed before: its first panel), the thread's packed
#: B and packed A, where C or the buffer of the step begins; from `A` on one for each segment of A.
B, PACKED_B, PACKED_A, C, A = range(5)


class Sizes(NamedTuple):
    """All that the pattern of a block of multiplications depends on, the chip aside."""

    rows: int  # rows, columns, depth: of the step
    columns: int
    depth: int
    packs_b: bool  # packs_b, packed: whether B is packed in it, or was packed before
    packed: bool
    gemv: bool  # whether the one row is multiplied without packing: A and B are read where they lie
    # stride_a, length: of each segment of A, bytes from row to row, and how many elements of a row the step reads
    stride_a: tuple[int, ...]
    length: tuple[int, ...]
    stride_b: int  # bytes from row to row of B; if it was packed before, from panel to panel
    stride_c: int  # bytes from row to row of C, or of the buffer


class RunPattern(NamedTuple):
    """Runs of bytes in order, each counted from a base: number of the base, bytes after it, size, whether written."""

    base: Ints
    offset: Ints
    size: Ints
    write: NDArray[np.bool_]


@lru_cache(maxsize=128)
def multiplied(chip: MulticoreCpu, sizes: Sizes) -> RunPattern:
    """The pattern of a block of multiplications: packing B, packing A, then panel by panel the micro-kernels.

    Where nothing is packed: one row of A, B row by row or, packed before, panel by panel, and one row of C.
    """
    size, nr = chip.element_bytes, chip.core.nr
    panels, segments = up(sizes.columns, nr), len(sizes.length)
    offset = np.arange(sizes.rows, dtype=np.int64)[:, None] * np.array(sizes.stride_a, dtype=np.int64)
    parts = [
        RunPattern(
            np.tile(np.arange(A, A + segments, dtype=np.int64), sizes.rows),
            offset.ravel(),
            np.tile(np.array(sizes.length, dtype=np.int64) * size, sizes.rows),
            np.zeros(sizes.rows * segments, np.bool_),
        )
    ]
    if sizes.gemv:
        runs = (panels, nr * sizes.depth) if sizes.packed else (sizes.depth, sizes.columns)
        parts += [_read(B, runs[0], sizes.stride_b, runs[1] * size), _written(C, sizes.columns * size)]
    else:
        if sizes.packs_b:
            read = _read(B, sizes.depth, sizes.stride_b, sizes.columns * size)
            parts = [read, _written(PACKED_B, panels * nr * sizes.depth * size), *parts]
        parts += [_written(PACKED_A, sizes.depth * chip.core.rows(sizes.rows) * size), _kernels(chip, sizes)]
    return RunPattern(*map(np.concatenate, zip(*parts, strict=True)))


@lru_cache(maxsize=128)
def updated(rows: int, size: int, stride: int, stride_c: int) -> RunPattern:
    """The pattern of adding a buffer, which is base 0, into C, which is base 1: of each row the buffer, then C."""
    number = np.arange(rows, dtype=np.int64)
    return RunPattern(
        np.tile(np.array([0, 1], dtype=np.int64), rows),
        np.stack([number * stride, number * stride_c], axis=1).ravel(),
        np.full(2 * rows, size, dtype=np.int64),
        np.tile(np.array([False, True]), rows),
    )


def _read(base: int, rows: int, stride: int, size: int) -> RunPattern:
    """A run that is read for each row."""
    number = np.arange(rows, dtype=np.int64)
    return RunPattern(np.full_like(number, base), number * stride, np.full_like(number, size), np.zeros(rows, np.bool_))


def _written(base: int, size: int) -> RunPattern:
    """One run that is written, from a base on."""
    return RunPattern(np.array([base]), np.array([0]), np.array([size]), np.array([True]))


def _kernels(chip: MulticoreCpu, sizes: Sizes) -> RunPattern:
    """The micro-kernels: per panel and tile the packed B, the packed A, and the rows of C.

    Panels differ by a multiple of their number, and the last one has fewer columns.
    """
    size, depth = chip.element_bytes, sizes.depth
    base, offset, length = _panel(chip, sizes)
    in_b, in_c = base == PACKED_B, base == C
    panel = chip.core.nr * depth * size
    stride = np.select([in_b, in_c], [sizes.stride_b if sizes.packed else panel, chip.core.nr * size], 0)
    panels = np.arange(up(sizes.columns, chip.core.nr), dtype=np.int64)
    lengths = np.broadcast_to(length, (len(panels), len(length))).copy()
    lengths[-1, in_c] = (sizes.columns - panels[-1] * chip.core.nr) * size
    base = np.where(in_b & sizes.packed, B, base)
    return RunPattern(
        np.tile(base, len(panels)),
        (offset + panels[:, None] * stride).ravel(),
        lengths.ravel(),
        np.tile(in_c, len(panels)),
    )


def _panel(chip: MulticoreCpu, sizes: Sizes) -> tuple[Ints, Ints, Ints]:
    """Bases, offsets and sizes of the runs of the first panel, as if it had all columns."""
    size, depth = chip.element_bytes, sizes.depth
    tiles = np.arange(up(sizes.rows, chip.core.mr), dtype=np.int64)
    begin = tiles * (chip.core.mr + 2)
    count = sizes.rows + 2 * len(tiles)
    base = np.full(count, C, np.int64)
    base[begin], base[begin + 1] = PACKED_B, PACKED_A
    offset, length = np.zeros(count, np.int64), np.full(count, chip.core.nr * size, np.int64)
    length[begin] = chip.core.nr * depth * size
    offset[begin + 1] = tiles * chip.core.mr * depth * size
    tall = np.minimum(sizes.rows - tiles * chip.core.mr, chip.core.mr)
    length[begin + 1] = (tall if chip.core.exact_rows else np.full_like(tall, chip.core.mr)) * depth * size
    offset[base == C] = np.arange(sizes.rows, dtype=np.int64) * sizes.stride_c
    return base, offset, length


def place_of_b(chip: MulticoreCpu, division: Division, places: Places, column: int, k: int) -> Matrix:
    """Where B is from a column and an element of K on; packed before, its rows are panels, which have all rows of B."""
    size, nr = chip.element_bytes, chip.core.nr
    if not division.packed:
        return Matrix(places.b.address + k * places.b.stride + column * size, places.b.stride)
    panel = division.product.k * nr * size
    return Matrix(places.b.address + column // nr * panel + k * nr * size, panel)


def runs_of(chip: MulticoreCpu, division: Division, places: Places, step: Step) -> Runs:
    """What a step touches."""
    size, own = chip.element_bytes, places.own[step.thread]
    rows, columns, depth = step.sizes
    (m0, _), (n0, _), (k0, k1) = step.rows, step.columns, step.ks
    c, stride_c = places.c.address + m0 * places.c.stride + n0 * size, places.c.stride
    if step.update:
        buffer, stride = _in_buffer(chip, division, own, step)
        return _placed(updated(rows, columns * size, stride, stride_c), [buffer, c])
    if division.buffer:
        c, stride_c = _in_buffer(chip, division, own, step)
    b, stride_b = place_of_b(chip, division, places, n0, k0)
    cut = [(each, max(each.first, k0), min(each.end, k1)) for each in places.a]
    used = [(each, first, end) for each, first, end in cut if first < end]
    packs_b = step.packs_b and not division.packed
    stride_a, length = tuple(each.stride for each, _, _ in used), tuple(end - first for _, first, end in used)
    sizes = Sizes(
        rows,
        columns,
        depth,
        packs_b,
        division.packed,
        step.gemv,
        stride_a,
        length,
        stride_b=stride_b,
        stride_c=stride_c,
    )
    a = [each.address + (first - each.first) * size + m0 * each.stride for each, first, _ in used]
    return _placed(multiplied(chip, sizes), [b, own.packed_b, own.packed_a, c, *a])


def _placed(pattern: RunPattern, bases: list[int]) -> Runs:
    """The runs of a pattern."""
    return Runs(np.array(bases, dtype=np.int64)[pattern.base] + pattern.offset, pattern.size, pattern.write)


def _in_buffer(chip: MulticoreCpu, division: Division, own: Own, step: Step) -> tuple[int, int]:
    """Where a thread's buffer has what belongs to the first row and column of a step, and bytes from row to row."""
    if own.buffer is None:
        raise ValueError(f"thread {step.thread} has no buffer: K is not cut")
    rows, columns, _ = division.cut.owned(step.thread, division.product)
    size, stride = chip.element_bytes, division.cut.nb * chip.element_bytes
    return own.buffer + (step.rows[0] - rows[0]) * stride + (step.columns[0] - columns[0]) * size, stride
