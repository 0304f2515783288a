"""What speaks for and against a cut (section 2.4 of docs/multicore.md)."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from lstmsim.machines.gemm import Cut, Product
from lstmsim.machines.multicore.machine import Machine, up
from lstmsim.machines.multicore.planning.blocks import blocks_of
from lstmsim.machines.multicore.planning.estimate import estimated_cycles

__all__ = ["conditions_of"]


def conditions_of(
    machine: Machine, product: Product, cut: Cut, caches: str, packed: bool = False
) -> Mapping[str, float]:
    """The conditions of a cut by name, as they are.

    machine: its blocks and its micro-tile, and for the estimate all of it.
    caches: what lies in them, for the estimate; one of `lstmsim.machines.gemm.CACHES`.
    packed: whether B was packed before, for the estimate.

    >>> from lstmsim.machines.multicore.toy import TOY
    >>> each = conditions_of(TOY, Product(4, 8, 64), Cut("MK", 1, 1, 2, 4, 8, 32), "warm")
    >>> each["mn_fit"], each["contention"], each["traffic"], each["cycles"]
    (0.125, 2.0, 896.0, 442.0)
    """
    m, n, k = product.m, product.n, product.k
    traffic = m * k * up(n, cut.nb) + k * n * up(m, cut.mb) + 2 * m * n * cut.p_k
    kc = blocks_of(machine).kc
    return {
        "k_fit": min(cut.kb, kc) / kc,
        "mn_fit": _mn_fit(machine, cut),
        "padding": _padded(machine, cut.mb, cut.nb) / _padded(machine, m, n),
        "balance": _balance(machine, product, cut),
        "contention": float(cut.p_k),
        "traffic": float(traffic),
        "cycles": estimated_cycles(machine, product, cut, caches, packed),
    }


def _mn_fit(machine: Machine, cut: Cut) -> float:
    blocks = blocks_of(machine)
    rows = min(cut.mb, blocks.mc) / blocks.mc
    columns = min(cut.nb, blocks.nc) / blocks.nc
    return {"MK": rows, "NK": columns}.get(cut.kind, sqrt(rows * columns))


def _padded(machine: Machine, rows: int, columns: int) -> float:
    """Work of the micro-tiles of a block, for each of its elements."""
    return machine.rows(rows) * up(columns, machine.nr) * machine.nr / (rows * columns)


def _balance(machine: Machine, product: Product, cut: Cut) -> float:
    """The work of a thread is a product of three factors, and the first thread has the most of each."""
    rows = [machine.rows(each) for each in _parts(product.m, cut.p_m, cut.mb)]
    columns = [up(each, machine.nr) * machine.nr for each in _parts(product.n, cut.p_n, cut.nb)]
    ks = _parts(product.k, cut.p_k, cut.kb)
    return rows[0] * columns[0] * ks[0] * cut.threads / (sum(rows) * sum(columns) * sum(ks))


def _parts(whole: int, parts: int, size: int) -> list[int]:
    return [min(size, max(0, whole - part * size)) for part in range(parts)]
