"""The validation as a whole: it reads published figures, simulates everything, and compares."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import nearest
from lstmsim.engines import ENGINES
from lstmsim.files.tables import published
from lstmsim.files.tables.published import Claim, IntelWorkload, Measurement
from lstmsim.studies.validate.bench import Bench
from lstmsim.studies.validate.brainwave import FITTED_GROUP, HELD_OUT_GROUP, brainwave_group, in_group
from lstmsim.studies.validate.claims import claim_rows
from lstmsim.studies.validate.intel import CPP, RTL, intel_group
from lstmsim.studies.validate.rows import Group, Validation
from lstmsim.studies.validate.v100 import V100, v100_group, v100_rows

__all__ = ["CLAIMS", "GROUPS", "Published", "read_published", "validate"]

CLAIMS = "claims"

#: The parts of a validation that can be asked for, in the order of the tables.
GROUPS = (RTL, CPP, FITTED_GROUP, HELD_OUT_GROUP, V100, CLAIMS)


@dataclass(frozen=True)
class Published:
    """The published figures that simulated ones are compared with.

    intel: Intel's workloads.
    deepbench: DeepBench latencies of all designs.
    claims: claims of sources that print no table.
    """

    intel: tuple[IntelWorkload, ...]
    deepbench: tuple[Measurement, ...]
    claims: tuple[Claim, ...]


def read_published(folder: str | os.PathLike[str] | None = None) -> Published:
    """Read the published tables; `InputError` for a damaged one.

    folder: holds tables of the same form; None: the tables that come with lstmsim.

    >>> len(read_published().intel)
    19
    """
    return Published(published.intel_npu(folder), published.deepbench(folder), published.claims(folder))


def validate(
    groups: Sequence[str] = GROUPS,
    *,
    engine: str = "fast",
    figures: Published | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Simulate what the groups claim to reproduce and compare it with the published figures.

    A figure that leaves its band is named in the result's `failures`; no error is raised.

    groups: of `GROUPS`.
    engine: the engine of the runs.
    figures: the published figures; None: those that come with lstmsim.
    progress: is called with comparisons done and in all.
    `InputError` for an unknown group or engine.

    >>> compared = validate(["brainwave-held-out"])
    >>> compared.failures, compared.groups[0].within
    ((), 5)
    """
    wanted = [each for each in GROUPS if each in groups]
    mistakes = [_unknown("group", each, GROUPS) for each in groups if each not in GROUPS]
    if engine not in ENGINES:
        mistakes.append(_unknown("engine", engine, tuple(ENGINES)))
    if mistakes:
        raise InputError(mistakes)
    figures = figures or read_published()
    bench = Bench(engine)
    tick = _ticker(sum(_size(each, figures) for each in wanted), progress)
    compared = [_group(each, figures, bench, tick) for each in wanted if each != CLAIMS]
    claims = claim_rows(figures.claims, figures.deepbench, bench, tick) if CLAIMS in wanted else ()
    return Validation(engine, tuple(compared), claims)


def _unknown(what: str, name: str, known: Sequence[str]) -> Mistake:
    return Mistake(what, f"no {what} called {name!r}{nearest(name, known) or '; there are: ' + ', '.join(known)}")


def _group(key: str, figures: Published, bench: Bench, tick: Callable[[], None]) -> Group:
    if key in (RTL, CPP):
        return intel_group(key, figures.intel, bench, tick)
    if key == V100:
        return v100_group(figures.deepbench, bench, tick)
    return brainwave_group(key, figures.deepbench, bench, tick)


def _size(key: str, figures: Published) -> int:
    """How many comparisons a group has."""
    if key == CLAIMS:
        return len(figures.claims)
    if key == V100:
        return len(v100_rows(figures.deepbench))
    return len(figures.intel) if key in (RTL, CPP) else len(in_group(key, figures.deepbench))


def _ticker(total: int, progress: Callable[[int, int], None] | None) -> Callable[[], None]:
    """A function that counts its calls and tells `progress`."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return tick
