"""A threaded matrix product as it is asked for: its sizes, or the layer that gives them, a cut, where it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.records import record
from lstmsim.base.wording import listed, nearest, show
from lstmsim.machines.gemm import KINDS, Cut, Division, GemmTask, GemmWork, Product
from lstmsim.machines.registry import capability
from lstmsim.model.cells import LayerProduct, input_projection, step_products
from lstmsim.studies.gemm.request import GemmRequest
from lstmsim.studies.shared.products import chip_of, options_from, presets_with
from lstmsim.studies.shared.request import Path, Size, wrong_value

if TYPE_CHECKING:
    from lstmsim.model.model import Model
    from lstmsim.model.scenario import Chip

_SIZES = r"(\d{1,300})x(\d{1,300})x(\d{1,300})"
_FORM = re.compile(rf"([^:]*):{_SIZES}(?::{_SIZES})?", re.ASCII)
_EXPECTED = "KIND:p_m x p_n x p_k without spaces, like MK:4x1x16, or with sizes of blocks too, like MK:4x1x16:8x512x264"
#: Most elements of A, B and C each: 1 GiB in single precision. How much work a machine simulates, it says itself.
_MOST_ELEMENTS = 1 << 28
_DEFAULTS: Mapping[str, Any] = {"product": "step", "layer": 0, "batch": 1, "steps": None, "part": None}


@dataclass(frozen=True, eq=False)
class Asked:
    """A product and where it runs."""

    chip: Chip
    task: GemmTask
    engine: str

    @property
    def machine(self) -> Any:
        """The machine's functions for products."""
        return capability(self.chip.kind, "gemm")

    def work(self, division: Division, caches: str) -> GemmWork:
        """The program of a division, with what lies in the caches when it begins."""
        work: GemmWork = self.machine.lower(self.chip, replace(self.task, caches=caches), division)
        return work


@record
class Shape:
    """The sizes of a product, where they are from (empty: they were given), and when B is packed if nobody says."""

    product: Product
    source: str
    packed: str = "once"
    remarks: tuple[str, ...] = ()


@record
class GivenCut:
    """A cut as it is given, not yet of any product; without sizes of blocks the planner's are taken."""

    kind: str
    parts: tuple[int, int, int]
    sizes: tuple[int, int, int] | None = None

    @property
    def threads(self) -> int:
        """How many threads it is for."""
        return self.parts[0] * self.parts[1] * self.parts[2]


def shape_asked(request: GemmRequest) -> Shape:
    """The product that is meant; `InputError` for sizes and a layer, for neither, and for one that is too large."""
    layer = {name: getattr(request, name) for name in _DEFAULTS}
    sizes = {"M": request.m, "N": request.n, "K": request.k}
    if request.model is None:
        unused = [name for name, value in layer.items() if value != _DEFAULTS[name]]
        refuse(Mistake(name, "is for a product of a model's layer: give a model too") for name in unused)
        missing = [name for name, value in sizes.items() if value is None]
        refuse(Mistake(name, "is missing: give M, N and K, or a model") for name in missing)
        shape = Shape(Product(*(int(each) for each in sizes.values() if each is not None)), "")
    else:
        model = _model(request.model)
        given = [name for name, size in sizes.items() if size is not None]
        refuse(Mistake(name, "is given, and a model too: give the one or the other") for name in given)
        shape = _shape_of_layer(model, **layer)
    _check_size(shape.product)
    return shape


def _check_size(product: Product) -> None:
    sizes = f"{product.m:,} x {product.n:,} x {product.k:,}"
    for name, size in {"A": product.m * product.k, "B": product.k * product.n, "C": product.m * product.n}.items():
        if size > _MOST_ELEMENTS:
            text = f"{sizes}: {name} has {size:,} elements, at most {_MOST_ELEMENTS:,} are simulated"
            raise InputError(Mistake("sizes", text))


def _shape_of_layer(read: Model, product: str, layer: int, batch: int, steps: int | None, part: int | None) -> Shape:
    if product != "step" and steps is None:
        raise InputError(Mistake("steps", f"is missing: the {product} goes over all time steps, like steps 25"))
    if product == "step" and steps is not None:
        text = "one time step has none: leave it out, or ask for the projection or the gradient"
        raise InputError(Mistake("steps", text))
    if layer >= len(read.layers):
        count = f"{len(read.layers)} layer" + ("s" if len(read.layers) > 1 else "")
        raise InputError(Mistake("layer", f"{read.name} has {count}, numbered from 0; got {layer}"))
    return _shape(read, layer, product, batch, 1 if steps is None else steps, part)


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
    every = [
        (each, sizes[what](each))
        for each in ((input_projection(layer),) if what == "projection" else step_products(layer))
    ]
    if part is not None and part >= len(every):
        count = f"{len(every)} product" + ("s" if len(every) > 1 else "")
        raise InputError(Mistake("part", f"this {what} has {count}, numbered from 0; got {part}"))
    taken = max(range(len(every)), key=lambda each: every[each][1].macs) if part is None else part
    chosen, product = every[taken]
    for name, size in zip("MNK", (product.m, product.n, product.k), strict=True):
        refuse(wrong_value(f"{name} of the {what}", size, Size))
    over = f"batch {batch:,}" if what == "step" else f"batch {batch:,}, {steps:,} steps"
    cell = f"cell {layer.cell.name}, hidden {layer.hidden:,}, input {layer.input:,}"
    source = f"{what} of layer {number} of {model.name} ({cell}), {over}: {chosen.label}"
    # B of a gradient is made of the vectors of all time steps: it is another one at each call
    packed = "each" if what == "gradient" else "once"
    return Shape(product, source, packed, _others(every, taken, part, what))


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


def cut_given(value: object) -> GivenCut:
    """Read a cut; `InputError` if it is none."""
    if isinstance(value, Cut):
        given = GivenCut(value.kind, (value.p_m, value.p_n, value.p_k), (value.mb, value.nb, value.kb))
    else:
        form = _FORM.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
        if form is None:
            raise InputError(Mistake("cut", f"must be {_EXPECTED}, got {show(value)}"))
        kind, *texts = form.groups()
        p_m, p_n, p_k, *sizes = (int(each) for each in texts if each is not None)
        given = GivenCut(kind.upper(), (p_m, p_n, p_k), (sizes[0], sizes[1], sizes[2]) if sizes else None)
    if given.kind not in KINDS:
        text = f"{show(given.kind)} must be {listed(KINDS)}{nearest(given.kind, KINDS)}"
        raise InputError(Mistake(f"cut {value}", text))
    refuse(Mistake(f"cut {value}", text) for text in _wrong_parts(given))
    return given


def cut_and_threads(cut: object, threads: int | None) -> tuple[GivenCut | None, int | None]:
    """A cut that may have been given, and the threads: as many as it has parts, unless a number is given too."""
    given = None if cut is None else cut_given(cut)
    return given, given.threads if given is not None and threads is None else threads


def _wrong_parts(given: GivenCut) -> Iterator[str]:
    for letter, parts in zip("MNK", given.parts, strict=True):
        if parts < 1:
            yield f"p_{letter.lower()} must be at least 1, got {parts}"
        elif parts > 1 and letter not in given.kind:
            all_three = "" if given.kind == "MN" else "; MNK cuts all three"
            yield f"{given.kind} leaves {letter} whole, so p_{letter.lower()} must be 1, got {parts}{all_three}"


def cut_for(asked: Asked, given: GivenCut | None) -> Cut | None:
    """The cut of a product; None: none is given."""
    if given is None:
        return None
    p_m, p_n, p_k = given.parts
    threads = asked.task.threads
    if given.threads != threads:
        text = f"{p_m} x {p_n} x {p_k} parts are for {given.threads:,} threads, and there are {threads:,} threads"
        raise InputError(Mistake("cut", text))
    cut: Cut = asked.machine.cut_of(asked.chip, asked.task, given.kind, given.parts, given.sizes)
    return cut


def threads_on(chip: Chip, threads: Any) -> int:
    """The threads on a chip, by default one for each core; `InputError` for what is no number from 1 to its cores."""
    cores = len(chip.cores)
    if threads is None:
        return cores
    if isinstance(threads, str) or not 1 <= threads <= cores:
        text = f"must be a whole number from 1 to {cores}, the cores of {chip.name}, got {show(threads)}"
        raise InputError(Mistake("threads", text))
    return int(threads)


def asked_for(request: GemmRequest, shape: Shape, threads: int | None) -> Asked:
    """The product and where it runs; `InputError` for what is wrong."""
    ready = chip_of(request.chip, request.chip_overrides)
    machine = capability(ready.kind, "gemm")
    if machine is None:
        text = f"its machine has no threads for matrix products; {listed(presets_with('gemm'), 'and')} have"
        raise InputError(Mistake(f"chip {ready.name}", text))
    threads = threads_on(ready, threads)
    chosen = options_from(request.settings, machine.PARAMETERS, "parameter of the planner", "settings")
    packed = shape.packed if request.packed is None else request.packed
    task = GemmTask(shape.product, threads, request.caches, chosen, packed)
    return Asked(ready, task, engines.running(request.engine))
