"""A collector that takes requests one by one or in columns, by the names of their tenants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lstmsim.studies.serve import metrics
from lstmsim.studies.serve.result import Entry, Serving
from lstmsim.studies.serve.tenants import NEVER, Rows
from lstmsim.traffic.load import Load, Traffic

_CHUNK = 4096


class Collector(metrics.Collector):
    """`metrics.Collector` that takes keywords in place of columns; without entries all requests are of one tenant."""

    def __init__(
        self, frequency_mhz: float, servers: int = 1, entries: Sequence[Entry | str] = (), **options: Any
    ) -> None:
        made = [each if isinstance(each, Entry) else Entry(each, each) for each in entries or [""]]
        super().__init__(frequency_mhz, servers, made, **options)
        self._indices = {each.name: index for index, each in enumerate(made)}
        self._rows: list[tuple[int, ...]] = []
        self._gaps: list[tuple[int, int, int]] = []

    def add(
        self,
        number: int,
        arrival: int,
        start: int,
        finish: int,
        *,
        tenant: str = "",
        due: int | None = None,
        servers: int = 1,
        pauses: Sequence[tuple[int, int]] = (),
        alone: int = 0,
        core: int = -1,
        stalls: bool = True,
    ) -> None:
        """Take one more request; its errors may be raised at a later call."""
        times = (number, arrival, start, finish, NEVER if due is None else due, servers, alone, core, int(stalls))
        self._rows.append((*times, sum(until - since for since, until in pauses), self._indices[tenant]))
        self._gaps += [(since, until, servers) for since, until in pauses]
        if len(self._rows) >= _CHUNK:
            self.flush()

    def turn_away(
        self, number: int, arrival: int, at: int, *, tenant: str = "", due: int | None = None, alone: int = 0
    ) -> None:
        """Take a request that left at cycle `at` without service."""
        self.add(number, arrival, at, at, tenant=tenant, due=due, servers=0, alone=alone)

    def add_many(
        self,
        numbers: ArrayLike,
        arrivals: ArrayLike,
        starts: ArrayLike,
        finishes: ArrayLike,
        *,
        tenants: Sequence[str] | str = "",
        due: ArrayLike = NEVER,
        alone: ArrayLike = 0,
        servers: ArrayLike = 1,
        cores: ArrayLike = -1,
        stalls: ArrayLike = 1,
    ) -> None:
        """Take many requests, as columns; a number stands for a column of it."""
        self.flush()
        count = len(np.atleast_1d(np.asarray(numbers)))
        given = numbers, arrivals, starts, finishes, due, servers, alone, cores, stalls, 0
        columns = [np.broadcast_to(np.asarray(each, dtype=np.int64), count) for each in given]
        names = [tenants] * count if isinstance(tenants, str) else tenants
        self.take(columns[0], Rows(*columns[1:]), np.array([self._indices[name] for name in names], dtype=np.int64))

    def flush(self) -> None:
        """Take the requests that were added one by one."""
        rows, gaps = self._rows, self._gaps
        self._rows, self._gaps = [], []
        if rows:
            self.pause(np.array(gaps, dtype=np.int64).reshape(-1, 3).T)
            columns = np.array(rows, dtype=np.int64).T
            self.take(columns[0], Rows(*columns[1:-1]), columns[-1])

    def figures(self, *, load: Load | None = None, traffic: Traffic | None = None, cut: bool = False) -> Serving:
        """Give the figures of all requests."""
        self.flush()
        return self.result(traffic or Traffic(load), cut=cut)
