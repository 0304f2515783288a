"""Which threads compute a group: the rules for rows, columns and elements; docs/fusion.md, sections 5.1 to 5.3."""

from __future__ import annotations

import numpy as np

from lstmsim.base.wording import counted
from lstmsim.model.fusion.device import FusionDevice, up
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.indexing import positions
from lstmsim.model.fusion.plan import COLUMN, ELEMENT, ROW, Decision, Group, Owners, ThreadMapping

__all__ = ["mapped", "mapping_decision", "owners_by_rule"]


def mapped(group: Group, device: FusionDevice, wave: int) -> ThreadMapping:
    """The mapping of a group by the rule for its kind.

    group: the group.
    device: the numbers of the device.
    wave: how many blocks the grid should have at most.

    >>> mapping = mapped(Group((1,), 1, (), "row", 64, 30000), FusionDevice(), 160)
    >>> mapping.kind, mapping.blocks, mapping.pieces, mapping.piece
    ('split', 128, 2, 15008)
    """
    if group.kind == ELEMENT:
        return _elements(group.rows, device, wave)
    if group.kind == COLUMN:
        return _columns(group, device, wave)
    pieces, piece = _row_pieces(group, device, wave)
    if pieces > 1:
        lanes = min(device.block_threads, piece)
        return ThreadMapping("split", group.rows * pieces, lanes, lanes, 1, 1, pieces, piece)
    return _packed(group, device, wave)


def _row_pieces(group: Group, device: FusionDevice, wave: int) -> tuple[int, int]:
    """Over how many blocks a row is split, and how many elements each has."""
    if _whole_row(group, device, wave):
        return 1, group.length
    piece = up(up(group.length, wave // group.rows), device.warp) * device.warp
    return up(group.length, piece), piece


def _whole_row(group: Group, device: FusionDevice, wave: int) -> str:
    """Why a row is not split; empty if it may be."""
    if group.length <= device.split_length:
        return f"no row is longer than {counted(device.split_length, 'element')}"
    if group.rows >= wave:
        return f"{counted(group.rows, 'row')} are enough for {counted(wave, 'block')}"
    return _not_worth(up(group.length, device.block_threads), device)


def _not_worth(turns: int, device: FusionDevice) -> str:
    """Why a result is not worth a grid barrier; empty if it is, or if nobody asks."""
    cycles = turns * device.turn_cycles
    if device.split_rule == "paper" or cycles > device.grid_cycles:
        return ""
    cost = f"{counted(turns, 'turn')} of {device.turn_cycles:,} cycles"
    return f"{cost} in one block cost no more than a grid barrier of {device.grid_cycles:,}"


def _packed(group: Group, device: FusionDevice, wave: int) -> ThreadMapping:
    lanes = min(device.block_threads, up(group.length, device.warp) * device.warp)
    # no more rows in a block than bring the grid into one wave
    per_block = max(1, min(device.block_threads // lanes, up(group.rows, wave)))
    tiles = up(group.rows, per_block)
    tasks = up(tiles, wave)
    return ThreadMapping("pack", up(tiles, tasks), per_block * lanes, lanes, per_block, tasks, 1, group.length)


def _columns(group: Group, device: FusionDevice, wave: int) -> ThreadMapping:
    tiles = up(group.rows, device.warp)
    if tiles >= wave:
        tasks, cut = up(tiles, wave), 1
    else:
        tasks, cut = 1, _column_cut(group, device, wave)
    piece = up(group.length, cut)
    pieces = up(group.length, piece)
    threads = min(device.block_threads, piece * device.warp)
    return ThreadMapping(COLUMN, up(tiles, tasks) * pieces, threads, device.warp, 1, tasks, pieces, piece)


def _column_cut(group: Group, device: FusionDevice, wave: int) -> int:
    """Into how many pieces a column should be cut."""
    turns = up(group.length, device.block_threads // device.warp)
    return 1 if _not_worth(turns, device) else max(1, min(wave // up(group.rows, device.warp), turns))


def _elements(size: int, device: FusionDevice, wave: int) -> ThreadMapping:
    threads = min(device.element_threads, up(size, device.warp) * device.warp)
    tiles = up(size, threads)
    tasks = up(tiles, wave)
    return ThreadMapping(ELEMENT, up(tiles, tasks), threads, threads, 1, tasks, 1, size)


def owners_by_rule(graph: Graph, group: Group, mapping: ThreadMapping, device: FusionDevice) -> Owners:
    """Who owns the elements of the backbone's operand; in a group of elements, of its result.

    graph: the graph.
    group: the group.
    mapping: of kind `pack`, `split`, `column` or `element`.
    device: the numbers of the device.
    """
    if group.kind == ELEMENT:
        element = np.arange(group.rows)
        return _owners(element // mapping.threads // mapping.tasks, element % mapping.threads)
    operand = graph.operands[group.backbone][0]
    elements = np.arange(graph.nodes[operand].size)
    if group.kind == ROW:
        row, column = elements // group.length, elements % group.length
        if mapping.pieces > 1:
            return _owners(row * mapping.pieces + column // mapping.piece, column % mapping.piece % mapping.threads)
        thread = row % mapping.per_block * mapping.lanes + column % mapping.lanes
        return _owners(row // mapping.per_block // mapping.tasks, thread)
    result, position = positions(graph, group.backbone, elements)
    tile, lane, high = result // device.warp, result % device.warp, mapping.threads // device.warp
    if mapping.pieces > 1:
        block = tile * mapping.pieces + position // mapping.piece
        return _owners(block, position % mapping.piece % high * device.warp + lane)
    return _owners(tile // mapping.tasks, position % high * device.warp + lane)


def _owners(block: np.ndarray, thread: np.ndarray) -> Owners:
    return Owners(block.astype(np.int32), thread.astype(np.int32))


def mapping_decision(graph: Graph, group: Group, mapping: ThreadMapping, device: FusionDevice, wave: int) -> Decision:
    """Why a group has its mapping, with the numbers.

    graph: the graph.
    group: the group.
    mapping: what `mapped` made of it.
    device: the numbers of the device.
    wave: as of `mapped`.

    >>> from lstmsim.model.fusion.graph import Node
    >>> nodes = (Node("x", "input", (), (64, 30000)), Node("s", "reduce_sum", ("x",), (64,), (1,)))
    >>> group = Group((1,), 1, (), "row", 64, 30000)
    >>> device = FusionDevice()
    >>> mapping_decision(Graph("g", nodes, ("s",)), group, mapped(group, device, 160), device, 160).because
    '64 rows of 30,000 elements, longer than 1,024, would fill only 64 of 160 blocks'
    """
    size = f"{counted(mapping.blocks, 'block')} of {counted(mapping.threads, 'thread')}"
    pieces = f"split over {counted(mapping.pieces, 'block')}, {counted(mapping.piece, 'element')} each"
    times = "" if mapping.tasks == 1 else f", {counted(mapping.tasks, 'time')}"
    chosen = {
        "split": f"each row is {pieces}",
        "pack": f"a block takes {counted(mapping.per_block, 'row')} of {counted(mapping.lanes, 'thread')}{times}",
        COLUMN: f"a block takes {device.warp} columns side by side{times if mapping.pieces == 1 else ', ' + pieces}",
        ELEMENT: f"a block takes {counted(mapping.threads, 'element')}{times}",
    }[mapping.kind]
    because = _why(group, mapping, device, wave)
    return Decision("mapping", graph.nodes[group.backbone].name, f"{size}; {chosen}", because)


def _why(group: Group, mapping: ThreadMapping, device: FusionDevice, wave: int) -> str:
    """Why a mapping splits, packs or does neither."""
    length = counted(group.length, "element")
    if group.kind == ELEMENT:
        return f"{counted(group.rows, 'element')}: {_spread(up(group.rows, mapping.threads), wave, device)}"
    if group.kind == ROW:
        many = f"{counted(group.rows, 'row')} of {length}"
        if mapping.pieces > 1:
            return f"{many}, longer than {device.split_length:,}, would fill only {group.rows:,} of {wave:,} blocks"
        why = _whole_row(group, device, wave) or f"{counted(wave, 'block')} are too few to give each row two"
        return f"{why}; {many}: {_spread(up(group.rows, mapping.per_block), wave, device)}"
    tiles = up(group.rows, device.warp)
    many = f"{counted(group.rows, 'column')} of {length}"
    if mapping.pieces > 1:
        return f"{many} would fill only {tiles:,} of {wave:,} blocks"
    turns = up(group.length, device.block_threads // device.warp)
    why = "" if tiles >= wave else _not_worth(turns, device) or f"a block is done in {counted(turns, 'turn')}"
    return "; ".join(filter(None, (why, f"{many}: {_spread(tiles, wave, device)}")))


def _spread(tiles: int, wave: int, device: FusionDevice) -> str:
    """How many tiles there are for how many blocks: those of the largest size, as the kernel's is not known yet."""
    first = wave == device.wave(device.block_threads, 0)
    which = f" of {device.block_threads:,} threads that are on the device at once" if first else ", as planned anew"
    return f"{counted(tiles, 'tile')} for {counted(wave, 'block')}{which}"
