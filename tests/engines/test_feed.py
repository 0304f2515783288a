"""Tasks that come without end: the same as all at once, in memory for a window of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.engines.fast.feed import Feed as FastFeed
from lstmsim.engines.feeds import Coming
from lstmsim.engines.reference.feed import Feed as ReferenceFeed
from lstmsim.errors import DeadlockError, InputError
from lstmsim.program.program import Body, Core, Operation, Phase, Program, Task, Unit
from lstmsim.program.totals import Totals
from lstmsim.program.trace_tables import TASKS
from tests.strategies import joint_programs, preempting_programs, programs

FEEDS = (FastFeed, ReferenceFeed)
each_feed = pytest.mark.parametrize("Feed", FEEDS)


def one_task(count: int = 5) -> Program:
    phases = (Phase(Body((Operation(0, count=count),)), 1),)
    return Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", ((0, phases),), (), (0,)),))


def drawn(data: st.DataObject) -> tuple[Program, list[Coming], int]:
    """Templates, what comes, and a window."""
    kinds = programs(), joint_programs(), joint_programs(wide=True), preempting_programs()
    program = data.draw(st.one_of(*kinds))
    templates = tuple(replace(task, after=None) for task in program.tasks)
    order = data.draw(st.lists(st.sampled_from(range(len(templates))), min_size=1, max_size=25))
    gaps = data.draw(st.lists(st.sampled_from([0, 0, 1, 5, 40]), min_size=len(order), max_size=len(order)))
    releases = np.cumsum(gaps).tolist()
    coming = [Coming(release, number, templates[number].key) for release, number in zip(releases, order, strict=True)]
    return Program(program.cores, templates), coming, data.draw(st.sampled_from([1, 2, 8, 64]))


def at_once(program: Program, coming: list[Coming]) -> Totals | None:
    """The totals of all that comes, as one program; None if it gets stuck."""
    try:
        return engines.totals(
            Program(program.cores, tuple(replace(program.tasks[n], release=at) for at, n, _ in coming))
        )
    except DeadlockError:
        return None


@each_feed
@settings(max_examples=100)
@given(st.data())
def test_a_feed_gives_what_the_whole_gives(Feed: type[FastFeed | ReferenceFeed], data: st.DataObject) -> None:
    program, coming, window = drawn(data)
    expected = at_once(program, coming)
    if expected is None:
        return
    feed = Feed(program, iter(coming), window=window)
    found = np.full((len(coming), len(TASKS.names)), -9)
    last = 0
    for numbers, own, rows in feed.results():
        found[numbers] = rows
        assert own.tolist() == [coming[number].template for number in numbers]
        ends = np.where(rows[:, 3] < 0, rows[:, 2], rows[:, 3])
        assert (np.diff(ends, prepend=last) >= 0).all()
        last = int(ends[-1])
    if feed.full_at is not None:
        assert window < 64, "more than those were in the machine at once"
        return
    assert np.array_equal(found, expected.tasks)
    assert np.array_equal(feed.totals().cycles, expected.cycles)
    assert np.array_equal(feed.totals().work, expected.work)
    assert feed.makespan_cycles == expected.makespan_cycles


def told(Feed: type[FastFeed | ReferenceFeed], program: Program, coming: list[Coming], window: int) -> list[object]:
    """All that a feed tells and asks, in its order: how much had come when each group was there, and the group."""
    asked, said = 0, list[object]()

    def count() -> Iterator[Coming]:
        nonlocal asked
        for each in coming:
            asked += 1
            yield each

    feed = Feed(program, count(), window=window)
    for group in feed.results():
        said += [asked, *(each.tolist() for each in group), feed.full_at, feed.makespan_cycles]
    totals = feed.totals()
    parts = totals.cycles, totals.work, totals.issues, totals.tasks
    said += [feed.window, feed.full_at, feed.makespan_cycles, *(each.tolist() for each in parts)]
    return said


@settings(max_examples=300)
@given(st.data())
def test_both_feeds_tell_the_same_group_by_group(data: st.DataObject) -> None:
    program, coming, window = drawn(data)
    if at_once(program, coming) is None:
        return
    assert told(ReferenceFeed, program, coming, window) == told(FastFeed, program, coming, window)


@each_feed
def test_keys_are_those_of_what_comes(Feed: type[FastFeed | ReferenceFeed]) -> None:
    """The second and the third wait for the first; the third has the smaller key."""
    feed = Feed(one_task(), iter([Coming(0, 0, 0), Coming(1, 0, 7), Coming(2, 0, 3)]))
    (found,) = feed.results()
    assert found[0].tolist() == [0, 2, 1]
    assert found[2][:, 3].tolist() == [5, 10, 15]


@each_feed
def test_what_comes_in_one_cycle_is_seen_together(Feed: type[FastFeed | ReferenceFeed]) -> None:
    """Also at the edge of a window: of those that come at cycle 6 the one with the smallest key goes first."""
    many = [Coming(0, 0, 0), *(Coming(6, 0, -key) for key in range(7))]
    order = [number for numbers, _, _ in Feed(one_task(), iter(many), window=8).results() for number in numbers]
    assert order == [0, 7, 6, 5, 4, 3, 2, 1]


@each_feed
def test_too_many_at_once_end_it_and_those_that_came_are_finished(Feed: type[FastFeed | ReferenceFeed]) -> None:
    feed = Feed(one_task(), (Coming(0, 0, 0) for _ in range(9)), window=8)
    assert [number for numbers, _, _ in feed.results() for number in numbers] == list(range(8))
    assert (feed.full_at, feed.makespan_cycles) == (0, 40)
    enough = Feed(one_task(), (Coming(0, 0, 0) for _ in range(8)), window=8)
    assert [len(numbers) for numbers, _, _ in enough.results()] == [8]
    assert enough.full_at is None


@each_feed
def test_what_cannot_be_is_refused(Feed: type[FastFeed | ReferenceFeed]) -> None:
    with pytest.raises(InputError, match="request 1: comes at cycle 3, before the one ahead of it"):
        list(Feed(one_task(), iter([Coming(4, 0, 0), Coming(3, 0, 0)])).results())
    followed = Program(one_task().cores, (*one_task().tasks, replace(one_task().tasks[0], after=0)))
    with pytest.raises(InputError, match="comes after no other"):
        Feed(followed, iter([]))


@each_feed
def test_nothing_comes(Feed: type[FastFeed | ReferenceFeed]) -> None:
    feed = Feed(one_task(), iter([]))
    assert list(feed.results()) == []
    assert feed.makespan_cycles == 0
