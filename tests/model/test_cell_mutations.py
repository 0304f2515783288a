"""Built-in cells changed at random: each is refused, or can be cut, measured and run in order."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from lstmsim.model.cell import OPERATIONS, REDUCTIONS, Cell, Node, kinds, segments
from lstmsim.model.cell_rules import mistakes
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer
from tests.strategies import examples

NAMES = ("x", "h", "c", "s", "m", "p", "h'", "c'", "hf", "1", "q")


@st.composite
def mutations(draw: st.DrawFn) -> Cell:
    """A built-in cell with one to three changes, most of which break it."""
    cell = draw(st.sampled_from(sorted(CELLS.values(), key=lambda each: each.name)))
    for _ in range(draw(st.integers(1, 3))):
        cell = draw(st.sampled_from(CHANGES))(draw, cell)
    return cell


def any_name(draw: st.DrawFn, cell: Cell) -> str:
    own = [*(node.name for node in cell.nodes), *(each.name for each in cell.sums)]
    name: str = draw(st.sampled_from([*own, *cell.parameters, *NAMES]))
    return name


def drop_node(draw: st.DrawFn, cell: Cell) -> Cell:
    index = draw(st.integers(0, max(0, len(cell.nodes) - 1)))
    return replace(cell, nodes=cell.nodes[:index] + cell.nodes[index + 1 :])


def change_node(draw: st.DrawFn, cell: Cell) -> Cell:
    if not cell.nodes:
        return cell
    index = draw(st.integers(0, len(cell.nodes) - 1))
    node = cell.nodes[index]
    if draw(st.booleans()):
        operation = draw(st.sampled_from([*OPERATIONS, *REDUCTIONS, "nope"]))
        node = replace(node, operation=operation)
    elif node.inputs:
        place = draw(st.integers(0, len(node.inputs) - 1))
        number: float = draw(st.sampled_from([0.5, float("inf")]))
        chosen = any_name(draw, cell) if draw(st.booleans()) else number
        node = replace(node, inputs=(*node.inputs[:place], chosen, *node.inputs[place + 1 :]))
    return replace(cell, nodes=(*cell.nodes[:index], node, *cell.nodes[index + 1 :]))


def add_node(draw: st.DrawFn, cell: Cell) -> Cell:
    """A node that reads the next value of h, before which it is put: a circle if it leads to it."""
    node = Node("extra", draw(st.sampled_from(["add", "mean", "multiply"])), (any_name(draw, cell), "h'"))
    readers = tuple(replace(each, inputs=("extra", *each.inputs[1:])) for each in cell.nodes[:1])
    return replace(cell, nodes=(node, *readers, *cell.nodes[1:]))


def turn_nodes(draw: st.DrawFn, cell: Cell) -> Cell:
    return replace(cell, nodes=tuple(draw(st.permutations(cell.nodes))))


def change_stages(draw: st.DrawFn, cell: Cell) -> Cell:
    how = draw(st.sampled_from(["swap", "rows", "drop", "vectors"]))
    stages = list(cell.stages)
    index = draw(st.integers(0, max(0, len(stages) - 1)))
    if how == "swap" or not stages:
        return replace(cell, stages=tuple(reversed(stages)))
    if how == "drop":
        del stages[index]
    elif how == "rows":
        stages[index] = replace(stages[index], rows=draw(st.sampled_from(["hidden", "projection"])))
    elif stages[index].gates:
        vectors = tuple(draw(st.lists(st.sampled_from([*NAMES, "rh"]), max_size=2)))
        gate = stages[index].gates[0]
        gate = replace(gate, sums=tuple(replace(each, vectors=vectors) for each in gate.sums))
        stages[index] = replace(stages[index], gates=(gate, *stages[index].gates[1:]))
    return replace(cell, stages=tuple(stages))


def change_states(draw: st.DrawFn, cell: Cell) -> Cell:
    name = draw(st.sampled_from([*cell.states, "extra"]))
    states = {**cell.states, name: any_name(draw, cell)}
    if draw(st.booleans()):
        del states[name]
    return replace(cell, states=states)


CHANGES = (drop_node, change_node, change_node, change_node, add_node, turn_nodes, change_stages, change_states)


@settings(max_examples=examples(120))
@given(mutations())
def test_what_passes_can_be_cut_and_measured(cell: Cell) -> None:
    wrong = mistakes(cell)
    event("refused" if wrong else "legal")
    if wrong:
        assert all(place.split(".")[0] in ("stages", "nodes", "states", "parameters") for place, _ in wrong)
        assert all(text.isprintable() and text for _, text in wrong)
        return
    layer = Layer(cell, 6, 5, projection=3 if cell.projected else None)
    names = {*cell.states, *cell.parameters, *(node.name for node in cell.nodes), *(each.name for each in cell.sums)}
    assert names <= set(kinds(cell))
    assert layer.output == (3 if cell.projected else 6)
    assert all(layer.columns(stage) for stage in cell.stages)
    placed = [node for each in segments(cell) for node in (*each.nodes, *each.reductions, *each.scalars)]
    assert sorted(placed, key=repr) == sorted(cell.nodes, key=repr)
    check_readiness(cell)


def check_readiness(cell: Cell) -> None:
    """Segment after segment, everything that is read is there; a stage's vectors before its sums."""
    there = {"x", *cell.states, *cell.parameters}
    reached = -1
    for segment in segments(cell):
        while reached < segment.stage:
            reached += 1
            assert set(cell.stages[reached].vectors) <= there
            there |= {each.name for each in cell.stages[reached].sums}
        for node in (*segment.nodes, *segment.reductions, *segment.scalars):
            assert set(node.sources) <= there
            there.add(node.name)
        rows = {kinds(cell)[each.name] for each in segment.nodes}
        assert rows <= {segment.rows}
