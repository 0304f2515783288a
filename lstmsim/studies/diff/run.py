"""A diff of two runs: every row with the numbers of both sides (docs/diff.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from lstmsim.base.units import cycles_to_ms
from lstmsim.studies.diff.arrivals import arrivals_of, verdict_of
from lstmsim.studies.diff.described import changed
from lstmsim.studies.diff.parting import parting
from lstmsim.studies.diff.request import DiffRequest
from lstmsim.studies.diff.result import Changed, CoreRow, Diff, JobRow, Pair, Parting, PathRow, Verdict
from lstmsim.studies.diff.sides import CoreCycles, Pairing, Side, paired, sides_of
from lstmsim.studies.shared.request import takes


@takes(DiffRequest)
def diff(request: DiffRequest) -> Diff:
    """Compare two runs: what differs in the descriptions, and where every cycle between the runs went.

    The rows of the critical path, of each core and of each job add up to what they explain, on both sides.

    `InputError` for sides that cannot be compared, and where a trace is too long to keep.

    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 5}]}
    >>> found = diff(scenario, overrides=["chip.cores.0.latency.writeback=6"])
    >>> found.makespan_cycles, found.verdict, found.changed[0].values
    ((364, 374), 'slower', (4, 6))
    >>> [sum(row.cycles[side] for row in found.path) for side in (0, 1)]
    [364, 374]
    """
    a, b = sides_of(request)
    pairs = paired(a.jobs, b.jobs)
    keys = changed(a, b)
    makespan = a.trace.makespan_cycles, b.trace.makespan_cycles
    clock, cycles = _time(makespan, (a.frequency_mhz, b.frequency_mhz))
    parts_at, apart, lag = parting(a, b)
    arrivals = arrivals_of(a, b, pairs)
    return Diff(
        names=(a.name, b.name),
        chips=(a.chip, b.chip),
        frequency_mhz=(a.frequency_mhz, b.frequency_mhz),
        makespan_cycles=makespan,
        ms=(cycles_to_ms(makespan[0], a.frequency_mhz), cycles_to_ms(makespan[1], b.frequency_mhz)),
        clock_ms=float(clock),
        cycles_ms=float(cycles),
        changed=keys,
        path=_path(a.path, b.path),
        cores=_cores(a.cores, b.cores),
        jobs=_jobs(a, b, pairs),
        parts_at=None if parts_at is None else _by_the_key(parts_at, keys),
        apart=apart,
        lag=lag,
        arrivals=arrivals,
        verdict=_by_makespan(clock + cycles) if arrivals is None else verdict_of(arrivals),
        words={**a.words, **b.words},
        runs=(a.run, b.run),
    )


def _time(cycles: tuple[int, int], mhz: tuple[float, float]) -> tuple[Fraction, Fraction]:
    """The parts of the difference of two times in ms, by the clock and by the cycles, exactly."""
    a, b = (1 / Fraction(each) / 1000 for each in mhz)
    return Fraction(sum(cycles), 2) * (b - a), Fraction(cycles[1] - cycles[0], 2) * (a + b)


def _by_makespan(more: Fraction) -> Verdict:
    return "same" if not more else "faster" if more < 0 else "slower"


def _by_the_key(parts_at: Parting, keys: Sequence[Changed]) -> Parting:
    """Name the key that changed, if it is the only one: all that follows comes from it."""
    if len(keys) != 1:
        return parts_at
    return replace(parts_at, why=f"{parts_at.why}; the one key that changed is {keys[0].key}")


def _path(a: Mapping[tuple[str, str], int], b: Mapping[tuple[str, str], int]) -> tuple[PathRow, ...]:
    rows = [PathRow(*key, (a.get(key, 0), b.get(key, 0))) for key in dict.fromkeys([*a, *b])]
    return tuple(sorted(rows, key=lambda row: (-abs(row.cycles[1] - row.cycles[0]), row.what, row.why)))


def _cores(a: Sequence[CoreCycles], b: Sequence[CoreCycles]) -> tuple[CoreRow, ...]:
    by_number = [{each.core: each for each in side} for side in (a, b)]
    rows = []
    for number in sorted({*by_number[0], *by_number[1]}):
        both = by_number[0].get(number), by_number[1].get(number)
        rows.append(
            CoreRow(
                number,
                _pair([None if each is None else each.ways for each in both]),
                _named([None if each is None else each.cycles for each in both]),
                _pair([None if each is None else each.peak for each in both]),
                _named([None if each is None else each.multiplier_cycles for each in both]),
            )
        )
    return tuple(rows)


def _pair(values: Sequence[int | None]) -> Pair:
    return values[0], values[1]


def _named(sides: Sequence[Mapping[str, int] | None]) -> dict[str, Pair]:
    """The numbers of both sides by name: 0 for a name that a side has not, None where there is no such side."""
    names = dict.fromkeys(name for each in sides if each is not None for name in each)
    return {name: _pair([None if each is None else each.get(name, 0) for each in sides]) for name in names}


def _jobs(a: Side, b: Side, pairs: Sequence[Pairing]) -> tuple[JobRow, ...]:
    # the work of unlike units has one name, so that it is one row
    units = (a.unit, b.unit) if a.unit == b.unit else ("work", "work")
    requests = a.requests(units[0]), b.requests(units[1])
    rows = []
    for numbers in pairs:
        names = [side.jobs[at] for side, at in zip((a, b), numbers, strict=True) if at is not None]
        both = [None if at is None else each[at] for each, at in zip(requests, numbers, strict=True)]
        latency = _pair([None if each is None else each.latency_cycles for each in both])
        rows.append(JobRow(names[0], numbers, latency, _named([each.cycles if each else None for each in both])))
    return tuple(rows)
