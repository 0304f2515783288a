"""The matrix of a sparse product, and the side of a layer that the product stands for."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show
from lstmsim.model.sparse.csr import Csr, csr_of_dense, transposed
from lstmsim.model.sparse.made import PRUNINGS, Values, pruned

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


def matrix_of(
    source: object, prune: float | None, prune_by: str, banks: int, block: int, seed: int | None
) -> tuple[Csr, str]:
    """The matrix, and a sentence on where it is from."""
    from lstmsim.files.matrices import is_matrix_file, read_matrix, weight_matrix

    if isinstance(source, Csr):
        return _unpruned(source, "a matrix in memory", prune)
    if not isinstance(source, str | os.PathLike):
        text = f"must be a file, a name like 'resemblyzer:l1' or a Csr, got {show(source)}"
        raise InputError(Mistake("matrix", text))
    name = os.fspath(source)
    if is_matrix_file(name):
        read = read_matrix(name, seed)
        return _unpruned(read.matrix, f"{name}: {read.note}", prune)
    weights, about = weight_matrix(name)
    if prune is None:
        return csr_of_dense(weights), f"{about}; not pruned"
    matrix = pruned(weights, prune, prune_by, banks=banks, block=block)
    parts = {"bank": f", {banks} banks a row", "block": f", {block} x {block}"}.get(prune_by, "")
    return matrix, f"{about}; {100 * prune:g} % of the weights pruned by {prune_by} ({PRUNINGS[prune_by]}{parts})"


def _unpruned(matrix: Csr, about: str, prune: float | None) -> tuple[Csr, str]:
    if prune is not None:
        text = "is for weights of models like 'resemblyzer:l1'; this matrix is sparse already"
        raise InputError(Mistake("prune", text))
    return matrix, about
