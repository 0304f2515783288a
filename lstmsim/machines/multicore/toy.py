"""The machine of the worked examples (section 8 of docs/multicore.md), for examples and tests."""

from __future__ import annotations

from lstmsim.machines.multicore.machine import Machine

#: Two cores of one group and one memory, with caches of 1, 4 and 64 KiB and micro-tiles of 2 x 4.
TOY = Machine(
    cores=2,
    cores_per_llc=2,
    cores_per_domain=2,
    line=64,
    page=4096,
    l1_sets=4,
    l1_ways=4,
    l2_sets=16,
    l2_ways=4,
    llc_sets=64,
    llc_ways=16,
    llc_hash="bits",
    overlap=True,
    l2_cycles_per_line=2,
    llc_cycles_per_line=3,
    core_memory_cycles_per_line=0,
    memory_cycles_per_line=3,
    memory_latency=50,
    remote_latency=0,
    remote_cycles_per_line=0,
    handover_cycles=20,
    barrier_cycles=10,
    macs_per_cycle=4,
    lanes=4,
    element_bytes=4,
    mr=2,
    nr=4,
    kernel_cycles=4,
    exact_rows=True,
    gemv=True,
    pack_per_cycle=4,
    update_per_cycle=4,
    activation_cycles=20,
    elementwise_cycles=1,
    k_unit=8,
    fill=(1, 2),
    buffer_fill=(1, 2),
)
