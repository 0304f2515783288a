"""Calls that worker processes compute ahead, in the order in which they will probably be asked for.

Whoever asks gets what the call gives, wherever it was computed: nothing depends on the number of processes. What was
computed ahead and is never asked for is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from lstmsim import engines
from lstmsim.studies.sweep.processes import ProcessExecutor, processors

T = TypeVar("T")
#: The arguments of a call.
Key = tuple[Any, ...]

#: Where no number of processes is asked for, they are started after so many seconds of work: starting takes half of it.
_WORTH_SECONDS = 1.0


class Workers:
    """Processes that are started when the work is worth it, and end with the `with` block.

    jobs: their number; None: one for each processor.
    """

    def __init__(self, jobs: int | None = 1) -> None:
        self.count = processors() if jobs is None else jobs
        self._after = time.monotonic() + (_WORTH_SECONDS if jobs is None else 0.0)
        self._executor: ProcessExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown()

    @property
    def wanted(self) -> bool:
        """Whether calls are to be handed out."""
        return self.count > 1 and time.monotonic() >= self._after

    def submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Hand out a call; `BrokenExecutor` if no process can be started."""
        if self._executor is None:
            # what is to be said of the engine is said here, and not by each worker
            engines.has_fast()
            self._executor = ProcessExecutor(self.count)
        return self._executor.submit(function, *arguments)


class Ahead(Generic[T]):
    """The answers of a function, each computed once; `tick` is called when one is first asked for."""

    def __init__(self, function: Callable[..., T], workers: Workers, tick: Callable[[], None] = lambda: None) -> None:
        self._function, self._workers, self._tick = function, workers, tick
        self._known: dict[Key, T] = {}
        self._expected: Iterator[Key] = iter(())
        #: What is handed out, in the order of `_expected`; and what was, in the orders before it.
        self._out: dict[Key, Future[T]] = {}
        self._before: dict[Key, Future[T]] = {}

    def expect(self, keys: Iterable[Key]) -> None:
        """Say what will be asked for next, in that order, as far as it is known when a worker is free for it."""
        self._before |= self._out
        self._out, self._expected = {}, iter(keys)

    def __call__(self, *key: Any) -> T:
        """Give the answer to a call."""
        if key not in self._known:
            future = self._before.get(key)
            while key in self._out:
                # calls are asked for in their order: those before this one are not asked for any more
                first, future = next(iter(self._out.items()))
                del self._out[first]
                if first != key:
                    future.cancel()
            self._hand_out(key)
            self._known[key] = self._answer(key, future)
            self._tick()
        return self._known[key]

    def _answer(self, key: Key, future: Future[T] | None) -> T:
        # Whatever happened to a worker or in its call: here it happens as without workers, if at all.
        with suppress(Exception):
            if future is not None:
                return future.result()
        return self._function(*key)

    def _hand_out(self, present: Key) -> None:
        """Keep the workers busy, but not with the call that is answered at present."""
        # where no process can be started, all is computed here
        with suppress(BrokenExecutor):
            room = 2 * self._workers.count
            while self._workers.wanted and len(self._out) <= room and (key := next(self._expected, None)):
                if key != present and key not in self._known and key not in self._before:
                    self._out[key] = self._workers.submit(self._function, *key)
