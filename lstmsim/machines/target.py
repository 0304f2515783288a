"""The contract that every machine fills in, once, in its own folder.

All other rooms ask this contract, and never ask which machine it is: files, sweeps, explanations, devices, the replay
of a trace, reports and pages. If a machine leaves a method out, the method here says what that means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from lstmsim.machines.entries import Entries
from lstmsim.machines.fidelity import Fidelity
from lstmsim.machines.sizes import PerStep
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program

if TYPE_CHECKING:
    # numpy takes long to load, and most callers ask for none of these
    from lstmsim.machines.array_search import ArraySearch
    from lstmsim.machines.change import Change
    from lstmsim.machines.fusion import FusedKernels
    from lstmsim.machines.gemm import GemmThreads
    from lstmsim.machines.hardware import Hardware
    from lstmsim.machines.rtl import GeneratedHardware
    from lstmsim.machines.sparse import SparseKernels
    from lstmsim.model.numerics.golden import NetworkRun
    from lstmsim.model.numerics.jobs import JobNumbers
    from lstmsim.model.planned import PlannedProducts
    from lstmsim.program.trace import Trace

__all__ = ["StructuralModel", "Target"]


class StructuralModel(Protocol):
    """A model of a machine's structure. It executes a trace on real numbers, and relies on the trace alone."""

    def __call__(
        self,
        scenario: Scenario,
        program: Program,
        trace: Trace,
        numbers: Mapping[int, JobNumbers],
        progress: Callable[[int, int], None] | None = None,
    ) -> Mapping[int, NetworkRun]:
        """The results of the jobs in `numbers`. Arguments and errors are those of `lstmsim.analysis.replay.replay`."""


class Target(Entries, ABC):
    """One kind of machine.

    fidelity: what its cycles agree with exactly, and what is assumed.
    counts: the names in `chip_counts`, each a column of sweeps.
    other_numbers: a sentence without a full stop on how its numbers are, if it does not compute in the fixed point of
        scenarios; empty: it does.
    kind, title, chip, core and the other class variables: as in `lstmsim.machines.entries.Entries`.
    """

    fidelity: ClassVar[Fidelity]
    counts: ClassVar[tuple[str, ...]] = ()
    other_numbers: ClassVar[str] = ""

    @abstractmethod
    def lower(self, chip: Any, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """Lower jobs to a Program, as `lstmsim.machines.lower`."""

    def check(self, chip: Any, job: Job) -> None:
        """`InputError` if the chip cannot run a job: the machine lacks what it asks for, or no core can run it."""
        self.check_job(chip.cores, job)

    @abstractmethod
    def per_step(
        self, cores: Sequence[Any], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job.

        cores: the distinct cores that may and can run the job, at least one.
        model: the network.
        batch: how many inferences the job has.
        split: how the job is split, a key of `lstmsim.model.scenario.SPLITS`; empty if it is not.
        members: over how many cores the job is split, or its threads are spread.
        """

    def structural_model(self) -> StructuralModel | None:
        """The model that executes traces of the machine on real numbers; None: its numbers cannot be checked."""
        return None

    def hardware(self) -> Hardware | None:
        """What the cores are built of; None: they cannot be counted on a device, and have no energy."""
        return None

    def chip_counts(self, chip: Any) -> Mapping[str, int]:
        """Counts of a chip that a sweep shows beside its multipliers, each a sum over the cores.

        The names are those of `counts`. Some mean the same on every machine that has them: `threads` are contexts,
        `tail_width` elements that all tails take in a cycle, `banks` accumulator banks. A chip leaves out what it does
        not have.
        """
        return {}

    def adders(self, chip: Any) -> int:
        """Adders in the trees and accumulators of all cores; 0 if the machine has none."""
        return 0

    def changes(self, chip: Any, jobs: Sequence[Job]) -> Sequence[Change]:
        """Changes to the chip or its jobs that are worth a try, the most telling first. An explanation simulates them.

        Empty: the machine has nothing to propose.
        """
        return ()

    def order_changes(self, chip: Any, jobs: Sequence[Job]) -> Sequence[Change]:
        """Changes of who goes first inside a core, as `changes`; an explanation tries them before all others.

        Orders of dispatch are no question to machines: explanations try them on every machine.
        """
        return ()

    def array_search(self) -> ArraySearch | None:
        """The answers for a search of the best (EP, VP); None: the machine has no array with EP and VP."""
        return None

    def sparse_kernels(self) -> SparseKernels | None:
        """The kernels for sparse matrices; None: the machine runs none."""
        return None

    def gemm_threads(self) -> GemmThreads | None:
        """The planner and the executor of threads for a matrix product; None: the machine has none."""
        return None

    def fused_kernels(self) -> FusedKernels | None:
        """Its kernels for fused parts of a graph; None: it has none."""
        return None

    def generated_hardware(self) -> GeneratedHardware | None:
        """How the machine is written as RTL; None: it is not."""
        return None

    def planned(self, chip: Any, jobs: Sequence[Job]) -> PlannedProducts | None:
        """How the products of jobs are spread over threads; None: the machine plans no threads for them."""
        return None

    def kernels(self, chip: Any, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Sentences on how the time steps of jobs were cut into kernels; empty: as the machine always does it."""
        return ()

    def begins_cold(self, chip: Any) -> bool:
        """Whether the first time step of a job loads weights that later steps have near: it is then no steady step.

        chip: one of this kind.
        """
        return False

    def element_bytes(self, chip: Any) -> int | None:
        """Bytes of an element of what is timed; None: cycles do not depend on the precision.

        chip: one of this kind.
        """
        return None

    def beside_cores(self, chip: Any, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Sentences on what the cores share, as far as these jobs use it."""
        return ()
