"""In which order waiting jobs are admitted: where each order wins, where it loses, and tasks that come after others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim import machines, simulate
from lstmsim.analysis.report import Report
from lstmsim.base.errors import InputError, ProgramError
from lstmsim.base.keys import keys_of
from lstmsim.engines import ENGINES, run, totals
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.files.scenario.schema import ScenarioFile
from lstmsim.model.scenario import DISPATCH, Scenario
from lstmsim.program.accounts import totals_of
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16}]}
MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}


def report(dispatch: str, jobs: list[dict[str, object]], engine: str = "fast") -> Report:
    entries = [{"model": MODEL, "name": f"j{number}", **job} for number, job in enumerate(jobs)]
    return simulate({"chip": CHIP, "dispatch": dispatch, "jobs": entries}, engine=engine)


def latencies(dispatch: str, jobs: list[dict[str, object]]) -> list[int]:
    return [job.latency for job in report(dispatch, jobs).jobs]


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


#: A job that is under way, then a long one, then short ones.
MIXED = [{"steps": 1}, {"steps": 60, "arrival": 1}, *[{"steps": 1, "arrival": 2}] * 5]


def test_the_shortest_first_wins_in_the_mean_and_loses_for_the_long() -> None:
    first, shortest = latencies("fcfs", MIXED), latencies("sjf", MIXED)
    assert mean(shortest) < mean(first) / 3
    assert shortest[1] > first[1]


def test_a_long_job_starves_while_short_ones_come() -> None:
    step = latencies("fcfs", [{"steps": 1}])[0]
    steady = [{"steps": 1, "arrival": number * step} for number in range(50)]
    assert latencies("sjf", [*steady, {"steps": 5, "arrival": 1}])[-1] > 49 * step
    assert latencies("fcfs", [*steady, {"steps": 5, "arrival": 1}])[-1] < 10 * step


def test_the_earliest_deadline_wins_while_all_can_be_met_and_loses_in_overload() -> None:
    step = latencies("fcfs", [{"steps": 1}])[0]
    light = [{"steps": 1}, {"steps": 1, "arrival": 1, "deadline": 9 * step}]
    light += [{"steps": 1, "arrival": 2, "deadline": (2 + number) * step} for number in range(3)]
    light[1]["steps"] = 20
    light[1]["deadline"] = 40 * latencies("fcfs", [{"steps": 20}])[0]
    assert [job.missed for job in report("fcfs", light).jobs].count(True) == 3
    assert not any(job.missed for job in report("edf", light).jobs)
    # the most urgent job cannot make it any more, and takes the time of all those that could
    hopeless = {"steps": 20, "arrival": 1, "deadline": 2 * step}
    tight = [{"steps": 1}, *[{"steps": 1, "arrival": 1, "deadline": (3 + n) * step} for n in range(3)], hopeless]
    assert [job.missed for job in report("edf", tight).jobs].count(True) == 4
    assert [job.missed for job in report("fcfs", tight).jobs].count(True) == 1


def test_priority_wins_for_the_important_and_loses_for_the_rest() -> None:
    jobs = [{"steps": 1}, *[{"steps": 5, "arrival": 1}] * 4, {"steps": 5, "arrival": 2, "priority": 1}]
    first, ranked = latencies("fcfs", jobs), latencies("priority", jobs)
    assert ranked[-1] < first[-1] / 2
    assert mean(ranked[1:5]) > mean(first[1:5])


def test_no_running_job_is_interrupted() -> None:
    alone = latencies("priority", [{"steps": 30}])[0]
    assert latencies("priority", [{"steps": 30}, {"steps": 1, "arrival": 5, "priority": 9}])[0] == alone


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_equal_jobs_are_served_as_they_come_and_no_order_changes_the_work(dispatch: str) -> None:
    jobs = [{"steps": 2, "arrival": 3 * number} for number in range(6)]
    found = report(dispatch, jobs)
    assert [job.start for job in found.jobs] == sorted(job.start for job in found.jobs)
    assert found.makespan_cycles == report("fcfs", jobs).makespan_cycles
    assert found.jobs == report(dispatch, jobs, "reference").jobs


def scenario_of(dispatch: str) -> Scenario:
    jobs = [{"model": MODEL, "steps": 1 + k % 3, "count": 3, "priority": k % 2, "deadline": 400 + k} for k in range(4)]
    cores = [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}, {"npe": 64, "ep": 8, "vp": 8}]
    return load_scenario({"chip": {**CHIP, "cores": cores}, "dispatch": dispatch, "jobs": jobs})


@pytest.mark.parametrize("dispatch", DISPATCH)
def test_clients_that_think_before_they_ask_again(dispatch: str) -> None:
    scenario = scenario_of(dispatch)
    jobs = [replace(job, arrival=37, after=n - 4) if n >= 4 else job for n, job in enumerate(scenario.jobs)]
    program = machines.lower(scenario.chip, jobs)
    traces = [run(program, engine) for engine in ENGINES]
    assert traces[0] == traces[1]
    assert totals(program) == totals_of(program, traces[0])
    finish, arrived = traces[0].task("finish"), traces[0].task("arrived")
    assert (arrived[4:] == finish[:-4] + 37).all()
    # there are never more than four in the machine
    assert all(((arrived <= cycle) & (finish > cycle)).sum() <= 4 for cycle in arrived)


def test_a_task_may_only_come_after_an_earlier_one() -> None:
    phases = ((0, (Phase(Body((Operation(0),)), 1),)),)
    program = Program((Core(0, (Unit("array", "coarse"),)),), (Task("t", phases, (), (0,), after=0),))
    with pytest.raises(ProgramError, match="comes after task 0, which is not an earlier one"):
        run(program)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("dispatch=eddf", "must be 'fcfs', 'sjf', 'edf' or 'priority', got 'eddf'; did you mean 'edf'"),
        ("jobs.0.deadline=0", "must be at least 1, got 0"),
        ("jobs.0.priority=high", "must be a whole number, got 'high'"),
    ],
)
def test_mistakes_are_named(change: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_scenario({"chip": CHIP, "jobs": [{"model": MODEL, "steps": 1}]}, [change])


def test_a_file_may_name_every_order_and_no_other() -> None:
    assert keys_of(ScenarioFile)["dispatch"].key.choices == tuple(DISPATCH)
