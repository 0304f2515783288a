"""The ways in which the device does a sparse product: each makes kernels of a product and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, fields, replace
from math import prod
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.kernels import SparseTask
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernels.blocks.convert import ConvertOptions, hbp_conversion
from lstmsim.machines.parallel.kernels.blocks.hbp import HbpOptions, hbp_spmv
from lstmsim.machines.parallel.kernels.blocks.sizes import block_sizes
from lstmsim.machines.parallel.kernels.csr.sddmm import SddmmOptions, sddmm
from lstmsim.machines.parallel.kernels.csr.spmm import spmm
from lstmsim.machines.parallel.kernels.csr.spmm_plan import SpmmOptions
from lstmsim.machines.parallel.kernels.csr.spmv import SpmvOptions, spmv
from lstmsim.machines.parallel.kernels.dense.gemm import gemm
from lstmsim.machines.parallel.kernels.dense.gemv import gemv
from lstmsim.machines.parallel.kernels.dense.tiles import GemmOptions, Tile, default_tiles, tile_of
from lstmsim.machines.parallel.kernels.made import Made
from lstmsim.machines.parallel.kernels.options import options_of

__all__ = ["CONVERT", "METHODS", "Method"]


@record
class NoOptions:
    """The parameters of a kernel that has none."""


@record
class Method:
    """One way to do a product.

    about: a sentence on it.
    options: the class of its parameters.
    make: gives kernels for a product, its parameters and a device.
    fixed: parameters that are part of the method.
    """

    about: str
    options: type
    make: Callable[[SparseTask, Any, Device], Made]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters that a user may give, with their defaults; None: it follows from the matrix."""
        own = fields(self.options)
        known: dict[str, Any] = {each.name: None if each.default is MISSING else each.default for each in own}
        return {name: each for name, each in known.items() if name not in self.fixed}

    def by_rule(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        """The parameters that a rule chooses by the matrix and the device, because they are not given."""
        own = [each.name for each in fields(self.options) if each.default is MISSING]
        return tuple(name for name in own if given.get(name) is None)

    def ruled(self, task: SparseTask, device: Device) -> dict[str, Any]:
        """What a rule chooses, by name; `InputError` as from `of`."""
        options = self.of(task, device)
        return {name: getattr(options, name) for name in self.by_rule(task.options)}

    def of(self, task: SparseTask, device: Device) -> Any:
        """The parameters of a product; `InputError` for one that does not fit."""
        given = {name: each for name, each in task.options.items() if each is not None} | dict(self.fixed)
        ruled = self.by_rule(given)
        # what is given is checked before a rule reads it
        checked: Any = options_of(self.options, given | dict.fromkeys(ruled, device.warp))
        return replace(checked, **sizes_by_rule(task, checked, device, ruled)) if ruled else checked


def sizes_by_rule(task: SparseTask, options: Any, device: Device, ruled: Sequence[str]) -> dict[str, int]:
    """Those of the rows `m` and columns `n` of HBP's blocks that are in `ruled`.

    options: of HBP or of its conversion, which is chosen for a product with the defaults.
    """
    warps, places = (getattr(options, name, getattr(HbpOptions, name)) for name in ("warps", "blocks_per_sm"))
    given = {name: None if name in ruled else getattr(options, name) for name in ("m", "n")}
    shape = task.matrix.rows, task.matrix.columns
    sizes = dict(zip(("m", "n"), block_sizes(shape, device.warp, device.sms * places * warps, **given), strict=True))
    return {name: sizes[name] for name in ruled}


def _spmm(task: SparseTask, options: SpmmOptions, device: Device) -> Made:
    return spmm(task.matrix, task.operands[0], options, device)


def _spmv(task: SparseTask, options: SpmvOptions, device: Device) -> Made:
    return spmv(task.matrix, task.operands[0], options, device)


def _sddmm(task: SparseTask, options: SddmmOptions, device: Device) -> Made:
    return sddmm(task.matrix, task.operands[0], task.operands[1], options, device)


def _hbp(task: SparseTask, options: HbpOptions, device: Device) -> Made:
    return hbp_spmv(task.matrix, task.operands[0], options, device)


def _convert(task: SparseTask, options: ConvertOptions, device: Device) -> Made:
    return hbp_conversion(task.matrix, options, device)


def _gemv(task: SparseTask, options: NoOptions, device: Device) -> Made:
    _check_dense(task.matrix.rows, task.matrix.columns)
    return gemv(task.matrix.rows, task.matrix.columns, device, (task.matrix.dense(), task.operands[0]))


def _gemm(task: SparseTask, options: GemmOptions, device: Device) -> Made:
    matrix, dense = task.matrix, task.operands[0]
    sizes = matrix.rows, matrix.columns, dense.shape[1]
    _check_dense(*sizes)
    return gemm(sizes, _tile(options, sizes[2]), options.split, device, (matrix.dense(), dense))


def _all_products(task: SparseTask, options: GemmOptions, device: Device) -> Made:
    left, right = task.operands
    sizes = len(left), left.shape[1], len(right)
    _check_dense(*sizes)
    return gemm(sizes, _tile(options, sizes[2]), options.split, device)


def _check_dense(*sizes: int) -> None:
    if not min(sizes):
        raise InputError(Mistake("matrix", "has no rows or no columns, so that there is no dense product of it"))
    if prod(sizes) > _MOST_PRODUCTS or sizes[0] * sizes[1] > _MOST_PLACES:
        shown = " x ".join(map(str, sizes))
        text = f"a dense product of {shown} is too large to simulate, with more than {_MOST_PRODUCTS} products"
        raise InputError(Mistake("matrix", f"{text} or {_MOST_PLACES} numbers in the matrix"))


def _tile(options: GemmOptions, columns: int) -> Tile:
    """The tile that is given, else the first one of the rule; whoever wants the fastest asks `Products.choices`."""
    return tile_of(options) or default_tiles(columns)[0]


#: Some 10^7 instructions of warps, and 1 GB of numbers.
_MOST_PRODUCTS, _MOST_PLACES = 1 << 30, 1 << 27
_LANES = (1, 2, 4, 8, 16, 32)
#: Of each kernel its methods; the first one is the default.
METHODS: Mapping[str, Mapping[str, Method]] = {
    "spmm": {
        "csr": Method("rows of CSR in lockstep, tiles of C, vector loads", SpmmOptions, _spmm, {"format": "csr"}),
        "dcsr": Method("the same without empty rows", SpmmOptions, _spmm, {"format": "dcsr"}),
        "dense": Method("dense GEMM in tiles, zeros included", GemmOptions, _gemm),
    },
    "spmv": {
        "csr": Method("CSR, lanes of a row by its mean length", SpmvOptions, _spmv),
        **{
            f"csr-{lanes}": Method(f"CSR, {lanes} lane{'s' * (lanes > 1)} a row", SpmvOptions, _spmv, {"lanes": lanes})
            for lanes in _LANES
        },
        "hbp": Method("blocks of rows that a hash places by length, fixed part and pool", HbpOptions, _hbp),
        "2d": Method("the blocks of HBP without a hash", HbpOptions, _hbp, {"hash": "identity"}),
        "dense": Method("dense GEMV, zeros included", NoOptions, _gemv),
    },
    "sddmm": {
        "csr": Method("runs of entries of a row, several elements a lane, sums by shuffles", SddmmOptions, _sddmm),
        "gradient": Method(
            "the same, with 1 for each value of C: [dY X^T] o I(W), what training of a sparse layer needs",
            SddmmOptions,
            _sddmm,
            {"mode": "indicator"},
        ),
        "dense": Method("dense GEMM of all products, wanted or not", GemmOptions, _all_products),
    },
}
#: The conversion of CSR to HBP, which comes once before many products.
CONVERT = Method("conversion of CSR to HBP", ConvertOptions, _convert)
