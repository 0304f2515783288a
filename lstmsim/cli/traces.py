"""`lstmsim timeline` and `lstmsim program`: files that `simulate` wrote."""

from __future__ import annotations

import os
from typing import Annotated

import click

from lstmsim.base.keys import Key
from lstmsim.cli.options import Outputs, check_outputs, check_suffix, command, json_output, status, trace_output
from lstmsim.studies.shared.request import Engine


def _core_numbers(text: str) -> tuple[int, ...]:
    """Core numbers separated by commas."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise ValueError(f"{text!r} is not a list of core numbers like 0,2")
    return tuple(dict.fromkeys(int(part) for part in parts))


class _TimelineRequest:
    trace: Annotated[str, Key("File of the trace.")]
    start: Annotated[
        int | None, Key("First cycle.", "", 0, follows="the beginning", flag="--from", metavar="CYCLE")
    ] = None
    end: Annotated[
        int | None, Key("Cycle before which to stop.", "", 1, follows="the end", flag="--to", metavar="CYCLE")
    ] = None
    cores: Annotated[
        tuple[int, ...] | None, Key("Only these cores, like 0,2.", follows="all", metavar="CORES", read=_core_numbers)
    ] = None
    out: Annotated[
        str | None, Key("Picture to write: .png, .svg or .pdf.", follows="TRACE's name, as .png", metavar="FILE")
    ] = None


@command("timeline", _TimelineRequest)
def timeline_command(
    files: Outputs, trace: str, start: int | None, end: int | None, cores: tuple[int, ...] | None, out: str | None
) -> None:
    """Draw the file TRACE that `lstmsim simulate --trace` wrote (.json, .json.gz, .csv or .csv.gz).

    \b
    lstmsim timeline trace.json --from 1000 --to 2000 --cores 0 --out detail.svg
    """
    from lstmsim.report.pictures.figures import SUFFIXES
    from lstmsim.studies.simulate.saving import timeline

    stem = trace[:-3] if trace.lower().endswith(".gz") else trace
    target = out if out is not None else f"{os.path.splitext(stem)[0]}.png"
    check_suffix("--out", target, SUFFIXES)
    check_outputs({"--out": target}, inputs=[trace])
    with status(f"drawing {target}"):
        timeline(trace, target, start=start, end=end, cores=cores)
    click.echo(f"wrote {target}")


class _ProgramRequest:
    program: Annotated[str, Key("File of the program.")]
    engine: Engine = "fast"


@command(
    "program",
    *(
        _ProgramRequest,
        json_output(),
        trace_output("Write the trace of the run; formats as of `lstmsim simulate --trace`."),
    ),
)
def program_command(files: Outputs, program: str, engine: str) -> None:
    """Run the file PROGRAM (.npz) and show what is in it, where its cycles went, and when its tasks finished.

    `lstmsim simulate --program` writes such files. docs/program_format.md says how other programs can.

    \b
    lstmsim simulate scenario.yaml --program lowered.npz
    lstmsim program lowered.npz --engine reference --trace trace.csv
    """
    with status(f"running {os.path.basename(program)}"):
        from lstmsim.studies.program.run import run_program

        result = run_program(program, engine=engine)
    files.finish(result)
