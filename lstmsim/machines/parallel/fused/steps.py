"""Recurrent layers by fused kernels: of every time step the products, and the kernels of what follows them.

Products are written as for the hand-written cells (docs/sparse_kernels.md): one sequence as matrix times vector, more
of them by tiles. All steps are the same kernels over the same arrays: what a step reads was written by nobody, as with
`xh` there, because only the timing is asked for.
"""

from __future__ import annotations

from functools import lru_cache

from lstmsim.base.records import record
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.fused.homes import arrays_of
from lstmsim.machines.parallel.fused.numbers import fusion_device
from lstmsim.machines.parallel.fused.writing import fused_kernel
from lstmsim.machines.parallel.kernel import Kernel, Memory, Run
from lstmsim.machines.parallel.kernels.csr.rows import addressable
from lstmsim.machines.parallel.kernels.dense.gemm import gemm_partials, gemm_phases
from lstmsim.machines.parallel.kernels.dense.gemv import Gemv
from lstmsim.machines.parallel.kernels.dense.phases import Phase, phase_kernel
from lstmsim.machines.parallel.kernels.dense.tiles import Tile, tile_for
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.cell_products import StepProduct
from lstmsim.model.fusion.cells import step_graph
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.order import steps
from lstmsim.model.fusion.plan import FusionPlan, PlannedKernel
from lstmsim.model.fusion.planner import planned
from lstmsim.model.model import Layer

__all__ = ["MODE_OF", "FusedStep", "fused_step", "planned_step"]

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
def planned_step(device: Device, layer: Layer, batch: int, split_rule: str) -> FusionPlan:
    """The plan of one time step.

    device: where it runs.
    layer, batch: as of `lstmsim.model.fusion.cells.step_graph`.
    split_rule: one of `lstmsim.model.fusion.device.SPLIT_RULES`.
    """
    return planned(step_graph(layer, batch).graph, fusion_device(device, {"split_rule": split_rule}))


def fused_step(device: Device, layer: Layer, batch: int, fusion: str, split_rule: str) -> FusedStep:
    """The kernels of one time step in an order that its graph allows, lowest first operation first.

    device: the device that they are written for.
    layer, batch, split_rule: as of `planned_step`.
    fusion: a name of `MODE_OF`.

    `InputError` if an array is too large or a block does not fit.
    """
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


def _tile(product: StepProduct, batch: int, device: Device) -> Tile | None:
    return tile_for(sum(product.rows), batch, device.sms) if batch > 1 else None


def _partials(product: StepProduct, batch: int, tile: Tile | None, device: Device) -> int:
    sizes = (sum(product.rows), sum(product.columns), batch)
    return gemm_partials(sizes, tile, 0, device) if tile else 0


def _product(
    graph: Graph, number: int, product: StepProduct, tile: Tile | None, places: dict[str, int], device: Device
) -> list[Kernel]:
    """The kernels of a product: weights times vectors, with rows as docs/sparse_kernels.md has them."""
    vectors, weights = (graph.nodes[operand].name for operand in graph.operands[number])
    own = dict(zip(_NAMES, (places[weights], places[vectors], places[product.product]), strict=True))
    if _PARTIAL in places:
        own["partial"] = places[_PARTIAL]
    rows, columns = sum(product.rows), sum(product.columns)
    phases: list[Phase] = [Gemv(device.warp, _NAMES, product.sections, columns)]
    if tile is not None:
        sizes = (rows, columns, graph.nodes[number].shape[0])
        phases = gemm_phases(device, _NAMES, sizes, tile, 0, product.sections)
    return [phase_kernel(each, device, own) for each in phases]
