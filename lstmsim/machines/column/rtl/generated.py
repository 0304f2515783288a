"""The column-wise NPU as generated hardware: all its answers to the neutral question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files
from types import MappingProxyType
from typing import ClassVar

from lstmsim.base.errors import Mistake
from lstmsim.machines.column.rtl.begins import begins
from lstmsim.machines.column.rtl.events import events_of, words_of
from lstmsim.machines.column.rtl.headers import headers, inlined, localparams
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.rtl.planning import design as plan_design
from lstmsim.machines.column.rtl.readme import readme
from lstmsim.machines.column.rtl.subset import refusals
from lstmsim.machines.column.rtl.tables import config
from lstmsim.machines.column.rtl.unexercised import never_done, never_seen_numbers
from lstmsim.machines.column.rtl.words import too_large
from lstmsim.machines.column.rtl.written import written_files
from lstmsim.machines.rtl import Event, GeneratedHardware
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.recorded import Values
from lstmsim.model.precision import Precision
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

__all__ = ["GENERATED"]


#: Latency, the least with which block memories can be used, and for what.
_ASYNCHRONOUS = (
    ("read", 1, "weights, frames and vectors are"),
    ("convert", 1, "constants of the adapters are"),
    ("activation", 2, "activation tables are"),
)


class _ColumnHardware(GeneratedHardware):
    """The column-wise NPU as Verilog; docs/rtl.md says what is built."""

    top: ClassVar[str] = "npu_top"
    testbench: ClassVar[str] = "npu_tb"
    timing_define: ClassVar[str] = "NPU_TIMING_ONLY"
    parts: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "array": "array",
            "adapter": "adapter",
            "pick": "adapter",
            "constant_memory": "adapter",
            "weight_memory": "weights",
            "frame_memory": "frames",
            "datapath": "vectors",
            "lanes": "lanes",
            "issue": "issue",
            "tail": "tail control",
            "dispatch": "dispatch",
        }
    )

    def refusals(self, scenario: Scenario, precision: Precision | None) -> list[Mistake]:
        """Why a scenario is outside the subset."""
        mistakes = refusals(scenario, precision)
        return mistakes if mistakes or precision is None else too_large(plan_design(scenario, precision))

    def design(
        self, scenario: Scenario, precision: Precision, numbers: Mapping[int, JobNumbers] | None = None
    ) -> Design:
        """Plan the hardware of a scenario."""
        return plan_design(scenario, precision, numbers)

    def synthesis_remarks(self, design: Design) -> tuple[str, ...]:
        """Multipliers that no row block takes; latencies with which memories are of logic and not of blocks."""
        remarks = []
        for plan in design.cores:
            built = plan.rows * plan.core.ep
            if built < plan.core.npe:
                text = f"{built} multipliers are built, because no row block takes more; lstmsim fit counts all"
                remarks.append(f"chip.cores.{plan.number}.npe {plan.core.npe}: {text}")
            for key, least, what in _ASYNCHRONOUS:
                cycles = getattr(plan.core.latency, key)
                if cycles < least:
                    place = f"chip.cores.{plan.number}.latency.{key}"
                    remarks.append(f"{place} {cycles}: {what} read without a register, so no block memory takes them")
        return tuple(remarks)

    def posted(self, design: Design) -> tuple[int, ...]:
        """The jobs in posting order, by their places in the scenario."""
        return tuple(job.index for job in design.jobs)

    def files(
        self, design: Design, numbers: Mapping[int, JobNumbers] | None, version: str, deep: bool = False
    ) -> Mapping[str, str]:
        """The files of a design."""
        fixed, sizes = _fixed(), config(design)
        words = fixed.pop("rtl/npu_words.vh")
        known = localparams(sizes + words + begins(design))
        if numbers is None:
            own = {"README.md": readme(design, version, None)}
        else:
            own = written_files(design, numbers, version, deep)
            sizes += own.pop("rtl/npu_config.vh")
            known |= localparams(sizes)
            own |= {path: inlined(own[path], known) for path in ("rtl/npu_pick.v", "rtl/npu_tail_lane.v")}
        return {**fixed, **headers(fixed, known), "rtl/npu_config.vh": sizes, **own}

    def events(
        self,
        design: Design,
        program: Program,
        trace: Trace,
        names: Sequence[Sequence[str]],
        runs: Mapping[int, NetworkRun] | None,
        values: Mapping[int, Values] | None = None,
    ) -> tuple[Event, ...]:
        """What the log must say."""
        return events_of(design, program, trace, names, runs, values)

    def unexercised(
        self,
        design: Design,
        program: Program,
        trace: Trace,
        events: Sequence[Event],
        numbers: Mapping[int, JobNumbers] | None,
        values: Mapping[int, Values] | None,
    ) -> tuple[str, ...]:
        """What a run never did, of its control and of its numbers."""
        seen = () if numbers is None else never_seen_numbers(numbers, values)
        return (*never_done(design, program, trace, events), *seen)

    def words(self, design: Design, event: Event) -> str:
        """An event in words."""
        return words_of(design, event)


def _fixed() -> dict[str, str]:
    """The files that are the same for every design."""
    folder = package_files("lstmsim.machines.column.rtl") / "verilog"
    modules = {f"rtl/{each.name}": each for each in folder.iterdir() if each.name.endswith((".v", ".vh"))}
    bench = {f"sim/{each.name}": each for each in (folder / "sim").iterdir() if each.name.endswith((".v", ".sh"))}
    return {path: each.read_text(encoding="utf-8") for path, each in sorted({**modules, **bench}.items())}


GENERATED = _ColumnHardware()
