"""Operators that reduce axes, and those that divide by what they reduced. Source: the ONNX pages of the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from lstmsim.base.errors import InputError
from lstmsim.importers.onnx.operations.arguments import Arguments
from lstmsim.importers.onnx.operations.drawing import Drawing, Rule
from lstmsim.importers.onnx.operations.values import UnreadableError, Value

__all__ = ["NORMALISING"]

Axes = Sequence[int]
#: The smallest number of 32 bits with all its digits.
_SMALLEST = 2.0**-126


def _rest(given: Arguments, axis: int, rank: int) -> list[int]:
    """The axes from one on."""
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


def _mean(draw: Drawing, value: Value, axes: Axes, *, keep: bool = True) -> Value:
    count = prod(value.shape[axis] for axis in axes)
    return draw.element("multiply", draw.reduce("reduce_sum", value, axes, keep=keep), 1.0 / count)


def _standardised(draw: Drawing, value: Value, axes: Axes, epsilon: float) -> tuple[Value, Value, Value]:
    """The value less its mean and divided by its deviation; the mean, and 1 / deviation."""
    mean = _mean(draw, value, axes)
    centred = draw.element("subtract", value, mean)
    variance = _mean(draw, draw.element("multiply", centred, centred), axes)
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
    square = _mean(draw, draw.element("multiply", value, value), axes)
    inverse = draw.element("rsqrt", draw.element("add", square, given.real("epsilon", 1e-5)))
    return [_scaled(draw, draw.element("multiply", value, inverse), given.value(1), None)]


def _channels(draw: Drawing, value: Value, rank: int) -> Value:
    """One number for each place of axis 1."""
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
    mean = _mean(draw, value, axes)
    centred = draw.element("subtract", value, mean)
    deviation = draw.element("sqrt", _mean(draw, draw.element("multiply", centred, centred), axes))
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
        return _mean(draw, value, axes, keep=keep)
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
        return [_mean(draw, value, axes) if op == "mean" else draw.reduce("reduce_max", value, axes, keep=True)]

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
