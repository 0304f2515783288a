"""The two sides of a diff: scenarios that are simulated, or kept programs that are run, asked in one way."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lstmsim.analysis.explanations.critical_path import CriticalPath, critical_path
from lstmsim.analysis.explanations.explanation import PathTable
from lstmsim.analysis.explanations.slowest import RequestCycles, cycles_by_request
from lstmsim.analysis.explanations.trace_index import TraceIndex
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
    """One run of a diff, and what it is called.

    scenario: what was simulated; None of a kept program.
    jobs: their names. Tasks that come behind others, after all that do not, do the work of jobs.
    unit: what people call the main unit of a core.
    cores: where their cycles went; of a program also the memories whose cycles are named.
    words: of the machine.
    """

    name: str
    run: Run | ProgramRun
    scenario: Scenario | None
    program: Program
    chip: str
    frequency_mhz: float
    jobs: tuple[str, ...]
    unit: str
    cores: Sequence[CoreCycles]
    words: Mapping[str, Words]

    @property
    def trace(self) -> Trace:
        """What happened."""
        return self.run.trace

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks, those of the jobs first."""
        return (*self.jobs, *(task.name for task in self.program.tasks[len(self.jobs) :]))

    @cached_property
    def index(self) -> TraceIndex:
        """The index of the trace."""
        return TraceIndex(self.program, self.trace)

    @cached_property
    def walked(self) -> CriticalPath:
        """The critical path."""
        return critical_path(self.program, self.trace, self.index)

    @property
    def path(self) -> Mapping[tuple[str, str], int]:
        """Cycles of the critical path by name and cause."""
        table = PathTable(self.index, self.walked, self.words)
        return {(part.what, part.why): part.cycles for part in table.parts()}

    def requests(self, unit: str) -> tuple[RequestCycles | None, ...]:
        """Latencies of the jobs and the cycles of which they consist; those of its own work are called `unit`."""
        return cycles_by_request(self.jobs, self.program, self.trace, unit)


def of_run(name: str, made: Run) -> Side:
    """A scenario that was simulated."""
    scenario, chip = made.scenario, made.scenario.chip
    # totals take less time before there is a trace
    cores = [
        CoreCycles(each.index, each.figures.instances, each.cycles, each.peak, each.pe_cycles)
        for each in made.report.cores
    ]
    jobs = tuple(job.name for job in scenario.jobs)
    words = {name: each for core in chip.core_figures for name, each in core.words.items()}
    unit = chip.core_figures[0].unit.name
    return Side(name, made, scenario, made.program, chip.name, chip.frequency_mhz, jobs, unit, cores, words)


def _of_program(name: str, made: ProgramRun) -> Side:
    names, program = made.saved.names, made.saved.program
    cores = [
        CoreCycles(number, core.units[core.accounted].instances, dict(zip(CYCLE_NAMES, counts, strict=True)))
        for number, (core, counts) in enumerate(zip(program.cores, made.totals.cycles.tolist(), strict=True))
        if core.accounted is not None
    ]
    behind = [task.behind is not None for task in program.tasks]
    first = behind.index(True) if True in behind else len(behind)
    jobs = names.tasks[:first] if first and all(behind[first:]) else names.tasks
    return Side(name, made, None, program, names.chip, names.frequency_mhz, jobs, names.unit, cores, {})


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
        raise InputError("expected a second scenario or program, or a change of the first (--set), got neither")
    other = request.a if request.b is None else request.b
    return _side(request.a, request.overrides_a, request.engine), _side(other, request.overrides, request.engine)


def _is_program(source: object) -> bool:
    return isinstance(source, _PROGRAMS) or (
        isinstance(source, str | os.PathLike) and os.fspath(source).lower().endswith(".npz")
    )


def _shown(source: object) -> str:
    return os.fspath(source) if isinstance(source, str | os.PathLike) else f"the {type(source).__name__}"


def _side(source: Any, overrides: Sequence[str] | Mapping[str, Any], engine: str) -> Side:
    changes = "".join(f" {each}" for each in overrides)
    if _is_program(source):
        made = source if isinstance(source, ProgramRun) else run_program(source, engine=engine)
        return _of_program(os.path.basename(made.saved.place), made)
    result = source if isinstance(source, Run) else run(source, engine=engine, overrides=overrides)
    name = os.path.basename(source) if isinstance(source, str | os.PathLike) else result.scenario.name
    return of_run(name + changes, result)


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
