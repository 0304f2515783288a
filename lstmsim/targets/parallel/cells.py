"""Which networks the parallel device runs as dense kernels."""

from __future__ import annotations

from lstmsim.workload.model import Model

__all__ = ["GATES", "refusal"]

#: Name of a cell -> how many matrices of `hidden` rows its product has; of a `gru` the sums of the new value over x and
#: over h stay apart, and those of a `gru-lbr0` are in a product of their own.
GATES = {"lstm": 4, "gru": 4, "gru-lbr0": 3, "rnn": 1, "rnn-relu": 1}


def refusal(model: Model) -> str | None:
    """Why no kernels are there for a model, in a sentence; None if there are.

    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
    >>> refusal(Model("m", (Layer(cell("lstm"), 8, 8),))) is None
    True
    """
    for layer in model.layers:
        if layer.cell.name not in GATES:
            return f"it has kernels for {', '.join(GATES)} layers only, and layer {layer.cell.name!r} is none of them"
    if model.layer_order == "step":
        return "it runs layer after layer only"
    return None
