"""Section 4 of docs/multicore.md, and rule 6.1: what each thread does in which order, and the numbers it computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracle.multicore_plan import Cut, Sub, blocks, owned, rows, up


@dataclass(frozen=True)
class Product:
    """A division of a product: what the executor is given."""

    mnk: tuple[int, int, int]
    cut: Cut
    sub: Sub | None = None
    buffer: bool = False
    packed: bool = False

    @property
    def threads(self) -> int:
        return self.cut[1] * self.cut[2] * self.cut[3]


@dataclass(eq=False)
class Step:
    """One step; ranges are (first, end) in the whole matrices.

    block: the rows and columns of the thread's block; piece: of C that it adds to, None for the thread's buffer.
    """

    kind: str
    thread: int
    number: int
    ms: tuple[int, int]
    ns: tuple[int, int]
    ks: tuple[int, int]
    block: tuple[tuple[int, int], tuple[int, int]]
    packs_b: bool
    piece: Any
    buffer: bool
    #: section 9: the only row of the product, and nothing is packed
    gemv: bool
    #: the step of another thread before it on its piece
    after: Step | None = field(default=None, repr=False)


def ranges(first: int, end: int, size: int) -> list[tuple[int, int]]:
    return [(at, min(at + size, end)) for at in range(first, end, size)]


def sub_blocks(product: Product, thread: int) -> list[tuple[int, tuple[int, int], tuple[int, int]]]:
    """(q, rows, columns) of a thread's sub-blocks in the order in which it visits them (4.1)."""
    ms, ns, _ = owned(product.cut, product.mnk, thread)
    if product.sub is None:
        cells = [(ms, ns)] if ms[0] < ms[1] and ns[0] < ns[1] else []
    else:
        cells = [(r, c) for r in ranges(*ms, product.sub[0]) for c in ranges(*ns, product.sub[1])]
    numbered = [(q, *cell) for q, cell in enumerate(cells)]
    pk = product.cut[3]
    first = thread % pk * len(cells) // pk
    return numbered[first:] + numbered[:first]


def steps_of(m: Any, product: Product) -> list[list[Step]]:
    """The steps of each thread (4.2)."""
    mc, nc, kc = blocks(m)
    buffered = product.buffer and product.cut[3] > 1
    gemv = getattr(m, "gemv", False) and product.mnk[0] == 1
    threads: list[list[Step]] = []
    for thread in range(product.threads):
        ms, ns, ks = owned(product.cut, product.mnk, thread)
        steps: list[Step] = []
        threads.append(steps)
        group = thread // product.cut[3]
        if ks[0] >= ks[1]:
            continue
        visited = sub_blocks(product, thread)
        if buffered and visited:
            visited = [(-1, ms, ns)]
        for q, sub_ms, sub_ns in visited:
            for jc in ranges(*sub_ns, nc):
                for pc in ranges(*ks, kc):
                    for ic in ranges(*sub_ms, mc):
                        packs = not product.packed and not gemv and ic[0] == sub_ms[0]
                        piece = None if buffered else (group, q, jc[0], ic[0])
                        steps.append(
                            Step("macro", thread, len(steps), ic, jc, pc, (ms, ns), packs, piece, buffered, gemv)
                        )
        for q, sub_ms, sub_ns in sub_blocks(product, thread) if buffered else ():
            steps.append(
                Step("update", thread, len(steps), sub_ms, sub_ns, ks, (ms, ns), False, (group, q), True, gemv)
            )
    order_pieces(threads)
    return threads


def order_pieces(threads: list[list[Step]]) -> None:
    """4.3 and 6.5: who waits for whom on a piece of C. Without K-groups nobody meets."""
    last: dict[Any, Step] = {}
    for step in in_rounds(threads):
        if step.piece is not None:
            before = last.get(step.piece)
            if before is not None and before.thread != step.thread:
                step.after = before
            last[step.piece] = step


def in_rounds(threads: list[list[Step]]) -> list[Step]:
    """5.3: step 0 of each thread, then step 1 of each that has one. The place in a K-group ascends with the thread."""
    return sorted((step for steps in threads for step in steps), key=lambda step: (step.number, step.thread))


def tiles(m: Any, step: Step) -> list[tuple[int, int]]:
    return ranges(*step.ms, m.mr)


def compute(m: Any, step: Step) -> int:
    """6.1, and of a gemv section 9."""
    (m0, m1), (n0, n1), (k0, k1) = step.ms, step.ns, step.ks
    if step.kind == "update":
        return up((m1 - m0) * (n1 - n0), m.update_per_cycle)
    kl = k1 - k0
    panels = up(n1 - n0, m.nr)
    if step.gemv:
        return panels * (up(kl * m.nr, m.macs_per_cycle) + m.kernel_cycles)
    tile_rows = [rows(m, b - a) for a, b in tiles(m, step)]
    packed = kl * sum(tile_rows) + (m.nr * panels * kl if step.packs_b else 0)
    kernels = sum(up(kl * r * m.nr, m.macs_per_cycle) + m.kernel_cycles for r in tile_rows)
    return up(packed, m.pack_per_cycle) + panels * kernels


def computed(m: Any, product: Product, a: Any, b: Any) -> Any:
    """C, summed up one multiply-accumulate after the other in the type of the operands (4.2, 4.3)."""
    big_m, big_n, _ = product.mnk
    c = np.zeros((big_m, big_n), a.dtype)
    own = [np.zeros((big_m, big_n), a.dtype) for _ in range(product.threads)]
    for step in in_rounds(steps_of(m, product)):
        for i in range(*step.ms):
            cells = (i, slice(*step.ns))
            if step.kind == "update":
                c[cells] += own[step.thread][cells]
                continue
            acc = np.zeros(step.ns[1] - step.ns[0], a.dtype)
            for k in range(*step.ks):
                acc = acc + a[i, k] * b[k, slice(*step.ns)]
            (own[step.thread] if step.buffer else c)[cells] += acc
    return c
