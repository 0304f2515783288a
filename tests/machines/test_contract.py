"""The timing contract: worked examples, recorded cases, and a cycle-stepped oracle on random scenarios."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from lstmsim import Job, Layer, Model, run
from lstmsim.analysis.report import ACCOUNTS, LOSSES
from lstmsim.engines import ENGINES
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.model.cell import Cell, stage_of
from lstmsim.model.cells import CELLS, cell, graph
from lstmsim.model.scenario import Scenario
from tests import oracle
from tests.strategies import scenarios
from tools.contract import differences, read_cases

CASES = read_cases(str(Path(__file__).parents[1] / "data" / "contract_cases.json"))

#: (hidden, ep, vp, threads, jobs) -> makespan, finishes, busy, hazard, drain, utilization
WORKED = [
    ((512, 32, 2048, 1, 1), (1423, [1423], 640, 722, 61, 0.4498)),
    ((512, 32, 2048, 2, 2), (1471, [1433, 1471], 1280, 130, 61, 0.8702)),
    ((1024, 32, 2048, 1, 1), (2735, [2735], 2560, 114, 61, 0.9360)),
    ((1024, 16, 4096, 1, 1), (2628, [2628], 2560, 0, 68, 0.9741)),
]

#: (cell, steps) -> makespan, busy: section 8, one job of 512/512 on ep 32, vp 2048, 1 thread
WORKED_CELLS = [
    (("gru", 1), (101, 32)),
    (("gru", 2), (101 + 78, 64)),
    (("gru", 20), (1583, 640)),
    (("gru-lbr0", 1), (139, 64)),
    (("gru-lbr0", 2), (139 + 116, 128)),
    (("gru-lbr0", 20), (2343, 1280)),
]

#: Cells of a user's own: what no built-in cell does, within the rules of section 8.
OWN_CELLS = (
    Cell(
        "squares alone",
        (stage_of("a[x h]"),),
        graph("q mean_square a; e add q 0.5; r rsqrt e; n multiply a r; hf tanh n; h' quantize hf"),
        {"h": "h'"},
    ),
    Cell(
        "late values of an earlier stage",
        (stage_of("a[x]"), stage_of("b[x h] d[x h]")),
        graph("at sigmoid a; aa exp at; bt tanh b; dt relu d; p multiply bt aa; q add p dt; h' quantize q"),
        {"h": "h'"},
    ),
    Cell(
        "reductions in two stages",
        (stage_of("a[x] b[x]"), stage_of("p[m k]", "projection")),
        graph(
            """mu mean a b; ac subtract a mu; at tanh ac; c' add at c; m quantize c'; bt sigmoid b; k quantize bt
            sq mean_square p; r rsqrt sq; pn multiply p r; h' quantize pn"""
        ),
        {"h": "h'", "c": "c'"},
    ),
    Cell(
        "h read by the tail",
        (stage_of("a[x]"),),
        graph("ht tanh h; at sigmoid a; s add ht at; t multiply s w; h' quantize t"),
        {"h": "h'"},
        ("w",),
    ),
    Cell(
        "mean of a state",
        (stage_of("a[x]"),),
        graph("mu mean c a; ac subtract a mu; c' tanh ac; h' quantize c'"),
        {"h": "h'", "c": "c'"},
    ),
    # the first stage cannot know from h that c is there: only the second stage waits for h
    Cell(
        "a state that a stage before h reads",
        (stage_of("a[x]"), stage_of("b[h]")),
        graph("t multiply a c; c' add t b; h' quantize c'"),
        {"h": "h'", "c": "c'"},
    ),
)

#: 300 and more by LSTMSIM_EXAMPLES=300; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "7"))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("setting", "expected"), WORKED)
def test_worked_examples(setting: tuple[int, ...], expected: tuple[Any, ...], engine: str) -> None:
    hidden, ep, vp, threads, jobs = setting
    model = Model("lstm", (Layer(cell("lstm"), hidden, hidden),))
    chip = ColumnNpu("chip", 260, (ColumnCore(npe=65536, ep=ep, vp=vp, threads=threads),))
    report = run(Scenario(chip, tuple(Job(f"j{i}", model, 20) for i in range(jobs))), engine=engine).report
    cycles = report.cores[0].cycles
    finishes = [job.finish for job in report.jobs]
    figures = (report.makespan_cycles, finishes, cycles["busy"], cycles["hazard"], cycles["drain"])
    assert figures == expected[:-1]
    assert round(report.utilization, 4) == expected[-1]


def scenario_of(name: str, steps: int) -> Scenario:
    model = Model(name, (Layer(cell(name), 512, 512),))
    return Scenario(ColumnNpu("chip", 260, (ColumnCore(npe=65536, ep=32, vp=2048),)), (Job("j", model, steps),))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("setting", "expected"), WORKED_CELLS)
def test_worked_examples_of_cells_with_several_products(
    setting: tuple[str, int], expected: tuple[int, int], engine: str
) -> None:
    report = run(scenario_of(*setting), engine=engine).report
    assert (report.makespan_cycles, report.cores[0].cycles["busy"]) == expected


@pytest.mark.parametrize(("setting", "expected"), WORKED_CELLS)
def test_the_oracle_gives_the_worked_examples_too(setting: tuple[str, int], expected: tuple[int, int]) -> None:
    jobs, cores = oracle.simulate(scenario_of(*setting))
    assert (jobs[0][-1], cores[0][0]["busy"]) == expected


def issues(case: dict[str, Any]) -> int:
    return sum(core["cycles"].get("busy", 0) for core in case["expect"]["cores"])


#: The reference engine goes issue by issue: in the usual run it has half of the third with the fewest.
FEW = sorted(map(issues, CASES))[len(CASES) // 3]
RECORDED = [
    pytest.param(case, engine, id=f"{case['name']}-{engine}", marks=usual if quick else pytest.mark.long)
    for case in CASES
    for engine, quick, usual in (("fast", True, ()), ("reference", issues(case) <= FEW, pytest.mark.halved))
]


@pytest.mark.parametrize(("case", "engine"), RECORDED)
def test_recorded_cases(case: dict[str, Any], engine: str) -> None:
    assert not differences(case, engine)


def agree(scenario: Scenario) -> None:
    fast, reference = run(scenario, engine="fast"), run(scenario, engine="reference")
    assert fast.trace == reference.trace
    jobs, cores = oracle.simulate(scenario)
    assert [(job.core, job.thread, job.start, job.finish) for job in fast.report.jobs] == jobs
    named = [({name: count for name, count in core.cycles.items() if count}, core.macs) for core in fast.report.cores]
    assert named == cores


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_random_scenarios_on_both_engines_and_the_oracle(scenario: Scenario) -> None:
    agree(scenario)


@settings(max_examples=EXAMPLES)
@given(scenarios(tuple(CELLS)))
def test_random_scenarios_of_all_cells_on_both_engines_and_the_oracle(scenario: Scenario) -> None:
    agree(scenario)


OTHER_LATENCY = Latency(quantize=0, writeback=0, elementwise_multiply=2)


@pytest.mark.parametrize(
    ("own", "latency", "tail_width"),
    [
        # in the usual run each cell has one of four ways
        pytest.param(own, *way, marks=() if number % 4 == at else pytest.mark.long, id=f"{own.name}-{at}")
        for number, own in enumerate([*CELLS.values(), *OWN_CELLS])
        for at, way in enumerate(((Latency(), 1), (OTHER_LATENCY, 3), (Latency(), 3), (OTHER_LATENCY, 1)))
    ],
)
def test_jobs_that_wait_for_a_narrow_tail(own: Cell, tail_width: int, latency: Latency) -> None:
    core: dict[str, Any] = {
        "npe": 8 * 16,
        "ep": 8,
        "vp": 16,
        "threads": 2,
        "tail_width": tail_width,
        "latency": latency,
    }
    jobs = []
    for number, order in enumerate(("layer", "step", "layer")):
        first = Layer(own, 11, 9, projection=5 if own.projected else None)
        second = Layer(own, 7, first.output, order == "layer" and own.recurrent, 9 if own.projected else None)
        jobs.append(Job(f"j{number}", Model("m", (first, second), order), 3))
    agree(Scenario(ColumnNpu("chip", 260, (ColumnCore(**core),)), tuple(jobs)))


@settings(max_examples=EXAMPLES)
@given(scenarios())
def test_every_cycle_and_every_pe_cycle_has_one_name(scenario: Scenario) -> None:
    report = run(scenario).report
    for core in report.cores:
        assert set(core.cycles) == set(ACCOUNTS)
        assert set(core.pe_cycles) == set(LOSSES)
        assert sum(core.cycles.values()) == report.makespan_cycles
        assert sum(core.pe_cycles.values()) == core.peak * report.makespan_cycles
        assert min(core.pe_cycles.values()) >= 0
    assert sum(core.macs for core in report.cores) == sum(job.macs for job in scenario.jobs)
