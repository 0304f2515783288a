"""The whole answer to "why is it not 100 %": the critical path in figures, and what changes would have made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from lstmsim.analysis.explanations.critical_path import critical_path
from lstmsim.analysis.explanations.shares import Leg, PathTable, Share, Step
from lstmsim.analysis.explanations.slowest import Slowest, slowest
from lstmsim.analysis.explanations.trace_index import TraceIndex
from lstmsim.analysis.explanations.what_if import WhatIf, what_if
from lstmsim.model.figures import CoreFigures, MainUnit, Words
from lstmsim.model.scenario import Scenario
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace
from lstmsim.report.results import Table

#: Steps of the path that are kept, from its beginning; `path_steps` says how many there are.
MAX_STEPS = 1_000
#: Steps of the path that are shown at its heart.
_HEART = 12


@dataclass(frozen=True)
class Window:
    """The first time steps of a run whose trace is too long to keep. They were simulated alone, and are explained.

    steps: of each job, at most.
    whole_steps: most steps that a job of the whole run has.
    whole_cycles: makespan of the whole run.
    whole_operations, most_operations: operations of the whole run, and how many can be recorded.
    alike: whether all jobs have that many steps, so that cycles a step of the window and of the whole can be compared.
    """

    steps: int
    whole_steps: int
    whole_cycles: int
    whole_operations: int
    most_operations: int
    alike: bool


@dataclass(frozen=True)
class Explanation(Table, forms="lstmsim.analysis.explanations.text"):
    """Why a run took `makespan_cycles`.

    scenario, chip: their names.
    utilization: useful multiply-accumulates / (peak x makespan), 0 to 1.
    array: name of the accounted unit, whose cycles the report names.
    array_cycles: cycles in which a main unit issued, on the path or beside it; summed over the cores.
    array_useful: share of the multipliers that did useful work in these cycles, 0 to 1.
    cores: how many cores the chip has.
    jobs: names of the jobs; `Step.task` is a place in them.
    shares: cycles of the path by name; they add up to the makespan.
    causes: cycles of the path by what its next operation waited for; they add up to the makespan.
    legs: the ways of the path off the main unit and back.
    heart: some steps of the path around the way off the main unit that costs most, or else in the middle.
    path: the first steps of the path, at most `MAX_STEPS`.
    path_steps: how many steps the path has.
    handovers: how often the path goes from a job to the job that got its thread.
    what_if: what other machines would have made of the same jobs.
    slowest: what held the slowest requests up; None where all jobs come in one cycle.
    unit: what people call the main unit of a core, in traces too; a machine may call it otherwise than its Program.
    units: what people call all main units.
    ways: of how many equal units a core's main unit consists; `array_cycles` counts each.
    words: words of this machine.
    window: the steps that are explained in place of the whole run; None if it is the whole run.
    """

    scenario: str
    chip: str
    makespan_cycles: int
    utilization: float
    array: str
    array_cycles: int
    array_useful: float
    cores: int
    jobs: tuple[str, ...]
    shares: tuple[Share, ...]
    causes: dict[str, int]
    legs: tuple[Leg, ...]
    heart: tuple[Step, ...]
    path: tuple[Step, ...]
    path_steps: int
    handovers: int
    what_if: WhatIf
    slowest: Slowest | None = None
    unit: str = MainUnit().name
    units: str = MainUnit().bound
    ways: int = 1
    words: Mapping[str, Words] = field(default_factory=dict)
    window: Window | None = None


def explain(
    scenario: Scenario, program: Program, trace: Trace, progress: Callable[[int, int], None] | None = None
) -> Explanation:
    """Explain why a run took as long as it did.

    scenario: the chip and its jobs.
    program: the lowered scenario.
    trace: the run of the program on an engine.
    progress: called with the number of alternatives that have been simulated, and how many there are.

    >>> from lstmsim import engines, machines
    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> from lstmsim.model.scenario import Job
    >>> model = Model("m", (Layer(cell("lstm"), 512, 512),))
    >>> chip = ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=32, vp=2048),))
    >>> scenario = Scenario(chip, (Job("a", model, steps=20),))
    >>> program = machines.lower(chip, scenario.jobs)
    >>> explanation = explain(scenario, program, engines.run(program))
    >>> [(leg.name, leg.times, leg.cycles) for leg in explanation.legs], explanation.what_if.best.name
    ([('step to step', 19, 1026), ('end', 1, 61)], 'latencies halved')
    """
    index = TraceIndex(program, trace)
    path = critical_path(program, trace, index)
    makespan, figures = trace.makespan_cycles, scenario.chip.core_figures
    words = {name: each for core in figures for name, each in core.words.items()}
    table = PathTable(index, path, words)
    first, last = table.joined()
    heart = slice(*_heart(table, first.tolist()))
    served = (trace.task("core") >= 0).tolist()
    # a machine may have further tasks behind those of the jobs
    work = sum(job.macs for job, was in zip(scenario.jobs, served, strict=False) if was)
    peak, busy = makespan * sum(core.peak for core in figures), _busy(program, trace, index)
    slow = slowest(scenario.jobs, program, trace, figures[0].unit.name, words)
    issued = sum(_multipliers(core) * cycles for core, cycles in zip(figures, busy, strict=True))
    return Explanation(
        scenario=scenario.name,
        chip=scenario.chip.name,
        makespan_cycles=makespan,
        utilization=work / peak if peak else 0.0,
        array=_array(program),
        array_cycles=sum(busy),
        array_useful=work / issued if issued else 0.0,
        cores=len(figures),
        jobs=(*(job.name for job in scenario.jobs), *(each.name for each in program.tasks[len(scenario.jobs) :])),
        shares=tuple(table.shares()),
        causes=table.causes(),
        legs=tuple(table.legs()),
        heart=tuple(table.steps(first[heart].tolist(), last[heart].tolist())),
        path=tuple(table.steps(first[:MAX_STEPS].tolist(), last[:MAX_STEPS].tolist())),
        path_steps=len(first),
        handovers=path.handovers,
        what_if=what_if(scenario, makespan, len(trace.issues), progress, work, None if slow is None else trace.tasks),
        slowest=slow,
        unit=figures[0].unit.name,
        units=figures[0].unit.bound,
        ways=figures[0].ways,
        words=words,
    )


def _array(program: Program) -> str:
    core = next(core for core in program.cores if core.accounted is not None)
    return core.units[core.accounted or 0].name


def _busy(program: Program, trace: Trace, index: TraceIndex) -> list[int]:
    """Cycles in which the main unit of each core issued. A memory is no such core."""
    cycles, core, unit = index.end - index.start, trace.issue("core"), trace.issue("unit")
    return [
        int(cycles[(core == number) & (unit == one.accounted)].sum())
        for number, one in enumerate(program.cores)
        if not one.shared and one.accounted is not None
    ]


def _heart(table: PathTable, first: list[int]) -> tuple[int, int]:
    """The first step to show, and the first step behind the shown ones."""
    names, legs = table.leg_names(), table.legs()
    middle = len(first) // 2
    begin, end = max(0, middle - _HEART // 2), middle
    if legs:
        same = [number for number, name in enumerate(names) if name == legs[0].name]
        at = same[len(same) // 2]
        starts, behind = table.leg_bounds()
        begin = max(0, int(np.searchsorted(first, starts[at], side="right")) - 2)
        end = int(np.searchsorted(first, behind[at], side="right"))
    # a short way is shown with the one that follows it
    end = min(len(first), begin + _HEART, max(end, begin + _HEART // 2 + 2))
    return begin, end


def _multipliers(core: CoreFigures) -> int:
    """Those of one of a core's equal main units; busy cycles of each count."""
    return core.peak // core.ways
