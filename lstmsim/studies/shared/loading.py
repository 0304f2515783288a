"""Scenarios from files, from the same keys as mappings, or ready-made."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from lstmsim.base.errors import InputError, Mistake
from lstmsim.files.scenario.scenario_file import Opened
from lstmsim.model.model import Precision
from lstmsim.model.scenario import Job, Scenario
from lstmsim.studies.shared.objects import check_parts, is_chip, plain_of, ready_jobs, with_networks
from lstmsim.studies.shared.request import CLOCK_MODEL, Overrides, assignments
from lstmsim.studies.shared.request import Path as Path
from lstmsim.studies.shared.request import Source as Source

if TYPE_CHECKING:
    from lstmsim.model.model import Model
    from lstmsim.model.scenario import Chip

#: A chip and a job that stand for others while the rest of a scenario is checked.
_ANY_CHIP = "column-npu-64k"
_ANY_JOB = {"model": {"layers": [{"cell": "lstm", "hidden": 1, "input": 1}]}, "steps": 1}
#: A scenario with its jobs as they come at a clock in MHz.
AtClock = Callable[[float], Scenario]


def load_scenario(source: Source, overrides: Overrides = ()) -> Scenario:
    """Read a scenario from a file, or from the same keys as a mapping.

    source: a path, a mapping, or a `Scenario`.
    overrides: texts like `"chip.cores.0.ep=16"`, or a mapping from such paths to values.

    >>> scenario = load_scenario({"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 20}]})
    >>> scenario.jobs[0].name
    'lstm-512'
    """
    from lstmsim.files.scenario import scenario_file

    changes: Sequence[str] = assignments(overrides)
    if isinstance(source, Scenario):
        if changes:
            text = "overrides need a file or a mapping; a Scenario is finished: use dataclasses.replace"
            raise InputError(Mistake("overrides", text))
        return source
    if isinstance(source, Opened):
        return scenario_file.load_scenario(source, changes)
    if not isinstance(source, Mapping):
        return scenario_file.load_scenario(file_of(source), changes)
    if _has_jobs(source):
        return load_scenario(_built(source), changes)
    plain, networks = plain_of(source)
    return with_networks(scenario_file.load_scenario(plain, changes), networks)


def file_of(source: object) -> Path:
    """Give the path of a scenario's file; `InputError` for a value that is no path.

    >>> file_of(5)
    Traceback (most recent call last):
    lstmsim.InputError: scenario: must be a file's path, a mapping of keys to values or a Scenario, got 5
    """
    if isinstance(source, str | os.PathLike):
        return source
    from lstmsim.base.wording import show

    text = f"must be a file's path, a mapping of keys to values or a Scenario, got {show(source)}"
    raise InputError(Mistake("scenario", text))


def file_or_data(source: Source) -> Path | Mapping[str, Any]:
    """Give a source in a form that can be read anew for other rates and chips: a file's path, or data without objects.

    A `Scenario` that is ready becomes the data of its jobs, each at its cycle.

    `InputError` for a value that is no source, and for a `Scenario` that no file could describe completely.
    """
    if isinstance(source, Opened):
        return source
    if isinstance(source, Mapping):
        return file_or_data(_built(source)) if _has_jobs(source) else plain_of(source)[0]
    if not isinstance(source, Scenario):
        return file_of(source)
    from lstmsim.files.scenario.written import loads_again, resolved_data

    if not loads_again(source):
        text = "has jobs that come after others or are ranked in unlike ways: expected a file or a mapping"
        raise InputError(Mistake("scenario", text))
    return resolved_data(source)


def drawn_anew(source: Source, *, rates: bool = True) -> Path | Mapping[str, Any]:
    """Give a source from which requests are drawn anew: as `file_or_data`, but a loaded `Scenario` is what it was read
    from.

    rates: whether arrivals are drawn at other rates, or go on for longer than the scenario itself.

    `InputError` for a `Scenario` that was changed, or put together from others, after its arrivals were drawn.
    """
    if isinstance(source, Mapping) and _has_jobs(source):
        source = _built(source)
    if not isinstance(source, Scenario):
        return file_or_data(source)
    if source.origin is not None:
        origin: Mapping[str, Any] = source.origin
        return origin
    if rates and (not source.offers or any(each.rate_per_second > 0 for each in source.offers.values())):
        text = "is finished: its jobs come at fixed cycles, and here they are drawn anew; expected a file or a mapping"
        raise InputError(Mistake("scenario", text))
    return file_or_data(source)


def _has_jobs(source: Mapping[str, Any]) -> bool:
    """Whether `Job`s stand among the keys; they are ready but for the chip."""
    jobs = source.get("jobs")
    return isinstance(jobs, list | tuple) and any(isinstance(each, Job) for each in jobs)


def _built(source: Mapping[str, Any]) -> Scenario:
    """The scenario of keys among which `Job`s stand."""
    from lstmsim.base.wording import nearest

    known = ("name", "chip", "jobs", "precision")
    unknown = [key for key in source if key not in known]
    if unknown:
        text = "belongs to each Job, or to a scenario whose jobs are mappings"
        raise InputError([Mistake(str(key), f"{text}{nearest(str(key), known)}") for key in unknown])
    return scenario_of(**{"chip": None, **source})


def scenario_of(chip: Any, jobs: Any, name: Any = "scenario", precision: Any = None, **others: Any) -> Scenario:
    """Make a scenario of a chip and jobs; each may be an object or what a file says. See `lstmsim.Scenario`."""
    check_parts(others)
    ready = isinstance(jobs, list | tuple) and bool(jobs) and all(isinstance(each, Job) for each in jobs)
    if not ready and isinstance(jobs, list | tuple):
        mixed = [place for place, each in enumerate(jobs) if isinstance(each, Job)]
        if mixed:
            text = "is a Job among mappings: expected Jobs alone, or mappings alone"
            raise InputError([Mistake(f"jobs.{place}", text) for place in mixed])
    # A chip that is ready is not checked against a job that stands for others.
    stands_in = ready and is_chip(chip)
    data: dict[str, Any] = {"name": name, "chip": _ANY_CHIP if stands_in else chip}
    data["jobs"] = [_ANY_JOB] if ready else jobs
    if precision is not None and not isinstance(precision, Precision):
        data["precision"] = precision
    loaded = load_scenario(data)
    kept = {key: value for key, value in others.items() if value is not None}
    if stands_in:
        kept["chip"] = chip
    if isinstance(precision, Precision):
        kept = {"precision_given": precision != Precision(), **kept, "precision": precision}
    if ready:
        kept["jobs"] = ready_jobs(jobs)
        # Jobs that are ready say nothing of rates; the rates of the job that stood for them are not theirs.
        kept = {"offers": {}, **kept}
    if not kept:
        return loaded
    from lstmsim.files.scenario.jobs import with_numbers

    return with_numbers(replace(loaded, **kept))


def load_at_clocks(source: Source, overrides: Overrides = ()) -> tuple[Scenario, AtClock]:
    """Read a scenario, and give a function from another clock of its chip to the scenario at that clock.

    Arrivals by the second come at other cycles there. A ready-made scenario has its arrivals in cycles, which are the
    same on every chip. The file is read once.

    source, overrides: as in `load_scenario`.

    >>> job = {"model": "lstm-512", "steps": 2, "count": 3, "arrival": {"kind": "stream", "frame_ms": 10}}
    >>> scenario, at_clock = load_at_clocks({"chip": "column-npu-64k", "jobs": [job]})
    >>> scenario.chip.frequency_mhz, scenario.jobs[1].arrival, at_clock(100).jobs[1].arrival
    (260, 2600000, 1000000)
    """
    from lstmsim.files.scenario.scenario_file import scenario_from_document
    from lstmsim.files.yaml.document import document_of
    from lstmsim.files.yaml.source import read_document

    if isinstance(source, Scenario) or (isinstance(source, Mapping) and _has_jobs(source)):
        ready = load_scenario(source, overrides)
        return ready, lambda frequency_mhz: ready
    if isinstance(source, Mapping):
        document, name = document_of(plain_of(source)[0]), "scenario"
    else:
        source = file_of(source)
        document, name = read_document(source), os.path.splitext(os.path.basename(source))[0]

    def at_clock(frequency_mhz: float) -> Scenario:
        clock = f"chip.frequency_mhz={frequency_mhz!r}"
        return scenario_from_document(copy.deepcopy(document), [*overrides, clock], name)

    return scenario_from_document(copy.deepcopy(document), tuple(overrides), name), at_clock


def load_clocked(source: Source, overrides: Overrides, clock: Path | None) -> Scenario:
    """Read a scenario at a clock that is asked for, was built or is predicted; its chip says where it comes from.

    Arrivals by the second come at other cycles at another clock, and so do transfers of memories in GB/s.

    source, overrides: as in `load_scenario`.
    clock: MHz, the file that a build wrote, or `model` (None: the chip's own clock).

    >>> scenario = load_clocked({"chip": "edge", "jobs": [{"model": "lstm-256", "steps": 2}]}, (), "120")
    >>> scenario.chip.frequency_mhz, scenario.chip.sources["frequency_mhz"]
    (120.0, 'asked for')
    """
    if clock is None:
        return load_scenario(source, overrides)
    from lstmsim.studies.board.build import clock_of, clock_told

    own, at_clock = load_at_clocks(source, overrides)
    mhz, said = clock_told(own) if clock == CLOCK_MODEL else clock_of(os.fspath(clock))
    loaded = at_clock(mhz)
    sources = {**loaded.chip.sources, "frequency_mhz": said}
    chip = replace(cast(Any, loaded.chip), frequency_mhz=mhz, sources=sources)
    return replace(loaded, chip=chip)


def load_chip(name: Path) -> Chip:
    """Read the chip preset of that name, or the chip in that file.

    `InputError` if there is none (with the nearest name), or if the file is wrong.

    >>> load_chip("column-npu-64k").cores[0].npe
    65536
    """
    from lstmsim.files.scenario import scenario_file

    return scenario_file.load_chip(_name(name, "chip"))


def load_model(name: Path) -> Model:
    """Read the model of that name that comes with lstmsim, or the model in that file.

    `InputError` if there is none (with the nearest name), or if the file is wrong.

    >>> load_model("lstm-512").layers[0].hidden
    512
    """
    from lstmsim.files.scenario import scenario_file

    return scenario_file.load_model(_name(name, "model"))


def _name(value: object, kind: str) -> Path:
    """Give a name or a path unchanged; `InputError` for a value that is neither."""
    from lstmsim.base.wording import show

    if not isinstance(value, str | os.PathLike):
        raise InputError(Mistake(kind, f"must be a name or a file's path, got {show(value)}"))
    return value
