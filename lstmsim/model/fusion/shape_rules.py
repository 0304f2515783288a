"""The rules of shapes and axes of single nodes, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

from lstmsim.base.wording import show
from lstmsim.model.fusion.graph import Node
from lstmsim.model.fusion.operations import OPERATIONS, REDUCES

__all__ = ["AXES_KEYS", "sizes_text", "wrong_shapes"]

#: A key of a node with places in its list, and what is wrong there.
Wrong = tuple[tuple[str | int, ...], str]

#: What graph files call `Node.axes`, by operation; reduces call it `axes`.
AXES_KEYS: Mapping[str, str] = {"broadcast": "dims", "transpose": "perm", "slice": "start"}


def wrong_shapes(node: Node, operands: Sequence[Node]) -> Iterator[Wrong]:
    """Say what does not fit in the shape and the axes of a node.

    node: the node, with the right number of operands.
    operands: those of its operands that are nodes, in order.

    >>> x, y = Node("x", "input", (), (2, 3)), Node("y", "transpose", ("x",), (2, 3), (1, 0))
    >>> list(wrong_shapes(y, [x]))
    [(('shape',), "must be [3, 2], because 'x' is [2, 3] and perm is [1, 0], got [2, 3]")]
    """
    if node.op in OPERATIONS:
        for each in operands:
            if each.shape != node.shape:
                yield (
                    ("shape",),
                    f"must be that of its operand {_told(each)}, got {sizes_text(node.shape)}{_stretch(node)}",
                )
                return
    elif node.op in REDUCES:
        yield from _reduce(node, operands[0])
    elif node.op in _RULES:
        yield from _RULES[node.op](node, operands[0])
    elif node.op == "matmul":
        yield from _matmul(node, *operands)


def _stretch(node: Node) -> str:
    return ": a broadcast makes shapes equal" if node.shape else ""


def sizes_text(shape: Sequence[int]) -> str:
    """Sizes as graph files write them.

    >>> sizes_text((2, 3))
    '[2, 3]'
    """
    return f"[{', '.join(map(str, shape))}]"


def _told(node: Node) -> str:
    return f"{show(node.name)} {sizes_text(node.shape)}"


def _axes(node: Node, key: str, rank: int, whose: str) -> list[Wrong]:
    """Axes that are out of range or stand there twice."""
    wrong: list[Wrong] = []
    for at, axis in enumerate(node.axes):
        if not 0 <= axis < rank:
            text = (
                f"must be from 0 to {rank - 1}, the axes of {whose}" if rank else f"must be empty: {whose} has no axes"
            )
            wrong.append(((key, at), f"{text}, got {axis}"))
        elif axis in node.axes[:at]:
            wrong.append(((key, at), f"axis {axis} stands there twice"))
    return wrong


def _expected(node: Node, shape: tuple[int, ...], because: str) -> Iterator[Wrong]:
    if node.shape != shape:
        yield ("shape",), f"must be {sizes_text(shape)}, because {because}, got {sizes_text(node.shape)}"


def _reduce(node: Node, operand: Node) -> Iterator[Wrong]:
    wrong = _axes(node, "axes", len(operand.shape), _told(operand))
    if not node.axes:
        wrong.append((("axes",), "must name at least 1 axis that vanishes, got none"))
    if not wrong and list(node.axes) != sorted(node.axes):
        wrong.append((("axes",), f"must be ascending, got {sizes_text(node.axes)}"))
    yield from wrong
    if not wrong:
        shape = tuple(size for axis, size in enumerate(operand.shape) if axis not in node.axes)
        yield from _expected(node, shape, f"{_told(operand)} loses axes {sizes_text(node.axes)}")


def _broadcast(node: Node, operand: Node) -> Iterator[Wrong]:
    if len(node.axes) != len(operand.shape):
        text = f"must have an axis of the result for each axis of {_told(operand)}"
        yield ("dims",), f"{text}, got {sizes_text(node.axes)}"
        return
    wrong = _axes(node, "dims", len(node.shape), f"the result {sizes_text(node.shape)}")
    yield from wrong
    if wrong:
        return
    for at, axis in enumerate(node.axes):
        if operand.shape[at] != node.shape[axis]:
            hint = ": a reshape takes an axis of size 1 away first" if operand.shape[at] == 1 else ""
            text = f"must be {operand.shape[at]}, the size of axis {at} of {_told(operand)}"
            yield ("shape", axis), f"{text}, got {node.shape[axis]}{hint}"


def _reshape(node: Node, operand: Node) -> Iterator[Wrong]:
    if prod(node.shape) != prod(operand.shape):
        text = f"must have the {prod(operand.shape)} elements of {_told(operand)}"
        yield ("shape",), f"{text}, got {sizes_text(node.shape)}: {prod(node.shape)}"


def _transpose(node: Node, operand: Node) -> Iterator[Wrong]:
    if len(node.axes) != len(operand.shape):
        yield ("perm",), f"must name each axis of {_told(operand)} once, got {sizes_text(node.axes)}"
        return
    wrong = _axes(node, "perm", len(operand.shape), _told(operand))
    yield from wrong
    if not wrong:
        shape = tuple(operand.shape[axis] for axis in node.axes)
        yield from _expected(
            node, shape, f"{_told(operand).replace(' [', ' is [')} and perm is {sizes_text(node.axes)}"
        )


def _slice(node: Node, operand: Node) -> Iterator[Wrong]:
    if len(node.axes) != len(operand.shape):
        yield ("start",), f"must have a place for each axis of {_told(operand)}, got {sizes_text(node.axes)}"
    elif len(node.shape) != len(operand.shape):
        yield ("shape",), f"must have a size for each axis of {_told(operand)}, got {sizes_text(node.shape)}"
    else:
        for at, (start, size, whole) in enumerate(zip(node.axes, node.shape, operand.shape, strict=True)):
            if start < 0:
                yield ("start", at), f"must be at least 0, got {start}"
            elif size > whole:
                yield ("shape", at), f"must be at most {whole}, the size of axis {at} of {_told(operand)}, got {size}"
            elif start + size > whole:
                text = f"must be at most {whole - size}: {size} of the {whole} elements of axis {at} begin there"
                yield ("start", at), f"{text}, got {start}"


_RULES: Mapping[str, Callable[[Node, Node], Iterator[Wrong]]] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
}


def _matmul(node: Node, a: Node, b: Node) -> Iterator[Wrong]:
    if not a.shape or not b.shape:
        which = 0 if not a.shape else 1
        yield ("inputs", which), f"must have at least 1 axis, got {_told((a, b)[which])}"
        return
    rows, columns = a.shape[-2:-1], b.shape[-1:] if len(b.shape) > 1 else ()
    depth = b.shape[-2] if len(b.shape) > 1 else b.shape[-1]
    if a.shape[-1] != depth:
        yield ("inputs", 1), f"must have {a.shape[-1]} rows, as many as {_told(a)} has columns, got {_told(b)}"
        return
    outer = _joined(a.shape[:-2], b.shape[:-2])
    if outer is None:
        yield ("inputs", 1), f"must have the axes before the last two of {_told(a)}, got {_told(b)}"
        return
    yield from _expected(node, (*outer, *rows, *columns), f"{_told(a)} is multiplied by {_told(b)}")


def _joined(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The axes of both, as numpy broadcasts them; None if they do not fit."""
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))
    return tuple(max(pair) for pair in pairs) if all(x == y or 1 in (x, y) for x, y in pairs) else None
