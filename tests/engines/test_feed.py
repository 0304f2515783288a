"""Tasks that come without end: the same as all at once, in memory for a window of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lstmsim import engines
from lstmsim.base.errors import DeadlockError, InputError
from lstmsim.engines.fast.run import Feed as FastFeed
from lstmsim.engines.reference.run import Feed as ReferenceFeed
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.trace import TASKS, Totals
from tests.strategies import joint_programs, preempting_programs, programs

#: 2,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "8"))

#: The engines' own; that of the native core only where there is one.
FEEDS = (FastFeed, ReferenceFeed) if engines.has_fast() else (ReferenceFeed,)
each_feed = pytest.mark.parametrize("Feed", [pytest.param(FastFeed, marks=pytest.mark.needs_core), ReferenceFeed])


def one_task(count: int = 5) -> Program:
    phases = (Phase(Body((Operation(0, count=count),)), 1),)
    return Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, phases),), (), (0,)),))


def chunks(coming: list[tuple[int, int, int]], size: int = 2) -> Iterator[NDArray[np.int64]]:
    """Release, template and key of what comes, some at a time."""
    return (np.array(coming[first : first + size]) for first in range(0, len(coming), size))


def drawn(data: st.DataObject) -> tuple[Program, list[tuple[int, int, int]], int, int]:
    """Templates, what comes, a window, and the size of chunks."""
    kinds = programs(), joint_programs(), joint_programs(moldable=True), preempting_programs()
    program = data.draw(st.one_of(*kinds))
    templates = tuple(replace(task, after=None) for task in program.tasks)
    order = data.draw(st.lists(st.sampled_from(range(len(templates))), min_size=1, max_size=25))
    gaps = data.draw(st.lists(st.sampled_from([0, 0, 1, 5, 40]), min_size=len(order), max_size=len(order)))
    releases = np.cumsum(gaps).tolist()
    coming = [(release, number, templates[number].key) for release, number in zip(releases, order, strict=True)]
    window, chunk = data.draw(st.sampled_from([1, 2, 8, 64])), data.draw(st.sampled_from([1, 3, 30]))
    return Program(program.cores, templates), coming, window, chunk


def at_once(program: Program, coming: list[tuple[int, int, int]]) -> Totals | None:
    """The totals of all that comes, as one program; None if it gets stuck."""
    tasks = tuple(replace(program.tasks[number], release=at) for at, number, _ in coming)
    try:
        return engines.totals(Program(program.cores, tasks))
    except DeadlockError:
        return None


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_feed_gives_what_the_whole_gives(data: st.DataObject) -> None:
    program, coming, window, chunk = drawn(data)
    expected = at_once(program, coming)
    if expected is not None:
        for Feed in FEEDS:
            gives_the_whole(Feed, (program, coming, window, chunk), expected)


def gives_the_whole(
    Feed: type[FastFeed | ReferenceFeed], case: tuple[Program, list[tuple[int, int, int]], int, int], expected: Totals
) -> None:
    program, coming, window, chunk = case
    feed = Feed(program, chunks(coming, chunk), window=window)
    found = np.full((len(coming), len(TASKS.names)), -9)
    last, pauses = 0, list[list[int]]()
    for numbers, own, rows in feed.results():
        found[numbers] = rows
        pauses += feed.pauses().tolist()
        assert rows[:, 5].tolist() == [sum(each[0] == number for each in pauses) for number in numbers.tolist()]
        assert own.tolist() == [coming[number][1] for number in numbers]
        ends = np.where(rows[:, 3] < 0, rows[:, 2], rows[:, 3])
        assert (np.diff(ends, prepend=last) >= 0).all()
        last = int(ends[-1])
    if feed.full_at is not None:
        assert window < 64, "more than those were in the machine at once"
        return
    assert np.array_equal(found, expected.tasks)
    assert sorted(pauses) == sorted(expected.pauses.tolist())
    assert np.array_equal(feed.totals().cycles, expected.cycles)
    assert np.array_equal(feed.totals().work, expected.work)
    assert feed.makespan_cycles == expected.makespan_cycles


def reported(
    Feed: type[FastFeed | ReferenceFeed], data: tuple[Program, list[tuple[int, int, int]], int, int], stop: int
) -> list[object]:
    """All that a feed tells and asks, in its order: how many chunks had come when each group was there, and the group.

    stop: after so many groups the feed is stopped.
    """
    program, coming, window, chunk = data
    asked, said = 0, list[object]()

    def count() -> Iterator[NDArray[np.int64]]:
        nonlocal asked
        for each in chunks(coming, chunk):
            asked += 1
            yield each

    feed = Feed(program, count(), window=window)
    for number, group in enumerate(feed.results(), 1):
        pauses = sorted(feed.pauses().tolist())
        said += [asked, *(each.tolist() for each in group), pauses, feed.full_at, feed.makespan_cycles]
        if number == stop:
            feed.stop()
    totals = feed.totals()
    parts = totals.cycles, totals.work, totals.issues, totals.tasks
    return [*said, feed.window, feed.full_at, feed.makespan_cycles, *(each.tolist() for each in parts)]


@pytest.mark.needs_core
@settings(max_examples=EXAMPLES)
@given(st.data(), st.sampled_from([0, 1, 2]))
def test_both_feeds_tell_the_same_group_by_group(data: st.DataObject, stop: int) -> None:
    case = drawn(data)
    if at_once(*case[:2]) is not None:
        assert reported(ReferenceFeed, case, stop) == reported(FastFeed, case, stop)


@each_feed
def test_keys_are_those_of_what_comes(Feed: type[FastFeed | ReferenceFeed]) -> None:
    """The second and the third wait for the first; the third has the smaller key."""
    feed = Feed(one_task(), chunks([(0, 0, 0), (1, 0, 7), (2, 0, 3)]))
    (found,) = feed.results()
    assert found[0].tolist() == [0, 2, 1]
    assert found[2][:, 3].tolist() == [5, 10, 15]


@each_feed
def test_what_comes_in_one_cycle_is_seen_together(Feed: type[FastFeed | ReferenceFeed]) -> None:
    """Also at the edge of a window: of those that come at cycle 6 the one with the smallest key goes first."""
    many = [(0, 0, 0), *((6, 0, -key) for key in range(7))]
    order = [number for numbers, _, _ in Feed(one_task(), chunks(many), window=8).results() for number in numbers]
    assert order == [0, 7, 6, 5, 4, 3, 2, 1]


@each_feed
def test_too_many_at_once_end_it_and_those_that_came_are_finished(Feed: type[FastFeed | ReferenceFeed]) -> None:
    feed = Feed(one_task(), chunks([(0, 0, 0)] * 9), window=8)
    assert [number for numbers, _, _ in feed.results() for number in numbers] == list(range(8))
    assert (feed.full_at, feed.makespan_cycles) == (0, 40)
    enough = Feed(one_task(), chunks([(0, 0, 0)] * 8), window=8)
    assert [len(numbers) for numbers, _, _ in enough.results()] == [8]
    assert enough.full_at is None


@each_feed
def test_what_cannot_be_is_refused(Feed: type[FastFeed | ReferenceFeed]) -> None:
    with pytest.raises(InputError, match="request 1: comes at cycle 3, before the one ahead of it"):
        list(Feed(one_task(), chunks([(4, 0, 0), (3, 0, 0)])).results())
    followed = Program(one_task().cores, (*one_task().tasks, replace(one_task().tasks[0], after=0)))
    with pytest.raises(InputError, match="comes after no other"):
        Feed(followed, chunks([]))


@each_feed
def test_once_stopped_only_what_belongs_to_those_that_came_still_comes(Feed: type[FastFeed | ReferenceFeed]) -> None:
    """Nine are looked at for eight places. The last three come in one cycle, of which there may be more: they wait."""
    many = [(cycle, 0, 0) for cycle in (0, 1, 2, 3, 4, 5, 6, 6, 6, 6, 7, 8)]
    numbers = []
    feed = Feed(one_task(), chunks(many, 12), window=8)
    for done, _, _ in feed.results():
        numbers += done.tolist()
        feed.stop()
    assert numbers == list(range(9))
    assert feed.full_at is None


@each_feed
def test_nothing_comes(Feed: type[FastFeed | ReferenceFeed]) -> None:
    feed = Feed(one_task(), chunks([]))
    assert list(feed.results()) == []
    assert feed.makespan_cycles == 0
