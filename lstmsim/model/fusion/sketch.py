"""Graphs written down node after node; shapes of results follow from the operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lstmsim.model.fusion.graph import Graph, Node


class Sketch:
    """A graph in the making. Each method adds a node and returns its name, so that it can be an operand.

    >>> sketch = Sketch()
    >>> x = sketch.input("x", (2, 3))
    >>> total = sketch.reduce("reduce_sum", "total", x, (1,))
    >>> sketch.graph("g", [total]).nodes[1]
    Node(name='total', op='reduce_sum', inputs=('x',), shape=(2,), axes=(1,))
    """

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def graph(self, name: str, outputs: Iterable[str], about: Sequence[str] = ()) -> Graph:
        """The graph; name, outputs, about: as of `Graph`."""
        return Graph(name, tuple(self._nodes.values()), tuple(outputs), tuple(about))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a node."""
        return self._nodes[name].shape

    def knows(self, name: str) -> bool:
        """Whether there is a node of that name."""
        return name in self._nodes

    def input(self, name: str, shape: Iterable[int]) -> str:
        """Something from outside: name, and its shape."""
        return self._add(name, "input", (), tuple(shape))

    def element(self, op: str, name: str, *operands: str | float) -> str:
        """An operation on elements; the operands that are names have one shape, that of the result."""
        named = next(each for each in operands if isinstance(each, str))
        return self._add(name, op, operands, self.shape(named))

    def matmul(self, name: str, a: str, b: str) -> str:
        """The matrix product of two matrices."""
        return self._add(name, "matmul", (a, b), (self.shape(a)[0], self.shape(b)[1]))

    def reduce(self, op: str, name: str, operand: str, axes: Iterable[int]) -> str:
        """A reduce over axes of its operand, ascending."""
        gone = tuple(axes)
        shape = tuple(size for axis, size in enumerate(self.shape(operand)) if axis not in gone)
        return self._add(name, op, (operand,), shape, gone)

    def broadcast(self, name: str, operand: str, shape: Iterable[int], dims: Iterable[int]) -> str:
        """An operand repeated: shape is that of the result, dims has the result's axis of each axis of the operand."""
        return self._add(name, "broadcast", (operand,), tuple(shape), tuple(dims))

    def reshape(self, name: str, operand: str, shape: Iterable[int]) -> str:
        """The same elements in another shape."""
        return self._add(name, "reshape", (operand,), tuple(shape))

    def transpose(self, name: str, operand: str, perm: Iterable[int]) -> str:
        """Axes in another order: perm has the operand's axis of each axis of the result."""
        axes = tuple(perm)
        return self._add(name, "transpose", (operand,), tuple(self.shape(operand)[axis] for axis in axes), axes)

    def slice(self, name: str, operand: str, start: Iterable[int], size: Iterable[int]) -> str:
        """A part of the operand: along each axis where it starts, and its size."""
        return self._add(name, "slice", (operand,), tuple(size), tuple(start))

    def _add(
        self, name: str, op: str, operands: tuple[str | float, ...], shape: tuple[int, ...], axes: tuple[int, ...] = ()
    ) -> str:
        assert name not in self._nodes, f"{name} is there already"
        self._nodes[name] = Node(name, op, operands, shape, axes)
        return name
