"""The address space: arrays on pages, where the operands of a product are in them, and what passes to the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record
from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.machine import Machine, blocks_of, up

#: Numbers that the caches count for each step; then come the lines of each memory.
COLUMNS = (
    *("l1", "l1_hit", "l2", "l2_hit", "llc", "llc_hit", "l1_l2", "l2_llc"),
    *("memory_read", "memory_write", "remote", "transfers"),
)


@record
class Array:
    """An array in the address space. It begins with a page.

    name: for people.
    first, size: address of its first byte; how many bytes it has.
    domain: the memory where all of its pages are; None: page i of the space is in memory `i mod domains`.
    own: whether it is a thread's own: a line of it that was never written comes from no memory.
    shared: whether several threads use lines of it that one of them writes.
    """

    name: str
    first: int
    size: int
    domain: int | None = None
    own: bool = False
    shared: bool = False


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of bytes that a step touches, in order. A run touches each of its lines once.

    address, size: of each run, in bytes; shape (runs,).
    write: whether it is written; shape (runs,).
    """

    address: NDArray[np.int64]
    size: NDArray[np.int64]
    write: NDArray[np.bool_]


class TimedStep(NamedTuple):
    """A step as the clock sees it.

    cycles: how long it takes its core.
    lines: lines of each memory.
    after: (thread, number) of the step of this stage whose end it waits for, because both are on one piece of C; None:
        of none.
    work: useful multiply-accumulates.
    label: for people.
    place: layer and direction, of a recurrent job; for people.
    of_memory: how many of the cycles its core has only because of lines from and to memory; less than all.
    """

    cycles: int
    lines: tuple[int, ...]
    after: tuple[int, int] | None = None
    work: int = 0
    label: str = ""
    place: tuple[int, ...] = ()
    of_memory: int = 0


@record
class Stage:
    """What threads do between two barriers.

    steps: of each thread its steps, in order; a thread may have none.
    frames: whether the first step of each thread also waits for the input frame.
    """

    steps: tuple[tuple[TimedStep, ...], ...]
    frames: bool = False


#: Bits of a page, as `pages_of` gives them.
OWN, SHARED = 1, 2


class Matrix(NamedTuple):
    """Where a row-major matrix is.

    address: of its first element.
    stride: bytes from row to row.
    """

    address: int
    stride: int


class Segment(NamedTuple):
    """Where some columns of A are. In recurrent jobs a row of A is x from one array and h from another.

    first, end: the range of K.
    address: of the first of these elements in row 0.
    stride: bytes from row to row.
    """

    first: int
    end: int
    address: int
    stride: int


class Own(NamedTuple):
    """Where a thread's own arrays are.

    packed_a, packed_b: addresses.
    buffer: address; None: there is none, because nobody else adds into its block of C.
    """

    packed_a: int
    packed_b: int
    buffer: int | None


class Places(NamedTuple):
    """Where everything is that a product touches.

    a: segments of A along K, in order.
    b, c: B (its stride counts only if it is not packed), and C.
    own: of each thread.
    """

    a: tuple[Segment, ...]
    b: Matrix
    c: Matrix
    own: tuple[Own, ...]


class Space:
    """An address space that arrays are laid into, each from the next page on.

    machine: whose pages they are.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> space = Space(TOY)
    >>> space.add("A", 5000).first, space.add("empty", 0).first, space.add("B", 1).first
    (0, 8192, 12288)
    """

    def __init__(self, machine: Machine) -> None:
        self._page = machine.page
        self._arrays: list[Array] = []
        self._end = 0

    def add(self, name: str, size: int, *, domain: int | None = None, own: bool = False, shared: bool = False) -> Array:
        """Lay an array behind the others; it takes at least one page."""
        array = Array(name, self._end, size, domain, own, shared)
        self._arrays.append(array)
        self._end += max(up(size, self._page), 1) * self._page
        return array

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays, in order."""
        return tuple(self._arrays)


def own_places(space: Space, machine: Machine, division: Division, first: int = 0) -> tuple[Own, ...]:
    """Lay the own arrays of each thread of a product into a space: packed A, packed B, and the buffer."""
    cut, blocks, size = division.cut, blocks_of(machine), machine.element_bytes
    depth = min(blocks.kc, cut.kb)
    rows = min(blocks.mc, up(cut.mb, machine.mr) * machine.mr)
    columns = min(blocks.nc, up(cut.nb, machine.nr) * machine.nr)
    places = []
    for thread in range(cut.threads):
        domain = machine.domain(first + thread)
        packed_a = space.add(f"packed A of {thread}", rows * depth * size, domain=domain, own=True).first
        packed_b = space.add(f"packed B of {thread}", columns * depth * size, domain=domain, own=True).first
        buffer = None
        if cut.p_k > 1:
            buffer = space.add(f"buffer of {thread}", cut.mb * cut.nb * size, domain=domain, own=True).first
        places.append(Own(packed_a, packed_b, buffer))
    return tuple(places)


def operands(space: Space, machine: Machine, division: Division, *, job: bool = False, first: int = 0) -> Places:
    """Lay all arrays of a product into a space: A, B, C and the threads' own.

    space: is added to.
    machine, division: the product's.
    job: whether it is part of a recurrent job: then C is shared whatever the cut is, and the caller puts the segments
        of A in place of those that are given.
    first: core of thread 0; thread t runs on core `first + t`.

    >>> from lstmsim.machines.gemm import Cut, Product
    >>> from lstmsim.machines.multicore.toy import TOY
    >>> space = Space(TOY)
    >>> operands(space, TOY, Division(Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16))).b
    Matrix(address=4096, stride=16)
    >>> [array.name for array in space.arrays]
    ['A', 'B', 'C', 'packed A of 0', 'packed B of 0']
    """
    product, size = division.product, machine.element_bytes
    columns = up(product.n, machine.nr) * machine.nr if division.packed else product.n
    a = space.add("A", product.m * product.k * size)
    b = space.add("B", product.k * columns * size)
    c = space.add("C", product.m * product.n * size, shared=job or division.cut.p_k > 1)
    return Places(
        (Segment(0, product.k, a.first, product.k * size),),
        Matrix(b.first, columns * size),
        Matrix(c.first, product.n * size),
        own_places(space, machine, division, first),
    )


def pages_of(machine: Machine, arrays: Sequence[Array]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each page its memory, and the bits `OWN` and `SHARED`; `ValueError` if arrays are not one behind the other."""
    if machine.page % machine.line:
        raise ValueError(f"a page of {machine.page} bytes is no whole number of lines of {machine.line}")
    homes: list[NDArray[np.int64]] = []
    kinds: list[NDArray[np.int64]] = []
    end = 0
    for array in arrays:
        pages = max(up(array.size, machine.page), 1)
        if array.first != end * machine.page or array.size < 0:
            raise ValueError(f"{array.name} does not begin behind the array before it, with page {end}")
        if array.domain is not None and not 0 <= array.domain < machine.domains:
            raise ValueError(f"{array.name} is in memory {array.domain} of {machine.domains}")
        numbers = np.arange(end, end + pages, dtype=np.int64)
        homes.append(numbers % machine.domains if array.domain is None else np.full(pages, array.domain))
        kinds.append(np.full(pages, OWN * array.own + SHARED * array.shared))
        end += pages
    empty = np.empty(0, np.int64)
    return np.concatenate([empty, *homes]), np.concatenate([empty, *kinds])
