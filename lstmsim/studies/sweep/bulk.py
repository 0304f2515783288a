"""Points in bulk: those that differ in numbers of cores, jobs and layers, many in one call of native libraries.

A point is a chip, jobs, and the bodies of their program. Chips and jobs are made once for all points that share them,
and so is the program but for its bodies (`lstmsim.machines.*.points`). What is unusual in any way is left to
`lstmsim.studies.sweep.evaluate`, point by point, whose numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, machines
from lstmsim.analysis.report import latency_statistics
from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.base.units import rank_below
from lstmsim.engines.fast import points as native
from lstmsim.machines.assembly import MAX_OPERATIONS
from lstmsim.machines.registry import capability, target_of
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import flat_of
from lstmsim.studies.sweep.columns import chip_costs
from lstmsim.studies.sweep.evaluate import Outcome, chip_text, job_text, key_of
from lstmsim.studies.sweep.resolve import Resolver
from lstmsim.studies.sweep.spec import Value

#: Points of a chunk, and what is kept at most of chips, jobs and words.
CHUNK = 256
_MOST_KEPT, _MOST_WORDS = 10_000, 200_000
#: Below this, whole numbers are exact as 64-bit floats.
_EXACT = 2**53


class _ChipPart(NamedTuple):
    """What points with one chip share: how it looks in programs, in keys and in rows.

    peak, issuing, adders: numbers of the chip.
    columns: its values of the columns about the chip; None if these depend on the jobs too.
    home: the machine's module that writes bodies.
    """

    chip: Chip
    form: Hashable
    text: tuple[bytes, bytes]
    peak: int
    issuing: int
    adders: int
    columns: tuple[Value, ...] | None
    home: Any


class _JobPart(NamedTuple):
    """What points with the same jobs share; others: what else their scenarios have."""

    jobs: tuple[Job, ...]
    form: Hashable
    text: bytes
    others: Mapping[str, Any]


@dataclass(frozen=True)
class _Form:
    """A program but for its bodies.

    pairs: jobs and cores of which it has bodies.
    bodies: for each body the place of its pair, and the number of its phase.
    steps: of all jobs together.
    """

    flat: FlatProgram
    pairs: tuple[tuple[int, int], ...]
    bodies: tuple[tuple[int, int], ...]
    steps: int
    tasks: int


class _Point(NamedTuple):
    """A point whose parts are known; pairs: numbers of its pairs in the chunk."""

    number: int
    values: Mapping[str, Value]
    chip: _ChipPart
    jobs: _JobPart
    form: _Form
    pairs: list[int]


@dataclass(frozen=True)
class Chunk:
    """Points that are ready to run; `run` may be called in any thread."""

    points: list[_Point]
    asked: Any
    writer: Any

    def run(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The row of each point (`lstmsim.engines.fast.points`), and whether it counts."""
        if self.points:
            # whatever goes wrong here: point by point it is told which point is at fault
            with suppress(Exception):
                return self._run()
        return np.zeros((len(self.points), native.TASKS), np.int64), np.zeros(len(self.points), bool)

    def _run(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        rows = self.writer.write(self.asked)
        forms: dict[int, int] = {}
        own: list[FlatProgram] = []
        bodies: list[int] = []
        points: list[tuple[int, int]] = []
        fine = np.ones(len(self.points), bool)
        firsts, bounds = rows.pairs[:, 0].tolist(), rows.pairs[:, 2].tolist()
        refused = rows.pairs[:, 3].tolist()
        for place, (_, _, _, _, form, pairs) in enumerate(self.points):
            most = max(bounds[pair] for pair in pairs)
            if any(refused[pair] for pair in pairs) or most * form.steps > MAX_OPERATIONS:
                fine[place] = False
                continue
            number = forms.setdefault(id(form), len(own))
            if number == len(own):
                own.append(form.flat)
            points.append((number, len(bodies)))
            bodies += [firsts[pairs[pair]] + phase for pair, phase in form.bodies]
        tasks = max(each.form.tasks for each in self.points)
        made = np.zeros((len(self.points), native.TASKS + tasks), np.int64)
        if points:
            made[fine] = native.run_points(own, rows, np.array(bodies, np.int64), np.array(points, np.int64), tasks)
        fine[made[:, native.OUTCOME] != 0] = False
        return made, fine


class Bulk:
    """Prepares points of one sweep for chunks."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        of_core: list[str] = []
        of_job: list[str] = []
        for path, name in resolver.quick:
            (of_core if path.startswith("chip.") else of_job).append(name)
        slow = [name for _, name in resolver.slow]
        self._chip_key, self._job_key = _getter([*slow, *of_core]), _getter([*slow, *of_job])
        self._forget()

    def _forget(self) -> None:
        self._chips: dict[Hashable, _ChipPart | None] = {}
        self._jobs: dict[Hashable, _JobPart | None] = {}
        self._forms: dict[Hashable, _Form] = {}
        self._words: dict[int, Any] = {}

    @property
    def possible(self) -> bool:
        """Whether any point can be run in bulk: some numbers change without reading anything, and there is a core."""
        return bool(self.resolver.quick) and engines.has_fast()

    def chunk(self, points: Sequence[int], rest: list[int]) -> Chunk:
        """The points of which all parts are known, ready to run; the others go to `rest`."""
        if max(len(self._chips), len(self._jobs), len(self._forms)) > _MOST_KEPT:
            self._forget()
        sweep, chosen, numbers = self.resolver.setup.sweep, list[_Point](), dict[tuple[int, int, int], int]()
        writer: Any = None
        words: Any = None
        for point in points:
            values = sweep.values(point)
            parts = None if sweep.broken(values) is not None else self._parts(values)
            if parts is None:
                rest.append(point)
                continue
            chip, jobs, form = parts
            if writer is None:
                writer = chip.home
                words = self._words.get(id(writer))
                if words is None or len(words) > _MOST_WORDS:
                    words = self._words[id(writer)] = writer.new_words()
            if chip.home is not writer:
                # a chunk is of one machine
                rest.append(point)
                continue
            own = []
            for job, core in form.pairs:
                pair = words.pair(jobs.jobs[job].model, chip.chip.cores[core])
                own.append(numbers.setdefault(pair, len(numbers)))
            chosen.append(_Point(point, values, chip, jobs, form, own))
        return Chunk(chosen, words.asked(list(numbers)) if words is not None else None, writer)

    def computed(self, points: Sequence[int], rest: list[int]) -> list[Outcome]:
        """The outcomes of points, here and now; those that cannot be computed in bulk go to `rest`."""
        if not self.possible:
            rest += points
            return []
        chunk = self.chunk(points, rest)
        return self.outcomes(chunk, chunk.run(), rest)

    def _parts(self, values: Mapping[str, Value]) -> tuple[_ChipPart, _JobPart, _Form] | None:
        """The chip, the jobs and the form of a point; None if one of them is not usual."""
        chip_key, job_key = self._chip_key(values), self._job_key(values)
        if chip_key not in self._chips or job_key not in self._jobs:
            self._make(values, chip_key, job_key)
        chip, jobs = self._chips[chip_key], self._jobs[job_key]
        if chip is None or jobs is None:
            return None
        key = (chip.form, jobs.form)
        form = self._forms.get(key)
        if form is None:
            # a program that is refused may be refused for its bodies, and other points of the form may run
            form = _form_of(chip.chip, jobs.jobs)
            if form is None:
                return None
            self._forms[key] = form
        return chip, jobs, form

    def _make(self, values: Mapping[str, Value], chip_key: Hashable, job_key: Hashable) -> None:
        """Note the parts of a point; None for one that is not usual."""
        prepared = self.resolver.prepared_for(values)
        self._chips.setdefault(chip_key, None)
        self._jobs.setdefault(job_key, None)
        home: Any = capability(prepared.target.kind, "points") if prepared else None
        if prepared is None or home is None:
            return
        assignments = [(path, values[name]) for path, name in self.resolver.quick]
        with suppress(InputError):
            chip = prepared.chip(assignments)
            if self._chips[chip_key] is None and chip is not None and home.takes_chip(chip):
                self._chips[chip_key] = self._chip_part(home, chip)
        with suppress(InputError):
            made = prepared.jobs_of(assignments)
            if self._jobs[job_key] is None and made is not None and home.takes_jobs(made[0]):
                jobs = made[0]
                self._jobs[job_key] = _JobPart(jobs, home.job_form(jobs), job_text(jobs), prepared.others)

    def _chip_part(self, home: Any, chip: Chip) -> _ChipPart:
        figures = chip.core_figures
        peak, issuing = sum(each.peak for each in figures), sum(each.issuing for each in figures)
        columns = chip_costs(chip) if self.resolver.setup.chip.device is None else None
        adders = target_of(chip.kind).adders(chip)
        return _ChipPart(chip, home.chip_form(chip), chip_text(chip), peak, issuing, adders, columns, home)

    def _columns(self, point: _Point) -> tuple[Value, ...]:
        """The values of the columns about the chip of a point."""
        known = point.chip.columns
        if known is not None:
            return known
        scenario = Scenario(chip=point.chip.chip, jobs=point.jobs.jobs, **point.jobs.others)
        return self.resolver.setup.chip.values(scenario)

    def outcomes(
        self, chunk: Chunk, made: tuple[NDArray[np.int64], NDArray[np.bool_]], rest: list[int]
    ) -> list[Outcome]:
        """The outcomes of a chunk that has run; points that do not count go to `rest`."""
        rows, fine = made
        fine &= _exact(rows, chunk.points)
        rest += [each.number for each, good in zip(chunk.points, fine.tolist(), strict=True) if not good]
        points = [each for each, good in zip(chunk.points, fine.tolist(), strict=True) if good]
        rows = rows[fine]
        seconds = (rows[:, native.NANOSECONDS] / 1e9).tolist()
        return [
            Outcome(
                each.number,
                key_of(each.chip.text[0], each.jobs.text, each.chip.text[1]),
                "done",
                numbers,
                None,
                taken,
                (*each.values.values(), *self._columns(each)),
            )
            for each, numbers, taken in zip(points, _numbers(rows, points), seconds, strict=True)
        ]


def _getter(names: Sequence[str]) -> Callable[[Mapping[str, Value]], Hashable]:
    """What gives the values of some names as a key. Values that are equal, but of other types, have other keys."""

    def key(values: Mapping[str, Value]) -> Hashable:
        chosen = [values[name] for name in names]
        return (*chosen, *map(type, chosen))

    return key


def _form_of(chip: Chip, jobs: Sequence[Job]) -> _Form | None:
    """The program of these jobs but for its bodies; None if it is refused."""
    try:
        program = machines.lower(chip, jobs)
        flat = flat_of(program)
    except LstmsimError:
        return None
    pairs: dict[tuple[int, int], int] = {}
    bodies: dict[int, tuple[int, int]] = {}
    first_of_kind = {core.kind: number for number, core in reversed(list(enumerate(program.cores)))}
    # in the order in which the flat form has them
    for job, task in enumerate(program.tasks):
        for kind, _, phases, _ in task.all_variants:
            for number, phase in enumerate(phases):
                if id(phase.body) not in bodies:
                    pair = pairs.setdefault((job, first_of_kind[kind]), len(pairs))
                    bodies[id(phase.body)] = pair, number
    steps = sum(job.steps for job in jobs)
    return _Form(native.form_of(flat), tuple(pairs), tuple(bodies.values()), steps, len(jobs))


def _exact(rows: NDArray[np.int64], points: Sequence[_Point]) -> NDArray[np.bool_]:
    """Whether all whole numbers of which fractions are made are exact as 64-bit floats."""
    if not points:
        return np.zeros(0, bool)
    peak = np.array([float(each.chip.peak) for each in points])
    rate = np.array([float(each.chip.chip.frequency_mhz) for each in points])
    work = rows[:, native.WORK].astype(float)
    small: NDArray[np.bool_] = (peak * rows[:, native.MAKESPAN] < _EXACT) & (2 * work * np.maximum(rate, 1) < _EXACT)
    return small


def _numbers(rows: NDArray[np.int64], points: Sequence[_Point]) -> list[tuple[int | float, ...]]:
    """The `NUMBERS` of points: equal to those of `lstmsim.studies.sweep.columns.numbers_of`, to the last bit."""
    if not points:
        return []
    makespan, work = rows[:, native.MAKESPAN], rows[:, native.WORK]
    rate = np.array([each.chip.chip.frequency_mhz for each in points])
    busy = np.maximum(makespan, 1)
    used = np.where(makespan > 0, work / (np.array([each.chip.peak for each in points]) * busy), 0.0)
    tops = np.where(makespan > 0, 2 * work * rate / busy / 1e6, 0.0)
    rejected, latencies = _latencies(rows, points, rate)
    columns = [
        *(makespan.tolist(), used.tolist(), tops.tolist()),
        *rows[:, native.COUNTED : native.WORK].T.tolist(),
        *(rejected, [each.chip.issuing for each in points], [each.chip.adders for each in points]),
        *latencies,
    ]
    return list(zip(*columns, strict=True))


def _latencies(
    rows: NDArray[np.int64], points: Sequence[_Point], rate: NDArray[Any]
) -> tuple[list[int], list[list[float]]]:
    """How many jobs of each point were rejected, and the statistics of the latencies of the others, in ms."""
    counts = np.array([each.form.tasks for each in points])
    rejected = np.zeros(len(points), np.int64)
    made = np.zeros((5, len(points)))
    for count in np.unique(counts).tolist():
        own = np.flatnonzero(counts == count)
        cycles = rows[own, native.TASKS : native.TASKS + count]
        values = np.sort(cycles / rate[own, None] / 1000, axis=1)
        made[0, own] = [fsum(each) / count for each in values.tolist()]
        for row, percent in enumerate((50, 95, 99), start=1):
            rank, part, whole = rank_below(count, percent)
            above = values[:, min(rank + 1, count - 1)]
            made[row, own] = values[:, rank] + (above - values[:, rank]) * part / whole
        made[4, own] = values[:, -1]
        rejected[own] = (cycles < 0).sum(axis=1)
    for place in np.flatnonzero(rejected).tolist():
        served = [each for each in rows[place, native.TASKS :][: counts[place]].tolist() if each >= 0]
        latency = latency_statistics(served, points[place].chip.chip.frequency_mhz)
        made[:, place] = (latency.mean, latency.p50, latency.p95, latency.p99, latency.max)
    return rejected.tolist(), made.tolist()
