"""A run as one web page that can be sent by e-mail: everything is in it, and nothing is loaded from anywhere."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lstmsim.analysis.report import JobReport, Report
from lstmsim.analysis.report_text import planned_grid, reason
from lstmsim.analysis.timeline import window as cut
from lstmsim.base.errors import InputError
from lstmsim.base.units import cycles_to_ms, tops
from lstmsim.files.scenario.written import loads_again, resolved_text
from lstmsim.machines.registry import target_of
from lstmsim.model.figures import CoreFigures
from lstmsim.model.model import Model
from lstmsim.model.scenario import Scenario
from lstmsim.report.figures_text import four_digits
from lstmsim.report.html.markup import Markup, Section, element, escaped, joined, link_to, region, short, table
from lstmsim.report.renderings import html_of
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.simulate.page.sections import accounts_section, latency_section, serving_section, tenants_section
from lstmsim.studies.simulate.page.timeline import patterns, style_text, timeline_sections


def answer(report: Report) -> str:
    """Describe the run in a line: how busy the machine was, and what mainly kept it from more."""
    text = reason(report)
    return f"Utilization {100 * report.utilization:.1f} %. {text[0].upper()}{text[1:]}."


if TYPE_CHECKING:
    from lstmsim.studies.simulate.run import Run

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
    caption = "How the products of a time step are cut: p_m x p_n x p_k parts of rows, columns and K"
    shown = planned_grid(planned, caption, _PLANS, "products; the JSON report has every one")
    return html_of(shown) + element("p", planned.note, class_="note")


def _peak(cores: tuple[CoreFigures, ...], frequency_mhz: float) -> str:
    return f"{tops(sum(core.peak for core in cores), 1, frequency_mhz):.4g} TOPS at most"


def _settings(settings: Mapping[str, int | str]) -> str:
    return ", ".join(
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in settings.items()
    )


def _listed(indexes: list[int]) -> str:
    """Numbers as ranges."""
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


#: A resolved input of more letters is cut: a page that goes by e-mail must stay small.
_INPUT_LIMIT = 400_000

#: No script, no network, no frames: a browser that honours it could not load anything if it were told to.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


#: What opens which traces.
_VIEWERS = {
    "Perfetto": (".json", ".json.gz", ".pftrace"),
    "GTKWave or Surfer": (".vcd", ".fst"),
    "Konata": (".kanata",),
}


def report_page(
    run: Run,
    *,
    trace_file: str | None = None,
    fit: str | None = None,
    serving: Serving | None = None,
    extra_sections: Sequence[tuple[str, str]] = (),
    command: str | None = None,
    date: str | None = None,
    window: tuple[int, int | None] | None = None,
) -> str:
    """Make the page of a run, a complete HTML document. Equal runs and arguments give equal text."""
    report, scenario = run.report, run.scenario
    tenants = [scenario.jobs[job.number].tenant for job in report.jobs]
    parts = [what_ran_section(scenario), accounts_section(report), latency_section(report, tenants)]
    parts += [] if serving is None else [serving_section(serving), tenants_section(serving)]
    parts += [*_timeline(run, window), jobs_section(scenario, report)]
    texts = ([] if fit is None else [("Device fit", fit)]) + list(extra_sections)
    for number, (title, text) in enumerate(texts):
        parts.append(Section(f"more-{number}", title, element("pre", text, tabindex="0")))
    parts += [_origin_section(report, trace_file, command, date), _input_section(scenario)]
    title = f"{scenario.name} on {report.chip}"
    body = [patterns(), _header(title, report, parts), element("main", joined([part.html for part in parts], "\n"))]
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        element("title", f"{title} – lstmsim"),
        f"<style>\n{style_text()}</style>",
    ]
    lines = "\n".join(head)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{lines}\n</head>\n<body>\n{chr(10).join(body)}\n</body>\n</html>\n'
    )


def _header(title: str, report: Report, parts: Sequence[Section]) -> Markup:
    links = [element("a", part.title, href=f"#{part.name}") for part in parts]
    engine = element("p", f"{report.frequency_mhz:g} MHz, simulated cycle by cycle by lstmsim", class_="muted")
    sentence = element("p", answer(report), class_="answer")
    nav = element("nav", joined(links, " "), aria_label="Parts of this page")
    return element("header", element("h1", title), engine, sentence, _figures(report), nav)


def _figures(report: Report) -> Markup:
    duration = cycles_to_ms(report.makespan_cycles, report.frequency_mhz)
    pes = sum(core.peak for core in report.cores)
    peak = tops(pes, 1, report.frequency_mhz)
    count = len(report.cores)
    entries = [
        ("makespan", f"{four_digits(duration)} ms", f"{report.makespan_cycles:,} cycles"),
        ("utilization", f"{100 * report.utilization:.1f} %", "useful multiply-accumulates of all possible"),
        ("throughput", f"{report.tops:.4g} TOPS", f"of {peak:.4g} at most"),
        ("jobs", f"{len(report.jobs):,}", f"{sum(job.macs for job in report.jobs):,} multiply-accumulates"),
        ("latency, p99", f"{four_digits(report.latency_ms.p99)} ms", f"mean {four_digits(report.latency_ms.mean)} ms"),
        ("cores", f"{count:,}", f"{pes:,} multipliers in all"),
    ]
    if report.turned_away:
        count = len(report.turned_away)
        entries.insert(4, ("turned away", f"{count:,}", f"of {count + len(report.jobs):,} jobs"))
    if report.memory_busy_cycles is not None:
        share = 100 * report.memory_busy_cycles / max(1, report.makespan_cycles)
        entries.append(("memory", f"{share:.1f} %", f"at work for {report.memory_busy_cycles:,} cycles"))
    boxes = (
        element("div", element("dt", name), element("dd", value, element("small", more)))
        for name, value, more in entries
    )
    return element("dl", *boxes, class_="figures")


def _timeline(run: Run, part: tuple[int, int | None] | None) -> list[Section]:
    try:
        timeline = run.timeline
    except InputError as error:
        return [Section("timeline", "Timeline", element("p", f"No timeline: {error}.", class_="note"))]
    return timeline_sections(timeline if part is None else cut(timeline, *part), run.report.words)


def _input_section(scenario: Scenario) -> Section:
    text = resolved_text(scenario)
    note = element("p", "Every key with its value, names and defaults resolved. ", class_="note")
    if loads_again(scenario):
        what = "Every key with its value, names and defaults resolved. Saved as a file, it runs again: "
        note = element("p", what, element("code", "lstmsim simulate FILE"), class_="note")
    if len(text) > _INPUT_LIMIT:
        text = text[:_INPUT_LIMIT]
        note = element("p", "Names and defaults resolved; too long for a page, so its end is cut off.", class_="note")
    return Section("input", "Resolved input", note + element("pre", text, id="resolved-input", tabindex="0"))


def _origin_section(report: Report, trace_file: str | None, command: str | None, date: str | None) -> Section:
    # Imported late: modules do not import the package itself while they are loaded.
    from lstmsim import __version__

    rows = [["lstmsim", __version__], ["Python", platform.python_version()], ["numpy", np.__version__]]
    rows.append(["engine", report.engine])
    if command is not None:
        rows.append(["command", element("code", command)])
    if date is not None:
        rows.append(["date", date])
    if trace_file is not None:
        link = element("a", trace_file, href=link_to(trace_file))
        viewer = next((name for name, suffixes in _VIEWERS.items() if trace_file.lower().endswith(suffixes)), None)
        rows.append(["trace", link + (f" (for {viewer})" if viewer else "")])
    return Section("origin", "How this was made", table(["what", "which"], rows, left=(0, 1)))
