"""Points computed in chunks: by this process, by worker processes, or by the workers of a dask cluster.

Points of a chunk whose worker ends are tried once more, each alone; so a point that kills its worker fails alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

from lstmsim import engines, machines
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.wording import nearest
from lstmsim.files.yaml.document import LABEL, Document
from lstmsim.model.model import Model
from lstmsim.model.scenario import Chip, Job, Scenario
from lstmsim.program.trace import Totals
from lstmsim.studies.sweep.columns import numbers_of
from lstmsim.studies.sweep.processes import CannotStartError
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.spec import Value

#: To be raised whenever the same scenario gives other cycles: results of another version are never taken for these.
MODEL_VERSION = 4

_MOST_KEPT = 4096
_NO_FILE = re.compile(r"(no file called '([^']*)')(?:; did you mean '[^']*'\?)?")
_ENDINGS = (".yaml", ".yml", ".json")
#: Fields of a job on which no cycle depends: names, and where numbers are from. Its model has a digest of its own, and
#: threads stand only in keys of jobs that have them.
_NO_CYCLES = ("name", "model", "inputs", "tenant", "initial", "states_of", "threads")
_JOB_VALUES = attrgetter(*(each.name for each in fields(Job) if each.name not in _NO_CYCLES))

#: Fields of a chip that are no part of what its cores share: the key has them elsewhere, or no cycle depends on them.
_NO_PART = ("name", "frequency_mhz", "cores", "sources", "kind")


@dataclass(frozen=True)
class Outcome:
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


def row_of(setup: Setup, values: Mapping[str, Value], chip: Sequence[Value]) -> tuple[Value, ...]:
    """What the table keeps of a point, apart from its result: its values, then those of the columns about its chip."""
    return (*values.values(), *(chip or [None] * len(setup.chip.names)))


def compute_chunk(setup: Setup, points: Sequence[int]) -> list[Outcome]:
    """Compute the outcomes of some points, in their order; a process keeps what it has read for the next chunk."""
    # Folder and name belong to the key: the same sweep from another folder names its files in another way.
    kept = (setup.identity, os.path.abspath(setup.document.folder), setup.document.name)
    if kept not in _RESOLVERS:
        _RESOLVERS.clear()
        _RESOLVERS[kept] = Resolver(setup)
    resolver = _RESOLVERS[kept]
    return [_outcome(resolver, point) for point in points]


#: What this process keeps between chunks: the resolver of the last setup.
_RESOLVERS: dict[tuple[str, ...], Resolver] = {}


def _outcome(resolver: Resolver, point: int) -> Outcome:
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
    return engines.totals(machines.lower(chip, jobs), engine, check=False)


def digest(content: Any) -> str:
    """Give the SHA-256 of the canonical JSON of plain data and descriptions."""
    return hashlib.sha256(_CANONICAL.encode(content).encode("ascii")).hexdigest()


def _data(description: Any) -> dict[str, Any]:
    """A description as plain data; those inside it become data in their turn."""
    return {name: getattr(description, name) for name in _names(description.__class__)}


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
    # Threads stand only in keys of jobs that say how many they are; keys of all other jobs are as they were before.
    jobs = [
        [_model_digest(job.model), *_JOB_VALUES(job), *([] if job.threads is None else ["threads", job.threads])]
        for job in scenario.jobs
    ]
    chip = scenario.chip
    shared = [getattr(chip, name) for name in _names(chip.__class__) if name not in _NO_PART]
    return digest(
        [_versions(), chip.kind, chip.frequency_mhz, [_part_digest(core) for core in chip.cores], jobs, *shared]
    )


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


_CHUNK_SECONDS = 0.25
_MOST_POINTS = 500
#: Executors that may break in a row, without one answer, before the points are given up.
_BREAKS_IN_A_ROW = 5

Results = Iterator[list[Outcome]]


def inline(setup: Setup, points: Iterable[int]) -> Results:
    """Compute the points in this process, one after another."""
    for point in points:
        yield compute_chunk(setup, [point])


def dask_executor(address: str) -> tuple[Executor, int]:
    """Give a dask cluster as an executor, and the number of its threads."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError(Mistake("--dask", "needs the package dask.distributed: pip install 'lstmsim[dask]'")) from None
    # Some versions of dask.distributed are typed and some are not.
    kind: Any = Client
    client = kind.__new__(kind)
    try:
        client.__init__(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        # A client that is half made would try to close a connection that it never had, and complain when that fails.
        client.status = "closed"
        raise InputError(Mistake(f"--dask {address}", f"no scheduler answers there ({error})")) from None
    return _DaskExecutor(client), max(1, sum(client.nthreads().values()))


class _DaskExecutor(Executor):
    """The executor of a dask client, which it closes at its end. A task of a lost worker goes to another worker."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.inner: Executor = client.get_executor(pure=False, retries=2)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self.inner.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.inner.shutdown(wait=wait)
        self.client.close()


def on_executor(setup: Setup, points: Iterable[int], make: Callable[[], Executor], workers: int) -> Results:
    """Compute the points on an executor, every point once."""
    return _Dispatch(setup, iter(points), make, workers).run()


class _Dispatch:
    """The dispatch of points to one executor after another."""

    def __init__(self, setup: Setup, points: Iterator[int], make: Callable[[], Executor], workers: int) -> None:
        self.setup = setup
        self.points = points
        self.make = make
        self.workers = workers
        self.executor = make()
        self.chunk = 1
        #: Chunks under way: the points of each chunk, and the executor that has them.
        self.out: dict[Future[list[Outcome]], tuple[list[int], Executor]] = {}
        self.suspects: list[int] = []
        self.breaks = 0

    def run(self) -> Results:
        try:
            self._fill()
            while self.out:
                for future in wait(self.out, return_when=FIRST_COMPLETED)[0]:
                    chunk, executor = self.out.pop(future)
                    try:
                        outcomes = future.result()
                    except Exception as error:
                        self.suspects += chunk
                        self._replace(executor, error)
                        continue
                    self.breaks = 0
                    mean = sum(each.seconds for each in outcomes) / len(outcomes)
                    fitting = int(_CHUNK_SECONDS / max(mean, 1e-6))
                    self.chunk = max(1, min(_MOST_POINTS, 2 * self.chunk, fitting))
                    yield outcomes
                self._fill()
            for point in self.suspects:
                yield [self._alone(point)]
        finally:
            for future in self.out:
                future.cancel()
            self.executor.shutdown(wait=False, cancel_futures=True)

    def _fill(self) -> None:
        while len(self.out) < 2 * self.workers and (chunk := list(islice(self.points, self.chunk))):
            future = self._submit(chunk)
            self.out[future] = (chunk, self.executor)

    def _submit(self, chunk: list[int]) -> Future[list[Outcome]]:
        """Submit a chunk, to another executor if this one takes nothing any more."""
        while True:
            try:
                return self.executor.submit(compute_chunk, self.setup, chunk)
            except BrokenExecutor as error:
                self._replace(self.executor, error)

    def _replace(self, executor: Executor, error: Exception) -> None:
        """Make another executor if the error broke this one, and no other has taken its place yet."""
        if not isinstance(error, BrokenExecutor) or executor is not self.executor:
            return
        executor.shutdown(wait=False, cancel_futures=True)
        self.breaks += 1
        if self.breaks >= _BREAKS_IN_A_ROW:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise LstmsimError(f"the workers end before they have done anything; --jobs 1 needs none ({why})")
        self.executor = self.make()

    def _alone(self, point: int) -> Outcome:
        """Try a point a second time, when no other point is under way."""
        while True:
            future = self._submit([point])
            try:
                outcome = future.result()[0]
            except Exception as error:
                self._replace(self.executor, error)
                # If no worker can start, the point has not been tried.
                if not isinstance(error, CannotStartError):
                    reason = f"its worker ended or gave no answer, twice ({type(error).__name__}: {error})"
                    values = self.setup.sweep.values(point)
                    key, row = value_key(Resolver(self.setup), values), row_of(self.setup, values, ())
                    return Outcome(point, key, "failed", None, " ".join(reason.split())[:500], 0.0, row)
            else:
                self.breaks = 0
                return outcome
