"""Matrices written as files that `read_matrix` reads."""

from __future__ import annotations

import os

from lstmsim.base.files import whole_file
from lstmsim.model.sparse.csr import Csr


def write_matrix(path: str | os.PathLike[str], matrix: Csr) -> None:
    """Write a matrix, whole or not at all."""
    name = os.fspath(path)
    with whole_file(name, "wz" if name.lower().endswith(".gz") else "w") as file:
        if name.lower().removesuffix(".gz").endswith(".smtx"):
            file.write(f"{matrix.rows}, {matrix.columns}, {matrix.entries}\n")
            for each in (matrix.row_ptr, matrix.cols):
                file.write(" ".join(map(str, each.tolist())) + "\n")
            return
        file.write("%%MatrixMarket matrix coordinate real general\n")
        file.write(f"{matrix.rows} {matrix.columns} {matrix.entries}\n")
        rows, columns, values = matrix.entry_rows.tolist(), matrix.cols.tolist(), matrix.values.tolist()
        file.writelines(f"{r + 1} {c + 1} {v!r}\n" for r, c, v in zip(rows, columns, values, strict=True))
