"""Which networks a multi-core CPU runs, and what a time step of a cell consists of."""

from __future__ import annotations

from functools import lru_cache

from lstmsim.records import hashed_once, record
from lstmsim.targets.division import Product
from lstmsim.workload.cell import OPERATIONS, REDUCTIONS, Cell
from lstmsim.workload.model import Model

__all__ = ["CellProduct", "CellWork", "cell_work", "refusal"]


@record
class CellProduct:
    """Gates that have the same operands, multiplied together.

    gates: their names, in the order of their columns of C.
    vectors: `x`, `h` or both, in the order of K.

    >>> CellProduct(("r", "z"), ("x", "h")).product(hidden=8, width=5, batch=2)
    Product(m=2, n=16, k=13)
    """

    gates: tuple[str, ...]
    vectors: tuple[str, ...]

    def product(self, hidden: int, width: int, batch: int) -> Product:
        """The product of a time step.

        hidden, width: units of the layer, elements of its x.
        batch: how many sequences.
        """
        columns = {"x": width, "h": hidden}
        return Product(batch, len(self.gates) * hidden, sum(columns[each] for each in self.vectors))


@hashed_once
@record
class CellWork:
    """A time step of a cell.

    products: in their order.
    states: names of the states beside h, which the tail writes.
    activations, others: operations on each unit: exponentials and what is made of them; all others.
    """

    products: tuple[CellProduct, ...]
    states: tuple[str, ...]
    activations: int
    others: int


@lru_cache(maxsize=256)
def cell_work(cell: Cell) -> CellWork:
    """What a time step of a cell consists of; the cell has no `refusal`.

    >>> from lstmsim.workload.cells import cell
    >>> [(each.gates, each.vectors) for each in cell_work(cell("gru")).products]
    [(('r', 'z'), ('x', 'h')), (('nx',), ('x',)), (('nh',), ('h',))]
    >>> work = cell_work(cell("lstm"))
    >>> work.states, work.activations, work.others
    (('c',), 5, 5)
    """
    gates: dict[tuple[str, ...], list[str]] = {}
    for each in cell.sums:
        # x stands before h in memory, whatever the order in which the cell names them
        gates.setdefault(tuple(sorted(set(each.vectors), reverse=True)), []).append(each.name)
    activations = sum(OPERATIONS[node.operation][1] == "activation" for node in cell.nodes)
    return CellWork(
        products=tuple(CellProduct(tuple(names), vectors) for vectors, names in gates.items()),
        states=tuple(name for name in cell.states if name != "h"),
        activations=activations,
        others=len(cell.nodes) - activations,
    )


def refusal(model: Model) -> str | None:
    """Why a multi-core CPU does not run a model, in a sentence; None if it does.

    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> refusal(Model("m", (Layer(cell("gru-lbr0"), 8, 8),)))
    "cell 'gru-lbr0' multiplies in 2 stages, and the cores have one barrier between products and cell"
    """
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
