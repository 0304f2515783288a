"""Scales as factors and shifts; weights as whole numbers, and what the adapter does to each row of a sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.numerics.fixed_point import QFormat
from lstmsim.model.numerics.weights import Floats
from lstmsim.model.precision import Precision

__all__ = ["Adapter", "multipliers", "quantized"]

#: Bits of a bias in its sum's units: a large bias may meet an equally large product.
_BIAS_BITS = 32


def multipliers(scale: ArrayLike, fraction: int, bits: int, largest: float | None = None) -> tuple[Array, Array]:
    """Choose integers m and shifts, so that m * 2**-shift is about scale * 2**fraction.

    scale: real numbers, any shape; a scale of 0 gives m = 0.
    fraction: of the format that the product has.
    bits: m is below 2**bits, and as large as fits.
    largest: all get the shift of this scale, which is none of them below; None: each its own.

    >>> multipliers([0.75, 0.2, 0.0], fraction=0, bits=4)
    (array([12, 13,  0]), array([4, 6, 4]))
    >>> multipliers([0.75, 0.2, 0.0], fraction=0, bits=4, largest=0.75)
    (array([12,  3,  0]), array([4, 4, 4]))
    """
    scales = np.asarray(scale, np.float64)
    mantissa, exponent = np.frexp(scales)
    factor = np.rint(np.ldexp(mantissa, bits)).astype(np.int64)
    carry = factor >> bits
    if largest is None:
        return factor >> carry, bits - exponent.astype(np.int64) - carry - fraction
    _, shift = multipliers(largest, fraction, bits)
    return np.rint(np.ldexp(scales, fraction + int(shift))).astype(np.int64), np.full_like(factor, shift)


@dataclass(frozen=True, eq=False)
class Adapter:
    """What the adapter does to the rows of a sum: `(total * factor) >> shift`, rounded, plus `bias`.

    factor: [units], 0 or more, below 2**multiplier_bits.
    shift: [units], bits to the right; negative to the left.
    bias: [units], in the format of the sum.

    >>> own = Adapter.of(np.array([0.75, 0.25]), np.array([1.0, 0.0]), QFormat(16, 8), Precision(multiplier_bits=4))
    >>> own.factor.tolist(), own.shift.tolist(), own.bias.tolist()
    ([12, 8], [-4, -3], [256, 0])
    """

    factor: Array
    shift: Array
    bias: Array

    @classmethod
    def of(
        cls, unit: Floats, bias: Floats, result: QFormat, precision: Precision, largest: float | None = None
    ) -> Adapter:
        """Make the adapter of a sum.

        unit: [units], the real number that one unit of each row's accumulator stands for.
        bias: [units], real numbers.
        result: format of the sum.
        precision: gives the width of factors, and whether rows share a shift.
        largest: with a common shift, that of this unit is taken; None: that of the largest of the rows.
        """
        raw, _ = QFormat(_BIAS_BITS, result.fraction).held(bias)
        common = None
        if precision.shift == "common":
            common = float(unit.max(initial=0)) if largest is None else largest
        return cls(*multipliers(unit, result.fraction, precision.multiplier_bits, common), raw)


def quantized(folded: Mapping[str, Floats], idle: set[str], precision: Precision) -> tuple[Mapping[str, Array], Floats]:
    """Give the weights of a sum as whole numbers in float64, and the real number that one unit of each row stands for.

    folded: vector to weights times the scales of the vector's columns, [units, width].
    idle: vectors that are always 0. They have no scale of their own and must not set that of the other vectors.
    precision: gives the width of weights, and whether a sum has one scale.

    >>> weights, unit = quantized({"x": np.array([[1.0, 0.5]])}, set(), Precision(weight_bits=4))
    >>> weights["x"].tolist(), unit.round(4).tolist()
    ([[7.0, 4.0]], [0.1429])
    """
    top = (1 << (precision.weight_bits - 1)) - 1
    counted = [part for name, part in folded.items() if name not in idle]
    largest = np.max([np.abs(part).max(axis=1) for part in counted or folded.values()], axis=0)
    if precision.weight_scale == "tensor":
        largest = np.full_like(largest, largest.max())
    unit: Floats = largest / top
    divisor = np.where(unit > 0, unit, 1)[:, None]
    return {name: np.clip(np.rint(part / divisor), -top, top) for name, part in folded.items()}, unit
