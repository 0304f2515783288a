"""What the model predicts for one thread, beside what a BLAS took.

`openblas_zen4.csv` has 16 products of RNN steps, OpenBLAS 0.3.31 through numpy on the machine of `zen4-2core.yaml`;
`this_machine.py` measures the same products on the machine at hand.

Assumptions: those of docs/multicore.md. Every product packs B as a BLAS does that is given a plain matrix (`packed`
each), and finds in the caches what the same product left there.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

import lstmsim
from lstmsim import engines
from lstmsim.machines.gemm import Cut, GemmTask, Product
from lstmsim.machines.registry import capability

__all__ = ["ABOUT", "Baselines", "Row", "power_of_two", "predicted", "recorded", "summed_up", "table"]

HERE = Path(__file__).resolve().parent
ABOUT = (
    "Cycles of one thread with warm caches, predicted and measured: OpenBLAS 0.3.31 through numpy on two cores of a "
    "virtual machine with Zen 4 (zen4-2core.yaml), least CPU time and 10th percentile of 15 to 3,000 runs. Before one "
    "row packed nothing, and with 16 elements packed in a cycle, the ratios were 0.28 to 2.75, geometric mean 0.79, "
    "rank correlation 0.944. pack_per_cycle was measured on the same machine, with rows of B that are no power of two "
    "apart, and no parameter was chosen to bring these ratios nearer to 1. Not modelled are rows a power of two apart "
    "(TLB, sets of L1), which most of these products have, and that a virtual machine may have less than all of its "
    "host's last-level cache: 4096 columns need all of it."
)


class Row(NamedTuple):
    """A product, with cycles predicted and measured.

    m, n, k: its sizes.
    predicted: cycles of the simulation.
    measured, slower: cycles of a quick run, and of a slower one that shows the spread.
    runs: how many were timed.
    """

    m: int
    n: int
    k: int
    predicted: int
    measured: int
    slower: int
    runs: int

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.predicted / self.measured


class Baselines(NamedTuple):
    """How far the predictions of some products are off.

    mean: geometric mean of predicted over measured. low, high: the least and the largest of them.
    rank: correlation of the ranks (Spearman).
    """

    mean: float
    low: float
    high: float
    rank: float


def predicted(chip: Any, m: int, n: int, k: int) -> int:
    """Cycles of a product on one thread of a chip."""
    threads = capability(chip.kind, "gemm")
    task = GemmTask(Product(m, n, k), 1, "warm", packed="each")
    work = threads.lower(chip, task, threads.division(chip, task, Cut("MN", 1, 1, 1, m, n, k)))
    return threads.figures(chip, work, engines.run(work.program, check=False)).makespan


def recorded() -> list[Row]:
    """The products of `openblas_zen4.csv`."""
    chip = lstmsim.load_chip(HERE / "zen4-2core.yaml")
    lines = (HERE / "openblas_zen4.csv").read_text(encoding="utf-8").splitlines()
    rows = []
    for each in csv.DictReader(line for line in lines if not line.startswith("#")):
        m, n, k = (int(size) for size in each["m_x_n_x_k"].split("x"))
        rows.append(
            Row(
                m, n, k, predicted(chip, m, n, k), int(each["cycles_least"]), int(each["cycles_p10"]), int(each["runs"])
            )
        )
    return rows


def summed_up(rows: Sequence[Row]) -> Baselines:
    """How far predictions are off.

    >>> summed_up([Row(1, 1, 1, *each, 30, 5) for each in ((10, 20), (40, 20), (30, 30))]).rank
    0.0
    """
    ratios = [row.ratio for row in rows]
    mean = exp(sum(map(log, ratios)) / len(ratios))
    rank = _correlation(_ranks([row.predicted for row in rows]), _ranks([row.measured for row in rows]))
    return Baselines(mean, min(ratios), max(ratios), rank)


def _ranks(values: Sequence[int]) -> list[float]:
    """The rank of each value; equal ones share the mean of theirs."""
    order = sorted(values)
    return [order.index(each) + (order.count(each) - 1) / 2 for each in values]


def _correlation(some: Sequence[float], others: Sequence[float]) -> float:
    mean = (len(some) - 1) / 2
    pairs = [(one - mean, other - mean) for one, other in zip(some, others, strict=True)]
    squares = sum(one * one for one, _ in pairs) * sum(other * other for _, other in pairs)
    return sum(one * other for one, other in pairs) / squares**0.5 if squares else float("nan")


def power_of_two(row: Row) -> bool:
    """Whether rows of B are a power of two elements apart."""
    return row.n & (row.n - 1) == 0


def table(rows: Sequence[Row], measured: str, slower: str) -> list[str]:
    """A row for each product, then how far they are off, as Markdown.

    measured, slower: which runs these columns have.
    """
    heads = ["M x N x K", "predicted", measured, slower, "runs", f"predicted / {measured}"]
    heads.append("rows of B a power of two apart")
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " ---: |" * 5 + " --- |"]
    for row in rows:
        cells = [f"{row.predicted:,}", f"{row.measured:,}", f"{row.slower:,}", f"{row.runs:,}", f"{row.ratio:.2f}"]
        cells.append("yes" if power_of_two(row) else "no")
        lines.append(f"| {row.m} x {row.n} x {row.k} | {' | '.join(cells)} |")
    of = summed_up(rows)
    reported = f"Predicted / measured: {of.low:.2f} to {of.high:.2f}, geometric mean {of.mean:.2f}; rank correlation "
    return [*lines, "", f"{reported}(Spearman) {of.rank:.3f}."]
