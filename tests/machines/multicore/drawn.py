"""Machines and divisions for tests of the multi-core CPU."""

from __future__ import annotations

import random

from lstmsim.machines.gemm import Cut, Division, Product, SubBlocks
from lstmsim.machines.multicore.chip import MulticoreCpu
from tests.machines.multicore.chips import TOY, changed


def many_cores(cores: int = 8) -> MulticoreCpu:
    """The small machine with more cores: two memories, and a group for every two cores. Blocks are 32 x 128 x 16."""
    return changed(TOY, cores=cores, cores_per_llc=2, cores_per_domain=max(2, cores // 2), llc_sets=32)


def drawn_division(seed: int, most: int = 40) -> Division:
    """Any division, also such as no planner gives: threads with nothing, blocks that overlap no unit, ragged edges.

    most: largest number of rows and columns; K is up to three times as long.
    """
    draw = random.Random(seed)
    product = Product(draw.randint(1, most), draw.randint(1, most), draw.randint(1, 3 * most))
    parts = draw.randint(1, 4), draw.randint(1, 4), draw.choice((1, 2, 3, 5))
    sizes = (product.m, product.n, product.k)
    # blocks hold the whole product; some are larger than they need be, so that threads at the end have nothing
    blocks = tuple(-(-size // part) + draw.choice((0, 0, 1, 7)) for size, part in zip(sizes, parts, strict=True))
    cut = Cut(draw.choice(("MN", "MK", "NK")), *parts, *blocks)
    sub = None
    if draw.random() < 0.7:
        sm, sn = draw.randint(1, blocks[0] + 1), draw.randint(1, blocks[1] + 1)
        sub = SubBlocks(sm, sn, -(-blocks[0] // sm), -(-blocks[1] // sn))
    return Division(product, cut, sub, draw.random() < 0.5)
