"""Published figures of the workloads of a comparison, as columns beside the simulated ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from lstmsim.base.units import tops
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.files.tables.published import Hardware, Measurement, hardware
from lstmsim.model.scenario import Chip, Job
from lstmsim.studies.compare.result import Entry, Machine

__all__ = ["changed_keys", "peak_tops", "published_columns", "stands_for"]

#: Keys that are told of every machine.
_TOLD = ("name", "frequency_mhz", "element_bytes")


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
    built = {each.design: each for each in hardware()} if order else {}
    notes = _notes(published)
    return [_machine(first[design], built.get(design)) for design in order], [
        [_printed(by_design.get(design), jobs, notes) for design in order]
        for by_design, (_, jobs) in zip(matching, rows, strict=True)
    ]


def _machine(row: Measurement, built: Hardware | None) -> Machine:
    peak = peak_tops(row.macs, row.frequency_mhz)
    precision = "" if built is None else built.precision
    return Machine(row.design, True, row.macs, row.frequency_mhz, peak, row.source, precision=precision)


def stands_for(chip: str, designs: Sequence[Machine]) -> str:
    """The name of the published machine that a chip describes; empty if it is not among these.

    chip: the chip's name, that of a preset.
    designs: published machines.

    >>> stands_for("v100", [Machine("Tesla V100", True, None, 1380)]), stands_for("v100", [])
    ('Tesla V100', '')
    """
    named: Mapping[str, str] = {each.preset: each.design for each in hardware() if each.preset} if designs else {}
    return named[chip] if named.get(chip) in {each.name for each in designs} else ""


def changed_keys(chip: Chip) -> tuple[str, ...]:
    """The keys in which a chip differs from the preset of its name, those of clock and precision left out.

    >>> from dataclasses import replace
    >>> changed_keys(replace(load_chip("v100"), partitions=2, element_bytes=2))
    ('partitions',)
    """
    preset = load_chip(chip.name)
    if type(preset) is not type(chip):
        return ("kind",)
    description: Any = type(preset)
    names = [each.name for each in fields(description) if each.name not in _TOLD]
    return tuple(name for name in names if getattr(chip, name) != getattr(preset, name))


def _is_of(row: Measurement, jobs: Sequence[Job]) -> bool:
    """Whether a published row is about one of these jobs alone: one layer, one direction, no projection."""
    if len(jobs) != 1 or len(jobs[0].model.layers) != 1:
        return False
    (job,), (layer,) = jobs, jobs[0].model.layers
    if layer.bidirectional or layer.projection is not None:
        return False
    known = (row.cell, row.hidden, row.input, row.steps, row.batch)
    return row.latency_ms is not None and known == (layer.cell.name, layer.hidden, layer.input, job.steps, job.batch)


def _printed(row: Measurement | None, jobs: Sequence[Job], notes: Mapping[tuple[str, str], str]) -> Entry:
    """The figures as printed; TOPS that are not printed follow from the latency.

    notes: what the source says of rows, by design and task.
    """
    if row is None or row.latency_ms is None:
        return Entry(reason="not published")
    share = None if row.utilization_pct is None else row.utilization_pct / 100
    tops = row.tops
    if tops is None:
        # Three digits, because a latency is printed with no more.
        tops = float(f"{2 * sum(job.macs for job in jobs) / row.latency_ms / 1e9:.3g}")
    note = notes.get((row.design, row.task))
    return Entry(ms=row.latency_ms, tops=tops, utilization=share, remarks=() if note is None else (note,))


def _notes(rows: Sequence[Measurement]) -> dict[tuple[str, str], str]:
    """The remark on each row by design and task; it names the task where the design's most usual note is another."""
    usual = {
        design: Counter(row.note for row in rows if row.design == design).most_common(1)[0][0]
        for design in dict.fromkeys(row.design for row in rows)
    }
    return {
        (row.design, row.task): f"{row.design}{'' if row.note == usual[row.design] else f', {row.task}'}: {row.note}"
        for row in rows
        if row.note
    }
