"""Notes on `sequence_lens` of recurrent nodes; a run takes every sequence at its full length.

Source: the ONNX operator pages of LSTM, GRU and RNN: steps behind a sequence's length give 0, and the reverse direction
begins at the sequence's last step.
"""

from __future__ import annotations

from collections.abc import Iterable

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.importers.onnx.axes import Size
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, label, node_input, resolve
from lstmsim.importers.onnx.layouts import Layouts

__all__ = ["length_notes"]

_PLACE = 4
_REPEATING = ("Expand", "Tile", "Cast", "Identity", "Unsqueeze", "Squeeze", "Reshape", "Concat")
_MAX_VISITED = 300
_SHOWN = 6


def length_notes(
    keys: Iterable[tuple[Scope, int]], layouts: Layouts, *, refuse: bool
) -> dict[tuple[Scope, int], tuple[str, ...]]:
    """Note for each recurrent node what to know about its lengths.

    keys: the nodes.
    layouts: the axes of the network.
    refuse: whether lengths other than all of a node's frames are an `InputError`; else they are noted.
    """
    notes = dict[tuple[Scope, int], tuple[str, ...]]()
    mistakes = []
    for scope, index in keys:
        notes[scope, index] = ()
        name = node_input(scope.nodes[index], _PLACE)
        if not name:
            continue
        lengths, frames = _lengths(layouts, scope, name), layouts.frames(scope, index)
        if lengths and frames is not None and all(each == frames for each in lengths):
            continue
        given = _given(scope, name)
        if given and (lengths is None or None in lengths):
            inputs = listed([f"input {show(each)}" for each in given], "and")
            notes[scope, index] = (f"sequence_lens depends on {inputs}: every sequence is taken at its full length",)
            continue
        sentence = _limit(lengths, frames)
        notes[scope, index] = (f"{label(scope, index)} has {sentence}, where a run here takes every frame",)
        advice = "export it without lengths or with them as an input, or read shapes only (--no-weights)"
        mistakes.append(Mistake(label(scope, index), f"has {sentence}, where a run here takes every frame: {advice}"))
    if mistakes and refuse:
        raise InputError(mistakes)
    return notes


def _limit(lengths: list[Size | None] | None, frames: Size | None) -> str:
    known = [each[0] for each in lengths or () if each is not None and not each[1]]
    if lengths is None or len(known) < len(lengths):
        return "a sequence_lens that is computed from shapes and may be shorter than its frames"
    stated = listed(dict.fromkeys(known[:_SHOWN]), "and")
    if frames is None or frames[1]:
        return f"a sequence_lens fixed at {stated} for any number of frames"
    return f"a sequence_lens of {stated} for {frames[0]} frames"


def _lengths(layouts: Layouts, scope: Scope, name: str) -> list[Size | None] | None:
    """Every length that occurs, without repetitions; None for a length, or for the list, that is not known."""
    value = resolve(scope, name)
    for _ in range(_MAX_VISITED):
        known = None if value is None else layouts.numbers(value.scope, value.name)
        if known and None not in known:
            return list(known)
        node = value.node if value is not None else None
        if value is None or node is None or node.domain not in DEFAULT_DOMAINS:
            return None
        if node.op_type == "ConstantOfShape":
            return _filled(value)
        if node.op_type not in _REPEATING or len(node.input) > 2 or node.op_type == "Concat":
            return None
        value = resolve(value.scope, node_input(node, 0))
    return None


def _filled(value: Value) -> list[Size | None] | None:
    """The one number that a `ConstantOfShape` repeats."""
    given = attributes(value.scope, value.node)
    tensor = given["value"].t if "value" in given else None
    stored = [*tensor.int32_data, *tensor.int64_data] if tensor is not None else []
    if tensor is not None and tensor.raw_data:
        stored = [int.from_bytes(tensor.raw_data, "little", signed=True)]
    return [(int(stored[0]), ())] if len(stored) == 1 else None


def _given(scope: Scope, name: str) -> list[str]:
    """The inputs of the network whose numbers, and not only shapes, a value depends on."""
    inputs, seen, waiting = dict[str, None](), set[tuple[Scope, str]](), [(scope, name)]
    while waiting and len(seen) < _MAX_VISITED:
        value = resolve(*waiting.pop())
        if value is None or (value.scope, value.name) in seen:
            continue
        seen.add((value.scope, value.name))
        node = value.node
        if node is None:
            inputs |= {} if value.tensor is not None else {value.name: None}
        elif node.op_type not in ("Shape", "Size"):
            waiting += [(value.scope, str(each)) for each in node.input[:_MAX_VISITED]]
    return list(inputs)[:_SHOWN]
