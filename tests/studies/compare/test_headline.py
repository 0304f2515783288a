"""The first sentence of a comparison: the fastest machine and the next one, or why it cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim.studies.compare.headline import headline
from lstmsim.studies.compare.result import Comparison, Entry, Machine, Workload
from tests.studies.compare.test_latencies import comparison, latencies


def machines(count: int) -> tuple[Machine, ...]:
    return tuple(Machine(name, False, 100, 250.0) for name in "abcde"[:count])


def timed(*rows: tuple[float | None, ...], each: bool = False) -> Comparison:
    """A comparison of these times in ms; None: refused."""
    entries = tuple(tuple(Entry(ms=ms) if ms else Entry(reason="too large") for ms in row) for row in rows)
    workloads = tuple(Workload(f"m{number}", 1, 9) for number, _ in enumerate(rows))
    return Comparison("s", "fast", each, machines(len(rows[0])), workloads, entries)


WHOLE = {
    (3.0, 1.5, 6.0): "b is fastest on m0: makespan 1.50 ms, 2.00 times as fast as a.",
    (3.0, 3.0): "a and b are equally fast on m0: makespan 3.00 ms.",
    (3.0, 3.0, 4.5): "a and b are equally fastest on m0: makespan 3.00 ms, 1.50 times as fast as c.",
    (3.0, 4.5, 4.5): "a is fastest on m0: makespan 3.00 ms, 1.50 times as fast as b and c.",
    (3.0, 3.001): "a is fastest on m0: makespan 3.00 ms, less than 1 % faster than b.",
    (3.0, None): "Cannot tell what is fastest on m0: a takes 3.00 ms; no other machine has a time; b cannot run it.",
    (None, None): "Cannot tell what is fastest on m0: no other machine has a time; a and b cannot run it.",
    (3.0, None, 6.0): "a is fastest on m0: makespan 3.00 ms, 2.00 times as fast as c; b cannot run it.",
    (3.0,): "Cannot tell what is fastest on m0: a takes 3.00 ms; no other machine has a time.",
}


@pytest.mark.parametrize("times", WHOLE, ids=str)
def test_jobs_that_come_at_once_have_a_fastest_machine_or_a_reason(times: tuple[float | None, ...]) -> None:
    assert headline(timed(times)) == WHOLE[times]


def test_a_machine_that_first_loads_its_weights_may_be_faster_by_later_steps() -> None:
    entries = (Entry(cycles=10, ms=1.0, first_cycles=2), Entry(cycles=100, ms=2.0, first_cycles=80))
    found = headline(replace(timed((1.0, 2.0)), entries=(entries,)))
    assert found == (
        "a is fastest on m0: makespan 1.00 ms, 2.00 times as fast as b; "
        "by later steps, without loading weights, b is 2.00 times as fast as a."
    )


def test_a_published_design_is_marked_and_no_rival_of_the_chip_that_describes_it() -> None:
    other = replace(machines(2)[1], published=True)
    pair = (machines(1)[0], other)
    assert headline(replace(timed((3.0, 1.5)), machines=pair)).startswith("b (published) is fastest on m0")
    twins = (replace(pair[0], stands_for="b"), other)
    assert headline(replace(timed((3.0, 1.5)), machines=twins)).startswith("Cannot tell what is fastest on m0: a takes")


MODELS = {
    ((3.0, 1.5), (6.0, 2.0)): "b is fastest on all 2 models, 2.00 to 3.00 times as fast as the next (a).",
    (
        (3.0, 1.5),
        (2.0, None),
    ): "b is fastest on the 1 of 2 models that two machines ran, 2.00 times as fast as the next (a); "
    "b cannot run 1 of 2 models.",
    ((3.0, 1.5), (1.0, 8.0)): "No machine alone is fastest on all 2 models: b on 1 and a on 1; "
    "a is 2.00 times as fast as b by the geometric mean.",
    ((3.0, 1.5, 9.0), (1.0, 8.0, None)): "No machine alone is fastest on all 2 models: b on 1 and a on 1; "
    "over the 1 that all of them ran, b is 2.00 times as fast as a by the geometric mean; c cannot run 1 of 2 models.",
    ((3.0, 1.5, None), (1.0, None, 8.0)): "No machine alone is fastest on all 2 models: b on 1 and a on 1; "
    "no model was run by all of them, so no mean says more; b and c cannot run 1 of 2 models each.",
    ((2.0, 2.0), (2.0, 2.0)): "No machine alone is fastest on all 2 models: a on 2 and b on 2; "
    "a and b are equally fast by the geometric mean.",
    ((3.0, 1.5), (3.0, 2.999)): "b is fastest on all 2 models, at most 2.00 times as fast as the next (a).",
    ((3.0, 2.999),): "b is fastest on m0, less than 1 % faster than the next (a).",
    ((2.0, None), (None, 3.0)): "Cannot tell what is fastest: no model has times of two machines; "
    "a and b cannot run 1 of 2 models each.",
}


@pytest.mark.parametrize("rows", MODELS, ids=str)
def test_models_that_run_alone_are_counted(rows: tuple[tuple[float | None, ...], ...]) -> None:
    assert headline(timed(*rows, each=True)) == MODELS[rows]


def test_where_jobs_come_over_time_an_answer_stands_only_where_intervals_are_apart() -> None:
    apart = headline(comparison(latencies(3.0), latencies(2.0)))
    assert apart == "b answers fastest on s: mean latency 2.00 ms, 1.50 times as fast as a."
    overlap = headline(comparison(latencies(3.0, 0.6), latencies(2.0, 0.6)))
    assert overlap == (
        "Cannot tell what answers fastest on s: of b and a, the intervals of the means overlap; "
        "in this run b has the least, mean latency 2.00 ms, 1.50 times as fast as a."
    )
    assert "there are too few requests" in headline(comparison(latencies(3.0, None), latencies(2.0)))
    assert "they served different requests" in headline(comparison(latencies(3.0), latencies(2.0, away=5)))
    further = headline(comparison(latencies(2.0), latencies(3.0), latencies(4.0, 3.0)))
    assert further.startswith("Cannot tell what answers fastest on s: of a and c, the intervals")


def test_equal_means_have_no_first_one() -> None:
    equal = headline(comparison(latencies(2.0), latencies(2.0), latencies(3.0)))
    assert equal == (
        "Cannot tell what answers fastest on s: of a and b, the intervals of the means overlap; "
        "in this run a and b have the same, mean latency 2.00 ms, 1.50 times as fast as c."
    )
    assert headline(comparison(latencies(2.0), latencies(3.0), latencies(3.0))) == (
        "a answers fastest on s: mean latency 2.00 ms, 1.50 times as fast as b and c."
    )


def test_a_mean_without_an_interval_is_that_of_this_run() -> None:
    alone = headline(comparison(latencies(3.0, None, "too few"), latencies(9.0, verdict="unstable")))
    assert alone.startswith("a alone keeps up with the requests of s: mean latency 3.00 ms in this run, which has no")
    fixed = latencies(3.0, None, "no steady state")
    assert "do not come as a process" in headline(comparison(fixed, latencies(2.0, None, "no steady state")))


def test_where_jobs_come_after_others_the_answer_names_latencies_too() -> None:
    """Makespans of clients who think for most of the time are about equal whatever the machines are."""
    closed = comparison(latencies(3.0), latencies(2.0), way="closed")
    entries = (replace(closed.entries[0][0], ms=100.4), closed.entries[0][1])
    assert headline(replace(closed, entries=(entries,))) == (
        "b is fastest on s: makespan 100 ms, less than 1 % faster than a; "
        "b answers fastest on s: mean latency 2.00 ms, 1.50 times as fast as a."
    )
    few = comparison(latencies(3.0, None), latencies(2.0), way="closed")
    assert headline(replace(few, entries=((replace(few.entries[0][0], ms=150.0), few.entries[0][1]),))) == (
        "b is fastest on s: makespan 100 ms, 1.50 times as fast as a."
    )


def test_where_a_queue_grows_the_others_are_compared() -> None:
    growing = latencies(9.0, verdict="unstable")
    alone = headline(comparison(latencies(3.0), growing))
    assert (
        alone == "a alone keeps up with the requests of s: mean latency 3.00 ms; more requests come than b can serve."
    )
    two = headline(comparison(latencies(3.0), growing, latencies(2.0)))
    assert two.endswith(
        "c answers fastest on s: mean latency 2.00 ms, 1.50 times as fast as a; more requests come than b can serve."
    )
    assert headline(comparison(growing, growing)).startswith("No machine keeps up with the requests of s")
    unknown = headline(comparison(latencies(3.0), latencies(2.0, verdict="cannot tell"), growing))
    assert unknown.startswith(
        "Cannot tell what answers fastest on s: whether b can keep up is not known; in this run b"
    )
