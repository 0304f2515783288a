"""The runs of bytes that a step touches, in order (section 5 of docs/multicore.md).

Steps of equal sizes touch the same runs at other addresses. An address is a base, which each step has for itself, and
an offset: so a step that is like one before it costs an addition for each run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.execution.steps import Step
from lstmsim.machines.multicore.lines.space import Places, Runs
from lstmsim.machines.multicore.machine import Machine, up

#: Bases of a block of multiplications: where B of the step begins (packed before: its first panel), the thread's packed
#: B and packed A, where C or the buffer of the step begins; from `A` on one for each segment of A.
B, PACKED_B, PACKED_A, C, A = range(5)
#: Bases of an update.
_BUFFER, _C = range(2)


class Sizes(NamedTuple):
    """All that the pattern of a block of multiplications depends on, the machine aside.

    rows, columns, depth: of the step.
    packs_b: whether B is packed in it.
    packed: whether B was packed before.
    gemv: whether the one row is multiplied without packing: A and B are read where they lie.
    stride_a, length: of each segment of A, bytes from row to row, and how many elements of a row the step reads.
    stride_b: bytes from row to row of B; if it was packed before, from panel to panel.
    stride_c: bytes from row to row of C, or of the buffer.
    """

    rows: int
    columns: int
    depth: int
    packs_b: bool
    packed: bool
    gemv: bool
    stride_a: tuple[int, ...]
    length: tuple[int, ...]
    stride_b: int
    stride_c: int


@dataclass(frozen=True, eq=False)
class RunPattern:
    """Runs of bytes in order, without the addresses where they begin.

    base: which base the address of each counts from; shape (runs,).
    offset: bytes behind it; shape (runs,).
    size, write: as of `lstmsim.machines.multicore.lines.space.Runs`.
    """

    base: NDArray[np.int64]
    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    write: NDArray[np.bool_]


@lru_cache(maxsize=128)
def multiplied(machine: Machine, sizes: Sizes) -> RunPattern:
    """The pattern of a block of multiplications: packing B, packing A, then panel by panel the micro-kernels."""
    parts = _in_place(machine, sizes) if sizes.gemv else _packing(machine, sizes)
    return RunPattern(
        np.concatenate([each.base for each in parts]),
        np.concatenate([each.offset for each in parts]),
        np.concatenate([each.size for each in parts]),
        np.concatenate([each.write for each in parts]),
    )


@lru_cache(maxsize=128)
def updated(rows: int, size: int, stride: int, stride_c: int) -> RunPattern:
    """The pattern of adding a buffer into C: of each row the buffer, then C."""
    number = np.arange(rows, dtype=np.int64)
    return RunPattern(
        np.tile(np.array([_BUFFER, _C], dtype=np.int64), rows),
        np.stack([number * stride, number * stride_c], axis=1).ravel(),
        np.full(2 * rows, size, dtype=np.int64),
        np.tile(np.array([False, True]), rows),
    )


def _packing(machine: Machine, sizes: Sizes) -> list[RunPattern]:
    """Packing B, packing A, the micro-kernels."""
    size = machine.element_bytes
    parts = []
    if sizes.packs_b:
        panels = up(sizes.columns, machine.nr)
        parts.append(_rows(B, sizes.depth, sizes.stride_b, sizes.columns * size))
        parts.append(_written(PACKED_B, panels * machine.nr * sizes.depth * size))
    parts.append(_rows_of_a(sizes, size))
    parts.append(_written(PACKED_A, sizes.depth * machine.rows(sizes.rows) * size))
    return [*parts, _kernels(machine, sizes)]


def _in_place(machine: Machine, sizes: Sizes) -> list[RunPattern]:
    """One row of A, all of B row by row or, if it was packed before, panel by panel, and one row of C."""
    size = machine.element_bytes
    runs = (up(sizes.columns, machine.nr), machine.nr * sizes.depth) if sizes.packed else (sizes.depth, sizes.columns)
    of_b = _rows(B, runs[0], sizes.stride_b, runs[1] * size)
    return [_rows_of_a(sizes, size), of_b, _written(C, sizes.columns * size)]


def _rows(base: int, rows: int, stride: int, size: int) -> RunPattern:
    """A run that is read for each row."""
    number = np.arange(rows, dtype=np.int64)
    return RunPattern(np.full_like(number, base), number * stride, np.full_like(number, size), np.zeros(rows, np.bool_))


def _written(base: int, size: int) -> RunPattern:
    """One run that is written, from a base on."""
    return RunPattern(np.array([base]), np.array([0]), np.array([size]), np.array([True]))


def _rows_of_a(sizes: Sizes, size: int) -> RunPattern:
    """Rows of A, of each its segments in order."""
    segments = len(sizes.length)
    offset = np.arange(sizes.rows, dtype=np.int64)[:, None] * np.array(sizes.stride_a, dtype=np.int64)
    return RunPattern(
        np.tile(np.arange(A, A + segments, dtype=np.int64), sizes.rows),
        offset.ravel(),
        np.tile(np.array(sizes.length, dtype=np.int64) * size, sizes.rows),
        np.zeros(sizes.rows * segments, np.bool_),
    )


def _kernels(machine: Machine, sizes: Sizes) -> RunPattern:
    """The micro-kernels: per panel and tile the packed B, the packed A, and the rows of C.

    Panels differ by a multiple of their number, and the last one has fewer columns.
    """
    size, depth = machine.element_bytes, sizes.depth
    base, offset, length = _panel(machine, sizes)
    in_b, in_c = base == PACKED_B, base == C
    panel = machine.nr * depth * size
    stride = np.select([in_b, in_c], [sizes.stride_b if sizes.packed else panel, machine.nr * size], 0)
    panels = np.arange(up(sizes.columns, machine.nr), dtype=np.int64)
    lengths = np.broadcast_to(length, (len(panels), len(length))).copy()
    lengths[-1, in_c] = (sizes.columns - panels[-1] * machine.nr) * size
    base = np.where(in_b & sizes.packed, B, base)
    return RunPattern(
        np.tile(base, len(panels)),
        (offset + panels[:, None] * stride).ravel(),
        lengths.ravel(),
        np.tile(in_c, len(panels)),
    )


def _panel(machine: Machine, sizes: Sizes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Bases, offsets and sizes of the runs of the first panel, as if it had all columns."""
    size, depth = machine.element_bytes, sizes.depth
    tiles = np.arange(up(sizes.rows, machine.mr), dtype=np.int64)
    begin = tiles * (machine.mr + 2)
    count = sizes.rows + 2 * len(tiles)
    base = np.full(count, C, np.int64)
    base[begin], base[begin + 1] = PACKED_B, PACKED_A
    offset, length = np.zeros(count, np.int64), np.full(count, machine.nr * size, np.int64)
    length[begin] = machine.nr * depth * size
    offset[begin + 1] = tiles * machine.mr * depth * size
    tall = np.minimum(sizes.rows - tiles * machine.mr, machine.mr)
    length[begin + 1] = (tall if machine.exact_rows else np.full_like(tall, machine.mr)) * depth * size
    offset[base == C] = np.arange(sizes.rows, dtype=np.int64) * sizes.stride_c
    return base, offset, length


def runs_of(machine: Machine, division: Division, places: Places, step: Step) -> Runs:
    """What a step touches."""
    size, (m0, m1), (n0, n1), (k0, k1) = machine.element_bytes, step.rows, step.columns, step.ks
    c = places.c.address + m0 * places.c.stride + n0 * size
    if step.update:
        buffer, stride = _in_buffer(machine, division, places, step)
        pattern = updated(m1 - m0, (n1 - n0) * size, stride, places.c.stride)
        return _placed(pattern, [buffer, c])
    c, stride_c = _in_buffer(machine, division, places, step) if division.buffer else (c, places.c.stride)
    if division.packed:
        # a panel has all rows of B
        stride_b = division.product.k * machine.nr * size
        b = places.b.address + n0 // machine.nr * stride_b + k0 * machine.nr * size
    else:
        stride_b = places.b.stride
        b = places.b.address + k0 * stride_b + n0 * size
    own, a, stride_a, length = places.own[step.thread], [], [], []
    for segment in places.a:
        first, end = max(segment.first, k0), min(segment.end, k1)
        if first < end:
            a.append(segment.address + (first - segment.first) * size + m0 * segment.stride)
            stride_a.append(segment.stride)
            length.append(end - first)
    pattern = multiplied(
        machine,
        Sizes(
            rows=m1 - m0,
            columns=n1 - n0,
            depth=k1 - k0,
            packs_b=step.packs_b and not division.packed,
            packed=division.packed,
            gemv=step.gemv,
            stride_a=tuple(stride_a),
            length=tuple(length),
            stride_b=stride_b,
            stride_c=stride_c,
        ),
    )
    return _placed(pattern, [b, own.packed_b, own.packed_a, c, *a])


def _placed(pattern: RunPattern, bases: list[int]) -> Runs:
    """The runs of a pattern."""
    return Runs(np.array(bases, dtype=np.int64)[pattern.base] + pattern.offset, pattern.size, pattern.write)


def _in_buffer(machine: Machine, division: Division, places: Places, step: Step) -> tuple[int, int]:
    """Where a thread's buffer has what belongs to the first row and column of a step, and bytes from row to row."""
    address = places.own[step.thread].buffer
    if address is None:
        raise ValueError(f"thread {step.thread} has no buffer: K is not cut")
    rows, columns, _ = division.cut.owned(step.thread, division.product)
    stride = division.cut.nb * machine.element_bytes
    return address + (step.rows[0] - rows[0]) * stride + (step.columns[0] - columns[0]) * machine.element_bytes, stride
