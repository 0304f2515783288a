"""Operators that compute, by the ONNX pages: on each element, reductions, normalisations, products, 8-bit numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations.drawing import (
    BOOL,
    FLOAT,
    Arguments,
    Drawing,
    Rule,
    UnreadableError,
    Value,
    constant,
)

OneRule = Callable[[Drawing, Arguments], Value]
_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
Axes = Sequence[int]
#: The smallest number of 32 bits with all its digits.
_SMALLEST = 2.0**-126
#: Element types of 8 bits, with their ranges.
_UINT8, _INT8, _INT32 = 2, 3, 6
_RANGES = {_UINT8: (0.0, 255.0), _INT8: (-128.0, 127.0), 4: (0.0, 65535.0), 5: (-32768.0, 32767.0)}


def _one(op: str) -> OneRule:
    return lambda draw, given: draw.element(op, given.value(0))


def _two(op: str) -> OneRule:
    return lambda draw, given: draw.element(op, given.value(0), given.value(1))


def _many(op: str) -> OneRule:
    def rule(draw: Drawing, given: Arguments) -> Value:
        value = given.value(0)
        for place in range(1, len(given.inputs)):
            value = draw.element(op, value, given.value(place))
        return value

    return rule


def _mean(draw: Drawing, given: Arguments) -> Value:
    return draw.element("multiply", _many("add")(draw, given), 1.0 / len(given.inputs))


def _divide(draw: Drawing, given: Arguments) -> Value:
    a, b = given.value(0), given.value(1)
    quotient = draw.element("divide", a, b)
    return quotient if a.real else truncated(draw, quotient)


def truncated(draw: Drawing, value: Value) -> Value:
    """A number without its fraction, towards 0."""
    return draw.element("select", draw.element("greater", 0.0, value), _ceil(draw, value), _floor(draw, value))


def _floor(draw: Drawing, value: Value) -> Value:
    near = draw.element("round", value)
    return draw.element("subtract", near, draw.element("greater", near, value))


def _ceil(draw: Drawing, value: Value) -> Value:
    near = draw.element("round", value)
    return draw.element("add", near, draw.element("greater", value, near))


def _relu(draw: Drawing, value: Value) -> Value:
    return draw.element("maximum", value, 0.0)


def _sign_apart(draw: Drawing, value: Value, slope: Value | float) -> Value:
    """A number as it is above 0, multiplied by a slope below."""
    low = draw.element("multiply", draw.element("minimum", value, 0.0), slope)
    return draw.element("add", _relu(draw, value), low)


def _parametric(draw: Drawing, given: Arguments) -> Value:
    value, slope = given.value(0), given.value(1)
    if given.version < 7 and len(slope.shape) == 1 and len(value.shape) > 1:
        # old versions have a slope for each channel, wherever the channels stand
        slope = draw.reshaped(slope, (slope.size, *(1,) * (len(value.shape) - 2)))
    return _sign_apart(draw, value, slope)


def _exponential_below(draw: Drawing, value: Value, alpha: float, width: float = 1.0) -> Value:
    """A number as it is above 0, alpha * (exp(x / width) - 1) below."""
    low = draw.element("minimum", value, 0.0)
    grown = draw.element("exp", low if width == 1.0 else draw.element("multiply", low, 1.0 / width))
    curve = draw.element("multiply", draw.element("subtract", grown, 1.0), alpha)
    return draw.element("add", _relu(draw, value), curve)


def _softplus(draw: Drawing, value: Value) -> Value:
    # the exponential of what is negative cannot overflow
    fall = draw.element("exp", draw.element("negate", draw.element("abs", value)))
    return draw.element("add", _relu(draw, value), draw.element("log", draw.element("add", fall, 1.0)))


def _clip(draw: Drawing, given: Arguments) -> Value:
    value = given.value(0)
    for place, name, op in ((1, "min", "maximum"), (2, "max", "minimum")):
        bound = given.optional(place)
        if bound is not None:
            value = draw.element(op, value, bound)
        elif name in given.attributes:
            value = draw.element(op, value, given.real(name, 0.0))
    return value


def _hard_sigmoid(draw: Drawing, value: Value, alpha: float, beta: float) -> Value:
    line = draw.element("add", draw.element("multiply", value, alpha), beta)
    return draw.element("minimum", draw.element("maximum", line, 0.0), 1.0)


def _swish(draw: Drawing, given: Arguments) -> Value:
    value, alpha = given.value(0), given.real("alpha", 1.0)
    inner = value if alpha == 1.0 else draw.element("multiply", value, alpha)
    return draw.element("multiply", value, draw.element("sigmoid", inner))


def _shrink(draw: Drawing, given: Arguments) -> Value:
    value, bias, lambd = given.value(0), given.real("bias", 0.0), given.real("lambd", 0.5)
    low = draw.element("select", draw.element("greater", -lambd, value), draw.element("add", value, bias), 0.0)
    return draw.element("select", draw.element("greater", value, lambd), draw.element("subtract", value, bias), low)


def _not(draw: Drawing, value: Value) -> Value:
    return draw.element("subtract", 1.0, value, elem=BOOL)


def _greater(draw: Drawing, one: Value, two: Value) -> Value:
    return draw.element("greater", one, two, elem=BOOL)


def _differ(draw: Drawing, given: Arguments) -> Value:
    one, two = given.value(0), given.value(1)
    return draw.element("maximum", _greater(draw, one, two), _greater(draw, two, one))


def _where(draw: Drawing, given: Arguments) -> Value:
    return draw.element("select", given.value(0), given.value(1), given.value(2), elem=given.value(1).elem)


_PARTS: Mapping[str, OneRule] = {
    "Relu": lambda draw, given: _relu(draw, given.value(0)),
    "LeakyRelu": lambda draw, given: _sign_apart(draw, given.value(0), given.real("alpha", 0.01)),
    "PRelu": _parametric,
    "Elu": lambda draw, given: _exponential_below(draw, given.value(0), given.real("alpha", 1.0)),
    "Selu": lambda draw, given: draw.element(
        "multiply",
        _exponential_below(draw, given.value(0), given.real("alpha", _SELU_ALPHA)),
        given.real("gamma", _SELU_GAMMA),
    ),
    "Celu": lambda draw, given: _exponential_below(
        draw, given.value(0), given.real("alpha", 1.0), given.real("alpha", 1.0)
    ),
    "Softplus": lambda draw, given: _softplus(draw, given.value(0)),
    "Softsign": lambda draw, given: draw.element(
        "divide", given.value(0), draw.element("add", draw.element("abs", given.value(0)), 1.0)
    ),
    "HardSigmoid": lambda draw, given: _hard_sigmoid(
        draw, given.value(0), given.real("alpha", 0.2), given.real("beta", 0.5)
    ),
    "HardSwish": lambda draw, given: draw.element(
        "multiply", given.value(0), _hard_sigmoid(draw, given.value(0), 1 / 6, 0.5)
    ),
    "Swish": _swish,
    "Mish": lambda draw, given: draw.element(
        "multiply", given.value(0), draw.element("tanh", _softplus(draw, given.value(0)))
    ),
    "ThresholdedRelu": lambda draw, given: draw.element(
        "select", draw.element("greater", given.value(0), given.real("alpha", 1.0)), given.value(0), 0.0
    ),
    "Shrink": _shrink,
    "Clip": _clip,
    "Sign": lambda draw, given: draw.element(
        "subtract", draw.element("greater", given.value(0), 0.0), draw.element("greater", 0.0, given.value(0))
    ),
    "Floor": lambda draw, given: _floor(draw, given.value(0)),
    "Ceil": lambda draw, given: _ceil(draw, given.value(0)),
    "Where": _where,
}

#: From a node's arguments to its one result.
ELEMENTWISE: Mapping[str, OneRule] = {
    **{kind: _one(kind.lower()) for kind in ("Abs", "Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Reciprocal", "Round")},
    "Neg": _one("negate"),
    "Add": _two("add"),
    "Sub": _two("subtract"),
    "Mul": _two("multiply"),
    "Div": _divide,
    "Pow": _two("power"),
    "Max": _many("maximum"),
    "Min": _many("minimum"),
    "Sum": _many("add"),
    "Mean": _mean,
    "Not": lambda draw, given: _not(draw, given.value(0)),
    "And": _two("multiply"),
    "Or": _two("maximum"),
    "Xor": _differ,
    "Equal": lambda draw, given: _not(draw, _differ(draw, given)),
    "Greater": lambda draw, given: _greater(draw, given.value(0), given.value(1)),
    "Less": lambda draw, given: _greater(draw, given.value(1), given.value(0)),
    "GreaterOrEqual": lambda draw, given: _not(draw, _greater(draw, given.value(1), given.value(0))),
    "LessOrEqual": lambda draw, given: _not(draw, _greater(draw, given.value(0), given.value(1))),
    **_PARTS,
}


def _rest(given: Arguments, axis: int, rank: int) -> list[int]:
    return list(range(given.axis(axis, rank) if rank else 0, rank))


def _softmax_axes(given: Arguments, rank: int) -> list[int]:
    """The axes of a softmax: before version 13 all from its axis on, as one."""
    if given.version < 13:
        axis = given.whole("axis", 1)
        return list(range(axis % rank if axis != rank else rank, rank))
    return [given.axis(given.whole("axis", -1), rank)]


def _below_largest(draw: Drawing, value: Value, axes: Axes) -> Value:
    return draw.element("subtract", value, draw.reduce("reduce_max", value, axes, keep=True))


def _softmax(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axes = _softmax_axes(given, len(value.shape))
    grown = draw.element("exp", _below_largest(draw, value, axes))
    return [draw.element("divide", grown, draw.reduce("reduce_sum", grown, axes, keep=True))]


def _log_softmax(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axes = _softmax_axes(given, len(value.shape))
    low = _below_largest(draw, value, axes)
    total = draw.reduce("reduce_sum", draw.element("exp", low), axes, keep=True)
    return [draw.element("subtract", low, draw.element("log", total))]


def _average(draw: Drawing, value: Value, axes: Axes, *, keep: bool = True) -> Value:
    count = prod(value.shape[axis] for axis in axes)
    return draw.element("multiply", draw.reduce("reduce_sum", value, axes, keep=keep), 1.0 / count)


def _standardised(draw: Drawing, value: Value, axes: Axes, epsilon: float) -> tuple[Value, Value, Value]:
    """The value less its mean and divided by its deviation; the mean, and 1 / deviation."""
    mean = _average(draw, value, axes)
    centred = draw.element("subtract", value, mean)
    variance = _average(draw, draw.element("multiply", centred, centred), axes)
    inverse = draw.element("rsqrt", draw.element("add", variance, epsilon))
    return draw.element("multiply", centred, inverse), mean, inverse


def _scaled(draw: Drawing, value: Value, scale: Value | None, shift: Value | None) -> Value:
    value = value if scale is None else draw.element("multiply", value, scale)
    return value if shift is None else draw.element("add", value, shift)


def _layer(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axes = _rest(given, given.whole("axis", -1), len(value.shape))
    normal, mean, inverse = _standardised(draw, value, axes, given.real("epsilon", 1e-5))
    return [_scaled(draw, normal, given.value(1), given.optional(2)), mean, inverse]


def _rms(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axes = _rest(given, given.whole("axis", -1), len(value.shape))
    square = _average(draw, draw.element("multiply", value, value), axes)
    inverse = draw.element("rsqrt", draw.element("add", square, given.real("epsilon", 1e-5)))
    return [_scaled(draw, draw.element("multiply", value, inverse), given.value(1), None)]


def _channels(draw: Drawing, value: Value, rank: int) -> Value:
    return draw.reshaped(value, (value.size, *(1,) * (rank - 2)))


def _instance(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    rank = len(value.shape)
    normal, _, _ = _standardised(draw, value, range(2, rank), given.real("epsilon", 1e-5))
    return [_scaled(draw, normal, *(_channels(draw, given.value(place), rank) for place in (1, 2)))]


def _group(draw: Drawing, given: Arguments) -> list[Value]:
    value, groups = given.value(0), given.whole("num_groups", 0)
    batch, channels, *_ = value.shape
    if groups < 1 or channels % groups:
        raise InputError(f"must have as many channels in every group, got {channels} in {groups} groups")
    parts = draw.reshaped(value, (batch, groups, value.size // (batch * groups)))
    normal, _, _ = _standardised(draw, parts, (2,), given.real("epsilon", 1e-5))
    # before version 21 scale and shift are numbers of a group
    numbers = (given.value(place) for place in (1, 2))
    if given.version < 21:
        return [draw.reshaped(_scaled(draw, normal, *(_channels(draw, each, 3) for each in numbers)), value.shape)]
    rank = len(value.shape)
    whole = draw.reshaped(normal, value.shape)
    return [_scaled(draw, whole, *(_channels(draw, each, rank) for each in numbers))]


def _batch(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    if given.whole("training_mode", 0):
        raise UnreadableError("normalises by its own batch (training_mode)")
    rank = max(len(value.shape), 2)
    scale, shift, mean, variance = (given.value(place) for place in (1, 2, 3, 4))
    deviation = draw.element("sqrt", draw.element("add", variance, given.real("epsilon", 1e-5)))
    slope = draw.element("divide", scale, deviation)
    offset = draw.element("subtract", shift, draw.element("multiply", mean, slope))
    return [_scaled(draw, value, _channels(draw, slope, rank), _channels(draw, offset, rank))]


def _mean_variance(draw: Drawing, given: Arguments) -> list[Value]:
    value = given.value(0)
    axes = [given.axis(each, len(value.shape)) for each in given.list("axes") or (0, 2, 3)]
    mean = _average(draw, value, axes)
    centred = draw.element("subtract", value, mean)
    deviation = draw.element("sqrt", _average(draw, draw.element("multiply", centred, centred), axes))
    # onnx's function adds 1e-9 to the deviation itself
    return [draw.element("divide", centred, draw.element("add", deviation, 1e-9))]


def _length(draw: Drawing, value: Value, axes: Axes, power: int, *, keep: bool) -> Value:
    if power == 1:
        return draw.reduce("reduce_sum", draw.element("abs", value), axes, keep=keep)
    return draw.element("sqrt", draw.reduce("reduce_sum", draw.element("multiply", value, value), axes, keep=keep))


def _lp(draw: Drawing, given: Arguments) -> list[Value]:
    value, power = given.value(0), given.whole("p", 2)
    if power not in (1, 2):
        raise UnreadableError(f"has norm {power}, expected 1 or 2")
    axes = [given.axis(given.whole("axis", -1), len(value.shape))]
    # what has length 0 stays 0
    length = draw.element("maximum", _length(draw, value, axes, power, keep=True), _SMALLEST)
    return [draw.element("divide", value, length)]


def _reduce(kind: str) -> Rule:
    def rule(draw: Drawing, given: Arguments) -> list[Value]:
        value, rank = given.value(0), len(given.value(0).shape)
        axes = given.list("axes", 1)
        if not axes and given.whole("noop_with_empty_axes", 0):
            axes = []
        elif not axes:
            axes = list(range(rank))
        axes = [given.axis(each, rank) for each in axes]
        return [_reduced(draw, kind, value, axes, keep=bool(given.whole("keepdims", 1)))]

    return rule


def _reduced(draw: Drawing, kind: str, value: Value, axes: Axes, *, keep: bool) -> Value:
    if kind in ("Sum", "Max", "Min"):
        return draw.reduce(f"reduce_{kind.lower()}", value, axes, keep=keep)
    if kind == "Mean":
        return _average(draw, value, axes, keep=keep)
    if kind in ("L1", "L2"):
        return _length(draw, value, axes, int(kind[1]), keep=keep)
    if kind == "SumSquare":
        return draw.reduce("reduce_sum", draw.element("multiply", value, value), axes, keep=keep)
    if kind == "LogSum":
        return draw.element("log", draw.reduce("reduce_sum", value, axes, keep=keep))
    largest = draw.reduce("reduce_max", value, axes, keep=True)
    grown = draw.element("exp", draw.element("subtract", value, largest))
    total = draw.element("log", draw.reduce("reduce_sum", grown, axes, keep=True))
    both = draw.element("add", total, largest)
    return both if keep else draw.reduce("reduce_sum", both, axes, keep=False)


def _global(op: str) -> Rule:
    def rule(draw: Drawing, given: Arguments) -> list[Value]:
        value = given.value(0)
        axes = range(2, len(value.shape))
        return [_average(draw, value, axes) if op == "mean" else draw.reduce("reduce_max", value, axes, keep=True)]

    return rule


#: From a node's arguments to its results.
NORMALISING: Mapping[str, Rule] = {
    **{
        f"Reduce{kind}": _reduce(kind)
        for kind in ("Sum", "Max", "Min", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
    },
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "LayerNormalization": _layer,
    "RMSNormalization": _rms,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "BatchNormalization": _batch,
    "MeanVarianceNormalization": _mean_variance,
    "LpNormalization": _lp,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
}


def _product(draw: Drawing, a: Value, b: Value, elem: int) -> Value:
    if not a.shape or not b.shape or a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else -1]:
        raise InputError(f"multiplies the shapes {a.shape} and {b.shape}")
    try:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise InputError(f"multiplies the shapes {a.shape} and {b.shape}") from None
    shape = (*outer, *a.shape[-2:-1], *(b.shape[-1:] if len(b.shape) > 1 else ()))
    return draw.call("matmul", (a, b), shape, elem)


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
    "MatMul": lambda draw, given: [_product(draw, given.value(0), given.value(1), given.value(0).elem)],
    "Gemm": _gemm,
    "MatMulInteger": _matmul_integer,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic,
}
