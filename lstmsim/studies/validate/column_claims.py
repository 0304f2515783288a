"""What the column-wise LSTM patent and papers claim, simulated on the presets.

Abstracts name neither the tasks nor the sizes of machines, so that most of their claims are shown and not judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from math import inf

from lstmsim.analysis.report import Report
from lstmsim.files.published import Claim, Measurement
from lstmsim.files.scenario.scenario_file import load_chip, load_model, load_scenario
from lstmsim.model.model import Precision
from lstmsim.model.scenario import Scenario
from lstmsim.studies.compare.result import geometric_mean
from lstmsim.studies.fit.device import device, device_of
from lstmsim.studies.fit.fit import fit
from lstmsim.studies.search.array import Searched, doublings, widest_vp
from lstmsim.studies.search.run import reachable
from lstmsim.studies.validate.groups import BAND, CHIP, DESIGN, Bench, layer
from lstmsim.studies.validate.rows import Finding, Verdict

HIDDEN = (256, 512, 1024)
STEPS = 25

#: A best EP outside the stated range still agrees if the best inside it takes at most this much more cycles: beyond
#: the optimum cycles rise slowly, and one cycle of a deeper adder tree can decide between two EPs.
TIE = 0.01

_LARGE, _COLUMN = 65536, "column-npu-64k"
_PRESETS = {16384: "column-npu-16k", _LARGE: _COLUMN}
_SIZES = ", ".join(map(str, HIDDEN))

#: The two (EP, VP) that the patent compares in paragraph 101.
_PAIRS = ((32, 2048), (16, 4096))


class Arrays:
    """Claims on LSTMs alone on arrays of the presets; adder trees are built for each EP, as in the search."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sweep = cache(self._sweep)

    def best_ep(self, claim: Claim, npe: int) -> Finding:
        """Judge whether the EP with the fewest cycles lies in the claim's range, for each hidden size."""
        low, high = whole_numbers(claim)
        texts, agrees = [], True
        for hidden in HIDDEN:
            best, cycles = self.best(npe, hidden), self.sweep(npe, hidden)
            texts.append(f"{best} at {hidden}")
            if not low <= best <= high:
                inside = min((each for ep, each in cycles.items() if low <= ep <= high), default=None)
                more = inf if inside is None else inside / cycles[best] - 1
                agrees = agrees and more <= TIE
                texts[-1] += f" (the best in the range takes {100 * more:.2f} % more)"
        condition = (
            f"LSTM of hidden = input = {_SIZES} alone, {STEPS} steps, EP a power of two, VP = min(4 * hidden, "
            f"NPE // EP), latencies of {_PRESETS[npe]}; up to {100 * TIE:.0f} % more cycles count as a tie"
        )
        return Finding(condition, "best EP: " + ", ".join(texts), "holds" if agrees else "fails")

    def ordering(self, claim: Claim, hidden: int) -> Finding:
        """Judge whether the (EP, VP) that the claim names takes fewer cycles than the other pair of its paragraph."""
        stated = tuple(whole_numbers(claim))
        first, second = sorted(_PAIRS, key=lambda pair: pair != stated)
        fewer, more = (self.cycles(_LARGE, hidden, *pair) for pair in (first, second))
        agrees = first == stated and fewer < more
        condition = f"LSTM of hidden = input = {hidden} alone, {STEPS} steps, latencies of {_COLUMN}"
        cycles = f"{first}: {fewer:,} cycles; {second}: {more:,} cycles"
        return Finding(condition, cycles, "holds" if agrees else "fails")

    def cat_suffices(self, claim: Claim) -> Finding:
        """Judge whether one tree with CAT-4 has exactly the claim's EPs, and every model's best EP is one of them."""
        best, stated = [self.best(_LARGE, hidden) for hidden in HIDDEN], set(whole_numbers(claim))
        tree = max(stated)
        agrees = set(reachable(tree, 4)) == stated and set(best) <= stated
        least = next((cat for cat in (1, 2, 4) if set(best) <= set(reachable(tree, cat))), None)
        condition = f"an array of {_LARGE} multipliers with trees of {tree} inputs; models as for its best EP"
        enough = "no CAT up to 4 has them all" if least is None else f"the least that has them all is CAT-{least}"
        text = f"best EP {', '.join(map(str, best))} at {_SIZES}: {enough}"
        return Finding(condition, text, "holds" if agrees else "fails")

    def cycles(self, npe: int, hidden: int, ep: int, vp: int) -> int:
        """Give the cycles of one LSTM."""
        searched = self._searched(npe, hidden)
        return self.bench.report(Scenario(searched.chip_with(ep, vp), searched.jobs)).makespan_cycles

    def _sweep(self, npe: int, hidden: int) -> dict[int, int]:
        """Cycles by EP, with VP = min(4 * hidden, NPE // EP), for every power of two that a vector fills."""
        limits = self._searched(npe, hidden).limits
        eps = [ep for ep in doublings(limits, npe) if ep <= limits.width]
        return {ep: self.cycles(npe, hidden, ep, widest_vp(limits, npe, ep)[0]) for ep in eps}

    def best(self, npe: int, hidden: int) -> int:
        """Give the EP with the fewest cycles, among equals the smallest."""
        cycles = self.sweep(npe, hidden)
        return min(cycles, key=lambda ep: (cycles[ep], ep))

    def _searched(self, npe: int, hidden: int) -> Searched:
        model = {"layers": [layer("lstm", hidden, hidden)]}
        scenario = load_scenario({"chip": _PRESETS[npe], "jobs": [{"model": model, "steps": STEPS}]})
        return Searched(scenario.chip, scenario.jobs, (0,), npe)


def whole_numbers(claim: Claim) -> list[int]:
    """List the whole numbers of a claim's value, in their order."""
    return [int(each) for each in re.findall(r"[0-9]+", claim.value)]


_QUAD = "column-npu-4x16k"
_JOBS = 8
#: The task whose weights take the least memory.
_SMALLEST = "deepbench-lstm-256-150"


class Speeds:
    """Claims on throughput, threads and ratios to published figures of DeepBench tasks.

    bench: simulates the tasks.
    rows: published latencies of all designs.
    """

    def __init__(self, bench: Bench, rows: Sequence[Measurement]) -> None:
        self.bench, self.rows = bench, rows

    def _of(self, design: str, cell: str | None = "lstm") -> dict[str, Measurement]:
        """The rows of a design at batch 1 that have a latency, by task."""
        own = [row for row in self.rows if row.design == design and row.batch == 1 and row.latency_ms is not None]
        return {row.task: row for row in own if cell is None or row.cell == cell}

    def _alone(self, row: Measurement, chip: str = _COLUMN) -> Report:
        return self.bench.on_preset(chip, [layer(row.cell, row.hidden, row.input)], row.steps)

    def throughput(self, claim: Claim) -> Finding:
        """Judge whether the best DeepBench LSTM task reaches more TOPS than the claim says."""
        tops = {task: self._alone(row).tops for task, row in self._of(DESIGN).items()}
        best = max(tops, key=lambda task: tops[task])
        condition = (
            f"best DeepBench LSTM task on {_COLUMN}; its 65536 multipliers and 260 MHz are assumptions, of which the "
            "clock was chosen so that this is possible"
        )
        verdict: Verdict = "holds" if tops[best] > float(claim.value) else "fails"
        return Finding(condition, f"{tops[best]:.2f} TOPS at {best}", verdict)

    def thread_gain(self, claim: Claim, cores: int) -> Finding:
        """Show how much faster two threads on each core are than one thread on one core."""
        gains = []
        for row in self._of(DESIGN).values():
            layers = [layer(row.cell, row.hidden, row.input)]
            one = ["chip.cores.0.threads=1"]
            single = self.bench.on_preset(_COLUMN, layers, row.steps, count=_JOBS, overrides=one)
            several = self.bench.on_preset(_COLUMN if cores == 1 else _QUAD, layers, row.steps, count=_JOBS)
            gains.append(single.makespan_cycles / several.makespan_cycles)
        published = 1 + float(claim.value) / 100 if claim.unit == "%" else float(claim.value)
        machines = f"{_COLUMN} with two threads" if cores == 1 else f"{_QUAD}, two threads a core, as many multipliers"
        condition = (
            f"{machines}, over {_COLUMN} with one thread; {_JOBS} equal jobs of each DeepBench LSTM task at once; the "
            "paper's jobs are not public"
        )
        return Finding(condition, _span(gains, published, published), "not judged")

    def over_row_wise(self, claim: Claim) -> Finding:
        """Show Brainwave's published latencies over the simulated ones of the column-wise NPU."""
        return Finding(_row_wise("latencies"), _span(self._latency_ratios(DESIGN), *_range(claim)), "not judged")

    def utilization_over_row_wise(self, claim: Claim) -> Finding:
        """Show the simulated utilization of the column-wise NPU over Brainwave's published one."""
        known = [(row, row.utilization_pct) for row in self._of(DESIGN).values()]
        ratios = [100 * self._alone(row).utilization / percent for row, percent in known if percent is not None]
        return Finding(_row_wise("utilizations"), _span(ratios, *_range(claim)), "not judged")

    def over_gpu(self, claim: Claim) -> Finding:
        """Show the V100's published latencies over the simulated ones of the column-wise NPU."""
        condition = (
            f"DeepBench LSTM tasks at batch 1, {_COLUMN} over the V100 latencies of Zhao et al. 2019 (TensorFlow, "
            "cuDNN); the paper's own V100 latencies, tasks and batch are not public; no device known of the paper's "
            "chip"
        )
        return Finding(condition, _span(self._latency_ratios("Tesla V100"), *_range(claim)), "not judged")

    def _latency_ratios(self, design: str) -> list[float]:
        return [(row.latency_ms or 0.0) / self._alone(row).latency_ms.max for row in self._of(design).values()]

    def plasticine_over_brainwave(self, claim: Claim) -> Finding:
        """Judge whether the source's geometric mean of two published columns comes out with Brainwave's simulated."""
        plasticine, brainwave = self._of("Plasticine", None), self._of(DESIGN, None)
        ratios = [
            self._alone(row, CHIP).latency_ms.max / (plasticine[task].latency_ms or 0.0)
            for task, row in brainwave.items()
        ]
        mean = geometric_mean(ratios) or 0.0
        condition = (
            f"the 11 DeepBench tasks; Brainwave's latencies simulated on {CHIP}, Plasticine's as published; within "
            f"{100 * BAND:.0f} %, the band of the latencies"
        )
        return Finding(condition, f"{mean:.2f} x", "holds" if abs(mean / float(claim.value) - 1) <= BAND else "fails")


def _row_wise(what: str) -> str:
    return (
        f"DeepBench LSTM tasks, {_COLUMN} (65536 multipliers, 260 MHz) against the {what} of Brainwave (96000, 250 "
        f"MHz) in Zhao et al. 2019; the paper's tasks, sizes and rivals are not in its abstract; {_fits()}"
    )


@cache
def _fits() -> str:
    """Whether the column-wise chip fits Brainwave's FPGA, with the weights of the smallest of the tasks."""
    home = device_of(DESIGN)
    if home is None:
        return f"no device known of {DESIGN}"
    occupancy = fit(load_chip(_COLUMN), [load_model(_SMALLEST)], Precision(), device(home))
    return f"{_COLUMN} on its FPGA ({home}) {occupancy.verdict}"


def _range(claim: Claim) -> tuple[float, float]:
    low, _, high = claim.value.partition("-")
    return float(low), float(high or low)


def _span(ratios: Sequence[float], low: float, high: float) -> str:
    """Least and largest ratio, their geometric mean, and where the published figures lie in comparison."""
    least, most = min(ratios), max(ratios)
    outside = high < least or low > most
    where = "inside" if least <= low and high <= most else "outside" if outside else "partly inside"
    mean = geometric_mean(ratios) or 0.0
    return f"{least:.2f} to {most:.2f} x, geometric mean {mean:.2f} x; the published figure lies {where}"
