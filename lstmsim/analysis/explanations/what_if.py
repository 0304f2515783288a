"""Other machines on the same jobs: each change, and pairs that are worth a try, simulated and not guessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from math import inf

import numpy as np
from numpy.typing import NDArray

from lstmsim import engines, machines
from lstmsim.analysis.explanations.slowest import TailLatency, tail_latency
from lstmsim.base.errors import LstmsimError
from lstmsim.machines.change import Change
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Chip, Job, Scenario, arriving
from lstmsim.program.trace import TASKS, Totals

#: Most rows of the trace times alternatives that are simulated: a longer run gets fewer alternatives, at least two.
MAX_ROWS = 20_000_000
_AT_LEAST = 2
#: Most pairs of changes that are simulated, and most rows of the trace times pairs.
MOST_PAIRS = 24
_PAIR_ROWS = MAX_ROWS // 4


@dataclass(frozen=True)
class Price:
    """What a change costs.

    text: in words, to stand after "price:".
    more: what is built more, as a share of the chip, or of the device where one is known; None: nobody can say.
    fits: whether the changed chip fits the device; None: no device is known, or its table does not tell.
    multipliers: how many more it has.
    """

    text: str
    more: float | None = None
    fits: bool | None = None
    multipliers: int = 0


#: A change and what it costs.
Prices = Callable[[Change], Price]
#: A change that saves a smaller share of the cycles is not advised for its price, however little it costs.
WORTH_FROM = 0.01


@dataclass(frozen=True)
class Alternative:
    """One change, or a pair of them, and its result.

    cycles: makespan with the change; None if the chip or a job refused it.
    saved_cycles: how many cycles less than the run that is explained; negative if the change did harm.
    work: multiply-accumulates, as a multiple of those of the run that is explained.
    latency: latencies of the requests; None if all come at once or if other requests were served than in that run.
    pair: the two changes that it consists of; None: it is a single one.
    price: what it costs; None: nobody asked.
    """

    name: str
    detail: str
    cycles: int | None
    saved_cycles: int
    utilization: float
    work: float = 1.0
    refused: str = ""
    latency: TailLatency | None = None
    pair: tuple[str, str] | None = None
    price: Price | None = None

    def worth(self, base_cycles: int) -> float:
        """Share of the cycles saved for each share of the chip that is built more; infinite where nothing is.

        0 for what saves less than `WORTH_FROM`, does other work, has no known price, or does not fit the device.
        """
        price, saved = self.price, self.saved_cycles / max(base_cycles, 1)
        if price is None or price.more is None or price.fits is False or saved < WORTH_FROM or self.work != 1:
            return 0.0
        return saved / price.more if price.more > 0 else inf


@dataclass(frozen=True)
class WhatIf:
    """The changes that were tried on a run, by cycles saved, most first; refused ones come last, and are no pairs.

    left_out: names of the changes that were not tried, because the run is long.
    pairs_left_out: how many more pairs there are of which a change helps alone; None: the run is too long for pairs.
    """

    base_cycles: int
    alternatives: tuple[Alternative, ...]
    left_out: tuple[str, ...] = ()
    base_latency: TailLatency | None = None
    pairs: tuple[Alternative, ...] = ()
    pairs_left_out: int | None = None

    @property
    def best(self) -> Alternative | None:
        """The single change that saves most cycles, the cheapest of equal ones; None if none saves any."""
        most = _saves_most(self.alternatives)
        return most if most is not None and most.saved_cycles > 0 else None

    @property
    def best_pair(self) -> Alternative | None:
        """The pair that saves most cycles, the cheapest of equal ones; None if it saves little more than one change."""
        pair, single = _saves_most(self.pairs), self.best
        more = 0 if pair is None else pair.saved_cycles - (0 if single is None else single.saved_cycles)
        return pair if more > 0 and more >= WORTH_FROM * self.base_cycles else None

    @property
    def by_worth(self) -> tuple[Alternative, ...]:
        """The changes as they are advised: those worth their price without more multipliers first, then by worth."""

        def rank(each: Alternative) -> tuple[bool, float]:
            worth = each.worth(self.base_cycles)
            return not worth or each.price is None or each.price.multipliers > 0, -worth

        return tuple(sorted(self.alternatives, key=rank))

    @property
    def worth_most(self) -> Alternative | None:
        """The single change that saves most for its price; None: none that can be bought saves anything to speak of."""
        first = self.by_worth[0] if self.alternatives else None
        return first if first is not None and first.worth(self.base_cycles) > 0 else None

    @property
    def best_for_slowest(self) -> Alternative | None:
        """The single change with the least latency of the slowest requests; None if none shortens it."""
        return self._least(self.alternatives)

    @property
    def best_pair_for_slowest(self) -> Alternative | None:
        """The pair with the least latency of the slowest requests; None if none has less than all single changes."""
        pair, single = self._least(self.pairs), self._least(self.alternatives)
        if pair is None or single is None:
            return pair
        return pair if _slowest(pair) < _slowest(single) else None

    def _least(self, tried: Sequence[Alternative]) -> Alternative | None:
        least = min((each for each in tried if each.latency is not None), key=_slowest, default=None)
        if least is None or self.base_latency is None or _slowest(least) >= self.base_latency.slowest:
            return None
        return least


def _saves_most(tried: Sequence[Alternative]) -> Alternative | None:
    def rank(each: Alternative) -> tuple[int, float]:
        return -each.saved_cycles, inf if each.price is None or each.price.more is None else each.price.more

    return min((each for each in tried if each.cycles is not None), key=rank, default=None)


def _slowest(each: Alternative) -> float:
    return 0.0 if each.latency is None else each.latency.slowest


def proposed(scenario: Scenario) -> tuple[Change, ...]:
    """List the changes to try, the most telling first: who goes first, then what the machine proposes."""
    return _proposed(scenario.chip, scenario.jobs)


def _proposed(chip: Chip, jobs: Sequence[Job]) -> tuple[Change, ...]:
    target = target_of(chip.kind)
    return (*target.order_changes(chip, jobs), *_shortest_first(chip, jobs), *target.changes(chip, jobs))


def _shortest_first(chip: Chip, jobs: Sequence[Job]) -> list[Change]:
    """The change of the order in which waiting jobs are admitted, if unequal jobs come over time."""
    unequal = len({job.macs for job in jobs}) > 1
    if arriving(jobs) == "at once" or {job.dispatch for job in jobs} != {"fcfs"} or not unequal:
        return []
    shortest = tuple(replace(job, dispatch="sjf") for job in jobs)
    return [Change("shortest job first", "dispatch fcfs -> sjf", chip, shortest)]


def _tried(change: Change, base_cycles: int, base_work: int, tasks: NDArray[np.int64] | None) -> Alternative:
    refused = change.refused
    if change.chip is not None:
        try:
            totals = engines.totals(machines.lower(change.chip, change.jobs), check=False)
        except LstmsimError as error:
            refused = str(error).splitlines()[0]
        else:
            cycles, work = totals.makespan_cycles, int(totals.work.sum())
            if any(job.batching is not None for job in change.jobs):
                # what batches run beyond the steps of their members is no work
                ran = (totals.task("core") >= 0).tolist()
                work = sum(job.macs for job, was in zip(change.jobs, ran, strict=False) if was)
            peak = cycles * sum(core.peak for core in change.chip.core_figures)
            made = change.name, change.detail, cycles, base_cycles - cycles, work / peak if peak else 0.0
            latency = None if tasks is None else _latency(totals, tasks)
            return Alternative(*made, work=work / base_work if base_work else 1.0, latency=latency)
    return Alternative(change.name, change.detail, None, 0, 0.0, refused=refused)


def _latency(totals: Totals, tasks: NDArray[np.int64]) -> TailLatency | None:
    """Latencies of the requests; None if other requests were rejected than in the run with these `tasks`."""
    latencies = _latencies(totals.tasks)
    same = np.array_equal(latencies >= 0, _latencies(tasks) >= 0)
    return tail_latency(latencies[latencies >= 0]) if same else None


def _latencies(tasks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The latency of each task in cycles; -1 for a task that was rejected."""
    core, finish, arrived = (TASKS.of(tasks, name) for name in ("core", "finish", "arrived"))
    latencies: NDArray[np.int64] = np.where(core >= 0, finish - arrived, -1)
    return latencies


def what_if(
    scenario: Scenario,
    base_cycles: int,
    rows: int,
    progress: Callable[[int, int], None] | None = None,
    work: int | None = None,
    tasks: NDArray[np.int64] | None = None,
    prices: Prices | None = None,
) -> WhatIf:
    """Simulate a scenario again and again, each time with one change, then with pairs of them."""
    base_work = sum(job.macs for job in scenario.jobs) if work is None else work
    all_changes = proposed(scenario)
    count = min(len(all_changes), max(_AT_LEAST, MAX_ROWS // max(rows, 1)))
    most_pairs = min(MOST_PAIRS, _PAIR_ROWS // max(rows, 1))

    # where skipping decides what is multiplied, the same jobs are asked for, whatever is multiplied
    compared = 0 if target_of(scenario.chip.kind).reads_numbers(scenario.chip) else base_work

    def tried(changes: Sequence[Change], done: int, total: int) -> list[Alternative]:
        results = []
        for number, change in enumerate(changes, done):
            if progress is not None:
                progress(number, total)
            result = _tried(change, base_cycles, compared, tasks)
            known = None if prices is None or result.cycles is None else prices(change)
            results.append(replace(result, price=known))
        return results

    alternatives = tried(all_changes[:count], 0, count + most_pairs)
    peak = base_cycles * sum(core.peak for core in scenario.chip.core_figures)
    useful = base_work / peak if peak else 0.0
    found = _pairs(scenario, useful, all_changes[:count], alternatives) if most_pairs else []
    total = count + len(found[:most_pairs])
    results = tried([change for _, change in found[:most_pairs]], count, total)
    paired = [replace(each, pair=names) for each, (names, _) in zip(results, found, strict=False)]
    if progress is not None:
        progress(total, total)
    latencies = None if tasks is None else _latencies(tasks)
    return WhatIf(
        base_cycles,
        _ordered(alternatives),
        tuple(each.name for each in all_changes[count:]),
        None if latencies is None else tail_latency(latencies[latencies >= 0]),
        _ordered([each for each in paired if each.cycles is not None]),
        len(found) - len(results) if most_pairs else None,
    )


def _ordered(tried: Sequence[Alternative]) -> tuple[Alternative, ...]:
    # sorting is stable: of equal alternatives the more telling change stays first
    return tuple(sorted(tried, key=lambda each: (each.cycles is None, -each.saved_cycles)))


def _pairs(
    scenario: Scenario, useful: float, changes: Sequence[Change], tried: Sequence[Alternative]
) -> list[tuple[tuple[str, str], Change]]:
    """The names and the change of each pair of which at least one change helps alone, the most promising first."""
    singles = [(one, each.saved_cycles, each.utilization - useful) for one, each in zip(changes, tried, strict=True)]
    singles = [single for single, each in zip(singles, tried, strict=True) if each.cycles is not None]
    known = {change.name: (saved, gained) for change, saved, gained in singles}
    seen: list[tuple[Chip | None, Sequence[Job]]] = [(scenario.chip, scenario.jobs)]
    seen += [(change.chip, change.jobs) for change, *_ in singles]
    found = []
    for first, saved, gained in singles:
        for change in () if first.chip is None else _proposed(first.chip, first.jobs):
            more_saved, more_gained = known.get(change.name, (0, 0.0))
            helps = max(saved, gained, more_saved, more_gained) > 0
            if change.name == first.name or change.chip is None or not helps or (change.chip, change.jobs) in seen:
                continue
            seen.append((change.chip, change.jobs))
            detail = ", ".join(each for each in (first.detail, change.detail) if each)
            names = first.name, change.name
            pair = names, Change(" + ".join(names), detail, change.chip, change.jobs)
            found.append((saved + more_saved, gained + more_gained, pair))
    saving = sorted(found, key=lambda each: -each[0])
    gaining = sorted(found, key=lambda each: -each[1])
    turns = chain.from_iterable(zip_longest(saving, gaining))
    return list({each[2][0]: each[2] for each in turns if each is not None}.values())
