"""Who computes the points of a sweep: this process, in bulk and in threads; worker processes; a dask cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

from lstmsim.base.errors import InputError, LstmsimError, Mistake
from lstmsim.studies.sweep.bulk import Bulk
from lstmsim.studies.sweep.evaluate import Outcome, Rows, outcome_of, row_of, rows_of, value_key
from lstmsim.studies.sweep.processes import CannotStartError
from lstmsim.studies.sweep.resolve import Resolver, Setup

_CHUNK_SECONDS = 0.25
_MOST_POINTS = 500
#: Executors that may break in a row, without one answer, before the points are given up.
_BREAKS_IN_A_ROW = 5

Results = Iterator[Rows]


def compute_chunk(setup: Setup, points: Sequence[int]) -> Rows:
    """Compute the outcomes of some points; a process keeps what it has read for the next chunk."""
    # Folder and name belong to the key: the same sweep from another folder names its files in another way.
    kept = (setup.identity, os.path.abspath(setup.document.folder), setup.document.name)
    if kept not in _KEPT:
        _KEPT.clear()
        _KEPT[kept] = Bulk(Resolver(setup))
    bulk = _KEPT[kept]
    rest: list[int] = []
    done = bulk.computed(points, rest)
    done.add(rows_of(outcome_of(bulk.resolver, point) for point in rest))
    return done


#: What this process keeps between chunks: the resolver of the last setup.
_KEPT: dict[tuple[str, ...], Bulk] = {}


def in_bulk(setup: Setup, points: Iterable[int], workers: int, others: Callable[[list[int]], Results]) -> Results:
    """Compute the points that can be computed many at once, in threads of this process; then the others, one by one.

    others: gives the results of points that are unusual.
    """
    bulk, every, rest = Bulk(Resolver(setup)), iter(points), list[int]()
    if not bulk.possible:
        rest += every
    # with one worker all is done here, one chunk after another
    with ThreadPoolExecutor(workers) as threads:
        out: deque[tuple[Any, Any]] = deque()
        while True:
            while len(out) < 2 * workers and (some := list(islice(every, bulk.size))):
                chunk = bulk.chunk(some, rest)
                out.append((chunk, threads.submit(chunk.run) if workers > 1 else None))
            if not out:
                break
            chunk, future = out.popleft()
            yield bulk.rows(chunk, future.result() if future else chunk.run(), rest)
    yield from others(rest)


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
        self.out: dict[Future[Rows], tuple[list[int], Executor]] = {}
        self.suspects: list[int] = []
        self.breaks = 0

    def run(self) -> Results:
        try:
            self._fill()
            while self.out:
                for future in wait(self.out, return_when=FIRST_COMPLETED)[0]:
                    chunk, executor = self.out.pop(future)
                    try:
                        rows = future.result()
                    except Exception as error:
                        self.suspects += chunk
                        self._replace(executor, error)
                        continue
                    self.breaks = 0
                    mean = rows.seconds / len(chunk)
                    fitting = int(_CHUNK_SECONDS / max(mean, 1e-6))
                    self.chunk = max(1, min(_MOST_POINTS, 2 * self.chunk, fitting))
                    yield rows
                self._fill()
            for point in self.suspects:
                yield self._alone(point)
        finally:
            for future in self.out:
                future.cancel()
            self.executor.shutdown(wait=False, cancel_futures=True)

    def _fill(self) -> None:
        while len(self.out) < 2 * self.workers and (chunk := list(islice(self.points, self.chunk))):
            future = self._submit(chunk)
            self.out[future] = (chunk, self.executor)

    def _submit(self, chunk: list[int]) -> Future[Rows]:
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

    def _alone(self, point: int) -> Rows:
        """Try a point a second time, when no other point is under way."""
        while True:
            future = self._submit([point])
            try:
                rows = future.result()
            except Exception as error:
                self._replace(self.executor, error)
                # If no worker can start, the point has not been tried.
                if not isinstance(error, CannotStartError):
                    reason = f"its worker ended or gave no answer, twice ({type(error).__name__}: {error})"
                    values = self.setup.sweep.values(point)
                    key, row = value_key(Resolver(self.setup), values), row_of(self.setup, values, ())
                    return rows_of([Outcome(point, key, "failed", None, " ".join(reason.split())[:500], 0.0, row)])
            else:
                self.breaks = 0
                return rows
