"""Cuts of a product into one block for each thread (section 2.2 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim.machines.gemm import Cut, Product
from lstmsim.machines.multicore.machine import Machine, up

__all__ = ["blis_cut", "cut_of_parts", "is_idle", "k_cuts", "mn_cuts"]


def mn_cuts(product: Product, threads: int) -> tuple[Cut, ...]:
    """Every cut of rows and columns alone: first the one of BLIS's rule, then the others with ever more parts of rows.

    threads: how many; some may have nothing to do.

    >>> [(cut.p_m, cut.p_n) for cut in mn_cuts(Product(8, 32, 64), 4)]
    [(1, 4), (2, 2), (4, 1)]
    """
    first = blis_cut(product, threads)
    others = (_mn_cut(product, p_m, threads // p_m) for p_m in _divisors(threads) if p_m != first.p_m)
    return (first, *others)


def blis_cut(product: Product, threads: int) -> Cut:
    """The cut of BLIS's rule: p_m and p_n as near as they can be to the ratio of rows and columns.

    threads: p_m times p_n.

    >>> blis_cut(Product(4, 8, 64), 2)
    Cut(kind='MN', p_m=1, p_n=2, p_k=1, mb=4, nb=4, kb=64)
    """
    p_m = min(_divisors(threads), key=lambda each: abs(each * product.n - threads // each * product.m))
    return _mn_cut(product, p_m, threads // p_m)


def k_cuts(machine: Machine, product: Product, threads: int) -> tuple[Cut, ...]:
    """Every cut of K, and of either rows (`MK`, these are first) or columns (`NK`), with ever more parts of K.

    machine: says of what the parts of K are multiples.
    threads: how many; some may have nothing to do.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> [(cut.kind, cut.p_k, cut.kb) for cut in k_cuts(TOY, Product(8, 8, 60), 4)]
    [('MK', 2, 32), ('MK', 4, 16), ('NK', 2, 32)]
    """
    parts = [each for each in _divisors(threads) if each > 1]
    rows = [_k_cut(machine, product, "MK", threads // each, 1, each) for each in parts]
    columns = [_k_cut(machine, product, "NK", 1, threads // each, each) for each in parts if each < threads]
    return (*rows, *columns)


def cut_of_parts(machine: Machine, product: Product, kind: str, parts: Sequence[int]) -> Cut:
    """The cut into so many parts, of sizes as in every other cut.

    machine: says of what the parts of K are multiples.
    kind: a key of `lstmsim.machines.gemm.KINDS`.
    parts: of rows, of columns, of K.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> cut_of_parts(TOY, Product(8, 8, 60), "MNK", (2, 1, 2))
    Cut(kind='MNK', p_m=2, p_n=1, p_k=2, mb=4, nb=8, kb=32)
    """
    p_m, p_n, p_k = parts
    cut = _k_cut(machine, product, kind, p_m, p_n, p_k)
    return cut if p_k > 1 else replace(cut, kb=product.k)


def is_idle(machine: Machine, product: Product, cut: Cut) -> bool:
    """Whether a thread has nothing to do, or would have nothing if parts of K were whole multiples.

    machine: says of what the parts of K are multiples.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> [is_idle(TOY, Product(4, 4, 20), cut) for cut in k_cuts(TOY, Product(4, 4, 20), 4)]
    [False, True, False]
    """
    parts_k = 1 if cut.p_k == 1 else up(product.k, _part_of_k(machine, product, cut.p_k))
    return parts_k < cut.p_k or up(product.m, cut.mb) < cut.p_m or up(product.n, cut.nb) < cut.p_n


def _mn_cut(product: Product, p_m: int, p_n: int) -> Cut:
    return Cut("MN", p_m, p_n, 1, up(product.m, p_m), up(product.n, p_n), product.k)


def _k_cut(machine: Machine, product: Product, kind: str, p_m: int, p_n: int, p_k: int) -> Cut:
    kb = min(_part_of_k(machine, product, p_k), product.k)
    return Cut(kind, p_m, p_n, p_k, up(product.m, p_m), up(product.n, p_n), kb)


def _part_of_k(machine: Machine, product: Product, p_k: int) -> int:
    return up(up(product.k, p_k), machine.k_unit) * machine.k_unit


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
