"""Compared logs in words."""

from __future__ import annotations

from collections.abc import Callable

from lstmsim.machines.rtl import Event
from lstmsim.studies.rtl.comparison import GROUPS, Compared, Difference

__all__ = ["KIND_WORDS", "compared_lines", "difference_lines", "event_words"]

#: Kinds of events in words.
KIND_WORDS = {
    "H": "h is visible",
    "F": "a job has finished",
    "A": "a job takes a context",
    "I": "issue",
    "T": "turn of the tail",
    "S": "adapted sums",
    "V": "a state is computed",
    "C": "the cycle's name",
}
#: Groups of several events.
_SEVERAL = {
    "issue": "issues",
    "turn": "turns of the tail",
    "job": "admissions and finishes",
    "name of a cycle": "names of cycles",
    "h": "vectors of h",
    "adapted sum": "words of adapted sums",
    "state": "words of states",
}

Words = Callable[[Event], str]


def event_words(event: Event, words: Words) -> str:
    """Say what happened.

    words: says the fields of an event.

    >>> event_words(Event("C", 4, ("busy",)), lambda event: str(event.fields[0]))
    "cycle 4: the cycle's name: busy"
    """
    said = words(event)
    return f"cycle {event.cycle}: {KIND_WORDS[event.kind]}{': ' if said else ''}{said}"


def difference_lines(difference: Difference, words: Words) -> list[str]:
    """Say where two logs differ first: both events, and those before them.

    words: says the fields of an event.
    """
    lines = [f"{difference.group} {difference.number}: {_both(difference, words)}"]
    if difference.before:
        lines.append(f"the {len(difference.before)} events of the RTL before it:")
        lines += [f"  {event_words(each, words)}" for each in difference.before]
    return lines


def _both(difference: Difference, words: Words) -> str:
    several = difference.group not in ("issue", "turn")
    told = (("RTL", difference.rtl), ("lstmsim", difference.simulated))
    return "; ".join(f"{who} {_short(event, words, several)}" for who, event in told)


def _short(event: Event | None, words: Words, with_kind: bool) -> str:
    if event is None:
        return "has none"
    kind = f"{KIND_WORDS[event.kind]}: " if with_kind else ""
    return f"cycle {event.cycle} {kind}{words(event)}".rstrip(": ")


def compared_lines(compared: Compared, words: Words) -> list[str]:
    """Say what is equal, and what differs: a line for each group, then the first difference of each in full.

    A group without events in either log has no line.
    """
    lines = []
    wrong = {each.group: each for each in compared.differences}
    for group in GROUPS:
        count = compared.equal[group]
        if group in wrong:
            lines.append(f"{_SEVERAL[group]}: DIFFERENT, after {count:,} equal ones in cycle {wrong[group].cycle:,}")
        elif count:
            lines.append(f"{_SEVERAL[group]}: all {count:,} equal")
    for each in compared.differences:
        lines += ["", *difference_lines(each, words)]
    return lines
