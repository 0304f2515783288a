"""The column-wise LSTM patent's claims on EP and VP, simulated on the presets' arrays."""

from __future__ import annotations

import re
from functools import cache
from math import inf

from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.files.tables.published import Claim
from lstmsim.model.scenario import Scenario
from lstmsim.studies.search.candidates import doublings, widest_vp
from lstmsim.studies.search.mix import reachable
from lstmsim.studies.search.score import Searched
from lstmsim.studies.validate.bench import Bench, layer
from lstmsim.studies.validate.rows import Finding

__all__ = ["TIE", "Arrays", "best_ep", "cat_suffices", "ordering"]

HIDDEN = (256, 512, 1024)
STEPS = 25

#: A best EP outside the stated range still agrees if the best inside it takes at most this much more cycles: beyond
#: the optimum cycles rise slowly, and one cycle of a deeper adder tree can decide between two EPs.
TIE = 0.01

_LARGE = 65536
_PRESETS = {16384: "column-npu-16k", _LARGE: "column-npu-64k"}

#: The two (EP, VP) that the patent compares in paragraph 101.
_PAIRS = ((32, 2048), (16, 4096))


class Arrays:
    """LSTMs alone on arrays of the presets; adder trees are built for each EP, as in the search.

    bench: simulates them.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sweep = cache(self._sweep)

    def cycles(self, npe: int, hidden: int, ep: int, vp: int) -> int:
        """Give the cycles of one LSTM.

        npe, ep, vp: the array.
        hidden: the LSTM's hidden and input size.
        """
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


def best_ep(claim: Claim, arrays: Arrays, npe: int) -> Finding:
    """Judge whether the EP with the fewest cycles lies in the claim's range, for each hidden size."""
    low, high = whole_numbers(claim)
    texts, agrees = [], True
    for hidden in HIDDEN:
        best = arrays.best(npe, hidden)
        texts.append(f"{best} at {hidden}")
        if not low <= best <= high:
            cycles = arrays.sweep(npe, hidden)
            inside = min((each for ep, each in cycles.items() if low <= ep <= high), default=None)
            more = inf if inside is None else inside / cycles[best] - 1
            agrees = agrees and more <= TIE
            texts[-1] += f" (the best in the range takes {100 * more:.2f} % more)"
    condition = (
        f"LSTM of hidden = input = {', '.join(map(str, HIDDEN))} alone, {STEPS} steps, EP a power of two, VP = min(4 * "
        f"hidden, NPE // EP), latencies of {_PRESETS[npe]}; up to {100 * TIE:.0f} % more cycles count as a tie"
    )
    return Finding(condition, "best EP: " + ", ".join(texts), "holds" if agrees else "fails")


def ordering(claim: Claim, arrays: Arrays, hidden: int) -> Finding:
    """Judge whether the (EP, VP) that the claim names takes fewer cycles than the other pair of the same paragraph."""
    stated = whole_numbers(claim)
    first, second = sorted(_PAIRS, key=lambda pair: pair != tuple(stated))
    fewer, more = (arrays.cycles(_LARGE, hidden, *pair) for pair in (first, second))
    agrees = first == tuple(stated) and fewer < more
    condition = f"LSTM of hidden = input = {hidden} alone, {STEPS} steps, latencies of {_PRESETS[_LARGE]}"
    return Finding(condition, f"{first}: {fewer:,} cycles; {second}: {more:,} cycles", "holds" if agrees else "fails")


def cat_suffices(claim: Claim, arrays: Arrays) -> Finding:
    """Judge whether one tree with CAT-4 has exactly the claim's EPs, and every model's best EP is one of them."""
    best = [arrays.best(_LARGE, hidden) for hidden in HIDDEN]
    stated = set(whole_numbers(claim))
    tree = max(stated)
    agrees = set(reachable(tree, 4)) == stated and set(best) <= stated
    least = next((cat for cat in (1, 2, 4) if set(best) <= set(reachable(tree, cat))), None)
    condition = f"an array of {_LARGE} multipliers with trees of {tree} inputs; models as for its best EP"
    enough = "no CAT up to 4 has them all" if least is None else f"the least that has them all is CAT-{least}"
    sizes = ", ".join(map(str, HIDDEN))
    return Finding(
        condition, f"best EP {', '.join(map(str, best))} at {sizes}: {enough}", "holds" if agrees else "fails"
    )


def whole_numbers(claim: Claim) -> list[int]:
    """List the whole numbers of a claim's value, in their order."""
    return [int(each) for each in re.findall(r"[0-9]+", claim.value)]
