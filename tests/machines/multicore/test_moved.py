"""Lines that a product moves, as the planner estimates them, beside what the caches count."""

from __future__ import annotations

import pytest

from lstmsim.machines.gemm import Cut, Division, Product
from lstmsim.machines.multicore.chip import HASHES
from lstmsim.machines.multicore.cuts import division_of, estimated_cycles, moved_lines
from lstmsim.machines.multicore.product import traced
from tests.machines.multicore.chips import TOY, changed

#: Sixteen cores with caches of 32 KiB and 256 KiB, and of 1 MiB for every four.
MACHINE = changed(
    TOY, cores=16, cores_per_llc=4, cores_per_domain=8, l1_sets=64, l1_ways=8, l2_sets=1024, llc_sets=4096,
    llc_ways=4, mr=6, nr=16, llc_hash="xor", gemv=True, core_memory_cycles_per_line=7,
)  # fmt: skip
#: Rows of B are 8 KiB, 128 lines, apart. The columns of four threads are half of each row: 10,240 lines of 16,384.
WIDE = Product(1, 2048, 160)
HALVES = Cut("MN", 1, 8, 1, 1, 256, 160)


def counted(division: Division, machine: object, caches: str) -> tuple[float, float, float]:
    """Lines between caches and memory, of each thread."""
    counts, threads = traced(machine, division, caches).counts, division.cut.threads  # type: ignore[arg-type]
    return counts.l1_l2 / threads, counts.l2_llc / threads, (counts.memory_read + counts.memory_write) / threads


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("caches", ["cold", "warm"])
def test_every_level_is_as_the_caches_count_it(caches: str, packed: bool) -> None:
    roomy = changed(MACHINE, llc_ways=8)
    for product, cut in (
        (WIDE, HALVES),
        (Product(8, 512, 512), Cut("MN", 1, 8, 1, 8, 64, 512)),
        (Product(8, 512, 512), Cut("NK", 1, 4, 2, 8, 128, 256)),
    ):
        division = division_of(roomy, product, cut, "plan", packed=packed)
        own = 4 * product.k * product.n / 64 / 8
        for about, exact in zip(moved_lines(roomy, division, caches), counted(division, roomy, caches), strict=False):
            assert about == pytest.approx(exact, rel=0.6, abs=0.25 * own)


@pytest.mark.parametrize("kind", HASHES)
def test_lines_that_share_few_sets_come_from_memory(kind: str) -> None:
    """All of B has room. By bits it has 2,048 sets of 4 lines, five for each: none stays until it is read again."""
    machine, own = changed(MACHINE, llc_hash=kind), 4 * WIDE.k * WIDE.n / 64 / 8
    division = division_of(machine, WIDE, HALVES)
    *_, about, group = moved_lines(machine, division, "warm")
    *_, exact = counted(division, machine, "warm")
    assert about == pytest.approx(exact, abs=0.15 * own)
    assert (about > 0.9 * own, group > 3 * own) == ((kind == "bits"),) * 2


def test_the_estimate_knows_conflicts_and_not_only_room() -> None:
    by_bits, hashed = (estimated_cycles(changed(MACHINE, llc_hash=kind), WIDE, HALVES, "warm") for kind in HASHES)
    cold = estimated_cycles(MACHINE, WIDE, HALVES, "cold")
    assert hashed < by_bits <= cold


def test_one_row_packs_nothing() -> None:
    division = division_of(MACHINE, Product(1, 512, 512), Cut("MN", 1, 8, 1, 1, 64, 512))
    about, exact = moved_lines(MACHINE, division, "cold"), counted(division, MACHINE, "cold")
    assert about[:3] == pytest.approx(exact, rel=0.05, abs=30)
