"""Tasks that wait: whom they ask to pause and when, when they give up, in which order they come. Worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lstmsim import engines
from lstmsim.engines.reference import run as reference
from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.trace import Trace
from tests.oracle.tasks import simulate

ARRAY = (Unit("array", "fine"),)


def ran(threads: tuple[int, ...], *tasks: Task) -> Trace:
    """The trace of both engines, whose times are those of the oracle."""
    program = Program(tuple(Core(0, ARRAY, each) for each in threads), tasks)
    trace = reference.run(program)
    assert engines.run(program) == trace
    rows, pauses = simulate(program, 1000)
    assert rows == trace.tasks.tolist()
    assert pauses == trace.pauses.tolist()
    return trace


def task(name: str, cycles: int = 1, repeat: int = 1, cores: tuple[int, ...] = (0,), **more: object) -> Task:
    phases = (Phase(Body((Operation(0, count=cycles),)), repeat),)
    return Task(name, ((0, phases),), (), cores, **more)  # type: ignore[arg-type]


def column(trace: Trace, name: str) -> list[int]:
    return [int(each) for each in trace.task(name)]


# --- whom a waiting task asks ---


def test_each_cycle_another_is_asked_until_one_will_pause() -> None:
    """The tasks with the larger ranks have one iteration, so they just finish; the third pauses."""
    lasting = [task("a", 40, key=9), task("b", 40, key=8), task("c", 1, 40, key=7)]
    urgent = task("u", key=0, release=2, preempts=True)
    trace = ran((3,), *lasting, urgent)
    # they have the array in turn, c on thread 0 at 2; a and b are asked at 2 and 3, c at 4, before it goes on at 5
    assert trace.pauses.tolist() == [[2, 0, 0, 5, 6, -1]]
    assert trace.halts[:, [0, 4]].tolist() == [[4, 2]]


def test_a_task_that_pauses_leaves_behind_its_longest_delay() -> None:
    """Its next iteration starts 30 cycles after this one's last issue at 1, whose result is there at 2."""
    operation = Operation(0, count=2, result_cycles=1, needs=(Dependence(0, 30, "hazard", lag=1),))
    low = Task("low", ((0, (Phase(Body((operation,)), 5),)),), (), (0,), key=9)
    trace = ran((1,), low, task("u", 3, key=0, release=2, preempts=True))
    assert trace.pauses.tolist() == [[0, 0, 0, 31, 34, -1]]


def test_nothing_elsewhere_changes_when_a_task_asks() -> None:
    tasks = [task("a", 40, key=9), task("b", 1, 40, key=8), task("u", key=0, release=2, preempts=True)]
    alone = ran((2, 1), *tasks)
    for release in range(5):
        beside = ran((2, 1), *tasks, task("other", release=release, cores=(1,)))
        assert beside.tasks[:3].tolist() == alone.tasks.tolist()
        assert beside.pauses.tolist() == alone.pauses.tolist()


def test_one_is_asked_in_a_cycle_also_where_tasks_come_one_after_another_in_it() -> None:
    """At 2 one finds the queue of the other core full; who follows it comes in the same cycle, after an admission."""
    tasks = [task("a", 40, key=9), task("b", 1, 40, key=8), task("u", key=0, release=2, preempts=True)]
    alone = ran((2, 1), *tasks)
    others = [
        task("full", 60, cores=(1,)),
        task("away", cores=(1,), release=2, queue_limit=0),
        task("next", cores=(1,), after=4),
    ]
    beside = ran((2, 1), *tasks, *others)
    assert column(beside, "admitted")[4:] == [2, 60]
    assert beside.pauses.tolist() == alone.pauses.tolist()
    assert alone.halts[:, [0, 4]].tolist() == beside.halts[:, [0, 4]].tolist() == [[3, 1]]


def test_nobody_is_asked_on_cores_that_one_in_front_keeps_or_where_one_is_about_to_pause() -> None:
    running = [task("a", 4, 9, (0,), key=9), task("b", 4, 9, (1,), key=9)]
    # the first waits for both cores, and stops nobody: who is behind it asks nobody on them
    both = task("both", 1, 1, (0,), gang=((1,),), release=1, key=-1)
    urgent = task("u", 1, 1, (1,), release=1, key=0, preempts=True)
    assert not len(ran((1, 1), *running, both, urgent).pauses)
    # in front of it, it does; then the other one keeps the one that was asked from going on, until 37
    assert ran((1, 1), *running, both, replace(urgent, key=-2)).pauses.tolist() == [[1, 1, 0, 4, 37, -1]]
    # two urgent ones: both have core 1 in common, and the second one's other core is free for it to ask
    first, second = (replace(urgent, cores=cores, key=key) for cores, key in (((1,), 0), ((0, 1), 1)))
    assert ran((1, 1), *running, first, second).pauses.tolist() == [[0, 0, 0, 4, 5, -1], [1, 1, 0, 4, 5, -1]]
    # the first may use both, and asks on the higher one; the second asks when that one has a place, at 4
    pauses = ran((1, 1), *running, replace(first, cores=(0, 1), release=1), replace(second, cores=(0,))).pauses
    assert pauses.tolist() == [[1, 1, 0, 4, 5, -1], [0, 0, 0, 5, 6, -1]]


# --- who gives up ---


def test_a_task_leaves_when_its_patience_has_ended() -> None:
    """One that would have been admitted in the last cycle of its patience is; one a cycle less patient has left."""
    tasks = [task("busy", 10), task("away", release=3, patience=6), task("kept", release=3, patience=7)]
    trace = ran((1,), *tasks)
    assert column(trace, "core") == [0, -1, 0]
    assert column(trace, "admitted") == [0, 10, 10]
    assert column(ran((1,), task("busy", 30), *tasks[1:]), "admitted") == [0, 10, 11]


def test_who_has_given_up_is_not_counted_in_the_queue() -> None:
    busy, first = task("busy", 30), task("first", release=1, patience=4)
    for release, core in ((5, -1), (6, 0)):
        trace = ran((1,), busy, first, task("second", release=release, queue_limit=1))
        assert column(trace, "core") == [0, -1, core]
        assert column(trace, "admitted")[1] == 6


def test_who_follows_one_that_gave_up_comes_with_the_others_of_that_cycle() -> None:
    """It is counted in the queue, in front of one that comes after a task that is done: both come at cycle 6."""
    tasks = [
        *(task("busy", 30), task("away", release=1, patience=4)),
        *(task("next", after=1), task("short", 6, cores=(1,)), task("late", after=3, queue_limit=1)),
    ]
    trace = ran((1, 1), *tasks)
    assert column(trace, "core") == [0, -1, 0, 1, -1]
    assert column(trace, "arrived") == [0, 1, 6, 0, 6]


def test_a_paused_task_has_no_patience_any_more() -> None:
    slow = task("slow", 3, 3, key=5, patience=2)
    trace = ran((1,), slow, task("urgent", 20, release=1, preempts=True))
    assert trace.pauses.tolist() == [[0, 0, 0, 3, 23, -1]]
    assert column(trace, "finish") == [29, 23]


def test_a_feed_counts_those_who_give_up_as_all_at_once_do() -> None:
    """Most leave from the middle of the queue, for those with small keys wait longest; places are used many times."""
    templates = (task("slow", 7, patience=40, queue_limit=9), task("fast", 2, patience=11, queue_limit=5))
    coming = np.array([(2 * n, n % 2, 3 * (n % 5) - n) for n in range(600)])
    whole = [replace(templates[template], release=release, key=key) for release, template, key in coming.tolist()]
    expected = engines.totals(Program((Core(0, ARRAY),), tuple(whole))).tasks
    feed = engines.feed(Program((Core(0, ARRAY),), templates), np.split(coming, 6), window=40)
    rows_by_task = {
        int(n): row.tolist() for numbers, _, rows in feed.results() for n, row in zip(numbers, rows, strict=True)
    }
    assert [rows_by_task[number] for number in range(600)] == expected.tolist()
    away = expected[expected[:, 0] < 0]
    waited = {int(each) for each in away[:, 2] - away[:, 4]}
    assert waited == {0, 12, 41}


# --- in which order tasks come ---


def test_those_that_come_after_others_enter_their_cycle_last() -> None:
    """All of these come at 5, and the queue has room for one: that is the one that follows nobody."""
    tasks = [
        *(task("long", 50), task("short", 5, cores=(1,)), task("after", after=1, queue_limit=1)),
        task("alone", release=5, queue_limit=1),
    ]
    assert column(ran((1, 1), *tasks), "core") == [0, 1, -1, 0]
    # of two that come after others the first of the list, whatever they come after
    ends = [task("long", 50), task("short", 5, cores=(1,)), task("short too", 5, cores=(2,))]
    after = [task("one", after=2, queue_limit=1), task("two", after=1, queue_limit=1)]
    assert column(ran((1, 1, 1), *ends, *after), "core")[3:] == [0, -1]


def test_those_that_follow_one_that_found_its_queue_full_come_when_others_were_admitted() -> None:
    """The one in front is admitted at 5 before the follower is counted, so that this finds room in the queue."""
    tasks = [
        *(task("long", 50, cores=(0,)), task("short", 5, cores=(1,)), task("waits", 40, cores=(0, 1), release=1)),
        *(task("away", cores=(0,), release=5, queue_limit=0), task("next", cores=(0, 1), after=3, queue_limit=0)),
    ]
    trace = ran((1, 1), *tasks)
    assert column(trace, "admitted") == [0, 0, 5, 5, 5]
    assert column(trace, "core") == [0, 1, 1, -1, -1]
    later = ran((1, 1), *tasks[:4], replace(tasks[4], queue_limit=1))
    assert column(later, "core") == [0, 1, 1, -1, 1]
