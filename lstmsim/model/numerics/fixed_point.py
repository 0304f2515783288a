"""Primitive operations of fixed-point arithmetic, on integers alone: formats, shifts, products, quotients, means.

Operands hold at most 24 bits, finished sums 40, multipliers 20. So every intermediate result stays below 2**61 and
fits into int64. If two formats lie so far apart that their alignment would not fit, Python's integers take over.
Rounding is half up (add half, shift), as a machine does it with one adder. Constants are rounded half to even.

Activation functions as a machine holds them: tables of values, or of the ends of straight pieces.

Tables are held and read with integers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lstmsim.model.model import Precision
from lstmsim.model.numerics.arithmetic import FUNCTIONS, Array

#: Results of shifts stop here: far outside every format, so that no later addition brings them back into one.
LIMIT = 2**40
#: Farthest that 24-bit operands are shifted left within int64: 2**23 * 2**36, twice, stays below 2**61.
_ALIGNED = 36
#: The widest shift of its integers that numpy defines and that leaves the sign.
_WIDEST = 62
#: A maximum below this counts as zero: its reciprocal would not be a floating-point number.
_TINY = 1e-290

#: Integers and the fraction of their format.
Operand = tuple[Array, int]


@dataclass(frozen=True)
class QFormat:
    """Signed numbers in two's complement: value = raw * 2**-fraction.

    bits: width of a number.
    fraction: bits after the point; any integer, also negative.
    """

    bits: int
    fraction: int

    @classmethod
    def of(cls, largest: float, bits: int) -> QFormat:
        """Choose the finest format of a width in which `largest` (>= 0) fits; 0 gives a fraction of bits - 1."""
        fraction = bits - 1 - math.frexp(largest)[1] if largest else bits - 1
        return cls(bits, fraction - (round(math.ldexp(largest, fraction)) >= 1 << (bits - 1)))

    @property
    def lowest(self) -> int:
        """The smallest raw number."""
        return -(1 << (self.bits - 1))

    @property
    def highest(self) -> int:
        """The largest raw number."""
        return (1 << (self.bits - 1)) - 1

    def held(self, values: ArrayLike) -> tuple[Array, int]:
        """Turn real numbers into raw numbers, rounded half to even, and count how many saturated."""
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(np.asarray(values, np.float64), self.fraction))
        return _cast(scaled, self.lowest, self.highest)

    def real(self, raw: Array) -> NDArray[np.float64]:
        """Give the real numbers that raw numbers stand for."""
        return np.ldexp(raw.astype(np.float64), -self.fraction)


@dataclass(frozen=True, eq=False)
class VectorFormat:
    """Format of streamed vectors: symmetric integers, value = raw * scale.

    bits: width of an integer.
    scale: one number, or [width] if the columns come from tensors of different scales.
    element: the format in which the tail reads single elements.
    """

    bits: int
    scale: NDArray[np.float64]
    element: QFormat

    @classmethod
    def of(cls, largest: float, bits: int, tail_bits: int) -> VectorFormat:
        """Choose one scale, so that `largest` (>= 0) is the largest integer of `bits` bits; 0 gives scale 1."""
        top = (1 << (bits - 1)) - 1
        return cls(bits, np.array(largest / top if largest > _TINY else 1.0), QFormat.of(largest, tail_bits))

    @property
    def lowest(self) -> int:
        """The smallest integer."""
        return -self.highest

    @property
    def highest(self) -> int:
        """The largest integer."""
        return (1 << (self.bits - 1)) - 1

    def held(self, values: ArrayLike) -> tuple[Array, int]:
        """Turn real numbers into integers, rounded half to even, and count how many saturated."""
        with np.errstate(over="ignore"):
            scaled = np.rint(np.asarray(values, np.float64) / self.scale)
        return _cast(scaled, self.lowest, self.highest)

    def real(self, raw: Array) -> NDArray[np.float64]:
        """Give the real numbers that integers stand for."""
        return raw.astype(np.float64) * self.scale


def _cast(values: NDArray[np.float64], lowest: int, highest: int) -> tuple[Array, int]:
    kept = _within(values, lowest, highest)
    return kept.astype(np.int64), int(np.count_nonzero(kept != values))


def saturate(values: Array, format_: QFormat | VectorFormat) -> tuple[Array, int]:
    """Bring integers into a format's range, and count how many lay outside.

    >>> saturate(np.array([-200, 100, 200]), QFormat(8, 0))
    (array([-128,  100,  127]), 2)
    """
    kept = _within(values, format_.lowest, format_.highest)
    return kept, int(np.count_nonzero(kept != values))


def wrap(values: Array, bits: int) -> Array:
    """Keep the lower `bits` bits (at most 62) as a two's complement number."""
    half = 1 << (bits - 1)
    result: Array = ((values + half) & (2 * half - 1)) - half
    return result


def _within(values: Array, lowest: ArrayLike, highest: ArrayLike) -> Array:
    """What `np.clip` gives: on the short arrays of one step, that costs three times as much."""
    result: Array = np.minimum(np.maximum(values, lowest), highest)
    return result


def shifted(values: Array, shift: int | ArrayLike) -> Array:
    """Compute values * 2**-shift, rounded half up, stopped at +-`LIMIT`.

    values: integers below 2**61 in size, or Python's integers of any size.
    shift: bits to the right, negative to the left; one number or one for each value.
    """
    if isinstance(shift, int) and 0 <= shift <= _WIDEST and values.dtype == np.int64:
        return _within((values + ((1 << shift) >> 1)) >> shift, -LIMIT, LIMIT)
    right, left = _directions(values, shift)
    # One half is 0 if nothing is shifted out. Values below 2**61 already give 0 at a shift by 62.
    return _raised((values + ((_one(values) << right) >> 1)) >> right, left)


def floored(values: Array, shift: ArrayLike) -> Array:
    """Compute values * 2**-shift as `shifted` does, but rounded down, as a plain arithmetic shift does it."""
    right, left = _directions(values, shift)
    return _raised(values >> right, left)


def _one(values: Array) -> Array:
    return np.array(1, dtype=values.dtype)


def _directions(values: Array, shift: ArrayLike) -> tuple[Array, Array]:
    amount = np.asarray(shift, dtype=values.dtype)
    right, most = np.maximum(amount, 0), LIMIT.bit_length() - 1
    # numpy does not define a shift of its integers beyond their width.
    return (right if values.dtype == object else np.minimum(right, _WIDEST)), _within(-amount, 0, most)


def _raised(values: Array, left: Array) -> Array:
    bound = (_one(values) * LIMIT) >> left
    result: Array = (_within(values, -bound, bound) << left).astype(np.int64)
    return result


def _aligned(a: Operand, b: Operand) -> tuple[Array, Array, int]:
    """Both operands in units of the finer format, exactly, and the fraction of that format."""
    fraction = max(a[1], b[1])
    first, second = a[0], b[0]
    if abs(a[1] - b[1]) > _ALIGNED:
        first, second = first.astype(object), second.astype(object)
    return first << (fraction - a[1]), second << (fraction - b[1]), fraction


def _aligned_first(function: Callable[[Array, Array], Array]) -> Callable[[int, Operand, Operand], Array]:
    def combined(fraction: int, a: Operand, b: Operand) -> Array:
        first, second, common = _aligned(a, b)
        return shifted(function(first, second), common - fraction)

    return combined


def _multiply(fraction: int, a: Operand, b: Operand) -> Array:
    return shifted(a[0] * b[0], a[1] + b[1] - fraction)


def _divide(fraction: int, a: Operand, b: Operand) -> Array:
    """Exactly rounded; 0 / 0 is 0, anything else / 0 is +-`LIMIT`."""
    up = b[1] - a[1] + fraction
    # 2**23 over 2**30 is already 0.
    above, below = max(up, 0), min(max(-up, 0), 30)
    dividend, divisor = (each.astype(object) if above > _ALIGNED else each for each in (a[0], b[0]))
    numerator = np.where(divisor < 0, -dividend, dividend) << above
    denominator = np.where(divisor == 0, 1, np.abs(divisor)) << below
    quotient = (2 * numerator + denominator) // (2 * denominator)
    kept: Array = _within(np.where(divisor == 0, np.sign(dividend) * LIMIT, quotient), -LIMIT, LIMIT).astype(np.int64)
    return kept


def _ratio(numerator: int, denominator: int, up: int) -> Array:
    """numerator / denominator * 2**up as an array of one number, rounded half up."""
    above, below = numerator << max(up, 0), denominator << max(-up, 0)
    return np.array([max(-LIMIT, min((2 * above + below) // (2 * below), LIMIT))], np.int64)


def _mean(fraction: int, *operands: Operand) -> Array:
    return _mean_of([(int(raw.sum()), len(raw), own) for raw, own in operands], fraction)


def _mean_square(fraction: int, *operands: Operand) -> Array:
    # Squares reach 2**46: 2**16 of them add up within int64.
    parts = [(raw[i : i + 2**16], own) for raw, own in operands for i in range(0, len(raw), 2**16)]
    return _mean_of([(int(raw @ raw), len(raw), 2 * own) for raw, own in parts], fraction)


def _mean_of(totals: Sequence[tuple[int, int, int]], fraction: int) -> Array:
    """From (sum, how many, fraction of the sum) of each part."""
    common = max(own for _, _, own in totals)
    total = sum(each << (common - own) for each, _, own in totals)
    return _ratio(total, sum(count for _, count, _ in totals), fraction - common)


def _rsqrt(fraction: int, a: Operand) -> Array:
    """1 / sqrt, exactly rounded; +`LIMIT` for an argument that is not above 0."""
    return np.array([_one_rsqrt(int(each), a[1], fraction) for each in a[0]], np.int64)


def _one_rsqrt(raw: int, own: int, fraction: int) -> int:
    if raw <= 0:
        return LIMIT
    up = 2 * fraction + own
    # round(sqrt(q)) = (floor(sqrt(4 q)) + 1) // 2, and the square root of a floor has the same floor.
    return min((math.isqrt((4 << max(up, 0)) // (raw << max(-up, 0))) + 1) // 2, LIMIT)


def _relu(fraction: int, a: Operand) -> Array:
    return shifted(np.maximum(a[0], 0), a[1] - fraction)


_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "add": _aligned_first(lambda a, b: a + b),
    "subtract": _aligned_first(lambda a, b: a - b),
    "maximum": _aligned_first(np.maximum),
    "minimum": _aligned_first(np.minimum),
    "multiply": _multiply,
    "divide": _divide,
    "relu": _relu,
    "rsqrt": _rsqrt,
    "mean": _mean,
    "mean_square": _mean_square,
}


def combine(operation: str, operands: Sequence[Operand], fraction: int) -> Array:
    """Compute an operation in units of 2**-fraction, rounded once, stopped at +-`LIMIT`, not yet saturated."""
    return _FUNCTIONS[operation](fraction, *operands)


#: Operations that a machine reads from tables.
TABULATED = ("sigmoid", "tanh", "exp", "log_sigmoid")

#: Bits of an argument's place within its cell; finer bits are cut off. The farthest shift is 2**16 cells of this width.
_WITHIN = 24


@dataclass(frozen=True, eq=False)
class ActivationTable:
    """One function of `TABULATED` over [-range, range] (negative: over [-2 range, 0]), cut into equal cells.

    With `activation: table` an argument gets the value at the middle of its cell. With `activation: linear` it gets
    the straight line between the values at the ends of its cell. An argument outside gets the value of the nearest
    end. Entries are in the result's format and saturate there.
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
