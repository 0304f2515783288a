"""Results of single products as files."""

from __future__ import annotations

import os

from lstmsim.base.errors import InputError, Mistake
from lstmsim.studies.gemm.result import GemmReport
from lstmsim.studies.shared.loading import Path
from lstmsim.studies.simulate.run import expect
from lstmsim.studies.sparse.result import SparseReport


def save_result(report: SparseReport | GemmReport, path: Path) -> None:
    """Write what was computed as a NumPy file (`.npy`); of `sddmm` one number for each entry of the matrix.

    report: of `lstmsim.run_sparse` or `lstmsim.run_gemm`.

    `InputError` for a product whose numbers were not computed.

    >>> import tempfile
    >>> import numpy as np
    >>> from lstmsim import run_gemm, save_result
    >>> path = f"{tempfile.mkdtemp()}/c.npy"
    >>> save_result(run_gemm(8, 64, 512, threads=8), path)
    >>> np.load(path).shape
    (8, 64)
    """
    from lstmsim.files.matrices import write_array

    expect(report, (SparseReport, GemmReport), "save_result", "what run_sparse or run_gemm gives")
    if report.result is None:
        raise InputError(Mistake(f"result {os.fspath(path)}", report.no_result))
    write_array(path, report.result)
