"""A sweep from its file to its tables: points that are left are computed and kept; shards are joined."""

from __future__ import annotations

import copy
import gc
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from lstmsim import engines
from lstmsim.base.bounded import bounded_file
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files import identity_of, refuse_if_read
from lstmsim.files.catalog import is_path
from lstmsim.files.scenario.models import left_out
from lstmsim.files.scenario.scenario_file import apply_overrides, scenario_from_document
from lstmsim.files.yaml.document import LABEL, Document
from lstmsim.model.scenario import Scenario
from lstmsim.report.results import Table
from lstmsim.report.stability import Stability
from lstmsim.report.stamp import Stamp
from lstmsim.studies.shared.files_read import files_read_by_document, files_that_come_along
from lstmsim.studies.shared.loading import file_or_data
from lstmsim.studies.shared.request import names_of, takes
from lstmsim.studies.shared.stamp import stamp_of_scenario
from lstmsim.studies.sweep import dispatch as pool
from lstmsim.studies.sweep.columns import COST_VERSION, NUMBERS
from lstmsim.studies.sweep.evaluate import MODEL_VERSION, digest, point_key, row_of, scenario_key
from lstmsim.studies.sweep.processes import YOUNG_OBJECTS, ProcessExecutor, processors
from lstmsim.studies.sweep.request import MergeRequest, Progress, SweepRequest
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.spec import Objective, Sweep
from lstmsim.studies.sweep.spec_file import MAX_POINTS, SweepFile, load_sweep
from lstmsim.studies.sweep.stability import stable
from lstmsim.studies.sweep.store import COMMIT_SECONDS, SPELLING, STATUSES, Store, checksum, quoted, sidecars
from lstmsim.studies.sweep.table import About, Fresh, about_of, export, keep, objectives_of, table_names

#: Sentences about paths that lead nowhere, and about files that lack something: no value of an axis changes them.
_NOWHERE = re.compile(
    r"unknown key|.* has no key |.* there is nothing below it|.* expected an index|.* there is no \d+$"
)
_LACKING = re.compile(r"unknown key|required key|no (chip|model|cell|file) called|duplicate key")
#: Points looked at for one that satisfies the constraints.
_TRIED = 1000


def prepare(
    source: str | os.PathLike[str] | Mapping[str, Any], overrides: Sequence[str] = (), most: int = MAX_POINTS
) -> Setup:
    """Make the setup of a sweep file; most: points that it may have."""
    from lstmsim import __version__

    file = load_sweep(source, most)
    sweep = file.sweep
    document = copy.deepcopy(file.scenario)
    try:
        # From here on no file of chips and models is read again, and no worker needs to have them.
        scenario_from_document(document, overrides, file.scenario_name)
        overrides = ()
    except InputError:
        document = file.scenario
    changed = copy.deepcopy(document)
    apply_overrides(changed, overrides, lambda path: True, left_out)
    texts = sorted(_file_names(sweep, changed))
    names = [sweep.names, [list(each) for each in sweep.paths.values()]]
    groups = [[[list(axis.values) for axis in group.axes], group.combine] for group in sweep.groups]
    rules = [[each.text for each in sweep.derived], list(sweep.constraints)]
    files = {name: _content(document, name) for name in texts}
    judged = [list(file.chip.names), repr(file.chip.device), [[each.column, each.maximise] for each in file.objectives]]
    known = [__version__, MODEL_VERSION, COST_VERSION]
    identity = digest([*known, names, groups, rules, document.data, list(overrides), files, judged])
    setup = Setup(sweep, document, file.scenario_name, tuple(overrides), identity, file.chip, file.objectives)
    _refuse_hopeless(setup, file)
    return setup


def _file_names(sweep: Sweep, document: Document) -> Iterator[str]:
    """Name the files that decide about cycles and are no part of the document.

    These are files of arrivals, and of chips and models that axes name or that could not be read before axes changed.
    """
    for axis in sweep.axes:
        come = any(path.endswith(".arrival.path") for path in axis.paths)
        yield from (value for value in axis.values if isinstance(value, str) and (come or is_path(value)))
    jobs = document.data.get("jobs")
    entries = [job for job in (jobs if isinstance(jobs, list) else []) if isinstance(job, dict)]
    models = [job.get("model") for job in entries]
    yield from (name for name in (document.data.get("chip"), *models) if isinstance(name, str) and is_path(name))
    arrivals = [job.get("arrival") for job in entries]
    paths = [arrival.get("path") for arrival in arrivals if isinstance(arrival, dict)]
    yield from (path for path in paths if isinstance(path, str))


def _content(document: Document, name: str) -> str:
    """A text for the content of a file: its digest, or why it cannot be read."""
    try:
        with bounded_file(document.folder / name, "a file of a scenario") as (file, _):
            return hashlib.file_digest(file, "sha256").hexdigest()
    except InputError as error:
        return "; ".join(each.sentence for each in error.mistakes)


def _refuse_hopeless(setup: Setup, file: SweepFile) -> None:
    """Raise `InputError` with mistakes of the first wanted point that every other point has too."""
    sweep = setup.sweep
    first = next((each for each in range(min(len(sweep), _TRIED)) if sweep.broken(sweep.values(each)) is None), None)
    if first is None:
        return
    try:
        Resolver(setup).checked(sweep.values(first))
    except InputError as error:
        mistakes: list[Mistake] = []
        for mistake in error.mistakes:
            label = mistake.location.removeprefix(LABEL)
            path = label.partition("=")[0]
            overridden = any(text.partition("=")[0] == path for text in setup.overrides)
            if label == mistake.location:
                mistakes += [mistake] if _LACKING.match(mistake.sentence) else []
            elif overridden:
                mistakes.append(mistake)
            elif _NOWHERE.match(mistake.sentence):
                names = [name for name, paths in sweep.paths.items() if path in paths]
                mistakes += [Mistake(file.places[name], f"{path}: {mistake.sentence}") for name in names]
        if mistakes:
            raise InputError(mistakes) from None


def _about(setup: Setup) -> About:
    """What the sweep is about; the scenario as it is is the baseline of its points."""
    name = str(setup.document.data.get("name", setup.scenario_name))
    device = setup.chip.device.name if setup.chip.device else ""
    try:
        own = Resolver(setup).own()
        return About(name, device, scenario_key(own), own.chip.frequency_mhz)
    except InputError:
        # a scenario may be complete with the values of axes only
        return About(name, device)


def _stamp(setup: Setup) -> Stamp | None:
    """The stamp of the first point that can be built."""
    sweep, resolver = setup.sweep, Resolver(setup)
    varied = [path for paths in sweep.paths.values() for path in paths]
    for values in (sweep.values(each) for each in range(min(len(sweep), _TRIED))):
        with suppress(InputError):
            if sweep.broken(values) is None:
                return stamp_of_scenario(resolver.scenario(values), varied)
    return None


def files_of_sweep(spec: str, overrides: Sequence[str] = ()) -> list[str]:
    """List the files that a sweep reads, with those that come with lstmsim. The sweep itself reports mistakes."""
    try:
        loaded = load_sweep(spec)
    except InputError:
        return [spec]
    folder = loaded.scenario.folder
    values = {each for axis in loaded.sweep.axes for each in axis.values if isinstance(each, str) and "\0" not in each}
    named = [loaded.scenario.name, *sorted(str(folder / each) for each in values)]
    files = [each for each in named if os.path.isfile(each)]
    if loaded.device_file is not None:
        files.append(loaded.device_file)
    return [spec, *files, *files_read_by_document(loaded.scenario, overrides), *files_that_come_along()]


#: Shard i of n, i counted from 1.
Shard = tuple[int, int]

#: Points of a table whose text is kept until all have come: half a kilobyte for each.
_MOST_FRESH = 500_000
#: Below this many points a pool of processes costs more than it saves.
_FEW_POINTS = 3


@dataclass(frozen=True)
class SweepResult(Table, forms="lstmsim.studies.sweep.report"):
    """The result of a sweep.

    path: its SQLite file.
    tables: files with its table.
    progress: the counts of its points.
    dropped: rows that did not match their checksums, or had none; their points were computed anew.
    rebuilt: whether the file's own description of its sweep (axes, objectives, ...) was damaged in such a way, and was
        written anew from the sweep file.
    stamp: what the cycles of one point are exact against, and which keys are assumptions; None: nothing was simulated.
    stability: whether the best points are the best whatever the assumptions are; None: nobody asked.
    """

    path: str
    tables: tuple[str, ...]
    progress: Progress
    dropped: int = 0
    rebuilt: bool = False
    stamp: Stamp | None = field(default=None, compare=False, repr=False)
    stability: Stability | None = None


def table_stem(folder: str, shard: Shard | None) -> str:
    """Give the path of a sweep's files without their suffixes; shards have paths of their own."""
    return os.path.join(folder, "sweep" if shard is None else f"sweep-{shard[0]}-of-{shard[1]}")


@takes(SweepRequest)
def sweep(request: SweepRequest) -> SweepResult:
    """Simulate every point of a design space and write its tables into `folder`.

    The tables are the same whichever processes compute the points.

    `InputError` for a mistake in the file; a mistake of a point is in the point's row.

    >>> import tempfile
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [16, 32]}}
    >>> scenario = {"chip": "column-npu-64k", "jobs": [{"model": "lstm-512", "steps": 5}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sweep({"scenario": scenario, "axes": axes}, folder, jobs=1).progress.done
    2
    """
    spec, shard, folder = request.spec, request.shard, os.fspath(request.folder)
    if shard is not None and not 1 <= shard[0] <= shard[1]:
        text = f"must be a pair (i, n) of whole numbers with i from 1 to n, like (3, 20), got {shard}"
        raise InputError(Mistake("shard", text))
    if isinstance(spec, Mapping) and isinstance(spec.get("scenario"), Scenario | Mapping):
        spec = {**spec, "scenario": file_or_data(spec["scenario"])}
    if shard is not None and request.stability is not None:
        raise InputError(Mistake("stability", "needs all points, and a shard has some: ask the whole sweep"))
    setup = prepare(spec, tuple(request.overrides))
    stem = table_stem(folder, shard)
    wanted = shard or (1, 1)
    for each in (f"{stem}.sqlite", *sidecars(f"{stem}.sqlite"), *table_names(stem)):
        refuse_if_read(each)
    with made_folder(folder), _few_searches(), Store(f"{stem}.sqlite", create=True) as store:
        if not request.resume:
            store.forget()
        begin(store, setup, setup.objectives, _about(setup))
        left, counts = _left(setup, store, wanted, request.retry_failed)
        if request.progress:
            request.progress(counts)
        fresh = None if store.has_points() or counts.total > _MOST_FRESH else Fresh(store)
        counts = _compute(setup, store, left, counts, request, fresh)
        store.tidy()
        holds = None if request.stability is None else stable(setup, store, request.stability)
        stamp = _stamp(setup) if counts.done > counts.infeasible + counts.failed else None
        written = tuple(export(store, stem, fresh))
        return SweepResult(store.path, written, counts, store.dropped, store.rebuilt, stamp, holds)


def begin(store: Store, setup: Setup, objectives: Sequence[Objective], about: About) -> None:
    """Have a store hold the points of a setup; what it has of them stays."""
    columns = [(name, setup.sweep.paths[name]) for name in setup.sweep.names]
    columns += [(name, ()) for name in setup.chip.names]
    derived = [each.name for each in setup.sweep.derived]
    store.begin(f"{setup.identity} {SPELLING}", columns, setup.sweep.size, derived)
    store.mend()
    keep(store, objectives, about)


@contextmanager
def _few_searches() -> Iterator[None]:
    """Let Python look for circles of objects less often: rows make many objects, and no circles."""
    before = gc.get_threshold()
    gc.set_threshold(max(YOUNG_OBJECTS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def made_folder(folder: str) -> Iterator[None]:
    """Make the folder if it is missing, and remove it again if the block fails and has left nothing in it."""
    new = not os.path.isdir(folder)
    if not folder:
        raise InputError(Mistake("folder", "the name is empty"))
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(Mistake(f"folder {folder}", f"cannot be a folder ({reason})")) from None
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                os.rmdir(folder)
        raise


def _left(setup: Setup, store: Store, shard: Shard, retry_failed: bool) -> tuple[bytearray, Progress]:
    """Which points are left to compute (1 each), and how far the sweep is already."""
    sweep = setup.sweep
    left = bytearray(len(sweep))
    index, count = shard
    left[index - 1 :: count] = b"\1" * len(left[index - 1 :: count])
    total = sum(left)
    counts = {"done": 0, "infeasible": 0, "failed": 0}
    for point, status in store.statuses():
        if left[point] and not (status == "failed" and retry_failed):
            left[point] = 0
            counts[status] += 1
    if any(left) and store.has_any():
        # Results of another sweep file, or of one that has changed.
        resolver = Resolver(setup)
        links = []
        for point in _points(left):
            values = sweep.values(point)
            key, chip = point_key(resolver, values)
            if store.has(key):
                links.append((point, key, *row_of(setup, values, chip)))
                left[point] = 0
        with store.transaction():
            store.put([], links)
        counts["done"] += len(links)
    done = sum(counts.values())
    return left, Progress(done, total, done, counts["infeasible"], counts["failed"])


def _points(left: bytearray) -> Iterator[int]:
    return (point for point, flag in enumerate(left) if flag)


def _compute(
    setup: Setup, store: Store, left: bytearray, counts: Progress, request: SweepRequest, fresh: Fresh | None
) -> Progress:
    """Compute the points that are left, and commit results as they come in.

    fresh: is told of them.
    """
    count = sum(left)
    if not count:
        if request.dask is not None:
            # A wrong address is reported even where no scheduler is needed.
            pool.dask_executor(request.dask)[0].shutdown(wait=False)
        return counts
    results = results_of(setup, _points(left), count, request.jobs, request.dask)
    last = time.monotonic()

    def commit() -> None:
        store.commit()
        if request.progress:
            request.progress(counts)

    try:
        for rows in results:
            store.take(rows)
            if fresh is not None:
                fresh.add(rows)
            statuses = [row[_STATUS] for row in rows.results]
            counts = replace(
                counts,
                done=counts.done + len(statuses),
                infeasible=counts.infeasible + statuses.count("infeasible"),
                failed=counts.failed + statuses.count("failed"),
            )
            if time.monotonic() - last >= COMMIT_SECONDS:
                commit()
                last = time.monotonic()
    finally:
        # Results that came in before an interrupt are kept too.
        commit()
        results.close()
    if counts.done != counts.total:
        missing = counts.total - counts.done
        raise LstmsimError(f"{store.path}: {missing:,} points were never computed; the same command computes them")
    return counts


def results_of(setup: Setup, points: Iterable[int], count: int, jobs: int | None, dask: str | None) -> Any:
    """Give the outcomes of points as they come, in bulk and by processes, or by a dask cluster.

    count: how many points there are.
    """
    if dask is not None:
        executor, threads = pool.dask_executor(dask)
        return pool.on_executor(setup, points, lambda: executor, threads)
    workers = min(jobs if jobs is not None else processors(), count)

    def others(rest: list[int]) -> pool.Results:
        own = min(workers, len(rest))
        if own <= 1 or (jobs is None and len(rest) <= _FEW_POINTS):
            return pool.inline(setup, rest)
        return pool.on_executor(setup, rest, lambda: ProcessExecutor(own), own)

    # what is to be said of the engine is said here, and not by each worker
    engines.has_fast()
    return pool.in_bulk(setup, points, workers, others)


#: How the name of the output ends; the tables stand next to it, with other ends.
SUFFIX = ".sqlite"
_RESULT = ("key", "status", *NUMBERS, "reason")
_KEY, _STATUS = 0, 1


@dataclass(frozen=True)
class Merged(Table, forms="lstmsim.studies.sweep.report"):
    """The result of a merge.

    path: the SQLite file.
    tables: files with its table.
    points: how many of the sweep's points are there.
    total: how many the sweep has.
    """

    path: str
    tables: tuple[str, ...]
    points: int
    total: int


@takes(MergeRequest)
def merge(request: MergeRequest) -> Merged:
    """Join the SQLite files of a sweep's shards into `out`, and write its tables next to it.

    `InputError` if a file belongs to another sweep or is damaged; `out` is then as it was before.

    >>> import tempfile
    >>> from lstmsim import merge, sweep
    >>> folder = tempfile.mkdtemp()
    >>> axes = {"ep": {"path": "chip.cores.0.ep", "values": [8, 16]}}
    >>> scenario = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 3}]}
    >>> spec = {"scenario": scenario, "axes": axes}
    >>> shards = [sweep(spec, folder, jobs=1, shard=(part, 2)).path for part in (1, 2)]
    >>> [row["ep"] for row in merge(f"{folder}/all.sqlite", shards).to_records()]
    [8, 16]
    """
    names = names_of(request.inputs)
    if not names:
        raise InputError("nothing to merge: name at least one file of a shard")
    target = os.fspath(request.out)
    if not target.lower().endswith(SUFFIX):
        raise InputError(Mistake(f"OUT {target or repr(target)}", f"expected a file name that ends in {SUFFIX}"))
    written = [target, *sidecars(target), *table_names(target[: -len(SUFFIX)])]
    outputs = {identity_of(each) for each in written}
    for name in names:
        if identity_of(name) in outputs:
            raise InputError(Mistake(name, "is the output too; expected another file"))
    new = not os.path.exists(target)
    try:
        points, total = _join(target, names)
    except BaseException:
        if new:
            with suppress(OSError):
                os.remove(target)
        raise
    with Store(target, create=True) as store:
        return Merged(target, tuple(export(store, target[: -len(SUFFIX)])), points, total)


def _join(target: str, names: Sequence[str]) -> tuple[int, int]:
    """Put the shards into the target, all or none; give the number of points there, and that of the whole sweep."""
    with Store(names[0], create=False) as first:
        identity, axes, total, derived = _identity(first), first.axes(), first.total(), first.derived()
        objectives, about = objectives_of(first), about_of(first)
    for name in names[1:]:
        with Store(name, create=False) as other:
            if _identity(other) != identity:
                raise InputError(Mistake(name, f"is of another sweep, scenario or version than {names[0]}"))
    with Store(target, create=True) as store:
        store.check_meta("a merge without that file begins anew")
        if store.meta("identity") not in (None, identity):
            raise InputError(Mistake(target, f"is of another sweep, scenario or version than {names[0]}"))
        with store.transaction():
            store.begin(identity, axes, total, derived)
            store.mend()
            keep(store, objectives, about)
            for name in names:
                with Store(name, create=False) as shard:
                    _take(store, shard, [name for name, _ in axes], total)
            store.tidy()
        return sum(1 for _ in store.statuses()), total


def _identity(store: Store) -> str:
    """What names the sweep of a file; `InputError` if it holds none."""
    identity = store.meta("identity")
    if identity is None:
        raise InputError(Mistake(store.path, "holds no sweep"))
    return identity


def _take(store: Store, shard: Store, axes: Sequence[str], total: int) -> None:
    """Add the points of a shard; a point that is done in one file replaces one that failed in another."""
    columns = ", ".join(["p.point", *(f"p.{quoted(each)}" for each in ("key", *axes, "row checksum"))])
    results = ", ".join(f"r.{quoted(each)}" for each in (*_RESULT, "checksum"))
    width = 3 + len(axes)
    for row in shard.read(f"SELECT {columns}, {results} FROM points p JOIN results r ON r.key = p.key"):
        for part in (row[:width], row[width:]):
            if checksum(part[:-1]) != part[-1]:
                text = f"is damaged: point {row[0]} does not match its checksum"
                raise InputError(Mistake(shard.path, f"{text}; its own `lstmsim sweep` computes it anew"))
        point, result = row[: width - 1], row[width:-1]
        numbers = result[_STATUS] != "done" or all(isinstance(each, int | float) for each in result[2:-1])
        sound = numbers and result[_STATUS] in STATUSES and isinstance(result[_KEY], str)
        if not sound or not isinstance(point[0], int) or not 0 <= point[0] < total:
            raise shard.damage(f"point {point[0]}, status {result[_STATUS]!r}")
        present = "SELECT p.key, r.status FROM points p JOIN results r ON r.key = p.key WHERE p.point = ?"
        there = next(iter(list(store.read(present, point[:1]))), None)
        if there is not None and there[_KEY] != result[_KEY] and "failed" not in (there[_STATUS], result[_STATUS]):
            raise _conflict(shard, point[0])
        text = f"SELECT {', '.join(quoted(each) for each in _RESULT)} FROM results WHERE key = ?"
        for known in list(store.read(text, result[:1])):
            # Reasons may be worded in other ways.
            if "failed" not in (known[_STATUS], result[_STATUS]) and known[:-1] != result[:-1]:
                raise _conflict(shard, point[0])
        if there is None or there[_STATUS] == "failed":
            store.put([result], [point])
    times = list(shard.read("SELECT point, seconds FROM timings WHERE typeof(seconds) = 'real'"))
    store.sql.executemany("INSERT OR REPLACE INTO timings VALUES (?, ?)", times)


def _conflict(shard: Store, point: int) -> InputError:
    return InputError(Mistake(shard.path, f"point {point} has another result there than in the files before it"))
