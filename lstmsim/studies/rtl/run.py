"""Generated hardware as a function: written, simulated, and compared with the simulator event for event."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lstmsim.base.folder import Written, write_folder
from lstmsim.base.records import record
from lstmsim.report.results import Table
from lstmsim.studies.rtl.log import log_text
from lstmsim.studies.rtl.runs import (
    Golden,
    Verified,
    golden_of,
    hardware_of,
    names_of,
    refuse_folder,
    refuse_options,
    synthesized,
    verified,
)
from lstmsim.studies.rtl.simulators import simulator_of
from lstmsim.studies.rtl.synthesis import Synthesis
from lstmsim.studies.shared.arguments import refuse, wrong_path, wrong_whole
from lstmsim.studies.shared.loading import Path, Source
from lstmsim.studies.simulate.run import Run, run

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event, GeneratedHardware

__all__ = ["GOLDEN", "RtlReport", "run_rtl"]

#: What the simulator says, in the folder of a design.
GOLDEN = "golden/events.txt"


@dataclass(frozen=True, eq=False)
class RtlReport(Table, forms="lstmsim.studies.rtl.text"):
    """A scenario's chip, written as RTL.

    run: the simulation that it is compared with.
    hardware, design: how the machine is written, and what is built for this scenario.
    folder: where its files are.
    written: what was done to that folder.
    events: what the simulator says, in the order of the log.
    with_numbers: whether the numbers of the jobs are part of it; else cycles alone.
    deep: whether numbers within the tail are, too.
    unexercised: what the run never did, so that its comparison shows nothing of it.
    verified: the comparison with a simulation of the RTL; None: it was not asked for.
    synthesis: what Yosys made of it; None: it was not asked for.
    remarks: further sentences.
    """

    run: Run
    hardware: GeneratedHardware
    design: Any
    folder: str
    written: Written
    events: tuple[Event, ...]
    with_numbers: bool
    deep: bool
    unexercised: tuple[str, ...]
    verified: Verified | None
    synthesis: Synthesis | None
    remarks: tuple[str, ...]

    @property
    def wrong(self) -> str:
        """The sentence for RTL that does not do what the simulator says; empty: it does, or nobody has looked."""
        if self.verified is None or self.verified.equal:
            return ""
        first = min(self.verified.compared.differences, key=lambda each: each.cycle)
        return f"the RTL in {self.folder} differs from the simulator, first in cycle {first.cycle:,}"


def run_rtl(
    scenario: Source,
    folder: Path,
    *,
    verify: bool = False,
    simulator: str = "icarus",
    timing_only: bool = False,
    random_weights: int | None = None,
    deep: bool | None = None,
    synth: str | None = None,
    replace: bool = False,
    vcd: Path | None = None,
    overrides: Sequence[str] = (),
    engine: str = "fast",
) -> RtlReport:
    """Write a scenario's chip as Verilog, and prove by simulation that it does what lstmsim says.

    scenario: a path, a mapping, or a `Scenario`.
    folder: gets the files; what stands there and is not from lstmsim stays, or is refused.
    verify: whether the RTL is simulated and compared: every issue, turn, admission, finish, name of a cycle, and h.
    simulator: `icarus`, or `verilator` for long runs.
    timing_only: whether numbers are left out: no weights are needed, no h is computed.
    random_weights: the seed to draw weights with, for models that have none.
    deep: whether numbers within the tail (adapted sums, states) are compared, too; None: where the run is short.
    synth: a family of FPGAs (`ecp5`, `xilinx`, `intel-alm`) whose cells Yosys counts; None: none.
    replace: whether files are replaced that were changed since lstmsim wrote them; else they stay and are simulated.
    vcd: a file for the signals of the RTL with lstmsim's events beside them; only with `verify`.
    overrides: texts like `"chip.cores.0.ep=16"`.
    engine: a key of `lstmsim.engines.ENGINES`; all give the same cycles.

    `InputError` before a file is written: for a scenario that cannot be built (with the key), without weights, without
    the simulator. A difference is no error: `RtlReport.verified.equal` tells.

    >>> run_rtl({"chip": "brainwave-s10", "jobs": [{"model": "lstm-256", "steps": 2}]}, "out")
    Traceback (most recent call last):
    lstmsim.InputError: chip brainwave-s10: its machine, the row-wise NPU, cannot be written as RTL; ...
    """
    refuse(wrong_path("folder", folder), wrong_whole("random_weights", random_weights, 0))
    refuse_options(verify, vcd, timing_only, random_weights, synth, deep)
    refuse_folder(os.fspath(folder), verify)
    program = simulator_of(simulator) if verify else None
    result = run(scenario, engine=engine, overrides=overrides)
    hardware, name = hardware_of(result), os.fspath(folder)
    refuse(hardware.refusals(result.scenario, None if timing_only else result.scenario.precision))
    built = _built(result, hardware, None if timing_only else golden_of(result, random_weights, deep))
    written = write_folder(name, built.files, replace=replace)
    return RtlReport(
        run=result,
        hardware=hardware,
        design=built.design,
        folder=name,
        written=written,
        events=built.events,
        with_numbers=not timing_only,
        deep=built.deep,
        unexercised=built.unexercised,
        verified=verified(program, hardware, name, built.files, built.events, timing_only, vcd),
        synthesis=None if synth is None else synthesized(hardware, name, built.files, synth),
        remarks=_remarks(name, written) + (() if synth is None else hardware.synthesis_remarks(built.design)),
    )


@record
class _Built:
    """What is written, and what is known of it before anything is simulated as RTL."""

    design: Any
    events: tuple[Event, ...]
    unexercised: tuple[str, ...]
    deep: bool
    files: Mapping[str, str]


def _built(result: Run, hardware: GeneratedHardware, golden: Golden | None) -> _Built:
    """Plan the hardware, and give its files and what the simulator says of it."""
    from lstmsim import __version__

    numbers, runs, values = (None,) * 3 if golden is None else (golden.numbers, golden.runs, golden.values)
    design = hardware.design(result.scenario, result.scenario.precision, numbers)
    events = hardware.events(design, result.program, result.trace, names_of(result), runs, values)
    missed = hardware.unexercised(design, result.program, result.trace, events, numbers, values)
    files = hardware.files(design, numbers, __version__, values is not None)
    return _Built(design, events, missed, values is not None, {**files, GOLDEN: log_text(events)})


def _remarks(folder: str, written: Written) -> tuple[str, ...]:
    kept = (
        f"kept {os.path.join(folder, each)}, which was changed since lstmsim wrote it; --replace writes it anew"
        for each in written.kept
    )
    removed = (f"removed {os.path.join(folder, each)}, which is no longer needed" for each in written.removed)
    return (*kept, *removed)
