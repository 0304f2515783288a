"""The worked examples B and C of docs/multicore.md: runs and counts of single steps, told by hand."""

from __future__ import annotations

import numpy as np

from lstmsim.machines.gemm import Cut, Division, Product
from lstmsim.machines.multicore.lines.caches import open_caches
from lstmsim.machines.multicore.lines.space import COLUMNS, Runs, Space, operands, runs_of
from lstmsim.machines.multicore.steps import Step
from tests.machines.multicore.chips import TOY


def reported(row: np.ndarray) -> dict[str, int]:
    """Counts of a step by name; memory lines of all memories last."""
    return dict(zip((*COLUMNS, "memory"), [*row[: len(COLUMNS)].tolist(), int(row[len(COLUMNS) :].sum())], strict=True))


def of(runs: Runs) -> list[tuple[int, int, bool]]:
    return list(zip(runs.address.tolist(), runs.size.tolist(), runs.write.tolist(), strict=True))


def test_example_b() -> None:
    division = Division(Product(2, 4, 16), Cut("MN", 1, 1, 1, 2, 4, 16))
    space = Space(TOY)
    places = operands(space, TOY, division)
    step = Step(0, 0, (0, 2), (0, 4), (0, 16), packs_b=True)
    runs = runs_of(TOY, division, places, step)
    a, b, c, packed_a, packed_b = (4096 * page for page in range(5))
    assert of(runs) == [
        *((b + 16 * k, 16, False) for k in range(16)),
        (packed_b, 256, True),
        *((a + 64 * row, 64, False) for row in range(2)),
        (packed_a, 128, True),
        (packed_b, 256, False),
        (packed_a, 128, False),
        *((c + 16 * row, 16, True) for row in range(2)),
    ]
    counts = reported(open_caches(TOY, space.arrays).drive([0], [runs])[0])
    assert (counts["l1"], counts["l1"] - counts["l1_hit"], counts["memory_read"], counts["memory"]) == (32, 13, 7, 7)
    assert (counts["l1_l2"], counts["l2_llc"], counts["transfers"], counts["memory_write"]) == (13, 13, 0, 0)


def test_example_c() -> None:
    division = Division(Product(2, 4, 32), Cut("MK", 1, 1, 2, 2, 4, 16))
    space = Space(TOY)
    places = operands(space, TOY, division)
    steps = [Step(t, 0, (0, 2), (0, 4), (16 * t, 16 * t + 16), packs_b=True) for t in (0, 1)]
    first, second = map(
        reported, open_caches(TOY, space.arrays).drive([0, 1], [runs_of(TOY, division, places, each) for each in steps])
    )
    assert (first["memory"], first["transfers"]) == (7, 0)
    assert (second["memory"], second["transfers"], second["llc_hit"]) == (6, 1, 1)
