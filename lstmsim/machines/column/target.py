"""The column-wise NPU as all other rooms see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from lstmsim.machines.column import lowering
from lstmsim.machines.column.entries import ColumnEntries
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.fidelity import Fidelity
from lstmsim.machines.sizes import PerStep
from lstmsim.machines.target import StructuralModel, Target
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import Program

if TYPE_CHECKING:
    from lstmsim.machines.array_search import ArraySearch
    from lstmsim.machines.change import Change
    from lstmsim.machines.hardware import Hardware
    from lstmsim.machines.rtl import GeneratedHardware

__all__ = ["TARGET"]


class _ColumnTarget(ColumnEntries, Target):
    """The column-wise NPU."""

    counts: ClassVar[tuple[str, ...]] = ("threads", "tail_width", "banks")
    fidelity: ClassVar[Fidelity] = Fidelity(
        exact=(
            "its own timing contract (docs/timing.md), cycle by cycle: both engines, a model in the tests that steps "
            "through every cycle, and recorded cases of an independent model",
            "numbers bit by bit: every trace can be executed on real weights",
        ),
        assumed=(
            "all latencies, widths of the tail and banks, for the patent gives none: chosen so that both of its stated "
            "orderings of (EP, VP) come out; no measured machine stands behind the cycles",
        ),
    )

    def lower(self, chip: ColumnNpu, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """The Program of these jobs on that chip."""
        return lowering.lower(chip, jobs, templates)

    def check(self, chip: ColumnNpu, job: Job) -> None:
        """`InputError` if no core that the job may use can run it."""
        lowering.check(chip, job)

    def per_step(
        self, cores: Sequence[ColumnCore], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job."""
        return lowering.per_step(cores, model, batch, split, members)

    def structural_model(self) -> StructuralModel:
        """What executes a trace of this machine."""
        from lstmsim.machines.column.replay.walk import replay

        return replay

    def hardware(self) -> Hardware:
        """What its cores are built of."""
        from lstmsim.machines.column.hardware import HARDWARE

        return HARDWARE

    def generated_hardware(self) -> GeneratedHardware:
        """Verilog that does what is simulated."""
        from lstmsim.machines.column.rtl.generated import GENERATED

        return GENERATED

    def chip_counts(self, chip: ColumnNpu) -> Mapping[str, int]:
        """Each thread of a core has banks of its own."""
        return {
            "threads": sum(core.threads for core in chip.cores),
            "tail_width": sum(core.tail_width for core in chip.cores),
            "banks": sum(core.accumulator_banks * core.threads for core in chip.cores),
        }

    def adders(self, chip: ColumnNpu) -> int:
        """Per row `ep - 1` in its tree and one that accumulates.

        A core with `tree_inputs` has its trees built, whatever `ep` is set: `tree_inputs - 1` and an accumulator for
        each `tree_inputs` multipliers (a configurable tail takes its further sums from the tree's own adders).

        >>> TARGET.adders(ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=8),)))
        32
        """
        total = 0
        for core in chip.cores:
            rows, leaves = core.vp, core.ep
            if core.tree_inputs is not None:
                rows, leaves = core.npe // core.tree_inputs, core.tree_inputs
            total += rows * (leaves - 1) + rows
        return total

    def changes(self, chip: ColumnNpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """What lies around the cores, then the cores themselves."""
        from lstmsim.machines.column.what_if import changes

        return changes(chip, jobs)

    def order_changes(self, chip: ColumnNpu, jobs: Sequence[Job]) -> Sequence[Change]:
        """Fine-grained threads."""
        from lstmsim.machines.column.what_if import order_changes

        return order_changes(chip, jobs)

    def array_search(self) -> ArraySearch:
        """EP and VP of its array."""
        from lstmsim.machines.column.array_search import ARRAY_SEARCH

        return ARRAY_SEARCH

    def beside_cores(self, chip: ColumnNpu, jobs: Sequence[Job]) -> tuple[str, ...]:
        """The memory, and the links between cores where a job is split."""
        texts = []
        if chip.memory is not None:
            rate, prefetch = f"{chip.memory.gb_per_s:g} GB/s", f"prefetch_blocks {chip.memory.prefetch_blocks}"
            texts.append(f"Memory: {rate}, latency_cycles {chip.memory.latency_cycles}, {prefetch}.")
        if any(job.settled(len(chip.cores)).split for job in jobs):
            texts.append(f"Exchange: latency_cycles {chip.exchange.latency_cycles}, width {chip.exchange.width}.")
        return tuple(texts)


TARGET = _ColumnTarget()
