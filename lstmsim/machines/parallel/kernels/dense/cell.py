"""The kernels of recurrent cells: what follows the product of a step, one element of the state a lane.

The arithmetic is counted as docs/sparse_kernels.md does it for the LSTM: a bias is one `fma` for each sum, a function
one `sfu`, a multiplication alone or with the addition that follows it one `fma`; what may be issued together is one
instruction with a count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernel import KernelShape
from lstmsim.machines.parallel.kernels.dense.sums import Elements
from lstmsim.machines.parallel.writing.streams import Result, Warps

__all__ = ["CellPhase", "Gru", "GruNew", "GruReset", "Lstm", "Rnn", "RnnRelu"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SHAPE = KernelShape("cell", 4, 32)


@dataclass(frozen=True)
class CellPhase(Elements):
    """A phase with one element (unit, sequence) of a state a lane: unit * batch + sequence.

    batch: sequences.
    """

    batch: int

    def sums(
        self, warps: Warps, at: tuple[Ints, Mask], a: Result, gates: tuple[str, str], which: range
    ) -> list[Result]:
        """Load the sums of some gates, then their biases.

        at: elements of the lanes, and which of these there are.
        a: what the loads wait for.
        gates: arrays of sums and biases, gate after gate.
        which: the gates.
        """
        element, on = at
        hidden = self.elements // self.batch
        sums = [warps.ldg(gates[0], gate * self.elements + element, on, [a]) for gate in which]
        unit = element // self.batch
        return sums + [warps.ldg(gates[1], gate * hidden + unit, on, [a]) for gate in which]


@dataclass(frozen=True)
class Lstm(CellPhase):
    """c' = f c + i g, h = o tanh(c'), where i, f, o are sigmoids and g a tanh of sums with biases."""

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        a = warps.alu(4)
        loads = self.sums(warps, (element, on), a, ("gates", "bias"), range(4))
        c = warps.ldg("c", element, on, [a])
        gates = warps.sfu(4, [warps.fma(4, loads)])
        new = warps.fma(2, [gates, c])
        stores = [warps.stg("c", element, on, [new])]
        h = warps.fma(1, [warps.sfu(1, [new])])
        return [*stores, warps.stg("h", element, on, [h])]


@dataclass(frozen=True)
class Gru(CellPhase):
    """n = tanh(nx + r nh), h' = n + z (h - n), where r, z are sigmoids of sums; all four sums have biases."""

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        a = warps.alu(4)
        loads = self.sums(warps, (element, on), a, ("gates", "bias"), range(4))
        h = warps.ldg("h", element, on, [a])
        sums = warps.fma(4, loads)
        inner = warps.fma(1, [warps.sfu(2, [sums])])
        new = warps.fma(2, [warps.sfu(1, [inner]), h])
        return [warps.stg("h", element, on, [new])]


@dataclass(frozen=True)
class GruReset(CellPhase):
    """r h, where r is a sigmoid of its sum: what the second product of a GRU reads that resets before the product."""

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        a = warps.alu(4)
        loads = self.sums(warps, (element, on), a, ("gates", "bias"), range(1))
        h = warps.ldg("h", element, on, [a])
        r = warps.sfu(1, [warps.fma(1, loads)])
        return [warps.stg("rh", element, on, [warps.fma(1, [r, h])])]


@dataclass(frozen=True)
class GruNew(CellPhase):
    """h' = n + z (h - n), where z is a sigmoid of the first product's sum and n a tanh of the second's."""

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        a = warps.alu(4)
        z = self.sums(warps, (element, on), a, ("gates", "bias"), range(1, 2))
        n = self.sums(warps, (element, on), a, ("new", "bias_new"), range(1))
        h = warps.ldg("h", element, on, [a])
        both = warps.sfu(2, [warps.fma(2, z + n)])
        return [warps.stg("h", element, on, [warps.fma(2, [both, h])])]


@dataclass(frozen=True)
class Rnn(CellPhase):
    """h' = tanh of the sum with its bias."""

    def text(self, warps: Warps, element: Ints, on: Mask) -> list[Result]:
        """What the warps do; arguments as of `Elements.text`."""
        a = warps.alu(4)
        total = warps.fma(1, self.sums(warps, (element, on), a, ("gates", "bias"), range(1)))
        return [warps.stg("h", element, on, [self.function(warps, total)])]

    def function(self, warps: Warps, total: Result) -> Result:
        """The cell's function of a sum."""
        return warps.sfu(1, [total])


@dataclass(frozen=True)
class RnnRelu(Rnn):
    """h' = the sum with its bias, or 0 if that is negative: a selection, no function."""

    def function(self, warps: Warps, total: Result) -> Result:
        """The cell's function of a sum."""
        return warps.alu(1, [total])
