"""The part of the contract about generated hardware: a machine that can be written as RTL fills this in.

What is here knows no machine: files, events, refusals. `lstmsim.studies.rtl` compiles, simulates and compares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from lstmsim.base.errors import Mistake
from lstmsim.base.records import record
from lstmsim.model.model import Precision
from lstmsim.model.numerics.golden import NetworkRun
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.recorded import Values
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace

#: H a vector is visible, F a job has finished, A a job takes a context, I a tile issues, T a turn of the tail, C the
#: name of a cycle; where numbers within the tail are logged, S adapted sums of a turn and V a state that is computed.
#: The log has the events of a cycle in this order; of one kind in the order of cores, then of threads or memories (A:
#: of posting; V: of kinds of cells and states).
EventKind = Literal["H", "F", "A", "I", "T", "S", "V", "C"]

EVENT_KINDS: tuple[EventKind, ...] = ("H", "F", "A", "I", "T", "S", "V", "C")


@record
class Event:
    """A line of the log: `kind cycle` and its fields, with the core as the last field where there are several cores.

    The fields are, by kind: A thread job; I thread job pass step block of_x group; T none; H job pass step first count
    hex; F job; S job pass step first count hex; V job pass step first count state hex; C name. `hex` has the elements
    as one word, the first one in the lowest bits, elements behind `count` 0.
    """

    kind: EventKind
    cycle: int
    fields: tuple[int | str, ...]

    @property
    def line(self) -> str:
        """The line of the log, without its end."""
        return " ".join(map(str, (self.kind, self.cycle, *self.fields)))


class GeneratedHardware(ABC):
    """How a machine is written as RTL.

    top: the module that is the hardware.
    testbench: the module that is simulated, in one of the `.v` files under `sim/`. It has a register `cycle`, the
        number of the present cycle, writes `events.txt` into the folder in which it runs, and knows two arguments:
        `+limit=N` ends the simulation after cycle N, `+vcd=FILE` writes all signals.
    timing_define: is defined when the files have no numbers.
    parts: what the cells of instances are counted as, in words, by the instance's name in the Verilog text.
    """

    top: ClassVar[str]
    testbench: ClassVar[str]
    timing_define: ClassVar[str]
    parts: ClassVar[Mapping[str, str]] = MappingProxyType({})

    @abstractmethod
    def refusals(self, scenario: Scenario, precision: Precision | None) -> list[Mistake]:
        """Why a scenario is outside the subset, each with its key; empty if it is inside.

        precision: None if only cycles are wanted.
        """

    def synthesis_remarks(self, design: Any) -> tuple[str, ...]:
        """What of a design a synthesis program makes large or slow, in sentences that name the keys."""
        return ()

    @abstractmethod
    def design(self, scenario: Scenario, precision: Precision, numbers: Mapping[int, JobNumbers] | None = None) -> Any:
        """Plan the hardware of a scenario that is not refused.

        numbers: of every job, by its place in the scenario: which begin with states that are not 0; None: none does.
        """

    @abstractmethod
    def posted(self, design: Any) -> tuple[int, ...]:
        """Give the place in the scenario of each job, in the order of the jobs' numbers in events."""

    @abstractmethod
    def files(
        self, design: Any, numbers: Mapping[int, JobNumbers] | None, version: str, deep: bool = False
    ) -> Mapping[str, str]:
        """Give the files by path, whole: `rtl/`, `data/`, `sim/`, `README.md`; not `golden/`.

        design: as `design` gives it.
        version: of lstmsim.
        numbers: of every job, by its place in the scenario; None: cycles alone, no data.
        deep: whether the testbench logs numbers within the hardware, too.
        """

    @abstractmethod
    def events(
        self,
        design: Any,
        program: Program,
        trace: Trace,
        names: Sequence[Sequence[str]],
        runs: Mapping[int, NetworkRun] | None,
        values: Mapping[int, Values] | None = None,
    ) -> tuple[Event, ...]:
        """Give what the log must say, in the order of the log.

        names: for each core the name of each of its cycles, from 0 to the makespan.
        runs: the golden runs of all jobs; None: without H.
        values: all that was computed in these runs; None: without S and V.
        """

    def unexercised(
        self,
        design: Any,
        program: Program,
        trace: Trace,
        events: Sequence[Event],
        numbers: Mapping[int, JobNumbers] | None,
        values: Mapping[int, Values] | None,
    ) -> tuple[str, ...]:
        """Say what a run never did, so that its comparison shows nothing of it; each a part of a sentence.

        events: of the run.
        numbers: of every job, after their golden runs; None: cycles alone.
        values: all that was computed in these runs; None: it was not kept.
        """
        return ()

    @abstractmethod
    def words(self, design: Any, event: Event) -> str:
        """Say the fields of an event in words: `thread 0 job speech layer 0 step 1 block 0 of h, group 0`.

        Neither kind nor cycle are in it; empty for an event without fields.
        """
