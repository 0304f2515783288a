"""What Yosys made of generated hardware, beside what `lstmsim fit` says of the same chip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lstmsim.base.records import record
from lstmsim.machines.hardware import Stored
from lstmsim.machines.registry import target_of
from lstmsim.studies.fit.device import device
from lstmsim.studies.fit.fit import Fit, fit
from lstmsim.studies.rtl.families import RESOURCES, Family, family_of

if TYPE_CHECKING:
    from lstmsim.model.scenario import Scenario
    from lstmsim.studies.rtl.synthesis import Synthesis

__all__ = ["Beside", "beside", "fitted", "synthesis_json", "synthesis_lines", "synthesis_words"]

#: Cells (logic and registers) that Yosys 0.23 counts in a second of one core for `ecp5`: the least and the most of
#: three LSTMs of 16 to 128 multipliers, with 1, 4 and 32 jobs. It is the least where many jobs are in the tables.
_CELLS_PER_SECOND = (130, 560)
#: From how many seconds on they are told in minutes.
_MINUTES = 120


@record
class Beside:
    """A resource, counted and estimated.

    resource: one of `lstmsim.studies.rtl.families.RESOURCES`.
    unit: what is counted.
    fit: what `lstmsim fit` says; None: it does not tell.
    yosys: what Yosys says.
    """

    resource: str
    unit: str
    fit: int | None
    yosys: int

    @property
    def error(self) -> float | None:
        """How far `fit` is off, as a part of Yosys's number; None: one of both is not known or 0."""
        return None if self.fit is None or not self.yosys else self.fit / self.yosys - 1


def beside(scenario: Scenario, synthesis: Synthesis) -> tuple[Beside, ...]:
    """Put the numbers of `lstmsim fit` on the family's device beside those of Yosys.

    scenario: the chip, its models and widths.
    synthesis: of the same.
    """
    own, counts = fitted(scenario, synthesis.family), synthesis.counts
    sums = {key: sum(getattr(each, key) for each in own.parts) for key in ("memories", "logic", "registers")}
    needs = {"multipliers": own.multipliers.need, **(sums if own.parts else {})}
    units = synthesis.family.units
    return tuple(Beside(each, units[each], needs.get(each), counts[each]) for each in RESOURCES)


def fitted(scenario: Scenario, family: Family) -> Fit:
    """Give what the chip takes by `lstmsim fit`, with the frames of all jobs in its memories.

    scenario: the chip, its models and jobs.
    family: gives the device.
    """
    models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
    frames = {each.name: sum(job.steps for job in scenario.jobs if job.model == each) for each in models}
    kinds = len({(job.model, job.steps) for job in scenario.jobs})
    stored = replace(Stored.of(scenario.jobs), frames=frames, jobs=len(scenario.jobs), kinds=kinds)
    return fit(scenario.chip, models, scenario.precision, device(family.device), stored)


def synthesis_words(scenario: Scenario, family: str) -> str:
    """Say how long Yosys will take, by what `lstmsim fit` counts; empty: nothing is known.

    scenario: what is built.
    family: a key of `lstmsim.studies.rtl.families.FAMILIES`.

    >>> from lstmsim.studies.shared.loading import load_scenario
    >>> layers = [{"cell": "lstm", "hidden": 8, "input": 4}]
    >>> chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 16, "ep": 2, "vp": 8, "tail_width": 1}]}
    >>> jobs = [{"model": {"name": "m", "layers": layers}, "steps": 2}]
    >>> synthesis_words(load_scenario({"chip": chip, "jobs": jobs}), "ecp5").split(" of one core")[0]
    'Yosys takes some 17 to 74 s'
    """
    if target_of(scenario.chip.kind).generated_hardware() is None:
        return ""
    cells = sum(each.logic + each.registers for each in fitted(scenario, family_of(family)).parts)
    slow, quick = (cells / rate for rate in _CELLS_PER_SECOND)
    if not cells:
        return ""
    unit, name = (1, "s") if slow < _MINUTES else (60, "minutes")
    return f"Yosys takes some {quick / unit:,.0f} to {slow / unit:,.0f} {name} of one core for about {cells:,} cells"


def synthesis_lines(scenario: Scenario, synthesis: Synthesis) -> list[str]:
    """Say what Yosys counted: the whole beside `fit`, then each part."""
    named = synthesis.family.device
    rows = [("", "unit", f"fit ({named})", synthesis.family.name, "error of fit")]
    for each in beside(scenario, synthesis):
        error = "" if each.error is None else f"{100 * each.error:+.0f} %"
        rows.append((each.resource, each.unit, "-" if each.fit is None else f"{each.fit:,}", f"{each.yosys:,}", error))
    parts: list[tuple[str, ...]] = [("part", *(f"{each} (fit)" for each in RESOURCES))]
    for name, own in _parts(scenario, synthesis).items():
        cells = (f"{own[each][1]:,} ({'-' if own[each][0] is None else f'{own[each][0]:,}'})" for each in RESOURCES)
        parts.append((name, *cells))
    notes = ["", *synthesis.family.notes] if synthesis.family.notes else []
    return [f"{synthesis.version}, {synthesis.family.command}:", *_table(rows, 2), *notes, "", *_table(parts, 1)]


def _parts(scenario: Scenario, synthesis: Synthesis) -> dict[str, dict[str, tuple[int | None, int]]]:
    """For each part and resource what `lstmsim fit` says (None: nothing), and what Yosys says."""
    said = {each.name: each for each in fitted(scenario, synthesis.family).parts}
    return {
        own.name: {
            key: (getattr(said.get(own.name), key, None), count)
            for key, count in synthesis.family.counts(own.cells).items()
        }
        for own in synthesis.parts
    }


def _table(rows: Sequence[Sequence[str]], texts: int) -> list[str]:
    """Rows with their columns below each other; the first `texts` columns begin at the left."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place < texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def synthesis_json(scenario: Scenario, synthesis: Synthesis) -> dict[str, Any]:
    """Give what Yosys counted as plain data."""
    return {
        "family": synthesis.family.name,
        "device": synthesis.family.device,
        "version": synthesis.version,
        "notes": list(synthesis.family.notes),
        "resources": {
            each.resource: {"unit": each.unit, "fit": each.fit, "yosys": each.yosys, "error": each.error}
            for each in beside(scenario, synthesis)
        },
        "parts": [
            {"part": name, **{key: {"fit": fit, "yosys": count} for key, (fit, count) in own.items()}}
            for name, own in _parts(scenario, synthesis).items()
        ],
    }
