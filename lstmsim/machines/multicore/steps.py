"""The steps of each thread in its order, what is too long to trace, and C, summed up in the order of the steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.chip import Blocks, MulticoreCpu, blocks_of, up

#: Most accesses of lines that are traced for one pass of a product: a minute or less with the native caches.
MOST_ACCESSES = 2_000_000_000
#: Most steps of a product that is traced: half a minute, and half a gigabyte.
MOST_STEPS = 500_000


def check_division(division: Division) -> None:
    """`InputError` with every mistake if a division leaves out a part of its product, or has sizes below 1."""
    product, cut, sub = division.product, division.cut, division.sub_blocks
    sizes = {name: getattr(product, name) for name in ("m", "n", "k")}
    sizes |= {name: getattr(cut, name) for name in ("p_m", "p_n", "p_k", "mb", "nb", "kb")}
    sizes |= {} if sub is None else {"sm": sub.sm, "sn": sub.sn}
    mistakes = [Mistake(name, f"must be at least 1, got {size}") for name, size in sizes.items() if size < 1]
    refuse(mistakes)
    for name, parts, size, whole, of in (
        ("mb", cut.p_m, cut.mb, product.m, "rows"),
        ("nb", cut.p_n, cut.nb, product.n, "columns"),
        ("kb", cut.p_k, cut.kb, product.k, "elements of K"),
    ):
        if parts * size < whole:
            text = f"{parts} parts of {size} {of} do not hold all {whole} {of}"
            mistakes.append(Mistake(name, f"{text}; at least {up(whole, parts)} {of} a part are needed"))
    refuse(mistakes)


def estimated_accesses(chip: MulticoreCpu, division: Division) -> int:
    """About how many accesses of lines one pass of a product has, from its sizes alone."""
    cut, blocks, size = division.cut, blocks_of(chip), chip.element_bytes
    rows, columns, depth = cut.mb, cut.nb, min(cut.kb, division.product.k)
    sub = division.sub_blocks
    high, broad = (rows, columns) if sub is None else (min(rows, sub.sm), min(columns, sub.sn))

    def lines(amount: int) -> int:
        return up(amount * size, chip.line)

    updates = 0
    if division.buffer and cut.p_k > 1:
        updates = 2 * rows * up(columns, broad) * lines(broad)
        high, broad = rows, columns
    if chip.core.packs_nothing(division.product.m):
        of_b = up(columns, chip.core.nr) * lines(depth * chip.core.nr) if division.packed else depth * lines(columns)
        in_place = up(columns, broad) * lines(depth) + of_b + lines(columns) * up(depth, blocks.kc)
        return cut.threads * (in_place + updates)
    # each sub-block packs its own rows of A and its own columns of B again
    times_m, times_n = up(rows, high), up(columns, broad)
    tiles, panels = times_m * up(high, chip.core.mr), times_n * up(broad, chip.core.nr)
    tall, wide = min(high, chip.core.mr), min(broad, chip.core.nr)
    kernels = tiles * panels * (lines(depth * tall) + lines(depth * chip.core.nr))
    results = rows * panels * lines(wide) * up(depth, blocks.kc)
    packing_a = 2 * times_n * rows * lines(depth)
    packing_b = 0 if division.packed else times_m * (depth * lines(columns) + lines(panels * chip.core.nr * depth))
    return cut.threads * (kernels + results + packing_a + packing_b + updates)


def estimated_steps(chip: MulticoreCpu, division: Division) -> int:
    """About how many steps a product has, from its sizes alone."""
    cut, blocks, sub = division.cut, blocks_of(chip), division.sub_blocks
    high, broad = (cut.mb, cut.nb) if sub is None else (min(cut.mb, sub.sm), min(cut.nb, sub.sn))
    pieces = up(cut.mb, high) * up(cut.nb, broad)
    updates = 0
    if division.buffer and cut.p_k > 1:
        updates, pieces, high, broad = pieces, 1, cut.mb, cut.nb
    depth = min(cut.kb, division.product.k)
    loops = up(high, blocks.mc) * up(broad, blocks.nc) * up(depth, blocks.kc)
    return cut.threads * (pieces * loops + updates)


def check_length(chip: MulticoreCpu, division: Division) -> None:
    """`InputError` if a pass of a product has more than about `MOST_ACCESSES` accesses or `MOST_STEPS` steps."""
    product = division.product
    size = f"{product.m} x {product.n} x {product.k}"
    less = "take a smaller m, n or k: long products grow in proportion"
    accesses, steps = estimated_accesses(chip, division), estimated_steps(chip, division)
    if accesses > MOST_ACCESSES:
        text = f"{size} touches about {accesses:,} lines one by one, and at most {MOST_ACCESSES:,} are traced"
        raise InputError(Mistake("sizes", f"{text}; {less}"))
    if steps > MOST_STEPS:
        text = f"{size} has about {steps:,} steps, cut like this, and at most {MOST_STEPS:,} are traced"
        raise InputError(Mistake("sizes", f"{text}; {less}, and larger blocks have fewer steps"))


#: First and end of rows, of columns, or of a part of K.
Span = tuple[int, int]


class Step(NamedTuple):
    """One step of a thread: a block of multiplications, or the adding of a buffer into C.

    thread, number: whose it is, and its index among the steps of its thread.
    rows, columns, ks: of C and of K, each as (first, end); `ks` is empty for an update.
    update: whether a buffer is added into C; else blocks are multiplied.
    packs_b: whether B is packed in it.
    after: (thread, number) of the step before it on its piece of C, if that is another thread's.
    gemv: whether its one row is multiplied by a kernel that packs nothing.
    """

    thread: int
    number: int
    rows: Span
    columns: Span
    ks: Span
    update: bool = False
    packs_b: bool = False
    after: tuple[int, int] | None = None
    gemv: bool = False

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many rows, columns and elements of K it has."""
        (m0, m1), (n0, n1), (k0, k1) = self.rows, self.columns, self.ks
        return m1 - m0, n1 - n0, k1 - k0


def compute_cycles(chip: MulticoreCpu, step: Step) -> int:
    """Cycles of a step's arithmetic, with packing (section 6.1 of docs/multicore.md); at least 0."""
    rows, columns, length = step.sizes
    core = chip.core
    if step.update:
        return up(rows * columns, core.update_per_cycle)

    def tile(rows: int) -> int:
        return up(length * rows * core.nr, core.macs_per_cycle) + core.kernel_cycles

    whole, rest = divmod(rows, core.mr)
    panels = up(columns, core.nr)
    if step.gemv:
        return panels * tile(1)
    packed = length * (core.rows(rows) + (core.nr * panels if step.packs_b else 0))
    tiles = whole * tile(core.mr) + (tile(core.rows(rest)) if rest else 0)
    return up(packed, core.pack_per_cycle) + panels * tiles


@lru_cache(maxsize=8)
def steps_of(chip: MulticoreCpu, division: Division) -> tuple[tuple[Step, ...], ...]:
    """The steps of each thread, in its order; a thread without rows, columns or part of K has none."""
    check_division(division)
    blocks = blocks_of(chip)
    cut = division.cut
    gemv = chip.core.packs_nothing(division.product.m)
    threads = [_steps_of_thread(blocks, division, thread, gemv) for thread in range(cut.threads)]
    if cut.p_k == 1:
        return tuple(map(tuple, threads))
    groups = [threads[first : first + cut.p_k] for first in range(0, cut.threads, cut.p_k)]
    return tuple(tuple(steps) for group in groups for steps in _in_turn(group))


def sub_blocks_in_turn(division: Division, thread: int) -> list[tuple[Span, Span]]:
    """Rows and columns of each sub-block of a thread's block of C, in the order in which the thread comes to them.

    The threads of a K-group begin at different ones. Without sub-blocks there is one: the whole block.
    """
    rows, columns, _ = division.cut.owned(thread, division.product)
    sub = division.sub_blocks
    if sub is None:
        return [(rows, columns)]
    pieces = [(part, own) for part in _parts(rows, sub.sm) for own in _parts(columns, sub.sn)]
    first = division.cut.rank(thread)[2] * len(pieces) // division.cut.p_k
    return pieces[first:] + pieces[:first]


def _parts(span: Span, size: int) -> Iterator[Span]:
    """The parts of a span that are `size` long; the last one may be shorter."""
    first, end = span
    return ((at, min(at + size, end)) for at in range(first, end, size))


def _steps_of_thread(blocks: Blocks, division: Division, thread: int, gemv: bool) -> list[Step]:
    """The steps of a thread, without those that they follow."""
    rows, columns, ks = division.cut.owned(thread, division.product)
    if not (rows[0] < rows[1] and columns[0] < columns[1] and ks[0] < ks[1]):
        return []
    turns = sub_blocks_in_turn(division, thread)
    packs = not division.packed and not gemv
    # a buffer is of use only if others add into the same block
    buffered = division.buffer and division.cut.p_k > 1
    steps: list[Step] = []
    for own_rows, own_columns in [(rows, columns)] if buffered else turns:
        for jc in _parts(own_columns, blocks.nc):
            for pc in _parts(ks, blocks.kc):
                for ic in _parts(own_rows, blocks.mc):
                    packs_b = packs and ic[0] == own_rows[0]
                    steps.append(Step(thread, len(steps), ic, jc, pc, packs_b=packs_b, gemv=gemv))
    if buffered:
        first = len(steps)
        steps += [Step(thread, first + i, *piece, (0, 0), update=True) for i, piece in enumerate(turns)]
    return steps


def _in_turn(group: Sequence[Sequence[Step]]) -> list[list[Step]]:
    """The steps of the threads of a K-group, each with the step that it follows on its piece of C.

    A piece is visited in the order of (number of the step in its thread, place of the thread in the group). Pieces do
    not overlap, so their first row and first column name them.
    """
    buffered = any(step.update for steps in group for step in steps)
    linked: list[list[Step]] = [[] for _ in group]
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for together in zip_longest(*group):
        for own, step in zip(linked, together, strict=True):
            if step is None:
                continue
            if step.update or not buffered:
                piece = step.rows[0], step.columns[0]
                before = last.get(piece)
                last[piece] = step.thread, step.number
                if before is not None and before[0] != step.thread:
                    step = step._replace(after=before)
            own.append(step)
    return linked


def in_rounds(threads: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps in the order in which they drive the caches: the first of each thread, then the second ones."""
    return [step for together in zip_longest(*threads) for step in together if step is not None]


#: Elements of C from which it is quicker to go through K one by one than to hold all products of several k at once.
_MANY = 1024
#: Products that are held at once.
_HELD = 1 << 18


def computed(chip: MulticoreCpu, division: Division, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """C = A B of shape (m, n), as the threads of any division compute it: the same bits in every run.

    Each product and each sum is rounded to the type of the operands. A step sums up its part of K in ascending order,
    from 0; then the sum is added into C, or into the buffer of the thread, which is added into C at its end.

    a, b: of shapes (m, k) and (k, n); `InputError` for others.
    """
    product, cut = division.product, division.cut
    shapes = {"a": (a, (product.m, product.k)), "b": (b, (product.k, product.n))}
    refuse(
        Mistake(name, f"must have the shape {shape}, got {of.shape}")
        for name, (of, shape) in shapes.items()
        if of.shape != shape
    )
    kind = np.result_type(a, b)
    a, b = np.asarray(a, kind), np.asarray(b, kind)
    c = np.zeros((product.m, product.n), kind)
    # one buffer for each rank in a K-group, and in it a part for each group: blocks of a rank do not overlap
    buffers = np.zeros((cut.p_k, *c.shape), kind) if division.buffer and cut.p_k > 1 else None
    # any order is right that keeps the order at each piece of C: by number of the step, then by thread
    for step in in_rounds(steps_of(chip, division)):
        block = slice(*step.rows), slice(*step.columns)
        target = c if buffers is None else buffers[step.thread % cut.p_k]
        if step.update:
            c[block] += target[block]
        else:
            target[block] += _summed(a[block[0], slice(*step.ks)], b[slice(*step.ks), block[1]])
    return c


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
