"""Worker processes, each with a pipe of its own, so that one that ends takes no answer of another with it.

The pools of the standard library share one pipe and its lock among all workers: one that is killed while it writes
leaves half a message there, for which the reader waits for ever. Here only a worker itself holds the far end of its
pipe, and half a message ends with it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

__all__ = ["CannotStartError", "ProcessExecutor", "WorkerEndedError"]

_Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class WorkerEndedError(Exception):
    """A worker process ended before it gave its answer."""


class CannotStartError(BrokenExecutor):
    """A worker process ended before it could take a call: no call is at fault."""


class ProcessExecutor(Executor):
    """Worker processes that start afresh (never forked from a process with threads) and end with this one.

    A call whose worker ends fails with `WorkerEndedError`, and another worker takes its place; where none can be
    started, calls fail with `CannotStartError`. `shutdown` ends the workers whatever they do.

    >>> with ProcessExecutor(1) as executor:
    ...     executor.submit(max, 3, 4).result()
    4
    """

    def __init__(self, workers: int) -> None:
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(["lstmsim.sweeps.pool"])
        self._calls: SimpleQueue[tuple[Future[Any], _Call] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._problem: Exception | None = None
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if self._problem is not None:
            raise self._problem
        future: Future[Any] = Future()
        self._calls.put((future, (function, arguments, named)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._problem = self._problem or RuntimeError("the workers have been ended")
            for worker in self._workers:
                worker.kill()
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _serve(self) -> None:
        """What each thread does: hand calls to one worker, and start another one when it has ended."""
        worker: _Worker | None = None
        while (task := self._calls.get()) is not None:
            future, call = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                worker = worker or self._start()
                future.set_result(worker.answer(call))
            except WorkerEndedError as error:
                self._drop(worker)
                worker = None
                future.set_exception(error)
            except Exception as error:
                future.set_exception(error)
        self._drop(worker)

    def _start(self) -> _Worker:
        worker: _Worker | None = None
        # One at a time: the standard library's list of processes belongs to one thread.
        with self._lock:
            if self._problem is None:
                try:
                    worker = _Worker(self._context)
                    self._workers.add(worker)
                except Exception as error:
                    self._problem = CannotStartError(f"{type(error).__name__}: {error}")
        try:
            if worker is not None:
                worker.receive()
                return worker
        except WorkerEndedError as error:
            self._drop(worker)
            self._problem = self._problem or CannotStartError(str(error))
        raise self._problem or RuntimeError("no worker")

    def _drop(self, worker: _Worker | None) -> None:
        if worker is not None:
            with self._lock:
                self._workers.discard(worker)
                worker.close()


class _Worker:
    """This process's side of one worker."""

    def __init__(self, context: Any) -> None:
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=_work, args=(far,), daemon=True)
        try:
            self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            # Only the worker may hold it: the end of the worker must be the end of the pipe.
            far.close()

    def answer(self, call: _Call) -> Any:
        """What the call gives, or its exception."""
        try:
            self.pipe.send(call)
        except OSError:
            raise self._ended() from None
        good, value = self.receive()
        if not good:
            raise value
        return value

    def receive(self) -> Any:
        """The next message; `WorkerEndedError` if there is none, or half of one."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            raise self._ended() from None

    def _ended(self) -> WorkerEndedError:
        self.process.join(1)
        return WorkerEndedError(f"a worker process ended with code {self.process.exitcode}")

    def kill(self) -> None:
        """End the process; a thread that waits for its answer notices."""
        with suppress(ProcessLookupError):
            self.process.kill()

    def close(self) -> None:
        """End the process and forget it."""
        self.kill()
        self.process.join()
        self.pipe.close()


def _work(pipe: Any) -> None:
    """What a worker does: say that it is there, then answer one call after another until nobody asks any more."""
    # An interrupt from the keyboard ends a worker at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        pipe.send(None)
        while True:
            function, arguments, named = pipe.recv()
            try:
                found = (True, function(*arguments, **named))
            except Exception as error:
                found = (False, error)
            pipe.send(found)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent ends no computation that is under way.
        parent.join()
        os._exit(1)
