"""Who computes the points: this process, worker processes, or the workers of a dask cluster.

Every executor of `concurrent.futures` will do, for only `submit` is needed. Points go out in chunks of about a quarter
of a second. When a worker dies, the points that were out are tried once more, each alone, so that one that kills its
worker takes no other with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from itertools import islice
from typing import Any

from lstmsim.errors import InputError, LstmsimError, Mistake
from lstmsim.sweep.evaluate import Outcome, compute_chunk, value_key
from lstmsim.sweep.resolve import Resolver, Setup

__all__ = ["dask_executor", "inline", "on_executor", "process_executor"]

_CHUNK_SECONDS = 0.25
_MOST_POINTS = 500
_ATTEMPTS_TO_START = 3

Results = Iterator[list[Outcome]]


def inline(setup: Setup, points: Iterable[int]) -> Results:
    """Compute the points in this process, one after another."""
    for point in points:
        yield compute_chunk(setup, [point])


def process_executor(workers: int) -> Executor:
    """Worker processes that start afresh (never forked from a process with threads) and end with this one."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["lstmsim.sweep.pool"])
    return ProcessPoolExecutor(workers, context, _start_worker)


def _start_worker() -> None:
    """An interrupt from the keyboard ends a worker at once; so does the end of the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent closes no queue: without this its workers would wait for ever.
        parent.join()
        os._exit(1)


def dask_executor(address: str) -> tuple[Executor, int]:
    """The dask cluster at that address as an executor, and the number of its threads; `InputError` if there is none."""
    try:
        from distributed import Client
    except ImportError:
        raise InputError(Mistake("--dask", "needs the package dask.distributed: pip install 'lstmsim[dask]'")) from None
    try:
        # Some versions of it are typed and some are not.
        connect: Any = Client
        client = connect(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(Mistake(f"--dask {address}", f"no scheduler answers there ({error})")) from None
    return _DaskExecutor(client), max(1, sum(client.nthreads().values()))


class _DaskExecutor(Executor):
    """The executor of a dask client, which ends with it; a task whose worker has gone is given to another one."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.inner: Executor = client.get_executor(pure=False, retries=2)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return self.inner.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.inner.shutdown(wait=wait)
        self.client.close()


def on_executor(setup: Setup, points: Iterable[int], make: Callable[[], Executor], workers: int) -> Results:
    """Compute the points on an executor; `make` is called again when one has broken."""
    return _Dispatch(setup, iter(points), make, workers).run()


class _Dispatch:
    def __init__(self, setup: Setup, points: Iterator[int], make: Callable[[], Executor], workers: int) -> None:
        self.setup = setup
        self.points = points
        self.make = make
        self.workers = workers
        self.executor = make()
        self.chunk = 1
        self.out: dict[Future[list[Outcome]], list[int]] = {}
        self.suspects: list[int] = []
        self.answered = False
        self.breaks = 0

    def run(self) -> Results:
        try:
            while True:
                self._fill()
                if not self.out:
                    break
                yield from self._collect()
            for point in self.suspects:
                yield [self._alone(point)]
        finally:
            for future in self.out:
                future.cancel()
            self.executor.shutdown(wait=False, cancel_futures=True)

    def _fill(self) -> None:
        while len(self.out) < 2 * self.workers and (chunk := list(islice(self.points, self.chunk))):
            try:
                self.out[self.executor.submit(compute_chunk, self.setup, chunk)] = chunk
            except BrokenExecutor:
                self.suspects += chunk
                return

    def _collect(self) -> Results:
        done, _ = wait(self.out, return_when=FIRST_COMPLETED)
        broken = False
        for future in done:
            chunk = self.out.pop(future)
            try:
                outcomes = future.result()
            except Exception as error:
                self.suspects += chunk
                broken = broken or isinstance(error, BrokenExecutor)
                continue
            self._learn(outcomes)
            yield outcomes
        if broken:
            # The others are lost too; what still comes back of them is taken in the next rounds.
            wait(self.out)
            self._restart()

    def _learn(self, outcomes: list[Outcome]) -> None:
        self.answered = True
        mean = sum(each.seconds for each in outcomes) / len(outcomes)
        self.chunk = max(1, min(_MOST_POINTS, 2 * self.chunk, int(_CHUNK_SECONDS / max(mean, 1e-6))))

    def _restart(self) -> None:
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.breaks += 1
        if not self.answered and self.breaks >= _ATTEMPTS_TO_START:
            raise LstmsimError("the worker processes end before they have done anything; --jobs 1 needs none")
        self.executor = self.make()

    def _alone(self, point: int) -> Outcome:
        """The second attempt at a point."""
        try:
            outcome = self.executor.submit(compute_chunk, self.setup, [point]).result()[0]
            self.answered = True
            return outcome
        except Exception as error:
            reason = " ".join(f"its worker ended or gave no answer, twice ({type(error).__name__}: {error})".split())
            if isinstance(error, BrokenExecutor):
                self._restart()
        key = value_key(Resolver(self.setup), self.setup.sweep.values(point))
        return Outcome(point, key, "failed", None, reason[:500], 0.0)
