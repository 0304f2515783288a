"""Which bytes each step touches, in order (section 5 of docs/multicore.md), and the counts that come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.multicore_caches import Caches, Space
from tests.oracle.multicore_plan import blocks, rows, up
from tests.oracle.multicore_steps import Product, Step, compute, in_rounds, steps_of, tiles

#: address of the first byte, bytes, whether they are written
Run = tuple[int, int, bool]


@dataclass
class Places:
    """Where the operands are.

    a: parts of a row of A: (k of its first element, behind its last, address in row 0, bytes from row to row).
    own: of each thread: packed A, packed B, buffer (0 if there is none).
    """

    a: list[tuple[int, int, int, int]]
    b: int
    c: int
    own: list[tuple[int, int, int]]


@dataclass
class Counted:
    """A step with its traffic; `step` is None for a tail."""

    thread: int
    step: Step | None
    compute: int
    counts: Counter[str]
    memory: Counter[int]
    x: int


def place_product(m: Any, space: Space, product: Product, first_core: int, in_job: bool) -> Places:
    big_m, big_n, big_k = product.mnk
    _, _, _, pk, mb, nb, kb = product.cut
    mc, nc, kc = blocks(m)
    a = space.place(big_m * big_k)
    b = space.place((up(big_n, m.nr) * m.nr if product.packed else big_n) * big_k)
    c = space.place(big_m * big_n, shared=in_job or pk > 1)
    kmax = min(kc, kb)
    own = []
    for core in range(first_core, first_core + product.threads):
        packed_a = space.place(min(mc, up(mb, m.mr) * m.mr) * kmax, core)
        packed_b = space.place(min(nc, up(nb, m.nr) * m.nr) * kmax, core)
        own.append((packed_a, packed_b, space.place(mb * nb, core) if pk > 1 else 0))
    return Places([(0, big_k, a, big_k * m.element_bytes)], b, c, own)


def rows_of_a(m: Any, places: Places, step: Step, row: int) -> Iterator[Run]:
    for k0, k1, base, stride in places.a:
        first, end = max(k0, step.ks[0]), min(k1, step.ks[1])
        if first < end:
            yield base + row * stride + (first - k0) * m.element_bytes, (end - first) * m.element_bytes, False


def result_row(m: Any, product: Product, places: Places, step: Step, row: int, n: tuple[int, int], own: bool) -> int:
    """Address of a row's columns from n[0] on, in C or in the thread's own buffer."""
    if own:
        (m0, _), (n0, _) = step.block
        return places.own[step.thread][2] + ((row - m0) * product.cut[5] + n[0] - n0) * m.element_bytes
    return places.c + (row * product.mnk[1] + n[0]) * m.element_bytes


def runs(m: Any, product: Product, places: Places, step: Step) -> Iterator[Run]:
    s = m.element_bytes
    if step.kind == "update":
        bytes_of_row = (step.ns[1] - step.ns[0]) * s
        for row in range(*step.ms):
            yield result_row(m, product, places, step, row, step.ns, True), bytes_of_row, False
            yield result_row(m, product, places, step, row, step.ns, False), bytes_of_row, True
        return
    (jc, je), (pc, pe) = step.ns, step.ks
    kl = pe - pc
    packed_a, packed_b, _ = places.own[step.thread]
    if step.gemv:
        yield from rows_of_a(m, places, step, 0)
        yield from rows_of_b(m, product, places, step)
        yield result_row(m, product, places, step, 0, step.ns, step.buffer), (je - jc) * s, True
        return
    if step.packs_b:
        for k in range(pc, pe):
            yield places.b + (k * product.mnk[1] + jc) * s, (je - jc) * s, False
        yield packed_b, up(je - jc, m.nr) * m.nr * kl * s, True
    for row in range(*step.ms):
        yield from rows_of_a(m, places, step, row)
    yield packed_a, kl * sum(rows(m, b - a) for a, b in tiles(m, step)) * s, True
    for j in range(up(je - jc, m.nr)):
        columns = (jc + j * m.nr, min(jc + (j + 1) * m.nr, je))
        panel = packed_b + j * m.nr * kl * s
        if product.packed:
            panel = places.b + ((jc // m.nr + j) * product.mnk[2] + pc) * m.nr * s
        for i, (first, end) in enumerate(tiles(m, step)):
            yield panel, m.nr * kl * s, False
            yield packed_a + i * m.mr * kl * s, rows(m, end - first) * kl * s, False
            for row in range(first, end):
                address = result_row(m, product, places, step, row, columns, step.buffer)
                yield address, (columns[1] - columns[0]) * s, True


def rows_of_b(m: Any, product: Product, places: Places, step: Step) -> Iterator[Run]:
    """What a gemv reads of B (section 9): rows where they lie, or panels that were packed before."""
    s, (jc, je), (pc, pe) = m.element_bytes, step.ns, step.ks
    if product.packed:
        for j in range(up(je - jc, m.nr)):
            yield places.b + ((jc // m.nr + j) * product.mnk[2] + pc) * m.nr * s, m.nr * (pe - pc) * s, False
    else:
        for k in range(pc, pe):
            yield places.b + (k * product.mnk[1] + jc) * s, (je - jc) * s, False


def drive(m: Any, caches: Caches, core: int, touched: Iterator[Run]) -> None:
    caches.begin(core)
    for address, length, write in touched:
        for line in range(address // m.line, (address + length - 1) // m.line + 1):
            caches.access(line, write)


def counted(m: Any, caches: Caches, thread: int, step: Step | None, compute_cycles: int) -> Counted:
    """The step that the caches have just been driven by, with its core cycles (6.2)."""
    n = caches.counts
    t12, t23 = n["l1_l2"] * m.l2_cycles_per_line, n["l2_llc"] * m.llc_cycles_per_line
    tm = sum(caches.memory.values()) * m.core_memory_cycles_per_line + n["remote"] * m.remote_cycles_per_line
    x = max(1, compute_cycles, t12, t23, tm) if m.overlap else max(1, compute_cycles, t12 + t23 + tm)
    return Counted(thread, step, compute_cycles, n, caches.memory, x)


def trace(m: Any, caches: Caches, product: Product, places: Places, first_core: int = 0) -> list[Counted]:
    """A product in rounds (5.3)."""
    result = []
    for step in in_rounds(steps_of(m, product)):
        drive(m, caches, first_core + step.thread, runs(m, product, places, step))
        result.append(counted(m, caches, step.thread, step, compute(m, step)))
    return result


def traced(m: Any, product: Product, warm: bool) -> list[Counted]:
    """A product alone: the first one, or the second of two."""
    space = Space(m)
    places = place_product(m, space, product, 0, False)
    caches = Caches(m, space)
    cold = trace(m, caches, product, places)
    return trace(m, caches, product, places) if warm else cold
