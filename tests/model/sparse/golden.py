"""The golden cases of docs/parallel_device.md and docs/sparse_kernels.md, and their matrices."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lstmsim.model.sparse.csr import Csr, csr_of_coo
from tools.drawn_matrices import drawn_matrix

Case = dict[str, Any]


@cache
def all_cases() -> tuple[Case, ...]:
    text = (Path(__file__).parents[2] / "data" / "contract_cases_sparse.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))


def cases(*kinds: str) -> list[Case]:
    """The cases of these kinds."""
    return [each for each in all_cases() if each["kind"] in kinds]


def matrix_of(case: Case, key: str = "A") -> Csr:
    """The sparse matrix of a case."""
    given = case[key]
    if "coo" in given:
        rows, columns, values = np.array(given["coo"], dtype=np.int64).reshape(-1, 3).T
        return csr_of_coo(given["rows"], given["cols"], rows, columns, values)
    return drawn_matrix(given["rows"], given["cols"], given["permille"], given["seed"], given["skew"])
