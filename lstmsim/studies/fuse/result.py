"""A graph whose memory-intensive part was fused, and the ways to cut it into kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import TYPE_CHECKING

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.units import cycles_to_us
from lstmsim.machines.kernels import FusedFigures, KernelWork
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.interpreter.checks import TOLERANCE, Difference
from lstmsim.model.fusion.plan import FusionDevice, FusionPlan, PlannedKernel, up
from lstmsim.model.fusion.schemes import Counts
from lstmsim.report.results import Table
from lstmsim.report.stamp import Stamp
from lstmsim.studies.fuse.asked import STITCH, Asked
from lstmsim.studies.program.run import timeline_of
from lstmsim.studies.shared.stamp import stamp_of

if TYPE_CHECKING:
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.model.scenario import Chip


@record
class Checked:
    """What kernels computed, compared with numpy.

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
        off = f"a value of {far.node} is off by {far.largest:.2g} of max(1, |numpy's|)"
        return f"{off}, the largest of {far.elements:,} differences; up to {TOLERANCE:g} is equal"


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
    work: KernelWork | None = None
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
        """The mean of a figure over the kernels, by their cycles if these are known."""
        if self.figures is None or not sum(each.cycles for each in self.figures.kernels):
            weights = [1] * len(self.kernels)
        else:
            weights = [each.cycles for each in self.figures.kernels]
        mean = sum(w * of(each) for w, each in zip(weights, self.kernels, strict=True)) / max(1, sum(weights))
        # the mean of equal shares is that share, however they were weighed
        return round(mean, 12)


@dataclass(frozen=True, eq=False)
class FusionReport(Table, forms="lstmsim.studies.fuse.report"):
    """A graph whose memory-intensive part was fused.

    source: where the graph is from.
    asked: the graph, the chip with its numbers and settings of the pass, the engine that ran.
    plan: the plan.
    rows: the ways to cut the graph that were asked for, a mode each.
    mode: the one of them that is reported in full.
    other: the plan under the other rule for splits, if its kernels differ; None: they do not, or `stitch` was left out.
    ablations: the pass with its mechanisms one after the other, in the order of the paper.
    remarks: further sentences.
    """

    source: str
    asked: Asked
    plan: FusionPlan
    rows: tuple[FusionRow, ...]
    mode: str
    other: FusionRow | None
    ablations: tuple[FusionRow, ...]
    remarks: tuple[str, ...]

    @property
    def stamp(self) -> Stamp:
        """What the cycles are exact against, and which keys are assumptions."""
        return stamp_of(self.chip)

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.asked.graph

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.asked.chip

    @property
    def engine(self) -> str:
        """The engine that ran."""
        return self.asked.engine

    @property
    def reported(self) -> FusionRow:
        """The row that is reported in full."""
        return next(each for each in self.rows if each.name == self.mode)

    @property
    def stitched(self) -> FusionRow | None:
        """The row of the pass; None: it was not asked for."""
        return next((each for each in self.rows if each.name == STITCH), None)

    @property
    def strongest(self) -> FusionRow | None:
        """The baseline that takes the fewest cycles, the first of equals; None: none was simulated."""
        some = [each for each in self.rows if each.name != STITCH and each.cycles is not None]
        return min(some, key=lambda each: each.cycles or 0, default=None)

    @property
    def ratio(self) -> float | None:
        """Cycles of the pass over those of the strongest baseline: above 1 the pass loses; None: one is not known."""
        return None if self.stitched is None else self.ratio_of(self.stitched)

    def ratio_of(self, row: FusionRow) -> float | None:
        """Cycles of a row over those of the strongest baseline; None: one is not known."""
        base = self.strongest
        if base is None or base.cycles is None or row.cycles is None:
            return None
        return row.cycles / base.cycles

    @property
    def executed(self) -> dict[str, Checked]:
        """What each row that was executed computed, by the row's name; steps of the ablation may be rows themselves."""
        rows = [*self.rows, *([] if self.other is None else [self.other]), *self.ablations]
        return {each.name: each.checked for each in rows if each.checked is not None}

    @property
    def wrong(self) -> tuple[str, ...]:
        """A sentence for each row whose kernels do not compute what numpy does, or cannot run; none: all is right."""
        return tuple(
            f"{name} is WRONG, please report it: {each.why}" for name, each in self.executed.items() if not each.equal
        )

    @cached_property
    def timeline(self) -> Timeline:
        """What happened cycle by cycle in the row that is reported in full, for trace files; it runs once more for it.

        `InputError` if it was not simulated, or has too many operations.
        """
        work = simulated_row(self, "trace").work
        assert work is not None
        return timeline_of(work.flat, work.names, self.chip, self.engine)


def simulated_row(report: FusionReport, place: str) -> FusionRow:
    """The row that is reported in full; `InputError` if it has no cycles."""
    row = report.reported
    if row.figures is None:
        none = "" if row.kernels else "there is no kernel: the graph has no memory-intensive operation"
        raise InputError(Mistake(place, none or row.refused or f"{row.name} was not simulated: ask for cycles"))
    return row
