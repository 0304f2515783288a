"""Which frame of which tensor a value in an ONNX network is: Gather, Slice and Split along the axis of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lstmsim.importers.onnx.graph import DEFAULT_DOMAINS, Scope, Value, attributes, node_input
from lstmsim.importers.onnx.shapes import Shapes
from lstmsim.importers.onnx.step_numbers import Refused
from lstmsim.importers.onnx.stored import plain
from lstmsim.importers.onnx.values import integer

__all__ = ["Frame", "frame_of", "picked_by", "run_of_frames"]


@dataclass(frozen=True)
class Frame:
    """One frame of a tensor [steps, batch, width] or [batch, steps, width].

    tensor: the value that holds all frames.
    axis: its axis of time.
    index: the frame's place on this axis, from 0.
    count: number of frames on this axis; None if the file leaves it open.
    """

    tensor: Value
    axis: int
    index: int
    count: int | None


def frame_of(value: Value, kept: bool = False, *, shapes: Shapes) -> Frame | None:
    """Tell which frame of which tensor a value is; None if it is no frame or the file does not say which.

    kept: whether the value still has an axis of time, of size 1.
    shapes: the shapes of the network.

    >>> from lstmsim.importers.onnx.graph import open_scopes, resolve
    >>> from onnx import TensorProto, helper
    >>> node = helper.make_node("Gather", ["x", "one"], ["y"], axis=0)
    >>> frames = helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 1, 4])
    >>> one = helper.make_tensor("one", TensorProto.INT64, [], [1])
    >>> (scope,) = open_scopes(helper.make_model(helper.make_graph([node], "g", [frames], [], initializer=[one])))
    >>> frame_of(resolve(scope, "y"), shapes=Shapes()).index
    1
    """
    axes: tuple[int | None, ...] | None = None
    if kept:
        # The axis that is kept must be the axis of time of a recurrent node: the first.
        axes = (0,)
    elif _is(value, "Squeeze"):
        axes = shapes.given(value.scope, value.node, "axes", 1)
        inner = plain(value.scope, node_input(value.node, 0))
        if inner is None or axes is None or len(axes) != 1:
            return None
        value, kept = inner, True
    frame = _picked(value, shapes, kept)
    if frame is None or (kept and axes not in ((frame.axis,), (frame.axis - 3,))):
        return None
    return frame


def run_of_frames(frames: Sequence[Frame | None]) -> bool:
    """Say whether frames go through one tensor from the last to the first, rather than from the first to the last.

    `Refused` if the frames go through it in no such order, or belong to several tensors.
    """
    known = [each for each in frames if each is not None]
    if len(known) < len(frames):
        at = next(at for at, each in enumerate(frames) if each is None)
        raise Refused(f"step {at} reads what is not shown to be frame {at} of one tensor")
    if len({(each.tensor, each.axis) for each in known}) > 1:
        raise Refused("its steps read frames of several tensors")
    places, forward = [each.index for each in known], list(range(len(known)))
    if places not in (forward, forward[::-1]):
        some = ", ".join(map(str, places[:6])) + (", ..." if len(places) > 6 else "")
        raise Refused(f"its steps read frames {some}: only all of them in order can be simulated")
    return places != forward


def picked_by(value: Value) -> list[tuple[Scope, int]]:
    """List the nodes that pick a frame, from the frame to the tensor."""
    nodes, each = list[tuple[Scope, int]](), value
    while any(_is(each, kind) for kind in ("Squeeze", "Gather", "Slice", "Split")) and len(nodes) < 2:
        nodes.append((each.scope, each.index))
        inner = plain(each.scope, node_input(each.node, 0))
        if inner is None:
            break
        each = inner
    return nodes


def _is(value: Value, kind: str) -> bool:
    return value.node is not None and value.node.op_type == kind and value.node.domain in DEFAULT_DOMAINS


def _picked(value: Value, shapes: Shapes, kept: bool) -> Frame | None:
    """The frame that a Gather, Slice or Split picks; `kept`: the axis of time stays, with one element."""
    node = value.node
    kind = next((each for each in ("Gather", "Slice", "Split") if _is(value, each)), "")
    if not kind or (kind == "Split" and not kept) or (kind == "Slice" and not kept):
        return None
    tensor = plain(value.scope, node_input(node, 0))
    shape = None if tensor is None else shapes.of(tensor.scope, tensor.name)
    if tensor is None or (shape is not None and len(shape) != 3):
        return None
    # A product reads [batch, width], so the tensor that it is taken from has three dimensions even if none is known.
    sizes_known = shape if shape is not None else (None, None, None)
    given = attributes(value.scope, node)
    axis: int | None = integer(given, "axis", 0)
    if kind == "Gather":
        places = shapes.numbers(value.scope, node_input(node, 1))
        single = shapes.of(value.scope, node_input(node, 1)) == ((1,) if kept else ())
        index = places[0] if places and len(places) == 1 and single else None
    elif kind == "Split":
        stated = "split" in given or node_input(node, 1)
        sizes = shapes.given(value.scope, node, "split", 1) if stated else None
        size = sizes_known[axis] if axis is not None and -3 <= axis < 3 else None
        single = set(sizes) == {1} if sizes else size == len(node.output)
        index = value.place if single else None
    else:
        axis, index = _sliced(value, shapes)
    if axis is None or index is None or axis % 3 == 2 or not -3 <= axis < 3:
        return None
    count = sizes_known[axis % 3]
    if index < 0:
        if count is None:
            return None
        index += count
    return Frame(tensor, axis % 3, index, count)


def _sliced(value: Value, shapes: Shapes) -> tuple[int | None, int | None]:
    """Axis and index of a slice of one element."""
    node = value.node
    starts, ends, axes = (
        shapes.given(value.scope, node, name, place) for place, name in ((1, "starts"), (2, "ends"), (3, "axes"))
    )
    steps = shapes.given(value.scope, node, "steps", 4) if node_input(node, 4) else (1,)
    if steps != (1,) or not (starts and ends and axes) or not len(starts) == len(ends) == len(axes) == 1:
        return None, None
    start, end = starts[0], ends[0]
    if start is None or end is None or not (end == start + 1 or (start == -1 and end >= 2**31 - 1)):
        return None, None
    return axes[0], start
