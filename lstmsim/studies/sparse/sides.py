"""The sides of a layer that a sparse product stands for: which operand is sparse, and which way round it is read."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.model.sparse.csr import Csr, transposed
from lstmsim.model.sparse.products import Values

__all__ = ["LEFT", "SIDES", "as_asked", "check_side", "walked"]

#: The side that needs no word.
LEFT = "left"
#: Of each kernel its sides, with what each one is. W is MATRIX.
SIDES: Mapping[str, Mapping[str, str]] = {
    "spmv": {
        LEFT: "y = W x: forward",
        "transposed": "y = W^T x: backward; the CSC of W is read as the CSR of W^T, nothing is copied",
    },
    "spmm": {
        LEFT: "C = W B: forward, W X",
        "transposed": "C = W^T B: backward, W^T dY; the CSC of W is read as the CSR of W^T, nothing is copied",
        "right": "C = A W: sparse inputs, as C^T = W^T A^T; the CSC of W, and A and C lie in memory by columns",
    },
    "sddmm": {LEFT: "D = (A B) o W"},
}


def check_side(kernel: str, side: str) -> None:
    """Raise `InputError` unless a kernel has the side.

    >>> check_side("spmv", "right")
    Traceback (most recent call last):
    lstmsim.InputError: side: spmv has left or transposed, got 'right'
    """
    known = SIDES[kernel]
    if side not in known:
        text = f"{kernel} has {listed(known)}, got {show(side)}{nearest(str(side), known)}"
        raise InputError(Mistake("side", text))


def walked(matrix: Csr, side: str) -> Csr:
    """The matrix whose rows the kernel walks.

    matrix: W.
    side: a key of `SIDES` of some kernel.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> walked(csr_of_dense([[1, 2, 0]]), "right").rows
    3
    """
    return matrix if side == LEFT else transposed(matrix)


def as_asked(result: Values | None, side: str) -> Values | None:
    """The result of a product from what the kernel stored, which for `right` is the result by columns."""
    return result.T if result is not None and side == "right" else result
