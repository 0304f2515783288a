"""Which cells no lanes can be written for on a core."""

from __future__ import annotations

from collections.abc import Iterator

from lstmsim.targets.column.core import ColumnCore
from lstmsim.targets.column.rtl.lanes.schedule import Schedule
from lstmsim.targets.column.shape import StageShape, pass_shapes
from lstmsim.workload.model import Model

__all__ = ["apart"]


def apart(core: ColumnCore, model: Model) -> Iterator[str]:
    """Yield why a unit is not in the same lane in all stages of a layer that hand values on; nothing if it is.

    A value of one stage that another stage reads is kept in the unit's lane, at the address of its turn.

    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> model = Model("m", (Layer(cell("gru-lbr0"), 12, 7),))
    >>> list(apart(ColumnCore(npe=24, ep=4, vp=6, tail_width=3), model))
    []
    >>> next(apart(ColumnCore(npe=24, ep=4, vp=6, tail_width=2), model))
    "must divide the 3 units of a row block: stage 0 of gru-lbr0 reads 's' of stage 1, got 2"
    """
    for layer in dict.fromkeys(model.layers):
        shapes = pass_shapes(layer, core)
        for name, giver, reader in Schedule(layer.cell, core.latency, core.tail_width).crossings():
            uneven = [shapes[number] for number in (giver, reader) if not _even(shapes[number])]
            if uneven:
                units = uneven[0].units_per_block
                what = f"stage {reader} of {layer.cell.name} reads {name!r} of stage {giver}"
                yield f"must divide the {units} units of a row block: {what}, got {core.tail_width}"


def _even(shape: StageShape) -> bool:
    return len(shape.blocks) == 1 or shape.units_per_block % shape.core.tail_width == 0
