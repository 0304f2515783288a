"""Nodes without a rule: calls of a library, with the shapes that ONNX's own rules give their results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lstmsim.importers.onnx.operations.arguments import Arguments
from lstmsim.importers.onnx.operations.drawing import Drawing
from lstmsim.importers.onnx.operations.values import FLOAT, UnreadableError, Value
from lstmsim.model.fusion.operation_names import mistaken_name
from lstmsim.model.fusion.operations import COMPUTE, class_of

__all__ = ["Stated", "call_of", "stated_shapes"]

Stated = tuple[tuple[int, ...], int]
#: What of a recurrent node is a part of its first result: the last states.
_RECURRENT = ("LSTM", "GRU", "RNN")
_MOST_NUMBERS = 4096


def stated_shapes(given: Arguments) -> list[Stated | None]:
    """The shapes and types of a node's results, as the rules of ONNX give them; None for one that does not follow.

    given: its arguments.
    """
    import onnx
    from onnx import helper, numpy_helper

    names = [f"i{place}" if value is not None else "" for place, value in enumerate(given.inputs)]
    copy = helper.make_node(given.kind, names, [f"o{place}" for place in range(given.outputs)])
    copy.attribute.extend(each for each in given.attributes.values())
    types, numbers = {}, {}
    for name, value in zip(names, given.inputs, strict=True):
        if value is not None:
            types[name] = helper.make_tensor_type_proto(value.elem or FLOAT, value.shape)
            if value.stored and value.size <= _MOST_NUMBERS and value.load is not None and not value.real:
                kind = helper.tensor_dtype_to_np_dtype(value.elem)
                numbers[name] = numpy_helper.from_array(np.asarray(value.array, kind), name)
    try:
        schema = onnx.defs.get_schema(given.kind, given.version, "")
        inferred = onnx.shape_inference.infer_node_outputs(schema, copy, types, numbers)
    except Exception:
        # onnx raises classes of its native part here, for unknown operators and for arguments that do not fit
        return [None] * given.outputs
    return [_stated(inferred.get(f"o{place}")) for place in range(given.outputs)]


def _stated(kind: Any) -> Stated | None:
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    sizes = [int(dim.dim_value) if dim.HasField("dim_value") else 0 for dim in kind.tensor_type.shape.dim]
    return (tuple(sizes), int(kind.tensor_type.elem_type)) if min(sizes, default=1) > 0 else None


def call_of(draw: Drawing, given: Arguments, shapes: Sequence[Stated | None]) -> list[Value | None]:
    """A call of a library with all its results; None for those whose shapes are not known.

    draw: the graph in the making.
    given: the node's arguments.
    shapes: of its results.

    The last states of a recurrent node are slices of its states. Any other second result is a call that reads the
    first one, so that the work counts once.
    """
    # of inputs that are whole numbers, only those that a library reads at run time are operands: not axes, not shapes
    read = [each for each in given.inputs if each is not None and not (each.stored and not each.real)]
    op = _library_name(given.kind)
    results: list[Value | None] = []
    first: Value | None = None
    for place, stated in enumerate(shapes):
        if stated is None:
            results.append(None)
        elif first is None:
            first = draw.call(op, read, *stated)
            results.append(first)
        elif place == 1 and _last_is_slice(given, first):
            results.append(draw.reshaped(_last(draw, given, first), stated[0]))
        else:
            results.append(draw.call(f"{op}_result_{place}", [first], *stated))
    if first is None:
        raise UnreadableError("has results of unknown shape")
    return results


def _library_name(kind: str) -> str:
    """The name of a library's operation, which is not taken for one of the graph's own.

    >>> _library_name("MaxPool"), _library_name("Slice")
    ('max_pool', 'onnx_slice')
    """
    op = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()[:200]
    return f"onnx_{op}" if class_of(op) != COMPUTE or mistaken_name(op) else op


def _last_is_slice(given: Arguments, states: Value) -> bool:
    """Whether the last states of a recurrent node are one step of all its states."""
    forward = given.text("direction", "forward") in ("forward", "reverse")
    return given.kind in _RECURRENT and forward and given.optional(4) is None and len(states.shape) == 4


def _last(draw: Drawing, given: Arguments, states: Value) -> Value:
    axis = 1 if given.whole("layout", 0) else 0
    last = 0 if given.text("direction", "forward") == "reverse" else states.shape[axis] - 1
    start = tuple(last if at == axis else 0 for at in range(4))
    return draw.sliced(states, start, tuple(1 if at == axis else size for at, size in enumerate(states.shape)))
