"""A sweep from its file to its tables: it finds the points that are left, computes them, and keeps the results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from lstmsim import engines
from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.base.files_kept import refuse_if_read
from lstmsim.report.results import Table
from lstmsim.studies.sweep import pool
from lstmsim.studies.sweep.about import About, keep_about
from lstmsim.studies.sweep.evaluate import Outcome, point_key, row_of
from lstmsim.studies.sweep.export import export, keep_objectives, table_names
from lstmsim.studies.sweep.prepare import prepare
from lstmsim.studies.sweep.processes import processors
from lstmsim.studies.sweep.resolve import Resolver, Setup
from lstmsim.studies.sweep.spec import shard_numbers
from lstmsim.studies.sweep.store import SPELLING, Store
from lstmsim.studies.sweep.stored import beside

__all__ = ["Progress", "Shard", "SweepResult", "made_folder", "run_sweep", "table_stem"]

#: Shard i of n, i counted from 1.
Shard = tuple[int, int]

#: A commit waits for the disk, so there are no more of them than a second of lost work asks for.
_COMMIT_SECONDS = 0.5
_COMMIT_POINTS = 5000
#: Below this many points a pool of processes costs more than it saves.
_FEW_POINTS = 3


@dataclass(frozen=True)
class Progress:
    """How far a sweep is.

    done: points with a result.
    total: points to compute, those with a result included.
    reused: points whose result was there before.
    infeasible, failed: points with that status.
    """

    done: int
    total: int
    reused: int = 0
    infeasible: int = 0
    failed: int = 0


@dataclass(frozen=True)
class SweepResult(Table, forms="lstmsim.studies.sweep.result_text"):
    """The result of a sweep.

    path: its SQLite file.
    tables: files with its table.
    progress: the counts of its points.
    dropped: rows that did not match their checksums, or had none; their points were computed anew.
    rebuilt: whether the file's own description of its sweep (axes, objectives, ...) was damaged in such a way, and was
        written anew from the sweep file.
    """

    path: str
    tables: tuple[str, ...]
    progress: Progress
    dropped: int = 0
    rebuilt: bool = False


def table_stem(folder: str, shard: Shard | None) -> str:
    """Give the path of a sweep's files without their suffixes; shards have paths of their own.

    >>> table_stem("out", None), table_stem("out", (3, 20))
    ('out/sweep', 'out/sweep-3-of-20')
    """
    return os.path.join(folder, "sweep" if shard is None else f"sweep-{shard[0]}-of-{shard[1]}")


def run_sweep(
    source: str | os.PathLike[str] | Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    overrides: Sequence[str] = (),
    jobs: int | None = None,
    dask: str | None = None,
    shard: Shard | None = None,
    resume: bool = True,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> SweepResult:
    """Simulate every point of a sweep that has no result yet, and write its tables.

    The tables are the same whichever processes compute the points.

    source: the sweep file, or data laid out like one.
    folder: where the results go.
    overrides: changes of the scenario, before the changes of the axes.
    jobs: worker processes; None: one for each processor; 1: this process alone.
    dask: the address of a scheduler that is used instead.
    shard: the part of the points that is computed; None: all.
    resume: whether results that are there are kept.
    retry_failed: whether failed points are computed once more.
    progress: is called after every commit.
    `InputError` for mistakes in the file; mistakes of one point are in its row.
    """
    setup, axes = prepare(source, overrides)
    stem = table_stem(os.fspath(folder), shard)
    wanted = shard or (1, 1)
    for each in (f"{stem}.sqlite", *beside(f"{stem}.sqlite"), *table_names(stem)):
        refuse_if_read(each)
    with made_folder(os.fspath(folder)), Store(f"{stem}.sqlite", create=True) as store:
        if not resume:
            store.forget()
        columns = [*axes, *((name, ()) for name in setup.chip.names)]
        derived = [each.name for each in setup.sweep.derived]
        store.begin(f"{setup.identity} {SPELLING}", columns, len(setup.sweep), derived)
        store.mend()
        keep_objectives(store, setup.objectives)
        keep_about(store, About(_scenario_name(setup), setup.chip.device.name if setup.chip.device else ""))
        left, counts = _left(setup, store, wanted, retry_failed)
        if progress:
            progress(counts)
        counts = _compute(setup, store, left, counts, jobs, dask, progress)
        store.tidy()
        return SweepResult(store.path, tuple(export(store, stem)), counts, store.dropped, store.rebuilt)


def _scenario_name(setup: Setup) -> str:
    return str(setup.document.data.get("name", setup.scenario_name))


@contextmanager
def made_folder(folder: str) -> Iterator[None]:
    """Make the folder if it is missing; `InputError` if that cannot be done.

    A folder that was made is removed again if the block fails and has left nothing in it.
    """
    new = not os.path.isdir(folder)
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(Mistake(f"--out {folder}", f"cannot be a folder ({reason})")) from None
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
    for point in shard_numbers(len(sweep), shard):
        left[point] = 1
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
        for point in _numbers(left):
            values = sweep.values(point)
            key, chip = point_key(resolver, values)
            if store.has(key):
                links.append((point, key, *row_of(setup, values, chip)))
                left[point] = 0
        store.link(links)
        counts["done"] += len(links)
    done = sum(counts.values())
    return left, Progress(done, total, done, counts["infeasible"], counts["failed"])


def _numbers(flags: bytearray) -> Iterator[int]:
    at = flags.find(1)
    while at >= 0:
        yield at
        at = flags.find(1, at + 1)


def _compute(
    setup: Setup,
    store: Store,
    left: bytearray,
    counts: Progress,
    jobs: int | None,
    dask: str | None,
    progress: Callable[[Progress], None] | None,
) -> Progress:
    """Compute the points that are left, and commit results as they come in."""
    count = sum(left)
    if not count:
        if dask is not None:
            # A wrong address is told even where no scheduler is needed.
            pool.dask_executor(dask)[0].shutdown(wait=False)
        return counts
    results = _results(setup, _numbers(left), count, jobs, dask)
    waiting: list[Outcome] = []
    last = time.monotonic()

    def commit() -> None:
        store.record(waiting)
        waiting.clear()
        if progress:
            progress(counts)

    try:
        for outcomes in results:
            waiting += outcomes
            counts = _counted(counts, outcomes)
            if len(waiting) >= _COMMIT_POINTS or time.monotonic() - last >= _COMMIT_SECONDS:
                commit()
                last = time.monotonic()
    finally:
        # Results that came in before an interrupt are kept too.
        commit()
        results.close()
    if counts.done != counts.total:
        missing = counts.total - counts.done
        raise LstmsimError(f"{store.path}: {missing:,} points were never computed; the same command goes on with them")
    return counts


def _results(setup: Setup, points: Iterable[int], count: int, jobs: int | None, dask: str | None) -> Any:
    if dask is not None:
        executor, threads = pool.dask_executor(dask)
        return pool.on_executor(setup, points, lambda: executor, threads)
    workers = min(jobs if jobs is not None else processors(), count)
    if workers == 1 or (jobs is None and count <= _FEW_POINTS):
        return pool.inline(setup, points)

    # what is to be said of the engine is said here, and not by each worker
    engines.has_fast()

    def make() -> Executor:
        return pool.process_executor(workers)

    return pool.on_executor(setup, points, make, workers)


def _counted(counts: Progress, outcomes: Sequence[Outcome]) -> Progress:
    statuses = [each.status for each in outcomes]
    return replace(
        counts,
        done=counts.done + len(outcomes),
        infeasible=counts.infeasible + statuses.count("infeasible"),
        failed=counts.failed + statuses.count("failed"),
    )
