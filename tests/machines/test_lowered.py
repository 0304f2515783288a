"""What a target lowers breaks no rule of a Program, so nobody looks for broken rules in it; in others one does."""

from __future__ import annotations

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim import engines, load_scenario, machines, run
from lstmsim.base.errors import InputError, ProgramError
from lstmsim.engines import ENGINES
from lstmsim.engines.fast import run as fast
from lstmsim.engines.reference import run as reference
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.model.cells import CELLS
from lstmsim.model.scenario import Scenario
from lstmsim.program.operations import Operation
from lstmsim.program.program import Body, Core, Phase, Program, Task, Unit
from lstmsim.program.validate import validate
from lstmsim.studies.simulate.run import Run
from tests.replays import crowds
from tests.splits import splits
from tests.strategies import scenarios

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "6"))
SMALL = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2}]}
TASK = Task("t", ((0, (Phase(Body((Operation(1),)), 1),)),), (), (0,))
WRONG = Program((Core(0, (Unit("array", "coarse"),)),), (TASK,))


@settings(max_examples=EXAMPLES)
@given(scenarios(tuple(CELLS)))
def test_jobs_on_one_core(scenario: Scenario) -> None:
    validate(machines.lower(scenario.chip, scenario.jobs))


@settings(max_examples=EXAMPLES)
@given(splits())
def test_jobs_over_several_cores(case: tuple) -> None:  # type: ignore[type-arg]
    core, exchange, job, place = case
    validate(machines.lower(ColumnNpu("c", 260, (core,) * (max(place) + 1), exchange=exchange), [job]))


@pytest.mark.slow
@given(st.sampled_from(["weights", "pauses"]).flatmap(crowds))
def test_jobs_that_take_turns(scenario: Scenario) -> None:
    try:
        program = machines.lower(scenario.chip, scenario.jobs)
    except InputError:
        assume(False)
    validate(program)


@pytest.mark.parametrize("chip", ["intel-npu-rtl", "intel-npu-cpp", "brainwave-s10"])
@pytest.mark.parametrize(
    ("model", "changes"), [("gru-512", {}), ("lstm-256", {"batch": 13}), ("lstm-256", {"frame_interval": 50})]
)
def test_jobs_on_a_row_wise_machine(chip: str, model: str, changes: dict[str, int]) -> None:
    scenario = load_scenario({"chip": chip, "jobs": [{"model": model, "steps": 3, **changes}]})
    validate(machines.lower(scenario.chip, scenario.jobs))


@pytest.mark.parametrize("engine", ENGINES)
def test_only_a_program_that_was_just_lowered_is_trusted(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = load_scenario(SMALL)
    mine = Run(own, engine, WRONG)
    for asked in ("trace", "totals", "report"):
        with pytest.raises(ProgramError, match="unit 1 does not exist"):
            getattr(mine, asked)
    for module in (engines, fast, reference):
        monkeypatch.setattr(module, "validate", lambda program: 1 // 0)
    lowered = run(SMALL, engine=engine)
    assert lowered.report.makespan_cycles == lowered.trace.makespan_cycles
    with pytest.raises(ZeroDivisionError):
        Run(own, engine, lowered.program).trace  # noqa: B018
