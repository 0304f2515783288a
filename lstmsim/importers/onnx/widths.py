"""How many bits the weights of an ONNX network have, if that makes its own sums differ from the sums here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstmsim.base.wording import listed
from lstmsim.importers.onnx.dequantized import stored_tensor
from lstmsim.importers.onnx.elementwise import ELEMENTWISE
from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, label, node_input, resolve
from lstmsim.importers.onnx.rearranging import RULES
from lstmsim.importers.onnx.values import integer

__all__ = ["is_half", "node_widths", "width_notes"]

#: Types of numbers as ONNX numbers them.
_HALVES = {10: "F16", 16: "BF16"}
_BITS = {2: 8, 3: 8, 4: 16, 5: 16, 6: 32}
_PLACES = {"W": 1, "R": 2, "B": 3, "P": 7}
_MAX_VALUES = 1000


def node_widths(scope: Scope, index: int) -> list[str]:
    """Note the bits of a recurrent node's weights; empty if all have 32 or 64 bits."""
    node = scope.nodes[index]
    named = {name: (scope, node_input(node, place)) for name, place in _PLACES.items() if node_input(node, place)}
    return width_notes(named, label(scope, index))


def is_half(scope: Scope, name: str) -> bool:
    """Say whether a constant has 16 bits, as far as the file tells."""
    return any(_kind(value) in _HALVES for value in _origins(scope, name))


def width_notes(named: Mapping[str, tuple[Scope, str]], at: str) -> list[str]:
    """Note weights of 16 bits, and weights that are stored as scaled whole numbers.

    named: a weight in words to the scope and the name of its value.
    at: the node of the weights, in words.

    >>> width_notes({}, "LSTM 'a'")
    []
    """
    halves, whole = set[str](), dict[str, int]()
    for name, where in named.items():
        for value in _origins(*where):
            kind = _kind(value)
            if kind in _HALVES:
                halves.add(_HALVES[kind])
            bits = _whole_bits(value)
            if bits:
                whole[name] = bits
    notes = []
    if whole:
        size = " and ".join(f"{bits}-bit" for bits in sorted(set(whole.values())))
        verb = "is" if len(whole) == 1 else "are"
        notes.append(f"{listed(list(whole), 'and')} of {at} {verb} stored as {size} numbers, read as what these mean")
    if halves:
        notes.append(f"the weights of {at} have 16 bits ({min(halves)}); they are the same here, the sums are wider")
    return notes


def _origins(scope: Scope, name: str) -> list[Value]:
    """The tensors, and the nodes that change the kind of number, that a weight is put together from."""
    origins, seen, waiting = list[Value](), set[tuple[Scope, str]](), [resolve(scope, name)]
    while waiting and len(seen) < _MAX_VALUES:
        value = waiting.pop()
        if value is None or (value.scope, value.name) in seen:
            continue
        seen.add((value.scope, value.name))
        node = value.node
        kind = "" if node is None or node.domain not in DEFAULT_DOMAINS else str(node.op_type)
        if (kind in RULES and kind not in ("Cast", "ConstantOfShape")) or kind in ELEMENTWISE:
            names = node.input if kind == "Concat" or kind in ELEMENTWISE else node.input[:1]
            waiting += [resolve(value.scope, str(each)) for each in names]
        else:
            origins.append(value)
    return origins


def _kind(value: Value) -> int:
    """The kind of number that a tensor or a node gives; 0 if the file does not tell."""
    if value.node is None:
        return int(getattr(value.tensor, "data_type", 0))
    scope, node = value.scope, value.node
    if node.op_type == "Cast":
        return integer(attributes(scope, node), "to", 0)
    given = stored_tensor(scope, node_input(node, 1) if node.op_type == "DequantizeLinear" else value.name)
    return int(getattr(given, "data_type", 0))


def _whole_bits(value: Value) -> int:
    """The bits of the whole numbers that a node scales; 0 if it scales none."""
    node: Any = value.node
    if node is None or node.op_type != "DequantizeLinear" or node.domain not in DEFAULT_DOMAINS:
        return 0
    return _BITS.get(getattr(stored_tensor(value.scope, node_input(node, 0)), "data_type", 0), 0)
