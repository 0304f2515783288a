"""Tiles wait for tails that stand behind them in the body, so their needs are written before their places are known."""

from __future__ import annotations

import pytest

from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.passes import TAIL, write_pass
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer
from lstmsim.program.body_writer import BodyWriter
from lstmsim.program.operations import Dependence


@pytest.mark.parametrize("base", [0, 5])
def test_what_reads_h_waits_for_the_tails_of_its_own_pass(base: int) -> None:
    """Section 3 of docs/timing.md: the last tail that gives one of the 4 elements, which are 2 units of 2 blocks."""
    layer, core = Layer(cell("lstm"), 6, 4), ColumnCore(npe=32, ep=4, vp=8, tail_width=1)
    rows = BodyWriter()
    for _ in range(base):
        rows.operation(2, "before", ())
    h = write_pass(rows, layer, core, (0, 0), (), x_last=False)
    operations = rows.body().operations
    tails = [index for index, each in enumerate(operations) if each.unit == TAIL]
    assert len(tails) == 3
    needs = [need for each in operations if each.unit == 0 for need in each.needs]
    assert [need.operation for need in needs] == [tails[1], tails[2]]
    assert all(need.lag == 1 for need in needs)
    assert needs[0] == Dependence(tails[1], h.shares[0].own.cycles + 1, lag=1)
    assert h.shares[0].tails.first == tails[0]
