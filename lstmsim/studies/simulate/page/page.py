"""A run as one web page that can be sent by e-mail: everything is in it, and nothing is loaded from anywhere."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from lstmsim.analysis.files.window import window as cut
from lstmsim.analysis.report import Report
from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError
from lstmsim.base.units import cycles_to_ms, tops
from lstmsim.files.scenario.resolved import loads_again, resolved_text
from lstmsim.model.scenario import Scenario
from lstmsim.report.figures_text import four_digits
from lstmsim.report.html.markup import Markup, Section, element, escaped, joined, link_to, table
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.simulate.page.accounts import accounts_section
from lstmsim.studies.simulate.page.latency import latency_section
from lstmsim.studies.simulate.page.looks import patterns
from lstmsim.studies.simulate.page.serving import serving_section
from lstmsim.studies.simulate.page.style import style_text
from lstmsim.studies.simulate.page.tenants import tenants_section
from lstmsim.studies.simulate.page.timeline import timeline_sections
from lstmsim.studies.simulate.page.wording import answer
from lstmsim.studies.simulate.page.workload import jobs_section, what_ran_section

__all__ = ["RunLike", "report_page"]

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


class RunLike(Protocol):
    """What a page needs of a run; `lstmsim.studies.simulate.run.Run` has it."""

    @property
    def scenario(self) -> Scenario: ...
    @property
    def report(self) -> Report: ...
    @property
    def timeline(self) -> Timeline: ...


def report_page(
    run: RunLike,
    *,
    trace_file: str | None = None,
    fit: str | None = None,
    serving: Serving | None = None,
    extra_sections: Sequence[tuple[str, str]] = (),
    command: str | None = None,
    date: str | None = None,
    window: tuple[int, int | None] | None = None,
) -> str:
    """Make the page of a run, a complete HTML document. Equal runs and arguments give equal text.

    Where the trace of a run is too long to keep, the page says so in place of the timeline.

    run: the run.
    trace_file: the path of the saved trace, as seen from the page's folder.
    fit: the text of the device fit, shown unchanged.
    serving: the run's serving figures.
    extra_sections: pairs (title, text) of further sections, shown unchanged.
    command: the command line of the run.
    date: shown if given; the clock is never asked.
    window: first cycle, and the cycle behind the last (None: the end), of the timeline that is shown; None: all of it.

    >>> from lstmsim.studies.simulate.run import run
    >>> page = report_page(run({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]}))
    >>> page.startswith("<!DOCTYPE html>"), "1,423 cycles" in page, "<script" in page
    (True, True, False)
    """
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


def _timeline(run: RunLike, part: tuple[int, int | None] | None) -> list[Section]:
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
