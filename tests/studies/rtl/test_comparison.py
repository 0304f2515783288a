"""Logs are compared: each kind of event, in order, with what stands before a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.base.errors import LstmsimError
from lstmsim.machines.rtl import Event
from lstmsim.studies.rtl.report import compared_lines, difference_lines
from lstmsim.studies.rtl.result import BEFORE, GROUPS, ORDER, compare, log_text, read_log

LOG = read_log(
    [
        *("A 0 0 0", "I 0 0 0 0 0 0 1 0", "C 0 busy", "I 1 0 0 0 0 0 1 1", "C 1 busy", "T 2", "S 2 0 0 0 0 2 12e4"),
        *("V 2 0 0 0 0 2 0 1e00", "C 2 drain"),
        *("H 3 0 0 0 0 2 0af1", "I 3 0 0 0 1 0 1 0", "T 3", "C 3 busy", "H 4 0 0 1 0 2 1234", "F 4 0"),
    ]
)


def words(event: Event) -> str:
    return " ".join(map(str, event.fields))


def test_a_log_is_read_as_it_was_written() -> None:
    assert read_log(log_text(LOG).splitlines()) == LOG
    assert LOG[9].fields == (0, 0, 0, 0, 2, "0af1")
    assert LOG[13].fields[-1] == "1234"


@pytest.mark.parametrize("line", ["", "I", "Z 4 1", "I x 0", "warning: something"])
def test_a_line_that_is_no_event_is_told(line: str) -> None:
    with pytest.raises(LstmsimError, match="line 2 of the log is no event"):
        read_log(["F 4 0", line])


def test_equal_logs() -> None:
    done = compare(LOG, LOG)
    assert done.differences == ()
    assert done.equal == {"issue": 3, "turn": 2, "job": 2, "name of a cycle": 4, "h": 2, "adapted sum": 1, "state": 1}


@pytest.mark.parametrize("place", range(len(LOG)))
def test_every_event_counts(place: int) -> None:
    """A change of the cycle, of the last field, and a missing or added event are all seen, in the right group."""
    event = LOG[place]
    group = next(name for name, kinds in GROUPS.items() if event.kind in kinds)
    number = sum(each.kind in GROUPS[group] for each in LOG[:place])
    others = [replace(event, cycle=event.cycle + 1)]
    if event.fields:
        others.append(replace(event, fields=(*event.fields[:-1], "x")))
    for other in others:
        (difference,) = compare(LOG, (*LOG[:place], other, *LOG[place + 1 :])).differences
        assert (difference.group, difference.number) == (group, number)
        assert (difference.rtl, difference.simulated) == (other, event)
        assert difference.cycle == event.cycle
    (difference,) = compare(LOG, (*LOG[:place], *LOG[place + 1 :])).differences
    assert (difference.group, difference.number, difference.simulated) == (group, number, event)
    (difference,) = compare(LOG, (*LOG[:place], event, *LOG[place:])).differences
    assert (difference.group, difference.number, difference.rtl) == (group, number + 1, event)


def test_two_lines_that_change_places_are_seen() -> None:
    """Both logs have the same events, but `diff` would not call them equal."""
    swapped = (*LOG[:7], LOG[8], LOG[7], *LOG[9:])
    (difference,) = compare(LOG, swapped).differences
    assert (difference.group, difference.number) == (ORDER, 7)
    assert [each.kind for each in difference.before] == ["A", "I", "I", "T", "S"]


def test_what_stands_before_a_difference() -> None:
    many = tuple(Event("I", cycle, (0, 0, 0, 0, 0, 1, cycle)) for cycle in range(30))
    (difference,) = compare(many, (*many[:20], replace(many[20], cycle=21), *many[21:])).differences
    assert difference.before == many[20 - BEFORE : 20]
    (difference,) = compare(many, many[:20]).differences
    assert (difference.rtl, difference.before) == (None, many[20 - BEFORE : 20])


def test_names_of_cycles_are_told_only_if_they_differ() -> None:
    wrong = (*LOG[:12], replace(LOG[12], fields=("hazard",)), *LOG[13:])
    (difference,) = compare(LOG, wrong).differences
    assert [each.kind for each in difference.before] == ["C", "C", "C"] or difference.before[-1].kind == "T"
    assert any(each.kind == "C" for each in difference.before)


def test_a_difference_in_words() -> None:
    other = replace(LOG[10], cycle=5, fields=(1, *LOG[10].fields[1:]))
    done = compare(LOG, (*LOG[:10], other, *LOG[11:]))
    lines = difference_lines(done.differences[0], words)
    assert lines[0] == "issue 2: RTL cycle 5 0 0 0 1 0 1 0; lstmsim cycle 3 0 0 0 1 0 1 0".replace("5 0", "5 1", 1)
    assert lines[1] == "the 7 events of the RTL before it:"
    assert lines[2] == "  cycle 0: a job takes a context: 0 0"
    reported = compared_lines(done, words)
    assert reported[0] == "issues: DIFFERENT, after 2 equal ones in cycle 3"
    assert reported[1] == "turns of the tail: all 2 equal"


def test_hardware_that_does_not_finish() -> None:
    done = compare(LOG, LOG[:-1])
    assert difference_lines(done.differences[0], words)[0] == (
        "job 1: RTL has none; lstmsim cycle 4 a job has finished: 0"
    )
