"""Unrolled layers of an ONNX network as models, like the models of its recurrent nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lstmsim.importers.onnx.graph import Scope, label
from lstmsim.importers.onnx.unrolled_stacks import UnrolledLayer, UnrolledStack
from lstmsim.importers.weights.imported import ImportedModel
from lstmsim.importers.weights.operators import FOLDED, SIMULATED
from lstmsim.model.model import Model
from lstmsim.model.numerics.weights import Network

__all__ = ["unrolled_model", "unrolled_part", "written_out"]


def written_out(stacks: Sequence[UnrolledStack]) -> dict[tuple[Scope, int], str]:
    """Tell the outcome of every node that unrolled layers are made of.

    >>> written_out([])
    {}
    """
    layers = [layer for stack in stacks for layer in stack.layers]
    folded = {key: FOLDED for layer in layers for key in layer.picking}
    return folded | {key: SIMULATED for layer in layers for key in layer.nodes}


def unrolled_part(stack: UnrolledStack) -> str:
    """Name the part of the file that a stack's last layer comes from, by the name of its matrices."""
    return stack.layers[-1].name


def unrolled_model(stack: UnrolledStack, name: str, origin: str, weights: bool) -> ImportedModel:
    """Make the model of a stack of unrolled layers.

    stack: the layers.
    name: the model's name.
    origin: the file, in words.
    weights: whether the model gets its weights and the states that the file fixes.
    """
    nodes = tuple(f"{each.steps} steps of {each.name}" for each in stack.layers)
    notes = [_written_out(each) for each in stack.layers]
    notes += [note for each in stack.layers for note in each.notes]
    computed = "; ".join(dict.fromkeys(each.computed for each in stack.layers if each.computed))
    model = Model(name, tuple(each.layer for each in stack.layers), states_from=computed, states_whole=not computed)
    initial = {(number, 0): each.states for number, each in enumerate(stack.layers) if each.states}
    imported = ImportedModel(model, nodes, f"{origin}: {', '.join(nodes)}", tuple(notes), steps=stack.layers[0].steps)
    if not weights:
        return imported
    return replace(imported, network=Network(model, tuple((each.weights,) for each in stack.layers), initial))


def _written_out(layer: UnrolledLayer) -> str:
    first = layer.first
    way = "from the last frame to the first" if layer.layer.reverse else "in the order of the frames"
    return (
        f"{layer.name} is written out over {layer.steps} steps {way}, the first up to "
        f"{label(first.scope, first.index)}: one layer here, for any number of steps"
    )
