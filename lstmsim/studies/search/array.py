"""Which (EP, VP) exist, how one is simulated, and how many cycles it takes at least.

Sources: column-wise LSTM patent (Hw = gates x hidden; VP <= Hw, VP <= NPE / EP; EP from 1 upwards), docs/timing.md,
sections 2 and 3. An array issues at most one tile a cycle: no order of tiles, no thread and no policy is faster.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import Any

from lstmsim import engines
from lstmsim.base.errors import InputError
from lstmsim.machines.registry import capability, target_of
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Job, Scenario, distinct_jobs
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.studies.search.result import Point, Refused
from lstmsim.studies.sweep.ahead import Ahead, Key, Workers
from lstmsim.studies.sweep.bulk import Parts
from lstmsim.studies.sweep.columns import NUMBERS, ChipColumns, numbers_of
from lstmsim.studies.sweep.evaluate import plain, scenario_key, simulated
from lstmsim.studies.sweep.store import Store


@dataclass(frozen=True)
class Limits:
    """What models ask of an array: (gates, units) of each stage, elements of vectors, units of a tail's cycle."""

    stages: tuple[tuple[int, int], ...]
    widths: tuple[int, ...]
    tail_width: int = 1

    @property
    def rows(self) -> int:
        """Hw: matrix rows of the largest stage (4 x hidden of an LSTM)."""
        return max(gates * units for gates, units in self.stages)

    @property
    def gates(self) -> int:
        """The least VP: one unit of the cell with the most gates in a stage."""
        return max(gates for gates, _ in self.stages)

    @property
    def width(self) -> int:
        """Elements of the longest vector. A wider EP has one column group a vector as well, and fewer rows for it."""
        return max(self.widths)


def limits_of(models: Iterable[Model], tail_width: int = 1) -> Limits:
    """Give the limits of some models together."""
    pairs = [(layer, stage) for model in models for layer in model.layers for stage in layer.cell.stages]
    stages = dict.fromkeys((len(stage.gates), layer.units(stage.rows)) for layer, stage in pairs)
    widths = {layer.width(vector) for layer, stage in pairs for vector in stage.vectors}
    return Limits(tuple(stages), tuple(sorted(widths)), tail_width)


def widest_vp(limits: Limits, npe: int, ep: int) -> tuple[int, str]:
    """Give VP = min(Hw, NPE // EP), and the name of the constraint that bounds it (`Hw`, `NPE/EP` or `both`).

    >>> lstm_512 = Limits(((4, 512),), (512,))
    >>> [widest_vp(lstm_512, 65536, ep) for ep in (16, 32, 64)]
    [(2048, 'Hw'), (2048, 'both'), (1024, 'NPE/EP')]
    """
    share = npe // ep
    if share == limits.rows:
        return share, "both"
    return (limits.rows, "Hw") if limits.rows < share else (share, "NPE/EP")


def useful_vps(limits: Limits, npe: int, ep: int) -> tuple[int, ...]:
    """List the VPs of an EP that mostly include its best one, the widest first.

    These are min(Hw, NPE // EP), and narrower ones that make as many row blocks of a stage: blocks of equal size, and
    the most and the fewest units that are whole turns in the tail. Where jobs share a core, tiles in another order can
    end earlier (docs/decisions/search_and_sweeps.md).
    """
    widest, _ = widest_vp(limits, npe, ep)
    vps = {widest}
    for gates, units in limits.stages:
        most = min(widest // gates, units)
        if most:
            least = -(-units // -(-units // most))
            turns = range(-(-least // limits.tail_width), most // limits.tail_width + 1)
            vps |= {gates * least, *(gates * limits.tail_width * each for each in (*turns[:1], *turns[-1:]))}
    return tuple(sorted((vp for vp in vps if limits.gates <= vp <= widest), reverse=True))


def vp_starts(limits: Limits) -> tuple[int, ...]:
    """List every VP from the least to Hw, the narrowest first, that cuts some stage into other row blocks."""
    whole = {gates * number for gates, units in limits.stages for number in range(1, units + 1)}
    return tuple(sorted({limits.gates, *(vp for vp in whole if vp > limits.gates)}))


def different_vps(starts: tuple[int, ...], widest: int) -> tuple[int, ...]:
    """List VPs up to the widest, the widest first, of which no two make the same row blocks, and so equal cycles."""
    below = bisect_right(starts, widest)
    return (widest, *starts[: below - 1][::-1]) if below else ()


def doublings(limits: Limits, npe: int) -> tuple[int, ...]:
    """List the powers of two from EP = 1 as long as NPE // EP rows hold one unit."""
    return tuple(1 << power for power in range((npe // limits.gates).bit_length()))


def every_ep(limits: Limits, npe: int) -> tuple[int, ...]:
    """List all EPs of which no two are alike: whole numbers up to the longest vector, then one for each depth of tree.

    Beyond the longest vector every EP has one column group a vector, so that EPs with adder trees of one depth differ
    in nothing but the number of rows: the least EP is the best of them.
    """
    most = npe // limits.gates
    deeper = ((1 << levels) + 1 for levels in range((limits.width - 1).bit_length(), most.bit_length()))
    return (*range(1, min(limits.width, most) + 1), *(ep for ep in deeper if ep <= most))


def between(limits: Limits, npe: int, low: int, high: int) -> tuple[int, ...]:
    """List the EPs strictly between two others that are no powers of two and may be better than their neighbours.

    Each is the least EP with its number of column groups: a larger EP with as many groups of some vector has fewer rows
    and is no better.
    """
    most = min(high - 1, npe // limits.gates)
    eps = {-(-width // -(-width // ep)) for width in limits.widths for ep in range(low + 1, most + 1)}
    return tuple(sorted(ep for ep in eps if low < ep <= most and ep & (ep - 1)))


#: (EP, VP) -> the simulated point, or why there is none; the same pair is simulated once.
Score = Callable[[int, int], Point | Refused]


@dataclass(frozen=True)
class Searched:
    """What is searched: jobs on a chip with arrays, numbers of the cores that get others, and their multipliers."""

    chip: Chip
    jobs: tuple[Job, ...]
    cores: tuple[int, ...]
    npe: int

    def __getstate__(self) -> dict[str, Any]:
        # What was worked out stays in the process that did it: the machine is a module.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def distinct(self) -> tuple[Job, ...]:
        """The first job of each configuration: a chip runs or refuses such jobs alike."""
        return distinct_jobs(self.jobs)

    @cached_property
    def array(self) -> Any:
        """The chip's machine, as a search asks about it."""
        array = capability(self.chip.kind, "array_search")
        assert array is not None, "only such chips are searched"
        return array

    @cached_property
    def limits(self) -> Limits:
        """The limits of the models that may run on the searched cores."""
        able = [job.model for job in self.jobs if job.may_use(self.cores)]
        return limits_of(dict.fromkeys(able), self.array.tail_width(self.chip.cores[self.cores[0]]))

    def chip_with(self, ep: int, vp: int) -> Chip:
        """Give the chip with that array. Its adder trees are built for the EP: a CAT does not narrow the search."""
        cores = list(self.chip.cores)
        for index in self.cores:
            cores[index] = self.array.with_array(cores[index], self.npe, ep, vp)
        return replace(self.chip, cores=tuple(cores))  # type: ignore[type-var]


def simulate_pair(searched: Searched, kept: bool, ep: int, vp: int) -> tuple[Point | Refused, Sequence[float]]:
    """Simulate one pair, and give its `NUMBERS` if they are `kept`; a refusal by the chip is returned, not raised."""
    runs = False
    try:
        chip = searched.chip_with(ep, vp)
        for job in searched.distinct:
            target_of(chip.kind).check(chip, job)
        runs = True
        totals = simulated(chip, searched.jobs)
    except InputError as error:
        return Refused(ep, vp, "; ".join(map(str, error.mistakes)), too_large=runs), ()
    cores, makespan = searched.cores, totals.makespan_cycles
    work = sum(int(totals.work[core]) for core in cores)
    hazard = sum(int(totals.cycles[core][CYCLE_NAMES.index("hazard")]) for core in cores)
    point = _point(searched, ep, vp, makespan, work / (searched.npe * makespan * len(cores)), hazard)
    return point, numbers_of(Scenario(chip, searched.jobs), totals) if kept else ()


def _point(searched: Searched, ep: int, vp: int, cycles: int, utilization: float, hazard: int) -> Point:
    """The point of a pair with its makespan; hazard: cycles, summed over the searched cores."""
    widest, bound = widest_vp(searched.limits, searched.npe, ep)
    share = hazard / (cycles * len(searched.cores))
    return Point(ep, vp, bound if vp == widest else "blocks", cycles, utilization, share)


#: Pairs that are computed together: some milliseconds of small jobs. Fewer are not worth it, nor is a look at whether
#: there are so many, which asks for bounds of all that may come, before some were computed one by one.
_AT_ONCE, _FEW = 64, 32


class Scores(Ahead[Any]):
    """Points of pairs, each simulated once; those that the store of a sweep has are read, and others are kept there."""

    def __init__(
        self, searched: Searched, tick: Callable[[], None], workers: Workers | None = None, store: Store | None = None
    ) -> None:
        super().__init__(partial(simulate_pair, searched, store is not None), workers or Workers(), tick)
        self._searched, self._store = searched, store
        #: What computes pairs in bulk, and what it has computed ahead; its numbers are of whole chips.
        whole = len(searched.cores) == len(searched.chip.cores)
        self._parts = Parts(ChipColumns()) if whole and engines.has_fast() else None
        self._bulk: dict[Key, Sequence[Any]] = {}
        #: Whether many are expected; None: it was not looked at.
        self._many: bool | None = None

    def expect(self, keys: Iterable[Key]) -> None:
        self._many = None
        super().expect(each for each in keys if each not in self._known and self._stored(*each)[1] is None)

    def _answer(self, key: Key, future: Future[Any] | None) -> Any:
        name, answer = self._stored(*key)
        if answer is None:
            numbers = self._in_bulk(key)
            if numbers:
                answer = self._point_of(key, numbers)
            else:
                answer, numbers = super()._answer(key, future)
            if self._store is not None and numbers:
                self._store.add((name, "done", *plain(numbers), None))
        return answer

    def _stored(self, ep: int, vp: int) -> tuple[str, Point | None]:
        """The name of a pair in the store, and the point that it has there, if any."""
        try:
            name = self._store and scenario_key(Scenario(self._searched.chip_with(ep, vp), self._searched.jobs))
        except InputError:
            name = None
        numbers = self._store.numbers(name) if self._store and name else None
        return str(name), self._point_of((ep, vp), numbers) if numbers else None

    def _point_of(self, key: Key, numbers: Sequence[Any]) -> Point:
        """The point of a pair with these `NUMBERS`."""
        row = [numbers[NUMBERS.index(each)] for each in ("makespan_cycles", "utilization", "hazard")]
        return _point(self._searched, *key, *row)

    def _hand_out(self, present: Key) -> None:
        if self._parts is not None and self._many is None and (len(self._known) >= _FEW or self._workers.wanted):
            first = list(islice(self._expected, _AT_ONCE))
            self._many = len(first) == _AT_ONCE
            self._expected = chain(first, self._expected)
        # what is computed in bulk needs no other process
        if self._parts is None or not self._many:
            super()._hand_out(present)

    def _in_bulk(self, key: Key) -> Sequence[Any]:
        """The `NUMBERS` of a pair that were computed with those of pairs expected next; none if it is not usual."""
        if self._parts is not None and self._many and key not in self._bulk:
            keys = list(dict.fromkeys([key, *islice(self._expected, _AT_ONCE - 1)]))
            chips: dict[int, Chip] = {}
            for number, (ep, vp) in enumerate(keys):
                # pairs that no chip can have are refused one by one
                with suppress(InputError):
                    chips[number] = self._searched.chip_with(ep, vp)
            rows = self._parts.results(chips, self._searched.jobs, self._workers.count)
            self._bulk |= {keys[number]: numbers for number, (_, _, *numbers, _) in rows.items()}
            if not rows:
                self._parts = None
        return self._bulk.pop(key, ())


#: (EP, VP) -> cycles that the jobs take at least; never fewer for a smaller VP.
Least = Callable[[int, int], int]


def least_of(searched: Searched) -> Least:
    """Make the bound for the searched jobs on the searched cores; its VP must hold a unit of every model."""
    # The jobs bound to each searched core; and all jobs on all cores together, if no core is left out.
    latest = sorted(searched.jobs, key=lambda job: -job.arrival)
    loads = [(tuple(job for job in latest if job.cores == (core,)), 1) for core in searched.cores]
    if len(searched.cores) == len(searched.chip.cores):
        loads.append((tuple(latest), len(searched.cores)))
    models = {id(job.model): job.model for jobs, _ in loads for job in jobs}
    base = searched.chip.cores[searched.cores[0]]

    @cache
    def least(ep: int, vp: int) -> int:
        core = searched.array.with_array(base, searched.npe, ep, vp)
        tiles = {number: searched.array.tiles(core, model) for number, model in models.items()}
        after: int = searched.array.last_cycles(core)
        return max((_last(jobs, cores, tiles) for jobs, cores in loads), default=0) + after

    return least


def _last(jobs: Sequence[Job], cores: int, tiles: dict[int, tuple[int, int]]) -> int:
    """The earliest cycle after the last tile of jobs, the latest first, that run on so many cores and nowhere else."""
    last = total = 0
    for job in jobs:
        step, final = tiles[id(job.model)]
        total += job.steps * step
        alone = max(job.steps * step, (job.steps - 1) * job.frame_interval + final)
        # At best, all jobs that arrive no earlier than this one are spread over the cores.
        last = max(last, job.arrival + max(alone, -(-total // cores)))
    return last
