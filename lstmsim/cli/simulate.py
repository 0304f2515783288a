"""`lstmsim simulate`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from lstmsim.base.errors import InputError, Mistake
from lstmsim.cli.options import (
    check_outputs,
    check_suffix,
    engine_option,
    inputs_of,
    json_option,
    overrides_option,
    progress,
    remark,
    status,
    write_json,
)

if TYPE_CHECKING:
    from lstmsim.analysis.explanations.explanation import Explanation
    from lstmsim.analysis.replay import Checked, Outputs
    from lstmsim.analysis.timeline import Timeline
    from lstmsim.studies.serve.result import Serving
    from lstmsim.studies.simulate.run import Refused, Run

#: First cycle, and the cycle behind the last; None: the end.
Window = tuple[int, int | None]


@click.command(name="simulate", short_help="Simulate a scenario: how busy is the chip, and why not busier?")
@click.argument("scenario", type=click.Path())
@engine_option
@overrides_option
@json_option("the report")
@click.option(
    "--trace",
    "trace_path",
    metavar="FILE",
    help="Write what happened: .json, .json.gz, .pftrace (Perfetto), .csv, .csv.gz, .kanata (Konata), .fst or .vcd "
    "(both: and, unless there is one, a GTKWave view of it beside it, as .gtkw).",
)
@click.option(
    "--trace-window",
    metavar="A:B",
    help="Only cycles A to B, B left out, in the trace, the timeline and the page's timeline.",
)
@click.option("--report", "report_path", metavar="FILE", help="Write a page with everything about the run: .html.")
@click.option("--device", metavar="NAME", help="With --report: does the chip fit that FPGA?")
@click.option(
    "--serving", "with_serving", is_flag=True, help="Show rates, latencies with intervals, queues; by tenant."
)
@click.option("--jobs", is_flag=True, help="Show a row for each job, also of many (requests, more than 40 jobs).")
@click.option(
    "--explain",
    is_flag=True,
    help="First of all: why not 100 %, what changes and pairs would help; slowest requests, critical path.",
)
@click.option("--glossary", is_flag=True, help="End with a sentence for each word of the report.")
@click.option("--timeline", "timeline_path", metavar="FILE", help="Draw what happened: .png, .svg or .pdf.")
@click.option(
    "--program", "program_path", metavar="FILE", help="Keep the lowered program, for `lstmsim program`: .npz."
)
@click.option("--check-numerics", is_flag=True, help="Execute what was simulated on the models' weights and compare.")
@click.option(
    "--outputs",
    "outputs_path",
    metavar="FILE",
    help="Execute what was simulated and write what each job computed: .safetensors, a tensor [steps, outputs] under "
    "its name; float64 unless the scenario has a precision.",
)
@click.option(
    "--random-weights",
    metavar="SEED",
    type=click.IntRange(0, 2**32 - 1),
    help="With --check-numerics and --outputs: draw weights for models that have none.",
)
def simulate_command(
    scenario: str,
    engine: str,
    overrides: tuple[str, ...],
    json_path: str | None,
    trace_path: str | None,
    trace_window: str | None,
    report_path: str | None,
    device: str | None,
    with_serving: bool,
    jobs: bool,
    explain: bool,
    glossary: bool,
    timeline_path: str | None,
    program_path: str | None,
    check_numerics: bool,
    outputs_path: str | None,
    random_weights: int | None,
) -> None:
    """Simulate the file SCENARIO and show how busy the chip was, why not busier, and when each job finished.

    \b
    lstmsim simulate scenario.yaml --timeline timeline.png
    lstmsim simulate scenario.yaml --set chip.cores.0.ep=16 --set jobs.0.steps=50
    lstmsim simulate scenario.yaml --check-numerics --random-weights 0
    lstmsim simulate scenario.yaml --outputs h.safetensors
    """
    others = {"--report": report_path, "--outputs": outputs_path, "--program": program_path}
    views = _check(inputs_of(scenario, overrides, [device]), json_path, trace_path, timeline_path, others)
    if device is not None:
        _check_device(device, report_path)
    window = _window(trace_window, alone=(trace_path, timeline_path, report_path) == (None, None, None))
    if random_weights is not None and not check_numerics and outputs_path is None:
        text = "only with --check-numerics or --outputs: no other number depends on weights"
        raise InputError(Mistake("--random-weights", text))
    with status(f"simulating {os.path.basename(scenario)}"):
        from lstmsim.studies.simulate.run import run

        result = run(scenario, engine=engine, overrides=overrides)
        if outputs_path is not None:
            _check_outputs(result)
        _ = result.report  # it takes the time of the simulation
    checks = _checked(result, random_weights) if check_numerics else None
    computed = None if outputs_path is None else _outputs(result, random_weights, checks)
    reasons = _explanation(result) if explain else None
    served = _served(result) if with_serving else None
    written = _write(result, checks, reasons, served, json_path, trace_path, timeline_path, window)
    if report_path is not None:
        with status(f"writing {report_path}"):
            _page(result, reasons, report_path, trace_path, device, served, window)
        written.append(report_path)
    if computed is not None and outputs_path is not None:
        _save_outputs(computed, outputs_path)
        written.append(outputs_path)
    if program_path is not None:
        written.append(_save_program(result, program_path))
    if json_path != "-":
        _show(result, checks, reasons, served, jobs, glossary)
    _remark(result, written, views)


def _remark(result: Run, written: Iterable[str], views: Mapping[str, bool]) -> None:
    """Say on standard error what is to be said of the chip and the files."""
    for text in result.report.remarks:
        remark(text)
    for path in written:
        remark(f"wrote {path}")
    for path, kept in views.items():
        remark(f"{'kept' if kept else 'wrote'} {path}")


def _checked(result: Run, random_weights: int | None) -> tuple[Checked, ...]:
    with progress("executing the trace") as show:
        from lstmsim.studies.simulate.run import check_numerics

        return check_numerics(result, random_weights=random_weights, progress=show)


def _check_outputs(result: Run) -> None:
    """Refuse outputs that no file could hold, before anything is executed."""
    from lstmsim.analysis.replay import check_names, check_size

    check_size(result.scenario)
    check_names(result.scenario)


def _outputs(result: Run, random_weights: int | None, checks: tuple[Checked, ...] | None) -> Outputs:
    with progress("executing the trace") as show:
        from lstmsim.studies.simulate.run import outputs

        return outputs(result, random_weights=random_weights, checks=checks, progress=show)


def _save_outputs(computed: Outputs, path: str) -> None:
    """Write the outputs, and say which jobs have none."""
    from lstmsim.model.numerics.jobs import some_of
    from lstmsim.studies.simulate.saving import save_outputs

    with status(f"writing {path}"):
        save_outputs(computed, path)
    if computed.turned_away:
        remark(f"rejected, without a tensor in {path}: {some_of(computed.turned_away)}")


def _save_program(result: Run, path: str) -> str:
    from lstmsim.studies.program.run import save_program

    with status(f"writing {path}"):
        save_program(result, path)
    return path


def _check_device(name: str, report_path: str | None) -> None:
    """Refuse a device that is not known, before anything is run."""
    from lstmsim.studies.fit.device import device

    if report_path is None:
        raise InputError(Mistake("--device", "only with --report; `lstmsim fit` shows it on its own"))
    device(name)


def _page(
    result: Run,
    reasons: Explanation | None,
    report_path: str,
    trace_path: str | None,
    device: str | None,
    served: Serving | Refused | None,
    window: Window | None,
) -> None:
    """Write the page about the run, with what else was asked for."""
    from lstmsim.studies.simulate.saving import save_report

    sections = []
    if reasons is not None:
        from lstmsim.analysis.explanations.text import explain_text

        sections.append(("Why not 100 %", explain_text(reasons)))
    line = shlex.join(["lstmsim", *sys.argv[1:]])
    save_report(
        result,
        report_path,
        trace_path=trace_path,
        command=line,
        device=device,
        serving=served,
        sections=sections,
        window=window,
    )


def _served(result: Run) -> Serving | Refused:
    from lstmsim.studies.simulate.run import serving_or_refusal

    return serving_or_refusal(result)


def _explanation(result: Run) -> Explanation:
    from lstmsim.studies.simulate.run import explain

    with progress("simulating alternatives") as show:
        return explain(result, progress=show)


def _show(
    result: Run,
    checks: tuple[Checked, ...] | None,
    reasons: Explanation | None,
    served: Serving | Refused | None,
    jobs: bool,
    glossary: bool,
) -> None:
    """Print the report and what else was asked for on standard output; reasons stand first."""
    from lstmsim.analysis.report_text import report_text

    parts = []
    if reasons is not None:
        from lstmsim.analysis.explanations.text import explain_text

        parts.append(explain_text(reasons))
    parts.append(report_text(result.report, jobs))
    if checks is not None:
        from lstmsim.analysis.replay import checks_document
        from lstmsim.report.renderings import text as rendered

        rejected = len(result.scenario.jobs) - len(checks)
        parts.append(rendered(checks_document(checks, result.scenario.precision, rejected)))
    if served is not None:
        parts.append(served.to_text())
    text = "\n\n".join(parts)
    click.echo(text)
    if glossary:
        from lstmsim.analysis.explanations.text import glossary as words

        click.echo("\n" + words(text, result.report.words))


def _check(
    inputs: Iterable[str],
    json_path: str | None,
    trace_path: str | None,
    timeline_path: str | None,
    others: Mapping[str, str | None],
) -> Mapping[str, bool]:
    """Refuse outputs that cannot be written; give the views beside them, and whether these stay."""
    view = None
    check_suffix("--report", others["--report"], (".html",))
    check_suffix("--outputs", others["--outputs"], (".safetensors",))
    check_suffix("--program", others["--program"], (".npz",))
    if trace_path is not None:
        from lstmsim.analysis import files as traces

        check_suffix("--trace", trace_path, traces.SUFFIXES)
        view = traces.view_beside(trace_path)
    if timeline_path is not None:
        from lstmsim.report.pictures.figures import SUFFIXES

        check_suffix("--timeline", timeline_path, SUFFIXES)
    outputs = {"--json": json_path, "--trace": trace_path, "--timeline": timeline_path, "--trace's view": view}
    outputs |= others
    views = {} if view is None else {view: os.path.isfile(view)}
    check_outputs(outputs, inputs=inputs, kept=[path for path, kept in views.items() if kept])
    return views


def _window(text: str | None, alone: bool) -> Window | None:
    """Read the window that was asked for; a mistake in the text is told at once."""
    if text is None:
        return None
    if alone:
        told = "only with --trace, --timeline or --report: nothing else shows single cycles"
        raise InputError(Mistake("--trace-window", told))
    from lstmsim.analysis.timeline import parse_window

    return parse_window(text)


def _cut(timeline: Timeline, wanted: Window | None) -> Timeline:
    """Give the part of a timeline that was asked for."""
    if wanted is None:
        return timeline
    from lstmsim.analysis.timeline import window

    return window(timeline, *wanted)


def _write(
    result: Run,
    checks: tuple[Checked, ...] | None,
    reasons: Explanation | None,
    served: Serving | Refused | None,
    json_path: str | None,
    trace_path: str | None,
    timeline_path: str | None,
    window: Window | None,
) -> list[str]:
    """Write the files that were asked for; return their names, standard output left out."""
    if trace_path is not None:
        with status(f"writing {trace_path}"):
            from lstmsim.studies.simulate.saving import save_trace

            save_trace(_cut(result.timeline, window), trace_path)
    if timeline_path is not None:
        with status(f"drawing {timeline_path}"):
            from lstmsim.studies.simulate.saving import plot

            plot(_cut(result.timeline, window), timeline_path)
    if json_path is not None:
        content = result.to_dict()
        if checks is not None:
            from lstmsim.analysis.replay import checks_json

            content["numerics"] = checks_json(checks)
        if served is not None:
            content["serving"] = served.to_dict()
        if reasons is not None:
            content["explanation"] = reasons.to_dict()
        write_json(json_path, content)
    return [path for path in (json_path, trace_path, timeline_path) if path is not None and path != "-"]
