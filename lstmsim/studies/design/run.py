"""A design from its request to its result: the space, its bounds, the walk, and what is asked of the best design."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import refuse_if_read
from lstmsim.base.wording import nearest
from lstmsim.machines.bounds import Column
from lstmsim.model.scenario import Scenario
from lstmsim.studies.design.accurate import Least
from lstmsim.studies.design.alike import Alikes
from lstmsim.studies.design.bounds.jobs import Bounded, bounded, percentile_of
from lstmsim.studies.design.bounds.multipliers import multiplier_blocks
from lstmsim.studies.design.default import default_space
from lstmsim.studies.design.extras import chip_files, chip_names, more_of, rivals_of
from lstmsim.studies.design.judge import Judge, scaled
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.request import OBJECTIVES, PERCENT_OF, PERCENTILES, DesignRequest
from lstmsim.studies.design.result import Design, written
from lstmsim.studies.design.space import Box, Broken, Space, space_of
from lstmsim.studies.design.stability import Stable
from lstmsim.studies.design.walk import (
    INACCURATE,
    INFEASIBLE,
    LEFT,
    OUT,
    PRUNED,
    SIMULATED,
    TOO_LARGE,
    Bounds,
    Found,
    Known,
    Labels,
    Walk,
)
from lstmsim.studies.fit.device import Device, device
from lstmsim.studies.shared.loading import file_or_data, load_scenario
from lstmsim.studies.shared.request import takes
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.sweep.run import made_folder, results_of
from lstmsim.studies.sweep.spec import Objective
from lstmsim.studies.sweep.store import SPELLING, Store, sidecars
from lstmsim.studies.sweep.table import About, export, keep, table_names

#: Best designs that the result names and that are written as files.
SHOWN = 10
#: Simulated designs and places of bounds that a picture has.
_DRAWN, _CURVE = 20_000, 500
#: A percentile is a sum of rounded products; so much less than it is surely less.
_ROUNDED = 1 - 1e-12


@takes(DesignRequest)
def design(request: DesignRequest) -> Design:
    """Find the best chip for a scenario's jobs among all designs of a space, or the front, and prove it.

    The result is the same on any number of processes.

    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> found = design(scenario, "none", axes={"chip.cores.0.ep": [16, 32, 64], "chip.cores.0.vp": [1024]}, jobs=1)
    >>> found.best[0].values["chip.cores.0.ep"], found.proven, found.space
    (64, True, 3)
    """
    _check(request)
    source = file_or_data(request.scenario) if not isinstance(request.scenario, str | os.PathLike) else request.scenario
    scenario = load_scenario(request.scenario, request.overrides)
    there = None if request.device == "none" else device(os.fspath(request.device))
    if there is not None and request.fill is not None:
        there = scaled(there, request.fill)
    judge = Judge(there, request.allow_cannot_tell)
    judge.refuse(scenario)
    least = None if request.accuracy_db is None else Least(scenario, request.accuracy_db)
    axes, fixed = (request.axes, ()) if request.axes else default_space(scenario, there, request.overrides)
    space = space_of(source, axes, [*fixed, *request.overrides])
    if request.announce is not None:
        request.announce(f"space: {space.size:,} designs: {_listed(space)}")
    with _store(request, space) as store:
        known = _known(space, there, request, least)
        limit = None if request.bound_ms is None else (PERCENTILES[request.percentile], request.bound_ms)

        def results(points: Sequence[int]) -> Any:
            return results_of(space.setup, points, len(points), request.jobs, request.dask)

        measure = Measure(space, judge, request.minimise, known.rates, limit, store, results)
        made = _Design(request, scenario, space, known, measure, tuple(fixed)).result()
        if store is None or request.folder is None:
            return made
        folder = os.fspath(request.folder)
        return replace(
            made, files=(*export(store, os.path.join(folder, "design")), *chip_files(space, made.best, folder))
        )


def _listed(space: Space) -> str:
    """The keys of a space with their values, in a line."""
    texts = [(space.keys[axis.name], [written(each) for each in axis.values]) for axis in space.axes]
    return "; ".join(f"{key} {', '.join(each[:8])}{', ...' * (len(each) > 8)}" for key, each in texts)


def _check(request: DesignRequest) -> None:
    """`InputError` for what does not go together."""
    if not request.minimise:
        raise InputError(Mistake("minimise", f"expected at least one of {', '.join(OBJECTIVES)}"))
    for name in request.minimise:
        if name not in OBJECTIVES:
            text = f"is not known{nearest(name, OBJECTIVES)}; there are: {', '.join(OBJECTIVES)}"
            raise InputError(Mistake(f"minimise {name}", text))
    if len(set(request.minimise)) < len(request.minimise):
        raise InputError(Mistake("minimise", "names something twice"))
    if request.percentile not in PERCENTILES:
        known = ", ".join(map(str, PERCENTILES))
        raise InputError(Mistake("percentile", f"must be one of {known}, got {request.percentile}"))
    if request.device == "none":
        for wrong, name in ((request.fill is not None, "fill"), ("share" in request.minimise, "minimise share")):
            if wrong:
                raise InputError(Mistake(name, "needs a device, got none"))


@contextmanager
def _store(request: DesignRequest, space: Space) -> Iterator[Store | None]:
    """The open store of the folder, with what was simulated before; None without a folder."""
    if request.folder is None:
        yield None
        return
    folder = os.fspath(request.folder)
    stem = os.path.join(folder, "design")
    for each in (f"{stem}.sqlite", *sidecars(f"{stem}.sqlite"), *table_names(stem), *chip_names(folder)):
        refuse_if_read(each)
    with made_folder(folder), Store(f"{stem}.sqlite", create=True) as store:
        setup = space.setup
        columns = [
            *((name, setup.sweep.paths[name]) for name in setup.sweep.names),
            *((each, ()) for each in setup.chip.names),
        ]
        store.begin(f"{setup.identity} {SPELLING}", columns, space.size)
        store.mend()
        judged = dict.fromkeys(OBJECTIVES[each] for each in request.minimise if OBJECTIVES[each])
        keep(store, [Objective(each) for each in judged or ("makespan_cycles",)], About("design", ""))
        yield store


def _known(space: Space, there: Device | None, request: DesignRequest, accurate: Least | None) -> Known:
    """Bound all points, and label those that break a rule or need too many multiplier blocks."""
    size = space.size
    labels, rates = Labels.of(size), np.ones(size)
    least, which = np.zeros((size, len(request.minimise))), np.zeros(size, np.int8)
    blocks = np.zeros(size, np.int64)
    names = {"": 0}
    complete = True
    for box in space.boxes():
        if isinstance(box, Broken):
            labels.mark(box.points, INFEASIBLE, box.reason)
            continue
        rates[box.points] = box.scenario.chip.frequency_mhz
        if accurate is not None and (missed := accurate.missed(box.scenario)):
            labels.mark(box.points, INACCURATE, missed)
        own = bounded(box)
        if own is None:
            complete = False
            continue
        for rule, wrong in own.broken.items():
            labels.mark(box.points[np.broadcast_to(wrong, box.points.shape)], INFEASIBLE, rule)
        for place, objective in enumerate(request.minimise):
            numbers, due = _least(objective, own, box)
            least[box.points, place] = numbers
            if place == 0:
                codes = np.array([names.setdefault(each, len(names)) for each in due[1]], np.int8)
                which[box.points] = codes[due[0]]
        if request.bound_ms is not None:
            wait = percentile_of(own, request.percentile) / box.scenario.chip.frequency_mhz / 1000
            late = np.broadcast_to(wait * _ROUNDED > request.bound_ms, box.points.shape)
            labels.mark(box.points[late], PRUNED, "bound_ms: latency")
        if there is not None:
            needs = multiplier_blocks(box, there)
            blocks[box.points] = 0 if needs is None else np.where(own.whole, needs, 0)
    return Known(there, labels, Bounds(least, which, tuple(names)), rates, blocks, complete)


def _least(objective: str, own: Bounded, box: Box) -> tuple[Column, tuple[Column, list[str]]]:
    """The least of what is minimised, and what it is due to: (numbers of names, names)."""
    if objective in PERCENT_OF:
        cycles = percentile_of(own, PERCENT_OF[objective])
        return cycles / box.scenario.chip.frequency_mhz / 1000 * _ROUNDED, (0, ["latency"])
    if not OBJECTIVES[objective]:
        return 0.0, (0, ["what it takes"])
    table = np.stack([np.broadcast_to(each, box.points.shape) for each in own.makespan.values()] or [0 * box.points])
    best = table.max(axis=0)
    due = (table.argmax(axis=0), list(own.makespan) or [""])
    return (best / box.scenario.chip.frequency_mhz / 1000 if objective == "ms" else best), due


@dataclass
class _Design:
    """One design, put together; `fixed`: what the space sets beside its keys."""

    request: DesignRequest
    scenario: Scenario
    space: Space
    known: Known
    measure: Measure
    fixed: tuple[str, ...]

    def result(self) -> Design:
        """Walk, and ask what is asked of the best."""
        labels, several = self.known.labels.copy(), len(self.request.minimise) > 1
        self.known.mark_too_large(labels)
        tick = self.request.progress or (lambda done, total: None)
        found = Walk(self.known.bounds, labels, self.measure, self.request.most, tick).run()
        walked = set(self.measure.asked)
        front = found.front()
        shown = front if several else front[:SHOWN]
        best = tuple(self.measure.choice(point, found.points[point]) for point in shown)
        gap, proven = self._proof(found, front)
        single = bool(best) and not several
        rivals = rivals_of(self.space, labels, self.measure, best[0]) if single else ()
        more = more_of(self.known, self.measure, found, best[0]) if single else ()
        alikes = Alikes(self.space, self.request.minimise[0], self.request.until) if single and self._drawn() else None
        alike = alikes.of(found, best[0], self.measure) if alikes else ()
        stable = Stable(self.space, self.measure, found, best, rivals) if self.request.stability else None
        holds = stable.of(self.request.stability) if stable and self.request.stability else None
        keys = [self.space.keys[axis.name] for axis in self.space.axes]
        extra = (alikes.runs if alikes else 0) + (stable.runs if stable else 0)
        return Design(
            scenario=self.scenario.name,
            device="" if self.known.device is None else self.known.device.name,
            minimise=tuple(self.request.minimise),
            axes={self.space.keys[axis.name]: axis.values for axis in self.space.axes},
            fixed=self.fixed,
            space=self.space.size,
            infeasible=labels.counts(INFEASIBLE),
            does_not_fit=labels.counts(TOO_LARGE),
            inaccurate=labels.counts(INACCURATE),
            pruned=labels.counts(PRUNED),
            simulated=labels.count(SIMULATED),
            left=labels.count(LEFT),
            late=labels.count(SIMULATED) - len(found.points),
            extra_runs=len(self.measure.asked - walked) + extra,
            best=best,
            equal=len(front) if not several else 0,
            gap=gap,
            proven=proven,
            rivals=rivals,
            more=more,
            alike=alike,
            stability=holds,
            bounded=self.known.complete,
            drawn=self._drawn(),
            remarks=tuple(self._remarks(found)),
            stamp=stamp_of_scenario(self.measure.scenario(front[0]), keys) if front else None,
            **self._drawn_points(found),
        )

    def _drawn_points(self, found: Found) -> dict[str, Any]:
        """What the picture shows."""
        points = np.flatnonzero(~np.isin(found.labels.label, OUT))
        points = points[np.lexsort((points, *self.known.bounds.least[points].T[::-1]))]
        if len(self.request.minimise) > 1:
            return {"seen": tuple(list(found.points.values())[:_DRAWN])}
        place = {point: float(number) for number, point in enumerate(points.tolist(), start=1)}
        seen = [(place[point], values[0]) for point, values in found.points.items()]
        ends = np.unique(np.geomspace(1, len(points), min(len(points), _CURVE)).astype(int)) if len(points) else points
        curve = [(float(end), float(self.known.bounds.least[points[end - 1], 0])) for end in ends.tolist()]
        return {"seen": tuple(seen[:_DRAWN]), "bounds": tuple(curve)}

    def _drawn(self) -> bool:
        """Whether what is minimised is a statistic of arrivals that are drawn."""
        jobs = self.space.setup.document.data.get("jobs")
        entries = jobs if isinstance(jobs, list) else []
        drawn = any(isinstance(job, dict) and isinstance(job.get("arrival"), dict) for job in entries)
        return drawn and any(each in PERCENT_OF for each in self.request.minimise)

    def _proof(self, found: Found, front: Sequence[int]) -> tuple[float | None, bool]:
        """How far the best is from the best bound left; and whether nothing else can be better."""
        open_points = [*np.flatnonzero(found.labels.label == LEFT).tolist(), *found.failed]
        if len(self.request.minimise) > 1 or not front:
            return None, not open_points
        best = found.points[front[0]][0]
        least = min(self.known.bounds.least[open_points, 0].tolist(), default=best)
        gap = max(0.0, (best - least) / best) if best else 0.0
        return (gap if isfinite(gap) else None), gap == 0.0

    def _remarks(self, found: Found) -> Iterator[str]:
        front = found.front()
        rejected = self.measure.rejected(front[0]) if front else 0
        if rejected:
            text = "latencies are of those that it serves, and who rejects more has less to do"
            yield f"The best design rejects {rejected:,} requests: {text}."
        keys = [self.space.keys[axis.name] for axis in self.space.axes]
        if any(".latency." in key or key.endswith("frequency_mhz") for key in keys):
            yield "Latencies and clocks are assumptions: nothing prices them here, so the least and the highest win."
        if self.request.accuracy_db is not None:
            yield "Accuracy is that on the jobs' own inputs: on others it may be less."
        elif any(key.startswith("precision.") for key in keys):
            yield "Widths are not judged by accuracy: --accuracy-db does so, where weights and inputs are there."
        if "energy_j" in self.request.minimise:
            yield "Energies are relative, from a table of another process, and leave out the device."
        if not self.known.complete:
            yield "This machine gives no bounds: every design that fits was simulated."
        if found.failed:
            yield f"{len(found.failed):,} designs could not be simulated; their bounds count as left."
