"""The runs of bytes that a step touches, in order (section 5 of docs/multicore.md)."""

from __future__ import annotations

import numpy as np

from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.execution.steps import Step
from lstmsim.machines.multicore.lines.patterns import RunPattern, Sizes, multiplied, updated
from lstmsim.machines.multicore.lines.space import Matrix, Places
from lstmsim.machines.multicore.lines.types import Runs
from lstmsim.machines.multicore.machine import Machine

__all__ = ["joined", "rows_of_runs", "runs_of"]


def runs_of(machine: Machine, division: Division, places: Places, step: Step) -> Runs:
    """What a step touches.

    machine, division: the product's.
    places: where its operands are.
    step: one of its steps.
    """
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
    """The runs of a pattern.

    bases: by the numbers that the pattern has for them.
    """
    return Runs(np.array(bases, dtype=np.int64)[pattern.base] + pattern.offset, pattern.size, pattern.write)


def _in_buffer(machine: Machine, division: Division, places: Places, step: Step) -> tuple[int, int]:
    """Where a thread's buffer has what belongs to the first row and column of a step, and bytes from row to row."""
    address = places.own[step.thread].buffer
    if address is None:
        raise ValueError(f"thread {step.thread} has no buffer: K is not cut")
    rows, columns, _ = division.cut.owned(step.thread, division.product)
    stride = division.cut.nb * machine.element_bytes
    return address + (step.rows[0] - rows[0]) * stride + (step.columns[0] - columns[0]) * machine.element_bytes, stride


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
