"""The answer to "why is it not 100 %": the critical path in figures, and what changes would have made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.critical_path import HELD_BY, KINDS, CriticalPath, critical_path
from lstmsim.analysis.explanations.slowest import RequestCycles, Slowest, cycles_by_request, slowest
from lstmsim.analysis.explanations.trace_index import TraceIndex
from lstmsim.analysis.explanations.what_if import Prices, WhatIf, what_if
from lstmsim.analysis.stall_words import NAMED
from lstmsim.machines.registry import target_of
from lstmsim.model.figures import MainUnit, Words
from lstmsim.model.scenario import Scenario
from lstmsim.program.accounts import issued_steps, useful_work
from lstmsim.program.program import Program, Unit
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.trace import Trace
from lstmsim.report.results import Table

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class LegWords:
    """A way off the `{unit}`, in a table and at the end of the sentence "40 % of the makespan is the way ..."."""

    meaning: str
    way: str


#: The ways that the path takes off the main unit (the accounted one) and back to it, and what each is. A machine may
#: have other words (`lstmsim.model.figures.Words`).
LEGS = {
    "start": LegWords("until the {unit}'s first issue on the path", "before the {unit}'s first issue on the path"),
    "end": LegWords("from the {unit}'s last issue on the path to the end", "behind the {unit}'s last issue"),
    "group to group": LegWords(
        "tasks start when those before have ended", "from the last issue of tasks to the next ones"
    ),
    "job to job": LegWords(
        "a job starts when another has ended",
        "from the last issue of a job to the first of the job that starts after it",
    ),
    "switch": LegWords("the {unit} changes threads", "around thread switches"),
    "thread to thread": LegWords("behind another thread's work in another unit", "behind other threads' results"),
    "room": LegWords("work waits for room for its results", "until there is room for the results of what comes next"),
    "weights": LegWords("work waits for weights from the memory", "until the weights are there that are needed next"),
    "layer to layer": LegWords(
        "a layer waits for results of the layer below", "from the last issue of a layer to the first of the layer above"
    ),
    "step to step": LegWords(
        "a step waits for results (h) of the step before",
        "from the last issue of a step to the first of the next step that needs its h",
    ),
    "within a step": LegWords(
        "a product waits for another one of its step",
        "from one product to the next of the same step that needs its results",
    ),
}

#: Ways off the main unit that bear the name of what held the path up -> the causes.
_HELD_UP = {
    "job to job": ("thread", "after"),
    "group to group": ("behind",),
    **{leg: tuple(name for name in CAUSES if NAMED[name].leg == leg) for leg in ("room", "weights")},
}


@dataclass(frozen=True)
class Share:
    """Cycles of the path of one name; `array`: whether its unit is the accounted one."""

    name: str
    kind: str
    unit: str
    array: bool
    cycles: int


def leg_words(name: str, own: Mapping[str, Words], unit: str) -> LegWords:
    """The words for a way off the main unit."""
    mine, usual = own.get(name, Words()), LEGS[name]
    return LegWords((mine.leg or usual.meaning).format(unit=unit), (mine.way or usual.way).format(unit=unit))


@dataclass(frozen=True)
class Leg:
    """A way off the main unit and back, a key of `LEGS`; `parts` are its cycles by name, most first."""

    name: str
    times: int
    cycles: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Step:
    """Segments of the path that follow each other and are alike; `task` is an index of `Explanation.jobs`.

    layer, step: of the operation; None where it has none (before a job came, fetching).
    held_by: why the next step waited, one of `lstmsim.analysis.explanations.critical_path.HELD_BY`.
    """

    start: int
    end: int
    what: str
    task: int
    core: int
    thread: int
    layer: int | None
    step: int | None
    held_by: str


@dataclass(frozen=True)
class PathPart:
    """Cycles of the path of one name and one cause.

    what: the name, of `Share.name`.
    why: what the next operation on the path waited for, of `critical_path.HELD_BY`.
    """

    what: str
    why: str
    cycles: int


class PathTable:
    """The path with a name (in the machine's words), a layer and a time step for every segment."""

    def __init__(self, index: TraceIndex, path: CriticalPath, words: Mapping[str, Words] | None = None) -> None:
        self.index, self.path, self.words = index, path, words or {}
        trace, row = index.trace, path.row
        core, unit = trace.issue("core")[row], trace.issue("unit")[row]
        # a memory is no core
        main = [None if each.shared else each.accounted for each in index.program.cores]
        accounted = np.array([-1 if each is None else each for each in main], dtype=np.int64)
        self.array = (unit == accounted[core]) & np.isin(path.kind, [KINDS.index("busy"), KINDS.index("turn")])
        self.names, self.name = self._names(core, unit)
        self.task = index.task[row]
        places = np.array([(*each.place, -1, -1)[:2] for each in index.operations], dtype=np.int64).reshape(-1, 2)
        self.layer, self.direction = places[index.numbers[row]].T
        self.step = issued_steps(index.program, trace)[row]

    def _names(self, core: Numbers, unit: Numbers) -> tuple[list[Share], Numbers]:
        """The names of segments (as shares without cycles), and for each segment the place of its name."""
        cores = self.index.program.cores
        width = max(len(each.units) for each in cores) if cores else 1
        keys, inverse = np.unique((self.path.kind * len(cores) + core) * width + unit, return_inverse=True)
        shares: list[Share] = []
        places = np.zeros(len(keys), dtype=np.int64)
        for number, each in enumerate(keys.tolist()):
            one, at = cores[each // width % len(cores)], each % width
            main = at == one.accounted and not one.shared
            share = _named(KINDS[each // width // len(cores)], one.units[at], main, self.words)
            if share not in shares:
                shares.append(share)
            places[number] = shares.index(share)
        return shares, places[inverse.reshape(-1)]

    def shares(self) -> list[Share]:
        """Cycles by name, the largest share first. They add up to the makespan."""
        cycles = _sums(self.name, self.path.cycles, len(self.names))
        shares = [
            Share(each.name, each.kind, each.unit, each.array, count)
            for each, count in zip(self.names, cycles, strict=True)
        ]
        return sorted(shares, key=lambda share: (-share.cycles, share.name))

    def causes(self) -> dict[str, int]:
        """Cycles by what the next operation on the path waited for, most first. They add up to the makespan."""
        cycles = _sums(self.path.held_by, self.path.cycles, len(HELD_BY))
        causes = sorted(zip(HELD_BY, cycles, strict=True), key=lambda pair: -pair[1])
        return {name: count for name, count in causes if count}

    def parts(self) -> list[PathPart]:
        """Cycles by name and cause together, most first. They add up to the makespan."""
        cycles = _sums(self.name * len(HELD_BY) + self.path.held_by, self.path.cycles, len(self.names) * len(HELD_BY))
        places = ((self.names[at // len(HELD_BY)].name, HELD_BY[at % len(HELD_BY)]) for at in range(len(cycles)))
        parts = [PathPart(*place, count) for place, count in zip(places, cycles, strict=True) if count]
        return sorted(parts, key=lambda part: (-part.cycles, part.what, part.why))

    def leg_bounds(self) -> tuple[Numbers, Numbers]:
        """The first segment of each way off the main unit, and the first segment after the way."""
        edge = np.diff(np.concatenate([[1], self.array.astype(np.int64), [1]]))
        return np.flatnonzero(edge < 0), np.flatnonzero(edge > 0)

    def leg_names(self) -> list[str]:
        """The name of each way off the main unit."""
        first, behind = self.leg_bounds()
        held, switch = self.path.held_by, KINDS.index("switch")
        held_up = {
            name: _any(np.isin(held, [HELD_BY.index(each) for each in names]), first, behind)
            for name, names in _HELD_UP.items()
        }
        other = _any(self.path.kind != switch, first, behind)
        # the segments before and behind a way; at the ends of the path there is none, and the first choices decide
        left, right = np.maximum(first - 1, 0), np.minimum(behind, len(self.array) - 1)
        tasks = self.task[left] != self.task[right]
        layers = (self.layer[left] != self.layer[right]) | (self.direction[left] != self.direction[right])
        inner = self.step[left] == self.step[right]
        choices = {
            "weights": held_up["weights"],
            "end": behind == len(self.array),
            "start": first == 0,
            "group to group": held_up["group to group"],
            "job to job": held_up["job to job"],
            "switch": ~other,
            "thread to thread": tasks,
            "room": held_up["room"],
            "layer to layer": layers,
            "within a step": inner,
        }
        names: list[str] = np.select(list(choices.values()), list(choices), "step to step").tolist()
        return names

    def legs(self) -> list[Leg]:
        """The ways off the main unit by name, the way with most cycles first."""
        first, behind = self.leg_bounds()
        names = self.leg_names()
        places = np.array([list(LEGS).index(name) for name in names], dtype=np.int64)
        of_segment = np.full(len(self.array), -1, dtype=np.int64)
        of_segment[~self.array] = np.repeat(places, behind - first)
        legs = []
        for place, name in enumerate(LEGS):
            mine = of_segment == place
            if mine.any():
                cycles = _sums(self.name[mine], self.path.cycles[mine], len(self.names))
                parts = tuple((each.name, count) for each, count in zip(self.names, cycles, strict=True) if count)
                legs.append(Leg(name, names.count(name), sum(cycles), tuple(sorted(parts, key=lambda p: -p[1]))))
        return sorted(legs, key=lambda leg: -leg.cycles)

    def joined(self) -> tuple[Numbers, Numbers]:
        """First and last segment of each step: segments in a row with one name, task, layer and time step."""
        columns = (self.name, self.task, self.layer, self.direction, self.step)
        new = np.ones(len(self.name), dtype=bool)
        if len(new) > 1:
            new[1:] = np.logical_or.reduce([each[1:] != each[:-1] for each in columns])
        first = np.flatnonzero(new)
        return first, np.append(first, len(new))[1:] - 1

    def steps(self, first: Sequence[int], last: Sequence[int]) -> list[Step]:
        """The steps that begin with the segments `first` and end with the segments `last`."""
        trace, path = self.index.trace, self.path
        core, context = trace.task("core"), trace.task("context")
        return [
            Step(
                int(path.start[a]),
                int(path.end[b]),
                self.names[int(self.name[a])].name,
                int(self.task[a]),
                int(core[self.task[a]]),
                int(context[self.task[a]]),
                int(self.layer[a]) if self.layer[a] >= 0 else None,
                None if KINDS[int(path.kind[a])] in ("arrival", "behind", "company") else int(self.step[a]),
                HELD_BY[int(path.held_by[b])],
            )
            for a, b in zip(first, last, strict=True)
        ]


def _named(kind: str, unit: Unit, array: bool, words: Mapping[str, Words]) -> Share:
    if kind in ("busy", "turn"):
        return Share(f"{unit.name} busy" if kind == "busy" else f"turn in {unit.name}", kind, unit.name, array, 0)
    if kind == "latency":
        return Share(f"{unit.pipeline or unit.name} pipeline", kind, unit.name, array, 0)
    names = {"switch": "thread switch", "input": "input", "arrival": "before arrival", "behind": "behind others"}
    names["company"] = "waits for company"
    return Share(words.get(kind, Words()).called or names[kind], kind, "", False, 0)


def _sums(place: Numbers, cycles: Numbers, names: int) -> list[int]:
    """Cycles by place, as exact whole numbers."""
    total = np.zeros(names, dtype=np.int64)
    np.add.at(total, place, cycles)
    return [int(each) for each in total]


def _any(true: NDArray[np.bool_], first: Numbers, behind: Numbers) -> NDArray[np.bool_]:
    """Whether any segment from `first` to before `behind` is true."""
    count = np.concatenate([[0], np.cumsum(true)])
    return np.asarray(count[behind] > count[first])


#: Steps of the path that are kept, from its beginning; `path_steps` says how many there are.
MAX_STEPS = 1_000
#: Steps of the path that are shown at its heart.
_HEART = 12


@dataclass(frozen=True)
class Window:
    """The first time steps of a run whose trace is too long to keep. They were simulated alone, and are explained.

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
    parts: cycles of the path by both; they add up to the makespan.
    legs: the ways of the path off the main unit and back.
    heart: some steps of the path around the way off the main unit that costs most, or else in the middle.
    path: the first steps of the path, at most `MAX_STEPS`.
    path_steps: how many steps the path has.
    handovers: how often the path goes from a job to the job that got its thread.
    what_if: what other machines would have made of the same jobs.
    slowest: what held the slowest requests up; None where all jobs come in one cycle.
    requests: for each job its latency and the cycles of which it consists; None for one that was rejected.
    unit: what people call the main unit of a core, in traces too; a machine may call it otherwise than its Program.
    units: what people call all main units.
    instances: of how many equal units a core's main unit consists; `array_cycles` counts each.
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
    parts: tuple[PathPart, ...]
    legs: tuple[Leg, ...]
    heart: tuple[Step, ...]
    path: tuple[Step, ...]
    path_steps: int
    handovers: int
    what_if: WhatIf
    slowest: Slowest | None = None
    requests: tuple[RequestCycles | None, ...] = ()
    unit: str = MainUnit().name
    units: str = MainUnit().bound
    instances: int = 1
    words: Mapping[str, Words] = field(default_factory=dict)
    window: Window | None = None
    misfit: str = ""


def explain(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    progress: Callable[[int, int], None] | None = None,
    prices: Prices | None = None,
) -> Explanation:
    """Explain why a run took as long as it did.

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
    skips = target_of(scenario.chip.kind).reads_numbers(scenario.chip)
    work = sum(useful_work(program, trace)) if skips else _work(scenario, trace)
    peak, busy = makespan * sum(core.peak for core in figures), _busy(program, trace, index)
    requests = cycles_by_request([job.name for job in scenario.jobs], program, trace, figures[0].unit.name)
    slow = slowest(scenario.jobs, program, trace, figures[0].unit.name, words, requests)
    changes = what_if(
        scenario, makespan, len(trace.issues), progress, work, None if slow is None else trace.tasks, prices
    )
    issued = sum((core.peak // core.instances) * cycles for core, cycles in zip(figures, busy, strict=True))
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
        **_of_path(table),
        handovers=path.handovers,
        what_if=changes,
        slowest=slow,
        requests=requests,
        unit=figures[0].unit.name,
        units=figures[0].unit.bound,
        instances=figures[0].instances,
        words=words,
    )


def _of_path(table: PathTable) -> dict[str, Any]:
    """What an explanation says of the critical path."""
    first, last = table.joined()
    heart = slice(*_heart(table, first.tolist()))
    return {
        "shares": tuple(table.shares()),
        "causes": table.causes(),
        "parts": tuple(table.parts()),
        "legs": tuple(table.legs()),
        "heart": tuple(table.steps(first[heart].tolist(), last[heart].tolist())),
        "path": tuple(table.steps(first[:MAX_STEPS].tolist(), last[:MAX_STEPS].tolist())),
        "path_steps": len(first),
    }


def _work(scenario: Scenario, trace: Trace) -> int:
    """Multiply-accumulates of the jobs that were served. A machine may have further tasks behind those of the jobs."""
    served = (trace.task("core") >= 0).tolist()
    return sum(job.macs for job, was in zip(scenario.jobs, served, strict=False) if was)


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
    """The first step to show, and the first step after the shown ones."""
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
