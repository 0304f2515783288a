"""Where the base of a comparison loses: on which workloads, by how much, and why by peak, utilization and accounts."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.report.figures_text import percent
from lstmsim.studies.compare.first_step_text import by_later_steps
from lstmsim.studies.compare.result import Comparison, Entry

__all__ = ["Defeat", "defeats", "lost_shares"]

_SHOWN_FROM = 0.01


@dataclass(frozen=True)
class Defeat:
    """A workload that takes longer on the base than on another machine.

    workload: its name.
    times: how many times as long it takes on the base.
    peak_ratio, utilization_ratio: the other's peak TOPS and utilization / those of the base, None: unknown; their
        product is `times`, for published figures as exactly as they were printed.
    losses: where the base's PE-cycles went, in words.
    later: how many times as long it takes by later steps, in words; empty: no machine begins cold.

    >>> Defeat("m", 1.5, 2.0, 0.75, "hazard 20.0 %").sentence
    "1.50 times as long; the other's peak is 2.00 times, its utilization 0.75 times as high; own loss: hazard 20.0 %"
    """

    workload: str
    times: float
    peak_ratio: float | None
    utilization_ratio: float | None
    losses: str
    later: str = ""

    @property
    def sentence(self) -> str:
        """The defeat in words, without the workload's name."""
        parts = [f"{self.times:.2f} times as long", *([self.later] if self.later else [])]
        if self.peak_ratio is not None and self.utilization_ratio is not None:
            peak = f"the other's peak is {self.peak_ratio:.2f} times"
            parts.append(f"{peak}, its utilization {self.utilization_ratio:.2f} times as high")
        return "; ".join([*parts, f"own loss: {self.losses}"])


def lost_shares(entry: Entry) -> str:
    """Name where PE-cycles were lost, with shares: all shares from 1 % on, at least the largest.

    >>> lost_shares(Entry(losses={"useful": 0.5, "padding": 0.101, "hazard": 0.398, "drain": 0.001}))
    'hazard 39.8 %, padding 10.1 %'
    """
    shares = sorted(
        ((share, name) for name, share in entry.losses.items() if name != "useful" and share > 0),
        key=lambda pair: -pair[0],
    )
    shown = [pair for pair in shares if pair[0] >= _SHOWN_FROM] or shares[:1]
    return ", ".join(f"{name} {percent(share, 1)}" for share, name in shown)


def defeats(comparison: Comparison, column: int) -> tuple[Defeat, ...]:
    """List the workloads that take longer on the base than on another machine, in their order.

    column: the number of the other machine in the comparison.

    >>> from lstmsim.studies.compare.result import Machine, Workload
    >>> machines = Machine("a", False, 100, 250.0, 0.05), Machine("b", False, 400, 250.0, 0.2)
    >>> rows = ((Entry(ms=3.0, utilization=0.4, losses={"useful": 0.4, "drain": 0.6}), Entry(ms=1.5, utilization=0.2)),)
    >>> (one,) = defeats(Comparison("s", "fast", False, machines, (Workload("s", 1, 9),), rows), 1)
    >>> one.times, one.peak_ratio, one.utilization_ratio, one.losses
    (2.0, 4.0, 0.5, 'drain 60.0 %')
    """
    base, other = comparison.machines[0], comparison.machines[column]
    peaks = other.peak_tops / base.peak_tops if other.peak_tops and base.peak_tops else None
    lost = []
    for row, (workload, entries) in enumerate(zip(comparison.workloads, comparison.entries, strict=True)):
        speedup, own, theirs = comparison.speedup(row, column), entries[0].utilization, entries[column].utilization
        if speedup is not None and speedup > 1:
            shares = theirs / own if own and theirs else None
            later = by_later_steps(comparison, row, column)
            lost.append(Defeat(workload.name, speedup, peaks, shares, lost_shares(entries[0]), later))
    return tuple(lost)
