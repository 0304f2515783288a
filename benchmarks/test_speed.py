"""Timings of single parts, with pytest-benchmark: `pytest benchmarks` (extra `bench`); not in the test run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lstmsim import load_scenario, simulate, targets
from lstmsim.engines.fast import compiled
from lstmsim.engines.fast import run as fast
from lstmsim.engines.fast.tables import tables_of
from lstmsim.engines.reference import run as reference
from lstmsim.program.program import Program

TASKS = ("deepbench-lstm-512-25", "deepbench-lstm-2048-25", "deepbench-gru-1024-1500")
Benchmark = Callable[..., Any]


@pytest.fixture(params=TASKS)
def program(request: pytest.FixtureRequest) -> Program:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": request.param}]})
    return targets.lower(scenario.chip, scenario.jobs)


def test_reference(benchmark: Benchmark, program: Program) -> None:
    benchmark.pedantic(reference.run, (program,), rounds=2)  # type: ignore[attr-defined]


def test_fast_as_it_stands(benchmark: Benchmark, program: Program) -> None:
    benchmark(fast.totals, program, skipping=False, budget=1 << 60)


@pytest.mark.parametrize("skipping", [False, True])
def test_fast_compiled(benchmark: Benchmark, program: Program, skipping: bool) -> None:
    compiled.compiled()
    benchmark(fast.totals, program, skipping=skipping)


def test_tables(benchmark: Benchmark, program: Program) -> None:
    benchmark(tables_of, program)


@pytest.mark.parametrize("model", TASKS)
def test_lowering(benchmark: Benchmark, model: str) -> None:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model}]})
    benchmark(targets.lower, scenario.chip, scenario.jobs)


@pytest.mark.parametrize("model", TASKS)
def test_from_name_to_report(benchmark: Benchmark, model: str) -> None:
    benchmark(simulate, {"chip": "column-npu-64k", "jobs": [{"model": model}]})
