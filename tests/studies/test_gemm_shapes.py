"""The sizes of a product by a layer of a model."""

from __future__ import annotations

import pytest

import lstmsim
from lstmsim.machines.gemm import Product
from lstmsim.studies.gemm.request import shape_of_layer

GRU = lstmsim.Model("mine", [lstmsim.Layer("gru", hidden=96, input=40)])


@pytest.mark.parametrize(
    ("what", "part", "product"),
    [
        ("step", None, Product(3, 192, 136)),
        ("step", 1, Product(3, 96, 40)),
        ("step", 2, Product(3, 96, 96)),
        ("projection", None, Product(30, 288, 40)),
        ("gradient", None, Product(192, 136, 30)),
        ("gradient", 2, Product(96, 96, 30)),
    ],
)
def test_gates_with_other_vectors_are_other_products(what: str, part: int | None, product: Product) -> None:
    shape = shape_of_layer(GRU, what, batch=3, steps=None if what == "step" else 10, part=part)
    assert shape.product == product
    assert f"{what} of layer 0 of mine (cell gru, hidden 96, input 40), batch 3" in shape.source
    if what == "projection":
        assert shape.remarks == ()
    else:
        (said,) = shape.remarks
        assert f"this is part {part or 0}" in said
        others = {0, 1, 2} - {part or 0}
        assert all(f"part {each}, " in said for each in others)


def test_layers_of_a_file_of_lstmsim() -> None:
    assert shape_of_layer("resemblyzer", "step", layer=1).product == Product(1, 1024, 512)
    assert shape_of_layer("resemblyzer", "gradient", batch=4, steps=25).product == Product(1024, 296, 100)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"what": "backward"}, "product: must be step, projection or gradient, got 'backward'"),
        ({"what": "projection"}, "steps: is missing: the projection goes over all time steps"),
        ({"what": "step", "layer": 1}, "layer: mine has 1 layer, numbered from 0; got 1"),
        ({"what": "step", "part": 3}, "part: this step has 3 products, numbered from 0; got 3"),
        ({"what": "step", "batch": 0}, "batch: must be a whole number from 1 to 1,000,000, got 0"),
        ({"what": "gradient", "batch": 1001, "steps": 1000}, "K of the gradient: must be a whole number from 1 to"),
    ],
)
def test_a_layer_that_is_not_there_is_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(lstmsim.InputError) as caught:
        shape_of_layer(GRU, **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)
