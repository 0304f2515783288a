"""What the critical path consists of: shares by name, the ways off the main unit and back to it, its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.explanations.critical_path import HELD_BY, KINDS, CriticalPath
from lstmsim.analysis.explanations.trace_index import TraceIndex
from lstmsim.analysis.stall_words import NAMED
from lstmsim.model.figures import Words
from lstmsim.program.accounts import issued_steps
from lstmsim.program.program import Unit
from lstmsim.program.stall_reasons import CAUSES

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class LegWords:
    """What a way off the main unit is, in words. `{unit}` stands for the unit's name.

    meaning: as a table says it.
    way: as the end of the sentence "40 % of the makespan is the way ...".
    """

    meaning: str
    way: str


#: The ways that the path takes off the main unit (the accounted one) and back to it, and what each is. A machine may
#: have other words (`lstmsim.model.figures.Words`).
LEGS = {
    "start": LegWords("until the {unit}'s first issue on the path", "before the {unit}'s first issue of the chain"),
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
    """Cycles of the path that bear one name.

    name: what the path did in them.
    kind: one of `lstmsim.analysis.explanations.critical_path.KINDS`.
    unit: name of the unit; empty if the share belongs to none.
    array: whether the unit is the accounted unit.
    cycles: how many there are.
    """

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
    """A way that the path takes off the main unit and back.

    name: a key of `LEGS`.
    times: how often the path takes this way.
    cycles: all cycles on it.
    parts: (name of the cycles, how many), the most first.
    """

    name: str
    times: int
    cycles: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Step:
    """Segments of the path that follow each other and are alike.

    start, end: cycles, `start <= cycle < end`.
    what: the name of the share.
    task: place of the job.
    core, thread: where the job ran.
    layer, step: place of the operation; None where it has none (before a job came, fetching).
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


class PathTable:
    """The path with a name, a layer and a time step for every segment.

    index: the trace.
    path: its critical path.
    words: of the machine, for the names of cycles.
    """

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

    def leg_bounds(self) -> tuple[Numbers, Numbers]:
        """The first segment of each way off the main unit, and the first segment behind the way."""
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
        return first, np.append(first[1:], len(new)) - 1

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
                None if KINDS[int(path.kind[a])] in ("arrival", "behind") else int(self.step[a]),
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
