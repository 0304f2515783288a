"""Products with what stands before and behind them, and 8-bit numbers. Source: the ONNX pages of the keys."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations.arguments import Arguments
from lstmsim.importers.onnx.operations.drawing import Drawing, Rule
from lstmsim.importers.onnx.operations.values import FLOAT, UnreadableError, Value, constant

__all__ = ["PRODUCTS"]

#: Element types of 8 bits, with their ranges.
_UINT8, _INT8, _INT32 = 2, 3, 6
_RANGES = {_UINT8: (0.0, 255.0), _INT8: (-128.0, 127.0), 4: (0.0, 65535.0), 5: (-32768.0, 32767.0)}


def _product(draw: Drawing, a: Value, b: Value, elem: int) -> Value:
    if not a.shape or not b.shape or a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else -1]:
        raise InputError(f"multiplies the shapes {a.shape} and {b.shape}")
    try:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise InputError(f"multiplies the shapes {a.shape} and {b.shape}") from None
    shape = (*outer, *a.shape[-2:-1], *(b.shape[-1:] if len(b.shape) > 1 else ()))
    return draw.call("matmul", (a, b), shape, elem)


def _matmul(draw: Drawing, given: Arguments) -> list[Value]:
    return [_product(draw, given.value(0), given.value(1), given.value(0).elem)]


def _gemm(draw: Drawing, given: Arguments) -> list[Value]:
    a, b = given.value(0), given.value(1)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise InputError(f"multiplies the shapes {a.shape} and {b.shape}, expected matrices")
    a = draw.transposed(a, (1, 0)) if given.whole("transA", 0) else a
    b = draw.transposed(b, (1, 0)) if given.whole("transB", 0) else b
    value = _product(draw, a, b, a.elem)
    alpha, beta, bias = given.real("alpha", 1.0), given.real("beta", 1.0), given.optional(2)
    value = value if alpha == 1.0 else draw.element("multiply", value, alpha)
    if bias is None or beta == 0.0:
        return [value]
    return [draw.element("add", value, bias if beta == 1.0 else draw.element("multiply", bias, beta))]


def _matmul_integer(draw: Drawing, given: Arguments) -> list[Value]:
    """(A - a) (B - b), as kernels compute it: stored B loses b beforehand, A's zero point is taken off the result."""
    a, b, zero_a, zero_b = given.value(0), given.value(1), given.optional(2), given.optional(3)
    if zero_b is not None and not _nothing(zero_b):
        b = draw.element("subtract", b, zero_b, elem=_INT32)
    if zero_a is None or _nothing(zero_a):
        return [_product(draw, a, b, _INT32)]
    if not b.stored or zero_a.size != 1 or len(b.shape) != 2:
        if zero_a.size > 1:
            zero_a = draw.reshaped(zero_a, (*zero_a.shape, 1))
        return [_product(draw, draw.element("subtract", a, zero_a, elem=_INT32), b, _INT32)]
    sums = constant(b.array.sum(axis=0, dtype=np.int64), _INT32, f"column sums of {b.label}")
    part = draw.element("multiply", draw.reshaped(zero_a, ()), sums, elem=_INT32)
    return [draw.element("subtract", _product(draw, a, b, _INT32), part, elem=_INT32)]


def _nothing(value: Value) -> bool:
    return value.stored and not value.array.any()


def _along(draw: Drawing, given: Arguments, scale: Value, like: Value) -> Value:
    """Scales or zero points, one for each place of an axis, in the shape that numpy repeats."""
    if given.whole("block_size", 0):
        raise UnreadableError("has a scale for each block of an axis")
    if scale.size == 1 or not like.shape:
        return draw.reshaped(scale, ()) if scale.size == 1 else scale
    axis = given.axis(given.whole("axis", 1), len(like.shape))
    return draw.reshaped(scale, tuple(scale.size if at == axis else 1 for at in range(len(like.shape))))


def _quantised(draw: Drawing, value: Value, scale: Value, zero: Value | None, elem: int) -> Value:
    if elem not in _RANGES:
        raise UnreadableError("makes numbers of fewer than 8 bits, or with fractions")
    low, high = _RANGES[elem]
    whole = draw.element("round", draw.element("divide", value, scale))
    if zero is not None and not _nothing(zero):
        whole = draw.element("add", whole, zero)
    return draw.element("minimum", draw.element("maximum", whole, low), high, elem=elem)


def _quantize(draw: Drawing, given: Arguments) -> list[Value]:
    value, zero = given.value(0), given.optional(2)
    elem = zero.elem if zero is not None else given.whole("output_dtype", 0) or _UINT8
    scale = _along(draw, given, given.value(1), value)
    return [_quantised(draw, value, scale, None if zero is None else _along(draw, given, zero, value), elem)]


def _dequantize(draw: Drawing, given: Arguments) -> list[Value]:
    value, zero = given.value(0), given.optional(2)
    if zero is not None and not _nothing(zero):
        value = draw.element("subtract", value, _along(draw, given, zero, value), elem=_INT32)
    return [draw.element("multiply", value, _along(draw, given, given.value(1), value), elem=FLOAT)]


def _dynamic(draw: Drawing, given: Arguments) -> list[Value]:
    """8-bit numbers, scale and zero point from the smallest and largest number of a tensor."""
    value = given.value(0)
    axes = range(len(value.shape))
    high = draw.element("maximum", draw.reduce("reduce_max", value, axes, keep=False), 0.0)
    low = draw.element("minimum", draw.reduce("reduce_min", value, axes, keep=False), 0.0)
    scale = draw.element("divide", draw.element("subtract", high, low), 255.0)
    zero = draw.element("round", draw.element("divide", draw.element("negate", low), scale))
    zero = draw.element("minimum", draw.element("maximum", zero, 0.0), 255.0, elem=_UINT8)
    return [_quantised(draw, value, scale, zero, _UINT8), scale, zero]


#: From a node's arguments to its results.
PRODUCTS: Mapping[str, Rule] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "MatMulInteger": _matmul_integer,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
}
