"""The timing contract: worked examples, recorded cases, and a cycle-stepped oracle on random scenarios."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from lstmsim import Job, Layer, Model, run
from lstmsim.engines import ENGINES
from lstmsim.metrics.report import ACCOUNTS, LOSSES
from lstmsim.targets.column_npu import ColumnCore, ColumnNpu
from lstmsim.workload.cell import cell
from lstmsim.workload.scenario import Scenario
from tests import oracle
from tests.strategies import scenarios

CASES = json.loads((Path(__file__).parents[1] / "data" / "contract_cases.json").read_text())

#: (hidden, ep, vp, threads, jobs) -> makespan, finishes, busy, hazard, drain, utilization
WORKED = [
    ((512, 32, 2048, 1, 1), (1423, [1423], 640, 722, 61, 0.4498)),
    ((512, 32, 2048, 2, 2), (1471, [1433, 1471], 1280, 130, 61, 0.8702)),
    ((1024, 32, 2048, 1, 1), (2735, [2735], 2560, 114, 61, 0.9360)),
    ((1024, 16, 4096, 1, 1), (2628, [2628], 2560, 0, 68, 0.9741)),
]

#: 300 and more by LSTMSIM_EXAMPLES=300; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "100"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("setting", "expected"), WORKED)
def test_worked_examples(setting: tuple[int, ...], expected: tuple[Any, ...], engine: str) -> None:
    hidden, ep, vp, threads, jobs = setting
    model = Model("lstm", (Layer(cell("lstm"), hidden, hidden),))
    chip = ColumnNpu("chip", 260, (ColumnCore(npe=65536, ep=ep, vp=vp, threads=threads),))
    report = run(Scenario(chip, tuple(Job(f"j{i}", model, 20) for i in range(jobs))), engine=engine).report
    cycles = report.cores[0].cycles
    finishes = [job.finish for job in report.jobs]
    found = (report.makespan_cycles, finishes, cycles["busy"], cycles["hazard"], cycles["drain"])
    assert found == expected[:-1]
    assert round(report.utilization, 4) == expected[-1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_recorded_cases(case: dict[str, Any], engine: str) -> None:
    report, expected = run(case["scenario"], engine=engine).report, case["expect"]
    assert report.makespan_cycles == expected["makespan_cycles"]
    jobs = [{"core": j.core, "thread": j.thread, "start": j.start, "finish": j.finish} for j in report.jobs]
    assert jobs == expected["jobs"]
    assert [{"cycles": dict(core.cycles), "macs": core.macs} for core in report.cores] == expected["cores"]


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_random_scenarios_on_both_engines_and_the_oracle(scenario: Scenario) -> None:
    fast, reference = run(scenario, engine="fast"), run(scenario, engine="reference")
    assert fast.trace == reference.trace
    jobs, cores = oracle.simulate(scenario)
    assert [(job.core, job.thread, job.start, job.finish) for job in fast.report.jobs] == jobs
    named = [({name: count for name, count in core.cycles.items() if count}, core.macs) for core in fast.report.cores]
    assert named == cores


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_every_cycle_and_every_pe_cycle_has_one_name(scenario: Scenario) -> None:
    report = run(scenario).report
    for core in report.cores:
        assert set(core.cycles) == set(ACCOUNTS)
        assert set(core.pe_cycles) == set(LOSSES)
        assert sum(core.cycles.values()) == report.makespan_cycles
        assert sum(core.pe_cycles.values()) == core.npe * report.makespan_cycles
        assert min(core.pe_cycles.values()) >= 0
    assert sum(core.macs for core in report.cores) == sum(job.macs for job in scenario.jobs)
