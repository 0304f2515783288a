"""What a machine answers about kernels of sparse layers and of fused operations: programs, and what a run came to.

Methods and parameters are names with a sentence each; nobody outside the machine's folder needs to know how its kernels
work. A machine without such kernels has no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from lstmsim.base.records import record
from lstmsim.program.trace import Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lstmsim.model.fusion.graph import Graph
    from lstmsim.model.fusion.plan import FusionDevice, PlannedKernel
    from lstmsim.model.sparse.csr import Csr
    from lstmsim.program.flat import FlatProgram
    from lstmsim.program.flatten import FlatNames


@dataclass(frozen=True, eq=False)
class SparseTask:
    """One sparse product.

    kernel: `spmv` (y = A x), `spmm` (C = A B) or `sddmm` (D = (A B) o C).
    method: how, a name of `SparseKernels.methods`.
    matrix: the sparse matrix: A, of `sddmm` C.
    operands: the dense ones: x of shape (columns,), B of shape (columns, n), or A and B transposed.
    options: parameters of the kernel by name; those that are left out have their defaults.
    """

    kernel: str
    method: str
    matrix: Csr
    operands: tuple[NDArray[Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@record
class Variant:
    """Another way to do the same, for a table.

    name: of its row.
    method: as in `SparseTask`.
    options: instead of those of the task.
    note: what is and is not in its cycles, where it does not do all of the product.
    """

    name: str
    method: str
    options: Mapping[str, Any]
    note: str = ""


@record
class Settings:
    """Parameters of a method whose values a search simulates.

    together: all combinations of these values.
    alone: further parameters; they and those of `together` are changed one at a time, from the fastest combination on.
    """

    together: Mapping[str, tuple[Any, ...]]
    alone: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, eq=False)
class SparseWork:
    """A product that is ready to run.

    flat, names: the program.
    result: what the schedule computes; None if it computes nothing of its own (a dense baseline).
    own: what the machine keeps for the figures.
    remarks: sentences on what the parameters mean here.
    """

    flat: FlatProgram
    names: FlatNames
    result: NDArray[Any] | None
    own: Any
    remarks: tuple[str, ...] = ()


@record
class KernelSpan:
    """When a kernel ran.

    name: of the kernel.
    blocks: how many it has.
    arrives: the cycle in which its blocks come.
    ends: the cycle in which the last one has ended.
    """

    name: str
    blocks: int
    arrives: int
    ends: int

    @property
    def cycles(self) -> int:
        """From its blocks' arrival to its end, without its launch."""
        return self.ends - self.arrives


@record
class ArrayLoads:
    """What was read of one array.

    array: its name.
    requests: instructions that load from it.
    sectors: from each level of memory, by its name, the nearest first.
    """

    array: str
    requests: int
    sectors: Mapping[str, int]


@record
class SparseFigures:
    """What a run came to.

    makespan: cycles from the first launch to the end.
    kernels: in order.
    busy: issue cycles of each core.
    accounts: cycles by name over all cores; they add up to `account_cycles`.
    account_cycles: issue slots of all cores times the makespan.
    loads: of each array.
    counts: what was counted, by name; `meanings` of the machine says what each is.
    macs: useful multiply-accumulates.
    peak: multiply-accumulates that the chip can do in a cycle.
    options: the parameters that were used, with their defaults.
    by_rule: names of those that were not given, and that a rule chose by the matrix and the chip.
    blocks: each block's core, cycle of its placing and of its end, for pictures.
    """

    makespan: int
    kernels: tuple[KernelSpan, ...]
    busy: tuple[int, ...]
    accounts: Mapping[str, int]
    account_cycles: int
    loads: tuple[ArrayLoads, ...]
    counts: Mapping[str, float]
    macs: int
    peak: int
    options: Mapping[str, Any]
    by_rule: tuple[str, ...] = ()
    blocks: tuple[tuple[int, int, int], ...] = ()

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


class SparseKernels(Protocol):
    """The kernels of a machine.

    methods: of each kernel its methods, with a sentence on each; the first one is the default.
    left_out: sentences on what is not modelled.
    meanings: what each name among the counts means.
    """

    methods: Mapping[str, Mapping[str, str]]
    left_out: Sequence[str]
    meanings: Mapping[str, str]

    def parameters(self, kernel: str, method: str) -> Mapping[str, Any]:
        """The parameters of a method with their defaults; None: the default depends on the matrix."""

    def lower(self, chip: Any, task: SparseTask) -> SparseWork:
        """Make a program of a product; `InputError` if parameters do not fit."""

    def figures(self, chip: Any, task: SparseTask, work: SparseWork, totals: Totals) -> SparseFigures:
        """What the run of a program came to."""

    def choices(self, chip: Any, task: SparseTask) -> Sequence[Variant]:
        """Ways of which the fastest is the task, the first of equals; empty if the task says it all."""

    def settings(self, chip: Any, task: SparseTask) -> Settings:
        """What a search for the fastest setting of a task simulates; what the task sets is not among it."""

    def baselines(self, chip: Any, task: SparseTask) -> Sequence[Variant]:
        """What a fair table must contain beside a task, without the task itself."""

    def ablations(self, chip: Any, task: SparseTask) -> Sequence[Variant]:
        """The task with each mechanism off in turn; the first row is what the others are measured by."""


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
