"""`lstmsim program`."""

from __future__ import annotations

import os

import click

from lstmsim.cli.options import engine_option
from lstmsim.cli.outputs import check_outputs, check_suffix, remark, status, write_json

__all__ = ["command"]


@click.command(name="program", short_help="Run a program that was kept in a file, without its scenario.")
@click.argument("program", type=click.Path())
@engine_option
@click.option("--json", "json_path", metavar="FILE", help="Write the result as JSON; - is standard output.")
@click.option(
    "--trace", "trace_path", metavar="FILE", help="Write what happened; formats as of `lstmsim simulate --trace`."
)
def command(program: str, engine: str, json_path: str | None, trace_path: str | None) -> None:
    """Run the file PROGRAM (.npz) and show what is in it, where its cycles went, and when its tasks finished.

    `lstmsim simulate --program` writes such files. docs/program_format.md says how other programs can.

    \b
    lstmsim simulate scenario.yaml --program lowered.npz
    lstmsim program lowered.npz --engine reference --trace trace.csv
    """
    view = None
    if trace_path is not None:
        from lstmsim.analysis import files as traces

        check_suffix("--trace", trace_path, traces.SUFFIXES)
        view = traces.view_beside(trace_path)
    kept = [view] if view is not None and os.path.isfile(view) else []
    outputs = {"--json": json_path, "--trace": trace_path, "--trace's view": view}
    check_outputs(outputs, inputs=[program], kept=kept)
    with status(f"running {os.path.basename(program)}"):
        from lstmsim.studies.program.run import run_program

        result = run_program(program, engine=engine)
    if trace_path is not None:
        with status(f"writing {trace_path}"):
            from lstmsim.studies.simulate.saving import save_trace

            save_trace(result.timeline, trace_path)
    if json_path is not None:
        write_json(json_path, result.to_dict())
    if json_path != "-":
        click.echo(result.to_text())
    for path in (json_path, trace_path, view):
        if path is not None and path != "-":
            remark(f"{'kept' if path in kept else 'wrote'} {path}")
