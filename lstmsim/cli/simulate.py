"""`lstmsim simulate`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from lstmsim.cli.outputs import check_outputs, check_suffix, progress, remark, status
from lstmsim.errors import InputError, Mistake

if TYPE_CHECKING:
    from lstmsim.api import Run
    from lstmsim.replay.check import Checked

__all__ = ["ENGINES", "command"]

#: Named here too, because asking `lstmsim.engines` would import numpy for a help text.
ENGINES = ("fast", "reference")


@click.command(name="simulate", short_help="Simulate a scenario: how busy is the chip, and why not busier?")
@click.argument("scenario", type=click.Path())
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="fast",
    show_default=True,
    help="Both give the same numbers.",
)
@click.option(
    "--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value of the scenario; repeatable."
)
@click.option("--json", "json_path", metavar="FILE", help="Write the report as JSON; - is standard output.")
@click.option(
    "--trace",
    "trace_path",
    metavar="FILE",
    help="Write what happened: .json, .json.gz (Perfetto), .csv or .vcd (and, unless there is one, a GTKWave view of "
    "it beside it, as .gtkw).",
)
@click.option("--timeline", "timeline_path", metavar="FILE", help="Draw what happened: .png, .svg or .pdf.")
@click.option("--check-numerics", is_flag=True, help="Execute what was simulated on the models' weights and compare.")
@click.option(
    "--random-weights",
    metavar="SEED",
    type=click.IntRange(0, 2**32 - 1),
    help="With --check-numerics: draw weights for models that have none.",
)
def command(
    scenario: str,
    engine: str,
    overrides: tuple[str, ...],
    json_path: str | None,
    trace_path: str | None,
    timeline_path: str | None,
    check_numerics: bool,
    random_weights: int | None,
) -> None:
    """Simulate the file SCENARIO and show how busy the chip was, why not busier, and when each job finished.

    \b
    lstmsim simulate scenario.yaml --timeline timeline.png
    lstmsim simulate scenario.yaml --set chip.cores.0.ep=16 --set jobs.0.steps=50
    lstmsim simulate scenario.yaml --check-numerics --random-weights 0
    """
    views = _check(scenario, json_path, trace_path, timeline_path)
    if random_weights is not None and not check_numerics:
        raise InputError(Mistake("--random-weights", "only with --check-numerics: no other number depends on weights"))
    with status(f"simulating {os.path.basename(scenario)}"):
        from lstmsim.api import run

        result = run(scenario, engine=engine, overrides=overrides)
        report = result.report
    checks = None
    if check_numerics:
        with progress("executing the trace") as show:
            from lstmsim.api import check_numerics as check

            checks = check(result, random_weights=random_weights, progress=show)
    written = _write(result, checks, json_path, trace_path, timeline_path)
    if json_path != "-":
        from lstmsim.metrics.report_text import report_text

        click.echo(report_text(report))
        if checks is not None:
            from lstmsim.replay.check_text import checks_text

            click.echo("\n" + checks_text(checks, result.scenario.precision))
    for path in written:
        remark(f"wrote {path}")
    for path, kept in views.items():
        remark(f"{'kept' if kept else 'wrote'} {path}")


def _check(
    scenario: str, json_path: str | None, trace_path: str | None, timeline_path: str | None
) -> Mapping[str, bool]:
    """Refuse outputs that cannot be written before any time is spent; the views beside them, and whether they stay."""
    view = None
    if trace_path is not None:
        from lstmsim.formats import traces

        check_suffix("--trace", trace_path, traces.SUFFIXES)
        view = traces.view_beside(trace_path)
    if timeline_path is not None:
        from lstmsim.plots.timeline import SUFFIXES

        check_suffix("--timeline", timeline_path, SUFFIXES)
    outputs = {"--json": json_path, "--trace": trace_path, "--timeline": timeline_path, "--trace's view": view}
    views = {} if view is None else {view: os.path.isfile(view)}
    check_outputs(outputs, inputs=[scenario], kept=[path for path, kept in views.items() if kept])
    return views


def _write(
    result: Run,
    checks: tuple[Checked, ...] | None,
    json_path: str | None,
    trace_path: str | None,
    timeline_path: str | None,
) -> list[str]:
    """Write the files that were asked for; return their names, standard output left out."""
    from lstmsim import api
    from lstmsim.formats.files import whole_file
    from lstmsim.metrics.report_text import report_json

    if trace_path is not None:
        with status(f"writing {trace_path}"):
            api.save_trace(result.timeline, trace_path)
    if timeline_path is not None:
        with status(f"drawing {timeline_path}"):
            api.plot(result.timeline, timeline_path)
    if json_path is not None:
        content = report_json(result.report)
        if checks is not None:
            from lstmsim.replay.check_text import checks_json

            content["numerics"] = checks_json(checks)
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        if json_path == "-":
            click.echo(text, nl=False)
        else:
            with whole_file(json_path) as file:
                file.write(text)
    return [path for path in (json_path, trace_path, timeline_path) if path is not None and path != "-"]
