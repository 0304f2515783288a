"""Serving the DeepBench LSTMs: theory holds, and what a small run prints is part of what stands beside the script."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from itertools import pairwise
from math import exp
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lstmsim import load_scenario
from lstmsim.analysis.report import Report
from lstmsim.studies.search.run import search

FOLDER = Path(__file__).parents[2] / "experiments"
pytestmark = [
    pytest.mark.needs_core,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the experiments are not part of the installed package"),
]


@cache
def script() -> Any:
    from experiments import run

    return run.load("serving")


def study() -> Any:
    from experiments.serving import study

    return study


def coverage() -> Any:
    from experiments.serving import coverage

    return coverage


@cache
def small() -> Any:
    return study().results(small=True)


def expected() -> str:
    return (FOLDER / "serving" / "expected.md").read_text(encoding="utf-8")


def rows(text: str, columns: int) -> list[list[str]]:
    """Cells of the table rows with so many columns that hold figures."""
    lines = [
        line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ") and "| machine |" not in line
    ]
    return [
        [cell.strip() for cell in each] for each in lines if len(each) == columns and any(map(str.isdigit, each[1]))
    ]


def numbers(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("| ") and any(map(str.isdigit, line))}


@pytest.mark.long
def test_a_small_run_is_a_part_of_the_whole() -> None:
    printed = script().summary(small())
    own = numbers(printed) - {line for line in numbers(printed) if line.startswith(("| machine", "| load"))}
    assert len(own) == 2 + 2 + 3 + 6
    assert own <= numbers(expected())
    agree_with_theory(small().checks, ["M/D/1", "M/D/4", "M/G/1"])


@pytest.mark.slow
def test_one_machine_and_one_queue_are_a_part_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above has of one large core, and the queue of four cores."""
    (machine, *_), (load, *_) = study().machines(), study().LOADS
    reference = max(study().one_thread_rate(each) for each in study().machines())
    runs = {load: study().served(machine, load * reference)}
    with monkeypatch.context() as patch:
        patch.setattr(study(), "SIZES", study().SIZES[1:2])
        checks = study().lone_checks(small=True)
    checks += study().mix_checks(runs, reference)
    few, many = ((coverage().LOADS[at], requests) for at, requests in ((1, 300), (4, 1_000)))
    covered = [coverage().row(*each, coverage().RUNS[each[1]]) for each in (few, many)]
    able = {machine: study().capacity(machine)}
    outcome = study().Results({machine: runs}, reference, able, {}, tuple(checks), covered)
    shown = (script().machine_table(outcome), script().table(outcome), script().theory(outcome))
    own = numbers("\n".join(line for lines in (*shown, coverage().table(covered)) for line in lines))
    own -= {line for line in own if line.startswith(("| machine", "| load"))}
    assert len(own) == 1 + 1 + 2 + 2
    assert own <= numbers(expected())
    agree_with_theory(outcome.checks, ["M/D/4", "M/G/1"])


def agree_with_theory(checks: Any, queues: list[str]) -> None:
    """Waits are those of the formulas, and the laws hold."""
    assert [each.queue.split(",")[0] for each in checks] == queues
    for check in checks:
        assert check.wait.holds(check.formula)
        assert check.wait.half_width < check.formula
        assert check.run.serving.little.difference == check.run.serving.little_waiting.difference == 0
        assert check.run.idle_while_waiting == 0
        assert check.run.serving.service_cycles == check.run.alone_cycles > 0


def test_the_same_requests_give_the_same_numbers() -> None:
    machine, once = study().machines()[0], []
    for _ in range(2):
        study().served.cache_clear()
        study().requests.cache_clear()
        once.append(study().served(machine, 1000.0, number=600))
    assert once[0] == once[1]


def test_free_threads_are_noticed() -> None:
    """Two requests at cycle 0 and one at 5; with two threads the second could have begun at once, and did at 10."""
    times = ((0, 0, 10), (0, 10, 20), (5, 20, 30))
    jobs = tuple(SimpleNamespace(arrival=one, start=two, finish=three) for one, two, three in times)
    report: Report = SimpleNamespace(jobs=jobs)  # type: ignore[assignment]
    assert study().idle_while_waiting(report, 1) == 0
    assert study().idle_while_waiting(report, 2) == 20
    assert study().idle_while_waiting(report, 3) == 5 + 2 * 5 + 10


def test_the_rows_that_stand_in_the_file_agree_with_theory() -> None:
    checks = [cells for cells in rows(expected(), 6) if cells[0].startswith("M/")]
    assert len(checks) <= study().CHECKS
    assert {cells[0].split(",")[0] for cells in checks} == {"M/D/1", "M/D/4", "M/D/8", "M/G/1"}
    for cells in checks:
        wait, half = map(float, cells[3].split(" ± "))
        assert abs(wait - float(cells[4])) <= half, cells
        assert cells[5] == "yes"
    assert "exact on 70 of 70 runs" in expected()
    assert "waits on 70 of 70 runs" in expected()


def test_intervals_cover_what_they_promise_wherever_they_are() -> None:
    """Nominal 95 %, of 60 to 400 runs each; and they are there where a run is not hopelessly short."""
    table = {(cells[0], cells[1]): cells[3:] for cells in rows(expected(), 6) if not cells[0].startswith("M/")}
    assert len(table) == len(coverage().LOADS) * len(coverage().RUNS)
    reported = [cell for cells in table.values() for cell in cells if cell != "too few"]
    assert len(reported) >= len(table)
    for cell in reported:
        assert 90 <= float(cell.split(": ")[1].removesuffix(" %")) <= 100, cell
    assert "too few" not in table["0.5", "20,000"][:2]
    assert table["0.9", "200,000"][0] != "too few"
    assert table["0.9", "300"] == table["0.95", "20,000"] == ["too few"] * 3


def test_truths_of_the_coverage_study() -> None:
    """P(wait = 0) = 1 - load; within one service of an empty start, only those wait who come during it."""
    below = coverage().waits_at_most
    assert float(below(Decimal("0.3"), Decimal(0))) == pytest.approx(0.7)
    assert float(below(Decimal("0.3"), Decimal("0.5"))) == pytest.approx(0.7 * exp(0.15))
    assert float(below(Decimal("0.3"), Decimal("1.5"))) == pytest.approx(0.7 * (exp(0.45) - 0.15 * exp(0.15)))
    waits = coverage().waits(0.3, 20_000, 1)
    assert (waits == 0).mean() == pytest.approx(0.7, abs=0.02)


def test_latencies_grow_with_the_load_and_capacities_stay_below_the_peak() -> None:
    names = {machine.name for machine in study().machines()}
    table = [cells for cells in rows(expected(), 8) if cells[0] in names]
    assert len(table) == len(names) * len(study().LOADS)
    for one, two in pairwise(table):
        assert one[0] != two[0] or float(one[2].split()[0]) <= float(two[2].split()[0])
    most = {cells[0]: float(cells[3].replace(",", "")) for cells in rows(expected(), 5) if cells[0] in names}
    assert max(most.values()) < 1.001 * study().peak()
    for machine in study().machines():
        assert most[machine.name] == pytest.approx(study().one_thread_rate(machine), abs=1) or machine.threads > 1
        if machine.threads == 1:
            marked = {cells[1] for cells in table if cells[0] == machine.name and "full" in cells[7]}
            share = most[machine.name] / study().one_thread_rate(study().machines()[6])
            assert marked == {str(load) for load in study().LOADS if load >= share}


def test_the_bound_lies_where_the_table_breaks_it() -> None:
    p99 = {(cells[0], float(cells[1])): float(cells[3].split()[0]) for cells in rows(expected(), 8)}
    bounds = rows(expected(), 4)
    assert len(bounds) == len(study().machines())
    for name, low, high, _ in bounds:
        below = [value for (machine, load), value in p99.items() if machine == name and load <= float(low)]
        above = [value for (machine, load), value in p99.items() if machine == name and load >= float(high)]
        assert below
        assert max(below) <= study().BOUND_MS < min(above, default=float("inf"))
        assert 0 < float(high) - float(low) <= study().TOLERANCE


def test_the_ep_is_the_one_of_the_search() -> None:
    """With 8,192 multipliers the search finds it among all; elsewhere the tree reaches the preset's."""
    jobs = [{"model": f"deepbench-{name}"} for name in study().TASKS]
    cores = [{"npe": 8192, "ep": 8, "threads": 1, "tree_inputs": 16, "cat": 4, "tail_width": 64}]
    scenario = load_scenario({"chip": {"kind": "column-npu", "frequency_mhz": 260, "cores": cores}, "jobs": jobs})
    assert study().best_ep(*study().SIZES[2]) == search(scenario, 8192).common.walk.chosen.ep
    for cores_, npe, preset in study().SIZES[:2]:
        assert study().best_ep(cores_, npe, preset) == study().known(preset).cores[0].ep
