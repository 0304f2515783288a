"""What `lstmsim search` asks of the column-wise NPU's array of `npe` multipliers, used as `vp` rows of `ep`.

Rules: docs/timing.md, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.shape import StageShape, pass_shapes
from lstmsim.model.model import Model

#: EP of a core that can run every model which any array can run: any model has few column groups and row blocks on it.
_EP = 1024


def with_array(core: ColumnCore, npe: int, ep: int, vp: int) -> ColumnCore:
    """The core with this array. Its trees are built for the EP: no configurable tail narrows the search."""
    return replace(core, npe=npe, ep=ep, vp=vp, tree_inputs=None, cat=1)


def tail_width(core: ColumnCore) -> int:
    """Units that the tail of a core takes in a cycle. The search tries row blocks of whole turns."""
    return core.tail_width


def tiles(core: ColumnCore, model: Model) -> tuple[int, int]:
    """Tiles of a step, and those of the last step that cannot issue before its frame is there.

    The array issues at most one tile in a cycle.
    """
    passes = [(layer, pass_shapes(layer, core)) for layer in model.layers]
    step = sum(layer.directions * _of_step(shapes) for layer, shapes in passes)
    first, shapes = passes[0]
    # x comes first in the first layer, so that all of its step is after the frame
    return step, _of_step(shapes) if "x" in first.cell.stages[0].vectors else 1


def last_cycles(core: ColumnCore) -> int:
    """The least number of cycles from the issue of the last tile until a result of its sums can be visible."""
    return core.latency.mvm_cycles(core.ep)


def widest_core(count: int, npe: int) -> dict[str, int]:
    """The keys of `count` cores with `npe` multipliers that can run every model which any array can run."""
    return {"count": count, "npe": npe, "ep": _EP, "vp": npe // _EP}


def _of_step(shapes: Sequence[StageShape]) -> int:
    return sum(len(shape.blocks) * sum(map(shape.groups, shape.stage.vectors)) for shape in shapes)
