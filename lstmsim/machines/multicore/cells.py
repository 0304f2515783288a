"""Which networks a multi-core CPU runs, and what a time step of a cell has beside its products."""

from __future__ import annotations

from functools import lru_cache

from lstmsim.base.records import hashed_once, record
from lstmsim.machines.assembly import OperationClasses
from lstmsim.model.cell import REDUCTIONS, Cell
from lstmsim.model.model import Model

#: What an operation of cells is to a core: an exponential and what is made of it, or one of all others.
_CLASSES = OperationClasses.grouped(
    "multicore",
    {
        "activation": "sigmoid tanh exp log_sigmoid rsqrt",
        "other": "relu multiply divide add subtract maximum minimum quantize",
    },
)


@hashed_once
@record
class CellWork:
    """What follows the products in a time step of a cell.

    states: names of the states beside h, which the tail writes.
    activations, others: operations on each unit: exponentials and what is made of them; all others.
    """

    states: tuple[str, ...]
    activations: int
    others: int


@lru_cache(maxsize=256)
def cell_work(cell: Cell) -> CellWork:
    """What follows the products in a time step of a cell; the cell has no `refusal`."""
    activations = sum(_CLASSES.of_operation(node.operation) == "activation" for node in cell.nodes)
    return CellWork(
        states=tuple(name for name in cell.states if name != "h"),
        activations=activations,
        others=len(cell.nodes) - activations,
    )


def refusal(model: Model) -> str | None:
    """Why a multi-core CPU does not run a model, in a sentence; None if it does."""
    for layer in model.layers:
        reason = _refusal(layer.cell)
        if reason is not None:
            return f"cell {layer.cell.name!r} {reason}"
    if model.layer_order == "step":
        return "it runs layer after layer only"
    return None


@lru_cache(maxsize=256)
def _refusal(cell: Cell) -> str | None:
    if len(cell.stages) > 1:
        return f"multiplies in {len(cell.stages)} stages, and the cores have one barrier between products and cell"
    if any(node.operation in REDUCTIONS for node in cell.nodes):
        return "reduces over all units, for which the cores have no step"
    if cell.parameters:
        return f"has weights beside its products ({', '.join(cell.parameters)}), for which the cores have no array"
    return None
