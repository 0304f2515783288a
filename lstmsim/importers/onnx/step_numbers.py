"""Numbers that steps of an unrolled layer read: matrices, biases, and states that the file fixes."""

from __future__ import annotations

import numpy as np

from lstmsim.base.wording import show
from lstmsim.importers.onnx.constants import Constants
from lstmsim.importers.onnx.graph import Value, node_input, resolve
from lstmsim.importers.onnx.steps import Product, Step
from lstmsim.importers.onnx.stored import is_stored
from lstmsim.model.numerics.weights import Floats

__all__ = ["Refused", "StepNumbers"]


class Refused(Exception):
    """A chain of steps is no layer that can be simulated; the text says why."""


class StepNumbers:
    """Stored values of one network, each read once; constants: where the values are read."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._known: dict[Value, Floats | str] = {}

    def of(self, value: Value) -> Floats:
        """Read a value from the file; `Refused` if it is no floating-point constant."""
        if value not in self._known:
            self._known[value] = self._constants.of(value.scope, value.name)
        numbers = self._known[value]
        if isinstance(numbers, str):
            raise Refused(f"{show(value.name)} comes from {numbers}")
        return numbers

    def number(self, value: Value) -> float | None:
        """Give the number that fills a stored value; None if the value holds different numbers or is not stored."""
        try:
            numbers = self.of(value)
        except Refused:
            return None
        return float(numbers.flat[0]) if numbers.size and np.all(numbers == numbers.flat[0]) else None

    def matrix(self, product: Product) -> Floats:
        """Read the weights of a product, [rows, columns]."""
        matrix = self.of(product.matrix)
        return matrix if product.by_rows else matrix.T

    def same(self, one: Product, other: Product) -> bool:
        """Say whether two products have equal weights, stored once or twice."""
        if (one.matrix, one.by_rows) == (other.matrix, other.by_rows):
            return True
        try:
            return np.array_equal(self.matrix(one), self.matrix(other))
        except Refused:
            return False

    def biases(self, step: Step) -> tuple[Floats, ...]:
        """Add up the stored terms of each of a step's sums, [rows]; `Refused` if they do not fit the products."""
        matrix = self.matrix(next(each for terms in step.sums for each in terms.products))
        totals = []
        for terms in step.sums:
            total = np.zeros(len(matrix))
            for value in terms.stored:
                row = _row(self.of(value), value)
                if row.shape != total.shape:
                    raise Refused(f"{show(value.name)} has {len(row)} numbers, expected {len(total)}")
                total = total + row
            totals.append(total.astype(matrix.dtype))
        return tuple(totals)

    def fixed(self, value: Value) -> Floats | None:
        """Read a state that the file fixes, for one inference: [units] or [1]; None if it comes at run time."""
        node = value.node
        if node is not None and node.op_type == "ConstantOfShape":
            tensor = next((each.t for each in node.attribute if each.name == "value"), None)
            numbers = [*tensor.float_data] if tensor is not None else [0.0]
            if tensor is not None and tensor.raw_data:
                numbers = list(np.frombuffer(tensor.raw_data, np.float32)) if tensor.data_type == 1 else []
            return np.array(numbers[:1], np.float32) if numbers else None
        if node is not None and node.op_type == "Expand":
            inner = resolve(value.scope, node_input(node, 0))
            return None if inner is None else self.fixed(inner)
        return _row(self.of(value), value) if is_stored(value) else None


def _row(numbers: Floats, value: Value) -> Floats:
    """The row that an array repeats for each inference of a batch; `Refused` if its rows differ."""
    rows = numbers.reshape(-1, numbers.shape[-1]) if numbers.ndim else numbers.reshape(1, 1)
    if not len(rows) or not np.array_equal(rows, np.broadcast_to(rows[:1], rows.shape)):
        raise Refused(f"{show(value.name)} is not the same for every inference of a batch")
    first: Floats = rows[0]
    return first
