"""The sizes of a matrix product: given as M, N and K, or by a layer of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import must_be
from lstmsim.machines.gemm import Product
from lstmsim.model.products import LayerProduct, input_projection, step_products
from lstmsim.studies.shared.arguments import refuse, wrong_whole

if TYPE_CHECKING:
    from lstmsim.model.model import Layer, Model
    from lstmsim.studies.shared.loading import Path

__all__ = ["PRODUCTS", "Shape", "shape_given", "shape_of_layer"]

#: The products of a layer that may be asked for, with what each one is.
PRODUCTS: Mapping[str, str] = {
    "step": "one time step: batch x gates of the cell, all vectors that the gates read",
    "projection": "the inputs of all time steps at once: steps * batch rows, all gates that read x",
    "gradient": "the gradient of the weights over all time steps: gates x vectors, sums of steps * batch",
}


@record
class Shape:
    """The sizes of a product, and where they are from.

    product: M, N and K.
    source: in words; empty: the sizes were given.
    packed: when B is packed if nobody says, one of `lstmsim.machines.gemm.PACKED`.
    remarks: further sentences.
    """

    product: Product
    source: str
    packed: str = "once"
    remarks: tuple[str, ...] = ()


def shape_given(m: object, n: object, k: object) -> Shape:
    """The product of these sizes; `InputError` with each one that is wrong.

    >>> shape_given(8, 0, "a")
    Traceback (most recent call last):
    lstmsim.InputError: N: must be a whole number from 1 to 1,000,000, got 0
    K: must be a whole number from 1 to 1,000,000, got 'a'
    """
    sizes = {"M": m, "N": n, "K": k}
    missing = [
        Mistake(name, "is missing: give M, N and K, or a model") for name, value in sizes.items() if value is None
    ]
    refuse(missing, *(wrong_whole(name, value, 1, MAX_SIZE) for name, value in sizes.items()))
    return Shape(Product(int(m), int(n), int(k)), "")  # type: ignore[call-overload]


def shape_of_layer(
    model: Path | Model, what: str, layer: int = 0, batch: int = 1, steps: int | None = None, part: int | None = None
) -> Shape:
    """The product of a layer of a model.

    model: a model's name or file, or a model.
    what: a key of `PRODUCTS`.
    layer: its number. batch: inferences at once. steps: time steps; needed for all but `step`, which has none.
    part: which of several products, 0 first, where gates read different vectors; None: the largest one.

    `InputError` if there is no such layer or product, and for a product that is too large.

    >>> shape = shape_of_layer("lstm-512", "gradient", batch=4, steps=25)
    >>> shape.product
    Product(m=2048, n=1024, k=100)
    """
    if what not in PRODUCTS:
        raise InputError(Mistake("product", must_be(what, PRODUCTS)))
    wholes = {"layer": (layer, 0), "batch": (batch, 1), "steps": (steps, 1), "part": (part, 0)}
    refuse(*(wrong_whole(name, value, low, MAX_SIZE) for name, (value, low) in wholes.items()))
    if what != "step" and steps is None:
        raise InputError(Mistake("steps", f"is missing: the {what} goes over all time steps, like steps 25"))
    if what == "step" and steps is not None:
        text = "one time step has none: leave it out, or ask for the projection or the gradient"
        raise InputError(Mistake("steps", text))
    read = _model(model)
    if layer >= len(read.layers):
        count = f"{len(read.layers)} layer" + ("s" if len(read.layers) > 1 else "")
        raise InputError(Mistake("layer", f"{read.name} has {count}, numbered from 0; got {layer}"))
    return _shape(read, layer, what, batch, 1 if steps is None else steps, part)


def _model(model: Path | Model) -> Model:
    from lstmsim.model.model import Model as Plain
    from lstmsim.studies.shared.loading import load_model

    return model if isinstance(model, Plain) else load_model(model)


def _shape(model: Model, number: int, what: str, batch: int, steps: int, part: int | None) -> Shape:
    layer, moments = model.layers[number], steps * batch
    sizes: Mapping[str, Callable[[LayerProduct], Product]] = {
        "step": lambda each: Product(batch, each.rows, each.columns),
        "projection": lambda each: Product(moments, each.rows, each.columns),
        "gradient": lambda each: Product(each.rows, each.columns, moments),
    }
    every = [(each, sizes[what](each)) for each in _layer_products(layer, what)]
    if part is not None and part >= len(every):
        count = f"{len(every)} product" + ("s" if len(every) > 1 else "")
        raise InputError(Mistake("part", f"this {what} has {count}, numbered from 0; got {part}"))
    taken = max(range(len(every)), key=lambda each: every[each][1].macs) if part is None else part
    chosen, product = every[taken]
    for name, size in zip("MNK", (product.m, product.n, product.k), strict=True):
        refuse(wrong_whole(f"{name} of the {what}", size, 1, MAX_SIZE))
    over = f"batch {batch:,}" if what == "step" else f"batch {batch:,}, {steps:,} steps"
    cell = f"cell {layer.cell.name}, hidden {layer.hidden:,}, input {layer.input:,}"
    source = f"{what} of layer {number} of {model.name} ({cell}), {over}: {chosen.label}"
    # B of a gradient is made of the vectors of all time steps: it is another one at each call
    packed = "each" if what == "gradient" else "once"
    return Shape(product, source, packed, _others(every, taken, part, what))


def _layer_products(layer: Layer, what: str) -> tuple[LayerProduct, ...]:
    return (input_projection(layer),) if what == "projection" else step_products(layer)


def _others(every: list[tuple[LayerProduct, Product]], taken: int, part: int | None, what: str) -> tuple[str, ...]:
    """A sentence on the products of the cell that are not meant."""
    if len(every) < 2:
        return ()
    others = [
        f"part {number}, {each.label}: {size.m:,} x {size.n:,} x {size.k:,}"
        for number, (each, size) in enumerate(every)
        if number != taken
    ]
    why = "the largest one" if part is None else "as asked for"
    return (f"the {what} has {len(every)} products; this is part {taken}, {why}; beside it {'; '.join(others)}",)
