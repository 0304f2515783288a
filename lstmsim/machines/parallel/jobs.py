"""Bounds on the operations of a step of a dense job. No kernel is written for them.

Dense recurrent jobs: the kernels of all layers and directions, by kernels of the cells or by fused kernels.

Products of fused steps are written as for the hand-written cells (docs/sparse_kernels.md): one sequence as matrix times
vector, more of them by tiles. All steps are the same kernels over the same arrays, because only the timing is asked
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from lstmsim.base.records import record
from lstmsim.base.wording import counted
from lstmsim.machines.assembly import PerStep
from lstmsim.machines.parallel.device import GATES, ParallelCore, ParallelDevice
from lstmsim.machines.parallel.fused.kernels import fused_kernel
from lstmsim.machines.parallel.fused.values import arrays_of
from lstmsim.machines.parallel.fusion import fusion_device
from lstmsim.machines.parallel.kernel import CLASS, Ints, Kernel, Made, Memory, Priced, Run
from lstmsim.machines.parallel.kernels.dense import Tile, default_tiles, gemm_partials, product_phases, tile_for
from lstmsim.machines.parallel.kernels.phases import phase_kernel
from lstmsim.machines.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.kernels.rows import addressable, default_vector, numbered
from lstmsim.machines.parallel.lowering.program import DeviceJob
from lstmsim.machines.parallel.traffic import footprint, priced
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.cells import StepProduct, products_of, step_graph
from lstmsim.model.fusion.graph import COMPUTE, Graph
from lstmsim.model.fusion.mapping import steps
from lstmsim.model.fusion.plan import GLOBAL, SHARED, SPLIT_RULES, FusionPlan, PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import DISPATCH, Job
from lstmsim.model.sparse.csr import firsts

#: Operations of a global access besides its partitions: scheduler, load/store unit, port.
_ACCESS = 3
#: The same of an access to shared memory; elements of a line; most phases of a step of a persistent kernel.
_SHARED, _LINE, _PHASES = 2, 32, 6
#: Accesses of an element of a cell, each of at most four lines; and its other instructions.
_CELL_ACCESSES, _CELL_OTHERS = 12, 10
#: The same of an element of a fused kernel, and warps of a block without a reduce, most of which may have none.
_FUSED, _BLOCK_WARPS = 40, 8
#: So many operations of packed bodies (8 bytes each, and for each need) are held in place of one that is an object.
#: Kernels for each step are held once for all steps, and a step of LSTM-4096, nearly the largest, takes 1.1 GB. A
#: persistent kernel holds all steps.
_PACKED, _PACKED_PERSISTENT = 48, 16


def per_step(
    cores: Sequence[ParallelCore], model: Model, batch: int = 1, *, fused: bool = False, persistent: bool = False
) -> PerStep:
    """Bounds on the operations of one step of a job on all SMs."""
    warp = max(core.warp for core in cores)
    most = sum(
        layer.directions * (_fused if fused or layer.cell.name not in GATES else _layer)(layer, batch, warp)
        for layer in model.layers
    )
    return PerStep(most, most, _PACKED_PERSISTENT if persistent else _PACKED)


def _layer(layer: Layer, batch: int, warp: int) -> int:
    gates, inner = GATES[layer.cell.name] * layer.hidden, layer.hidden + layer.input
    # what resets before the product has the sums of its new value in a product of their own
    products = (gates - layer.hidden, layer.hidden) if layer.cell.name == "gru-lbr0" else (gates,)
    streams = -(-layer.hidden * batch // warp) + _BLOCK_WARPS
    cells = 2 * streams * (_CELL_ACCESSES * (_ACCESS + 4) + _CELL_OTHERS)
    return cells + sum(_product(rows, inner, batch, warp) for rows in products)


def _fused(layer: Layer, batch: int, warp: int) -> int:
    """The products of a step, and what follows them: every operation may be evaluated by several kernels or stages."""
    graph = step_graph(layer, batch).graph
    products = 0
    for each in products_of(layer):
        products += _product(sum(each.rows), sum(each.columns), batch, warp)
    read = [node.size for node in graph.nodes if node.kind != COMPUTE and not node.name.endswith(".W")]
    return products + sum((-(-size // warp) + _BLOCK_WARPS) * _FUSED for size in read)


def _product(rows: int, inner: int, columns: int, warp: int) -> int:
    if columns == 1:
        return _gemv(rows, inner, warp)
    return max(_gemm(rows, inner, columns, warp, tile) for tile in default_tiles(columns))


def _gemv(rows: int, inner: int, warp: int) -> int:
    """A warp a row: two loads and some multiply-adds a strip, a tree, a store."""
    vector = default_vector(inner)
    strips = -(-inner // (warp * vector))
    return (rows + 4) * (strips * (2 * (_ACCESS + 1 + vector * warp // 32) + vector) + 3 * warp.bit_length() + 8)


def _gemm(rows: int, inner: int, columns: int, warp: int, tile: Tile) -> int:
    """What blocks do for each `bk` elements of their slices, their results, and the kernel that adds up slices."""
    tiles = -(-rows // tile.bm) * -(-columns // tile.bn)
    slices = max(1, inner // 64)
    warps = -(-tile.bm * tile.bn // (tile.tm * tile.tn * warp))
    inside = min(columns, tile.bn)
    strip = inside // _LINE + 2

    # of A each row of a chunk is in a line, or two where rows begin anywhere; its vectors are stored one by one
    va, vb = default_vector(inner), default_vector(columns)
    lines = min(warp, (-(-warp * va // tile.bk) + 1) * (1 if inner % tile.bk == 0 else 2))
    loads = -(-tile.bm * tile.bk // (va * warp)) * (_ACCESS + lines + _SHARED * va)
    lines = min(warp, (-(-warp * vb // tile.bn) + 1) * strip)
    loads += -(-tile.bk * tile.bn // (vb * warp)) * (_ACCESS + lines + _SHARED)
    products = tile.bk * (_SHARED * (tile.tm + tile.tn) // 4 + 1)
    turn = loads + warps * (products + 2)

    # lanes stand 4 columns apart; those after the last column store nothing
    across = tile.bn // tile.tn
    lines = min(warp, (warp // across + 1) * min(across, -(-inside // 4), strip))
    stores = tile.tm * min(tile.tn // vb, -(-columns // vb)) * (_ACCESS + lines)
    # with one for the dispatcher, and grid barriers of a persistent kernel after each phase
    blocks = tiles * slices * (warps * (stores + 1 + 2 * _PHASES) + 1)

    parts = (-(-rows * columns // warp) + _BLOCK_WARPS) * ((slices + 1) * (_ACCESS + warp // _LINE + 2) + 2 * _PHASES)
    return tiles * -(-inner // tile.bk) * turn + blocks + parts


#: How the chip's `fusion` cuts a step into kernels, a mode of plans.
MODE_OF = {"on": "stitch", "off": "op"}
#: Arrays of a product as its phases call them.
_NAMES = ("W", "x", "y")
#: The array of partial results of all products, declared last.
_PARTIAL = "products (partials)"


@record
class FusedStep:
    """The kernels of one time step."""

    run: Run  # the kernels in order, and the arrays of all
    products: tuple[bool, ...]  # of each kernel whether it is (a part of) a product


@lru_cache(maxsize=16)
def planned_step(device: ParallelDevice, layer: Layer, batch: int, split_rule: str) -> FusionPlan:
    """The plan of one time step."""
    return planned(step_graph(layer, batch).graph, fusion_device(device, {"split_rule": split_rule}))


def fused_step(device: ParallelDevice, layer: Layer, batch: int, fusion: str, split_rule: str) -> FusedStep:
    """The kernels of one time step in an order that its graph allows, lowest first operation first."""
    drawn = step_graph(layer, batch)
    graph = drawn.graph
    plan = planned_step(device, layer, batch, split_rule)
    kernels = kernels_of(graph, plan, fusion_device(device, {"split_rule": split_rule}), MODE_OF[fusion])
    memories, partials = arrays_of(graph, kernels)
    products = {graph.numbers[each.product]: each for each in drawn.products}
    tiles = {number: tile_for(sum(each.rows), batch, device.sms) for number, each in products.items() if batch > 1}
    sizes = {number: (sum(products[number].rows), sum(products[number].columns), batch) for number in tiles}
    room = max((gemm_partials(sizes[number], tile, 0, device) for number, tile in tiles.items()), default=0)
    if room:
        memories += (Memory(_PARTIAL, room),)
    memories = addressable(memories, device.element_bytes)
    places = numbered(memories)
    written: list[Kernel] = []
    kinds: list[bool] = []
    for each in steps(graph, kernels):
        if isinstance(each, PlannedKernel):
            own = [fused_kernel(graph, each, partials, places, device)]
        else:
            own = _product_kernels(graph, each, products[each], tiles.get(each), places, device)
        written += own
        kinds += [not isinstance(each, PlannedKernel)] * len(own)
    return FusedStep(Run(memories, tuple(written)), tuple(kinds))


def _product_kernels(
    graph: Graph, number: int, product: StepProduct, tile: Tile | None, places: dict[str, int], device: ParallelDevice
) -> list[Kernel]:
    """The kernels of a product: weights times vectors, with rows as docs/sparse_kernels.md has them."""
    vectors, weights = (graph.nodes[operand].name for operand in graph.operands[number])
    own = dict(zip(_NAMES, (places[weights], places[vectors], places[product.product]), strict=True))
    if _PARTIAL in places:
        own["partial"] = places[_PARTIAL]
    shape = sum(product.columns), graph.nodes[number].shape[0]
    phases = product_phases(device, _NAMES, product.sections, shape, tile, 0)
    return [phase_kernel(each, device, own) for each in phases]


_FMA = CLASS["fma"]
#: Names of the kernels of products; a persistent kernel has the name of its cell.
_PRODUCTS = ("gemv", "gemm", *GATES)


#: The kernels of one direction of a layer, and of each the useful multiply-accumulates of its streams, or None.
_LayerRun = tuple[tuple[Priced, ...], tuple[Ints | None, ...]]


def device_jobs(chip: ParallelDevice, jobs: Sequence[Job]) -> list[DeviceJob]:
    """The kernels of jobs: layer after layer, and of each layer one direction after the other.

    Each of these is a run of its own: what L2 holds at its beginning is the chip's `l2_state`, or what `weights` of the
    job says.
    """
    made = []
    for job in jobs:
        device = _begins(chip, job)
        runs = [_run_of(device, layer, job) for layer in job.model.layers for _ in range(layer.directions)]
        key, from_arrival = DISPATCH[job.dispatch](job)
        kernels = tuple(kernel for run in runs for kernel in run[0])
        work = tuple(each for run in runs for each in run[1])
        made.append(DeviceJob(job.name, kernels, work, job.arrival, key, from_arrival, job.after))
    return made


def _begins(chip: ParallelDevice, job: Job) -> ParallelDevice:
    """The device with the state of L2 that a job finds: warm where all that its runs touch fits there together."""
    if job.weights is None:
        return chip
    runs = ((layer, layer.directions) for layer in job.model.layers)
    warm = job.weights == "warm" and sum(_bytes(chip, layer, job) * ways for layer, ways in runs) <= chip.l2_bytes
    return replace(chip, l2_state="warm" if warm else "cold")


def _bytes(chip: ParallelDevice, layer: Layer, job: Job) -> int:
    """What one direction of a layer touches."""
    if chip.fusion == "cell":
        sizes = RecurrentSizes(layer.hidden, layer.input, job.batch, job.steps, layer.cell.name)
        return _layer_bytes(chip, sizes, chip.recurrent == "persistent")
    return _fused_bytes(chip, replace(layer, bidirectional=False, reverse=False), job.batch)


@lru_cache(maxsize=64)
def _layer_bytes(device: ParallelDevice, sizes: RecurrentSizes, persistent: bool) -> int:
    return footprint(_recurrent(device, sizes, persistent).run)


@lru_cache(maxsize=64)
def _fused_bytes(device: ParallelDevice, layer: Layer, batch: int) -> int:
    return footprint(fused_step(device, layer, batch, device.fusion, device.split_rule).run)


def _run_of(chip: ParallelDevice, layer: Layer, job: Job) -> _LayerRun:
    """The kernels of one direction of a layer; equal ones are the same objects."""
    if chip.fusion == "cell":
        sizes = RecurrentSizes(layer.hidden, layer.input, job.batch, job.steps, layer.cell.name)
        return _layer_run(chip, sizes, chip.recurrent == "persistent")
    # a direction of its own: the kernels do not depend on how many there are
    alone = replace(layer, bidirectional=False, reverse=False)
    return _fused_run(chip, alone, job.batch, job.steps, chip.fusion, chip.split_rule)


@lru_cache(maxsize=8)
def _fused_run(device: ParallelDevice, layer: Layer, batch: int, steps: int, fusion: str, split_rule: str) -> _LayerRun:
    step = fused_step(device, layer, batch, fusion, split_rule)
    kernels = priced(Run(step.run.arrays, step.run.kernels * steps), device)
    shares = _shared_out(kernels[: len(step.products)], step.products, layer.macs_per_step * batch)
    return kernels, shares * steps


def _recurrent(device: ParallelDevice, sizes: RecurrentSizes, persistent: bool) -> Made:
    tile = tile_for(GATES[sizes.cell] * sizes.hidden, sizes.batch, device.sms) if sizes.batch > 1 else None
    return recurrent_layer(sizes, tile, 0, device, persistent)


@lru_cache(maxsize=8)
def _layer_run(device: ParallelDevice, sizes: RecurrentSizes, persistent: bool) -> _LayerRun:
    made = _recurrent(device, sizes, persistent)
    kernels = priced(made.run, device)
    step = len(kernels) if persistent else len(kernels) // sizes.steps
    products = [each.shape.name in _PRODUCTS for each in kernels[:step]]
    shares = _shared_out(kernels[:step], products, made.metrics["macs"] * step // len(kernels))
    return kernels, shares * (len(kernels) // step)


def _shared_out(kernels: Sequence[Priced], products: Sequence[bool], macs: int) -> tuple[Ints | None, ...]:
    """Share the useful multiply-accumulates of some kernels out to the streams of products, by their multiply-adds."""
    counts = []
    for kernel, product in zip(kernels, products, strict=True):
        whole = kernel.instructions
        sums = firsts(np.where(whole.kind == _FMA, whole.count, 0))
        counts.append((sums[whole.first[1:]] - sums[whole.first[:-1]]) * product)
    sums = np.cumsum(np.concatenate(counts))
    upto = np.rint(sums / max(int(sums[-1]), 1) * macs).astype(np.int64)
    shares = np.split(np.diff(upto, prepend=0), np.cumsum([len(each) for each in counts])[:-1])
    return tuple(share if share.any() else None for share in shares)


#: Most layers that are reported.
_MOST = 8


def fused_text(chip: ParallelDevice, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Sentences on what follows the products of a step, like layers once; none where the cells' own kernels run."""
    idle: tuple[str, ...] = ()
    if chip.fusion != "on" and chip.split_rule != SPLIT_RULES[0]:
        why = f"only `fusion: on` splits rows, and fusion is {chip.fusion}"
        idle = (f"split_rule: {chip.split_rule} has no effect: {why}.",)
    if chip.fusion == "cell":
        return idle
    alike: dict[tuple[Layer, int], list[str]] = {}
    for model, batch in {(job.model.name, id(job.model), job.batch): (job.model, job.batch) for job in jobs}.values():
        for number, layer in enumerate(model.layers):
            alike.setdefault((layer, batch), []).append(f"layer {number} of {model.name}")
    reported = [_layer_text(chip, layer, batch, names) for (layer, batch), names in list(alike.items())[:_MOST]]
    more = len(alike) - len(reported)
    return (*reported, *([f"Fusion: and {more} more kinds of layers."] if more else []), *idle)


def _layer_text(chip: ParallelDevice, layer: Layer, batch: int, names: Sequence[str]) -> str:
    plan = planned_step(chip, layer, batch, chip.split_rule)
    operations = sum(len(each.nodes) for each in plan.subgraphs)
    products = sum(node.op == "matmul" for node in plan.graph.nodes)
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    beside = counted(products, "product")
    ways = ", in each direction," if layer.bidirectional else ""
    rule = f", split_rule {chip.split_rule}" if chip.fusion == "on" else ""
    reported = f"{names[0]}{others} ({layer.cell.name}, batch {batch})"
    step = f"Fusion {chip.fusion}{rule}: a step of {reported}{ways} is {beside} and"
    if chip.fusion == "off":
        return f"{step} {counted(operations, 'operation')}, a kernel for each."
    kernels = "; ".join(_kernel(each.kernel, len(each.nodes)) for each in plan.subgraphs)
    return f"{step} {counted(len(plan.subgraphs), 'kernel')}: {kernels}{_other_rule(chip, layer, batch, plan)}."


def _other_rule(chip: ParallelDevice, layer: Layer, batch: int, plan: FusionPlan) -> str:
    """How often blocks would meet by the other rule for splits, if not as often. That is planned only: no cycles."""
    (rule,) = (each for each in SPLIT_RULES if each != chip.split_rule)
    other = planned_step(chip, layer, batch, rule)
    own, its = (sum(each.kernel.grid_barriers for each in some.subgraphs) for some in (plan, other))
    if own == its:
        return ""
    # what-if tries only the rule that is not the usual one
    tried = "; `simulate --explain` tries it" if rule != SPLIT_RULES[0] else ""
    return f"; split_rule {rule} would have {counted(its, 'grid barrier') if its else 'no grid barrier'}{tried}"


def _kernel(kernel: PlannedKernel, operations: int) -> str:
    """A kernel in short: its grid, where its values lie, how often all blocks meet."""
    schemes = [stage.scheme for stage in kernel.stages]
    lie = [f"{schemes.count(each)} {each}" for each in (SHARED, GLOBAL) if each in schemes]
    parts = [
        f"{counted(operations, 'operation')} in {counted(len(schemes), 'stage')}",
        f"{counted(kernel.blocks, 'block')} of {kernel.threads} threads",
        *([f"values: {' and '.join(lie)}"] if lie else []),
        *([counted(kernel.grid_barriers, "grid barrier")] if kernel.grid_barriers else []),
    ]
    return ", ".join(parts)
