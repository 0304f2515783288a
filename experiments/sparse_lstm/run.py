"""From which sparsity on is a sparse LSTM faster than a dense one on a GPU-like device, and what do its tricks buy?

The LSTM with 8192 inputs, 2048 units and batch 128, for which Gale et al. (Sparse GPU Kernels for Deep Learning, SC
2020) report that sparse wins from 71 % on a V100, and the recurrent matrices of Resemblyzer, g2p-en and Silero VAD.
With balance and alignment of rows against the strong baseline (rows as they are, blocks on demand), and hash-based 2-D
blocks for SpMV (HBP) against CSR with one and with several lanes a row.

Run `python experiments/sparse_lstm/run.py`; `--write` refreshes expected.md beside it; pictures.py draws.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from experiments.holds import as_it_is, held_paragraph
from experiments.sparse_lstm.hashes import ABOUT, hash_rows, qualities
from experiments.sparse_lstm.hashes import verdict as hash_verdict
from experiments.sparse_lstm.study import (
    HASHES,
    INPUTS,
    LANES,
    ORDERS,
    REAL,
    SPARSITIES,
    UNITS,
    crossover,
    dense_spans,
    power_law,
    ran,
    real,
    searched,
    sixteen,
    sixteenth,
    sparse_span,
    tiny,
    uniform,
)
from lstmsim.model.sparse.csr import Csr
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary
from lstmsim.studies.sparse.result import Search, SparseReport, regret
from tests.model.sparse.grouping import Grouping

#: What the paper reports for the real device.
PUBLISHED = 0.71
#: Where a simulated crossover is believed.
BAND = (0.60, 0.75)
#: Half dealt beforehand, half on demand; as many thread blocks as fit at once, each with a list of tiles.
_HYBRID, _LISTS = ("sorted", "hybrid"), ("sorted", "lists")
#: The fastest settings.
_CSR, _HBP = "CSR, best setting", "HBP, best setting"


@dataclass(frozen=True)
class Blocked:
    """HBP and its baselines on a matrix.

    rows: spans and sectors from DRAM, by way.
    csr, hbp: the settings of each that were searched.
    """

    rows: dict[str, tuple[int, int]]
    csr: Search
    hbp: Search


@dataclass(frozen=True)
class Results:
    """The whole study.

    dense: cycles of the dense product, by inner size and tile.
    sparse: cycles of the sparse product, by inner size and sparsity.
    layers: of real matrices, by name, chip and sparsity: cycles of sparse and of dense.
    balance: spans and imbalance by matrix, slots and order.
    alignment: span, requests and sectors by matrix and alignment.
    hbp: HBP and its baselines by matrix.
    hashes: how alike rows of a group are, by matrix and hash.
    """

    dense: dict[int, dict[str, float]]
    sparse: dict[int, dict[float, float]]
    layers: dict[tuple[str, str], dict[float, tuple[int, int]]]
    balance: dict[tuple[str, int], dict[tuple[str, str], tuple[int, float]]]
    alignment: dict[str, dict[str, tuple[int, int, int]]]
    hbp: dict[str, Blocked]
    hashes: dict[str, dict[str, Grouping]]


def results(small: bool = False) -> Results:
    """Everything; `small`: one inner size, one matrix, the edge device, no HBP on large matrices."""
    inner = (UNITS,) if small else (UNITS, INPUTS)
    names = ("Silero",) if small else tuple(REAL)
    return Results(
        {size: dense_spans(size) for size in inner},
        {size: {each: sparse_span(size, each) for each in SPARSITIES} for size in inner},
        {(name, chip): layer(name, chip) for name in names for chip in (("edge",) if small else ("v100", "edge"))},
        {(name, slots): balanced(name, slots) for name in names for slots in (4, 32)},
        {name: aligned(name) for name in names},
        blocked(small),
        qualities(small),
    )


def layer(name: str, chip: str, columns: int = 32) -> dict[float, tuple[int, int]]:
    """Cycles of a recurrent matrix times a batch, sparse and dense."""
    rows = {}
    dense = ran(real(name, 0.5), "spmm", chip, "dense", columns).figures.span
    for sparsity in (0.5, 0.7, 0.8, 0.9, 0.95):
        rows[sparsity] = ran(real(name, sparsity), "spmm", chip, "csr", columns, order="sorted").figures.span, dense
    return rows


def balanced(name: str, slots: int) -> dict[tuple[str, str], tuple[int, float]]:
    """Spans and imbalance at 90 % by order and dispatch."""
    asked: dict[tuple[str, str], dict[str, Any]] = {each: {"dispatch": each[1]} for each in (*ORDERS, _HYBRID)}
    asked[_LISTS] = {"blocks": 16 * slots}
    rows = {}
    for (order, dispatch), options in asked.items():
        report = ran(real(name, 0.9), "spmm", sixteen(slots), "csr", 32, order=order, **options)
        rows[order, dispatch] = report.figures.span, report.figures.imbalance
    return rows


def aligned(name: str) -> dict[str, tuple[int, int, int]]:
    """Span, requests and sectors of columns and values at 90 %, by alignment."""
    rows = {}
    for align in ("none", "reverse", "pad"):
        figures = ran(real(name, 0.9), "spmm", sixteen(), "csr", 32, order="sorted", align=align).figures
        loads = [each for each in figures.loads if each.array in ("cols", "values")]
        requests = sum(each.requests for each in loads)
        rows[align] = figures.span, requests, sum(each.sectors["L1"] + each.sectors["L2"] for each in loads)
    return rows


def blocked(small: bool) -> dict[str, Blocked]:
    """HBP and its baselines."""
    cases: dict[str, tuple[Csr, object]] = {"Silero, 80 %": (real("Silero", 0.8), "edge")}
    if not small:
        cases["Resemblyzer l1, 80 %"] = real("Resemblyzer l1", 0.8), "edge"
        cases["uniform, 4096 x 16384"] = uniform(), tiny()
        cases["power law, 4096 x 4096"] = power_law(), tiny()
    rows = {}
    for name, (matrix, chip) in cases.items():
        row = {f"CSR, {lanes} lane{'s' * (lanes > 1)}": _spmv(matrix, chip, f"csr-{lanes}") for lanes in LANES}
        csr, hbp = (searched(matrix, chip, method) for method in ("csr", "hbp"))
        row[_CSR] = _told(csr)
        for each in HASHES:
            row["2-D blocks, no hash" if each == "identity" else f"HBP, {each}"] = _spmv(matrix, chip, "hbp", hash=each)
        row[_HBP] = _told(hbp)
        assert csr.search is not None
        assert hbp.search is not None
        rows[name] = Blocked(row, csr.search, hbp.search)
    return rows


def _spmv(matrix: Csr, chip: object, method: str, **options: Any) -> tuple[int, int]:
    return _told(ran(matrix, "spmv", chip, method, **options))


def _told(report: SparseReport) -> tuple[int, int]:
    return report.figures.span, int(report.figures.counts["dram_sectors"])


def ratios(outcome: Results, inner: int) -> dict[float, float]:
    """Cycles of sparse over those of the fastest dense tile, by sparsity."""
    best = min(outcome.dense[inner].values())
    return {sparsity: span / best for sparsity, span in outcome.sparse[inner].items()}


def grid(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    return [
        *(f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def large_lstm(outcome: Results) -> list[str]:
    """The large LSTM: dense tiles, and sparse over dense."""
    tiles = list(next(iter(outcome.dense.values())))
    lines = grid(
        ["dense, cycles", *tiles],
        [[f"K = {inner}", *(f"{row[tile]:,.0f}" for tile in tiles)] for inner, row in outcome.dense.items()],
    )
    rows = [[f"K = {inner}", *(f"{each:.3f}" for each in ratios(outcome, inner).values())] for inner in outcome.sparse]
    return [*lines, "", *grid(["sparse over dense", *(f"{100 * each:g} %" for each in SPARSITIES)], rows)]


def verdict(outcome: Results) -> str:
    """Where sparse begins to win, and what was published."""
    points = [crossover(ratios(outcome, inner)) for inner in outcome.sparse]
    shown = " and ".join("never" if each is None else f"{100 * each:.1f} %" for each in points)
    return (
        f"Simulated, sparse wins from {shown} of zeros (K = {' and '.join(map(str, outcome.sparse))}); Gale et al. "
        f"measured {100 * PUBLISHED:.0f} % on a real V100. Nothing was fitted to that figure. Believed is a band of "
        f"{100 * BAND[0]:.0f} to {100 * BAND[1]:.0f} %."
    )


def layer_table(outcome: Results) -> list[str]:
    """Real layers: sparse over dense."""
    some = next(iter(outcome.layers.values()))
    rows = []
    for (name, chip), row in outcome.layers.items():
        at = crossover({sparsity: sparse / dense for sparsity, (sparse, dense) in row.items()})
        shares = (f"{sparse / dense:.2f}" for sparse, dense in row.values())
        rows.append([f"{name}, {chip}", *shares, _from(at, min(row))])
    return grid(["sparse over dense, 32 columns", *(f"{100 * each:g} %" for each in some), "wins from"], rows)


def _from(at: float | None, lowest: float) -> str:
    if at is None:
        return "never"
    return f"{100 * at:.0f} %" if at > lowest else f"{100 * at:.0f} % or less"


def balance_table(outcome: Results) -> list[str]:
    """Order and dispatch."""
    words = [f"{order}, {dispatch}" for order, dispatch in next(iter(outcome.balance.values()))]
    rows = [
        [f"{name}, {slots} blocks an SM", *(f"{span:,} ({imbalance:.2f})" for span, imbalance in row.values())]
        for (name, slots), row in outcome.balance.items()
    ]
    return grid(["90 %, 16 SMs: cycles (imbalance)", *words], rows)


def alignment_table(outcome: Results) -> list[str]:
    """Alignment of vector loads."""
    rows = [
        [name, *(f"{span:,}; {requests:,}; {sectors:,}" for span, requests, sectors in row.values())]
        for name, row in outcome.alignment.items()
    ]
    return grid(
        ["cycles; requests; sectors of columns and values", "scalar loads", "reverse offset", "padded copy"], rows
    )


def hbp_table(outcome: Results) -> list[str]:
    """HBP, its hashes and the baselines."""
    cases = [each.rows for each in outcome.hbp.values()]
    rows = [[way, *(f"{row[way][0]:,} ({row[way][1]:,})" for row in cases)] for way in cases[0]]
    return grid(["cycles (sectors from DRAM)", *outcome.hbp], rows)


def search_table(outcome: Results) -> list[str]:
    """The fastest settings of HBP, and what the rule loses."""
    rows = []
    for name, case in outcome.hbp.items():
        best, search = case.hbp.best.options, case.hbp
        setting = ", ".join(f"{key} {best[key]}" for key in (*search.settings.together, *search.settings.alone))
        first = ", ".join(f"{key} {search.first.options[key]}" for key in search.by_rule)
        lost = [f"{100 * regret(search.first, each):.1f} %" for each in (search.rule_best, search.best)]
        rows.append([name, str(len(search.tried)), setting, first, *lost])
    head = ["HBP", "settings", "fastest", "by rule", "regret of the rule", "of all that is not searched"]
    return grid(head, rows)


def hash_table(outcome: Results) -> list[str]:
    """How alike rows of a group are, and what was looked at for that."""
    return grid(*hash_rows(outcome.hashes))


def hbp_verdict(outcome: Results) -> str:
    """Who wins against whom."""
    parts = []
    for name, case in outcome.hbp.items():
        hbp, one, best = (case.rows[way][0] for way in (_HBP, "CSR, 1 lane", _CSR))
        against = "faster" if hbp < one else "slower"
        beside = f"takes {hbp / best:.1f} times as long as" if hbp >= best else f"is {best / hbp:.1f} times faster than"
        parts.append(
            f"{name}: HBP is {max(one, hbp) / min(one, hbp):.1f} times {against} than CSR with one lane a row, and "
            f"{beside} CSR in its best setting"
        )
    return (
        f"Best settings against each other: {'; '.join(parts)}. The baseline decides: published speed-ups are against "
        "one lane a row."
    )


def hbp_searched(outcome: Results) -> str:
    """Which settings were searched."""
    case = next(reversed(outcome.hbp.values()))
    csr, hbp = (_settings(each) for each in (case.csr, case.hbp))
    return (
        f"Searched of HBP: {hbp}. Values of n end with the first that is as large as the matrix. Searched of "
        f"CSR: {csr}. A combination of several changes that is not among these may be faster still. Rows without "
        '"best setting" have the defaults, of HBP with m and n by rule. Regret of the rule: what its m and n lose '
        "against the best m and n with all else as by default."
    )


def _settings(search: Search) -> str:
    together, alone = (
        "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in some.items())
        for some in (search.settings.together, search.settings.alone)
    )
    return f"every combination of {together}; from the fastest on, one change at a time, also of {alone}"


def summary(outcome: Results) -> str:
    """Tables and what they say, as Markdown."""
    sections = [
        (
            "The LSTM with 8192 inputs, 2048 units and batch 128",
            "A sixteenth of a V100 (5 SMs, 2 partitions) with a sixteenth of the rows, uniformly random masks, cold "
            "L2. Spans without launches, drawn out linearly in K from two small sizes.",
            large_lstm(outcome),
        ),
        (
            "Real recurrent matrices",
            "Pruned by magnitude, whole presets, cold, spans without launches. Small layers leave a large device idle: "
            "the longest rows are the critical path.",
            layer_table(outcome),
        ),
        (
            "Balance of rows",
            "Plain rows on demand are the strong baseline: they need no sorting. With few blocks an SM, sorting gains "
            "by rows of like length in lockstep. With 32 blocks an SM a recurrent matrix is there at once, nothing is "
            "left to dispatch, and sorting gains little or costs. Hybrid deals the heavier half of the blocks "
            "beforehand. Lists are as many thread blocks as fit at once, each with tiles dealt to and fro.",
            balance_table(outcome),
        ),
        (
            "Alignment of vector loads",
            "Reverse offset needs a third of the requests of scalar loads, and no copy; on short rows it can cost more "
            "than it saves.",
            alignment_table(outcome),
        ),
        ("Quality of hashes", f"{ABOUT} {hash_verdict(outcome.hashes)}", hash_table(outcome)),
        (
            "Hash-based 2-D blocks",
            f"{hbp_verdict(outcome)} {hbp_searched(outcome)}",
            [*hbp_table(outcome), "", *search_table(outcome)],
        ),
    ]
    lines = ["# Sparse and dense LSTMs on a GPU-like device", "", *textwrap.wrap(verdict(outcome), 120)]
    for title, about, table in sections:
        lines += ["", f"## {title}", "", *textwrap.wrap(about, 120), "", *table]
    return "\n".join([*lines, ""])


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """Whether sparse or dense is faster at both ends of the band that is believed."""
    chip, answers = vary(sixteenth()), {}
    for inner in (UNITS, INPUTS):
        dense = min(dense_spans(inner, chip).values())
        for sparsity in BAND:
            faster = "sparse" if sparse_span(inner, sparsity, chip) < dense else "dense"
            answers[f"faster at {100 * sparsity:g} % of zeros, K = {inner}"] = faster
    return answers


def holds() -> str:
    """Whether the headline holds, as a paragraph."""
    return held_paragraph([sixteenth()], conclusions)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("sparse_lstm")
