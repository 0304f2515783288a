"""How alike the groups of real pruned matrices are: figures that an independent model of the contract measured."""

from __future__ import annotations

import numpy as np
import pytest

from lstmsim.files.matrices import weight_matrix
from lstmsim.model.sparse.hbp import HASHES, hashed
from lstmsim.model.sparse.made import pruned
from tests.model.sparse.grouping import grouping

#: By matrix, pruned by 80 %, in blocks of 512 x 4096: deviation and lockstep of each strategy; probes of two of them.
EXPECTED = {
    "resemblyzer:l1": (
        ((14.26, 1.24), (16.01, 1.28), (24.76, 1.55), (12.11, 1.23), (24.07, 1.53), (3.24, 1.06)),
        (113, 42),
    ),
    "g2p-en-encoder:l0": (
        ((16.94, 1.37), (16.77, 1.34), (24.05, 1.53), (11.43, 1.27), (24.05, 1.53), (3.39, 1.07)),
        (142, 70),
    ),
    "silero-vad-16k:l0": (
        ((7.81, 1.29), (8.61, 1.32), (13.76, 1.68), (6.12, 1.31), (14.51, 1.70), (1.72, 1.07)),
        (128, 50),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_groups_of_real_matrices(name: str) -> None:
    matrix = pruned(weight_matrix(name)[0], 0.8)
    alike, looks = EXPECTED[name]
    made = {strategy: grouping(hashed(matrix, 512, 4096, 32, strategy)) for strategy in HASHES}
    # the order of HASHES: linear, linear-warp, shift, sampled, identity, sort
    assert tuple((round(each.deviation, 2), round(each.lockstep, 2)) for each in made.values()) == alike
    assert tuple(round(made[strategy].probes) for strategy in ("linear", "sampled")) == looks
    # a structure of next free entries needs a few looks where probing needs a hundred; a sort of 256 or 512 rows 8 or 9
    assert all(2 <= made[strategy].finds < 7 for strategy in ("linear", "sampled"))
    blocks = {1024: 9.0, 512: 9.0, 768: (512 * 9 + 256 * 8) / 768}
    assert np.isclose(made["linear"].comparisons, blocks[matrix.rows])
