"""The multi-core CPU: description of a core with its private caches and its micro-kernel.

Sources, as in `docs/multicore.md`, section 8: [K] the machine files of kerncraft; [B] the kernels of BLIS.
"""

from __future__ import annotations

from typing import Annotated

from lstmsim.base.bounds import MAX_LATENCY_CYCLES
from lstmsim.base.checked import checked
from lstmsim.base.keys import Key, mistakes_of
from lstmsim.base.records import hashed_once, record
from lstmsim.machines.multicore.cells import refusal
from lstmsim.model.model import Model

__all__ = ["CpuCore"]

_K = "kerncraft, examples/machine-files/Zen2_EPYC-7452.yml (the 7742 has the same core and caches)"
_B = "BLIS, config/zen2/bli_cntx_init_zen2.c"
_GEMV = "numpy calls a BLAS's gemv for them; OpenBLAS, kernel/x86_64/sgemv_n_4.c, reads the matrix where it lies"
_PACKED = (
    "measured: OpenBLAS 0.3.31 on a two-core Zen 4, FP32: 2.0 to 2.4, and 0.6 where rows are a power of two apart "
    "(experiments/gemm_threads/this_machine.py); assumption, because no figure of a Zen 2 is known"
)
_VECTOR = "assumption, because a core loads and stores one vector a cycle"
#: Sets and ways of a cache that one core has alone.
_MOST_SETS, _MOST_WAYS = 1 << 16, 64


def _sets(level: str) -> Key:
    return Key(f"sets of {level}, which each core has alone", "", 1, _MOST_SETS, source=_K, vary=True)


def _ways(level: str) -> Key:
    return Key(f"lines of a set of {level}", "", 1, _MOST_WAYS, source=_K, vary=True)


def _cycles(meaning: str, source: str, low: int = 0) -> Key:
    return Key(meaning, "cycles", low, MAX_LATENCY_CYCLES, source=source, vary=True)


def _rate(meaning: str, source: str) -> Key:
    return Key(meaning, "", 1, 4096, source=source, vary=True)


@checked("core")
@hashed_once
@record
class CpuCore:
    """One core with its L1 and L2. Each field says its meaning, unit and source.

    The defaults are those of the preset `epyc-7742`.

    >>> core = CpuCore()
    >>> core.peak, core.mistakes()
    (16, [])
    """

    l1_sets: Annotated[int, _sets("L1")] = 64
    l1_ways: Annotated[int, _ways("L1")] = 8
    l2_sets: Annotated[int, _sets("L2")] = 1024
    l2_ways: Annotated[int, _ways("L2")] = 8
    overlap: Annotated[
        bool, Key("whether transfers between levels and computing overlap each other", source=f"{_K}: for Zen 2, true")
    ] = True
    l2_cycles_per_line: Annotated[int, _cycles("a line between L1 and L2", f"{_K}: 32 bytes a cycle")] = 2
    llc_cycles_per_line: Annotated[
        int, _cycles("a line between L2 and the last-level cache", f"{_K}: 24 bytes a cycle, 2.67 cycles")
    ] = 3
    core_memory_cycles_per_line: Annotated[
        int, _cycles("a line that one core draws from memory", f"{_K}: load on one core 21.77 GB/s, 6.6 cycles")
    ] = 7
    macs_per_cycle: Annotated[int, _rate("multiply-accumulates in a cycle", f"{_K}: 32 FP32 operations a cycle")] = 16
    lanes: Annotated[int, _rate("elements of a vector", f"{_K}: vectors of 32 bytes")] = 8
    mr: Annotated[int, _rate("rows of a micro-tile", f"{_B}: sgemm 6 x 16")] = 6
    nr: Annotated[int, _rate("columns of a micro-tile", f"{_B}: sgemm 6 x 16")] = 16
    kernel_cycles: Annotated[
        int,
        _cycles(
            "of each call of the micro-kernel",
            "assumption, because multiply-adds of 4 to 5 cycles fill and drain, and a tile in registers is added to C",
        ),
    ] = 16
    exact_rows: Annotated[
        bool,
        Key(
            "whether a tile of fewer rows takes less time",
            source=f"{_B}: kernels for small matrices are used below 500 rows, columns or products",
        ),
    ] = True
    gemv: Annotated[
        bool, Key("whether products with one row (M = 1) have a kernel that packs neither A nor B", source=_GEMV)
    ] = True
    pack_per_cycle: Annotated[int, _rate("elements packed in a cycle", _PACKED)] = 2
    update_per_cycle: Annotated[int, _rate("elements of a buffer added to C in a cycle", _VECTOR)] = 8
    activation_cycles: Annotated[
        int,
        _cycles("an activation of one vector", "assumption, because a vectorised exponential is 15 to 25 instructions"),
    ] = 20
    elementwise_cycles: Annotated[
        int, _cycles("any other operation on one vector", "assumption, because it is one instruction")
    ] = 1

    @property
    def peak(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.macs_per_cycle

    def mistakes(self) -> list[tuple[str, str]]:
        """What is wrong with the numbers, as (key, sentence) pairs.

        >>> CpuCore(nr=0).mistakes()
        [('nr', 'must be at least 1, got 0')]
        """
        return mistakes_of(self)

    def refusal(self, model: Model) -> str | None:
        """Why this core cannot run the model, in a sentence; None if it can."""
        return refusal(model)
