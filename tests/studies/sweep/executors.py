"""Executors that break on purpose."""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any


class Dying(Executor):
    """Computes in threads; some points break it, as a worker that dies breaks a pool of processes."""

    def __init__(self, deadly: set[int], deaths: list[int]) -> None:
        self.threads = ThreadPoolExecutor(1)
        self.deadly, self.deaths = deadly, deaths
        self.broken = False

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        if self.broken:
            raise BrokenProcessPool("broken before")

        def work() -> Any:
            found = self.deadly & set(arguments[1])
            if found or self.broken:
                self.broken = True
                self.deaths.extend(found)
                raise BrokenProcessPool("a worker died")
            return function(*arguments)

        return self.threads.submit(work)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.threads.shutdown(wait, cancel_futures=cancel_futures)
