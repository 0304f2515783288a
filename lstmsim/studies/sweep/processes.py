"""Worker processes, each with a pipe of its own, so that one that is killed takes no answer of another with it.

Why not the pools of the standard library: docs/decisions/search_and_sweeps.md.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from multiprocessing import spawn
from queue import SimpleQueue
from typing import Any

_Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
#: New objects in a sweep, or a worker, after which circles among them are sought; Python's own number is 700.
YOUNG_OBJECTS = 50_000
#: Held while a process is started without the main module.
_STARTING = threading.Lock()


class WorkerEndedError(Exception):
    """A worker process ended before it gave its answer."""


class CannotStartError(BrokenExecutor):
    """A worker process ended before it could take a call: no call is at fault."""


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessExecutor(Executor):
    """Worker processes that start afresh (never forked from a process with threads) and end with this one.

    `WorkerEndedError` from a call whose worker ends; another worker follows it. `CannotStartError` from calls for which
    no worker can be started.

    >>> with ProcessExecutor(1) as executor:
    ...     executor.submit(max, 3, 4).result()
    4
    """

    def __init__(self, workers: int) -> None:
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(["lstmsim.studies.sweep.dispatch"])
        self._calls: SimpleQueue[tuple[Future[Any], _Call] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._problem: Exception | None = None
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Hand a call to the next free worker; `CannotStartError` if no worker can be started."""
        if self._problem is not None:
            raise self._problem
        future: Future[Any] = Future()
        self._calls.put((future, (function, arguments, named)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, also in the middle of a call. `wait`: return when they have ended."""
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
        """Hand calls to one worker, and start another worker when that one has ended: the work of each thread."""
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
            with _without_main():
                self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            # Only the worker may hold the far end: when the worker ends, the pipe must end.
            far.close()

    def answer(self, call: _Call) -> Any:
        """Give the result of a call, or raise its exception; `WorkerEndedError` if the worker ends."""
        try:
            self.pipe.send(call)
        except OSError:
            raise self._ended() from None
        good, value = self.receive()
        if not good:
            raise value
        return value

    def receive(self) -> Any:
        """Give the next message; `WorkerEndedError` if the pipe ends before a whole message."""
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


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not import the main module of this one.

    A worker calls functions of lstmsim alone. The standard library would run the user's script again in each worker,
    which a script without `if __name__ == "__main__"` does not bear, and a script on standard input cannot do.
    """
    starter = threading.get_ident()
    with _STARTING:
        whole: Any = spawn.get_preparation_data

        def without(name: str) -> Any:
            data = whole(name)
            if threading.get_ident() == starter:
                # Other threads may start processes of their own meanwhile.
                for key in ("init_main_from_name", "init_main_from_path"):
                    data.pop(key, None)
            return data

        spawn.get_preparation_data = without
        try:
            yield
        finally:
            spawn.get_preparation_data = whole


def _work(pipe: Any) -> None:
    """Report that the worker has started, then answer one call after another until the pipe ends: a worker's work."""
    # An interrupt from the keyboard ends a worker at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # What was imported stays for good, and of many small objects in a call few are in a circle: searching all of them
    # again and again for such circles takes a fifth of a worker's time.
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    with suppress(EOFError, BrokenPipeError):
        pipe.send(None)
        while True:
            function, arguments, named = pipe.recv()
            try:
                answer = (True, function(*arguments, **named))
            except Exception as error:
                answer = (False, error)
            pipe.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        # A killed parent ends no computation that is under way.
        parent.join()
        os._exit(1)
