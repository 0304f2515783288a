"""The array of the column-wise NPU, for a search of its EP and VP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim.machines.array_search import ArraySearch
from lstmsim.machines.column.npu import ColumnCore
from lstmsim.machines.column.shape import StageShape, pass_shapes
from lstmsim.model.model import Model

__all__ = ["ARRAY_SEARCH"]

#: EP of a core that can run every model which any array can run: any model has few column groups and row blocks on it.
_EP = 1024


class _ColumnArraySearch(ArraySearch):
    """Rules: docs/timing.md, sections 2 and 3."""

    def with_array(self, core: ColumnCore, npe: int, ep: int, vp: int) -> ColumnCore:
        """The core with this array. Its trees are built for the EP: no configurable tail narrows the search."""
        return replace(core, npe=npe, ep=ep, vp=vp, tree_inputs=None, cat=1)

    def tail_width(self, core: ColumnCore) -> int:
        """Units that the tail takes in a cycle."""
        return core.tail_width

    def tiles(self, core: ColumnCore, model: Model) -> tuple[int, int]:
        """All tiles of a step, and those of its first pass."""
        passes = [(layer, pass_shapes(layer, core)) for layer in model.layers]
        step = sum(layer.directions * _of_step(shapes) for layer, shapes in passes)
        first, shapes = passes[0]
        # x comes first in the first layer, so that all of its step is behind the frame
        return step, _of_step(shapes) if "x" in first.cell.stages[0].vectors else 1

    def last_cycles(self, core: ColumnCore) -> int:
        """The latency of a matrix-vector product."""
        return core.latency.mvm_cycles(core.ep)

    def widest_core(self, count: int, npe: int) -> dict[str, int]:
        """The keys of cores that have all multipliers in long rows."""
        return {"count": count, "npe": npe, "ep": _EP, "vp": npe // _EP}


def _of_step(shapes: Sequence[StageShape]) -> int:
    return sum(len(shape.blocks) * sum(map(shape.groups, shape.stage.vectors)) for shape in shapes)


ARRAY_SEARCH = _ColumnArraySearch()
