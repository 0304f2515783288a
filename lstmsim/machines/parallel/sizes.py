"""Bounds on the operations of a step of a dense job. No kernel is written for them."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.machines.assembly import PerStep
from lstmsim.machines.parallel.device import GATES, ParallelCore
from lstmsim.machines.parallel.kernels.gemm import Tile, default_tiles
from lstmsim.machines.parallel.kernels.rows import default_vector
from lstmsim.model.fusion.cells import products_of, step_graph
from lstmsim.model.fusion.operations import COMPUTE
from lstmsim.model.model import Layer, Model

#: Operations of a global access beside its partitions: scheduler, load/store unit, port.
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

    # lanes stand 4 columns apart; those behind the last column store nothing
    across = tile.bn // tile.tn
    lines = min(warp, (warp // across + 1) * min(across, -(-inside // 4), strip))
    stores = tile.tm * min(tile.tn // vb, -(-columns // vb)) * (_ACCESS + lines)
    # with one for the dispatcher, and grid barriers of a persistent kernel behind each phase
    blocks = tiles * slices * (warps * (stores + 1 + 2 * _PHASES) + 1)

    parts = (-(-rows * columns // warp) + _BLOCK_WARPS) * ((slices + 1) * (_ACCESS + warp // _LINE + 2) + 2 * _PHASES)
    return tiles * -(-inner // tile.bk) * turn + blocks + parts
