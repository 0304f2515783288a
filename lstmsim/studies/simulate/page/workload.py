"""The sections on what ran: chip, models, jobs."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.analysis.planned_text import HEAD, LEFT, planned_cells
from lstmsim.analysis.report import JobReport, Report
from lstmsim.base.units import cycles_to_ms, tops
from lstmsim.machines.registry import target_of
from lstmsim.model.figures import CoreFigures
from lstmsim.model.model import Model
from lstmsim.model.scenario import Scenario
from lstmsim.report.html.markup import Markup, Section, element, joined, region, short, table

__all__ = ["jobs_section", "what_ran_section"]

#: More jobs than this are cut with a count; more than `_PRINTED` are not printed on paper.
_JOBS, _PRINTED = 1000, 40
_MODELS, _LAYERS = 40, 6
_PLANS = 100


def what_ran_section(scenario: Scenario) -> Section:
    """Make the section on the chip's cores and the models, with names and defaults resolved."""
    return Section("ran", "What ran", _cores(scenario) + _models(scenario))


def _cores(scenario: Scenario) -> Markup:
    chip = scenario.chip
    by_look: dict[tuple[tuple[tuple[str, int | str], ...], ...], list[int]] = {}
    for index, core in enumerate(chip.core_figures):
        by_look.setdefault((tuple(core.columns.items()), tuple(core.settings.items())), []).append(index)
    rows = []
    sizes = tuple(dict.fromkeys(name for columns, _ in by_look for name, _ in columns))
    for (columns, settings), indexes in by_look.items():
        own = dict(columns)
        values = (f"{own[each]:,}" if each in own else "–" for each in sizes)
        rows.append([_listed(indexes), *values, _settings(dict(settings))])
    machine, peak = target_of(chip.kind).title, _peak(chip.core_figures, chip.frequency_mhz)
    caption = f"Chip {chip.name}: a {machine} at {chip.frequency_mhz:g} MHz, {peak}"
    return table(["cores", *sizes, "settings"], rows, left=(0, 1 + len(sizes)), caption=caption) + _beside(scenario)


def _beside(scenario: Scenario) -> Markup:
    """What the cores share, for example a memory; how steps were cut into kernels."""
    target = target_of(scenario.chip.kind)
    texts = (*target.beside_cores(scenario.chip, scenario.jobs), *target.kernels(scenario.chip, scenario.jobs))
    return joined([element("p", " ".join(texts), class_="note") if texts else "", _planned(scenario)])


def _planned(scenario: Scenario) -> Markup:
    """How products of the jobs are spread over threads."""
    planned = target_of(scenario.chip.kind).planned(scenario.chip, scenario.jobs)
    if planned is None:
        return joined([])
    rows = [planned_cells(each) for each in planned.rows[:_PLANS]]
    more = len(planned.rows) - len(rows)
    note = f"{more:,} more products are in the JSON report. " if more else ""
    caption = "How the products of a time step are cut: p_m x p_n x p_k parts of rows, columns and K"
    return table(HEAD, rows, left=LEFT, caption=caption) + element("p", note + planned.note, class_="note")


def _peak(cores: tuple[CoreFigures, ...], frequency_mhz: float) -> str:
    return f"{tops(sum(core.peak for core in cores), 1, frequency_mhz):.4g} TOPS at most"


def _settings(settings: Mapping[str, int | str]) -> str:
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in settings.items()
    )


def _listed(indexes: list[int]) -> str:
    """Numbers as ranges.

    >>> _listed([0, 1, 2, 5])
    '0–2, 5'
    """
    parts: list[list[int]] = []
    for index in indexes:
        if parts and parts[-1][1] == index - 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in parts)


def _models(scenario: Scenario) -> Markup:
    by_model: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    kinds: dict[tuple[str, tuple[str, ...]], Model] = {}
    for job in scenario.jobs:
        key = (job.model.name, _layers(job.model))
        kinds[key] = job.model
        entry = by_model.setdefault(key, [0, job.steps, job.steps, 0])
        entry[:] = [entry[0] + 1, min(entry[1], job.steps), max(entry[2], job.steps), entry[3] + job.macs]
    rows = []
    for key, (jobs, least, most, macs) in list(by_model.items())[:_MODELS]:
        steps = f"{least:,}" if least == most else f"{least:,}–{most:,}"
        rows.append([short(key[0]), "; ".join(key[1]), f"{jobs:,}", steps, f"{macs:,}"])
    hidden = len(by_model) - len(rows)
    note = element("p", f"and {hidden:,} more models, in the resolved input", class_="note") if hidden else ""
    head = ["model", "layers", "jobs", "steps", "multiply-accumulates"]
    return table(head, rows, left=(0, 1), caption="Models") + note


def _layers(model: Model) -> tuple[str, ...]:
    texts = []
    for layer in model.layers[:_LAYERS]:
        more = " bidirectional" if layer.bidirectional else " in reverse" if layer.reverse else ""
        more += f" projected to {layer.projection}" if layer.projection is not None else ""
        texts.append(f"{layer.cell.name} {layer.hidden} over {layer.input}{more}")
    hidden = len(model.layers) - len(texts)
    return (*texts, f"{hidden} more layers") if hidden else tuple(texts)


def _deadline(job: JobReport) -> str:
    if job.deadline is None:
        return "–"
    return f"{job.deadline:,}, {'missed' if job.missed else 'met'}"


def jobs_section(scenario: Scenario, report: Report) -> Section:
    """Make the section on when and where each job ran; long lists can be scrolled and are cut with a count."""
    numbers = list(range(len(report.jobs)))
    slowest = max(numbers, key=lambda number: report.jobs[number].latency)
    shown = numbers if len(numbers) <= _JOBS else numbers[: _JOBS - 1]
    if slowest not in shown:
        shown.append(slowest)
    deadlines = any(job.deadline is not None for job in report.jobs)
    stopped = any(job.preempted for job in report.jobs)
    rows = []
    for number in shown:
        job = report.jobs[number]
        asked = scenario.jobs[job.number]
        place = [short(job.name), short(asked.model.name, 28), f"{asked.steps:,}", job.places, str(job.thread)]
        times = (f"{time:,}" for time in (job.arrival, job.start, job.finish, job.latency))
        row = [*place, *times, f"{cycles_to_ms(job.latency, report.frequency_mhz):.4g}"]
        row += [_deadline(job)] * deadlines + [f"{job.preempted:,}"] * stopped
        rows.append(row)
    head = ["job", "model", "steps", "core", "thread", "arrival", "start", "finish", "latency", "ms"]
    head += ["deadline"] * deadlines + ["preempted"] * stopped
    caption = "Times in cycles; latency is finish less arrival"
    box = region("Jobs", "scroll", table(head, rows, left=(0, 1), caption=caption))
    notes = []
    hidden = len(numbers) - len(shown)
    if hidden:
        text = f"and {hidden:,} more jobs (the slowest of all is shown, last); the report as JSON has every job"
        notes.append(element("p", text, class_="note"))
    if len(shown) > _PRINTED:
        text = f"{len(shown) - _PRINTED:,} more rows are not printed; the page on a screen has them."
        notes.append(element("p", text, class_="note print-only"))
    return Section("jobs", "Jobs", joined([box, *notes]))
