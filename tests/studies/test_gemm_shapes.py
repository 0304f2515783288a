"""The sizes of a product by a layer of a model."""

from __future__ import annotations

import pytest

import lstmsim
from lstmsim.machines.gemm import Product
from lstmsim.studies.gemm.asked import Shape, shape_asked
from lstmsim.studies.gemm.request import GemmRequest


def shape_of_layer(model: lstmsim.Model | str, product: str, **keys: int | None) -> Shape:
    return shape_asked(GemmRequest(model=model, product=product, **keys))  # type: ignore[arg-type]


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
def test_barriers_with_other_vectors_are_other_products(what: str, part: int | None, product: Product) -> None:
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
        ({"product": "backward"}, "product: must be step, projection or gradient, got 'backward'"),
        ({"product": "projection"}, "steps: is missing: the projection goes over all time steps"),
        ({"product": "step", "layer": 1}, "layer: mine has 1 layer, numbered from 0; got 1"),
        ({"product": "step", "part": 3}, "part: this step has 3 products, numbered from 0; got 3"),
        ({"product": "step", "batch": 0}, "batch: must be at least 1, got 0"),
        (
            {"product": "gradient", "batch": 1001, "steps": 1000},
            "K of the gradient: must be at most 1000000, got 1001000",
        ),
    ],
)
def test_a_layer_that_is_not_there_is_a_sentence(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(lstmsim.InputError) as caught:
        lstmsim.run_gemm(model=GRU, **arguments)  # type: ignore[arg-type]
    assert str(caught.value).startswith(sentence)
