"""The runs of bytes that a step touches, in order (section 5 of docs/multicore.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lstmsim.targets.gemm import Division
from lstmsim.targets.multicore.execution.steps import Step
from lstmsim.targets.multicore.lines.space import Matrix, Places
from lstmsim.targets.multicore.lines.types import Runs
from lstmsim.targets.multicore.machine import Machine

__all__ = ["joined", "rows_of_runs", "runs_of"]

#: Address, size and write of some runs; numbers stand for arrays of one.
_Part = tuple[NDArray[np.int64], NDArray[np.int64], bool]


def runs_of(machine: Machine, division: Division, places: Places, step: Step) -> Runs:
    """What a step touches.

    machine, division: the product's.
    places: where its operands are.
    step: one of its steps.
    """
    if step.update:
        return _update(machine, division, places, step)
    size, (k0, k1) = machine.element_bytes, step.ks
    depth, own = k1 - k0, places.own[step.thread]
    (m0, m1), (n0, n1) = step.rows, step.columns
    parts = []
    if step.packs_b and not division.packed:
        panels = -(-(n1 - n0) // machine.nr)
        parts.append(rows_of_runs(places.b, step.ks, (n0, n1), size))
        parts.append(_one(own.packed_b, panels * machine.nr * depth * size))
    parts.append(_rows_of_a(places, (m0, m1), (k0, k1), size))
    parts.append(_one(own.packed_a, depth * machine.rows(m1 - m0) * size))
    parts.append(_kernels(machine, division, places, step))
    return joined(parts)


def joined(parts: list[Runs]) -> Runs:
    """Runs one behind the other.

    parts: at least one.
    """
    return Runs(
        np.concatenate([each.address for each in parts]),
        np.concatenate([each.size for each in parts]),
        np.concatenate([each.write for each in parts]),
    )


def rows_of_runs(
    matrix: Matrix, rows: tuple[int, int], columns: tuple[int, int], element_bytes: int, *, write: bool = False
) -> Runs:
    """A run for each row of a part of a matrix.

    matrix: where it is.
    rows, columns: the part, each as (first, end).
    element_bytes: of an element.
    write: whether it is written.

    >>> rows_of_runs(Matrix(4096, 16), (1, 3), (2, 4), 4).address.tolist()
    [4120, 4136]
    """
    address = matrix.address + np.arange(*rows, dtype=np.int64) * matrix.stride + columns[0] * element_bytes
    return Runs(
        address,
        np.full(len(address), (columns[1] - columns[0]) * element_bytes, dtype=np.int64),
        np.full(len(address), write),
    )


def _one(address: int, size: int) -> Runs:
    """One run that is written."""
    return Runs(np.array([address]), np.array([size]), np.array([True]))


def _rows_of_a(places: Places, rows: tuple[int, int], ks: tuple[int, int], size: int) -> Runs:
    """Rows of A, each with its segments in order."""
    address, length = [], []
    for segment in places.a:
        first, end = max(segment.first, ks[0]), min(segment.end, ks[1])
        if first < end:
            part = Matrix(segment.address - segment.first * size, segment.stride)
            each = rows_of_runs(part, rows, (first, end), size)
            address.append(each.address)
            length.append(each.size)
    addresses, sizes = np.stack(address, axis=1).ravel(), np.stack(length, axis=1).ravel()
    return Runs(addresses, sizes, np.zeros(len(sizes), dtype=np.bool_))


def _kernels(machine: Machine, division: Division, places: Places, step: Step) -> Runs:
    """The micro-kernels: per panel and tile the packed B, the packed A, and the rows of C or of the buffer.

    Panels differ in addresses by a multiple of their number, and the last one has fewer columns: so the runs of panel 0
    are a pattern for all.
    """
    size, (n0, n1) = machine.element_bytes, step.columns
    panels = np.arange(-(-(n1 - n0) // machine.nr), dtype=np.int64)
    width = min(machine.nr, n1 - n0) * size
    first_b, stride_b, size_b = _panels_of_b(machine, division, places, step)
    target, column = _target(machine, division, places, step)
    address, length, kind = _pattern(machine, places.own[step.thread].packed_a, target, step)
    address[kind == _B] = first_b
    address[kind == _C] += column
    length[kind == _B] = size_b
    length[kind == _C] = width
    stride = np.select([kind == _B, kind == _C], [stride_b, machine.nr * size], 0)
    addresses = address + panels[:, None] * stride
    sizes = np.broadcast_to(length, addresses.shape).copy()
    sizes[-1, kind == _C] = (n1 - n0) * size - (len(panels) - 1) * machine.nr * size
    return Runs(addresses.ravel(), sizes.ravel(), np.broadcast_to(kind == _C, addresses.shape).ravel())


#: What a run of a micro-kernel touches.
_B, _A, _C = 0, 1, 2


def _pattern(
    machine: Machine, packed_a: int, target: Matrix, step: Step
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Address, size and kind of the runs of one panel; of B, and of C's columns, it knows nothing."""
    (m0, m1), depth, size = step.rows, step.ks[1] - step.ks[0], machine.element_bytes
    tiles = np.arange(-(-(m1 - m0) // machine.mr), dtype=np.int64)
    row = np.arange(m0, m1, dtype=np.int64)
    tall = np.minimum(m1 - m0 - tiles * machine.mr, machine.mr)
    begin = tiles * (machine.mr + 2)
    count = len(row) + 2 * len(tiles)
    address, length = np.zeros(count, np.int64), np.zeros(count, np.int64)
    kind = np.full(count, _C, np.int64)
    kind[begin], kind[begin + 1] = _B, _A
    address[begin + 1] = packed_a + tiles * machine.mr * depth * size
    length[begin + 1] = (tall if machine.exact_rows else np.full_like(tall, machine.mr)) * depth * size
    address[kind == _C] = target.address + row * target.stride
    return address, length, kind


def _panels_of_b(machine: Machine, division: Division, places: Places, step: Step) -> tuple[int, int, int]:
    """Of the panels of packed B: the first address, bytes from one to the next, bytes of one."""
    size, depth, own = machine.element_bytes, step.ks[1] - step.ks[0], places.own[step.thread]
    panel = machine.nr * depth * size
    if not division.packed:
        return own.packed_b, panel, panel
    whole = division.product.k * machine.nr * size
    first = step.columns[0] // machine.nr * whole + step.ks[0] * machine.nr * size
    return places.b.address + first, whole, panel


def _target(machine: Machine, division: Division, places: Places, step: Step) -> tuple[Matrix, int]:
    """Where micro-kernels add into: C or the thread's buffer, and the bytes before its first column."""
    size = machine.element_bytes
    if not division.buffer:
        return places.c, step.columns[0] * size
    buffer, (m0, n0) = _buffer(machine, division, places, step)
    return Matrix(buffer.address - m0 * buffer.stride, buffer.stride), (step.columns[0] - n0) * size


def _buffer(machine: Machine, division: Division, places: Places, step: Step) -> tuple[Matrix, tuple[int, int]]:
    """A thread's buffer, and the row and the column of C where it begins."""
    address = places.own[step.thread].buffer
    if address is None:
        raise ValueError(f"thread {step.thread} has no buffer: K is not cut")
    rows, columns, _ = division.cut.owned(step.thread, division.product)
    return Matrix(address, division.cut.nb * machine.element_bytes), (rows[0], columns[0])


def _update(machine: Machine, division: Division, places: Places, step: Step) -> Runs:
    """Adding a buffer into C: per row the buffer, then C."""
    size, (n0, n1) = machine.element_bytes, step.columns
    buffer, (row, column) = _buffer(machine, division, places, step)
    read = rows_of_runs(buffer, (step.rows[0] - row, step.rows[1] - row), (n0 - column, n1 - column), size)
    written = rows_of_runs(places.c, step.rows, step.columns, size, write=True)
    return Runs(*(np.stack(pair, axis=1).ravel() for pair in zip(_fields(read), _fields(written), strict=True)))


def _fields(runs: Runs) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    return runs.address, runs.size, runs.write
