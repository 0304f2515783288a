"""One time step of a cell on a row-wise NPU, as chains of its vector pipe.

A chain begins with a matrix-vector product or with a vector that is read from the register file. It passes the two
multi-function units, each with at most an addition and a multiplication by another vector. Then its result is written
back. The chains of `dense`, `rnn`, `gru-lbr0` and `lstm` and their order are from the Intel NPU's compiler
(intel/fpga-npu, compiler/npu_layers.py). The compiler has no `gru`, whose reset gate comes after the product: its
chains are an assumption. Biases and activations are part of the multi-function units' work and take no time of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lstmsim.model.model import Layer

__all__ = ["PROGRAMS", "CellProgram", "Chain", "Load", "Product"]


@dataclass(frozen=True)
class Product:
    """A matrix of `rows` x `columns` times the vector named `vector`."""

    vector: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Chain:
    """One chain of elements that go through the vector pipe.

    label: name for people.
    size: how many elements.
    product: the product that gives the elements; None if they are read.
    read: vector of the register file that gives the elements, if there is no product.
    first, second: vectors that the first and the second multi-function unit combine the elements with.
    writes: names of the result; empty if it only leaves the machine.
    matrix: whether the result is also written to the matrix-vector unit.
    output: whether the result leaves the machine.
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
    """A vector that comes from outside.

    writes: its name.
    size: how many elements.
    matrix: whether it is for the matrix-vector unit; else it is for the register file.
    frame: whether it is an input frame.
    ahead: how many steps the frame is after the step that is worked on.
    """

    writes: str
    size: int
    matrix: bool = True
    frame: bool = True
    ahead: int = 0


@dataclass(frozen=True)
class CellProgram:
    """The chains of a step. Vectors are named within the layer: `x`, `h`, and the names that chains write.

    x_part: chains that need x alone; the next x is loaded after them.
    h_part: chains that need results of the step before.
    constants: vectors that are loaded once.
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
