"""Where vectors lie in a core's vector memories: regions that are not needed at the same time share elements."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.plan import Kind
from lstmsim.model.cell import Cell
from lstmsim.model.model import Model

__all__ = ["Region", "outputs", "regions"]


@record
class Region:
    """Where one vector of a layer lies, both directions of a bidirectional layer side by side.

    memory: number of the vector memory in the core.
    base: address of its first element, in a thread's part.
    width: elements of a step, in all directions.
    steps: how many steps are kept.
    every: whether these are all steps; else a step lies by its lowest bit.
    """

    memory: int
    base: int
    width: int
    steps: int
    every: bool

    @property
    def end(self) -> int:
        """Address behind the last element."""
        return self.base + self.width * self.steps


def outputs(cell: Cell) -> tuple[str, ...]:
    """Name the nodes that are written as vectors: h first, then what later stages read, in the order of the stages.

    >>> from lstmsim.model.cells import cell
    >>> outputs(cell("gru-lbr0")), outputs(cell("lstm"))
    (("h'", 'rh'), ("h'",))
    """
    read = (vector for stage in cell.stages for vector in stage.vectors if vector not in ("x", "h"))
    return tuple(dict.fromkeys((cell.output, *read)))


def regions(model: Model, kinds: Sequence[Kind], steps: int) -> dict[tuple[int, str], Region]:
    """Give the region of each vector of a model: (layer, node) to its region.

    A layer's h is kept for all steps if a layer above reads it when the layer is through, else for two steps. Layers
    that run one after another use elements anew: an array in order has read what was there.

    model: the model.
    kinds: the cells of the core.
    steps: the most steps of a job.
    """
    by_layer = model.layer_order == "layer"
    top = len(model.layers) - 1
    taken: list[tuple[int, int, Region]] = []
    placed: dict[tuple[int, str], Region] = {}
    for number, layer in enumerate(model.layers):
        kind = next(each for each in kinds if each.cell == layer.cell)
        for node, memory in zip(kind.outputs, kind.memories, strict=True):
            every = by_layer and number < top and node == layer.cell.output
            first, last = (number, number + every) if by_layer else (0, top)
            busy = [one for begin, end, one in taken if one.memory == memory and begin <= last and first <= end]
            width, kept = layer.width(node) * layer.directions, steps if every else 2
            region = Region(memory, _free(busy, width * kept), width, kept, every)
            taken.append((first, last, region))
            placed[number, node] = region
    return placed


def _free(busy: Sequence[Region], size: int) -> int:
    """The lowest address from which `size` elements are free."""
    begin = 0
    for each in sorted(busy, key=lambda one: one.base):
        if each.base - begin >= size:
            break
        begin = max(begin, each.end)
    return begin
