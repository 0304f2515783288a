"""Options of a simulation, and of what it keeps: a trace that is drawn, a program that is run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.report.styles import SCREEN, Look
from lstmsim.studies.shared.request import Clock, Engine, Overrides, Path, Source


@record
class SimulateRequest:
    """A scenario, and how it is simulated."""

    scenario: Source
    _: KW_ONLY
    engine: Engine = "fast"
    overrides: Overrides = ()
    clock: Clock = None


def _core_numbers(text: str) -> tuple[int, ...]:
    """Core numbers separated by commas."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part) < 10 for part in parts):
        raise ValueError(f"{text!r} is not a list of core numbers like 0,2")
    return tuple(dict.fromkeys(int(part) for part in parts))


Start = Annotated[int | None, Key("First cycle.", low=0, follows="the beginning", flag="--from", metavar="CYCLE")]
End = Annotated[int | None, Key("Cycle before which to stop.", low=1, follows="the end", flag="--to", metavar="CYCLE")]
Cores = Annotated[
    Sequence[int] | None, Key("Only these cores, like 0,2.", follows="all", metavar="CORES", read=_core_numbers)
]
Drawn = Annotated[Look, Key("How wide the picture is, and what it is made for.")]


@record
class TimelineRequest:
    """A saved trace, and what is drawn of it."""

    trace: Annotated[Path, Key("File of the trace.")]
    path: Annotated[
        Path | None,
        Key(
            "Picture to write: .png, .svg or .pdf.",
            follows="TRACE's name, as .png (in Python no file)",
            flag="--out",
            metavar="FILE",
        ),
    ] = None
    _: KW_ONLY
    start: Start = None
    end: End = None
    cores: Cores = None
    look: Drawn = SCREEN


@record
class ProgramRequest:
    """A program, and how it is run."""

    # what else a program may be, `run_program` says
    program: Annotated[Path | Any, Key("File of the program; in Python also one that was loaded or made.")]
    _: KW_ONLY
    engine: Engine = "fast"
