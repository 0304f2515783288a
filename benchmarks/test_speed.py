"""Timings of single parts, with pytest-benchmark: `pytest benchmarks` after `pip install pytest-benchmark`; not in the
test run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lstmsim import load_scenario, machines, simulate
from lstmsim.engines.fast import run as fast
from lstmsim.engines.reference import run as reference
from lstmsim.program.flatten import flat_of
from lstmsim.program.program import Program
from lstmsim.program.validate import validate

TASKS = ("deepbench-lstm-512-25", "deepbench-lstm-2048-25", "deepbench-gru-1024-1500")
Benchmark = Callable[..., Any]

needs_core = pytest.mark.skipif(fast.OWN.absence is not None, reason="there is no native core")


@pytest.fixture(params=TASKS)
def program(request: pytest.FixtureRequest) -> Program:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": request.param}]})
    return machines.lower(scenario.chip, scenario.jobs)


def test_reference(benchmark: Benchmark, program: Program) -> None:
    benchmark.pedantic(reference.run, (program,), rounds=2)  # type: ignore[attr-defined]


@needs_core
@pytest.mark.parametrize("run", [fast.totals, fast.run], ids=["totals", "trace"])
def test_core(benchmark: Benchmark, program: Program, run: Callable[..., object]) -> None:
    benchmark(run, program)


@pytest.mark.parametrize("work", [validate, flat_of])
def test_before_a_run(benchmark: Benchmark, program: Program, work: Callable[[Program], object]) -> None:
    benchmark(work, program)


@pytest.mark.parametrize("model", TASKS)
def test_lowering(benchmark: Benchmark, model: str) -> None:
    scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": model}]})
    benchmark(machines.lower, scenario.chip, scenario.jobs)


@pytest.mark.parametrize("model", TASKS)
def test_from_name_to_report(benchmark: Benchmark, model: str) -> None:
    benchmark(simulate, {"chip": "column-npu-64k", "jobs": [{"model": model}]})
