"""Which values of an ONNX network are stored in the file, and what a name stands for behind idle operations."""

from __future__ import annotations

from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, node_input, resolve

__all__ = ["is_stored", "plain"]

_MAX_HOPS = 100
#: Operations between a stored matrix and the product that reads it.
_REARRANGING = ("Identity", "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Cast", "DequantizeLinear", "Expand")


def plain(scope: Scope, name: str) -> Value | None:
    """Look up what a name stands for, behind operations that hand a value on unchanged; None if it means nothing."""
    value = resolve(scope, name)
    for _ in range(_MAX_HOPS):
        if value is None or value.node is None or value.place or value.node.domain not in DEFAULT_DOMAINS:
            return value
        if value.node.op_type not in ("Identity", "Dropout"):
            return value
        value = resolve(value.scope, node_input(value.node, 0))
    return None


def is_stored(value: Value) -> bool:
    """Say whether the file holds a value, as it is or in another arrangement."""
    for _ in range(_MAX_HOPS):
        if value.tensor is not None:
            return True
        if value.node is None or value.node.domain not in DEFAULT_DOMAINS or value.place:
            return False
        if value.node.op_type == "Constant":
            return True
        if value.node.op_type not in _REARRANGING:
            return False
        before = resolve(value.scope, node_input(value.node, 0))
        if before is None:
            return False
        value = before
    return False
