"""What a comparison concludes, and whether it does so whatever its assumed latencies and bandwidths are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lstmsim.model.scenario import Chip
from lstmsim.report.stability import Conclusions, Stability
from lstmsim.studies.compare.report import latency_verdicts
from lstmsim.studies.compare.result import Comparison, Entry
from lstmsim.studies.shared.stability import Vary, stability


def conclusions(comparison: Comparison) -> Conclusions:
    """Give which machine is fastest on each workload, and whether the first machine is faster than each other one.

    Where latencies are compared, the answers are those of the report, intervals included.
    """
    if comparison.by_latency:
        verdicts = zip(comparison.machines[1:], latency_verdicts(comparison), strict=True)
        base = comparison.machines[0].name
        words = ((each.name, text.partition(": ")[2].partition(",")[0]) for each, text in verdicts)
        return {f"latency of {base} longer than of {name}": text.partition(";")[0] for name, text in words}
    answers: dict[str, str] = {}
    for row, (workload, entries) in enumerate(zip(comparison.workloads, comparison.entries, strict=True)):
        times = {name.name: each.ms for name, each in zip(comparison.machines, entries, strict=True)}
        known = {name: ms for name, ms in times.items() if ms is not None}
        least = min(known.values(), default=0.0)
        answers[f"fastest on {workload.name}"] = " and ".join(name for name, ms in known.items() if ms == least)
        answers |= _against(comparison, f" on {workload.name}", partial(comparison.speedup, row))
    if len(comparison.workloads) > 1:
        answers |= _against(comparison, " over all (geometric mean)", comparison.mean_speedup)
    return answers


def _against(comparison: Comparison, where: str, of: Callable[[int], float | None]) -> Conclusions:
    """What the first machine is compared with each other one, as far as it is known."""
    base, *others = comparison.machines
    ratios = {other.name: of(column) for column, other in enumerate(others, 1)}
    return {
        f"{base.name} against {name}{where}": "slower" if ratio > 1 else "faster" if ratio < 1 else "as fast"
        for name, ratio in ratios.items()
        if ratio is not None
    }


def stable(
    comparison: Comparison, chips: Sequence[Chip], entries_of: Callable[[Chip, int], Sequence[Entry]], share: float
) -> Stability:
    """Draw the conclusions of a comparison again.

    chips: those of its simulated machines, in order.
    entries_of: gives the entries of a changed chip for all workloads; the number is the machine's.
    """
    columns = list(zip(*comparison.entries, strict=True))

    def ask(vary: Vary) -> Conclusions:
        changed = [vary(chip) for chip in chips]
        new = [
            columns[number] if other == chip else entries_of(other, number)
            for number, (chip, other) in enumerate(zip(chips, changed, strict=True))
        ]
        rows = tuple(zip(*new, *columns[len(chips) :], strict=True))
        return conclusions(replace(comparison, entries=rows))

    return stability(chips, ask, share)
