"""The matrix of a sparse product, as users name it."""

from __future__ import annotations

import os

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.model.sparse.csr import Csr, csr_of_dense
from lstmsim.model.sparse.pruning import PRUNINGS, pruned

__all__ = ["matrix_of"]


def matrix_of(
    source: object, prune: float | None, prune_by: str, banks: int, block: int, seed: int | None
) -> tuple[Csr, str]:
    """The matrix, and a sentence on where it is from.

    source: a file, the name of a model's weights, or a matrix.
    prune: which fraction of a model's weights goes; None: none.
    prune_by, banks, block: how, as in `lstmsim.model.sparse.pruning.pruned`.
    seed: of the values of a file that has none; None: each is 1.
    """
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
