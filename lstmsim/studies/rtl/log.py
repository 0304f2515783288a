"""The log of events: lines that the testbench of generated hardware writes, and the simulator too."""

from __future__ import annotations

from collections.abc import Iterable

from lstmsim.base.errors import LstmsimError
from lstmsim.machines.rtl import EVENT_KINDS, Event

__all__ = ["log_text", "read_log"]

#: The place of the one field of a kind that is a text: hexadecimal digits may look like a decimal number.
_TEXTS = {"H": 5, "S": 5, "V": 6, "C": 0}


def read_log(lines: Iterable[str]) -> tuple[Event, ...]:
    """Read the events of a log.

    lines: the lines, with or without their ends.

    A field that is no number stays a text: Icarus writes `x` where hardware reads what was never written.
    `LstmsimError` for a line that is no event.

    >>> read_log(["I 4 0 0 0 0 0 1 x", "C 4 busy"])
    (Event(kind='I', cycle=4, fields=(0, 0, 0, 0, 0, 1, 'x')), Event(kind='C', cycle=4, fields=('busy',)))
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
    r"""Give events as the text of a log.

    >>> log_text([Event("F", 9, (0,))])
    'F 9 0\n'
    """
    return "".join(f"{event.line}\n" for event in events)
