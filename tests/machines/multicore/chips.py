"""Multi-core CPUs by their numbers, without looking up which one is the chip's and which one a core's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from lstmsim.base.keys import keys_of
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu

#: The numbers of a core, and those of a chip.
OF_CORES = frozenset(keys_of(CpuCore))
OF_CHIP = frozenset(keys_of(MulticoreCpu)) - {"name", "frequency_mhz", "cores", "sources", "kind"}


def chip_of(cores: int, **numbers: Any) -> MulticoreCpu:
    """A chip of so many cores; what is left out has its default."""
    core = CpuCore(**{name: value for name, value in numbers.items() if name in OF_CORES})
    own = {name: value for name, value in numbers.items() if name not in OF_CORES}
    return MulticoreCpu("", 1000, (core,) * cores, **own)


def flat(chip: MulticoreCpu) -> SimpleNamespace:
    """The numbers of a chip by the names of section 1 of docs/multicore.md, as `tests/oracle` reads them."""
    own = {name: getattr(chip, name) for name in OF_CHIP} | {name: getattr(chip.core, name) for name in OF_CORES}
    return SimpleNamespace(**own, cores=len(chip.cores))


def changed(chip: MulticoreCpu, **numbers: Any) -> MulticoreCpu:
    """The chip with other numbers; `cores` is how many there are."""
    return chip_of(**{**vars(flat(chip)), **numbers})


def unchecked(chip: MulticoreCpu, **numbers: Any) -> Any:
    """What looks like the chip with other numbers, also with such as no chip can have."""
    core = SimpleNamespace(**{name: numbers.get(name, getattr(chip.core, name)) for name in OF_CORES})
    own = {name: numbers.get(name, getattr(chip, name)) for name in OF_CHIP}
    cores = (core,) * numbers.get("cores", len(chip.cores))
    return SimpleNamespace(**own, cores=cores, core=core, domains=chip.domains, groups=chip.groups)


#: The machine of the worked examples (section 8 of docs/multicore.md): two cores of one group and one memory, with
#: caches of 1, 4 and 64 KiB and micro-tiles of 2 x 4.
TOY = chip_of(
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
