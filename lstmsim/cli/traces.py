"""`lstmsim timeline` and `lstmsim program`: files that `simulate` wrote."""

from __future__ import annotations

import os

import click

from lstmsim.cli.options import check_outputs, check_suffix, engine_option, json_option, remark, status, write_json


def _core_numbers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Core numbers separated by commas."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of core numbers like 0,2")
    return tuple(dict.fromkeys(int(part) for part in parts))


@click.command(name="timeline", short_help="Draw a saved trace, all of it or a window.")
@click.argument("trace", type=click.Path())
@click.option(
    "--from", "start", metavar="CYCLE", type=click.IntRange(min=0), help="First cycle; default: the beginning."
)
@click.option(
    "--to", "end", metavar="CYCLE", type=click.IntRange(min=1), help="Cycle before which to stop; default: the end."
)
@click.option("--cores", metavar="CORES", callback=_core_numbers, help="Only these cores, like 0,2; default: all.")
@click.option("--out", metavar="FILE", help="Picture to write: .png, .svg or .pdf; default: beside TRACE, as .png.")
def timeline_command(
    trace: str, start: int | None, end: int | None, cores: tuple[int, ...] | None, out: str | None
) -> None:
    """Draw the file TRACE that `lstmsim simulate --trace` wrote (.json, .json.gz, .csv or .csv.gz).

    \b
    lstmsim timeline trace.json --from 1000 --to 2000 --cores 0 --out detail.svg
    """
    from lstmsim.report.pictures.figures import SUFFIXES
    from lstmsim.studies.simulate.saving import timeline

    target = out if out is not None else _picture_name(trace)
    check_suffix("--out", target, SUFFIXES)
    check_outputs({"--out": target}, inputs=[trace])
    with status(f"drawing {target}"):
        timeline(trace, target, start=start, end=end, cores=cores)
    click.echo(f"wrote {target}")


def _picture_name(trace: str) -> str:
    stem = trace[:-3] if trace.lower().endswith(".gz") else trace
    return os.path.splitext(stem)[0] + ".png"


@click.command(name="program", short_help="Run a program that was kept in a file, without its scenario.")
@click.argument("program", type=click.Path())
@engine_option
@json_option()
@click.option(
    "--trace", "trace_path", metavar="FILE", help="Write what happened; formats as of `lstmsim simulate --trace`."
)
def program_command(program: str, engine: str, json_path: str | None, trace_path: str | None) -> None:
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
