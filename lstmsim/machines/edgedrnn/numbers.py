"""What EdgeDRNN computes, bit by bit, and which columns it sends in each layer-step (docs/edgedrnn.md, sections 3, 4).

Everything wraps: differences and outputs at 16 bits, accumulators at 24. The entries of a layer-step decide its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record

Ints = NDArray[np.int64]

#: 1.0 in the format of activations: 16 bits, 8 of them behind the point.
ONE = 256


class Entry(NamedTuple):
    """An entry of the FIFO.

    place: its place in the stream of the layer-step: 0 the bias, then the inputs, then the recurrent elements.
    delta: the change that is sent; 0: a marker, which has no weights.
    tau: the tick in which it is pushed if nothing stands still.
    """

    place: int
    delta: int
    tau: int


@record
class Sizes:
    """The sizes of a layer: inputs that the encoder walks over (with added zeros), outputs, lanes."""

    walked: int
    hidden: int
    lanes: int

    @property
    def groups(self) -> int:
        """Groups of outputs, one for each five cycles of activation."""
        return self.hidden // self.lanes

    @property
    def beats(self) -> int:
        """Beats of a weight column."""
        return 3 * self.groups


def wrapped(values: Ints, bits: int) -> Ints:
    """The values as two's complement of `bits` bits.

    >>> int(wrapped(np.array(32768), 16))
    -32768
    """
    half = 1 << (bits - 1)
    return ((values + half) & ((1 << bits) - 1)) - half


def rounded(values: Ints, shift: int) -> Ints:
    """24-bit numbers without their last `shift` bits, to nearest even, as 16 bits."""
    half = np.where(values >> shift & 1, 1 << (shift - 1), (1 << (shift - 1)) - 1)
    return wrapped(wrapped(values + half, 24) >> shift, 16)


def sigmoid(values: Ints) -> Ints:
    """The table of the sigmoid: its results have four bits behind the point."""
    return (16 * np.floor(16 / (1 + np.exp(-values / 256)) + 0.5)).astype(np.int64)


def tanh(values: Ints) -> Ints:
    """The table of the hyperbolic tangent, as `sigmoid`."""
    return (16 * np.floor(16 * np.tanh(values / 256) + 0.5)).astype(np.int64)


def sent(values: Ints, last: Ints, threshold: int) -> tuple[Ints, NDArray[np.bool_]]:
    """The changes since values were last sent, 16 bits, and which of them are sent."""
    change = wrapped(values - last, 16)
    return change, ((change >= threshold) | (change <= -threshold)) & (change != 0)


def entries_of(bias: int, inputs: Ints, recurrent: Ints) -> tuple[Entry, ...]:
    """The entries of a layer-step from its sent changes (0: not sent), in the order of the stream.

    >>> [tuple(each) for each in entries_of(256, np.array([7, 0]), np.array([0]))]
    [(0, 256, 2), (1, 7, 3), (2, 0, 4), (3, 0, 7)]
    """
    walked = len(inputs)
    made = [Entry(0, bias, 2)] if bias else []
    for first, tick, part in ((1, 3, inputs), (1 + walked, walked + 5, recurrent)):
        places = sorted({*np.flatnonzero(part).tolist(), len(part) - 1})
        made += [Entry(first + each, int(part[each]), tick + each) for each in places]
    return tuple(made)


#: Adds the weights of sent columns to four vectors of sums [4, hidden]: entries, their columns, the sums, the sizes.
Adder = Callable[[Sequence[Entry], Ints, Ints, Sizes], Ints]


def added(entries: Sequence[Entry], columns: Ints, sums: Ints, sizes: Sizes) -> Ints:
    """The sums (reset, update, candidate of h, candidate of x) with the weights of the sent columns.

    columns: weights of all columns of the layer, shape (columns, 3 * hidden).
    """
    every = [each for each in entries if each.delta]
    places = np.array([each.place for each in every], dtype=np.int64)
    changes = np.array([each.delta for each in every], dtype=np.int64)
    recurrent = places > sizes.walked
    result = sums.copy()
    for rows, which in ((3, ~recurrent), (2, recurrent)):
        total = (changes[which] @ columns[places[which]]).reshape(3, sizes.hidden)
        result[:2] += total[:2]
        result[rows] += total[2]
    return wrapped(result, 24)


class Layer:
    """A layer under way: its weights, sums, last-sent values and last outputs, all 0 at first but the weights."""

    def __init__(self, sizes: Sizes, columns: Ints) -> None:
        self.sizes, self.columns = sizes, columns
        self.sums = np.zeros((4, sizes.hidden), np.int64)
        self.sent_x, self.sent_h = np.zeros(sizes.walked, np.int64), np.zeros(sizes.hidden, np.int64)
        self.h = np.zeros(sizes.hidden, np.int64)
        self.bias = 0

    def step(self, x: Ints, thresholds: tuple[int, int], add: Adder = added) -> tuple[Entry, ...]:
        """Compute a time step: `h` is then the new output. Returns the entries of the FIFO.

        x: values of the inputs, with the added zeros.
        thresholds: of inputs and of recurrent values, in units of 2^-8; negative: every change is sent.
        add: adds weights; another one than `added` where sums depend on the cycle (one group of outputs).
        """
        bias, of_bias = sent(np.array([ONE]), np.array([self.bias]), thresholds[0])
        self.bias = ONE
        changes = []
        for values, last, threshold in ((x, self.sent_x, thresholds[0]), (self.h, self.sent_h, thresholds[1])):
            change, which = sent(values, last, threshold)
            last[which] = values[which]
            changes.append(np.where(which, change, 0))
        entries = entries_of(int(bias[0]) if of_bias[0] else 0, *changes)
        self.sums = add(entries, self.columns, self.sums, self.sizes)
        self.h = self._outputs()
        return entries

    def _outputs(self) -> Ints:
        reset, update, candidate_h, candidate_x = self.sums
        r, u = sigmoid(rounded(reset, 7)), sigmoid(rounded(update, 7))
        a = wrapped(r * rounded(candidate_h, 7) + 2 * candidate_x, 24)
        c = tanh(rounded(a, 8))
        kept = rounded(wrapped(u * self.h, 24), 8)
        return wrapped(kept + rounded(wrapped((ONE - u) * c, 24), 8), 16)


def walked_over(inputs: int, lanes: int) -> int:
    """Elements of the input that the encoder walks over: the inputs, and zeros up to a whole beat.

    >>> walked_over(40, 8), walked_over(12, 8)
    (40, 16)
    """
    return inputs + inputs % lanes
