"""Published figures of the workloads of a comparison, and how far simulated times lie from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lstmsim.base.units import tops
from lstmsim.files.published import Hardware, Measurement, hardware
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.model.scenario import Chip, Job
from lstmsim.report.figures_text import three_digits
from lstmsim.studies.compare.result import Comparison, Entry, Machine, geometric_mean

#: Keys that are shown of every machine.
_SHOWN = ("name", "frequency_mhz", "element_bytes")


def peak_tops(pes: int | None, frequency_mhz: float | None) -> float | None:
    """Two operations for each multiplier and cycle; None where multipliers or clock are not known."""
    return None if pes is None or frequency_mhz is None else tops(pes, 1, frequency_mhz)


def published_columns(
    rows: Sequence[tuple[str, tuple[Job, ...]]], published: Sequence[Measurement]
) -> tuple[list[Machine], list[list[Entry]]]:
    """The designs that know one of the workloads, and for each workload the figures that they print."""
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
    """The name of the published machine that a chip describes; empty if it is not among these."""
    named: Mapping[str, str] = {each.preset: each.design for each in hardware() if each.preset} if designs else {}
    return named[chip] if named.get(chip) in {each.name for each in designs} else ""


def changed_keys(chip: Chip) -> tuple[str, ...]:
    """The keys in which a chip differs from the preset of its name, those of clock and precision left out."""
    preset = load_chip(chip.name)
    if type(preset) is not type(chip):
        return ("kind",)
    description: Any = type(preset)
    names = [each.name for each in fields(description) if each.name not in _SHOWN]
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
    """The figures as printed; TOPS that are not printed follow from the latency."""
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


FITTED = "`lstmsim validate` says which of its machine's figures a preset was fitted to."
#: Bytes of an element of a precision, as sources word it.
_BYTES = {"FP16": 2, "FP32": 4}


@dataclass(frozen=True)
class ModelError:
    """A simulated chip and the published machine that it describes, with simulated / published ms by workload.

    >>> chip, design = Machine("v100", False, 9, 1530.0), Machine("V", True, None, None)
    >>> error = ModelError(chip, design, {"a": 0.5, "b": 2.0})
    >>> error.mean, error.sentence
    (1.0, 'v100 of V: geometric mean 1.00 over 2 workloads (a 0.500, b 2.00)')
    """

    chip: Machine
    design: Machine
    ratios: dict[str, float]

    @property
    def mean(self) -> float | None:
        """The geometric mean of the ratios."""
        return geometric_mean(list(self.ratios.values()))

    @property
    def sentence(self) -> str:
        """The mean, each ratio, and in what the two differ."""
        each = ", ".join(f"{name} {three_digits(ratio)}" for name, ratio in self.ratios.items())
        many = len(self.ratios)
        text = f"{self.chip.name} of {self.design.name}: geometric mean {three_digits(self.mean or 0.0)} over {many} "
        return f"{text}workload{'s' * (many != 1)} ({each}){self._difference}"

    @property
    def _difference(self) -> str:
        """What makes the two times of different things; empty if nothing is known to."""
        size, same = _BYTES.get(self.design.precision), self.chip.frequency_mhz == self.design.frequency_mhz
        wide = size is not None and self.chip.precision != f"elements of {size} bytes"
        parts = [f"in {self.chip.precision}, published in {self.design.precision}"] if wide else []
        if self.design.frequency_mhz is not None and not same:
            parts.append(f"at {self.chip.frequency_mhz:g} MHz, published at {self.design.frequency_mhz:g} MHz")
        if self.chip.changed:
            parts.append(f"with other {', '.join(self.chip.changed)} than the preset has")
        hint = f"; `element_bytes: {size}` of the chip is {self.design.precision}" if wide and parts else ""
        return f"; simulated {'; simulated '.join(parts)}{hint}" if parts else ""


def model_errors(comparison: Comparison) -> list[ModelError]:
    """Every simulated chip whose machine was measured on a workload that the chip ran."""
    places = {each.name: number for number, each in enumerate(comparison.machines) if each.published}
    found = []
    for column, chip in enumerate(comparison.machines):
        if chip.stands_for not in places:
            continue
        pairs = {
            workload.name: (row[column].ms, row[places[chip.stands_for]].ms)
            for workload, row in zip(comparison.workloads, comparison.entries, strict=True)
        }
        ratios = {name: own / other for name, (own, other) in pairs.items() if own is not None and other}
        if ratios:
            found.append(ModelError(chip, comparison.machines[places[chip.stands_for]], ratios))
    return found


def about_machines(comparison: Comparison) -> list[str]:
    """Two sentences: precision and clock of simulated and of published machines; none without published ones."""
    if not any(each.published for each in comparison.machines):
        return []
    words: dict[bool, list[str]] = {False: [], True: []}
    for each in comparison.machines:
        clock = "clock not published" if each.frequency_mhz is None else f"{each.frequency_mhz:g} MHz"
        words[each.published].append(f"{each.name} ({'; '.join(filter(None, (each.precision, clock)))})")
    return [f"Simulated: {', '.join(words[False])}.", f"Published: {', '.join(words[True])}."]
