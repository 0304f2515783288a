"""The matrix products of a layer."""

from __future__ import annotations

import pytest

from lstmsim.model.cell import Cell, stage_of
from lstmsim.model.cells import CELLS, cell, graph, input_projection, step_products
from lstmsim.model.model import Layer


def layer_of(name: str) -> Layer:
    described = cell(name)
    return Layer(described, hidden=8, input=5, projection=3 if described.projected else None)


@pytest.mark.parametrize("name", CELLS)
def test_the_products_of_a_step_do_all_of_its_multiplications(name: str) -> None:
    layer = layer_of(name)
    products = step_products(layer)
    assert sum(each.rows * each.columns for each in products) == layer.macs_per_step
    assert sorted(name for each in products for name in each.sums) == sorted(each.name for each in layer.cell.sums)


def test_products_of_cells_with_several_operands() -> None:
    def reported(name: str) -> list[tuple[str, int, int]]:
        return [(each.label, each.rows, each.columns) for each in step_products(layer_of(name))]

    assert reported("lstm") == [("i,f,g,o x [x|h]", 32, 13)]
    assert reported("gru-lbr0") == [("r,z x [x|h]", 16, 13), ("n x [x|rh]", 8, 13)]
    assert reported("lstm-projection") == [("i,f,g,o x [x|h]", 32, 8), ("p x [m]", 3, 8)]
    assert reported("mingru") == [("z,n x [x]", 16, 5)]
    assert reported("lstm-layernorm") == [("ix,fx,gx,ox x [x]", 32, 5), ("ih,fh,gh,oh x [h]", 32, 8)]


def test_the_input_projection_has_all_sums_with_x() -> None:
    for name, rows in {"lstm": 32, "gru": 24, "gru-lbr0": 24, "lstm-projection": 32, "dense": 8}.items():
        projection = input_projection(layer_of(name))
        assert (projection.rows, projection.columns, projection.vectors) == (rows, 5, ("x",))


def test_sums_of_the_same_vectors_are_one_product_in_whatever_order_they_name_them() -> None:
    own = Cell("own", (stage_of("a[h x] b[x h]"),), graph("s add a b; h' quantize s"), {"h": "h'"})
    assert [each.label for each in step_products(Layer(own, hidden=8, input=5))] == ["a,b x [x|h]"]
