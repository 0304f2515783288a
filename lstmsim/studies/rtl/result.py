"""Generated hardware that was written; its log compared with the simulator's: where both differ first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import LstmsimError
from lstmsim.base.folder import Written
from lstmsim.base.records import record
from lstmsim.machines.registry import capability
from lstmsim.machines.rtl import EVENT_KINDS, Event, EventKind
from lstmsim.report.results import Table
from lstmsim.studies.board.build import Build
from lstmsim.studies.rtl.synthesis import Synthesis
from lstmsim.studies.simulate.run import Run

if TYPE_CHECKING:
    from lstmsim.studies.rtl.simulators import Simulator


#: What is compared, in this order, and the kinds of events that it is.
GROUPS: dict[str, tuple[EventKind, ...]] = {
    "issue": ("I",),
    "turn": ("T",),
    "job": ("A", "F"),
    "name of a cycle": ("C",),
    "h": ("H",),
    "adapted sum": ("S",),
    "state": ("V",),
}
#: What differs if all groups are equal and the lines of the logs still are not.
ORDER = "line of the log"
#: How many events before a difference are shown.
BEFORE = 10
#: The index of the one field of a kind that is a text: hexadecimal digits may look like a decimal number.
_TEXTS = {"H": 5, "S": 5, "V": 6, "C": 0}


@record
class Difference:
    """The first difference of two logs.

    group: what differs, a key of `GROUPS` or `ORDER`.
    number: of the event in its group, from 0.
    rtl: what the hardware did; None: it did no more.
    simulated: what the simulator says; None: it says no more.
    before: the last events of the hardware before that, at most `BEFORE`; names of cycles only if these differ.
    """

    group: str
    number: int
    rtl: Event | None
    simulated: Event | None
    before: tuple[Event, ...]

    @property
    def cycle(self) -> int:
        """The first cycle in which both are not the same."""
        return min(each.cycle for each in (self.rtl, self.simulated) if each is not None)


@record
class Compared:
    """Two logs, compared.

    equal: for each group how many events are equal, from the first on.
    differences: the first difference of each group that has one, in the order of `GROUPS`; empty: all lines are equal.
    """

    equal: dict[str, int]
    differences: tuple[Difference, ...]


def compare(simulated: Sequence[Event], rtl: Sequence[Event]) -> Compared:
    """Compare what the simulator says with the log of the hardware.

    simulated, rtl: events in the order of the log.

    >>> one, other = Event("I", 4, (0, 0, 0, 0, 0, 1, 0)), Event("I", 5, (0, 0, 0, 0, 0, 1, 0))
    >>> done = compare([one], [other])
    >>> done.equal["issue"], [(each.group, each.number, each.cycle) for each in done.differences]
    (0, [('issue', 0, 4)])
    """
    equal, differences = {}, []
    for group, kinds in GROUPS.items():
        # a group of no events is one that nobody asked for: numbers are left out where only cycles are compared
        ours, theirs = ([each for each in log if each.kind in kinds] for log in (simulated, rtl))
        number = _first(ours, theirs)
        equal[group] = len(ours) if number is None else number
        if number is not None:
            differences.append(_difference(group, number, ours, theirs, rtl))
    if not differences:
        number = _first(simulated, rtl)
        if number is not None:
            differences.append(_difference(ORDER, number, simulated, rtl, rtl))
    return Compared(equal, tuple(differences))


def _first(ours: Sequence[Event], theirs: Sequence[Event]) -> int | None:
    """The first index at which two logs differ."""
    return next((index for index, (one, other) in enumerate(zip_longest(ours, theirs)) if one != other), None)


def _difference(
    group: str, number: int, ours: Sequence[Event], theirs: Sequence[Event], log: Sequence[Event]
) -> Difference:
    simulated, rtl = (each[number] if number < len(each) else None for each in (ours, theirs))
    shown = [each for each in log if each.kind != "C" or "C" in GROUPS.get(group, ())]
    if rtl is None:
        assert simulated is not None
        end = sum(each.cycle <= simulated.cycle for each in shown)
    elif group == ORDER:
        end = sum(each.kind != "C" for each in log[:number])
    else:
        # equal events of one log are one event: the events before the first of them are before all
        end = next(index for index, each in enumerate(shown) if each is rtl)
    return Difference(group, number, rtl, simulated, tuple(shown[max(0, end - BEFORE) : end]))


def read_log(lines: Iterable[str]) -> tuple[Event, ...]:
    """Read the events of a log.

    A field that is no number stays a text: Icarus writes `x` where hardware reads what was never written.
    `LstmsimError` for a line that is no event.
    """
    return tuple(_event(number, line.split()) for number, line in enumerate(lines, 1))


def _event(number: int, words: list[str]) -> Event:
    if len(words) < 2 or words[0] not in EVENT_KINDS or not words[1].isdecimal():
        text = f"line {number} of the log is no event: expected one of {' '.join(EVENT_KINDS)} and a cycle"
        raise LstmsimError(f"{text}, got {' '.join(words)[:80]!r}")
    text_at = _TEXTS.get(words[0], -1)
    fields = tuple(int(word) if index != text_at and word.isdecimal() else word for index, word in enumerate(words[2:]))
    return Event(words[0], int(words[1]), fields)


def log_text(events: Iterable[Event]) -> str:
    r"""Give events as the text of a log."""
    return "".join(f"{event.line}\n" for event in events)


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
    design: what is built for this scenario.
    folder: where its files are.
    written: what was done to that folder.
    events: what the simulator says, in the order of the log.
    with_numbers: whether the numbers of the jobs are part of it; else cycles alone.
    deep: whether numbers within the tail are, too.
    unexercised: what the run never did, so that its comparison shows nothing of it.
    verified: the comparison with a simulation of the RTL; None: it was not asked for.
    synthesis: what Yosys made of it; None: it was not asked for.
    remarks: further sentences.
    netlist: the comparison with a simulation of what Yosys made of it, by the ports; None: it was not asked for.
    build: bitstreams that were made; None: none was asked for.
    table: the most jobs and steps of a table of jobs that the host writes; None: jobs are constants.
    """

    run: Run
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
    netlist: Verified | None = None
    build: Build | None = None
    table: tuple[int, int] | None = None

    @property
    def hardware(self) -> Any:
        """How the machine is written: the module that `lstmsim.machines.rtl` describes."""
        return capability(self.run.scenario.chip.kind, "generated")

    @property
    def wrong(self) -> str:
        """The sentence for RTL that does not do what the simulator says; empty: it does, or nobody has looked."""
        for what, own in (("RTL in", self.verified), ("netlist of", self.netlist)):
            if own is not None and not own.equal:
                first = min(own.compared.differences, key=lambda each: each.cycle)
                return f"the {what} {self.folder} differs from the simulator, first in cycle {first.cycle:,}"
        return ""
