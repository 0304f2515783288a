"""Kernels of a graph, cut in one way: counted, executed on numbers, simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError
from lstmsim.base.records import record
from lstmsim.base.units import cycles_to_us
from lstmsim.machines.kernels import FusedFigures, FusedKernels, FusedWork
from lstmsim.model.fusion.counts import Counts, counted
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.interpreter.checks import TOLERANCE, Difference, difference_of_run
from lstmsim.model.fusion.interpreter.run import Fault
from lstmsim.model.fusion.plan import FusionDevice, PlannedKernel, up
from lstmsim.studies.program.flat_runs import totals_of_flat

if TYPE_CHECKING:
    from lstmsim.model.scenario import Chip

__all__ = ["Asked", "Checked", "FusionRow", "row_of"]

#: Most elements of all operations of a graph whose kernels are executed, or simulated, without being asked for: a few
#: seconds each.
MOST_EXECUTED, MOST_SIMULATED = 8_000_000, 4_000_000


@dataclass(frozen=True, eq=False)
class Asked:
    """A graph, where it runs, and what is wanted of each way to cut it.

    graph: the graph.
    fused: the fused kernels of the machine.
    chip: where it runs.
    device: the numbers of the chip that plans need.
    engine: a key of `lstmsim.engines.ENGINES`.
    cycles: whether kernels are simulated; None: if the graph is not too large.
    numbers: whether kernels are executed on numbers; None: if the graph is not too large.
    seed: of these numbers.
    """

    graph: Graph
    fused: FusedKernels
    chip: Chip
    device: FusionDevice
    engine: str
    cycles: bool | None = None
    numbers: bool | None = None
    seed: int = 0

    @cached_property
    def elements(self) -> int:
        """Elements of all memory-intensive operations: how long all takes follows from it."""
        return sum(each.size for each in self.graph.nodes if each.intensive)

    @property
    def simulates(self) -> bool:
        """Whether kernels are simulated."""
        return self.elements <= MOST_SIMULATED if self.cycles is None else self.cycles

    @property
    def executes(self) -> bool:
        """Whether kernels are executed on numbers."""
        return self.elements <= MOST_EXECUTED if self.numbers is None else self.numbers

    @property
    def not_simulated(self) -> str:
        """That nothing was simulated because the graph is large; empty: it was, or nobody wanted it."""
        if self.cycles is not None or self.simulates:
            return ""
        return f"nothing was simulated: {self._size} {MOST_SIMULATED:,}; ask for cycles (--cycles)"

    @property
    def not_executed(self) -> str:
        """That nothing was executed because the graph is large; empty: it was, or nobody wanted it."""
        if self.numbers is not None or self.executes:
            return ""
        return f"nothing was executed on numbers: {self._size} {MOST_EXECUTED:,}; ask for numbers (--numbers)"

    @property
    def _size(self) -> str:
        return f"the graph has {self.elements:,} elements in all, more than"


@record
class Checked:
    """What kernels computed, beside numpy.

    difference: how far they are from numpy; None: a kernel read what it may not read.
    fault: that fault in a sentence; empty: there was none.
    """

    difference: Difference | None
    fault: str = ""

    @property
    def equal(self) -> bool:
        """Whether the kernels computed what numpy does."""
        return self.difference is not None and self.difference.equal

    @property
    def why(self) -> str:
        """What is wrong, without a full stop; empty: nothing."""
        far = self.difference
        if far is None or far.equal:
            return self.fault
        if not isfinite(far.largest):
            return f"a value of {far.node} is finite only here or only in numpy"
        told = f"a value of {far.node} is off by {far.largest:.2g} of max(1, |numpy's|)"
        return f"{told}, the largest of {far.elements:,} differences; up to {TOLERANCE:g} is equal"


@dataclass(frozen=True, eq=False)
class FusionRow:
    """A way to cut a graph into kernels, and what it came to.

    name: what it is.
    device: the numbers and settings that it was made with.
    kernels: in the order in which they run.
    counts: bytes and evaluations.
    checked: what they computed; None: they were not executed.
    figures: what their run came to; None: they were not simulated.
    work: the program that ran; None as of `figures`.
    refused: why they were not simulated though it was asked for; empty: they were, or it was not.
    """

    name: str
    device: FusionDevice
    kernels: tuple[PlannedKernel, ...]
    counts: Counts
    checked: Checked | None
    figures: FusedFigures | None
    work: FusedWork | None = None
    refused: str = ""

    @property
    def cycles(self) -> int | None:
        """From the first launch to the end."""
        return None if self.figures is None else self.figures.makespan

    def us(self, frequency_mhz: float) -> float | None:
        """The same in microseconds."""
        return None if self.figures is None else cycles_to_us(self.figures.makespan, frequency_mhz)

    @property
    def launches(self) -> float | None:
        """The share of the time in which kernels are launched and nothing runs."""
        figures = self.figures
        if figures is None or not figures.makespan:
            return None
        return 1 - sum(each.cycles for each in figures.kernels) / figures.makespan

    @property
    def waves(self) -> int:
        """How often the device fills with blocks, over all kernels."""
        return sum(up(each.blocks, each.wave) for each in self.kernels)

    @property
    def grid_barriers(self) -> int:
        """How often all blocks of a kernel meet."""
        return sum(each.grid_barriers for each in self.kernels)

    def occupancy(self, kernel: PlannedKernel) -> float:
        """Warps of a kernel that are on the device at once, over all slots for warps."""
        warps = min(kernel.blocks, kernel.wave) * up(kernel.threads, self.device.warp)
        return warps / (self.device.sms * self.device.max_warps)

    def cores(self, kernel: PlannedKernel) -> float:
        """The share of the cores that get a block of a kernel."""
        return min(kernel.blocks, self.device.sms) / self.device.sms

    def mean(self, of: Callable[[PlannedKernel], float]) -> float:
        """The mean of a figure over the kernels, by their cycles if these are known.

        of: gives the figure of a kernel.
        """
        if self.figures is None or not sum(each.cycles for each in self.figures.kernels):
            weights = [1] * len(self.kernels)
        else:
            weights = [each.cycles for each in self.figures.kernels]
        mean = sum(w * of(each) for w, each in zip(weights, self.kernels, strict=True)) / max(1, sum(weights))
        # the mean of equal shares is that share, however they were weighed
        return round(mean, 12)


def row_of(asked: Asked, name: str, device: FusionDevice, kernels: Sequence[PlannedKernel]) -> FusionRow:
    """Count, execute and simulate kernels, as far as it is asked for.

    asked: where they run.
    name: of the row.
    device: the numbers that the kernels were planned with.
    kernels: all of the graph, in the order in which they run.
    """
    some = tuple(kernels)
    counts = counted(asked.graph, some)
    checked = _checked(asked, device, some) if asked.executes and some else None
    if not asked.simulates or not some:
        return FusionRow(name, device, some, counts, checked, None)
    try:
        work = asked.fused.lower(asked.chip, asked.graph, some, name)
    except InputError as error:
        return FusionRow(name, device, some, counts, checked, None, refused=str(error).replace("\n", "; "))
    figures = asked.fused.figures(asked.chip, work, totals_of_flat(work.flat, work.names, asked.engine))
    return FusionRow(name, device, some, counts, checked, figures, work)


def _checked(asked: Asked, device: FusionDevice, kernels: tuple[PlannedKernel, ...]) -> Checked:
    try:
        return Checked(difference_of_run(asked.graph, kernels, device, asked.seed))
    except Fault as fault:
        return Checked(None, str(fault))
