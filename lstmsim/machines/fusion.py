"""What a machine answers about fused kernels: its numbers for plans, what runs, what a run came to.

A machine without such kernels has no answer (`Target.fused_kernels` is None).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from lstmsim.base.records import record
from lstmsim.machines.sparse import KernelSpan
from lstmsim.program.totals import Totals

if TYPE_CHECKING:
    from lstmsim.model.fusion.device import FusionDevice
    from lstmsim.model.fusion.graph import Graph
    from lstmsim.model.fusion.plan import PlannedKernel
    from lstmsim.program.flat import FlatProgram
    from lstmsim.program.flat_names import FlatNames

__all__ = ["FusedFigures", "FusedKernels", "FusedWork"]


@dataclass(frozen=True, eq=False)
class FusedWork:
    """Kernels that are ready to run, one after the other.

    flat, names: the program.
    own: what the machine keeps for the figures.
    """

    flat: FlatProgram
    names: FlatNames
    own: Any


@record
class FusedFigures:
    """What a run came to.

    makespan: cycles from the first launch to the end.
    launch: cycles of a launch.
    kernels: in order.
    busy: issue cycles of each core.
    accounts: cycles by name over all cores; they add up to `account_cycles`.
    account_cycles: issue slots of all cores times the makespan.
    counts: what was counted, by name: `load_requests`, `requests`, `l1_sectors`, `l2_sectors`, `dram_sectors`.
    l2_bytes: between all cores and L2, stores included.
    dram_bytes: between L2 and DRAM: what L2 has not.
    blocks: each block's core, cycle of its placing and of its end, for pictures.
    """

    makespan: int
    launch: int
    kernels: tuple[KernelSpan, ...]
    busy: tuple[int, ...]
    accounts: Mapping[str, int]
    account_cycles: int
    counts: Mapping[str, int]
    l2_bytes: int
    dram_bytes: int
    blocks: tuple[tuple[int, int, int], ...] = ()


class FusedKernels(Protocol):
    """The fused kernels of a machine.

    settings: settings of the pass that a user may give, with what each means.
    left_out: what is not modelled, a few words each.
    """

    settings: Mapping[str, str]
    left_out: Sequence[str]

    def numbers(self, chip: Any, settings: Mapping[str, Any]) -> FusionDevice:
        """The numbers of a chip that plans need.

        chip: the chip.
        settings: settings of the pass by name, in place of their defaults; `InputError` if one is none or out of range.
        """

    def lower(self, chip: Any, graph: Graph, kernels: Sequence[PlannedKernel], name: str) -> FusedWork:
        """Make a program of planned kernels, which run in the given order.

        chip: the chip.
        graph: what the kernels are of.
        kernels: in order; products and other compute-intensive nodes between them are not among them.
        name: of the whole.

        `InputError` if one does not fit; `DeadlockError` if blocks that meet are not all there at once.
        """

    def figures(self, chip: Any, work: FusedWork, totals: Totals) -> FusedFigures:
        """What the run of a program came to."""
