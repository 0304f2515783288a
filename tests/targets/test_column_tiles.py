"""A pass counts its tiles before it makes them, for what follows them has a place in the body."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.program.program import Dependence
from lstmsim.targets.column.npu import ColumnCore
from lstmsim.targets.column.passes import TAIL, pass_operations
from lstmsim.targets.column.shape import pass_shapes
from lstmsim.targets.column.tiles import Tiles, column_groups
from lstmsim.workload.cells import cell
from lstmsim.workload.model import Layer


@given(
    st.sampled_from(["row", "column"]),
    st.sampled_from(["lstm", "gru-lbr0", "lstm-projection"]),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([1, 2, 4, 8]),
    st.integers(4, 40),
)
def test_as_many_tiles_are_made_as_are_counted(
    order: str, name: str, hidden: int, given: int, ep: int, vp: int
) -> None:
    layer = Layer(cell(name), hidden, given, projection=3 if name == "lstm-projection" else None)
    for shape in pass_shapes(layer, ColumnCore(npe=ep * vp, ep=ep, vp=vp, block_order=order)):
        groups = tuple(
            group for vector in shape.stage.vectors for group in column_groups(shape, vector, (), vector == "x")
        )
        tiles = Tiles.of(shape, (0, 0), groups)
        made, ends = tiles.by_row() if order == "row" else tiles.by_column()
        assert tiles.total == len(made)
        assert len(ends) == len(shape.blocks)


@pytest.mark.parametrize("base", [0, 5])
def test_what_reads_h_waits_for_the_tails_of_its_own_pass(base: int) -> None:
    """Section 3 of docs/timing.md: the last tail that gives one of the 4 elements, which are 2 units of 2 blocks."""
    layer, core = Layer(cell("lstm"), 6, 4), ColumnCore(npe=32, ep=4, vp=8, tail_width=1)
    operations, h = pass_operations(layer, core, (0, 0), (), base, x_last=False)
    tails = [base + index for index, each in enumerate(operations) if each.unit == TAIL]
    assert len(tails) == 3
    needs = [need for each in operations if each.unit == 0 for need in each.needs]
    assert [need.operation for need in needs] == [tails[1], tails[2]]
    assert all(need.lag == 1 for need in needs)
    assert needs[0] == Dependence(tails[1], h.shares[0].own.cycles + 1, lag=1)
    assert h.shares[0].tails.first == tails[0]
