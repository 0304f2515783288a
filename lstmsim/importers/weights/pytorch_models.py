"""Models of the recurrent modules that PyTorch's names tell, with further facts that are known of each module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import PurePath

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.weights.imported import ImportedModel, model_names, model_stem
from lstmsim.importers.weights.pytorch_names import (
    PYTORCH_NAMES,
    Fact,
    Group,
    groups,
    is_recurrent_name,
    layers_of,
    network_of,
)
from lstmsim.importers.weights.pytorch_norms import in_parts, whole_weights
from lstmsim.importers.weights.tensors import FLOAT_BYTES, Stored
from lstmsim.importers.weights.unread import unread_note
from lstmsim.model.model import Model

__all__ = ["import_groups"]

#: Modules and tensors tell the parts of a network; only its program tells which part reads which.
_ALONE = "how its parts are connected, and what they begin with, is not known: each stands alone and begins at 0"

_UNTOLD = "is an RNN, whose function is not in the file: say --cell rnn (tanh, PyTorch's default) or --cell rnn-relu"


def import_groups(
    tensors: Mapping[str, Stored],
    file: str,
    *,
    weights: bool = True,
    cell: str | None = None,
    facts: Mapping[str, Fact] | None = None,
) -> list[ImportedModel]:
    """Make a model of every recurrent module among a file's tensors.

    tensors: name to tensor.
    file: name of the file; it gives the models their names and sources.
    weights: False leaves the numbers out.
    cell: `rnn` or `rnn-relu`, the cell of an RNN if nothing says which RNN it is.
    facts: name of each module to what is known of it.

    `InputError` if there is no recurrent module or one is wrong.
    """
    whole = whole_weights(tensors)
    modules = groups(whole)
    if not modules:
        some = [show(name) for name in list(tensors)[:5]]
        text = f"holds no recurrent layer by PyTorch's names: {PYTORCH_NAMES}; it has {listed(some, 'and')}"
        raise InputError(text + (f" and {len(tensors) - 5} more" if len(tensors) > 5 else ""))
    models: list[ImportedModel] = []
    mistakes: list[Mistake] = []
    stem = model_stem(file)
    untold = False
    for name, group in zip(model_names(stem, [group.title for group in modules]), modules, strict=True):
        fact = (facts or {}).get(group.title)
        try:
            layers = layers_of(whole, group)
            if any(layer.cell.name == "rnn" for layer in layers):
                untold = untold or not (fact and fact.function)
                layers = layers_of(whole, group, _function(group, cell, fact))
            model = Model(name, layers)
            network = network_of(whole, group, model)
        except InputError as error:
            mistakes += error.mistakes
            continue
        nodes = tuple(group.names["weight_ih", number, 0] for number in range(len(model.layers)))
        title = show(group.title) if group.title else "its recurrent layers"
        notes = (*_notes(tensors, group, fact), *([_ALONE] if len(modules) > 1 else []))
        models.append(
            ImportedModel(model, nodes, f"{PurePath(file).name}: {title}", notes, network if weights else None)
        )
    if mistakes:
        raise InputError(mistakes)
    used = {name for group in modules for name in group.names.values()} | (set(tensors) - set(whole))
    rest = unread_note({key: prod(each.shape) for key, each in tensors.items() if each.kind in FLOAT_BYTES}, used)
    if rest:
        models = [replace(each, notes=(*each.notes, rest)) for each in models]
    if cell is not None and not untold:
        raise InputError(f"--cell {cell} says what an RNN is of which the file does not say it, but it holds none")
    return models


def _function(group: Group, cell: str | None, fact: Fact | None) -> str:
    """The cell of an RNN; `InputError` if neither file nor user says which, or if the two contradict."""
    place = show(group.title) if group.title else ""
    told = fact.function if fact else ""
    if told and cell and told != cell:
        raise InputError(Mistake(place, f"is of cell {told} by the file, --cell {cell} says something else"))
    if not told and cell is None:
        raise InputError(Mistake(place, _UNTOLD))
    return told or str(cell)


def _notes(tensors: Mapping[str, Stored], group: Group, fact: Fact | None) -> list[str]:
    """Notes on what may differ from PyTorch: numbers of half the width, a module that may compute something else."""
    title = show(group.title) if group.title else "the module"
    own = set(group.names.values())
    halves = {tensors[name].kind for name in own if name in tensors} & {"F16", "BF16"}
    notes = (
        [f"the weights of {title} have 16 bits ({min(halves)}); they are the same here, the sums are wider"]
        if halves
        else []
    )
    if fact is not None and not fact.kind.startswith("torch."):
        taken = "the equations of torch.nn are taken for it"
        notes.append(f"{title} is of class {show(fact.kind)}, not PyTorch's own: {taken}")
    more = [name for name in tensors if group.prefix and name.startswith(group.prefix) and name not in own]
    more = [name for name in more if not in_parts(name) and not is_recurrent_name(name)]
    if fact is None and more:
        some = listed([show(name) for name in more[:3]], "and") + (
            f" and {len(more) - 3} more" if len(more) > 3 else ""
        )
        notes.append(f"{title} has other tensors too ({some}): it may compute something else than torch.nn's layer")
    return notes
