"""Sparse products on the device: methods and their parameters, programs, figures, baselines, ablations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from math import prod
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.kernels import KernelWork, Settings, SparseFigures, SparseTask, Variant
from lstmsim.machines.parallel.device import HALVES, NOT_MODELLED, ParallelDevice
from lstmsim.machines.parallel.kernel import Made
from lstmsim.machines.parallel.kernels.dense import GemmOptions, default_tiles, gemm, gemv, tile_of
from lstmsim.machines.parallel.kernels.hbp import ConvertOptions, HbpOptions, block_sizes, hbp_conversion, hbp_spmv
from lstmsim.machines.parallel.kernels.rows import options_of
from lstmsim.machines.parallel.kernels.sddmm import SddmmOptions, sddmm
from lstmsim.machines.parallel.kernels.spmm import SpmmOptions, spmm
from lstmsim.machines.parallel.kernels.spmv import SpmvOptions, spmv
from lstmsim.machines.parallel.lowering.program import Lowered, Traffic, figures_of, program_of_kernels, traffic_of
from lstmsim.machines.parallel.traffic import priced
from lstmsim.program.trace import Totals


@record
class NoOptions:
    """The parameters of a kernel that has none."""


@record
class Method:
    """One way to do a product."""

    about: str  # a sentence on it
    options: type  # the class of its parameters
    make: Callable[[SparseTask, Any, ParallelDevice], Made]  # gives kernels for a product, its parameters and a device
    fixed: Mapping[str, Any] = field(default_factory=dict)  # parameters that are part of the method

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

    def ruled(self, task: SparseTask, device: ParallelDevice) -> dict[str, Any]:
        """What a rule chooses, by name; `InputError` as from `of`."""
        options = self.of(task, device)
        return {name: getattr(options, name) for name in self.by_rule(task.options)}

    def of(self, task: SparseTask, device: ParallelDevice) -> Any:
        """The parameters of a product; `InputError` for one that does not fit."""
        given = {name: each for name, each in task.options.items() if each is not None} | dict(self.fixed)
        ruled = self.by_rule(given)
        # what is given is checked before a rule reads it
        checked: Any = options_of(self.options, given | dict.fromkeys(ruled, device.core.warp))
        return replace(checked, **sizes_by_rule(task, checked, device, ruled)) if ruled else checked


def sizes_by_rule(task: SparseTask, options: Any, device: ParallelDevice, ruled: Sequence[str]) -> dict[str, int]:
    """Those of the rows `m` and columns `n` of HBP's blocks that are in `ruled`."""
    warps, places = (getattr(options, name, getattr(HbpOptions, name)) for name in ("warps", "blocks_per_sm"))
    given = {name: None if name in ruled else getattr(options, name) for name in ("m", "n")}
    shape = task.matrix.rows, task.matrix.columns
    m, n = block_sizes(shape, device.core.warp, device.sms * places * warps, **given)
    return {name: size for name, size in (("m", m), ("n", n)) if name in ruled}


def _of_operands(make: Callable[..., Made]) -> Callable[[SparseTask, Any, ParallelDevice], Made]:
    """The writer of a kernel of a matrix and dense operands, as methods have it."""
    return lambda task, options, device: make(task.matrix, *task.operands, options, device)


def _gemv(task: SparseTask, options: NoOptions, device: ParallelDevice) -> Made:
    _check_dense(task.matrix.rows, task.matrix.columns)
    return gemv(task.matrix.rows, task.matrix.columns, device, (task.matrix.dense(), task.operands[0]))


def _gemm(task: SparseTask, options: GemmOptions, device: ParallelDevice) -> Made:
    matrix, dense = task.matrix, task.operands[0]
    sizes = matrix.rows, matrix.columns, dense.shape[1]
    _check_dense(*sizes)
    # the first tile of the rule; `choices` has the others
    tile = tile_of(options) or default_tiles(sizes[2])[0]
    return gemm(sizes, tile, options.split, device, (matrix.dense(), dense))


def _all_products(task: SparseTask, options: GemmOptions, device: ParallelDevice) -> Made:
    left, right = task.operands
    sizes = len(left), left.shape[1], len(right)
    _check_dense(*sizes)
    return gemm(sizes, tile_of(options) or default_tiles(sizes[2])[0], options.split, device)


def _check_dense(*sizes: int) -> None:
    if not min(sizes):
        raise InputError(Mistake("matrix", "has no rows or no columns, so that there is no dense product of it"))
    if prod(sizes) > _MOST_PRODUCTS or sizes[0] * sizes[1] > _MOST_PLACES:
        shown = " x ".join(map(str, sizes))
        text = f"a dense product of {shown} is too large to simulate, with more than {_MOST_PRODUCTS} products"
        raise InputError(Mistake("matrix", f"{text} or {_MOST_PLACES} numbers in the matrix"))


#: Some 10^7 instructions of warps, and 1 GB of numbers.
_MOST_PRODUCTS, _MOST_PLACES = 1 << 30, 1 << 27
_LANES = (1, 2, 4, 8, 16, 32)
_spmm, _spmv, _sddmm, _hbp = (_of_operands(each) for each in (spmm, spmv, sddmm, hbp_spmv))
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
CONVERT = Method(
    "conversion of CSR to HBP",
    ConvertOptions,
    lambda task, options, device: hbp_conversion(task.matrix, options, device),
)


_ORDER = ("plain", "sorted")
_DISPATCH = ("demand", "static", "round", "snake")
#: Of each kind of kernel what is combined, and what is changed alone. Sizes that depend on the product are added.
_TOGETHER: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "spmm": {"tile": (8, 16, 32, 64), "order": _ORDER, "dispatch": (*_DISPATCH, "hybrid")},
    "spmv": {"lanes": (), "order": _ORDER, "v": (1, 2, 4)},
    "hbp": {"m": (), "n": (), "fixed_percent": (100, 50, 0), "merge": ("kernel", "atomic")},
    "sddmm": {"tile": (8, 16, 32, 64), "order": _ORDER, "dispatch": _DISPATCH},
    "dense": {},
}
_ALONE: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "spmm": {
        "v": (1, 2, 4),
        "warps": (1, 2, 4, 8),
        "k_tile": (8, 16, 32, 64),
        "align": ("reverse", "none", "pad"),
        "fetch": ("needed", "all"),
        "share": (False, True),
        "blocks": (),
    },
    "spmv": {"warps": (1, 2, 4, 8), "dispatch": _DISPATCH, "align": ("reverse", "none")},
    "hbp": {
        "batch": (1, 2, 4, 10, 20),
        "warps": (1, 2, 4, 8, 16),
        "blocks_per_sm": (1, 2, 4, 8),
        "hash": ("linear", "linear-warp", "shift", "sampled", "sort"),
    },
    "sddmm": {"v": (1, 2, 4), "lanes": (), "warps": (1, 2, 4, 8)},
    "dense": {},
}
#: Fewest and most columns of a block of HBP, most rows in warps; most thread blocks of a multiprocessor.
_COLUMNS, _WARPS, _SLOTS = (64, 4096), 16, 32


def settings_of(family: str, left: Sequence[str], task: SparseTask, device: ParallelDevice) -> Settings:
    """What is searched for a kind of kernel."""
    sizes = {
        # more rows than the matrix has place them otherwise; more columns change nothing
        "m": _doubled(device.core.warp, _WARPS * device.core.warp),
        "n": _doubled(_COLUMNS[0], min(_COLUMNS[1], task.matrix.columns)),
        "lanes": _doubled(1, device.core.warp),
        "blocks": (None, *_doubled(device.sms, _SLOTS * device.sms)),
    }
    together, alone = (
        {name: values or sizes[name] for name, values in some[family].items() if name in left}
        for some in (_TOGETHER, _ALONE)
    )
    return Settings(together, alone)


def _doubled(low: int, enough: int) -> tuple[int, ...]:
    """Sizes from the smallest on, each twice the one before, up to the first that is enough."""
    sizes = [low]
    while sizes[-1] < enough:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)


#: A method that no user can ask for: it makes no product.
_CONVERT = "convert"
_ALL_PRODUCTS = "all M x N products; neither picks those at C's entries nor multiplies by C"
#: What each name among the counts means.
MEANINGS = {
    "load_requests": "instructions that load from memory",
    "requests": "instructions that load, store or add atomically",
    "l1_sectors": "loaded sectors that L1 answers",
    "l2_sectors": "sectors through the ports of the SMs to L2, stores included",
    "dram_sectors": "sectors that L2 has not",
    "masked": "elements in front of rows that are loaded for alignment and count as 0",
    "tail": "elements that vectors load after the ends of rows",
    "lane_slots": "lanes of all steps of the inner loops, idle ones included",
    "lane_active": "of these, lanes with a useful element",
    "efficiency": "lane_active over lane_slots",
    "storage": "entries that are stored, filled ones included",
    "blocks_in_grid": "thread blocks",
    "idle_blocks": "thread blocks that find nothing to do",
    "lanes": "lanes of a row",
    "share": "blocks of the matrix in the fixed part of a warp",
    "pool": "blocks of the matrix that thread blocks compete for",
    "batches": "batches of the pool",
    "probes": "entries of hash tables that were looked at, the taken ones included",
    "finds": "the same for a table that keeps its free entries linked",
    "search_steps": "columns that binary searches looked at",
}
#: What is not modelled.
LEFT_OUT = (
    *NOT_MODELLED,
    "both operands sparse, a master node that compiles the result, several devices",
    "moving operands to the device, and (but for the row of its own) converting or sorting the matrix",
)


@dataclass(frozen=True, eq=False)
class _Own:
    """What a lowered product keeps for its figures."""

    made: Made
    options: Mapping[str, Any]
    by_rule: tuple[str, ...]
    lowered: Lowered
    traffic: Traffic


def parameters(kernel: str, method: str) -> Mapping[str, Any]:
    """The parameters of a method with their defaults; None: the default depends on the matrix."""
    return METHODS[kernel][method].parameters


def lower(chip: ParallelDevice, task: SparseTask) -> KernelWork:
    """Make a program of a product; `InputError` if parameters do not fit."""
    method = _method(task)
    if chip.element_bytes != 4 and _family(task) != "dense":
        text = "a sparse kernel reads numbers and indices of 4 bytes; 2 is for jobs and for the method dense"
        raise InputError(Mistake(f"chip {chip.name}: element_bytes", text))
    options = method.of(task, chip)
    made = method.make(task, options, chip)
    kernels = priced(made.run, chip)
    lowered = program_of_kernels(chip, kernels, f"{task.kernel} {task.method}")
    shown = {each.name: getattr(options, each.name) for each in fields(options)}
    own = _Own(made, shown, method.by_rule(task.options), lowered, traffic_of(made.run, kernels))
    remarks = () if chip.element_bytes == 4 else (HALVES, "the result is computed in the type of its operands")
    if "hash" in shown and shown.get("m") == chip.core.warp:
        one = f"blocks have m {chip.core.warp} rows, which is one warp"
        remarks = (f"{one}: the order in a block changes nothing, so all hashes are equal", *remarks)
    return KernelWork(lowered.flat, lowered.names, own, made.result, remarks)


def figures(chip: ParallelDevice, task: SparseTask, work: KernelWork, totals: Totals) -> SparseFigures:
    """The figures of the run of a program."""
    own, metrics = work.own, work.own.made.metrics
    counts = {**own.traffic.counts, **{name: each for name, each in metrics.items() if name != "macs"}}
    if counts.get("lane_slots"):
        counts["efficiency"] = counts["lane_active"] / counts["lane_slots"]
    return figures_of(
        *(SparseFigures, chip, own.lowered, totals),
        counts=counts,
        loads=own.traffic.loads,
        macs=metrics.get("macs", 0),
        peak=chip.sms * chip.core.schedulers * chip.core.lanes,
        options=own.options,
        by_rule=own.by_rule,
    )


def choices(chip: ParallelDevice, task: SparseTask) -> Sequence[Variant]:
    """The tiles of which a dense product is to have the fastest; none if one is given or there is only one."""
    if task.kernel == "spmv" or task.method != "dense" or "bm" in task.options:
        return ()
    columns = task.matrix.columns if task.kernel == "sddmm" else int(task.operands[0].shape[1])
    rows = tuple(
        Variant(f"tile {tile.bm} x {tile.bn}", task.method, {**task.options, **vars(tile)})
        for tile in default_tiles(columns)
    )
    return rows if len(rows) > 1 else ()


def settings(chip: ParallelDevice, task: SparseTask) -> Settings:
    """What a search for the fastest setting of a task simulates; what the task sets is not among it."""
    left = [name for name in _method(task).parameters if task.options.get(name) is None]
    return settings_of(_family(task), left, task, chip)


def baselines(chip: ParallelDevice, task: SparseTask) -> Sequence[Variant]:
    """The rows that a fair table has besides a task, without the task itself."""
    rows = {"spmm": _beside_spmm, "spmv": _beside_spmv, "sddmm": _beside_sddmm}[task.kernel](task, chip)
    own = _whole(task.kernel, task.method, task.options)
    return tuple(each for each in rows if _whole(task.kernel, each.method, each.options) != own)


def ablations(chip: ParallelDevice, task: SparseTask) -> Sequence[Variant]:
    """The task with each mechanism off in turn; the first row is what the others are measured by."""
    on, changes = _MECHANISMS[_family(task)]
    known = _method(task).parameters
    base = {name: each for name, each in on.items() if name in known} | dict(task.options)
    # what a rule chooses stays as it is when another parameter changes
    base |= _method(task).ruled(replace(task, options=base), chip)
    first = ", ".join(f"{name} {each}" for name, each in base.items()) or "as it is"
    rows = [Variant(first, task.method, base)]
    for change in changes:
        if set(change) <= set(known) and any(base.get(name, known[name]) != each for name, each in change.items()):
            words = {name: str(each).lower() if isinstance(each, bool) else each for name, each in change.items()}
            name = ", ".join(f"{name} {word}" for name, word in words.items())
            rows.append(Variant(name, task.method, base | dict(change)))
    return tuple(rows)


def _whole(kernel: str, method: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A method with all its parameters."""
    known = {} if method == _CONVERT else METHODS[kernel][method].parameters
    return method, {**known, **options}


def _method(task: SparseTask) -> Method:
    return CONVERT if task.method == _CONVERT else METHODS[task.kernel][task.method]


def _family(task: SparseTask) -> str:
    """The kind of kernel that a method is."""
    if task.method == "dense":
        return "dense"
    return "hbp" if task.method in ("hbp", "2d") else task.kernel


def _beside_spmm(task: SparseTask, device: ParallelDevice) -> Iterator[Variant]:
    given = dict(task.options) if task.method != "dense" else {}
    # lists of tiles are a dispatch of their own
    given.pop("blocks", None)
    method = "csr" if task.method == "dense" else task.method
    for order, dispatch in (("plain", "demand"), ("sorted", "demand"), ("sorted", "snake"), ("plain", "static")):
        words = {"plain": "unsorted", "sorted": "sorted"}[order]
        placing = {"demand": "on demand", "snake": "dealt to and fro", "static": "dealt in runs"}[dispatch]
        yield Variant(f"{method}, {words}, {placing}", method, given | {"order": order, "dispatch": dispatch})
    yield Variant("dense GEMM", "dense", {})


def _beside_spmv(task: SparseTask, device: ParallelDevice) -> Iterator[Variant]:
    for lanes in (1, 4, 8, 32):
        yield Variant(f"CSR, {lanes} lane{'s' * (lanes > 1)} a row", f"csr-{lanes}", {})
    own = dict(task.options) if _family(task) == "hbp" else {}
    blocks = {name: each for name, each in own.items() if name != "hash"}
    yield Variant("2-D blocks, no hash", "2d", blocks)
    yield Variant("HBP", "hbp", own)
    yield Variant("dense GEMV", "dense", {})
    if _family(task) == "hbp":
        kept = {name: each for name, each in own.items() if name in CONVERT.parameters}
        # blocks of the product's own sizes, which a rule may have chosen for its warps
        kept |= _method(task).ruled(task, device)
        fixed = {"hash": "identity"} if task.method == "2d" else {}
        yield Variant("(once, before all: conversion to HBP)", _CONVERT, kept | fixed)


def _beside_sddmm(task: SparseTask, device: ParallelDevice) -> Iterator[Variant]:
    given = dict(task.options) if task.method != "dense" else {}
    method = "csr" if task.method == "dense" else task.method
    for order, dispatch in (("plain", "demand"), ("sorted", "demand"), ("plain", "static")):
        words = f"{method}, {'unsorted' if order == 'plain' else 'sorted'}, {dispatch}"
        yield Variant(words, method, given | {"order": order, "dispatch": dispatch})
    yield Variant("dense GEMM", "dense", {}, _ALL_PRODUCTS)


#: Of each kind of kernel the mechanisms that are on at first, and what turns each off or does it in another way.
_MECHANISMS: Mapping[str, tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] = {
    "spmm": (
        {"order": "sorted", "dispatch": "demand", "align": "reverse"},
        (
            *({"order": "plain"}, {"order": "plain", "dispatch": "static"}),
            *({"dispatch": each} for each in ("static", "round", "snake", "hybrid")),
            *({"align": "none"}, {"align": "pad"}, {"v": 1}, {"v": 2}, {"k_tile": 8}),
            *({"warps": 4}, {"warps": 4, "share": True}, {"fetch": "all"}, {"format": "dcsr"}),
        ),
    ),
    "spmv": (
        {},
        (
            *({"lanes": each} for each in (1, 2, 4, 8, 16, 32)),
            *({"order": "sorted"}, {"dispatch": "static"}, {"order": "sorted", "dispatch": "snake"}),
            *({"v": 2}, {"v": 4}, {"v": 4, "align": "none"}, {"warps": 1}),
        ),
    ),
    "hbp": (
        {"hash": "linear", "merge": "kernel", "fixed_percent": 100},
        (
            *({"hash": each} for each in ("identity", "linear-warp", "shift", "sampled", "sort")),
            *({"merge": "atomic"}, {"fixed_percent": 50}, {"fixed_percent": 50, "batch": 2}, {"fixed_percent": 0}),
            *({"blocks_per_sm": 1}, {"blocks_per_sm": 8}, {"warps": 8}),
        ),
    ),
    "sddmm": (
        {"order": "sorted", "dispatch": "demand"},
        (
            *({"order": "plain"}, {"order": "plain", "dispatch": "static"}, {"dispatch": "round"}),
            *({"dispatch": "snake"}, {"v": 1}, {"lanes": 1}, {"lanes": 4}, {"tile": 8}),
        ),
    ),
    "dense": ({}, ({"split": 1},)),
}
