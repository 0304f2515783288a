"""The contract that every machine fills in, once, in its own folder.

Everybody else asks this contract and never which machine it is: files, sweeps, explanations, devices, the replay of a
trace, reports and pages. A method that a machine leaves out says what it means that the machine has no answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from lstmsim.errors import InputError, Mistake
from lstmsim.program.program import Program
from lstmsim.targets.assembly import check_cores
from lstmsim.targets.entries import Entries
from lstmsim.targets.fidelity import Fidelity
from lstmsim.targets.sizes import PerStep
from lstmsim.workload.model import Model
from lstmsim.workload.scenario import Job, Scenario

if TYPE_CHECKING:
    # numpy takes longer to load than a machine needs to answer whoever asks for none of these
    from lstmsim.numerics.golden import NetworkRun
    from lstmsim.numerics.jobs import JobNumbers
    from lstmsim.program.trace import Trace
    from lstmsim.targets.array_search import ArraySearch
    from lstmsim.targets.change import Change
    from lstmsim.targets.hardware import Hardware

__all__ = ["StructuralModel", "Target"]


class StructuralModel(Protocol):
    """A machine's structure, which executes a trace on real numbers and takes nothing but the trace on trust."""

    def __call__(
        self,
        scenario: Scenario,
        program: Program,
        trace: Trace,
        numbers: Mapping[int, JobNumbers],
        progress: Callable[[int, int], None] | None = None,
    ) -> Mapping[int, NetworkRun]:
        """What the jobs in `numbers` computed, with errors and arguments as `lstmsim.replay.replay` has them."""


class Target(Entries, ABC):
    """One kind of machine.

    kind: the word for it in a chip's file.
    title: its name for people.
    fidelity: what its cycles are exact against, and what is assumed.
    chip, core and the like: as in `lstmsim.targets.entries.Entries`.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    fidelity: ClassVar[Fidelity]

    @abstractmethod
    def lower(self, chip: Any, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip; see `lstmsim.targets.lower`."""

    def check(self, chip: Any, job: Job) -> None:
        """`InputError` if the chip cannot run the job: a batch or a split that the machine has not, or no able core."""
        if job.batch != 1 and not self.batches:
            text = f"a {self.title} has no batching (batch inputs are jobs of their own), got {job.batch}"
            raise InputError(Mistake(f"job {job.name}: batch", text))
        if job.split and not self.splits:
            raise InputError(Mistake(f"job {job.name}: split", f"a {self.title} runs a job on one core: leave it out"))
        check_cores(chip.cores, job)

    @abstractmethod
    def per_step(
        self, cores: Sequence[Any], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job.

        cores: the distinct cores that it may run on and that can run it, at least one. batch: of how many inferences.
        split: how it is split (a key of `lstmsim.workload.scenario.SPLITS`), empty: not. members: over how many cores.
        """

    def structural_model(self) -> StructuralModel | None:
        """What executes the machine's traces on real numbers; None: nothing does, its numbers cannot be checked."""
        return None

    def hardware(self) -> Hardware | None:
        """What its cores are built of; None: nothing that could be counted on a device, or had an energy."""
        return None

    def chip_counts(self, chip: Any) -> Mapping[str, int]:
        """What a sweep shows of a chip beside its multipliers, each a sum over its cores: `threads`, `tail_width`
        (elements that all tails take in a cycle), `banks` (accumulator banks); without what it has not."""
        return {}

    def adders(self, chip: Any) -> int:
        """Adders of the trees and accumulators of all cores; 0 of a machine without any."""
        return 0

    def changes(self, chip: Any, jobs: Sequence[Job]) -> Sequence[Change]:
        """Changes to the chip or its jobs that are worth a try, the most telling first; an explanation simulates them.
        None: it has nothing to propose."""
        return ()

    def array_search(self) -> ArraySearch | None:
        """What a search of the best (EP, VP) needs to know; None: the machine has no array with EP and VP."""
        return None

    def beside_cores(self, chip: Any, jobs: Sequence[Job]) -> tuple[str, ...]:
        """What the cores share, as far as these jobs use it, in sentences."""
        return ()
