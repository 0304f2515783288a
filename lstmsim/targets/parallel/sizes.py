"""Bounds on the operations of a step of a dense job. No kernel is written for them."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.fusion.cell_products import products_of
from lstmsim.fusion.cells import step_graph
from lstmsim.fusion.operations import COMPUTE
from lstmsim.targets.parallel.cells import GATES
from lstmsim.targets.parallel.core import ParallelCore
from lstmsim.targets.parallel.kernels.csr.rows import default_vector
from lstmsim.targets.parallel.kernels.dense.tiles import default_tiles
from lstmsim.targets.sizes import PerStep
from lstmsim.workload.model import Layer, Model

__all__ = ["per_step"]

#: Operations of a global access beside its partitions: scheduler, load/store unit, port.
_ACCESS = 3
#: Accesses of an element of a cell, each of at most four lines; and its other instructions.
_CELL_ACCESSES, _CELL_OTHERS = 12, 10
#: The same of an element of a fused kernel, and warps of a block without a reduce, most of which may have none.
_FUSED, _BLOCK_WARPS = 40, 8
#: Operations of packed bodies take 8 bytes each: so many have the room of one that is an object.
_PACKED = 16


def per_step(cores: Sequence[ParallelCore], model: Model, batch: int = 1, *, fused: bool = False) -> PerStep:
    """Bounds on the operations of one step of a job on all SMs.

    cores: the distinct SMs.
    model: the network.
    batch: how many sequences the job has.
    fused: whether the chip runs fused kernels, or one for each operation; cells that nothing else runs count so always.
    """
    warp = max(core.warp for core in cores)
    most = sum(
        layer.directions * (_fused if fused or layer.cell.name not in GATES else _layer)(layer, batch, warp)
        for layer in model.layers
    )
    return PerStep(most, most, _PACKED)


def _layer(layer: Layer, batch: int, warp: int) -> int:
    rows, inner = (1 + GATES[layer.cell.name]) * layer.hidden, layer.hidden + layer.input
    cells = 2 * (-(-layer.hidden * batch // warp) + 4) * (_CELL_ACCESSES * (_ACCESS + 4) + _CELL_OTHERS)
    return cells + (_gemv(rows, inner, warp) if batch == 1 else _gemm(rows, inner, batch, warp))


def _fused(layer: Layer, batch: int, warp: int) -> int:
    """The products of a step, and what follows them: every operation may be evaluated by several kernels or stages."""
    graph = step_graph(layer, batch).graph
    products = 0
    for each in products_of(layer):
        rows, inner = sum(each.rows), sum(each.columns)
        products += _gemv(rows, inner, warp) if batch == 1 else _gemm(rows, inner, batch, warp)
    read = [node.size for node in graph.nodes if node.kind != COMPUTE and not node.name.endswith(".W")]
    return products + sum((-(-size // warp) + _BLOCK_WARPS) * _FUSED for size in read)


def _gemv(rows: int, inner: int, warp: int) -> int:
    """A warp a row: two loads and some multiply-adds a strip, a tree, a store."""
    vector = default_vector(inner)
    strips = -(-inner // (warp * vector))
    return (rows + 4) * (strips * (2 * (_ACCESS + 1 + vector * warp // 32) + vector) + 3 * warp.bit_length() + 8)


def _gemm(rows: int, inner: int, columns: int, warp: int) -> int:
    """Tiles: loads and stores to shared memory, the products of a thread's tile, the result, its parts added up."""
    worst = 0
    for tile in default_tiles(columns):
        blocks = -(-rows // tile.bm) * -(-columns // tile.bn)
        chunks = tile.bk * (tile.bm + tile.bn) // warp + 2
        turn = chunks * (_ACCESS + warp + 8) + tile.warps(32) * (tile.bk * (tile.tm + tile.tn + 1) + 2)
        result = tile.bm * tile.bn // warp * (_ACCESS + 8)
        worst = max(worst, blocks * (-(-inner // tile.bk) + 1) * turn + blocks * max(1, inner // 64) * result)
    return worst
