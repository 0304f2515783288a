"""Activation functions as a machine holds them: tables of values, or of the ends of straight pieces.

Tables are held and read with integers alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lstmsim.model.numerics.arithmetic import FUNCTIONS, Array
from lstmsim.model.numerics.fixed_point import QFormat, floored, shifted
from lstmsim.model.precision import Precision

__all__ = ["TABULATED", "ActivationTable"]

#: Operations that a machine reads from tables.
TABULATED = ("sigmoid", "tanh", "exp", "log_sigmoid")

#: Bits of an argument's place within its cell; finer bits are cut off. The farthest shift is 2**16 cells of this width.
_WITHIN = 24


@dataclass(frozen=True, eq=False)
class ActivationTable:
    """One function over [-range, range], cut into equal cells.

    With `activation: table` an argument gets the value at the middle of its cell. With `activation: linear` it gets
    the straight line between the values at the ends of its cell. An argument outside gets the value of the nearest
    end. Entries are in the result's format and saturate there.

    function: one of `TABULATED`.
    precision: gives the kind of table, the number of cells (`activation_entries`) and the range (`activation_range`).
    source: format of the arguments.
    result: format of the entries and of the values.
    negative: whether the table lies over [-2 range, 0] instead.

    >>> table = ActivationTable("tanh", Precision(activation_entries=16), QFormat(16, 10), QFormat(16, 15))
    >>> values, saturated = table(np.array([0, 1024, 8191]))
    >>> table.result.real(values).round(3).tolist(), saturated
    ([0.0, 0.762, 1.0], 0)
    """

    function: str
    precision: Precision
    source: QFormat
    result: QFormat
    negative: bool = False

    @cached_property
    def cells_below_zero(self) -> int:
        """How many cells lie below 0: the argument 0 is at the lower end of the cell of that number."""
        return self.precision.activation_entries // (1 if self.negative else 2)

    @cached_property
    def cells_per_one(self) -> int:
        """Logarithm of the number of cells per unit of the argument; negative if a cell is wider than one unit."""
        return self.precision.activation_entries.bit_length() - (2 * self.precision.activation_range).bit_length()

    @cached_property
    def _held(self) -> tuple[Array, Array]:
        """Entries, and for each cell whether one of its entries saturated by more than one unit.

        One unit does not count: 1.0 loses it in a format that ends just below 1, as sigmoid and tanh have.
        """
        linear = self.precision.activation == "linear"
        entries = self.precision.activation_entries
        cells = np.arange(entries + linear) - self.cells_below_zero
        exact = FUNCTIONS[self.function](np.ldexp(cells + (0.0 if linear else 0.5), -self.cells_per_one))
        values, _ = self.result.held(exact)
        with np.errstate(over="ignore"):
            beyond = np.abs(np.rint(np.ldexp(exact, self.result.fraction)) - values) > 1
        return values, (beyond[:-1] | beyond[1:]) if linear else beyond

    @property
    def entries(self) -> Array:
        """Numbers that the table holds, in the result's format: one for each cell, with `linear` one more."""
        return self._held[0]

    def __call__(self, raw: Array) -> tuple[Array, int]:
        """Read the values of the function in the result's format, and count how many of them saturated.

        A value counts as saturated if its entry is. It also counts if its argument lies a cell or more outside the
        range on a side where the function goes on: below for log_sigmoid, above for exp.

        raw: arguments as integers in the format `source`, any shape.
        """
        values, beyond = self._held
        cells = self.precision.activation_entries
        place = floored(raw, self.source.fraction - self.cells_per_one - _WITHIN)
        place = place + (self.cells_below_zero << _WITHIN)
        inside = np.minimum(np.maximum(place, 0), cells << _WITHIN)
        cell = np.minimum(inside >> _WITHIN, cells - 1)
        lost = beyond[cell]
        if self.function == "log_sigmoid":
            lost = lost | (place <= -(1 << _WITHIN))
        elif self.function == "exp":
            lost = lost | (place >= (cells + 1) << _WITHIN)
        results = values[cell]
        if self.precision.activation == "linear":
            rise = (values[cell + 1] - results) * (inside - (cell << _WITHIN))
            results = results + shifted(rise, _WITHIN)
        return results, int(np.count_nonzero(lost))
