"""C itself, summed up in the order of the steps."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.execution.steps import steps_of
from lstmsim.machines.multicore.machine import Machine

#: Elements of C from which it is quicker to go through K one by one than to hold all products of several k at once.
_MANY = 1024
#: Products that are held at once.
_HELD = 1 << 18


def computed(machine: Machine, division: Division, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """C = A B of shape (m, n), as the threads of a division compute it: the same bits in every run.

    Each product and each sum is rounded to the type of the operands. A step sums up its part of K in ascending order,
    from 0; then the sum is added into C, or into the buffer of the thread, which is added into C at its end.

    machine: the blocks that fit its caches say where steps begin.
    division: any cut, also one that no planner would give. Of `packed` only the time depends.
    a, b: of shapes (m, k) and (k, n).
    Raises `InputError` for operands of other shapes.
    """
    _check(division, a, b)
    kind = np.result_type(a, b)
    a, b = np.asarray(a, kind), np.asarray(b, kind)
    c = np.zeros((division.product.m, division.product.n), kind)
    cut = division.cut
    # one buffer for each place in a K-group, and in it a part for each group: blocks of a place do not overlap
    buffers = np.zeros((cut.p_k, *c.shape), kind) if division.buffer and cut.p_k > 1 else None
    # any order is right that keeps the order at each piece of C: by number of the step, then by thread
    for together in zip_longest(*steps_of(machine, division)):
        for step in together:
            if step is None:
                continue
            block = slice(*step.rows), slice(*step.columns)
            buffer = None if buffers is None else buffers[step.thread % cut.p_k]
            if step.update:
                assert buffer is not None
                c[block] += buffer[block]
            else:
                target = c if buffer is None else buffer
                target[block] += _summed(a[block[0], slice(*step.ks)], b[slice(*step.ks), block[1]])
    return c


def _check(division: Division, a: NDArray[Any], b: NDArray[Any]) -> None:
    product = division.product
    mistakes = [
        Mistake(name, f"must have the shape {shape}, got {operand.shape}")
        for name, operand, shape in (("a", a, (product.m, product.k)), ("b", b, (product.k, product.n)))
        if operand.shape != shape
    ]
    if mistakes:
        raise InputError(mistakes)


def _summed(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """The sums over k in ascending order, each product and each sum rounded to the type."""
    acc = np.zeros((len(a), b.shape[1]), a.dtype)
    if acc.size >= _MANY:
        product = np.empty_like(acc)
        for column, row in zip(a.T, b, strict=True):
            np.multiply(column[:, None], row, out=product)
            acc += product
        return acc
    held = max(1, _HELD // acc.size)
    for first in range(0, len(b), held):
        products = a.T[first : first + held, :, None] * b[first : first + held, None, :]
        products[0] += acc
        # `accumulate` adds one by one; `sum` would add in pairs
        acc = np.add.accumulate(products, axis=0, out=products)[-1]
    return acc
