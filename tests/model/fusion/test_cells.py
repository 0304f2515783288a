"""Graphs of cells give the numbers of the golden model of this project, and have the products that they should."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.cell import Cell, stage_of
from lstmsim.model.cells import CELLS, cell, graph
from lstmsim.model.fusion.cells import StepGraph, cell_graph, step_graph
from lstmsim.model.fusion.graph import REDUCE
from lstmsim.model.fusion.schemes import evaluated
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.arithmetic import FloatArithmetic
from lstmsim.model.numerics.golden import step
from lstmsim.model.numerics.weights import PassWeights, random_network

#: Sums with parts of several products, two widths, reductions of what lies side by side and of what does not, a scalar
#: that only scalars read, a node in a wrong place, and one that is called as a product might be.
ODD = Cell(
    "odd",
    (stage_of("a[x h] b{bx[x] bh[h]}"), stage_of("e[x h v] d{dv[v] dx[x h]}"), stage_of("p[w]", "projection")),
    graph(
        """h' quantize hf; hf relu pp; pp add p old; old multiply p k; w quantize wf; wf log_sigmoid e2; xh tanh a
        e1 subtract es m; es multiply e dv; m mean bx a bh dx; sq mean_square bx bh; k rsqrt sq1; sq1 add sq 2.0
        v quantize vf; vf multiply xh k; e2 add e1 s; s' multiply ts g; ts minimum e k"""
    ),
    {"h": "h'", "s": "s'"},
    ("g",),
)


def _inputs(
    made: StepGraph, layer: Layer, weights: PassWeights, x: np.ndarray, states: dict[str, np.ndarray]
) -> dict[int, np.ndarray]:
    """The inputs of a graph, from weights in the cell's own terms."""
    known = {"x": x, **states, **weights.parameters}
    for product in made.products:
        known[product.tag] = np.concatenate([known.get(v, x[:, :0]) for v in product.vectors], axis=1)
        matrix = np.zeros((sum(product.columns), sum(product.rows)))
        bias = np.zeros(sum(product.rows))
        for name, rows, fresh in zip(product.sums, product.rows, product.fresh, strict=True):
            at = slice(product.start(name), product.start(name) + rows)
            for vector, columns in zip(product.vectors, product.columns, strict=True):
                if (name, vector) in weights.matrices:
                    first = product.offset(vector)
                    matrix[first : first + columns, at] = weights.matrices[name, vector].T
            if fresh and name in weights.biases:
                bias[at] = weights.biases[name]
        known |= {f"{product.tag}.W": matrix, f"{product.tag}.b": bias}
    return {number: known[node.name] for number, node in enumerate(made.graph.nodes) if node.op == "input"}


@pytest.mark.parametrize("made", [*CELLS.values(), ODD], ids=lambda each: each.name)
def test_a_step_equals_the_golden_model(made: Cell) -> None:
    layer = Layer(made, hidden=6, input=4, projection=3 if made.projected else None)
    weights = random_network(Model("m", (layer,)), seed=3).passes[0][0]
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 4))
    states = {name: rng.normal(size=(3, layer.width(name))) for name in made.states}
    drawn = step_graph(layer, 3)
    values = evaluated(drawn.graph, _inputs(drawn, layer, weights, x, states))
    arithmetic = FloatArithmetic(layer, weights)
    for row in range(3):
        expected = step(arithmetic, x[row], {name: each[row] for name, each in states.items()})
        for state, node in drawn.states:
            np.testing.assert_allclose(values[drawn.graph.numbers[node]][row], expected[state], rtol=1e-9, atol=1e-12)
    assert set(drawn.graph.outputs) == {node for _, node in drawn.states}


def test_means_of_neighbouring_rows_are_one_reduce() -> None:
    drawn = step_graph(Layer(cell("lstm-layernorm"), 8, 5), 2).graph
    # three norms of two sums each: over four gates of x, of h, and over c
    assert sum(node.kind == REDUCE for node in drawn.nodes) == 6
    odd = step_graph(Layer(ODD, 8, 5, projection=3), 2).graph
    assert sum(node.kind == REDUCE for node in odd.nodes) == 4 + 1


def test_products_are_as_few_as_vectors_allow() -> None:
    counts = {
        each.name: sum(node.op == "matmul" for node in cell_graph(each, 8, 8, 1, 4 if each.projected else None).nodes)
        for each in CELLS.values()
    }
    assert {name for name, count in counts.items() if count > 1} == {"gru-lbr0", "lstm-projection"}
    assert max(counts.values()) == 2


def test_a_state_that_is_passed_on_and_divisions_are_said() -> None:
    passing = Cell(
        "passing", (stage_of("a[x]"),), graph("hf add a c; h' quantize hf; c' quantize c"), {"h": "h'", "c": "c'"}
    )
    drawn = step_graph(Layer(passing, 4, 4), 1)
    assert drawn.states == (("h", "hf"), ("c", "c'.out"))
    assert any("0 / 0" in each for each in step_graph(Layer(cell("slstm"), 4, 4), 1).graph.about)


def test_wrong_sizes_and_cells_get_a_sentence() -> None:
    with pytest.raises(InputError, match="projects h and needs it"):
        cell_graph(cell("lstm-projection"), 4, 4, 1)
    with pytest.raises(InputError, match="batch: must be at least 1, got 0"):
        cell_graph(cell("lstm"), 4, 4, 0)
