"""What a row-wise NPU does in one time step of a cell, as chains of its vector pipe.

A chain begins with a matrix-vector product or with a vector read from the register file, passes the two multi-function
units, each with at most an addition and a multiplication by another vector, and is written back. The chains of `dense`,
`rnn`, `gru-lbr0` and `lstm` and their order are those of the Intel NPU's compiler (intel/fpga-npu,
compiler/npu_layers.py); those of `gru`, whose reset gate comes after the product, are ours, because the compiler has
none. Biases and activations ride along in the multi-function units and take no time of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lstmsim.workload.model import Layer

__all__ = ["PROGRAMS", "CellProgram", "Chain", "Load", "Product"]


@dataclass(frozen=True)
class Product:
    """A matrix of `rows` x `columns` times the vector of that name."""

    vector: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Chain:
    """One chain: `size` elements go through the vector pipe.

    `product`, or else `read`, a vector of the register file, is where they come from; `first` and `second` are the
    vectors that the multi-function units combine them with. The result gets the names `writes`; `matrix`: it is written
    to the matrix-vector unit, too; `output`: it leaves the machine; `output` alone: it goes nowhere else.
    """

    label: str
    size: int
    product: Product | None = None
    read: str = ""
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    matrix: bool = False
    output: bool = False


@dataclass(frozen=True)
class Load:
    """A vector of `size` elements from outside; `matrix`: for the matrix-vector unit, else for the register file.

    `frame`: it is an input frame, `ahead` steps after the one that is worked on.
    """

    writes: str
    size: int
    matrix: bool = True
    frame: bool = True
    ahead: int = 0


@dataclass(frozen=True)
class CellProgram:
    """The chains of a step: those that need x alone, then those that need the step before; and constants to load once.

    Vectors are named within the layer: `x`, `h`, and what the chains write. The next x is loaded between the two parts.
    """

    x_part: tuple[Chain, ...]
    h_part: tuple[Chain, ...]
    constants: tuple[str, ...] = ()


def _products(layer: Layer, gates: str) -> tuple[Chain, ...]:
    """The product of each gate's input matrix, kept until the gate's recurrent product comes."""
    n, size = layer.input, layer.hidden
    return tuple(Chain(f"x {g}", size, Product("x", size, n), writes=(f"x{g}",)) for g in gates)


def _dense(layer: Layer) -> CellProgram:
    product = Product("x", layer.hidden, layer.input)
    return CellProgram((Chain("h", layer.hidden, product, writes=("h",), matrix=True),), ())


def _rnn(layer: Layer) -> CellProgram:
    n = layer.hidden
    h = Chain("h", n, Product("h", n, n), first=("xh",), writes=("h",), matrix=True)
    return CellProgram(_products(layer, "h"), (h,))


def _gru(layer: Layer) -> CellProgram:
    """The reset gate multiplies the product, n = tanh(x n + r * (W h)): one vector less for the matrix-vector unit."""
    n = layer.hidden
    w = Product("h", n, n)
    return CellProgram(
        _products(layer, "zrn"),
        (
            Chain("z", n, w, first=("xz",), writes=("z",)),
            Chain("(1-z)h", n, read="ones", first=("z",), second=("h",), writes=("zh",)),
            Chain("r", n, w, first=("xr",), writes=("r",)),
            Chain("n", n, w, first=("r",), second=("xn",), writes=("n",)),
            Chain("h", n, read="n", first=("z",), second=("zh",), writes=("h",), matrix=True),
        ),
        constants=("ones",),
    )


def _gru_lbr0(layer: Layer) -> CellProgram:
    n = layer.hidden
    return CellProgram(
        _products(layer, "zrc"),
        (
            Chain("z", n, Product("h", n, n), first=("xz",), writes=("z",)),
            Chain("(1-z)h", n, read="ones", first=("z",), second=("h",), writes=("zh",)),
            Chain("rh", n, Product("h", n, n), first=("xr",), second=("h",), writes=("rh",), matrix=True),
            Chain("c", n, Product("rh", n, n), first=("xc",), writes=("c",)),
            Chain("h", n, read="c", first=("z",), second=("zh",), writes=("h",), matrix=True),
        ),
        constants=("ones",),
    )


def _lstm(layer: Layer) -> CellProgram:
    n = layer.hidden
    w = Product("h", n, n)
    return CellProgram(
        _products(layer, "fcio"),
        (
            Chain("f", n, w, first=("xf",), writes=("f",)),
            Chain("i", n, w, first=("xi",), writes=("i",)),
            Chain("o", n, w, first=("xo",), writes=("o",)),
            Chain("i g", n, w, first=("xc",), second=("i",), writes=("ig",)),
            Chain("c", n, read="c", first=("f",), second=("ig",), writes=("c",)),
            Chain("h", n, read="c", first=("o",), writes=("h",), matrix=True),
        ),
    )


#: The program of each built-in cell that a row-wise NPU can run, by its name.
PROGRAMS: Mapping[str, Callable[[Layer], CellProgram]] = {
    "dense": _dense,
    "rnn": _rnn,
    "gru": _gru,
    "gru-lbr0": _gru_lbr0,
    "lstm": _lstm,
}
