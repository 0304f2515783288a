"""Dense recurrent jobs: the kernels of all layers and directions, by kernels of the cells or by fused kernels.

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
from lstmsim.machines.parallel.device import GATES, ParallelDevice
from lstmsim.machines.parallel.fused.kernels import fused_kernel
from lstmsim.machines.parallel.fused.study import fusion_device
from lstmsim.machines.parallel.fused.values import arrays_of
from lstmsim.machines.parallel.kernel import CLASS, Ints, Kernel, Memory, Priced, Run
from lstmsim.machines.parallel.kernels.gemm import Tile, gemm_partials, gemm_phases, tile_for
from lstmsim.machines.parallel.kernels.gemv import Gemv
from lstmsim.machines.parallel.kernels.phases import Phase, phase_kernel
from lstmsim.machines.parallel.kernels.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.kernels.rows import addressable
from lstmsim.machines.parallel.lowering.program import DeviceJob
from lstmsim.machines.parallel.traffic import priced
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.cells import StepProduct, step_graph
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.groups import steps
from lstmsim.model.fusion.plan import GLOBAL, SHARED, SPLIT_RULES, FusionPlan, PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.model.model import Layer
from lstmsim.model.scenario import DISPATCH, Job
from lstmsim.model.sparse.csr import firsts

#: How the chip's `fusion` cuts a step into kernels, a mode of plans.
MODE_OF = {"on": "stitch", "off": "op"}
#: Arrays of a product as its phases call them.
_NAMES = ("W", "x", "y")
#: The array of partial results of all products, declared last.
_PARTIAL = "products (partials)"


@record
class FusedStep:
    """The kernels of one time step.

    run: the kernels in order, and the arrays of all.
    products: of each kernel whether it is (a part of) a product.
    """

    run: Run
    products: tuple[bool, ...]


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
    tiles = {graph.numbers[each.product]: _tile(each, batch, device) for each in drawn.products}
    products = {graph.numbers[each.product]: each for each in drawn.products}
    room = max(_partials(products[number], batch, tile, device) for number, tile in tiles.items())
    if room:
        memories += (Memory(_PARTIAL, room),)
    memories = addressable(memories, device.element_bytes)
    places = {each.name: place for place, each in enumerate(memories)}
    written: list[Kernel] = []
    kinds: list[bool] = []
    for each in steps(graph, kernels):
        if isinstance(each, PlannedKernel):
            own = [fused_kernel(graph, each, partials, places, device)]
        else:
            own = _product(graph, each, products[each], tiles[each], places, device)
        written += own
        kinds += [not isinstance(each, PlannedKernel)] * len(own)
    return FusedStep(Run(memories, tuple(written)), tuple(kinds))


def _tile(product: StepProduct, batch: int, device: ParallelDevice) -> Tile | None:
    return tile_for(sum(product.rows), batch, device.sms) if batch > 1 else None


def _partials(product: StepProduct, batch: int, tile: Tile | None, device: ParallelDevice) -> int:
    sizes = (sum(product.rows), sum(product.columns), batch)
    return gemm_partials(sizes, tile, 0, device) if tile else 0


def _product(
    graph: Graph, number: int, product: StepProduct, tile: Tile | None, places: dict[str, int], device: ParallelDevice
) -> list[Kernel]:
    """The kernels of a product: weights times vectors, with rows as docs/sparse_kernels.md has them."""
    vectors, weights = (graph.nodes[operand].name for operand in graph.operands[number])
    own = dict(zip(_NAMES, (places[weights], places[vectors], places[product.product]), strict=True))
    if _PARTIAL in places:
        own["partial"] = places[_PARTIAL]
    rows, columns = sum(product.rows), sum(product.columns)
    phases: list[Phase] = [Gemv(device.core.warp, _NAMES, product.sections, columns)]
    if tile is not None:
        sizes = (rows, columns, graph.nodes[number].shape[0])
        phases = gemm_phases(device, _NAMES, sizes, tile, 0, product.sections)
    return [phase_kernel(each, device, own) for each in phases]


_FMA = CLASS["fma"]
#: Names of the kernels of products; a persistent kernel has the name of its cell.
_PRODUCTS = ("gemv", "gemm", *GATES)


@record
class _LayerRun:
    """The kernels of one direction of a layer.

    kernels: as they are lowered.
    work: of each kernel the useful multiply-accumulates of its streams, or None.
    """

    kernels: tuple[Priced, ...]
    work: tuple[Ints | None, ...]


def device_jobs(chip: ParallelDevice, jobs: Sequence[Job]) -> list[DeviceJob]:
    """The kernels of jobs: layer after layer, and of each layer one direction after the other.

    Each of these is a run of its own: what L2 holds at its beginning is the chip's `l2_state`.
    """
    made = []
    for job in jobs:
        runs = [_run_of(chip, layer, job) for layer in job.model.layers for _ in range(layer.directions)]
        key, from_arrival = DISPATCH[job.dispatch](job)
        kernels = tuple(kernel for run in runs for kernel in run.kernels)
        work = tuple(each for run in runs for each in run.work)
        made.append(DeviceJob(job.name, kernels, work, job.arrival, key, from_arrival, job.after))
    return made


def _run_of(chip: ParallelDevice, layer: Layer, job: Job) -> _LayerRun:
    """The kernels of one direction of a layer; equal ones are the same objects."""
    if chip.fusion == "cell":
        return _layer_run(chip, _sizes(layer, job.batch, job.steps), chip.recurrent == "persistent")
    # a direction of its own: the kernels do not depend on how many there are
    alone = replace(layer, bidirectional=False, reverse=False)
    return _fused_run(chip, alone, job.batch, job.steps, chip.fusion, chip.split_rule)


@lru_cache(maxsize=8)
def _fused_run(device: ParallelDevice, layer: Layer, batch: int, steps: int, fusion: str, split_rule: str) -> _LayerRun:
    step = fused_step(device, layer, batch, fusion, split_rule)
    kernels = priced(Run(step.run.arrays, step.run.kernels * steps), device)
    shares = _shared_out(kernels[: len(step.products)], step.products, layer.macs_per_step * batch)
    return _LayerRun(kernels, shares * steps)


def _sizes(layer: Layer, batch: int, steps: int) -> RecurrentSizes:
    return RecurrentSizes(layer.hidden, layer.input, batch, steps, layer.cell.name)


@lru_cache(maxsize=8)
def _layer_run(device: ParallelDevice, sizes: RecurrentSizes, persistent: bool) -> _LayerRun:
    tile = tile_for(GATES[sizes.cell] * sizes.hidden, sizes.batch, device.sms) if sizes.batch > 1 else None
    made = recurrent_layer(sizes, tile, 0, device, persistent)
    kernels = priced(made.run, device)
    step = len(kernels) if persistent else len(kernels) // sizes.steps
    products = [each.shape.name in _PRODUCTS for each in kernels[:step]]
    shares = _shared_out(kernels[:step], products, made.metrics["macs"] * step // len(kernels))
    return _LayerRun(kernels, shares * (len(kernels) // step))


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


#: Most layers that are told.
_MOST = 8


def fused_text(chip: ParallelDevice, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Sentences on what follows the products of a step, like layers once; none where the cells' own kernels run."""
    idle = _rule_without_use(chip)
    if chip.fusion == "cell":
        return idle
    alike: dict[tuple[Layer, int], list[str]] = {}
    for model, batch in {(job.model.name, id(job.model), job.batch): (job.model, job.batch) for job in jobs}.values():
        for number, layer in enumerate(model.layers):
            alike.setdefault((layer, batch), []).append(f"layer {number} of {model.name}")
    told = [_layer(chip, layer, batch, names) for (layer, batch), names in list(alike.items())[:_MOST]]
    more = len(alike) - len(told)
    return (*told, *([f"Fusion: and {more} more kinds of layers."] if more else []), *idle)


def _rule_without_use(chip: ParallelDevice) -> tuple[str, ...]:
    """A sentence if the chip names another rule for splits than the usual one, and yet has no kernels that split."""
    if chip.fusion == "on" or chip.split_rule == SPLIT_RULES[0]:
        return ()
    return (
        f"split_rule: {chip.split_rule} has no effect: only `fusion: on` splits rows, and fusion is {chip.fusion}.",
    )


def _layer(chip: ParallelDevice, layer: Layer, batch: int, names: Sequence[str]) -> str:
    plan = planned_step(chip, layer, batch, chip.split_rule)
    operations = sum(len(each.nodes) for each in plan.subgraphs)
    products = sum(node.op == "matmul" for node in plan.graph.nodes)
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    beside = counted(products, "product")
    ways = ", in each direction," if layer.bidirectional else ""
    rule = f", split_rule {chip.split_rule}" if chip.fusion == "on" else ""
    told = f"{names[0]}{others} ({layer.cell.name}, batch {batch})"
    step = f"Fusion {chip.fusion}{rule}: a step of {told}{ways} is {beside} and"
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
