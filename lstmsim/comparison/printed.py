"""Published figures of the workloads of a comparison, as columns beside the simulated ones."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.comparison.result import Entry, Machine
from lstmsim.formats.tables.published import Measurement
from lstmsim.units import tops
from lstmsim.workload.scenario import Job

__all__ = ["peak_tops", "published_columns"]


def peak_tops(pes: int | None, frequency_mhz: float | None) -> float | None:
    """Two operations for each multiplier and cycle; None where multipliers or clock are not known.

    pes: multipliers.
    frequency_mhz: the clock.

    >>> peak_tops(1000, 250.0), peak_tops(None, 250.0)
    (0.5, None)
    """
    return None if pes is None or frequency_mhz is None else tops(pes, 1, frequency_mhz)


def published_columns(
    rows: Sequence[tuple[str, tuple[Job, ...]]], published: Sequence[Measurement]
) -> tuple[list[Machine], list[list[Entry]]]:
    """The designs that know one of the workloads, and for each workload the figures that they print.

    rows: names and jobs of the workloads.
    published: rows of published tables.
    """
    matching = [{each.design: each for each in published if _is_of(each, jobs)} for _, jobs in rows]
    first = {design: each for by_design in reversed(matching) for design, each in by_design.items()}
    order = [design for design in dict.fromkeys(each.design for each in published) if design in first]
    machines = [
        Machine(each.design, True, each.macs, each.frequency_mhz, peak_tops(each.macs, each.frequency_mhz), each.source)
        for each in (first[design] for design in order)
    ]
    return machines, [
        [_printed(by_design.get(design), jobs) for design in order]
        for by_design, (_, jobs) in zip(matching, rows, strict=True)
    ]


def _is_of(row: Measurement, jobs: Sequence[Job]) -> bool:
    """Whether a published row is about one of these jobs alone: one layer, one direction, no projection."""
    if len(jobs) != 1 or len(jobs[0].model.layers) != 1:
        return False
    (job,), (layer,) = jobs, jobs[0].model.layers
    if layer.bidirectional or layer.projection is not None:
        return False
    known = (row.cell, row.hidden, row.input, row.steps, row.batch)
    return row.latency_ms is not None and known == (layer.cell.name, layer.hidden, layer.input, job.steps, job.batch)


def _printed(row: Measurement | None, jobs: Sequence[Job]) -> Entry:
    """The figures as printed; TOPS that are not printed follow from the latency."""
    if row is None or row.latency_ms is None:
        return Entry(reason="not published")
    share = None if row.utilization_pct is None else row.utilization_pct / 100
    tops = row.tops
    if tops is None:
        # Three digits, because a latency is printed with no more.
        tops = float(f"{2 * sum(job.macs for job in jobs) / row.latency_ms / 1e9:.3g}")
    return Entry(ms=row.latency_ms, tops=tops, utilization=share)
