"""A design from its request to its result: the space, its bounds, the walk, and what is asked of the best design."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import refuse_if_read
from lstmsim.machines.rtl import ClockModel
from lstmsim.model.scenario import Scenario
from lstmsim.report.stamp import Stamp
from lstmsim.studies.board.build import clock_model, clock_of, clock_told
from lstmsim.studies.design.alike import Alikes, unsure_of, unsure_times
from lstmsim.studies.design.bounds.points import known_of
from lstmsim.studies.design.default import default_space
from lstmsim.studies.design.extras import chip_files, chip_names, more_of, rivals_of
from lstmsim.studies.design.judge import Judge, Least, scaled
from lstmsim.studies.design.measure import Measure
from lstmsim.studies.design.rates import rates_for
from lstmsim.studies.design.request import OBJECTIVES, PERCENT_OF, PERCENTILES, DesignRequest, checked
from lstmsim.studies.design.result import Alike, Design, More, Rival, written
from lstmsim.studies.design.space import Space, space_of
from lstmsim.studies.design.stability import Stable
from lstmsim.studies.design.trials import MOST, Tally, chosen, optuna_study, tallied
from lstmsim.studies.design.walk import (
    INACCURATE,
    INFEASIBLE,
    LEFT,
    OUT,
    PRUNED,
    SIMULATED,
    TOO_LARGE,
    UNTIMED,
    Found,
    Known,
    Labels,
    Walk,
)
from lstmsim.studies.fit.device import Device, device
from lstmsim.studies.shared.loading import file_or_data, load_at_clocks, load_scenario
from lstmsim.studies.shared.request import takes
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.sweep.run import begin, made_folder, results_of
from lstmsim.studies.sweep.spec import Objective
from lstmsim.studies.sweep.spec_file import MAX_POINTS
from lstmsim.studies.sweep.store import Store, sidecars
from lstmsim.studies.sweep.table import About, export, table_names

#: Best designs that the result names and that are written as files.
SHOWN = 10
#: Simulated designs and places of bounds that a picture has.
_DRAWN, _CURVE = 20_000, 500


@takes(DesignRequest)
def design(request: DesignRequest) -> Design:
    """Find the best chip for a scenario's jobs among all designs of a space, or the front, and prove it.

    The result is the same on any number of processes.

    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> found = design(scenario, "none", axes={"chip.cores.0.ep": [16, 32, 64], "chip.cores.0.vp": [1024]}, jobs=1)
    >>> found.best[0].values["chip.cores.0.ep"], found.proven, found.space
    (64, True, 3)
    """
    request, said = _clocked(checked(request))
    source = file_or_data(request.scenario) if not isinstance(request.scenario, str | os.PathLike) else request.scenario
    scenario = load_scenario(request.scenario, request.overrides)
    there = None if request.device == "none" else device(os.fspath(request.device))
    if there is not None and request.fill is not None:
        there = scaled(there, request.fill)
    judge = Judge(there, request.allow_cannot_tell)
    judge.refuse(scenario)
    clock = _model(request, scenario, there) if request.told else None
    least = None if request.accuracy_db is None else Least(scenario, request.accuracy_db)
    axes, fixed = (request.axes, ()) if request.axes else default_space(scenario, there, tuple(request.overrides))
    study = None if request.trials is None else optuna_study()
    space = space_of(source, axes, [*fixed, *request.overrides], MAX_POINTS if study is None else MOST)
    if request.announce is not None:
        request.announce(f"space: {space.size:,} designs: {_listed(space)}")
    with _store(request, space) as store:
        rates = rates_for(request, space, fixed)
        bounds = partial(known_of, there=there, request=request, accurate=least, rates=rates, clock=clock)
        bound = None if rates else request.bound_ms
        limit = None if bound is None else (PERCENTILES[request.percentile], bound)

        def results(points: Sequence[int]) -> Any:
            return results_of(space.setup, points, len(points), request.jobs, request.dask)

        measure = Measure(space, judge, request.names, limit, store, results, rates, clock)
        tick = request.progress or (lambda done, total: None)
        if request.trials is None:
            walked = _walked(bounds, space, measure, request.most, tick)
        else:
            walked = _tried(bounds, space, *chosen(space, measure, study, request.trials, tick))
        made = _Design(request, scenario, space, walked, measure, tuple(fixed), said).result()
        if store is None or request.folder is None:
            return made
        folder = os.fspath(request.folder)
        return replace(
            made, files=(*export(store, os.path.join(folder, "design")), *chip_files(space, made.best, folder))
        )


def _clocked(request: DesignRequest) -> tuple[DesignRequest, str]:
    """The request with the clock that it names as a key of the chip, and where that clock comes from."""
    if request.clock is None or request.told:
        return request, ""
    mhz, said = clock_of(os.fspath(request.clock))
    return replace(request, overrides=(*request.overrides, f"chip.frequency_mhz={mhz!r}")), said


def _model(request: DesignRequest, scenario: Scenario, there: Device | None) -> ClockModel:
    """The model that tells the clock of each design; `InputError` where it cannot be used."""
    own = clock_model(scenario.chip.kind)
    if there is not None and there.multiplier != own.multiplier:
        text = f"{there.name} is of another family than the clock model: {own.family}, with {own.multiplier}"
        raise InputError(Mistake("device", text))
    _, at_clock = load_at_clocks(request.scenario, request.overrides)
    slow, fast = (at_clock(mhz).jobs for mhz in (scenario.chip.frequency_mhz, 2 * scenario.chip.frequency_mhz))
    if slow != fast:
        text = "model does not go with arrivals or frames by the second: they come at other cycles at each clock"
        raise InputError(Mistake("clock", text))
    return own


def _listed(space: Space) -> str:
    """The keys of a space with their values, in a line."""
    texts = [(space.keys[axis.name], [written(each) for each in axis.values]) for axis in space.axes]
    return "; ".join(f"{key} {', '.join(each[:8])}{', ...' * (len(each) > 8)}" for key, each in texts)


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
        judged = dict.fromkeys(OBJECTIVES[each] for each in request.minimise if OBJECTIVES[each])
        objectives = [Objective(each) for each in judged or ("makespan_cycles",)]
        begin(store, space.setup, objectives, About("design", ""))
        yield store


@dataclass(frozen=True)
class _Walked:
    """What is known after the walk; least: the least bound of what was not looked at or could not be simulated."""

    known: Known
    labels: Labels | Tally
    found: Found
    least: float


def _walked(
    bounds: Callable[..., Known], space: Space, measure: Measure, most: int | None, tick: Callable[[int, int], None]
) -> _Walked:
    """Walk a space in the order of its bounds."""
    known = bounds(space.size, space.boxes())
    labels = known.labels.copy()
    known.mark_too_large(labels)
    found = Walk(known.bounds, labels, measure, most, tick).run()
    left = [*np.flatnonzero(labels.label == LEFT).tolist(), *found.failed]
    return _Walked(known, labels, found, known.bounds.least[left, 0].min(initial=inf))


def _tried(bounds: Callable[..., Known], space: Space, found: Found, labels: dict[int, tuple[int, str]]) -> _Walked:
    """Hold the best of designs that were chosen against the bounds of all."""
    tally = tallied(space, found, labels, lambda box: bounds(len(box.points), [box]))
    return _Walked(bounds(0, []), tally, found, tally.least)


@dataclass
class _Design:
    """One design, put together; `fixed`: what the space sets beside its keys; `said`: where the clock comes from."""

    request: DesignRequest
    scenario: Scenario
    space: Space
    walked: _Walked
    measure: Measure
    fixed: tuple[str, ...]
    said: str = ""

    def result(self) -> Design:
        """Ask what is asked of the best."""
        known, labels, found = self.walked.known, self.walked.labels, self.walked.found
        several, walked = len(self.request.names) > 1, set(self.measure.asked)
        front = found.front()
        shown = front if several else front[:SHOWN]
        best = tuple(self.measure.choice(point, found.points[point]) for point in shown)
        gap, proven = self._proof(front)
        single = bool(best) and not several
        rivals, more = tuple[Rival, ...](), tuple[More, ...]()
        if single and isinstance(labels, Labels):
            rivals = rivals_of(self.space, labels, self.measure, best[0])
            more = more_of(known, self.measure, found, best[0])
        alikes = Alikes(self.space, self.request.names[0], self.request.until) if single and self._drawn() else None
        alike: tuple[Alike, ...] = ()
        shaky: tuple[int, ...] = ()
        if self.measure.clock is not None:
            alike, shaky = unsure_times(found, self.measure)
        elif single:
            alike = alikes.of(found, best[0], self.measure) if alikes else unsure_of(found, best[0], self.measure)
        stable = Stable(self.space, self.measure, found, best, rivals) if self.request.stability else None
        holds = stable.of(self.request.stability) if stable and self.request.stability else None
        keys = [self.space.keys[axis.name] for axis in self.space.axes]
        extra = (alikes.runs if alikes else 0) + (stable.runs if stable else 0)
        return Design(
            scenario=self.scenario.name,
            device="" if known.device is None else known.device.name,
            minimise=tuple(self.request.minimise),
            maximise=tuple(self.request.maximise),
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
            bounded=known.complete,
            drawn=self._drawn(),
            remarks=tuple(self._remarks(found)),
            clock=self.measure.clock,
            untimed=labels.counts(UNTIMED),
            shaky=shaky,
            stamp=self._stamp(front[0], keys) if front else None,
            **self._drawn_points(),
        )

    def _stamp(self, point: int, keys: Sequence[str]) -> Stamp:
        """The stamp of a design, whose chip says where its clock comes from."""
        scenario = self.measure.scenario(point)
        mhz, said = clock_told(scenario) if self.measure.clock else (scenario.chip.frequency_mhz, self.said)
        if said:
            chip: Any = scenario.chip
            sources = {**chip.sources, "frequency_mhz": said}
            scenario = replace(scenario, chip=replace(chip, frequency_mhz=mhz, sources=sources))
        return stamp_of_scenario(scenario, keys)

    def _drawn_points(self) -> dict[str, Any]:
        """What the picture shows."""
        found, least = self.walked.found, self.walked.known.bounds.least
        if len(self.request.names) > 1:
            return {"seen": tuple(tuple(map(abs, each)) for each in list(found.points.values())[:_DRAWN])}
        points = np.flatnonzero(~np.isin(found.labels.label, OUT))
        points = points[np.lexsort((points, *least[points].T[::-1]))] if len(points) else np.array(list(found.points))
        place = {point: float(number) for number, point in enumerate(points.tolist(), start=1)}
        seen = [(place[point], abs(values[0])) for point, values in found.points.items()]
        many = len(points) if len(least) else 0
        ends = np.unique(np.geomspace(1, many, min(many, _CURVE)).astype(int)) if many else points[:0]
        curve = [(float(end), float(abs(least[points[end - 1], 0]))) for end in ends.tolist()]
        return {"seen": tuple(seen[:_DRAWN]), "bounds": tuple(each for each in curve if isfinite(each[1]))}

    def _drawn(self) -> bool:
        """Whether what is minimised is a statistic of arrivals that are drawn."""
        jobs = self.space.setup.document.data.get("jobs")
        entries = jobs if isinstance(jobs, list) else []
        drawn = any(isinstance(job, dict) and isinstance(job.get("arrival"), dict) for job in entries)
        return drawn and any(each in PERCENT_OF for each in self.request.minimise)

    def _proof(self, front: Sequence[int]) -> tuple[float | None, bool]:
        """How far the best is from the best bound left; and whether nothing else can be better."""
        found, unsure = self.walked.found, self.walked.found.unsure()
        if len(self.request.names) > 1 or not front:
            open_ = unsure or self.walked.labels.count(UNTIMED)
            return None, not (self.walked.labels.count(LEFT) or found.failed or open_)
        best = found.points[front[0]][0]
        least = min([self.walked.least, *(found.hopes[each][0] for each in unsure)])
        gap = max(0.0, (best - least) / abs(best)) if best and least < inf else 0.0
        return (gap if isfinite(gap) else None), gap == 0.0 and not self.walked.labels.count(UNTIMED)

    def _remarks(self, found: Found) -> Iterator[str]:
        front = found.front()
        rejected = self.measure.rejected(front[0]) if front and self.measure.rates is None else 0
        if rejected:
            text = "latencies are of those that it serves, and who rejects more has less to do"
            yield f"The best design rejects {rejected:,} requests: {text}."
        keys = [self.space.keys[axis.name] for axis in self.space.axes]
        clock = self.measure.clock
        if clock is not None:
            yield (
                f"Times are cycles over the MHz that the clock model tells for {clock.family}. It was fitted on "
                f"{clock.fitted} designs, built by {clock.tools} ({clock.source}). The ratio of two times is told "
                f"within {clock.apart} for 95 % of the pairs of designs that it did not know: nearer ones cannot be "
                "told apart. A board's bridge and memory of results are not in it, and may be slower."
                + (" The table of --out has times at the chip's own clock." if self.request.folder else "")
            )
        elif self.said:
            yield f"All designs have one clock, {self.said}; that each of them reaches it is not known."
        elif any(".latency." in key or key.endswith("frequency_mhz") for key in keys):
            yield "Latencies and clocks are assumptions: nothing prices them here, so the least and the highest win."
        if self.measure.rates is not None:
            ceiling = self.measure.rates.known[front[0]][1].ceiling if front and self.request.maximise else None
            if ceiling is not None and len(self.request.names) == 1:
                yield f"The best design certainly does not keep the bound from {ceiling:,.1f} requests/s on."
            yield (
                f"Rates are those of lstmsim saturate: certain at 95 %, from runs of at most {self.request.until:,} "
                "requests (--until). A design that is not certain to keep the bound is not chosen."
            )
        if self.request.accuracy_db is not None:
            yield "Accuracy is that on the jobs' own inputs: on others it may be less."
        elif any(key.startswith("precision.") for key in keys):
            yield "Widths are not judged by accuracy: --accuracy-db does so, where weights and inputs are there."
        if "energy_j" in self.request.minimise:
            yield "Energies are relative, from a table of another process, and leave out the device."
        if isinstance(self.walked.labels, Tally):
            yield from self.walked.labels.remarks()
        elif not self.walked.known.complete:
            yield "This machine gives no bounds: every design that fits was simulated."
        if found.failed:
            yield f"{len(found.failed):,} designs could not be simulated; their bounds count as left."
