"""Graphs whose memory-intensive part was cut in several ways and simulated; each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import lstmsim
from lstmsim.studies.fuse.result import FusionRow

__all__ = ["BASELINES", "CHIP", "PASSES", "Way", "head", "kilobytes", "line", "ratio", "steps", "ways"]

CHIP = "v100"
#: The ways to cut a graph that a compiler would take, and the pass under both rules for splits.
BASELINES, PASSES = ("op", "xla", "tvm"), ("paper", "costed")


@dataclass(frozen=True)
class Way:
    """A way to cut a graph into kernels.

    kernels, barriers: how many kernels there are, and how often all blocks of one meet.
    read, written: bytes beyond the chip. recomputed: evaluations that were done before in the same kernel.
    cycles: from the first launch to the end.
    blocks: the most blocks of a kernel.
    """

    kernels: int
    barriers: int
    read: int
    written: int
    recomputed: int
    cycles: int
    blocks: int

    @classmethod
    def of(cls, row: FusionRow) -> Way:
        """What came of a row of a report."""
        assert row.cycles is not None
        counts, barriers = row.counts, sum(each.grid_barriers for each in row.kernels)
        most = max(each.blocks for each in row.kernels)
        return cls(len(row.kernels), barriers, counts.read, counts.written, counts.recomputed, row.cycles, most)


@cache
def _ways(name: str, sizes: tuple[tuple[str, int], ...], modes: tuple[str, ...], chip: Any) -> dict[str, Way]:
    paper, costed = PASSES
    report = lstmsim.run_fusion(
        name,
        sizes=dict(sizes),
        chip=chip,
        settings={"split_rule": paper},
        modes=(*modes, "stitch"),
        cycles=True,
        numbers=False,
    )
    made = {paper if row.name == "stitch" else row.name: Way.of(row) for row in report.rows}
    # the report has the pass under the other rule where its kernels differ
    return made | {costed: made[paper] if report.other is None else Way.of(report.other)}


def ways(name: str, sizes: Mapping[str, int], modes: tuple[str, ...] = BASELINES, chip: Any = CHIP) -> dict[str, Way]:
    """A named graph cut in each of some of `BASELINES`, and in each of `PASSES`.

    sizes: of the graph. modes: the baselines.
    """
    return _ways(name, tuple(sizes.items()), modes, chip)


@cache
def _steps(name: str, sizes: tuple[tuple[str, int], ...], rule: str) -> dict[str, Way]:
    report = lstmsim.run_fusion(
        name,
        sizes=dict(sizes),
        chip=CHIP,
        settings={"split_rule": rule},
        modes=("stitch",),
        ablate=True,
        cycles=True,
        numbers=False,
    )
    return {row.name: Way.of(row) for row in report.ablations}


def steps(name: str, sizes: Mapping[str, int], rule: str = PASSES[0]) -> dict[str, Way]:
    """The pass switched on part by part, by the name of each step; arguments as of `ways`, and the rule for splits."""
    return _steps(name, tuple(sizes.items()), rule)


def ratio(own: Way, others: Mapping[str, Way]) -> tuple[str, float]:
    """The strongest of the baselines, and how many times as fast as it a way is.

    own: the way. others: all ways of the graph, by name.
    """
    best = min(BASELINES, key=lambda each: others[each].cycles)
    return best, others[best].cycles / own.cycles


def kilobytes(count: int) -> str:
    """Bytes in words.

    >>> kilobytes(3840), kilobytes(2641920)
    ('3.8', '2,642')
    """
    return f"{count / 1000:,.1f}" if count < 100_000 else f"{count / 1000:,.0f}"


def head(*cells: str) -> list[str]:
    """The head of a table, whose first column is text."""
    return [line(*cells), "| --- |" + " ---: |" * (len(cells) - 1)]


def line(*cells: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(cells)} |"
