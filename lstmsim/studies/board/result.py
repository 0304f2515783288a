"""A run on a board, compared with what lstmsim says."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.machines.rtl import Event
from lstmsim.report.results import Result
from lstmsim.studies.rtl.result import Compared


@dataclass(frozen=True, eq=False)
class BoardReport(Result, forms="lstmsim.studies.board.report"):
    """A design that has run on a board.

    folder: where the design is.
    board: the board that it is written for.
    line: what it has run on.
    clock_mhz: the clock that was asked for, in MHz.
    cycles: how many cycles the run took.
    compared: what is equal, and the first differences.
    events: what the board has kept: admissions and finishes of jobs, and h.
    faults: why the run is incomplete, in sentences; empty: it is complete.
    resent: messages that had to be sent again.
    load_seconds, run_seconds: how long loading, and running with reading back, took.
    """

    folder: str
    board: str
    line: str
    clock_mhz: float
    cycles: int
    compared: Compared
    events: tuple[Event, ...]
    faults: tuple[str, ...]
    resent: int
    load_seconds: float
    run_seconds: float

    @property
    def equal(self) -> bool:
        """Whether the run is complete, and everything in it as lstmsim says."""
        return not self.faults and not self.compared.differences

    @property
    def microseconds(self) -> float:
        """How long the run takes at the clock that was asked for, in us."""
        return self.cycles / self.clock_mhz

    @property
    def wrong(self) -> str:
        """The sentence for a run that is not what lstmsim says; empty: it is."""
        if self.faults:
            return f"the run on {self.line} is incomplete"
        if not self.compared.differences:
            return ""
        first = min(self.compared.differences, key=lambda each: each.cycle)
        return f"{self.line} differs from the simulator, first in cycle {first.cycle:,}"
