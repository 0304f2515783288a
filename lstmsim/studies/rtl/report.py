"""Generated hardware as people and programs read it: a document, plain data, records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lstmsim.report.document import Column, Document, Piece, Section, facts, grid, remark
from lstmsim.report.results import Forms, picked
from lstmsim.studies.rtl.result import GROUPS, Compared, Difference
from lstmsim.studies.rtl.synthesis import RESOURCES, estimated, fitted

if TYPE_CHECKING:
    from lstmsim.machines.rtl import Event
    from lstmsim.model.scenario import Scenario
    from lstmsim.studies.board.build import Build
    from lstmsim.studies.rtl.result import RtlReport
    from lstmsim.studies.rtl.synthesis import Synthesis

_SCHEMA = "lstmsim/rtl/1"
#: Kinds of events in words.
_KINDS = {
    "H": "h is visible",
    "F": "a job has finished",
    "A": "a job takes a context",
    "I": "issue",
    "T": "turn of the tail",
    "S": "adapted sums",
    "V": "a state is computed",
    "C": "the cycle's name",
}
#: Groups of several events.
_SEVERAL = {
    "issue": "issues",
    "turn": "turns of the tail",
    "job": "admissions and finishes",
    "name of a cycle": "names of cycles",
    "h": "vectors of h",
    "adapted sum": "words of adapted sums",
    "state": "words of states",
}
#: Says the fields of an event.
_Words = Callable[["Event"], str]


def _document(report: RtlReport) -> Document:
    run, verified = report.run, report.verified
    size = f"{len(report.written.written)} files in {report.folder}"
    numbers = "with all numbers" if report.with_numbers else "cycles only: no numbers, no h"
    numbers += ", adapted sums and states among them" if report.deep else ""
    simulated = f"lstmsim ({run.engine}): {run.report.makespan_cycles:,} cycles, {len(report.events):,} events"
    sections: list[Piece] = []
    if verified is None:
        sections.append(Section.of(simulated, "not simulated: --verify does, and compares"))
    else:
        times = f"compiled in {verified.compile_seconds:.1f} s, run in {verified.run_seconds:.1f} s"
        sections.append(Section.of(simulated, f"{verified.simulator.version}: {len(verified.log):,} events; {times}"))
        sections += "\n".join(compared_lines(verified.compared, _words(report))).split("\n\n")
        missed = "\n".join(f"  {each}" for each in report.unexercised)
        sections.append(f"this scenario never had, so nothing is shown of:\n{missed}" if missed else None)
        sections.append(_verdict(report) if verified.equal else "DIFFERENT")
    if report.synthesis is not None:
        sections += synthesis_sections(run.scenario, report.synthesis, report.table)
        sections += _netlist_sections(report)
    if report.build is not None:
        sections.append(build_section(report.build, run.report.makespan_cycles))
    return Document.of(f"{run.scenario.name} on {run.scenario.chip.name} as RTL: {size}, {numbers}", *sections)


def _netlist_sections(report: RtlReport) -> list[Piece]:
    """Say whether the netlist that Yosys made is equal."""
    own = report.netlist
    if own is None:
        asked = report.verified is not None
        return ["netlist not simulated: only that of ecp5 can be"] if asked else []
    times = f"compiled in {own.compile_seconds:.1f} s, run in {own.run_seconds:.1f} s"
    head = f"The netlist of ecp5, {own.simulator.version}: {len(own.log):,} events at its ports; {times}"
    lines = "\n".join(compared_lines(own.compared, _words(report))).split("\n\n")
    equal = "EQUAL in every admission and finish, and in every bit of h"
    models = "MULT18X18D and DP16KD are simulated by models of lstmsim's own, all other cells by those of Yosys"
    return [Section.of(head), *lines, Section.of(models, equal if own.equal else "DIFFERENT")]


def _words(report: RtlReport) -> _Words:
    return lambda event: report.hardware.words(report.design, event)


def _verdict(report: RtlReport) -> str:
    """What is equal."""
    if not report.with_numbers:
        return "EQUAL in every cycle"
    where = "of h, adapted sums and states" if report.deep else "of h; --deep compares adapted sums and states, too"
    return f"EQUAL in every cycle and every bit {where}"


def compared_lines(compared: Compared, words: _Words) -> list[str]:
    """Say what is equal, and what differs: a line for each group, then the first difference of each in full."""
    lines = []
    wrong = {each.group: each for each in compared.differences}
    for group in GROUPS:
        count = compared.equal[group]
        if group in wrong:
            lines.append(f"{_SEVERAL[group]}: DIFFERENT, after {count:,} equal ones in cycle {wrong[group].cycle:,}")
        elif count:
            lines.append(f"{_SEVERAL[group]}: all {count:,} equal")
    for each in compared.differences:
        lines += ["", *difference_lines(each, words)]
    return lines


def difference_lines(difference: Difference, words: _Words) -> list[str]:
    """Say where two logs differ first: both events, and those before them."""
    several = difference.group not in ("issue", "turn")
    both = {"RTL": difference.rtl, "lstmsim": difference.simulated}
    sides = "; ".join(f"{who} {_short(event, words, several)}" for who, event in both.items())
    lines = [f"{difference.group} {difference.number}: {sides}"]
    if difference.before:
        lines.append(f"the {len(difference.before)} events of the RTL before it:")
        lines += [f"  {_event_words(each, words)}" for each in difference.before]
    return lines


def _event_words(event: Event, words: _Words) -> str:
    said = words(event)
    return f"cycle {event.cycle}: {_KINDS[event.kind]}{': ' if said else ''}{said}"


def _short(event: Event | None, words: _Words, with_kind: bool) -> str:
    if event is None:
        return "has none"
    kind = f"{_KINDS[event.kind]}: " if with_kind else ""
    return f"cycle {event.cycle} {kind}{words(event)}".rstrip(": ")


def synthesis_sections(scenario: Scenario, synthesis: Synthesis, table: tuple[int, int] | None = None) -> list[Piece]:
    """What Yosys counted: the whole compared with `lstmsim fit`, then each part; table: as for `fitted`."""
    rows = [
        (each.resource, each.unit, each.fit, each.yosys, None if each.error is None else f"{100 * each.error:+.0f} %")
        for each in estimated(scenario, synthesis, table)
    ]
    family = synthesis.family
    columns: list[str | Column] = ["<", "<unit", f"fit ({family.device})", family.name]
    columns.append(Column("error of fit", missing=""))
    parts = [(part.name, *family.counts(part.cells).values()) for part in synthesis.parts]
    return [
        Section.of(grid(columns, rows), title=f"{synthesis.version}, {family.command}:"),
        Section.of(*family.notes),
        Section.of(
            grid(["<part", *RESOURCES], parts),
            remark(
                "Parts are Yosys' count alone: it moves logic and registers across the borders of parts, so only the "
                "whole can be compared with `lstmsim fit` (docs/rtl.md, section 8, has the differences by part)."
            ),
            title="PARTS, as Yosys names its cells:",
        ),
    ]


def build_section(build: Build, cycles: int) -> Section:
    """What the tools say of bitstreams: clock by seed, what is used, the longest path."""
    seeds = f"worst {build.worst:.1f}, median {build.median:.1f}, best {build.best:.1f} MHz of {len(build.mhz)} seeds"
    clock = seeds if len(build.mhz) > 1 else f"{build.best:.1f} MHz (one seed of placement: a few MHz say nothing)"
    used = ", ".join(f"{used:,} of {there:,} {name}" for name, (used, there) in build.cells.items())
    time = f"{cycles:,} cycles are {cycles / build.worst:,.1f} us at the clock of the worst seed"
    return Section.of(
        facts(
            ("clock", clock), ("run", time), ("used", used), ("longest path", build.path), ("shorten it", build.advice)
        ),
        "`lstmsim simulate --clock` takes build/clock.json of this folder.",
        title=f"BUILT by {build.tools or 'nextpnr'}:",
    )


def _parts(
    scenario: Scenario, synthesis: Synthesis, table: tuple[int, int] | None
) -> dict[str, dict[str, tuple[int | None, int]]]:
    """For each part and resource what `lstmsim fit` says (None: nothing), and what Yosys says."""
    said = {each.name: each for each in fitted(scenario, synthesis.family, table).parts}
    return {
        part.name: {
            key: (getattr(said.get(part.name), key, None), count)
            for key, count in synthesis.family.counts(part.cells).items()
        }
        for part in synthesis.parts
    }


def synthesis_data(scenario: Scenario, synthesis: Synthesis, table: tuple[int, int] | None = None) -> dict[str, Any]:
    """What Yosys counted as plain data; table: as for `fitted`."""
    parts = _parts(scenario, synthesis, table).items()
    whole = estimated(scenario, synthesis, table)
    return {
        **picked(synthesis, "family=family.name device=family.device version notes=family.notes"),
        "resources": {each.resource: picked(each, "unit fit yosys error") for each in whole},
        "parts": [
            {"part": name, **{key: {"fit": fit, "yosys": count} for key, (fit, count) in counts.items()}}
            for name, counts in parts
        ],
    }


def _data(report: RtlReport) -> Mapping[str, Any]:
    """The report as plain data of schema `lstmsim/rtl/1`; times are left out, so equal runs give equal data."""
    verified, words, compared = report.verified, _words(report), None
    netlist = report.netlist
    names = "scenario=run.scenario.name chip=run.scenario.chip.name engine=run.engine folder files=written.written"
    if verified is not None:
        compared = {
            **picked(verified, "simulator=simulator.name version=simulator.version equal"),
            "events": {name: _count(verified.log, name) for name in GROUPS},
            "equal_events": dict(verified.compared.equal),
            "differences": [_difference_data(each, words) for each in verified.compared.differences],
        }
    return {
        "schema": _SCHEMA,
        **picked(report, f"{names} kept=written.kept removed=written.removed with_numbers deep unexercised"),
        "cycles": report.run.report.makespan_cycles,
        "events": {name: _count(report.events, name) for name in GROUPS},
        "verified": compared,
        "synthesis": None
        if report.synthesis is None
        else synthesis_data(report.run.scenario, report.synthesis, report.table),
        "netlist": None
        if netlist is None
        else {
            **picked(netlist, "simulator=simulator.name version=simulator.version equal"),
            "equal_events": {group: netlist.compared.equal[group] for group in ("job", "h")},
            "differences": [_difference_data(each, words) for each in netlist.compared.differences],
        },
        "build": None
        if report.build is None
        else {
            **picked(report.build, "path advice tools bitstream"),
            "mhz": {str(seed): value for seed, value in report.build.mhz.items()},
            "cells": {name: {"used": used, "there": there} for name, (used, there) in report.build.cells.items()},
        },
        "remarks": list(report.remarks),
    }


def _count(events: Iterable[Event], group: str) -> int:
    return sum(each.kind in GROUPS[group] for each in events)


def _difference_data(difference: Difference, words: _Words) -> dict[str, Any]:
    return {
        **picked(difference, "in=group number cycle"),
        "rtl": None if difference.rtl is None else difference.rtl.line,
        "simulated": None if difference.simulated is None else difference.simulated.line,
        "text": difference_lines(difference, words)[0],
        "before": [_event_words(each, words) for each in difference.before],
    }


def _records(report: RtlReport) -> Iterator[Mapping[str, Any]]:
    """A row for each group of events: how many there are, and how many are equal."""
    verified = report.verified
    for name in GROUPS:
        row: dict[str, Any] = {"group": name, "simulated": _count(report.events, name)}
        row["rtl"] = None if verified is None else _count(verified.log, name)
        row["equal"] = None if verified is None else verified.compared.equal[name]
        yield row


FORMS = Forms(_data, _document, _records)
