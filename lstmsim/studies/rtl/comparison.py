"""The log of generated hardware against what the simulator says: where both are equal, and where they differ first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from lstmsim.base.errors import LstmsimError
from lstmsim.base.records import record
from lstmsim.machines.rtl import EVENT_KINDS, Event, EventKind

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event

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
#: How many events before a difference are told.
BEFORE = 10
#: The place of the one field of a kind that is a text: hexadecimal digits may look like a decimal number.
_TEXTS = {"H": 5, "S": 5, "V": 6, "C": 0}


@record
class Difference:
    """The first place at which two logs differ.

    group: in what, a key of `GROUPS` or `ORDER`.
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
    """The first place at which two logs differ."""
    return next((place for place, (one, other) in enumerate(zip_longest(ours, theirs)) if one != other), None)


def _difference(
    group: str, number: int, ours: Sequence[Event], theirs: Sequence[Event], log: Sequence[Event]
) -> Difference:
    simulated, rtl = (each[number] if number < len(each) else None for each in (ours, theirs))
    told = [each for each in log if each.kind != "C" or "C" in GROUPS.get(group, ())]
    if rtl is not None:
        # equal events of one log are one event: what stands before the first of them stands before all
        end = next(place for place, each in enumerate(told) if each is rtl) if group != ORDER else _count(log, number)
    else:
        assert simulated is not None
        end = sum(each.cycle <= simulated.cycle for each in told)
    return Difference(group, number, rtl, simulated, tuple(told[max(0, end - BEFORE) : end]))


def _count(log: Sequence[Event], number: int) -> int:
    """How many of the first lines of a log are told."""
    return sum(each.kind != "C" for each in log[:number])


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
    fields = tuple(int(word) if place != text_at and word.isdecimal() else word for place, word in enumerate(words[2:]))
    return Event(words[0], int(words[1]), fields)


def log_text(events: Iterable[Event]) -> str:
    r"""Give events as the text of a log."""
    return "".join(f"{event.line}\n" for event in events)
