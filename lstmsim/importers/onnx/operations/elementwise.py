"""Operators that compute each element alone. Source: the ONNX operator pages of the keys of `ELEMENTWISE`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lstmsim.importers.onnx.operations.drawing import BOOL, Arguments, Drawing, Value

__all__ = ["ELEMENTWISE", "sign_apart"]

OneRule = Callable[[Drawing, Arguments], Value]
_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875


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


def sign_apart(draw: Drawing, value: Value, slope: Value | float) -> Value:
    """A number as it is above 0, multiplied by a slope below."""
    low = draw.element("multiply", draw.element("minimum", value, 0.0), slope)
    return draw.element("add", _relu(draw, value), low)


def _leaky(draw: Drawing, given: Arguments) -> Value:
    return sign_apart(draw, given.value(0), given.real("alpha", 0.01))


def _parametric(draw: Drawing, given: Arguments) -> Value:
    value, slope = given.value(0), given.value(1)
    if given.version < 7 and len(slope.shape) == 1 and len(value.shape) > 1:
        # old versions have a slope for each channel, wherever the channels stand
        slope = draw.reshaped(slope, (slope.size, *(1,) * (len(value.shape) - 2)))
    return sign_apart(draw, value, slope)


def _exponential_below(draw: Drawing, value: Value, alpha: float, width: float = 1.0) -> Value:
    """A number as it is above 0, alpha * (exp(x / width) - 1) below."""
    low = draw.element("minimum", value, 0.0)
    grown = draw.element("exp", low if width == 1.0 else draw.element("multiply", low, 1.0 / width))
    curve = draw.element("multiply", draw.element("subtract", grown, 1.0), alpha)
    return draw.element("add", _relu(draw, value), curve)


def _selu(draw: Drawing, given: Arguments) -> Value:
    alpha, gamma = given.real("alpha", _SELU_ALPHA), given.real("gamma", _SELU_GAMMA)
    return draw.element("multiply", _exponential_below(draw, given.value(0), alpha), gamma)


def _celu(draw: Drawing, given: Arguments) -> Value:
    alpha = given.real("alpha", 1.0)
    return _exponential_below(draw, given.value(0), alpha, alpha)


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


def _hard_swish(draw: Drawing, given: Arguments) -> Value:
    return draw.element("multiply", given.value(0), _hard_sigmoid(draw, given.value(0), 1 / 6, 0.5))


def _swish(draw: Drawing, given: Arguments) -> Value:
    value, alpha = given.value(0), given.real("alpha", 1.0)
    inner = value if alpha == 1.0 else draw.element("multiply", value, alpha)
    return draw.element("multiply", value, draw.element("sigmoid", inner))


def _mish(draw: Drawing, given: Arguments) -> Value:
    return draw.element("multiply", given.value(0), draw.element("tanh", _softplus(draw, given.value(0))))


def _softsign(draw: Drawing, given: Arguments) -> Value:
    value = given.value(0)
    return draw.element("divide", value, draw.element("add", draw.element("abs", value), 1.0))


def _sign(draw: Drawing, given: Arguments) -> Value:
    value = given.value(0)
    return draw.element("subtract", draw.element("greater", value, 0.0), draw.element("greater", 0.0, value))


def _thresholded(draw: Drawing, given: Arguments) -> Value:
    value = given.value(0)
    return draw.element("select", draw.element("greater", value, given.real("alpha", 1.0)), value, 0.0)


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
    "LeakyRelu": _leaky,
    "PRelu": _parametric,
    "Elu": lambda draw, given: _exponential_below(draw, given.value(0), given.real("alpha", 1.0)),
    "Selu": _selu,
    "Celu": _celu,
    "Softplus": lambda draw, given: _softplus(draw, given.value(0)),
    "Softsign": _softsign,
    "HardSigmoid": lambda draw, given: _hard_sigmoid(
        draw, given.value(0), given.real("alpha", 0.2), given.real("beta", 0.5)
    ),
    "HardSwish": _hard_swish,
    "Swish": _swish,
    "Mish": _mish,
    "ThresholdedRelu": _thresholded,
    "Shrink": _shrink,
    "Clip": _clip,
    "Sign": _sign,
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
