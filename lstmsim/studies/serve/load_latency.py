"""Load-latency curves: the same requests at several loads, under several policies and on several chips."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import product
from json import dumps
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.base.wording import listed
from lstmsim.files.catalog import is_path
from lstmsim.files.scenario.requests import processes_of, rate_overrides, rates_of
from lstmsim.files.scenario.scenario_file import checked_scenario, open_scenario
from lstmsim.files.yaml.document import LABEL
from lstmsim.model.scenario import DISPATCH, Scenario
from lstmsim.studies.serve.curves import CDF, LoadLatency, Machine, Measured, Point, measured
from lstmsim.studies.serve.kept import Kept
from lstmsim.studies.serve.offered import capacity_of
from lstmsim.studies.serve.request import LoadLatencyRequest
from lstmsim.studies.serve.run import serve_on_horizon
from lstmsim.studies.shared.loading import Path, drawn_anew, load_scenario
from lstmsim.studies.shared.request import names_of, takes
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.sweep.ahead import Ahead, Workers
from lstmsim.studies.sweep.evaluate import MODEL_VERSION, digest
from lstmsim.studies.sweep.processes import processors

#: To be raised when a point is measured in another way than before.
_FORMAT = "lstmsim load-latency point 3"
#: The percentile whose interval may be waited for is the last one.
_WANTED = (*(each for each in CDF if each != 99.0), 99.0)


@dataclass(frozen=True)
class Asked:
    """A run that is asked for, with the fewest and the most requests where it goes on `until_half_width`."""

    scenario: Path | Mapping[str, Any]
    overrides: tuple[str, ...]
    requests: int
    most: int
    until_half_width: float | None = None


def run_point(asked: Asked) -> Measured:
    """Make the run."""
    served = serve_on_horizon(
        asked.scenario,
        asked.requests,
        asked.overrides,
        _WANTED,
        until_half_width=asked.until_half_width,
        most_requests=asked.most,
    )
    return measured(served.serving)


def key_of(asked: Asked) -> str:
    """Give a hash of all that decides the numbers of a run: scenario, files in it, length, version."""
    from lstmsim import __version__

    document, _ = open_scenario(asked.scenario)
    checked_scenario(document, asked.overrides, single=True)
    files = [_content(document.folder / name) for name in _files(document.data.get("jobs"))]
    size = [asked.requests, asked.most, asked.until_half_width]
    return digest([__version__, MODEL_VERSION, _FORMAT, list(CDF), size, document.data, files])


def _files(data: Any) -> Iterator[str]:
    """List every `path` of arrivals and lengths below job entries, in their order."""
    if isinstance(data, dict):
        if isinstance(data.get("path"), str):
            yield data["path"]
        for name, each in data.items():
            if name != "model":
                yield from _files(each)
    elif isinstance(data, list):
        for each in data:
            yield from _files(each)


def _content(path: Path) -> str:
    with readable_file(path) as file:
        return sha256(file.read()).hexdigest()


def compute(
    points: Sequence[Asked],
    *,
    folder: Path | None = None,
    jobs: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> list[Measured]:
    """Give the figures of all runs, in their order. Runs that are in `folder` are read; equal runs are made once."""
    keys = [key_of(each) for each in points]
    store = Kept(folder, "points", _FORMAT, "measured", Measured.plain, Measured.from_plain)
    done = {key: known for key in keys if (known := store.read(key)) is not None}
    left = {key: each for key, each in zip(keys, points, strict=True) if key not in done}

    def told() -> None:
        if progress is not None:
            progress(sum(key in done for key in keys), len(keys))

    # the last ones begin first, for those of the highest loads take longest
    order = [*reversed(left)]
    with Workers(processors() if jobs is None else jobs) as workers:
        run = Ahead(partial(_run, left), workers)
        run.expect((key,) for key in order)
        for key in order:
            told()
            done[key] = run(key)
            store.write(key, done[key])
    told()
    return [done[key] for key in keys]


def _run(left: Mapping[str, Asked], key: str) -> Measured:
    return run_point(left[key])


#: Loads of a range lie at most so far apart.
_STEP = 0.05
_MOST_LOADS = 1000
_PREEMPTS = "+preempt"


def loads_of(text: str) -> tuple[float, ...]:
    """Read the loads that a text names: `A:B` (evenly spaced, at most 0.05 apart), `A:B:N` (N of them), or a list.

    >>> loads_of("0.3:0.9:4"), loads_of("0.5,0.9")
    ((0.3, 0.5, 0.7, 0.9), (0.5, 0.9))
    >>> len(loads_of("0.3:0.95"))
    14
    """
    place, parts = f"loads {text!r}", text.split(":")
    try:
        if len(parts) == 1:
            numbers = [float(each) for each in text.split(",")]
        else:
            low, high, *count = parts
            numbers = _evenly(place, float(low), float(high), *map(int, count))
    except (ValueError, TypeError):
        raise InputError(Mistake(place, "must look like 0.3:0.95, 0.3:0.95:8 or 0.3,0.6,0.9")) from None
    rounded = tuple(round(each, 9) for each in numbers)
    if not all(0 < each < 100 for each in rounded) or list(rounded) != sorted(set(rounded)):
        raise InputError(Mistake(place, "must grow, all above 0 and below 100"))
    return rounded


def _evenly(place: str, low: float, high: float, count: int | None = None) -> list[float]:
    """Give `count` loads from `low` to `high`; without a count, as many as lie at most `_STEP` apart."""
    if not 0 < low < high < 100:
        raise InputError(Mistake(place, f"A:B needs A below B, both above 0 and below 100, got {low:g} and {high:g}"))
    count = 1 + round((high - low) / _STEP + 0.499) if count is None else count
    if not 2 <= count <= _MOST_LOADS:
        raise InputError(Mistake(place, f"must have 2 to {_MOST_LOADS:,} points, got {count:,}"))
    return [low + (high - low) * step / (count - 1) for step in range(count)]


@takes(LoadLatencyRequest)
def load_latency(request: LoadLatencyRequest) -> LoadLatency:
    """Measure latency against offered load, a curve for each policy, placement and chip.

    A load is the offered load of the scenario's own chip (`lstmsim.traffic.load.Load`): the share of what that chip
    can do of its mix of requests, reached by changing the rates of all poisson and bursty arrivals together. Every
    curve has the same requests at a load: the same rates on all chips, and the same random numbers everywhere. No
    number depends on the processes.

    `InputError` for a scenario without rates, and for a name that is not known.

    >>> entries = [{"model": "lstm-256", "steps": 1, "arrival": {"kind": "poisson", "rate_per_second": 1e5}}]
    >>> curves = load_latency({"chip": "column-npu-16k", "jobs": entries}, loads=[0.2, 0.4], requests=500)
    >>> [point.load for point in curves.points], curves.points[0].measured.mean.value_ms > 0
    ([0.2, 0.4], True)
    """
    requests, share, loads = request.requests, request.until_half_width, request.loads
    scenario, overrides = drawn_anew(request.scenario), tuple(request.overrides)
    shares = loads_of(loads if isinstance(loads, str) else ",".join(repr(float(each)) for each in loads))
    base = load_scenario(scenario, overrides)
    named = [names_of(each) for each in (request.policies, request.chips, request.placements)]
    variants = _variants(scenario, overrides, *named)
    rates, capacity = rates_of(scenario, overrides), capacity_of(scenario, overrides)
    most = requests if share is None else max(requests, request.most_requests)
    wanted, points = list[Asked](), list[tuple[Machine, float, float]]()
    for (machine, changes), load in product(variants, shares):
        rate = capacity.rate(load)
        changed = *overrides, *changes, *rate_overrides(rates, rate)
        wanted.append(Asked(scenario, changed, requests, most, share))
        points.append((machine, load, rate))
    measurements = compute(wanted, folder=request.folder, jobs=request.jobs, progress=request.progress)
    frames = (each.get("kind") == "stream" for each in processes_of(scenario, overrides).values())
    deadlines = any(frames) or any(job.deadline is not None for job in base.jobs)
    full, bound, limits = capacity.rate(1.0), capacity.bound_per_second, capacity.limits_per_second
    machines = tuple(each for each, _ in variants)
    curves = tuple(Point(*point, each) for point, each in zip(points, measurements, strict=True))
    chips = [base, *(_loaded(scenario, [*overrides, *override_of(chip)], chip) for chip in names_of(request.chips))]
    stamps = tuple(map(stamp_of_scenario, chips))
    return LoadLatency(base.name, machines, full, bound, limits, deadlines, curves, stamps)


def _variants(
    scenario: Path | Mapping[str, Any],
    overrides: Sequence[str],
    policies: Sequence[str],
    chips: Sequence[str],
    placements: Sequence[str],
) -> list[tuple[Machine, tuple[str, ...]]]:
    """List every policy on every chip with every placement, each with its overrides."""
    named: tuple[Sequence[str | None], ...] = ([None, *chips], placements or [None], policies or [None])
    variants: list[tuple[Machine, tuple[str, ...]]] = []
    for chip, placement, policy in product(*named):
        changes = (*_policy(policy), *override_of(chip), *([] if placement is None else [f"placement={placement}"]))
        loaded = _loaded(scenario, [*overrides, *changes], chip)
        first = loaded.jobs[0]
        preempts = any(job.preempts for job in loaded.jobs)
        place = "affinity" if first.affinity else "least-loaded"
        order = first.dispatch + _PREEMPTS * preempts
        parts = [order] * (len(policies) > 1 or not (chips or placements))
        parts += [place] * (len(placements) > 1) + [loaded.chip.name] * bool(chips)
        label = ", ".join(parts) or order
        machine = Machine(label, loaded.chip.name, first.dispatch, preempts, place)
        if any(machine.label == each.label for each, _ in variants):
            raise InputError(Mistake(label, "is named twice, expected different machines"))
        variants.append((machine, changes))
    return variants


def _loaded(scenario: Path | Mapping[str, Any], overrides: Sequence[str], chip: str | None) -> Scenario:
    """Read the scenario on that chip; a mistake of the chip names the option that gives it."""
    try:
        return load_scenario(scenario, overrides)
    except InputError as error:
        if chip is None:
            raise
        (change,) = override_of(chip)
        mistakes = [(each.location.replace(LABEL + change, f"--chip {chip}"), each.sentence) for each in error.mistakes]
        raise InputError([Mistake(*each) for each in mistakes]) from None


def _policy(text: str | None) -> list[str]:
    """Give the overrides for `edf` or `edf+preempt`; None gives none, for the scenario's order."""
    if text is None:
        return []
    order = text.removesuffix(_PREEMPTS)
    if order not in DISPATCH:
        known = listed([*DISPATCH])
        raise InputError(Mistake(f"policy {text!r}", f"must be {known}, or one of them with {_PREEMPTS}"))
    if text != order and order == "fcfs":
        raise InputError(Mistake(f"policy {text!r}", "no job goes before another in fcfs, so that none is preempted"))
    return [f"dispatch={order}", f"preemption={'true' if text != order else 'false'}"]


def override_of(name: str | None) -> list[str]:
    """Give the override that takes another chip; paths start at the working directory."""
    if name is None:
        return []
    return [f"chip={dumps(os.path.abspath(name) if is_path(name) else name)}"]
