"""Points in bulk: those that differ in numbers of cores, jobs and layers, many in one call of native libraries.

A point is a chip, jobs, and the bodies of their program. Chips and jobs are made once for all points that share them,
and so is the program but for its bodies (`lstmsim.machines.*.points`); nothing is made for a point alone but its key.
What is unusual in any way is left to `lstmsim.studies.sweep.evaluate`, point by point, whose numbers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from itertools import repeat
from math import fsum
from typing import Any, NamedTuple, TypeVar

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
from lstmsim.program.operations import Ints
from lstmsim.program.program import Program
from lstmsim.studies.sweep.block import Column, Columns, block, distinct
from lstmsim.studies.sweep.columns import ChipColumns, chip_costs
from lstmsim.studies.sweep.evaluate import Rows, chip_text, job_text, key_of, plain
from lstmsim.studies.sweep.resolve import Prepared, Resolver
from lstmsim.studies.sweep.spec import Value

#: Points of a chunk, and what is kept at most of chips, jobs and words.
CHUNK = 512
_MOST_KEPT, _MOST_WORDS = 10_000, 200_000
#: Below this, whole numbers are exact as 64-bit floats.
_EXACT = 2**53

T = TypeVar("T")
#: Pairs of jobs and cores of which a program has bodies; for each body the place of its pair, and its phase.
_Layout = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


class _ChipPart(NamedTuple):
    """What points with one chip share: how it looks in programs, in keys and in rows.

    form: a number for what programs have of it.
    words: rows of its cores.
    peak, issuing, adders: numbers of the chip.
    columns: its values of the columns about the chip; None if these depend on the jobs too.
    home: the machine's module that writes bodies.
    """

    chip: Chip
    form: int
    words: Ints
    text: tuple[bytes, bytes]
    peak: int
    issuing: int
    adders: int
    columns: tuple[Value, ...] | None
    home: Any


class _JobPart(NamedTuple):
    """What points with the same jobs share; words: rows of their models; others: what else their scenarios have."""

    jobs: tuple[Job, ...]
    form: int
    words: Ints
    text: bytes
    others: Mapping[str, Any]


class _Form(NamedTuple):
    """A program but for its bodies; steps: of all jobs together."""

    flat: FlatProgram
    layout: _Layout
    steps: int
    tasks: int


@dataclass(frozen=True)
class Chunk:
    """Points that are ready to run; `run` may be called in any thread.

    points: their numbers, shape (points,); the columns of their values have as many places.
    chips, jobs, forms: of each point.
    pairs: for each layout its points, by their places, and the pairs of each, shape (points, pairs).
    asked: what is asked of `writer`.
    """

    points: Ints
    columns: Columns
    chips: Column
    jobs: Column
    forms: Column
    pairs: Sequence[tuple[_Layout, Ints, Ints]]
    asked: Any
    writer: Any

    def run(self) -> tuple[Ints, NDArray[np.bool_]]:
        """The row of each point (`lstmsim.engines.fast.points`), and whether it counts."""
        if len(self.points):
            # whatever goes wrong here: point by point it is told which point is at fault
            with suppress(Exception):
                return self._run()
        return np.zeros((len(self.points), native.TASKS), np.int64), np.zeros(len(self.points), bool)

    def _run(self) -> tuple[Ints, NDArray[np.bool_]]:
        rows = self.writer.write(self.asked)
        fine, first_body = np.zeros(len(self.points), bool), np.zeros(len(self.points), np.int64)
        steps = self.forms.each(lambda form: form.steps)
        bodies, written = [np.zeros(0, np.int64)], 0
        for (_, of_layout), points, pairs in self.pairs:
            most, refused = rows.pairs[pairs, 2].max(axis=1), rows.pairs[pairs, 3].any(axis=1)
            good = ~refused & (most <= MAX_OPERATIONS // steps[points])
            pair, phase = np.array(of_layout, np.int64).T
            own = rows.pairs[pairs[good][:, pair], 0] + phase
            fine[points[good]] = True
            first_body[points[good]] = written + np.arange(len(own)) * own.shape[1]
            bodies.append(own.reshape(-1))
            written += own.size
        tasks = max(form.tasks for form in self.forms.values)
        made = np.zeros((len(self.points), native.TASKS + tasks), np.int64)
        if written:
            points = np.stack([self.forms.places[fine], first_body[fine]], axis=1)
            flats = [form.flat for form in self.forms.values]
            made[fine] = native.run_points(flats, rows, np.concatenate(bodies), points, tasks)
        fine[made[:, native.OUTCOME] != 0] = False
        return made, fine


class Parts:
    """Makes chunks of chips and jobs, and rows of chunks that have run; keeps what they share.

    about: the columns about chips.
    """

    def __init__(self, about: ChipColumns) -> None:
        self.about = about
        self._forget()

    def _forget(self) -> None:
        self._chips: dict[Hashable, _ChipPart | None] = {}
        self._jobs: dict[Hashable, _JobPart | None] = {}
        self._forms: dict[tuple[int, int], _Form | None] = {}
        #: A number for each form of a chip or of jobs; by the `id` of the machine's module its words.
        self._numbers: dict[Hashable, int] = {}
        self._words: dict[int, Any] = {}

    def _tidy(self) -> None:
        """Forget everything if it is much: parts are of no use without the words of their time."""
        words = max(map(len, self._words.values()), default=0)
        if max(len(self._chips), len(self._jobs), len(self._forms)) > _MOST_KEPT or words > _MOST_WORDS:
            self._forget()

    def results(self, chips: Mapping[int, Chip], jobs: tuple[Job, ...], workers: int) -> dict[int, tuple[Any, ...]]:
        """The row of `results` of the same jobs on each chip, by its number, as far as it can be computed in bulk."""
        self._tidy()
        home: Any = next((capability(chip.kind, "points") for chip in chips.values()), None)
        usual = {number: chip for number, chip in chips.items() if home is not None and home.takes_chip(chip)}
        if not usual or not home.takes_jobs(jobs):
            return {}
        job = self._job_part(home, jobs, {})
        chunks, rest = [], list[int]()
        for numbers in np.array_split(np.array(list(usual), np.int64), workers):
            own = Column([self._chip_part(home, usual[number]) for number in numbers.tolist()], np.arange(len(numbers)))
            chunks.append(self._ready(numbers, {}, own, Column([job], np.zeros(len(numbers), np.int64)), rest))
        with ThreadPoolExecutor(workers) as threads:
            come = list(threads.map(Chunk.run, chunks))
        made = [self.rows(*each, rest) for each in zip(chunks, come, strict=True)]
        return {point[0]: result for rows in made for point, result in zip(rows.points, rows.results, strict=True)}

    def _ready(self, numbers: Ints, columns: Columns, chips: Column, jobs: Column, rest: list[int]) -> Chunk:
        """The chunk of points of these parts; points without a part go to `rest`."""
        forms, writer = self._forms_of(chips, jobs)
        usual = forms.each(lambda form: form is not None).astype(bool)
        rest += numbers[~usual].tolist()
        chips, jobs, forms = (each.of(usual) for each in (chips, jobs, forms))
        pairs, asked = self._pairs(chips, jobs, forms, writer)
        own = {name: each.of(usual) for name, each in columns.items()}
        return Chunk(numbers[usual], own, chips, jobs, forms, pairs, asked, writer)

    def _number(self, form: Hashable) -> int:
        return self._numbers.setdefault(form, len(self._numbers))

    def _chip_part(self, home: Any, chip: Chip) -> _ChipPart:
        self._words.setdefault(id(home), home.new_words())
        figures = chip.core_figures
        peak, issuing = sum(each.peak for each in figures), sum(each.issuing for each in figures)
        columns = plain(chip_costs(chip)) if self.about.device is None else None
        words = self._words[id(home)].of_cores(chip.cores)
        form, adders = self._number((id(home), home.chip_form(chip))), target_of(chip.kind).adders(chip)
        return _ChipPart(chip, form, words, chip_text(chip), peak, issuing, adders, columns, home)

    def _job_part(self, home: Any, jobs: tuple[Job, ...], others: Mapping[str, Any]) -> _JobPart:
        self._words.setdefault(id(home), home.new_words())
        words = self._words[id(home)].of_models([job.model for job in jobs])
        return _JobPart(jobs, self._number(home.job_form(jobs)), words, job_text(jobs), others)

    def _forms_of(self, chips: Column, jobs: Column) -> tuple[Column, Any]:
        """The forms of points, and the machine's module for all of them; None for a point that is not usual."""
        of_chips, of_jobs = (each.each(lambda part: part.form + 1 if part else 0) for each in (chips, jobs))
        firsts, places = distinct([of_chips, of_jobs], len(of_chips))
        forms: list[_Form | None] = []
        writer = None
        for first in firsts.tolist():
            chip, job, form = chips.at(first), jobs.at(first), None
            if chip is not None and job is not None:
                writer = writer or chip.home
                key = chip.form, job.form
                if self._forms.get(key) is None:
                    # a program that is refused may be refused for its bodies, and other points of the form may run;
                    # where a core cannot run a model, the program has no body for it, and is no form of the others
                    alike = (each.chip for each in chips.values if each is not None and each.form == chip.form)
                    able = next((each for each in alike if _able(each, job.jobs)), None)
                    self._forms[key] = None if able is None else _form_of(able, job.jobs)
                # a chunk is of one machine
                form = self._forms[key] if chip.home is writer else None
            forms.append(form)
        return Column(forms, places), writer

    def _pairs(self, chips: Column, jobs: Column, forms: Column, writer: Any) -> tuple[list[Any], Any]:
        """For each layout its points and their pairs, numbered as what is asked of the writer; and that."""
        if writer is None or not len(forms.places):
            return [], None
        layouts = list(dict.fromkeys(form.layout for form in forms.values))
        numbers = forms.each(lambda form: layouts.index(form.layout))
        points = [np.flatnonzero(numbers == number) for number in range(len(layouts))]
        own = list(zip(layouts, points, strict=True))
        models = [_words_of(jobs, some, [job for job, _ in pairs]) for (pairs, _), some in own]
        cores = [_words_of(chips, some, [core for _, core in pairs]) for (pairs, _), some in own]
        asked, every = self._words[id(writer)].pairs(np.concatenate(models), np.concatenate(cores))
        parts = np.split(every, np.cumsum([len(each) for each in models])[:-1])
        return [(*each, part.reshape(len(each[1]), -1)) for each, part in zip(own, parts, strict=True)], asked

    def rows(self, chunk: Chunk, made: tuple[Ints, NDArray[np.bool_]], rest: list[int]) -> Rows:
        """The rows of a chunk that has run; points that do not count go to `rest`."""
        counts, fine = made
        peak, rate = chunk.chips.each(lambda chip: chip.peak), chunk.chips.each(lambda chip: chip.chip.frequency_mhz)
        fine &= _exact(counts, peak, rate)
        rest += chunk.points[~fine].tolist()
        points, counts = chunk.points[fine].tolist(), counts[fine]
        seconds = (counts[:, native.NANOSECONDS] / 1e9).tolist()
        chips, jobs, forms = (each.of(fine) for each in (chunk.chips, chunk.jobs, chunk.forms))
        keys = [
            key_of(chip.text[0], job.text, chip.text[1]) for chip, job in zip(chips.every(), jobs.every(), strict=True)
        ]
        numbers = _numbers(counts, peak[fine], rate[fine], chips, forms)
        results = list(zip(keys, repeat("done"), *numbers, repeat(None), strict=False))
        values = [Column(plain(each.values), each.places[fine]).every() for each in chunk.columns.values()]
        return Rows(
            results,
            list(zip(points, keys, *values, *self._columns(chips, jobs), strict=True)),
            list(zip(points, seconds, strict=True)),
        )

    def _columns(self, chips: Column, jobs: Column) -> list[Sequence[Value]]:
        """The columns about the chips of points."""
        about = self.about
        if about.device is None:
            known = [each.columns for each in chips.values] or [about.names]
            return [Column(values, chips.places).every() for values in zip(*known, strict=True)]
        rows = [
            plain(about.values(Scenario(chip=chip.chip, jobs=job.jobs, **job.others)))
            for chip, job in zip(chips.every(), jobs.every(), strict=True)
        ]
        return list(zip(*rows, strict=True)) if rows else [[]] * len(about.names)


class Bulk(Parts):
    """Prepares points of one sweep for chunks; size: points of the next chunk, fewer where they take long."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        slow = [name for _, name in resolver.slow]
        of_core = [name for path, name in resolver.quick if path.startswith("chip.")]
        of_job = [name for path, name in resolver.quick if not path.startswith("chip.")]
        self._chip_names, self._job_names = dict.fromkeys([*slow, *of_core]), dict.fromkeys([*slow, *of_job])
        super().__init__(resolver.setup.chip)
        self.size = CHUNK

    @property
    def possible(self) -> bool:
        """Whether any point can be run in bulk: some numbers change without reading anything, and there is a core."""
        return bool(self.resolver.quick) and engines.has_fast()

    def chunk(self, points: Sequence[int], rest: list[int]) -> Chunk:
        """The points of which all parts are known, ready to run; the others go to `rest`."""
        self._tidy()
        numbers = np.array(points, np.int64)
        columns, usual = block(self.resolver.setup.sweep, numbers)
        rest += numbers[~usual].tolist()
        wanted = np.flatnonzero(usual)
        numbers, columns = numbers[wanted], {name: each.of(wanted) for name, each in columns.items()}
        chips = self._parts(self._chips, self._chip_names, columns, self._chip)
        jobs = self._parts(self._jobs, self._job_names, columns, self._job)
        return self._ready(numbers, columns, chips, jobs, rest)

    def computed(self, points: Sequence[int], rest: list[int]) -> Rows:
        """The rows of points, here and now; those that cannot be computed in bulk go to `rest`."""
        if not self.possible:
            rest += points
            return Rows([], [], [])
        chunk = self.chunk(points, rest)
        return self.rows(chunk, chunk.run(), rest)

    def rows(self, chunk: Chunk, made: tuple[Ints, NDArray[np.bool_]], rest: list[int]) -> Rows:
        if (made[0][:, native.OUTCOME] == native.GIVEN_UP).any():
            self.size = max(1, self.size // 2)
        return super().rows(chunk, made, rest)

    def _parts(
        self,
        kept: dict[Hashable, T | None],
        names: Mapping[str, Any],
        columns: Columns,
        make: Callable[[Prepared, Any, Mapping[str, Value]], T | None],
    ) -> Column:
        """What points share that have equal values of these names; None for what is not usual."""
        points = len(next(iter(columns.values())).places)
        firsts, places = distinct([columns[name].places for name in names], points)
        parts: list[T | None] = []
        for first in firsts.tolist():
            values = [columns[name].at(first) for name in names]
            # values that are equal, but of other types, are others
            key = (*values, *map(type, values))
            if key not in kept:
                kept[key] = None
                every = {name: column.at(first) for name, column in columns.items()}
                prepared = self.resolver.prepared_for(every)
                home: Any = capability(prepared.target.kind, "points") if prepared else None
                if prepared is not None and home is not None:
                    with suppress(InputError):
                        kept[key] = make(prepared, home, every)
            parts.append(kept[key])
        return Column(parts, places)

    def _assignments(self, values: Mapping[str, Value]) -> list[tuple[str, Value]]:
        return [(path, values[name]) for path, name in self.resolver.quick]

    def _chip(self, prepared: Prepared, home: Any, values: Mapping[str, Value]) -> _ChipPart | None:
        chip = prepared.chip(self._assignments(values))
        return self._chip_part(home, chip) if chip is not None and home.takes_chip(chip) else None

    def _job(self, prepared: Prepared, home: Any, values: Mapping[str, Value]) -> _JobPart | None:
        made = prepared.jobs_of(self._assignments(values))
        return self._job_part(home, made[0], prepared.others) if made is not None and home.takes_jobs(made[0]) else None


def _words_of(parts: Column, points: Ints, which: Sequence[int]) -> Ints:
    """The rows of words of some jobs (or cores) of points, one below the other."""
    used, own = np.unique(parts.places[points], return_inverse=True)
    rows: Ints = np.stack([parts.values[each].words[which] for each in used.tolist()])
    return rows[own].reshape(-1, 2)


def _able(chip: Chip, jobs: Sequence[Job]) -> bool:
    """Whether every core that a job may use can run it."""
    runs = {(job.model, chip.cores[each]) for job in jobs for each in job.allowed(len(chip.cores))}
    return all(core.refusal(model) is None for model, core in runs)


def _apart(program: Program) -> Program:
    """The program with a body of its own for each phase: cores or models that have one here may have two elsewhere."""
    known: dict[int, Any] = {}
    tasks = []
    for task in program.tasks:
        if id(task.variants) not in known:
            known[id(task.variants)] = tuple(
                (kind, tuple([replace(phase, body=copy(phase.body)) for phase in phases]))
                for kind, phases in task.variants
            )
        tasks.append(replace(task, variants=known[id(task.variants)]))
    return replace(program, tasks=tuple(tasks))


def _form_of(chip: Chip, jobs: Sequence[Job]) -> _Form | None:
    """The program of these jobs but for its bodies; None if it is refused."""
    try:
        program = _apart(machines.lower(chip, jobs))
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
    layout = tuple(pairs), tuple(bodies.values())
    return _Form(native.form_of(flat), layout, sum(job.steps for job in jobs), len(jobs))


def _exact(rows: Ints, peak: NDArray[Any], rate: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether all whole numbers of which fractions are made are exact as 64-bit floats."""
    work = rows[:, native.WORK].astype(float)
    busy = peak.astype(float) * rows[:, native.MAKESPAN]
    small: NDArray[np.bool_] = (busy < _EXACT) & (2 * work * np.maximum(rate, 1) < _EXACT)
    return small


def _numbers(rows: Ints, peak: NDArray[Any], rate: NDArray[Any], chips: Column, forms: Column) -> list[list[Any]]:
    """The `NUMBERS` of points, column by column: equal to those of `lstmsim.studies.sweep.columns.numbers_of`, to the
    last bit."""
    makespan, work = rows[:, native.MAKESPAN], rows[:, native.WORK]
    busy = np.maximum(makespan, 1)
    used = np.where(makespan > 0, work / (peak * busy), 0.0)
    tops = np.where(makespan > 0, 2 * work * rate / busy / 1e6, 0.0)
    rejected, latencies = _latencies(rows, rate, forms)
    issuing = Column([each.issuing for each in chips.values], chips.places).every()
    adders = Column([each.adders for each in chips.values], chips.places).every()
    return [
        *(makespan.tolist(), used.tolist(), tops.tolist()),
        *rows[:, native.COUNTED : native.WORK].T.tolist(),
        *(rejected, issuing, adders),
        *latencies,
    ]


def _latencies(rows: Ints, rate: NDArray[Any], forms: Column) -> tuple[list[int], list[list[float]]]:
    """How many jobs of each point were rejected, and the statistics of the latencies of the others, in ms."""
    counts = forms.each(lambda form: form.tasks)
    rejected = np.zeros(len(rows), np.int64)
    made = np.zeros((5, len(rows)))
    for count in np.unique(counts).tolist():
        own = np.flatnonzero(counts == count)
        cycles = rows[own, native.TASKS : native.TASKS + count]
        values = np.sort(cycles / rate[own, None] / 1000, axis=1)
        # a sum of two is rounded once, whoever adds
        sums = values.sum(axis=1) if count <= 2 else np.array([fsum(each) for each in values.tolist()])
        made[0, own] = sums / count
        for row, percent in enumerate((50, 95, 99), start=1):
            rank, part, whole = rank_below(count, percent)
            above = values[:, min(rank + 1, count - 1)]
            made[row, own] = values[:, rank] + (above - values[:, rank]) * part / whole
        made[4, own] = values[:, -1]
        rejected[own] = (cycles < 0).sum(axis=1)
    for place in np.flatnonzero(rejected).tolist():
        served = [each for each in rows[place, native.TASKS :][: counts[place]].tolist() if each >= 0]
        latency = latency_statistics(served, rate[place].item())
        made[:, place] = (latency.mean, latency.p50, latency.p95, latency.p99, latency.max)
    return rejected.tolist(), made.tolist()
