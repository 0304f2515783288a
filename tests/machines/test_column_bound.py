"""The bound on a step's operations: it is asked before anything is lowered, so lowering may never exceed it."""

from __future__ import annotations

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lstmsim import engines
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.phases import operations_per_step
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from tests.strategies import cores_of_a_chip, models

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "8"))


def lowered(model: Model, core: ColumnCore, steps: int) -> int:
    """Operations of all steps, as the program has them."""
    (task,) = lower(ColumnNpu("c", 260, (core,)), [Job("j", model, steps)]).tasks
    return sum(len(phase.body.operations) * phase.repeat for phase in task.phases(0))


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(models(tuple(CELLS)), cores_of_a_chip(), st.integers(1, 3))
def test_no_program_has_more_operations(model: Model, core: ColumnCore, steps: int) -> None:
    assume(core.refusal(model) is None)
    assert lowered(model, core, steps) <= steps * operations_per_step(model.layers, core)


@pytest.mark.parametrize(
    ("block_order", "operations", "bound"),
    [
        # x and h are a column group each: a run of both groups for each further block
        ("row", 64 + 2 + 63, 64 + 2 + 4 * 64),
        # each group's 64 tiles stand alone, for with them blocks take banks or end
        ("column", 64 + 2 * 64, 64 + 3 * 2 + 2 * 64),
    ],
)
def test_many_row_blocks_of_few_column_groups(block_order: str, operations: int, bound: int) -> None:
    """64 units in blocks of one unit, each with a turn in the tail; all operations counted by hand."""
    core = ColumnCore(npe=4 * 64, ep=64, vp=4, block_order=block_order, accumulator_banks=64)
    model = Model("m", (Layer(cell("lstm"), 64, 64),))
    assert lowered(model, core, 1) == operations
    assert operations <= operations_per_step(model.layers, core) <= bound


def test_tiles_that_two_threads_take_in_turns_count_one_by_one() -> None:
    """A fine-grained core gives each thread every second cycle: each of the 136 tiles is a row of the trace."""
    core = ColumnCore(npe=4 * 32, ep=8, vp=16, threads=2, thread_policy="fine", accumulator_banks=8)
    model = Model("m", (Layer(cell("lstm"), 16, 256),))
    jobs = [Job(f"j{number}", model, 1) for number in range(2)]
    trace = engines.run(lower(ColumnNpu("c", 260, (core,)), jobs))
    tiles, turns = 4 * (2 + 32), 4
    rows = len(trace.issues) / 2
    assert 0.9 * (tiles + turns) < rows <= tiles + turns <= operations_per_step(model.layers, core)
