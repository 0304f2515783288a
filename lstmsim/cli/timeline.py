"""`lstmsim timeline`."""

from __future__ import annotations

import os

import click

from lstmsim.cli.outputs import check_outputs, check_suffix, status

__all__ = ["command"]


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
def command(trace: str, start: int | None, end: int | None, cores: tuple[int, ...] | None, out: str | None) -> None:
    """Draw the file TRACE that `lstmsim simulate --trace` wrote (.json, .json.gz, .csv or .csv.gz).

    \b
    lstmsim timeline trace.json --from 1000 --to 2000 --cores 0 --out detail.svg
    """
    from lstmsim.report.pictures.figures import SUFFIXES
    from lstmsim.studies.simulate.drawing import timeline

    target = out if out is not None else _picture_name(trace)
    check_suffix("--out", target, SUFFIXES)
    check_outputs({"--out": target}, inputs=[trace])
    with status(f"drawing {target}"):
        timeline(trace, target, start=start, end=end, cores=cores)
    click.echo(f"wrote {target}")


def _picture_name(trace: str) -> str:
    stem = trace[:-3] if trace.lower().endswith(".gz") else trace
    return os.path.splitext(stem)[0] + ".png"
