"""The estimate of cycles: by hand on the machine of the worked examples, and against the simulation."""

from __future__ import annotations

import pytest

from lstmsim import engines
from lstmsim.machines.gemm import Cut, Product
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.cuts import division_of, estimated_cycles, mn_cuts
from lstmsim.machines.multicore.planner import Settings, plan
from lstmsim.machines.multicore.product import figures_of, lowered
from tests.machines.multicore.chips import TOY, changed

#: Of the sizes of a real machine, with four groups and two memories.
REAL = changed(
    TOY, cores=16, cores_per_llc=4, cores_per_domain=8, l1_sets=64, l1_ways=8, l2_sets=1024, llc_sets=4096, mr=6, nr=16
)


def simulated(machine: MulticoreCpu, product: Product, cut: Cut, caches: str) -> int:
    work = lowered(machine, division_of(machine, product, cut), caches)
    return figures_of(machine, work, engines.run(work.program)).makespan


def test_one_step_alone_is_exact_with_warm_caches() -> None:
    """Example B: 60 cycles of arithmetic and packing; cold, 8 lines at 3 cycles are less than that, and a latency."""
    product, cut = Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16)
    assert estimated_cycles(TOY, product, cut, "warm") == simulated(TOY, product, cut, "warm") == 60
    assert estimated_cycles(TOY, product, cut, "cold") == 60 + 50
    assert simulated(TOY, product, cut, "cold") == 72


def test_pieces_of_c_are_handed_over_and_buffers_added() -> None:
    """Blocks 4 x 8 x 32, K in two parts: packing (64 + 128) / 4, and 4 tiles of 36 cycles; C has 32 elements."""
    product, cut, blocks = Product(4, 8, 64), Cut("MK", 1, 1, 2, 4, 8, 32), 2 * (48 + 4 * 36)
    assert estimated_cycles(TOY, product, cut, "warm") == blocks + 32 // 4 + 2 * 20 + 10
    slow = changed(TOY, handover_cycles=1000)
    assert estimated_cycles(slow, product, cut, "warm") == blocks + 32 // 4 + 2 * 1000 + 10
    whole = changed(TOY, buffer_fill=(1, 1000), mr=4, line=256)
    direct = estimated_cycles(whole, product, cut, "warm")
    assert direct == estimated_cycles(changed(whole, handover_cycles=0), product, cut, "warm") + 20


def test_cold_caches_wait_for_the_memories() -> None:
    """A memory of 100 cycles a line. Rows of A have 4 lines; two rows of B and of C share one, and both threads do."""
    product, cut = Product(4, 8, 64), Cut("MN", 1, 2, 1, 4, 4, 64)
    slow = changed(TOY, memory_cycles_per_line=100)
    lines = 4 * 4 + 64 // 2 + 4 // 2
    assert estimated_cycles(slow, product, cut, "cold") == 100 * lines + 50 + 10
    spread = changed(slow, cores=4, cores_per_domain=1, cores_per_llc=2)
    assert estimated_cycles(spread, product, cut, "cold") == 100 * lines / 3 + 50 + 10


def test_what_does_not_fit_the_caches_is_never_warm() -> None:
    product, cut = Product(8, 512, 512), Cut("MN", 1, 2, 1, 8, 256, 512)
    assert estimated_cycles(TOY, product, cut, "warm") == estimated_cycles(TOY, product, cut, "cold")
    large = changed(TOY, llc_sets=4096)
    warm, cold = (estimated_cycles(large, product, cut, caches) for caches in ("warm", "cold"))
    assert warm < cold


@pytest.mark.parametrize(
    ("caches", "overlap"),
    [
        ("cold", True),
        ("warm", False),
        *(pytest.param(*each, marks=pytest.mark.long) for each in (("cold", False), ("warm", True))),
    ],
)
def test_the_fastest_cut_by_the_estimate_is_among_the_fastest_in_the_simulation(caches: str, overlap: bool) -> None:
    machine = changed(REAL, overlap=overlap)
    for product in (Product(8, 64, 300), Product(40, 40, 64), Product(1, 200, 200)):
        cuts = [each.cut for each in plan(machine, product, 8, Settings(), caches).ranked]
        cycles = {cut: simulated(machine, product, cut, caches) for cut in cuts}
        estimates = {cut: estimated_cycles(machine, product, cut, caches) for cut in cuts}
        assert cycles[min(cuts, key=lambda cut: estimates[cut])] <= 1.15 * min(cycles.values())
        assert max(cycles.values()) > 1.5 * min(cycles.values())


def test_the_planner_takes_the_state_of_caches_into_account() -> None:
    product = Product(8, 64, 300)
    ranked = {caches: plan(REAL, product, 8, Settings(), caches).ranked for caches in ("cold", "warm")}
    raw = {caches: {each.cut: each.raw["cycles"] for each in rows} for caches, rows in ranked.items()}
    assert all(raw["cold"][cut] > raw["warm"][cut] for cut in mn_cuts(product, 8))
    without = Settings(cycles=0)
    assert plan(REAL, product, 8, without, "cold").division == plan(REAL, product, 8, without, "warm").division
