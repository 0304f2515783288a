"""A run as one web page that can be sent by e-mail: everything is in it, and nothing is loaded from anywhere."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lstmsim.analysis import report_text
from lstmsim.analysis.explanations.explanation import Explanation
from lstmsim.analysis.explanations.text import document as explained
from lstmsim.analysis.report import JobReport, Report
from lstmsim.analysis.spans import use_over_time
from lstmsim.analysis.timeline import window as cut
from lstmsim.base.errors import InputError
from lstmsim.base.units import cycles_to_ms, tops
from lstmsim.files.scenario.written import loads_again, resolved_text
from lstmsim.machines.registry import target_of
from lstmsim.model.model import Model
from lstmsim.model.scenario import Scenario
from lstmsim.report.document import Document, Grid, grid
from lstmsim.report.figures_text import four_digits
from lstmsim.report.html.markup import Markup, Section, element, joined, link_to, short
from lstmsim.report.page.frame import linked, page, shown
from lstmsim.report.renderings import html
from lstmsim.report.results import picked
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.simulate.page import sections
from lstmsim.studies.simulate.page.explorer import explorer, left_out_text, path_of
from lstmsim.studies.simulate.page.looks import look_rules, patterns
from lstmsim.studies.simulate.page.timeline import timeline_sections

if TYPE_CHECKING:
    from lstmsim.studies.simulate.run import Run

#: The scripts of the timeline.
_SCRIPTS = [Path(__file__).with_name(name) for name in ("spans.js", "view.js", "panel.js")]
#: More jobs than this are cut with a count; more than `_PRINTED` are not printed on paper.
_JOBS, _PRINTED = 1000, 40
_MODELS, _LAYERS, _PLANS = 40, 6, 100
#: A resolved input of more letters is cut: a page that goes by e-mail must stay small.
_INPUT_LIMIT = 400_000
_USEFUL = "useful multiply-accumulates of all possible"
#: What opens which traces.
_VIEWERS = {
    "Perfetto": (".json", ".json.gz", ".pftrace"),
    "GTKWave or Surfer": (".vcd", ".fst"),
    "Konata": (".kanata",),
}


def _what_ran(scenario: Scenario) -> Section:
    """The chip's cores, what they share, and the models, with names and defaults resolved."""
    target, chip = target_of(scenario.chip.kind), scenario.chip
    planned = target.planned(chip, scenario.jobs)
    title = "How the products of a time step are cut: p_m x p_n x p_k parts of rows, columns and K"
    more = "products; the JSON report has every one"
    content = (
        _cores(scenario),
        " ".join((*target.shared_parts(chip, scenario.jobs), *target.kernels(chip, scenario.jobs))),
        None if planned is None else report_text.planned_grid(planned, title, _PLANS, more),
        None if planned is None else planned.note,
        _models(scenario),
    )
    return Section("ran", "What ran", shown(*content))


def _cores(scenario: Scenario) -> Grid:
    chip = scenario.chip
    by_look: dict[tuple[tuple[tuple[str, int | str], ...], ...], list[int]] = {}
    for index, core in enumerate(chip.core_figures):
        by_look.setdefault((tuple(core.columns.items()), tuple(core.settings.items())), []).append(index)
    sizes = tuple(dict.fromkeys(name for columns, _ in by_look for name, _ in columns))
    rows = []
    for (columns, settings), indexes in by_look.items():
        said = (f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in settings)
        rows.append([_ranges(indexes), *map(dict(columns).get, sizes), ", ".join(said)])
    peak = tops(sum(core.peak for core in chip.core_figures), 1, chip.frequency_mhz)
    title = f"Chip {chip.name}: a {target_of(chip.kind).title} at {chip.frequency_mhz:g} MHz, {peak:.4g} TOPS at most"
    return grid(["<cores", *sizes, "<settings"], rows, title)


def _ranges(indexes: list[int]) -> str:
    """Numbers as ranges: those that follow each other are as far from their places."""
    runs = (list(run) for _, run in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0]))
    return ", ".join(str(run[0][1]) if len(run) == 1 else f"{run[0][1]}–{run[-1][1]}" for run in runs)


def _models(scenario: Scenario) -> Grid:
    by_model: dict[tuple[str, str], list[int]] = {}
    for job in scenario.jobs:
        entry = by_model.setdefault((short(job.model.name), _layers(job.model)), [0, job.steps, job.steps, 0])
        entry[:] = [entry[0] + 1, min(entry[1], job.steps), max(entry[2], job.steps), entry[3] + job.macs]
    rows = [
        [*key, jobs, f"{least:,}" if least == most else f"{least:,}–{most:,}", macs]
        for key, (jobs, least, most, macs) in by_model.items()
    ]
    head = ["<model", "<layers", "jobs", "steps", "multiply-accumulates"]
    return grid(head, rows, "Models", limit=_MODELS, more="models, in the resolved input")


def _layers(model: Model) -> str:
    texts = []
    for layer in model.layers[:_LAYERS]:
        more = " bidirectional" if layer.bidirectional else " in reverse" if layer.reverse else ""
        more += f" projected to {layer.projection}" if layer.projection is not None else ""
        texts.append(f"{layer.cell.name} {layer.hidden} over {layer.input}{more}")
    hidden = len(model.layers) - len(texts)
    return "; ".join([*texts, *[f"{hidden} more layers"] * bool(hidden)])


def _jobs_section(scenario: Scenario, report: Report) -> Section:
    """When and where each job ran; long lists can be scrolled and are cut with a count."""
    some = report_text.shown_jobs(report, _JOBS)
    deadlines = any(job.deadline is not None for job in report.jobs)
    stopped = any(job.preempted for job in report.jobs)

    def row(job: JobReport) -> list[Any]:
        asked = scenario.jobs[job.number]
        name = element("span", short(job.name), id=f"job-{job.number}")
        due = None if job.deadline is None else f"{job.deadline:,}, {'missed' if job.missed else 'met'}"
        more = [*[due] * deadlines, *[job.preempted] * stopped]
        return [name, short(asked.model.name, 28), asked.steps, *report_text.job_cells(report, job), *more]

    head = ["<job", "<model", "steps", *report_text.job_columns(report)]
    head += [*["deadline"] * deadlines, *["preempted"] * stopped]
    jobs = grid(head, map(row, some), "Times in cycles; latency is finish less arrival")
    hidden, unprinted = len(report.jobs) - len(some), len(some) - _PRINTED
    cut_off = f"and {hidden:,} more jobs (the slowest of all is shown, last); the report as JSON has every job"
    screen = f"{unprinted:,} more rows are not printed; the page on a screen has them."
    paper = element("p", screen, class_="note print-only") if unprinted > 0 else None
    return Section("jobs", "Jobs", shown(jobs, cut_off if hidden else None, paper))


def report_page(
    run: Run,
    *,
    trace_file: str | None = None,
    fit: Document | None = None,
    serving: Serving | None = None,
    explanation: Explanation | None = None,
    extra_sections: Sequence[tuple[str, str | Document]] = (),
    command: str | None = None,
    window: tuple[int, int | None] | None = None,
) -> str:
    """Make the page of a run, a complete HTML document. Equal runs and arguments give equal text."""
    report, scenario = run.report, run.scenario
    tenants = [scenario.jobs[job.number].tenant for job in report.jobs]
    drawn, data = _timeline(run, explanation, window)
    parts = [sections.accounts_section(report), *drawn]
    if explanation is not None:
        parts += [Section("why", "Why not 100 %", Markup(html(explained(explanation)))), _WHAT_IF]
        data["what-if"] = picked(explanation, "utilization what_if")
    # where nobody is served there is no latency
    parts += [sections.latency_section(report, tenants)] if report.jobs else []
    parts += [] if serving is None else [sections.serving_section(serving), sections.tenants_section(serving)]
    parts += [_jobs_section(scenario, report), _what_ran(scenario)]
    more = [*([] if fit is None else [("Device fit", fit)]), *extra_sections]
    for number, (title, said) in enumerate(more):
        # a text of others may be laid out by spaces
        content = element("pre", said, tabindex="0") if isinstance(said, str) else Markup(html(said))
        parts.append(Section(f"more-{number}", title, content))
    parts += [_origin_section(report, trace_file, command), _input_section(scenario)]
    title, scripts = f"{scenario.name} on {report.chip}", _SCRIPTS if data else ()
    return page(title, _header(title, report) + patterns(), parts, style=look_rules(), scripts=scripts, data=data)


_NO_SCRIPTS = "A browser with scripts has a switch here for each change. The tables above have all of them."
_WHAT_IF = Section("what-if", "What if", element("div", shown(_NO_SCRIPTS), id="switches"))


def _timeline(
    run: Run, explanation: Explanation | None, window: tuple[int, int | None] | None
) -> tuple[list[Section], dict[str, Any]]:
    """Make the sections on the timeline, and what its scripts read; neither where the trace is too long to keep."""
    try:
        whole = run.timeline
    except InputError as error:
        return [Section("timeline", "Timeline", shown(f"No timeline: {error}."))], {}
    timeline, words = whole if window is None else cut(whole, *window), run.report.words
    # only a part was explained where the whole is too long
    path = (None, None) if explanation is None or explanation.window is not None else path_of(run, words)
    use = use_over_time(timeline)
    data = explorer(timeline, use, words, *path)
    return timeline_sections(timeline, use, words, left_out_text(data)), {"timeline": data}


def _header(title: str, report: Report) -> Markup:
    engine = element("p", f"{report.frequency_mhz:g} MHz, simulated cycle by cycle by lstmsim", class_="muted")
    stamps = [element("details", element("summary", each.line), element("p", each.text)) for each in report.stamps]
    main = report_text.main_loss(report)
    name = re.compile(rf"(?<= )({re.escape(main)})(?= \()")
    sentence = element("p", linked(report_text.answer(report), name, sections.loss_id(main)), class_="answer")
    return joined([element("h1", title), engine, sentence, _figures(report), *stamps])


def _figures(report: Report) -> Markup:
    duration, cores = cycles_to_ms(report.makespan_cycles, report.frequency_mhz), len(report.cores)
    pes, latency = sum(core.peak for core in report.cores), report.latency_ms
    late = "p99" if len(report.jobs) >= sections.ENOUGH["p99"] else "max"
    last = max(report_text.shown_jobs(report, _JOBS), key=lambda job: job.finish, default=None)
    end = f"job-{last.number}" if last is not None and last.finish == report.makespan_cycles else "jobs"
    # of each figure, where its rows are
    entries = [
        ("makespan", f"{four_digits(duration)} ms", f"{report.makespan_cycles:,} cycles", end),
        ("utilization", f"{100 * report.utilization:.1f} %", _USEFUL, sections.loss_id("useful")),
        ("throughput", f"{report.tops:.4g} TOPS", f"of {tops(pes, 1, report.frequency_mhz):.4g} at most", "ran"),
        ("jobs", f"{len(report.jobs):,}", f"{sum(job.macs for job in report.jobs):,} multiply-accumulates", "jobs"),
        (
            f"latency, {late}",
            f"{four_digits(getattr(latency, late))} ms",
            f"mean {four_digits(latency.mean)} ms",
            "latency",
        ),
        ("cores", f"{cores:,}", f"{pes:,} multipliers in all", "ran"),
    ]
    if report.rejected:
        count = len(report.rejected)
        entries.insert(4, ("rejected", f"{count:,}", f"of {count + len(report.jobs):,} jobs", "jobs"))
    if report.memory_busy_cycles is not None:
        share = 100 * report.memory_busy_cycles / max(1, report.makespan_cycles)
        entries.append(("memory", f"{share:.1f} %", f"at work for {report.memory_busy_cycles:,} cycles", "timeline"))
    boxes = (
        element("div", element("dt", name), element("dd", element("a", value, href=f"#{rows}"), element("small", more)))
        for name, value, more, rows in entries
    )
    return element("dl", *boxes, class_="figures")


def _input_section(scenario: Scenario) -> Section:
    text, said = resolved_text(scenario), "Every key with its value, names and defaults resolved. "
    note = element("p", said, class_="note")
    if loads_again(scenario):
        again = element("code", "lstmsim simulate FILE")
        note = element("p", f"{said}Saved as a file, it runs again: ", again, class_="note")
    if len(text) > _INPUT_LIMIT:
        text = text[:_INPUT_LIMIT]
        note = shown("Names and defaults resolved; too long for a page, so its end is cut off.")
    return Section("input", "Resolved input", note + element("pre", text, id="resolved-input", tabindex="0"))


def _origin_section(report: Report, trace_file: str | None, command: str | None) -> Section:
    # Imported late: modules do not import the package itself while they are loaded.
    from lstmsim import __version__

    rows = [["lstmsim", __version__], ["Python", platform.python_version()], ["numpy", np.__version__]]
    rows.append(["engine", report.engine])
    rows += [] if command is None else [["command", element("code", command)]]
    if trace_file is not None:
        link = element("a", trace_file, href=link_to(trace_file))
        viewer = next((name for name, suffixes in _VIEWERS.items() if trace_file.lower().endswith(suffixes)), None)
        rows.append(["trace", link + (f" (for {viewer})" if viewer else "")])
    return Section("origin", "How this was made", shown(grid(["<what", "<which"], rows)))
