"""What users ask of a threaded matrix product, checked: sizes, threads, chip, caches, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.machines.gemm import CACHES, PACKED, GemmTask, Product, check_word
from lstmsim.machines.registry import target_of
from lstmsim.studies.gemm.runs import Asked
from lstmsim.studies.gemm.shapes import Shape, shape_given, shape_of_layer
from lstmsim.studies.shared.arguments import refuse, wrong_whole
from lstmsim.studies.shared.product_options import chip_of, options_from

if TYPE_CHECKING:
    from lstmsim.model.model import Model
    from lstmsim.model.scenario import Chip
    from lstmsim.studies.shared.loading import Path

__all__ = ["asked_for", "shape_asked"]

#: Most elements of A, B and C each: 1 GiB in single precision. How much work a machine simulates, it says itself.
_MOST_ELEMENTS = 1 << 28


def shape_asked(sizes: Sequence[object], model: Path | Model | None, layer: Mapping[str, Any]) -> Shape:
    """The product that is meant.

    sizes: M, N and K; each None: a layer is meant.
    model: the model of the layer; None: sizes are meant.
    layer: the arguments of `shape_of_layer`, each with its value.

    `InputError` for both, for neither, and for a product that is too large.
    """
    given = [name for name, size in zip("MNK", sizes, strict=True) if size is not None]
    if model is None:
        unused = [name for name, value in layer.items() if value != _DEFAULTS[name]]
        refuse(Mistake(name, "is for a product of a model's layer: give a model too") for name in unused)
        shape = shape_given(*sizes)
    else:
        refuse(Mistake(name, "is given, and a model too: give the one or the other") for name in given)
        shape = shape_of_layer(model, layer["product"], **{k: v for k, v in layer.items() if k != "product"})
    _check_size(shape.product)
    return shape


_DEFAULTS: Mapping[str, Any] = {"product": "step", "layer": 0, "batch": 1, "steps": None, "part": None}


def _check_size(product: Product) -> None:
    sizes = f"{product.m:,} x {product.n:,} x {product.k:,}"
    for name, size in {"A": product.m * product.k, "B": product.k * product.n, "C": product.m * product.n}.items():
        if size > _MOST_ELEMENTS:
            text = f"{sizes}: {name} has {size:,} elements, at most {_MOST_ELEMENTS:,} are simulated"
            raise InputError(Mistake("product", text))


def asked_for(
    shape: Shape,
    threads: object,
    chip: Path | Chip,
    overrides: Sequence[str],
    caches: str,
    settings: Sequence[str] | Mapping[str, Any],
    engine: str,
    packed: str | None,
) -> Asked:
    """A product and where it runs; `InputError` for what is wrong.

    shape: the product. The other arguments are those of `run_gemm`.
    """
    check_word("caches", caches, CACHES)
    packed = shape.packed if packed is None else packed
    check_word("packed", packed, PACKED)
    ready = chip_of(chip, overrides)
    machine = target_of(ready.kind).gemm_threads()
    if machine is None:
        text = f"its machine has no threads for matrix products; {listed(_chips_with_threads(), 'and')} have"
        raise InputError(Mistake(f"chip {ready.name}", text))
    cores = len(ready.cores)
    if threads is None:
        threads = cores
    elif wrong_whole("threads", threads, 1, cores):
        text = f"must be a whole number from 1 to {cores}, the cores of {ready.name}, got {show(threads)}"
        raise InputError(Mistake("threads", text))
    chosen = options_from(settings, machine.parameters, "parameter of the planner")
    return Asked(machine, ready, GemmTask(shape.product, int(threads), caches, chosen, packed), engine)  # type: ignore[call-overload]


def _chips_with_threads() -> list[str]:
    """Names of the presets whose machines have threads for products."""
    from lstmsim.files.catalog import chip_files
    from lstmsim.studies.shared.loading import load_chip

    return [name for name in chip_files() if target_of(load_chip(name).kind).gemm_threads() is not None]
