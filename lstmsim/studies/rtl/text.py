"""Generated hardware as text, as plain data and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lstmsim.report.results import Forms
from lstmsim.studies.rtl.comparison import GROUPS, Difference
from lstmsim.studies.rtl.comparison_text import compared_lines, difference_lines, event_words
from lstmsim.studies.rtl.synthesis_result import synthesis_json, synthesis_lines

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event
    from lstmsim.studies.rtl.run import RtlReport

__all__ = ["FORMS", "SCHEMA"]

SCHEMA = "lstmsim/rtl/1"


def rtl_text(report: RtlReport) -> str:
    """Say what was written, and what the comparison came to."""
    run = report.run
    size = f"{len(report.written.written)} files in {report.folder}"
    with_what = "with all numbers" if report.with_numbers else "cycles only: no numbers, no h"
    if report.deep:
        with_what += ", adapted sums and states among them"
    lines = [f"{run.scenario.name} on {run.scenario.chip.name} as RTL: {size}, {with_what}"]
    lines.append(f"lstmsim ({run.engine}): {run.report.makespan_cycles:,} cycles, {len(report.events):,} events")
    lines += _verified_lines(report)
    if report.synthesis is not None:
        lines += ["", *synthesis_lines(run.scenario, report.synthesis)]
    return "\n".join(lines)


def _verified_lines(report: RtlReport) -> list[str]:
    verified = report.verified
    if verified is None:
        return ["not simulated: --verify does, and compares"]
    times = f"compiled in {verified.compile_seconds:.1f} s, run in {verified.run_seconds:.1f} s"
    lines = [f"{verified.simulator.version}: {len(verified.log):,} events; {times}", ""]
    lines += compared_lines(verified.compared, lambda event: report.hardware.words(report.design, event))
    if report.unexercised:
        lines += ["", "this scenario never had, so nothing is shown of:", *(f"  {each}" for each in report.unexercised)]
    return [*lines, "", _verdict(report) if verified.equal else "DIFFERENT"]


def _verdict(report: RtlReport) -> str:
    """What is equal."""
    if not report.with_numbers:
        return "EQUAL in every cycle"
    where = "of h, adapted sums and states" if report.deep else "of h; --deep compares adapted sums and states, too"
    return f"EQUAL in every cycle and every bit {where}"


def rtl_json(report: RtlReport) -> Mapping[str, Any]:
    """Give the report as plain data of schema `lstmsim/rtl/1`; times are left out, so equal runs give equal data."""
    verified = report.verified
    return {
        "schema": SCHEMA,
        "scenario": report.run.scenario.name,
        "chip": report.run.scenario.chip.name,
        "engine": report.run.engine,
        "folder": report.folder,
        "files": list(report.written.written),
        "kept": list(report.written.kept),
        "removed": list(report.written.removed),
        "with_numbers": report.with_numbers,
        "deep": report.deep,
        "unexercised": list(report.unexercised),
        "cycles": report.run.report.makespan_cycles,
        "events": {name: _count(report.events, name) for name in GROUPS},
        "verified": None
        if verified is None
        else {
            "simulator": verified.simulator.name,
            "version": verified.simulator.version,
            "equal": verified.equal,
            "events": {name: _count(verified.log, name) for name in GROUPS},
            "equal_events": dict(verified.compared.equal),
            "differences": [_difference_json(report, each) for each in verified.compared.differences],
        },
        "synthesis": None if report.synthesis is None else synthesis_json(report.run.scenario, report.synthesis),
        "remarks": list(report.remarks),
    }


def _count(events: Iterable[Event], group: str) -> int:
    return sum(each.kind in GROUPS[group] for each in events)


def _difference_json(report: RtlReport, difference: Difference) -> dict[str, Any]:
    def words(event: Event) -> str:
        return report.hardware.words(report.design, event)

    return {
        "in": difference.group,
        "number": difference.number,
        "cycle": difference.cycle,
        "rtl": None if difference.rtl is None else difference.rtl.line,
        "simulated": None if difference.simulated is None else difference.simulated.line,
        "text": difference_lines(difference, words)[0],
        "before": [event_words(each, words) for each in difference.before],
    }


def rtl_records(report: RtlReport) -> Iterable[Mapping[str, Any]]:
    """Give a row for each group of events: how many there are, and how many are equal."""
    verified = report.verified
    for name in GROUPS:
        row: dict[str, Any] = {"group": name, "simulated": _count(report.events, name)}
        row["rtl"] = None if verified is None else _count(verified.log, name)
        row["equal"] = None if verified is None else verified.compared.equal[name]
        yield row


FORMS = Forms(data=rtl_json, document=rtl_text, records=rtl_records)
