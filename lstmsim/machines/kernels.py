"""Tasks, programs and figures of kernels for sparse products and for fused operations.

A machine that runs such kernels has a module `sparse`, or `fusion`, of plain functions in its folder, which
`lstmsim.machines.registry.capability` finds. Methods and parameters are names with a sentence each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lstmsim.base.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lstmsim.model.sparse.csr import Csr
    from lstmsim.program.flat import FlatProgram
    from lstmsim.program.flatten import FlatNames


@dataclass(frozen=True, eq=False)
class SparseTask:
    """One sparse product."""

    kernel: str  # `spmv` (y = A x), `spmm` (C = A B) or `sddmm` (D = (A B) o C)
    method: str  # how, a name of the machine's methods
    matrix: Csr  # the sparse matrix: A, of `sddmm` C
    # the dense ones: x of shape (columns,), B of shape (columns, n), or A and B transposed
    operands: tuple[NDArray[Any], ...]
    # parameters of the kernel by name; those that are left out have their defaults
    options: Mapping[str, Any] = field(default_factory=dict)


@record
class Variant:
    """Another way to do the same, for a table."""

    name: str  # of its row
    method: str  # as in `SparseTask`
    options: Mapping[str, Any]  # instead of those of the task
    note: str = ""  # what is and is not in its cycles, where it does not do all of the product


@record
class Settings:
    """Parameters of a method whose values a search simulates."""

    together: Mapping[str, tuple[Any, ...]]  # all combinations of these values
    # further parameters; they and those of `together` are changed one at a time, from the fastest combination on
    alone: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class KernelWork:
    """A program of kernels that is ready to run."""

    flat: FlatProgram  # flat, names: the program
    names: FlatNames
    own: Any  # what the machine keeps for the figures
    # what the schedule computes; None if it computes nothing of its own (a dense baseline)
    result: NDArray[Any] | None = None
    remarks: tuple[str, ...] = ()  # sentences on what the parameters mean here


@record
class KernelSpan:
    """When a kernel ran."""

    name: str  # of the kernel
    blocks: int  # how many it has
    arrives: int  # the cycle in which its blocks come
    ends: int  # the cycle in which the last one has ended

    @property
    def cycles(self) -> int:
        """From its blocks' arrival to its end, without its launch."""
        return self.ends - self.arrives


@record
class ArrayLoads:
    """What was read of one array."""

    array: str  # its name
    requests: int  # instructions that load from it
    sectors: Mapping[str, int]  # from each level of memory, by its name, the nearest first


@record
class KernelFigures:
    """The figures of a run."""

    makespan: int  # cycles from the first launch to the end
    kernels: tuple[KernelSpan, ...]  # in order
    busy: tuple[int, ...]  # issue cycles of each core
    accounts: Mapping[str, int]  # cycles by name over all cores; they add up to `account_cycles`
    account_cycles: int  # issue slots of all cores times the makespan
    blocks: tuple[tuple[int, int, int], ...]  # each block's core, cycle of its placing and of its end, for pictures
    counts: Mapping[str, float]  # what was counted, by name


@record
class SparseFigures(KernelFigures):
    """The figures of the run of a sparse product."""

    loads: tuple[ArrayLoads, ...]  # of each array
    macs: int  # useful multiply-accumulates
    peak: int  # multiply-accumulates that the chip can do in a cycle
    options: Mapping[str, Any]  # the parameters that were used, with their defaults
    by_rule: tuple[
        str, ...
    ] = ()  # names of those that were not given, and that a rule chose by the matrix and the chip

    @property
    def span(self) -> int:
        """Cycles of all kernels without their launches."""
        return sum(each.cycles for each in self.kernels)

    @property
    def imbalance(self) -> float:
        """The most issue cycles of a core over their mean; 1 if nothing was issued."""
        total = sum(self.busy)
        return max(self.busy) * len(self.busy) / total if total else 1.0

    @property
    def utilization(self) -> float:
        """Useful multiply-accumulates over those that the chip could have done."""
        return self.macs / (self.peak * self.makespan) if self.makespan else 0.0


@record
class FusedFigures(KernelFigures):
    """The figures of the run of fused kernels."""

    launch: int  # cycles of a launch
    l2_bytes: int  # between all cores and L2, stores included
    dram_bytes: int  # between L2 and DRAM: what L2 has not
