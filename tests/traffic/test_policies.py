"""Where jobs run and who is served at all: for each policy a case in which it wins and one in which it loses."""

from __future__ import annotations

from typing import Any

import pytest

from lstmsim import Run, run, serving
from lstmsim.engines import ENGINES

CORE = {"npe": 64, "ep": 4, "vp": 16}
MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}
#: As many weights as `MODEL`, so that a memory has room for one of them or for both.
OTHER = {"name": "other", "layers": [{"cell": "rnn", "hidden": 16, "input": 16}], "layer_order": "step"}
KIB = 1


def result_of(jobs: list[dict[str, Any]], cores: int = 1, chip: dict[str, Any] | None = None, **keys: Any) -> Run:
    core = {**CORE, **(chip or {}).pop("core", {})}
    whole = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{**core, "count": cores}], **(chip or {})}
    entries = [{"model": MODEL, "name": f"j{number}", **job} for number, job in enumerate(jobs)]
    scenario = {"chip": whole, "jobs": entries, **keys}
    results = [run(scenario, engine=engine) for engine in ENGINES]
    assert results[0].trace == results[1].trace
    assert results[0].totals == results[1].totals
    return results[0]


def latencies(jobs: list[dict[str, Any]], cores: int = 1, **keys: Any) -> list[int]:
    return [job.latency for job in result_of(jobs, cores, **keys).report.jobs]


STEP = latencies([{"steps": 1}])[0]


def test_preemption_wins_for_an_urgent_job_behind_a_long_one() -> None:
    jobs = [{"steps": 60}, {"steps": 1, "arrival": 5, "priority": 1}]
    waits, stops = (latencies(jobs, dispatch="priority", preemption=each) for each in (False, True))
    assert stops[1] < 4 * STEP < waits[1]
    # The long job loses only the urgent job's time, and the time for the pipeline to empty and to fill again.
    assert stops[0] - waits[0] <= 4 * STEP


def test_preemption_does_not_depend_on_what_happens_elsewhere() -> None:
    """The job of one step just finishes when it is asked to pause; the long job is asked a cycle later, and pauses."""
    large = {"layers": [{"cell": "rnn", "hidden": 160, "input": 160}]}
    jobs = [
        {"steps": 60, "cores": [0], "priority": 1},
        {"steps": 1, "cores": [0], "model": large},
        {"steps": 1, "cores": [0], "priority": 9, "arrival": 50},
    ]
    keys: dict[str, Any] = {"dispatch": "priority", "preemption": True}
    threads = {"core": {"threads": 2, "thread_policy": "fine"}}
    alone = latencies(jobs, 2, chip=dict(threads), **keys)
    # If running jobs were asked only once, the urgent job would wait for the job of one step: 1,040 cycles.
    assert alone == [2238, 1043, 81]
    for arrival in (50, 51, 60, 300):
        beside = [*jobs, {"steps": 1, "cores": [1], "arrival": arrival}]
        assert latencies(beside, 2, chip=dict(threads), **keys)[:3] == alone


def test_who_has_lost_patience_makes_room_in_the_queue() -> None:
    """Two jobs wait for a job of 60 steps; once they leave, and not a cycle before, the queue has room for others."""
    first = [{"steps": 60}, {"steps": 1, "arrival": 1, "patience": 100, "queue_limit": 2, "count": 2}]
    for arrival, served in ((101, 0), (102, 1)):
        late = {"steps": 1, "arrival": arrival, "queue_limit": 2}
        result = result_of([*first, late]).report
        assert sorted(job.at for job in result.rejected) == [101] * (1 - served) + [102, 102]
        assert len(result.jobs) == 1 + served


def test_preemption_loses_where_it_only_changes_the_order() -> None:
    """Each stop empties the pipeline: equal jobs that overtake each other finish later, the mean job and the last."""
    jobs = [{"steps": 20, "arrival": 2 * STEP * number, "priority": number} for number in range(6)]
    waits, stops = (result_of(jobs, dispatch="priority", preemption=each).report for each in (False, True))
    assert stops.makespan_cycles > waits.makespan_cycles
    assert stops.latency_ms.mean > waits.latency_ms.mean
    assert [job.preempted for job in stops.jobs] == [1] * 5 + [0]
    assert not any(job.preempted for job in waits.jobs)


def test_a_paused_job_goes_on_at_the_step_where_it_stopped() -> None:
    result = result_of([{"steps": 9}, {"steps": 2, "arrival": 30, "priority": 1}], dispatch="priority", preemption=True)
    steps = result.trace.issue("iteration")[(result.trace.issue("task") == 0) & (result.trace.issue("unit") == 1)]
    assert steps.tolist() == list(range(9))
    (pause,) = result.trace.pauses.tolist()
    urgent = result.report.jobs[1]
    assert pause[3] == urgent.start
    assert pause[4] == urgent.finish


def weighted(placement: str, jobs: list[dict[str, Any]], gb_per_s: float = 0.05) -> Run:
    chip = {"memory": {"gb_per_s": gb_per_s, "latency_cycles": 10}, "core": {"weight_kib": KIB, "weight_bits": 16}}
    return result_of(jobs, 2, chip=chip, placement=placement)


def test_affinity_wins_where_weights_would_be_loaded_again_and_again() -> None:
    """Each core has room for one of two models: the least loaded core is the wrong core every other time."""
    jobs = [{"steps": 1, "arrival": 5000 * n, "model": (MODEL, OTHER)[n % 3 == 0]} for n in range(12)]
    spread, kept = weighted("least-loaded", jobs), weighted("affinity", jobs)
    assert kept.report.memory_busy_cycles < spread.report.memory_busy_cycles
    assert kept.report.latency_ms.mean < spread.report.latency_ms.mean


@pytest.mark.slow
def test_affinity_loses_where_the_core_that_has_the_weights_is_busy() -> None:
    """With two threads a core, jobs share the core that holds the weights while the other core is idle."""
    layers = [{"cell": "rnn", "hidden": 64, "input": 64}]
    large, other = {"layers": layers}, {"name": "other", "layers": layers, "layer_order": "step"}
    chip = {
        "memory": {"gb_per_s": 100, "latency_cycles": 1},
        "core": {"weight_kib": 16, "weight_bits": 16, "threads": 2},
    }
    jobs: list[dict[str, Any]] = [{"steps": 1, "model": other, "arrival": 9000, "cores": [1]}]
    jobs += [{"steps": 30, "model": large, "arrival": number} for number in range(2)]
    spread, kept = (latencies(jobs, 2, chip=dict(chip), placement=each) for each in ("least-loaded", "affinity"))
    assert kept[2] > 1.5 * spread[2]


LOADED = [
    {"steps": 40, "arrival": 0, "count": 6},
    {"steps": 1, "arrival": [STEP * n for n in range(1, 21)], "count": 20},
]


@pytest.mark.slow
def test_core_sets_win_for_the_short_jobs_and_lose_when_the_mix_changes() -> None:
    """A static partition: the long jobs on one core, the short ones on the other."""
    split = [{**LOADED[0], "cores": [0]}, {**LOADED[1], "cores": [1]}]
    shared, apart = latencies(LOADED, 2), latencies(split, 2)
    assert max(apart[6:]) < max(shared[6:]) / 5
    # With long jobs only, the core for short jobs stands still.
    assert max(latencies([{**LOADED[0], "cores": [0]}], 2)) > 1.9 * max(latencies([LOADED[0]], 2))


def test_a_core_set_may_hold_several_cores() -> None:
    result = result_of([{"steps": 3, "count": 8, "cores": [0, 2]}, {"steps": 3, "count": 4}], 3)
    assert {job.core for job in result.report.jobs[:8]} == {0, 2}
    assert {job.core for job in result.report.jobs[8:]} >= {1}


#: Requests in twice the rate that the core can bear.
RUSH = {"steps": 1, "count": 40, "arrival": [STEP // 2 * n for n in range(40)]}


def test_a_short_queue_wins_in_latency_and_loses_requests() -> None:
    everyone, few = result_of([RUSH]), result_of([{**RUSH, "queue_limit": 2}])
    assert max(job.latency for job in few.report.jobs) <= 4 * STEP
    assert max(job.latency for job in everyone.report.jobs) > 15 * STEP
    assert not everyone.report.rejected
    assert len(few.report.rejected) >= 15
    assert len(few.report.rejected) + len(few.report.jobs) == 40
    served = serving(few)
    assert (served.requests, served.rejected) == (len(few.report.jobs), len(few.report.rejected))
    assert served.little.difference == served.little_waiting.difference == 0
    # With deadlines that is a gain: a request that is served late is worth nothing.
    due = {**RUSH, "deadline": 4 * STEP}
    late, kept = (serving(result_of([each])) for each in (due, {**due, "queue_limit": 2}))
    assert kept.goodput_per_second > late.goodput_per_second


def test_a_short_queue_loses_in_a_burst_that_would_be_over_in_time() -> None:
    burst = {"steps": 1, "count": 8, "deadline": 9 * STEP}
    assert serving(result_of([burst])).misses == 0
    assert serving(result_of([{**burst, "queue_limit": 2}])).rejected == 5


def test_patience_wins_time_for_those_who_can_still_be_served_and_loses_the_others() -> None:
    due = {**RUSH, "deadline": 3 * STEP}
    late, kept = (result_of([each]) for each in (due, {**due, "patience": 2 * STEP}))
    assert sum(job.missed for job in late.report.jobs) > 30
    assert not any(job.missed for job in kept.report.jobs)
    assert len(kept.report.rejected) > 10
    assert all(job.at - job.arrival == 2 * STEP + 1 for job in kept.report.rejected)
    # Without deadlines, requests that lose patience are a mere loss.
    assert len(result_of([{**RUSH, "patience": 2 * STEP}]).report.jobs) < len(result_of([RUSH]).report.jobs)
    assert serving(kept).little.difference == 0


def test_nobody_is_rejected_while_there_is_room() -> None:
    jobs = [{"steps": 1, "count": 10, "arrival": [2 * STEP * n for n in range(10)], "queue_limit": 0, "patience": 0}]
    assert not result_of(jobs).report.rejected


@pytest.mark.parametrize("split", ["rows", "layers"])
def test_split_jobs_beside_whole_ones(split: str) -> None:
    """One big core that splits into several and back: a job on all cores at once, and jobs on single cores."""
    model = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}] * 4}
    jobs = [{"steps": 4, "count": 4, "model": model}, {"steps": 4, "arrival": 1, "model": model, "split": split}]
    result = result_of([*jobs, {"steps": 4, "arrival": 2}], 4)
    whole, last = result.report.jobs[4:]
    assert whole.start == max(job.finish for job in result.report.jobs[:4])
    # Later jobs do not overtake the job that waits for all cores.
    assert last.start >= whole.finish
    assert serving(result).little.difference == 0
    assert sum(core.macs for core in result.report.cores) == sum(job.macs for job in result.report.jobs)


#: Twice as fast on four cores as on one.
HALF = {"layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}


@pytest.mark.slow
def test_deciding_late_over_how_many_cores_to_run_wins_over_both_fixed_choices() -> None:
    """Single requests and bursts: joined, the bursts wait; apart, the single ones take too long."""
    period = 3000
    single = {"steps": 2, "count": 4, "model": HALF, "arrival": [period * n for n in range(4)]}
    burst = {"steps": 2, "count": 8, "model": HALF, "arrival": [period // 2 + period * (n // 4) for n in range(8)]}
    means = {}
    for split in ("auto", "rows", None):
        key = {"split": split} if split else {}
        result = result_of([{**single, **key}, {**burst, **key}], 4)
        means[split] = result.report.latency_ms.mean
        taken = sorted({len(job.cores) for job in result.report.jobs})
        assert taken == {"auto": [0, 4], "rows": [4], None: [0]}[split]
        assert serving(result).little.difference == 0
    assert means["auto"] < 0.9 * min(means["rows"], means[None])


def test_deciding_late_loses_where_the_next_ones_come_a_little_later() -> None:
    """A job takes all cores when it is alone; a job that comes then waits until the first one has finished."""
    jobs = {"steps": 2, "count": 4, "model": HALF, "arrival": [0, 30, 60, 90]}
    late, apart = (result_of([{**jobs, **key}], 4).report.latency_ms.mean for key in ({"split": "auto"}, {}))
    assert late > apart
