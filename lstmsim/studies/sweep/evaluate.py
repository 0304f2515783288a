"""Points computed in chunks: by this process, by worker processes, or by the workers of a dask cluster.

Points of a chunk whose worker ends are tried once more, each alone; so a point that kills its worker fails alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from lstmsim import engines, machines
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.wording import nearest
from lstmsim.files.yaml.document import LABEL, Document
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.program.trace import Totals
from lstmsim.studies.sweep.columns import NUMBERS, numbers_of
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.spec import Value

#: To be raised whenever the same scenario gives other cycles: results of another version are never taken for these.
MODEL_VERSION = 5

_MOST_KEPT = 4096
_NO_FILE = re.compile(r"(no file called '([^']*)')(?:; did you mean '[^']*'\?)?")
_ENDINGS = (".yaml", ".yml", ".json")
#: Fields of a job on which no cycle depends: names, and where numbers are from. Its model has a digest of its own, and
#: what few jobs have follows with names (`_further`).
_NO_CYCLES = (
    *("name", "model", "inputs", "tenant", "initial", "states_of", "on"),
    *("threads", "weights", "density", "numbers", "batching", "session", "move_cycles"),
)
_JOB_VALUES = attrgetter(*(each.name for each in fields(Job) if each.name not in _NO_CYCLES))

#: Fields of a chip that are no part of what its cores share: the key has them elsewhere, or no cycle depends on them.
_NO_PART = ("name", "frequency_mhz", "cores", "sources", "kind")


class Outcome(NamedTuple):
    """The result of a point.

    key: names everything that decides its cycles.
    status, reason: `done`, `infeasible` or `failed`, and why it is not done.
    numbers: its `NUMBERS` if done; otherwise None.
    seconds: the wall time that it took, which is no part of the result.
    row: its values, then those of the columns about its chip, as `row_of` gives them.
    """

    point: int
    key: str
    status: str
    numbers: tuple[int | float, ...] | None
    reason: str | None
    seconds: float
    row: tuple[Value, ...]


class Rows(NamedTuple):
    """Outcomes as rows of the tables `results`, `points` and `timings` of a store, without checksums."""

    results: list[tuple[Any, ...]]
    points: list[tuple[Any, ...]]
    timings: list[tuple[int, float]]

    @property
    def seconds(self) -> float:
        """The wall time that all of them took."""
        return sum(seconds for _, seconds in self.timings)

    def add(self, others: Rows) -> None:
        """Take over the rows of others."""
        for own, more in zip(self, others, strict=True):
            own += more


def rows_of(outcomes: Iterable[Outcome]) -> Rows:
    """The rows of outcomes."""
    rows, empty = Rows([], [], []), (None,) * len(NUMBERS)
    for each in outcomes:
        rows.results.append((each.key, each.status, *plain(each.numbers or empty), each.reason))
        rows.points.append((each.point, each.key, *each.row))
        rows.timings.append((each.point, each.seconds))
    return rows


def plain(values: Iterable[Value]) -> tuple[Value, ...]:
    """Values as a store gives them back. SQLite knows no truth values, minus zero, NaN and numbers of numpy."""
    return tuple([each if each.__class__ in _PLAIN else _plain(each) for each in values])


_PLAIN = (int, str, type(None))


def _plain(value: Any) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    return (float(value) + 0.0 if value == value else None) if isinstance(value, float) else value


def row_of(setup: Setup, values: Mapping[str, Value], chip: Sequence[Value]) -> tuple[Value, ...]:
    """What the table keeps of a point, apart from its result: its values, then those of the columns about its chip."""
    return plain((*values.values(), *(chip or [None] * len(setup.chip.names))))


def outcome_of(resolver: Resolver, point: int) -> Outcome:
    """The outcome of one point; no error of a point is raised."""
    started = time.perf_counter()
    values = resolver.setup.sweep.values(point)
    key, status, numbers, reason = None, "infeasible", None, resolver.setup.sweep.broken(values)
    chip: tuple[Value, ...] = ()
    try:
        if reason is None:
            scenario = resolver.scenario(values)
            chip = resolver.setup.chip.values(scenario)
            numbers = numbers_of(scenario, simulated(scenario.chip, scenario.jobs))
            key, status = scenario_key(scenario), "done"
    except InputError as error:
        reason = "; ".join(_sentence(each, resolver.setup.document) for each in error.mistakes[:3])
    except (LstmsimError, MemoryError) as error:
        status, reason = "failed", f"{type(error).__name__}: {error}".strip()
    except Exception as error:  # A fault of lstmsim in one point must not lose other points; it is kept and shown.
        status, reason = "failed", " ".join(f"internal error: {type(error).__name__}: {error}".split())
    # Reasons name jobs and paths, so they belong to the values of the point and not to what it simulates.
    key = key or value_key(resolver, values)
    # Names of files may have half letters, and tables may not.
    text = reason and reason.encode("utf-8", "backslashreplace").decode("utf-8")[:500]
    row = row_of(resolver.setup, values, chip)
    return Outcome(point, key, status, numbers, text, time.perf_counter() - started, row)


def _sentence(mistake: Mistake, document: Document) -> str:
    """The mistake in the same words in every process: file names count from the scenario's folder."""
    if mistake.location.startswith(LABEL):
        place = mistake.location.removeprefix(LABEL)
    elif document.name and mistake.location.startswith(f"{document.name}:"):
        place = os.path.basename(document.name) + mistake.location.removeprefix(document.name)
    else:
        place = _from_folder(mistake.location, document.folder)
    return str(Mistake(place, _from_folder(mistake.sentence, document.folder)))


def _from_folder(text: str, folder: Path) -> str:
    """The text without the folder before its file names, as the folder was typed or as the system knows it."""
    for name in (os.path.abspath(folder), str(folder)):
        if name not in (".", "/"):
            text = re.sub(rf"(?<![\w./-]){re.escape(name)}/(?=\S)", "", text)
    return _NO_FILE.sub(lambda match: match[1] + _nearest_file(match[2], folder), text)


def _nearest_file(name: str, folder: Path) -> str:
    """The hint at a file, sought among names without their folders: long folders make all names alike."""
    try:
        siblings = sorted(os.listdir((folder / name).parent))
    except (OSError, ValueError):
        return ""
    return nearest(name, [os.path.join(os.path.dirname(name), each) for each in siblings if each.endswith(_ENDINGS)])


def simulated(chip: Chip, jobs: Sequence[Job], engine: str = "fast") -> Totals:
    """Give the totals of jobs on a chip; `InputError` if the chip refuses them."""
    if any(job.batching is not None for job in jobs):
        # not at the top: what few points have must not delay all others
        from lstmsim.studies.serve.programs import simulated as simulated_batches

        return simulated_batches(chip, jobs, engine)[1]
    return engines.totals(machines.lower(chip, jobs), engine, check=False)


def digest(content: Any) -> str:
    """Give the SHA-256 of the canonical JSON of plain data and descriptions."""
    return hashlib.sha256(_CANONICAL.encode(content).encode("ascii")).hexdigest()


def _data(description: Any) -> dict[str, Any]:
    """A description as plain data; those inside it become data in their turn."""
    names = _names(description.__class__)
    return {name: own for name in names if (own := getattr(description, name)) is not None or name not in _CAME_LATER}


#: Keys of descriptions that stand only where they are given, so that within a version keys of others stay as they are.
_CAME_LATER = ("delta", "devices")


@cache
def _names(description: type) -> tuple[str, ...]:
    """The names of the fields of a description."""
    return tuple(each.name for each in fields(description))


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_data)


def point_key(resolver: Resolver, values: Mapping[str, Value]) -> tuple[str, tuple[Value, ...]]:
    """Give the key of a point without simulating it, of its values where it has no scenario; and its chip's columns."""
    if resolver.setup.sweep.broken(values) is None:
        try:
            scenario = resolver.scenario(values)
            return scenario_key(scenario), resolver.setup.chip.values(scenario)
        except InputError:
            pass
    return value_key(resolver, values), ()


def scenario_key(scenario: Scenario) -> str:
    """Give the key of all that decides the cycles: chip, models and jobs without their names, and the version."""
    before, behind = chip_text(scenario.chip)
    return key_of(before, job_text(scenario.jobs), behind)


def key_of(*texts: bytes) -> str:
    """Give the key from the texts of its parts: those before the jobs, of the jobs, and behind them."""
    return hashlib.sha256(b"".join(texts)).hexdigest()


def job_text(jobs: Sequence[Job]) -> bytes:
    """What the key of a scenario has of its jobs."""
    rows = [[_model_digest(job.model), *_JOB_VALUES(job), *_further(job)] for job in jobs]
    return _CANONICAL.encode(rows).encode("ascii")


def _further(job: Job) -> list[Any]:
    """What few jobs have, each with its name."""
    further = [] if job.threads is None else ["threads", job.threads]
    further += [] if job.weights is None else ["weights", job.weights]
    if job.density is not None:
        further += ["density", job.density.x, job.density.h, job.density.drawn_from]
    if job.numbers is not None:
        further += ["numbers", job.numbers.digest]  # type: ignore[attr-defined]
    if job.session is not None:
        further += ["session", *job.session, job.move_cycles]
    if job.batching is not None:
        further += ["batching", list(vars(job.batching).values())]
    return further


def chip_text(chip: Chip) -> tuple[bytes, bytes]:
    """What the key of a scenario has before its jobs, and behind them."""
    own = {name: getattr(chip, name) for name in _names(chip.__class__) if name not in _NO_PART}
    shared = [value for name, value in own.items() if value is not None or name not in _CAME_LATER]
    before = [_versions(), chip.kind, chip.frequency_mhz, [_part_digest(core) for core in chip.cores]]
    behind = _CANONICAL.encode(["", *shared]).removeprefix('[""')
    return f"{_CANONICAL.encode(before)[:-1]},".encode("ascii"), behind.encode("ascii")


def value_key(resolver: Resolver, values: Mapping[str, Value]) -> str:
    """Give the key of a point that has no scenario."""
    return digest([_versions(), resolver.setup.identity, dict(values)])


def _versions() -> list[Any]:
    from lstmsim import __version__

    return [__version__, MODEL_VERSION]


@lru_cache(_MOST_KEPT)
def _part_digest(part: Any) -> str:
    return digest(part)


@lru_cache(_MOST_KEPT)
def _model_digest(model: Model) -> str:
    layers = [_data(layer) | {"cell": _part_digest(layer.cell)} for layer in model.layers]
    return digest([layers, model.layer_order])
