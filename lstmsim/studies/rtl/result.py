"""Generated hardware that was written, and its comparison with the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lstmsim.base.folder import Written
from lstmsim.machines.rtl import Event
from lstmsim.report.results import Table
from lstmsim.studies.rtl.comparison import Compared
from lstmsim.studies.rtl.synthesis import Synthesis
from lstmsim.studies.simulate.run import Run

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event, GeneratedHardware
    from lstmsim.studies.rtl.simulators import Simulator


@dataclass(frozen=True, eq=False)
class Verified:
    """Generated hardware, simulated and compared.

    simulator: what simulated it.
    compared: what is equal, and the first differences.
    log: all events of the hardware.
    compile_seconds, run_seconds: how long compiling and running took.
    """

    simulator: Simulator
    compared: Compared
    log: tuple[Event, ...]
    compile_seconds: float
    run_seconds: float

    @property
    def equal(self) -> bool:
        """Whether every line of the log is what the simulator says."""
        return not self.compared.differences


@dataclass(frozen=True, eq=False)
class RtlReport(Table, forms="lstmsim.studies.rtl.report"):
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
