"""What users ask of a threaded matrix product, checked: its sizes, a cut, threads, chip, caches, settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

from lstmsim import engines
from lstmsim.base.bounds import MAX_SIZE
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.base.wording import listed, must_be, nearest, show
from lstmsim.machines.gemm import CACHES, KINDS, PACKED, Cut, Division, GemmTask, GemmWork, Product, check_word
from lstmsim.machines.registry import capability
from lstmsim.model.cells import LayerProduct, input_projection, step_products
from lstmsim.studies.shared.arguments import refuse, wrong_whole
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.shared.products import chip_of, options_from

if TYPE_CHECKING:
    from lstmsim.model.model import Layer, Model
    from lstmsim.model.scenario import Chip
    from lstmsim.studies.shared.loading import Path

#: The products of a layer that may be asked for, with what each one is.
PRODUCTS: Mapping[str, str] = {
    "step": "one time step: batch x gates of the cell, all vectors that the gates read",
    "projection": "the inputs of all time steps at once: steps * batch rows, all gates that read x",
    "gradient": "the gradient of the weights over all time steps: gates x vectors, sums of steps * batch",
}
_SIZES = r"(\d{1,300})x(\d{1,300})x(\d{1,300})"
_FORM = re.compile(rf"([^:]*):{_SIZES}(?::{_SIZES})?", re.ASCII)
_EXPECTED = "KIND:p_m x p_n x p_k without spaces, like MK:4x1x16, or with sizes of blocks too, like MK:4x1x16:8x512x264"
#: Most elements of A, B and C each: 1 GiB in single precision. How much work a machine simulates, it says itself.
_MOST_ELEMENTS = 1 << 28
_DEFAULTS: Mapping[str, Any] = {"product": "step", "layer": 0, "batch": 1, "steps": None, "part": None}


@record
class GemmRequest:
    """What is asked of `lstmsim.run_gemm`.

    m, n, k: rows of C, columns of C, length of the sums.
    model: a model instead of sizes: a name, a file or a `Model`. product: which one of its layer, a key of `PRODUCTS`.
    layer, batch, steps, part: as in `shape_of_layer`.
    threads: on how many cores; None: as many as `cut` has parts, or on all of the chip.
    chip: a preset's name, a chip's file, or a chip. chip_overrides: texts like `"frequency_mhz=2000"`.
    caches: what lies in them, of `lstmsim.machines.gemm.CACHES`; both are simulated. packed: when B is packed, of
        `lstmsim.machines.gemm.PACKED`; None: once, as a job does, but each for a gradient.
    cut: runs in place of the fastest: `"MK:4x1x16"` (kind, p_m x p_n x p_k), with sizes of blocks
        `"MK:4x1x16:8x512x264"`, or a `Cut`. relief: in place of the planner's, of `lstmsim.machines.gemm.RELIEFS`.
    settings: parameters of the planner, as texts like `"contention=4"` or a mapping.
    baselines: whether the other candidates and all M/N pairs are simulated, numbers: whether C is computed and compared
        with numpy; None: if the product is not too large. ablate: whether the cut is simulated under each relief.
    seed: of the operands. engine: of `lstmsim.engines.ENGINES`.
    """

    m: int | None = None
    n: int | None = None
    k: int | None = None
    _: KW_ONLY
    model: Path | Model | None = None
    product: str = "step"
    layer: int = 0
    batch: int = 1
    steps: int | None = None
    part: int | None = None
    threads: int | None = None
    chip: Path | Chip = "epyc-7742"
    chip_overrides: Sequence[str] = ()
    caches: str = "warm"
    packed: str | None = None
    cut: str | Cut | None = None
    relief: str = "plan"
    settings: Sequence[str] | Mapping[str, Any] = ()
    baselines: bool | None = None
    ablate: bool = False
    numbers: bool | None = None
    seed: int = 0
    engine: str = "fast"


@dataclass(frozen=True, eq=False)
class Asked:
    """A product and where it runs.

    chip: where.
    task: the product.
    engine: a key of `lstmsim.engines.ENGINES`.
    """

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


@record
class GivenCut:
    """A cut as it is given, not yet of any product.

    kind: a key of `lstmsim.machines.gemm.KINDS`.
    parts: into how many parts rows, columns and K are cut.
    sizes: rows, columns and elements of K in a block; None: as the planner would take them.
    """

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
        shape = _shape_given(*sizes.values())
    else:
        given = [name for name, size in sizes.items() if size is not None]
        refuse(Mistake(name, "is given, and a model too: give the one or the other") for name in given)
        shape = shape_of_layer(request.model, layer.pop("product"), **layer)
    _check_size(shape.product)
    return shape


def _check_size(product: Product) -> None:
    sizes = f"{product.m:,} x {product.n:,} x {product.k:,}"
    for name, size in {"A": product.m * product.k, "B": product.k * product.n, "C": product.m * product.n}.items():
        if size > _MOST_ELEMENTS:
            text = f"{sizes}: {name} has {size:,} elements, at most {_MOST_ELEMENTS:,} are simulated"
            raise InputError(Mistake("product", text))


def _shape_given(m: object, n: object, k: object) -> Shape:
    """The product of these sizes; `InputError` with each one that is wrong.

    >>> _shape_given(8, 0, "a")
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
    """The product of a layer of a model."""
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


def asked_for(request: GemmRequest, shape: Shape, threads: object) -> Asked:
    """The product and where it runs; `InputError` for what is wrong."""
    check_word("caches", request.caches, CACHES)
    packed = shape.packed if request.packed is None else request.packed
    check_word("packed", packed, PACKED)
    ready = chip_of(request.chip, request.chip_overrides)
    machine = capability(ready.kind, "gemm")
    if machine is None:
        text = f"its machine has no threads for matrix products; {listed(_chips_with_threads(), 'and')} have"
        raise InputError(Mistake(f"chip {ready.name}", text))
    cores = len(ready.cores)
    if threads is None:
        threads = cores
    elif wrong_whole("threads", threads, 1, cores):
        text = f"must be a whole number from 1 to {cores}, the cores of {ready.name}, got {show(threads)}"
        raise InputError(Mistake("threads", text))
    chosen = options_from(request.settings, machine.PARAMETERS, "parameter of the planner")
    task = GemmTask(shape.product, int(threads), request.caches, chosen, packed)  # type: ignore[call-overload]
    return Asked(ready, task, engines.running(request.engine))


def _chips_with_threads() -> list[str]:
    """Names of the presets whose machines have threads for products."""
    from lstmsim.files.catalog import chip_files
    from lstmsim.studies.shared.loading import load_chip

    return [name for name in chip_files() if capability(load_chip(name).kind, "gemm") is not None]
