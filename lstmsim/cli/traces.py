"""`lstmsim timeline` and `lstmsim program`: files that `simulate` wrote."""

from __future__ import annotations

import os
from typing import Any

import click

from lstmsim.cli.options import (
    Outputs,
    check_outputs,
    check_suffix,
    command,
    json_output,
    say_caption,
    status,
    trace_output,
)
from lstmsim.report.styles import Look
from lstmsim.studies.simulate.request import ProgramRequest, TimelineRequest


@command("timeline", TimelineRequest, Look, left_out=("look",))
def timeline_command(files: Outputs, trace: str, path: str | None, **asked: Any) -> None:
    """Draw the file TRACE that `lstmsim simulate --trace` wrote (.json, .json.gz, .csv or .csv.gz).

    \b
    lstmsim timeline trace.json --from 1000 --to 2000 --cores 0 --out detail.svg
    """
    from lstmsim.report.pictures.figures import SUFFIXES
    from lstmsim.studies.simulate.saving import timeline

    stem = trace[:-3] if trace.lower().endswith(".gz") else trace
    target = path if path is not None else f"{os.path.splitext(stem)[0]}.png"
    check_suffix("--out", target, SUFFIXES)
    check_outputs({"--out": target}, inputs=[trace])
    with status(f"drawing {target}"):
        picture = timeline(trace, target, **asked, look=files.look)
    click.echo(f"wrote {target}")
    say_caption(picture)


@command(
    "program",
    *(
        ProgramRequest,
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
