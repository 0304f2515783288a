"""A diff of two runs: every row with the numbers of both sides (docs/diff.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

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
    arrivals, jobs = arrivals_of(a, b, pairs), _jobs(a, b, pairs)
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
        several_paths=(a.walked.several, b.walked.several),
        cores=_cores(a.cores, b.cores),
        jobs=jobs,
        parts_at=None if parts_at is None else _by_the_key(parts_at, keys),
        apart=apart,
        lag=lag,
        arrivals=arrivals,
        verdict=_by_makespan(clock + cycles, jobs) if arrivals is None else verdict_of(arrivals),
        words={**a.words, **b.words},
        runs=(a.run, b.run),
    )


def _time(cycles: tuple[int, int], mhz: tuple[float, float]) -> tuple[Fraction, Fraction]:
    """The parts of the difference of two times in ms, by the clock and by the cycles, exactly."""
    a, b = (1 / Fraction(each) / 1000 for each in mhz)
    return Fraction(sum(cycles), 2) * (b - a), Fraction(cycles[1] - cycles[0], 2) * (a + b)


def _by_makespan(more: Fraction, jobs: Sequence[JobRow]) -> Verdict:
    """Say whether B is faster; not of a side that serves fewer of the jobs that both have, for it has less to do."""
    fewer = sum(
        (row.latency_cycles[1] is None) - (row.latency_cycles[0] is None) for row in jobs if None not in row.numbers
    )
    if (more <= 0 and fewer > 0) or (more >= 0 and fewer < 0):
        return "cannot tell"
    return "same" if not more else "faster" if more < 0 else "slower"


def _by_the_key(parts_at: Parting, keys: Sequence[Changed]) -> Parting:
    """Name the key that changed, if it is the only one: all that follows comes from it."""
    if len(keys) != 1:
        return parts_at
    return replace(parts_at, why=f"{parts_at.why}; the one key that changed is {keys[0].key}{keys[0].where}")


def _path(a: Mapping[tuple[str, str], int], b: Mapping[tuple[str, str], int]) -> tuple[PathRow, ...]:
    rows = [PathRow(*key, (a.get(key, 0), b.get(key, 0))) for key in dict.fromkeys([*a, *b])]
    return tuple(sorted(rows, key=lambda row: (-abs(row.more), row.what, row.why)))


def _cores(*sides: Sequence[CoreCycles]) -> tuple[CoreRow, ...]:
    by_number = [{each.core: each for each in side} for side in sides]
    rows = []
    for number in sorted({*by_number[0], *by_number[1]}):
        both = [each.get(number) for each in by_number]
        cycles, multiplier_cycles = (_named(_pair(both, name)) for name in ("cycles", "multiplier_cycles"))
        rows.append(CoreRow(number, _pair(both, "ways"), _pair(both, "peak"), cycles, multiplier_cycles))
    return tuple(rows)


def _pair(sides: Sequence[Any], name: str) -> tuple[Any, Any]:
    """An attribute of both sides; None where there is no such side."""
    a, b = (None if each is None else getattr(each, name) for each in sides)
    return a, b


def _named(sides: Sequence[Mapping[str, int] | None]) -> dict[str, Pair]:
    """The numbers of both sides by name: 0 for a name that a side has not, None where there is no such side."""
    names = dict.fromkeys(name for each in sides if each is not None for name in each)
    a, b = ([None if each is None else each.get(name, 0) for name in names] for each in sides)
    return dict(zip(names, zip(a, b, strict=True), strict=True))


def _jobs(a: Side, b: Side, pairs: Sequence[Pairing]) -> tuple[JobRow, ...]:
    # the work of unlike units has one name, so that it is one row
    requests = [each.requests(each.unit if a.unit == b.unit else "work") for each in (a, b)]
    rows = []
    for numbers in pairs:
        name = next(side.jobs[at] for side, at in zip((a, b), numbers, strict=True) if at is not None)
        both = [None if at is None else each[at] for each, at in zip(requests, numbers, strict=True)]
        rows.append(JobRow(name, numbers, _pair(both, "latency_cycles"), _named(_pair(both, "cycles"))))
    return tuple(rows)
