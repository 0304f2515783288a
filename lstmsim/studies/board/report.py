"""Runs on boards as people and programs read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lstmsim.machines.rtl import Event
from lstmsim.report.document import Document, Section, facts
from lstmsim.report.results import Forms, picked
from lstmsim.studies.board.result import BoardReport
from lstmsim.studies.rtl.report import compared_lines

_SCHEMA = "lstmsim/board-run/1"


def _words(event: Event) -> str:
    return " ".join(map(str, event.fields))


def _verdict(report: BoardReport) -> str:
    if report.faults:
        return "INCOMPLETE"
    return "EQUAL in every admission and finish, and in every bit of h" if report.equal else "DIFFERENT"


def _document(report: BoardReport) -> Document:
    clock = (
        f"{report.cycles:,} cycles, {report.microseconds:,.1f} us at {report.clock_mhz:g} MHz (asked for, not measured)"
    )
    seconds = f"loaded in {report.load_seconds:.1f} s, run and read back in {report.run_seconds:.1f} s"
    lines = "\n".join(compared_lines(report.compared, _words)).split("\n\n")
    kept = f"{len(report.events):,} events kept"
    sent = f"; {report.resent} messages sent again" if report.resent else ""
    return Document.of(
        f"{report.folder} on {report.line}: {_verdict(report)}",
        Section.of(facts(("board", report.board), ("run", f"{clock}; {kept}"), ("line", f"{seconds}{sent}"))),
        "\n".join(report.faults) or None,
        *lines,
        "compared: admissions and finishes of jobs and h, in their cycles; not issues, turns and names of cycles",
    )


def _data(report: BoardReport) -> Mapping[str, Any]:
    """The report as plain data; seconds of the wall are left out."""
    return {
        "schema": _SCHEMA,
        **picked(report, "folder board line clock_mhz cycles microseconds equal faults resent"),
        "events": len(report.events),
        "equal_events": {group: report.compared.equal[group] for group in ("job", "h")},
        "differences": [
            {
                **picked(each, "in=group number cycle"),
                "board": None if each.rtl is None else each.rtl.line,
                "simulated": None if each.simulated is None else each.simulated.line,
            }
            for each in report.compared.differences
        ],
    }


FORMS = Forms(_data, _document)
