"""Files of a run: its trace, its report, the numbers that it computed, pictures of it and of saved traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Annotated

from lstmsim.analysis.report import Report
from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.report.document import Document, Section
from lstmsim.report.styles import SCREEN
from lstmsim.studies.fit.request import fit
from lstmsim.studies.shared.request import Path, Source, takes, wrong_value
from lstmsim.studies.simulate.request import Cores, Drawn, End, Start, TimelineRequest
from lstmsim.studies.simulate.run import Refused, Run, expect, run_of

if TYPE_CHECKING:
    from lstmsim.analysis.explanations.explanation import Explanation
    from lstmsim.analysis.replay import Outputs
    from lstmsim.report.pictures.figures import Picture
    from lstmsim.studies.serve.result import Serving


def save_outputs(outputs: Outputs, path: Path) -> None:
    """Write outputs as `.safetensors`, whole or not at all: a tensor in F64 for each job, and how the numbers came
    about.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from lstmsim import outputs, save_outputs
    >>> numbers = outputs({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}, random_weights=0)
    >>> path = Path(tempfile.mkdtemp(), "h.safetensors")
    >>> save_outputs(numbers, path)
    >>> path.stat().st_size > 3 * 256 * 8
    True
    """
    from lstmsim import __version__
    from lstmsim.analysis import replay as outputs_file
    from lstmsim.analysis.replay import Outputs

    expect(outputs, (Outputs,), "save_outputs", "Outputs, as lstmsim.outputs(run) gives them")
    outputs_file.save_outputs(outputs, path, __version__)


def save_trace(timeline: Timeline | Run | Report, path: Path, *, limit_bytes: int | None = 10**9) -> None:
    """Write a timeline as a trace file, whole or not at all.

    timeline: a timeline, a run, or its report.
    path: its suffix decides: `.json`, `.json.gz`, `.pftrace` (Perfetto), `.csv`, `.csv.gz`, `.vcd`, `.fst` or
    `.kanata`.
    limit_bytes: a file that would be larger is refused (None: no limit).

    >>> import tempfile
    >>> from lstmsim import load_trace, save_trace, trace
    >>> timeline = trace({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]})
    >>> path = f"{tempfile.mkdtemp()}/trace.csv"
    >>> save_trace(timeline, path)
    >>> len(load_trace(path)) == len(timeline)
    True
    """
    from lstmsim.analysis import files as traces

    refuse(wrong_value("limit_bytes", limit_bytes, Annotated[int, Key(low=0)] | None))
    expect(timeline, (Run, Report, Timeline), "save_trace", "a Run or a Timeline, as lstmsim.trace(scenario) gives it")
    traces.save_trace(timeline if isinstance(timeline, Timeline) else timeline.timeline, path, limit_bytes)


def load_trace(path: Path) -> Timeline:
    """Read back a saved trace; `InputError` if the file is not a trace.

    >>> import tempfile
    >>> from lstmsim import load_trace, save_trace, trace
    >>> path = f"{tempfile.mkdtemp()}/trace.json"
    >>> save_trace(trace({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}), path)
    >>> load_trace(path).chip
    'column-npu-16k'
    """
    from lstmsim.analysis import files as traces

    refuse(wrong_value("path", path, Path))
    return traces.load_trace(path)


def save_report(
    result: Run | Source,
    path: Path,
    *,
    trace_path: Path | None = None,
    command: str | None = None,
    device: str | None = None,
    serving: Serving | Refused | None = None,
    explanation: Explanation | None = None,
    sections: Sequence[tuple[str, str | Document]] = (),
    window: tuple[int, int | None] | None = None,
) -> None:
    """Write a run as one self-contained page (`.html`): what ran, where the cycles went, latencies, timeline, input.

    result: the run, or a scenario to simulate.
    path: the page's file.
    trace_path: a trace file that the page shall link to.
    command: how the page came about.
    device: an FPGA that is shown in full; the page always says which of the known FPGAs the chip fits.
    serving: what serving came to, or why that cannot be said.
    explanation: why the run took so long; the page then has the critical path, and a switch for each change.
    sections: further titles, each with a text or a document.
    window: first cycle, and the cycle behind the last (None: the end), of the timeline that is shown; None: all of it.

    >>> import tempfile
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
    >>> save_report(scenario, f"{tempfile.mkdtemp()}/page.html")
    """
    import os

    from lstmsim.studies.serve.result import Serving

    result = run_of(result, "save_report")
    if serving is not None:
        expect(serving, (Serving, Refused), "save_report", "as serving what lstmsim.serving(result) gives")
    if explanation is not None:
        _check_explanation(explanation, result)
    refuse([Mistake("trace_path", "the name is empty")] if trace_path is not None and not os.fspath(trace_path) else [])

    from lstmsim.base.files import whole_file
    from lstmsim.studies.simulate.page.page import report_page

    folder = os.path.dirname(os.path.abspath(path))
    trace_file = None if trace_path is None else os.path.relpath(trace_path, folder).replace(os.sep, "/")
    said = [("Remarks", Document.of("", *result.report.remarks))] if result.report.remarks else []
    if isinstance(serving, Refused):
        said, serving = [*said, ("Serving", Document.of("", serving.to_text()))], None
    page = report_page(
        result,
        trace_file=trace_file,
        fit=_fitting(result, device),
        serving=serving,
        explanation=explanation,
        extra_sections=(*said, *sections),
        command=command,
        window=window,
    )
    with whole_file(path) as file:
        file.write(page)


def _check_explanation(explanation: object, result: Run) -> None:
    """Refuse what is no explanation of the run."""
    from lstmsim.analysis.explanations.explanation import Explanation

    expect(explanation, (Explanation,), "save_report", "as explanation what lstmsim.explain(result) gives")
    assert isinstance(explanation, Explanation)
    if explanation.window is None and explanation.makespan_cycles != result.report.makespan_cycles:
        refuse([Mistake("explanation", "is of another run, which has another makespan")])


def _fitting(result: Run, device: str | None) -> Document:
    """The chip on the device that was asked for, and which of the known ones it fits."""
    from lstmsim.machines.registry import target_of
    from lstmsim.studies.fit.device import published_on
    from lstmsim.studies.fit.fit import fit_summary
    from lstmsim.studies.fit.needs import NO_PARTS
    from lstmsim.studies.fit.report import fit_document

    kind = result.scenario.chip.kind
    if device is None and target_of(kind).hardware() is None:
        return Document.of("", f"{NO_PARTS.format(kind=kind)}: it is not known which devices it fits")
    title, *verdicts = fit_summary(fit(result.scenario)).paragraphs
    fitted = None if device is None else fit(result.scenario, [device])[0]
    shown = Document.of("") if fitted is None else fit_document(fitted, published_on(fitted.device))
    return Document(shown.headline, (*shown.sections, Section.of(*verdicts, title=title)))


@record
class PlotRequest:
    """A timeline, and what is drawn of it."""

    timeline: Annotated[Timeline | Run | Report, Key("A timeline, a run, or its report, which runs again.")]
    path: Annotated[Path | None, Key("The picture's file (.png, .svg or .pdf); None: no file.")] = None
    _: KW_ONLY
    start: Start = None
    end: End = None
    cores: Cores = None
    look: Drawn = SCREEN


@takes(PlotRequest)
def plot(request: PlotRequest) -> Picture:
    """Draw a timeline, `start <= cycle < end`, of all or some cores.

    >>> from lstmsim import plot, run
    >>> plot(run({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]})).caption
    'column-npu-16k: 226 cycles (869 ns), array busy 42.5 %'
    """
    from lstmsim.studies.simulate import picture as plots

    timeline = request.timeline if isinstance(request.timeline, Timeline) else request.timeline.timeline
    window = {"start": request.start, "end": request.end}
    return plots.plot(timeline, request.path, **window, cores=request.cores, look=request.look)


@takes(TimelineRequest)
def timeline(request: TimelineRequest) -> Picture:
    """Draw a saved trace, `start <= cycle < end`, of all or some cores.

    `InputError` if the file is no trace, or if there is no such window or core.

    >>> import tempfile, pathlib, lstmsim
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "trace.csv")
    ...     scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 2}]}
    ...     lstmsim.save_trace(lstmsim.trace(scenario), file)
    ...     timeline(file, start=0, end=100)._repr_png_()[1:4]
    b'PNG'
    """
    window = {"start": request.start, "end": request.end}
    return plot(load_trace(request.trace), request.path, **window, cores=request.cores, look=request.look)
