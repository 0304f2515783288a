"""What an executor refuses: divisions that are none, and products that are too long to trace."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.base.errors import InputError, Mistake
from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.machine import Machine, up
from lstmsim.machines.multicore.planning.blocks import blocks_of

__all__ = [
    "MOST_ACCESSES",
    "MOST_STEPS",
    "check_division",
    "check_length",
    "estimated_accesses",
    "estimated_steps",
]

#: Most accesses of lines that are traced for one pass of a product: a minute or less with the native caches.
MOST_ACCESSES = 2_000_000_000
#: Most steps of a product that is traced: half a minute, and half a gigabyte.
MOST_STEPS = 500_000


def check_division(division: Division) -> None:
    """`InputError` with every mistake if a division leaves out a part of its product, or has sizes below 1.

    >>> from lstmsim.machines.gemm import Cut, Product
    >>> check_division(Division(Product(7, 8, 9), Cut("MN", 2, 1, 1, 3, 8, 9)))
    Traceback (most recent call last):
    lstmsim.InputError: mb: 2 parts of 3 rows do not hold all 7 rows; at least 4 rows a part are needed
    """
    mistakes = list(_mistakes(division))
    if mistakes:
        raise InputError(mistakes)


def _mistakes(division: Division) -> Iterator[Mistake]:
    product, cut, sub = division.product, division.cut, division.sub_blocks
    sizes = {name: getattr(product, name) for name in ("m", "n", "k")}
    sizes |= {name: getattr(cut, name) for name in ("p_m", "p_n", "p_k", "mb", "nb", "kb")}
    sizes |= {} if sub is None else {"sm": sub.sm, "sn": sub.sn}
    small = [name for name, size in sizes.items() if size < 1]
    yield from (Mistake(name, f"must be at least 1, got {sizes[name]}") for name in small)
    if small:
        return
    for name, parts, size, whole, what in (
        ("mb", cut.p_m, cut.mb, product.m, "rows"),
        ("nb", cut.p_n, cut.nb, product.n, "columns"),
        ("kb", cut.p_k, cut.kb, product.k, "elements of K"),
    ):
        if parts * size < whole:
            least = up(whole, parts)
            text = f"{parts} parts of {size} {what} do not hold all {whole} {what}"
            yield Mistake(name, f"{text}; at least {least} {what} a part are needed")


def estimated_accesses(machine: Machine, division: Division) -> int:
    """About how many accesses of lines one pass of a product has, from its sizes alone.

    machine: its lines, blocks and micro-tiles.
    division: how the product is cut. Blocks at edges count whole.

    >>> from lstmsim.machines.gemm import Cut, Product
    >>> from lstmsim.machines.multicore.toy import TOY
    >>> estimated_accesses(TOY, Division(Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16)))
    32
    """
    cut, blocks, size = division.cut, blocks_of(machine), machine.element_bytes
    rows, columns, depth = cut.mb, cut.nb, min(cut.kb, division.product.k)
    sub = division.sub_blocks
    high, broad = (rows, columns) if sub is None else (min(rows, sub.sm), min(columns, sub.sn))

    def lines(amount: int) -> int:
        return up(amount * size, machine.line)

    updates = 0
    if division.buffer and cut.p_k > 1:
        updates = 2 * rows * up(columns, broad) * lines(broad)
        high, broad = rows, columns
    if machine.packs_nothing(division.product.m):
        of_b = up(columns, machine.nr) * lines(depth * machine.nr) if division.packed else depth * lines(columns)
        in_place = up(columns, broad) * lines(depth) + of_b + lines(columns) * up(depth, blocks.kc)
        return cut.threads * (in_place + updates)
    # each sub-block packs its own rows of A and its own columns of B again
    times_m, times_n = up(rows, high), up(columns, broad)
    tiles, panels = times_m * up(high, machine.mr), times_n * up(broad, machine.nr)
    tall, wide = min(high, machine.mr), min(broad, machine.nr)
    kernels = tiles * panels * (lines(depth * tall) + lines(depth * machine.nr))
    results = rows * panels * lines(wide) * up(depth, blocks.kc)
    packing_a = 2 * times_n * rows * lines(depth)
    packing_b = 0 if division.packed else times_m * (depth * lines(columns) + lines(panels * machine.nr * depth))
    return cut.threads * (kernels + results + packing_a + packing_b + updates)


def estimated_steps(machine: Machine, division: Division) -> int:
    """About how many steps a product has, from its sizes alone.

    machine, division: as for `estimated_accesses`.

    >>> from lstmsim.machines.gemm import Cut, Product
    >>> from lstmsim.machines.multicore.toy import TOY
    >>> estimated_steps(TOY, Division(Product(4, 8, 64), Cut("MK", 1, 1, 2, 4, 8, 32)))
    4
    """
    cut, blocks, sub = division.cut, blocks_of(machine), division.sub_blocks
    high, broad = (cut.mb, cut.nb) if sub is None else (min(cut.mb, sub.sm), min(cut.nb, sub.sn))
    pieces = up(cut.mb, high) * up(cut.nb, broad)
    updates = 0
    if division.buffer and cut.p_k > 1:
        updates, pieces, high, broad = pieces, 1, cut.mb, cut.nb
    depth = min(cut.kb, division.product.k)
    loops = up(high, blocks.mc) * up(broad, blocks.nc) * up(depth, blocks.kc)
    return cut.threads * (pieces * loops + updates)


def check_length(machine: Machine, division: Division) -> None:
    """`InputError` if a pass of a product has more than about `MOST_ACCESSES` accesses of lines or `MOST_STEPS` steps.

    machine, division: as for `estimated_accesses`.
    """
    product = division.product
    size = f"{product.m} x {product.n} x {product.k}"
    less = "take a smaller m, n or k: long products grow in proportion"
    accesses, steps = estimated_accesses(machine, division), estimated_steps(machine, division)
    if accesses > MOST_ACCESSES:
        text = f"{size} touches about {accesses:,} lines one by one, and at most {MOST_ACCESSES:,} are traced"
        raise InputError(Mistake("product", f"{text}; {less}"))
    if steps > MOST_STEPS:
        text = f"{size} has about {steps:,} steps, cut like this, and at most {MOST_STEPS:,} are traced"
        raise InputError(Mistake("product", f"{text}; {less}, and larger blocks have fewer steps"))
