"""The two sides of a diff: scenarios that are simulated, or kept programs that are run, asked in one way."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lstmsim.analysis.explanations.critical_path import TraceIndex, critical_path
from lstmsim.analysis.explanations.explanation import PathTable
from lstmsim.analysis.explanations.slowest import RequestCycles, cycles_by_request
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.model.figures import Words
from lstmsim.model.scenario import Scenario
from lstmsim.program.flat import FlatProgram
from lstmsim.program.program import Program
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import Trace
from lstmsim.studies.diff.request import DiffRequest
from lstmsim.studies.program.run import ProgramRun, SavedProgram, run_program
from lstmsim.studies.simulate.run import Run, run

_PROGRAMS = (SavedProgram, Program, FlatProgram, ProgramRun)


@dataclass(frozen=True)
class CoreCycles:
    """The cycles of a core by name, and its multiplier-cycles where they are known."""

    core: int
    ways: int
    cycles: Mapping[str, int]
    peak: int | None = None
    multiplier_cycles: Mapping[str, int] | None = None


@dataclass(frozen=True, eq=False)
class Side:
    """One run of a diff, and what it is called."""

    name: str
    run: Run | ProgramRun

    @property
    def scenario(self) -> Scenario | None:
        """What was simulated; None of a kept program."""
        return self.run.scenario if isinstance(self.run, Run) else None

    @property
    def program(self) -> Program:
        """What the engine ran."""
        return self.run.program if isinstance(self.run, Run) else self.run.saved.program

    @property
    def trace(self) -> Trace:
        """What happened."""
        return self.run.trace

    @property
    def chip(self) -> str:
        """The name of the chip."""
        return self.run.scenario.chip.name if isinstance(self.run, Run) else self.run.saved.names.chip

    @property
    def frequency_mhz(self) -> float:
        """The clock."""
        return self.run.scenario.chip.frequency_mhz if isinstance(self.run, Run) else self.run.saved.names.frequency_mhz

    @cached_property
    def jobs(self) -> tuple[str, ...]:
        """The names of the jobs. Tasks that come behind others, after all that do not, do the work of jobs."""
        if isinstance(self.run, Run):
            return tuple(job.name for job in self.run.scenario.jobs)
        names, behind = self.run.saved.names.tasks, [task.behind is not None for task in self.program.tasks]
        first = behind.index(True) if True in behind else len(behind)
        return names[:first] if first and all(behind[first:]) else names

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks, those of the jobs first."""
        return (*self.jobs, *(task.name for task in self.program.tasks[len(self.jobs) :]))

    @property
    def unit(self) -> str:
        """What people call the main unit of a core."""
        if isinstance(self.run, Run):
            return self.run.scenario.chip.core_figures[0].unit.name
        return self.run.saved.names.unit

    @cached_property
    def words(self) -> Mapping[str, Words]:
        """Words of the machine."""
        figures = self.run.scenario.chip.core_figures if isinstance(self.run, Run) else ()
        return {name: each for core in figures for name, each in core.words.items()}

    @cached_property
    def index(self) -> TraceIndex:
        """The index of the trace."""
        return TraceIndex(self.program, self.trace)

    @property
    def path(self) -> Mapping[tuple[str, str], int]:
        """Cycles of the critical path by name and cause."""
        table = PathTable(self.index, critical_path(self.program, self.trace, self.index), self.words)
        return {(part.what, part.why): part.cycles for part in table.parts()}

    def requests(self, unit: str) -> tuple[RequestCycles | None, ...]:
        """Latencies of the jobs and the cycles of which they consist; those of its own work are called `unit`."""
        return cycles_by_request(self.jobs, self.program, self.trace, unit)

    @property
    def cores(self) -> list[CoreCycles]:
        """The cores, and where their cycles went; of a program also the memories whose cycles are named."""
        if isinstance(self.run, Run):
            return [
                CoreCycles(each.index, each.figures.instances, each.cycles, each.peak, each.pe_cycles)
                for each in self.run.report.cores
            ]
        rows = zip(self.program.cores, self.run.totals.cycles.tolist(), strict=True)
        return [
            CoreCycles(number, core.units[core.accounted].instances, dict(zip(CYCLE_NAMES, counts, strict=True)))
            for number, (core, counts) in enumerate(rows)
            if core.accounted is not None
        ]


def sides_of(request: DiffRequest) -> tuple[Side, Side]:
    """Simulate both sides; `InputError` for sides that cannot be compared."""
    kept = [_is_program(request.a), *([] if request.b is None else [_is_program(request.b)])]
    if len(set(kept)) > 1:
        names = _shown(request.a), _shown(request.b)
        text = "compares two scenarios, or two programs that were kept; keep the program of the scenario, too"
        raise InputError(Mistake("a and b", f"{names[kept.index(True)]} is a program, the other side is none: {text}"))
    given = {"--set": request.overrides, "--set-a": request.overrides_a}
    if kept[0] or isinstance(request.a, Run) or isinstance(request.b, Run):
        what = "a kept program" if kept[0] else "a run"
        refuse(Mistake(f"{flag} {each}", f"changes scenarios, not {what}") for flag in given for each in given[flag])
    if request.b is None and not any(given.values()):
        raise InputError(Mistake("b", "is missing: name a second scenario or program, or change the first (--set)"))
    other = request.a if request.b is None else request.b
    return _side(request.a, request.overrides_a, request.engine), _side(other, request.overrides, request.engine)


def _is_program(source: object) -> bool:
    return isinstance(source, _PROGRAMS) or (
        isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(".npz")
    )


def _shown(source: object) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"


def _side(source: Any, overrides: Sequence[str], engine: str) -> Side:
    changes = "".join(f" {each}" for each in overrides)
    if _is_program(source):
        made = source if isinstance(source, ProgramRun) else run_program(source, engine=engine)
        return Side(os.path.basename(made.saved.place), made)
    result = source if isinstance(source, Run) else run(source, engine=engine, overrides=overrides)
    _ = result.report  # totals take less time before there is a trace
    name = os.path.basename(source) if isinstance(source, str | os.PathLike) else result.scenario.name
    return Side(name + changes, result)


Pairing = tuple[int | None, int | None]


def paired(a: Sequence[str], b: Sequence[str]) -> list[Pairing]:
    """Pair names, equal ones in their order; first those of `a`, then those that only `b` has.

    A number that jobs of one entry have (`speech #2`) is not looked at where only one side has the name with it.

    >>> paired(["x", "y", "x"], ["x", "z"])
    [(0, 0), (1, None), (2, None), (None, 1)]
    >>> paired(["x"], ["x #1", "x #2"])
    [(0, 0), (None, 1)]
    """
    found: dict[int, int] = {}
    for plain in (False, True):
        rest = [place for place in range(len(a)) if place not in found]
        taken = set(found.values())
        others = [place for place in range(len(b)) if place not in taken]
        places = _numbered([b[place] for place in others], plain)
        for key, at in _numbered([a[place] for place in rest], plain).items():
            if key in places:
                found[rest[at]] = others[places[key]]
    taken = set(found.values())
    alone: list[Pairing] = [(None, place) for place in range(len(b)) if place not in taken]
    return [*((place, found.get(place)) for place in range(len(a))), *alone]


def _numbered(names: Sequence[str], plain: bool) -> dict[tuple[str, int], int]:
    """Places by names, each with how many equal ones stand before it; `plain`: without the numbers of an entry's
    jobs."""
    seen: Counter[str] = Counter()
    keys = {}
    for place, name in enumerate(names):
        name = re.sub(r"( #\d+)+(?=/|$)", "", name) if plain else name
        keys[name, seen[name]] = place
        seen[name] += 1
    return keys
