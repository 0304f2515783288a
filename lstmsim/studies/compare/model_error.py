"""How far simulated times lie from those that were published of the very machine that a chip describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lstmsim.report.figures_text import three_digits
from lstmsim.studies.compare.result import Comparison, Machine, geometric_mean

__all__ = ["FITTED", "TITLE", "ModelError", "about_machines", "model_errors", "model_errors_json"]

TITLE = "HOW FAR OFF THE MODEL IS: simulated time / published time of the machine that the chip describes"
FITTED = "`lstmsim validate` says which of its machine's figures a preset was fitted to."
#: Bytes of an element of a precision, as sources word it.
_BYTES = {"FP16": 2, "FP32": 4}


@dataclass(frozen=True)
class ModelError:
    """A simulated chip beside the published machine that it describes.

    chip, design: both machines.
    ratios: by workload, simulated / published milliseconds.

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
        wide = size is not None and self.chip.precision != _elements(size)
        parts = [f"in {self.chip.precision}, published in {self.design.precision}"] if wide else []
        if self.design.frequency_mhz is not None and not same:
            parts.append(f"at {self.chip.frequency_mhz:g} MHz, published at {self.design.frequency_mhz:g} MHz")
        if self.chip.changed:
            parts.append(f"with other {', '.join(self.chip.changed)} than the preset has")
        hint = f"; `element_bytes: {size}` of the chip is {self.design.precision}" if wide and parts else ""
        return f"; simulated {'; simulated '.join(parts)}{hint}" if parts else ""


def _elements(size: int) -> str:
    return f"elements of {size} bytes"


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
    told: dict[bool, list[str]] = {False: [], True: []}
    for each in comparison.machines:
        clock = "clock not published" if each.frequency_mhz is None else f"{each.frequency_mhz:g} MHz"
        told[each.published].append(f"{each.name} ({'; '.join(filter(None, (each.precision, clock)))})")
    return [f"Simulated: {', '.join(told[False])}.", f"Published: {', '.join(told[True])}."]


def model_errors_json(comparison: Comparison) -> list[dict[str, Any]]:
    """The errors as plain data."""
    return [
        {
            "machine": each.chip.name,
            "published": each.design.name,
            "simulated_over_published": dict(each.ratios),
            "geometric_mean": each.mean,
            "sentence": each.sentence,
        }
        for each in model_errors(comparison)
    ]
