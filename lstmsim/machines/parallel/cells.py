"""Which networks the parallel device runs: all cells by fused kernels, some by kernels of their own."""

from __future__ import annotations

from lstmsim.model.model import Model

__all__ = ["FUSION", "GATES", "cells_refusal", "refusal"]

#: Name of a cell -> how many matrices of `hidden` rows its product has; of a `gru` the sums of the new value over x and
#: over h stay apart, and those of a `gru-lbr0` are in a product of their own.
GATES = {"lstm": 4, "gru": 4, "gru-lbr0": 3, "rnn": 1, "rnn-relu": 1}


#: How what follows the products of a step is run: by the kernels written for a cell, by one kernel for each part of
#: the step's graph that can be one, or by one kernel for each operation.
FUSION = ("cell", "on", "off")


def cells_refusal(model: Model, fusion: str) -> str | None:
    """Why a model's cells cannot be run with a `fusion` of the chip, in a sentence; None if they can.

    model: the network.
    fusion: one of `FUSION`.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> model = Model("m", (Layer(cell("slstm"), 8, 8),))
    >>> cells_refusal(model, "on") is None, cells_refusal(model, "cell").split(": ", 1)[1]
    (True, "it runs with the chip's `fusion: on` or `off`")
    """
    for layer in model.layers if fusion == "cell" else ():
        if layer.cell.name not in GATES:
            known = f"it has kernels for {', '.join(GATES)} layers only, and layer {layer.cell.name!r} is none of them"
            return f"{known}: it runs with the chip's `fusion: on` or `off`"
    return None


def refusal(model: Model) -> str | None:
    """Why no SM can run a model, in a sentence; None if one can.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> refusal(Model("m", (Layer(cell("lstm"), 8, 8),))) is None
    True
    """
    if model.layer_order == "step":
        return "it runs layer after layer only"
    return None
