"""Cycles of a row NPU's programs, against the recurrences of the contract's text."""

from __future__ import annotations

import pytest

from lstmsim import engines, machines
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.row.npu import RowNpu
from lstmsim.model.cells import cell as cell_of
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from tests.oracle.row_npu import Machine, compiled


@pytest.mark.parametrize("preset", ["intel-npu-rtl", "intel-npu-cpp"])
@pytest.mark.parametrize(("cell", "hidden", "cycles"), [("rnn", 1536, 4071), ("gru-lbr0", 512, 4158)])
def test_empty_slots_of_instructions_are_waited_for(preset: str, cell: str, hidden: int, cycles: int) -> None:
    """An empty slot takes a cycle of its decoder and, in Intel's C++ simulator, of its unit.

    Without it, workloads 09 and 11 take 49 and 8 cycles fewer than Intel says.
    """
    chip = load_chip(preset)
    assert isinstance(chip, RowNpu)
    (core,) = chip.cores
    job = Job("j", Model("m", (Layer(cell_of(cell), hidden, hidden),)), 8, batch=core.batch)
    makespan = engines.run(machines.lower(chip, [job])).makespan_cycles
    assert makespan == Machine(core).run(compiled(core, cell, [hidden, hidden], 8, 1))
    if core.empty_slots:
        assert makespan == cycles
