"""Fixed point written down from the text of docs/numerics.md alone: plain Python integers, fractions and floats.

Nothing of `lstmsim.model.numerics` is used; a cell comes as its graph (`lstmsim.model`), weights as arrays. Names are
those of the text, section numbers stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lstmsim.model.cell import Cell
from lstmsim.model.model import Layer, Precision

__all__ = ["PassNumbers", "run"]

L = 2**40
HALF = Fraction(1, 2)
ACTIVATIONS = ("sigmoid", "tanh", "exp", "log_sigmoid")
#: name -> a number for each unit
Values = dict[str, list[Any]]


@dataclass
class PassNumbers:
    """Weights of a pass: matrices[sum, vector][unit][column], biases[sum][unit], parameters[name][unit], and its
    initial states[name][unit]."""

    matrices: Mapping[tuple[str, str], Sequence[Sequence[float]]]
    biases: Mapping[str, Sequence[float]]
    parameters: Mapping[str, Sequence[float]]
    initial: Mapping[str, Sequence[float]]


# -- 2 notation --------------------------------------------------------------------------------------------------------


def up(v: Fraction) -> int:
    return math.floor(v + HALF)


def even(v: float | Fraction) -> int:
    return round(v)


def clip(v: int, low: int, high: int) -> int:
    return max(low, min(v, high))


def power(k: int) -> Fraction:
    return Fraction(2) ** k


def shift(v: int, s: int) -> int:
    return clip((v + 2 ** (s - 1)) // 2**s if s > 0 else v * 2**-s, -L, L)


def top(bits: int) -> int:
    return 2 ** (bits - 1) - 1


# -- 4 formats ---------------------------------------------------------------------------------------------------------


@dataclass
class Q:
    bits: int
    fraction: int

    @property
    def lowest(self) -> int:
        return -(2 ** (self.bits - 1))

    @property
    def highest(self) -> int:
        return top(self.bits)

    def held(self, v: float) -> int:
        # a power of two changes no digit
        return clip(even(math.ldexp(v, self.fraction)), self.lowest, self.highest)

    def real(self, r: int) -> float:
        return float(r * power(-self.fraction))


def q_format(largest: float, bits: int) -> Q:
    if largest == 0:
        return Q(bits, bits - 1)
    _, e = math.frexp(largest)
    fraction = bits - 1 - e
    if even(Fraction(largest) * power(fraction)) >= 2 ** (bits - 1):
        fraction -= 1
    return Q(bits, fraction)


@dataclass
class V:
    bits: int
    scale: float
    element: Q

    @property
    def lowest(self) -> int:
        return -top(self.bits)

    @property
    def highest(self) -> int:
        return top(self.bits)

    def held(self, v: float) -> int:
        return clip(even(v / self.scale), self.lowest, self.highest)

    def real(self, r: int) -> float:
        return r * self.scale


def v_format(largest: float, bits: int, tail_bits: int) -> V:
    scale = 1.0 if largest <= 1e-290 else largest / top(bits)
    return V(bits, scale, q_format(largest, tail_bits))


# -- 3 a step, 5 calibration -------------------------------------------------------------------------------------------


def beginning(cell: Cell, given: Mapping[str, Sequence[Any]], width: Mapping[str, int]) -> dict[str, list[Any] | None]:
    """Section 10: the states before the first step; None: 0."""
    source = next(node for node in cell.nodes if node.name == cell.states["h"]).inputs[0]
    states: dict[str, list[Any] | None] = {}
    for name, target in cell.states.items():
        states[name] = list(given[name]) if name in given else None
        if name not in given and target == source and "h" in given:
            states[name] = list(given["h"])
    return states


def ordered(cell: Cell) -> list[Any]:
    """Sums and nodes so that each comes after what it reads."""
    todo = [(stage, each) for stage in cell.stages for gate in stage.gates for each in gate.sums]
    known = {"x", *cell.states, *cell.parameters}
    order: list[Any] = []
    waiting: list[tuple[Any, Any]] = [*todo, *((None, node) for node in cell.nodes)]
    while waiting:
        ready = []
        for stage, each in waiting:
            reads = each.vectors if stage is not None else [one for one in each.inputs if isinstance(one, str)]
            if all(one in known for one in reads):
                ready.append((stage, each))
        assert ready, "a circle"
        for pair in ready:
            waiting.remove(pair)
            order.append(pair)
            known.add(pair[1].name)
    return order


def spread(inputs: list[list[Any]]) -> list[tuple[Any, ...]]:
    """One number stands for all units where it meets others."""
    units = max(map(len, inputs))
    return list(zip(*(each * units if len(each) == 1 and units > 1 else each for each in inputs), strict=True))


def in_float(operation: str, *inputs: float) -> float:
    v, w = inputs[0], inputs[-1]
    match operation:
        case "sigmoid":
            return 1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v))
        case "tanh":
            return math.tanh(v)
        case "exp":
            return math.exp(v)
        case "log_sigmoid":
            return -math.log1p(math.exp(-v)) if v >= 0 else v - math.log1p(math.exp(v))
        case "rsqrt":
            return 1 / math.sqrt(v)
        case "relu":
            return max(v, 0.0)
        case "quantize":
            return v
        case "multiply":
            return v * w
        case "divide":
            return 0.0 if v == w == 0 else v / w
        case "add":
            return v + w
        case "subtract":
            return v - w
        case "maximum":
            return max(v, w)
        case "minimum":
            return min(v, w)
    raise AssertionError(operation)


def float_step(layer: Layer, own: PassNumbers, x: list[float], states: Values) -> Values:
    values: Values = {"x": x, **states, **{name: list(each) for name, each in own.parameters.items()}}
    for stage, each in ordered(layer.cell):
        if stage is not None:
            bias = own.biases.get(each.name)
            units = len(own.matrices[each.name, each.vectors[0]])
            values[each.name] = [
                math.fsum(
                    float(w) * v
                    for vector in each.vectors
                    for w, v in zip(own.matrices[each.name, vector][u], values[vector], strict=True)
                )
                + (0.0 if bias is None else float(bias[u]))
                for u in range(units)
            ]
            continue
        inputs = [values[one] if isinstance(one, str) else [one] for one in each.inputs]
        if each.operation in ("mean", "mean_square"):
            every = [v * v if each.operation == "mean_square" else v for one in inputs for v in one]
            values[each.name] = [math.fsum(every) / len(every)]
        else:
            values[each.name] = [in_float(each.operation, *one) for one in spread(inputs)]
    return values


def steps_of(layer: Layer, direction: int, steps: int) -> list[int]:
    """Section 11: the steps in the order of a pass."""
    backward = direction == 1 or layer.reverse
    return list(reversed(range(steps))) if backward else list(range(steps))


class Ranges(dict[str, tuple[float, float]]):
    """low and high of every name, 0 included."""

    def note(self, name: str, values: Sequence[float]) -> None:
        low, high = self.get(name, (0.0, 0.0))
        self[name] = min(low, *values), max(high, *values)

    def largest(self, name: str) -> float:
        low, high = self[name]
        return max(-low, high)


def parameters_noted(passes: Sequence[Sequence[PassNumbers]], found: list[list[Ranges]]) -> None:
    """A parameter's format holds its largest magnitude."""
    for both, ranges in zip(passes, found, strict=True):
        for own, each in zip(both, ranges, strict=True):
            for name, values in own.parameters.items():
                each.note(name, [float(v) for v in values])


def calibrate(
    layers: Sequence[Layer], passes: Sequence[Sequence[PassNumbers]], runs: Sequence[Sequence[Sequence[float]]]
) -> list[list[Ranges]]:
    """Section 5, on several runs [steps][inputs]."""
    found = [[Ranges() for _ in both] for both in passes]
    for frames in runs:
        x = [[float(v) for v in frame] for frame in frames]
        for layer, both, ranges in zip(layers, passes, found, strict=True):
            outputs = []
            for direction, own in enumerate(both):
                note, width = ranges[direction].note, {name: layer.width(name) for name in layer.cell.states}
                begun = beginning(layer.cell, own.initial, width)
                states = {name: each or [0.0] * width[name] for name, each in begun.items()}
                for name, each in states.items():
                    note(layer.cell.states[name], each)
                h: list[list[float]] = [[]] * len(x)
                for t in steps_of(layer, direction, len(x)):
                    values = float_step(layer, own, x[t], states)
                    for name, each in values.items():
                        if name not in states and name not in own.parameters:
                            note(name, each)
                    states = {name: values[target] for name, target in layer.cell.states.items()}
                    h[t] = states["h"]
                outputs.append(h)
            x = [[v for h in outputs for v in h[t]] for t in range(len(x))]
    parameters_noted(passes, found)
    return found


def shared(networks: Sequence[tuple[Sequence[Layer], Sequence[Sequence[PassNumbers]], list[list[Ranges]]]]) -> None:
    """Section 4, `formats: shared`: ranges and parameters' magnitudes of all passes with the same cell become one."""
    every = [
        (layer.cell, ranges)
        for layers, _, reached in networks
        for layer, both in zip(layers, reached, strict=True)
        for ranges in both
    ]
    for number, (cell, _) in enumerate(every):
        if all(cell != before for before, _ in every[:number]):
            same = [ranges for other, ranges in every if other == cell]
            for name in [each for each in same[0] if each != "x"]:
                low, high = min(each[name][0] for each in same), max(each[name][1] for each in same)
                for each in same:
                    each[name] = low, high


# -- 6, 7 weights and sums ---------------------------------------------------------------------------------------------


def factor(s: float, fraction: int, bits: int) -> tuple[int, int]:
    """Section 7: a scale as (m, k)."""
    if s == 0:
        return 0, 0
    f, e = math.frexp(s)
    m, k = even(Fraction(f) * 2**bits), bits - e - fraction
    return (2 ** (bits - 1), k - 1) if m == 2**bits else (m, k)


class FixedPass:
    """A pass in fixed point; `x_scales`: of its columns (sections 4, 11)."""

    def __init__(
        self, layer: Layer, own: PassNumbers, precision: Precision, ranges: Ranges, x_scales: Sequence[float]
    ) -> None:
        self.layer, self.own, self.precision, self.ranges = layer, own, precision, ranges
        cell, p = layer.cell, precision
        self.formats: dict[str, Q | V] = {}
        for stage in cell.stages:
            for gate in stage.gates:
                for each in gate.sums:
                    self.formats[each.name] = q_format(ranges.largest(each.name), p.tail_bits)
        for node in cell.nodes:
            largest = ranges.largest(node.name)
            if node.operation == "quantize":
                self.formats[node.name] = v_format(largest, p.vector_bits, p.tail_bits)
            else:
                feeds = node.name in cell.states.values()
                self.formats[node.name] = q_format(largest, p.state_bits if feeds else p.tail_bits)
        for state, target in cell.states.items():
            self.formats[state] = self.formats[target]
        for name in cell.parameters:
            self.formats[name] = q_format(ranges.largest(name), p.tail_bits)
        self.order = ordered(cell)
        self.weights: dict[str, list[tuple[dict[str, list[int]], float, int]]] = {}
        for stage, each in self.order:
            if stage is not None:
                self.weights[each.name] = self._weights(each, x_scales)
        self.rows: dict[str, list[tuple[dict[str, list[int]], int, int, int]]] = {}
        self.adapt({name: max(unit for _, unit, _ in rows) for name, rows in self.weights.items()})
        self.tables = {node.name: self._table(node) for node in cell.nodes if node.operation in ACTIVATIONS}

    def _scales(self, vector: str, x_scales: Sequence[float], columns: int) -> Sequence[float]:
        if vector == "x":
            return x_scales
        own = self.formats[vector]
        assert isinstance(own, V)
        return [own.scale] * columns

    def adapt(self, largest: Mapping[str, float]) -> None:
        """Of each unit its weights by vector, factor, shift and bias; `largest` unit: sets the common shift."""
        bits = self.precision.multiplier_bits
        for name, rows in self.weights.items():
            own = self.formats[name]
            assert isinstance(own, Q)
            self.rows[name] = []
            for w, unit, b in rows:
                m, k = factor(unit, own.fraction, bits)
                if self.precision.shift == "common":
                    _, k = factor(largest[name], own.fraction, bits)
                    m = even(Fraction(unit) * power(own.fraction + k))
                self.rows[name].append((w, m, k, b))

    def _weights(self, each: Any, x_scales: Sequence[float]) -> list[tuple[dict[str, list[int]], float, int]]:
        """Of each unit its weights by vector, what a unit of its accumulator stands for, and its bias."""
        p = self.precision
        folded: dict[str, list[list[float]]] = {}
        for vector in each.vectors:
            matrix = self.own.matrices[each.name, vector]
            scales = self._scales(vector, x_scales, len(matrix[0]))
            folded[vector] = [[float(w) * s for w, s in zip(row, scales, strict=True)] for row in matrix]
        names = self.layer.cell.states
        counted = [v for v in each.vectors if self.ranges.largest(names.get(v, v)) > 0] or list(each.vectors)
        units = len(folded[each.vectors[0]])
        a = [max(abs(value) for vector in counted for value in folded[vector][u]) for u in range(units)]
        if p.weight_scale == "tensor":
            a = [max(a)] * units
        own = self.formats[each.name]
        assert isinstance(own, Q)
        bias = self.own.biases.get(each.name)
        rows = []
        for u in range(units):
            unit, most = a[u] / top(p.weight_bits), top(p.weight_bits)
            w = {v: [clip(even(value / (unit or 1)), -most, most) for value in folded[v][u]] for v in each.vectors}
            real = Fraction(float(bias[u])) if bias is not None else Fraction(0)
            b = clip(even(real * power(own.fraction)), -(2**31), 2**31 - 1)
            rows.append((w, unit, b))
        return rows

    def _sum(self, name: str, values: Mapping[str, list[int]]) -> list[int]:
        own, bits, found = self.formats[name], self.precision.accumulator_bits, []
        for weights, m, k, b in self.rows[name]:
            total = sum(w * v for vector, row in weights.items() for w, v in zip(row, values[vector], strict=True))
            wrapped = total % 2**bits
            wrapped -= 2**bits * (wrapped >= 2 ** (bits - 1))
            found.append(clip(shift(wrapped * m, k) + b, own.lowest, own.highest))
        return found

    # -- 8 nodes, 9 tables ---------------------------------------------------------------------------------------------

    def _read(self, name: str | float, values: Mapping[str, list[int]]) -> tuple[list[int], int]:
        """An input's integers and their fraction."""
        if not isinstance(name, str):
            own = q_format(abs(name), self.precision.tail_bits)
            return [own.held(name)], own.fraction
        form = self.formats[name]
        if name in self.own.parameters:
            assert isinstance(form, Q)
            return [form.held(float(v)) for v in self.own.parameters[name]], form.fraction
        if isinstance(form, Q):
            return values[name], form.fraction
        m, k = factor(form.scale, form.element.fraction, self.precision.multiplier_bits)
        element = form.element
        return [clip(shift(r * m, k), element.lowest, element.highest) for r in values[name]], element.fraction

    def _node(self, node: Any, values: Mapping[str, list[int]]) -> list[int]:
        own = self.formats[node.name]
        inputs = [self._read(one, values) for one in node.inputs]
        fractions = [fraction for _, fraction in inputs]
        if node.operation in ACTIVATIONS:
            return [self._look_up(node.name, r, fractions[0]) for r in inputs[0][0]]
        if node.operation == "quantize":
            assert isinstance(own, V)
            m, k = factor(1 / own.scale, -fractions[0], self.precision.multiplier_bits)
            exact = [shift(r * m, k) for r in inputs[0][0]]
        elif node.operation in ("mean", "mean_square"):
            assert isinstance(own, Q)
            squared = 2 if node.operation == "mean_square" else 1
            every = [(r * power(-fraction)) ** squared for raw, fraction in inputs for r in raw]
            mean = sum(every, Fraction(0)) / len(every)
            exact = [clip(up(mean * power(own.fraction)), -L, L)]
        else:
            assert isinstance(own, Q)
            exact = [_exact(node.operation, one, fractions, own.fraction) for one in spread([raw for raw, _ in inputs])]
        return [clip(v, own.lowest, own.highest) for v in exact]

    def _table(self, node: Any) -> tuple[list[int], int, int]:
        """Entries, cells below 0, and the logarithm of cells for each 1."""
        p, own = self.precision, self.formats[node.name]
        names = self.layer.cell.states
        source = node.inputs[0]
        below = node.operation == "exp" and self.ranges[names.get(source, source)][1] <= 0
        cells = p.activation_entries
        z = cells if below else cells // 2
        c = int(math.log2(cells)) - int(math.log2(2 * p.activation_range))
        straight = p.activation == "linear"
        places = [i - z + (0.0 if straight else 0.5) for i in range(cells + straight)]
        return [own.held(in_float(node.operation, math.ldexp(place, -c))) for place in places], z, c

    def _look_up(self, name: str, r: int, fraction: int) -> int:
        (entries, z, c), cells = self.tables[name], self.precision.activation_entries
        p = math.floor(r * power(c + 24 - fraction)) + z * 2**24
        q = clip(p, 0, cells * 2**24)
        i = min(q // 2**24, cells - 1)
        if self.precision.activation == "table":
            return entries[i]
        return entries[i] + shift((entries[i + 1] - entries[i]) * (q - i * 2**24), 24)

    # -- 10 states, 11 layers ------------------------------------------------------------------------------------------

    def begin(self) -> dict[str, list[int]]:
        width = {name: self.layer.width(name) for name in self.layer.cell.states}
        begun = beginning(self.layer.cell, self.own.initial, width)
        return {
            name: [0] * width[name] if each is None else [self.formats[name].held(float(v)) for v in each]
            for name, each in begun.items()
        }

    def run(self, x: Sequence[list[int]], direction: int) -> tuple[list[list[int]], dict[str, list[int]]]:
        states, h = self.begin(), [[0]] * len(x)
        for t in steps_of(self.layer, direction, len(x)):
            values: dict[str, list[int]] = {"x": x[t], **states}
            for stage, each in self.order:
                values[each.name] = self._node(each, values) if stage is None else self._sum(each.name, values)
            states = {name: values[target] for name, target in self.layer.cell.states.items()}
            h[t] = states["h"]
        return h, states


def _exact(operation: str, inputs: tuple[int, ...], fractions: Sequence[int], fraction: int) -> int:
    a, b, fa, fb = inputs[0], inputs[-1], fractions[0], fractions[-1]
    g = max(fa, fb)
    first, second = a * 2 ** (g - fa), b * 2 ** (g - fb)
    match operation:
        case "add":
            return shift(first + second, g - fraction)
        case "subtract":
            return shift(first - second, g - fraction)
        case "maximum":
            return shift(max(first, second), g - fraction)
        case "minimum":
            return shift(min(first, second), g - fraction)
        case "multiply":
            return shift(a * b, fa + fb - fraction)
        case "relu":
            return shift(max(a, 0), fa - fraction)
        case "divide":
            if b == 0:
                return L * ((a > 0) - (a < 0))
            return clip(up(Fraction(a, b) * power(fb - fa + fraction)), -L, L)
        case "rsqrt":
            return L if a <= 0 else min(_up_of_root(power(2 * fraction) / (a * power(-fa))), L)
    raise AssertionError(operation)


def _up_of_root(v: Fraction) -> int:
    """up(sqrt(v)), exactly: the largest n with n - 1/2 <= sqrt(v)."""
    n = math.isqrt(math.floor(v)) + 1
    return n if (n - HALF) ** 2 <= v else n - 1


#: A network: its layers, its passes, the runs [steps][inputs] that it is calibrated on.
Calibrated = tuple[Sequence[Layer], Sequence[Sequence[PassNumbers]], Sequence[Sequence[Sequence[float]]]]


def chip(networks: Sequence[Calibrated], precision: Precision) -> list[list[list[FixedPass]]]:
    """The passes [layer][direction] of all networks on a chip."""
    measured = [(layers, passes, calibrate(layers, passes, runs)) for layers, passes, runs in networks]
    if precision.formats == "shared":
        shared(measured)
    every = []
    for layers, passes, ranges in measured:
        vector = v_format(ranges[0][0].largest("x"), precision.vector_bits, precision.tail_bits)
        scales, own = [vector.scale] * layers[0].input, []
        for layer, both, reached in zip(layers, passes, ranges, strict=True):
            own.append(
                [FixedPass(layer, one, precision, each, scales) for one, each in zip(both, reached, strict=True)]
            )
            scales = [each.formats["h"].scale for each in own[-1] for _ in range(layer.width("h"))]
        every.append(own)
    if precision.formats == "shared" and precision.shift == "common":
        alike = [each for own in every for both in own for each in both]
        for each in alike:
            same = [other for other in alike if other.layer.cell == each.layer.cell]
            each.adapt({n: max(unit for o in same for _, unit, _ in o.weights[n]) for n in each.weights})
    return every


def run(
    layers: Sequence[Layer],
    passes: Sequence[Sequence[PassNumbers]],
    precision: Precision,
    frames: Sequence[Sequence[float]],
    calibration: Sequence[Sequence[Sequence[float]]] | None = None,
    others: Sequence[Calibrated] = (),
) -> list[list[tuple[list[list[int]], dict[str, list[int]], list[list[float]]]]]:
    """Of every layer and direction: h as integers [steps][units], the last states as integers, h as real numbers.

    calibration: runs [steps][inputs] of its own; None: the frames themselves.
    others: further networks on the chip.
    """
    own = (layers, passes, [frames] if calibration is None else calibration)
    fixed = chip([own, *others], precision)[0]
    vector = v_format(fixed[0][0].ranges.largest("x"), precision.vector_bits, precision.tail_bits)
    x = [[vector.held(float(v)) for v in frame] for frame in frames]
    found = []
    for both in fixed:
        done = []
        for direction, each in enumerate(both):
            h, states = each.run(x, direction)
            form = each.formats["h"]
            assert isinstance(form, V)
            done.append((h, states, [[form.real(r) for r in line] for line in h]))
        found.append(done)
        x = [[v for h, _, _ in done for v in h[t]] for t in range(len(x))]
    return found
