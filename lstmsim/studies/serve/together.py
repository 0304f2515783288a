"""Who of the requests ran together: threads that batches took, and figures of batches, while requests finish."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.batches import BatchFigures, pads
from lstmsim.model.scenario import Job
from lstmsim.program.runs import Runs

Ints = NDArray[np.int64]
#: Rows of members: who led the batch, a cycle that tells it from others of that leader, tenant, steps, whether it pads.
_COLUMNS = 5
#: Members of batches that are noted before batches are counted.
_MANY = 1 << 16
_NEVER = 1 << 62


class Together:
    """Counts the batches of requests, those of each tenant and all together, in memory that does not grow with them.

    tenants: number of tenants.
    jobs: templates of requests.
    """

    def __init__(self, jobs: Sequence[Job], tenants: int) -> None:
        self.in_rounds = np.array([job.batching is not None and job.batching.in_rounds for job in jobs])
        self._pads = np.array([pads(job) for job in jobs])
        self._steps = np.array([job.steps for job in jobs])
        self._tenants = tenants
        self.most = max((job.batching.max_batch_size for job in jobs if job.batching is not None), default=0)
        self._rows: list[Ints] = []
        self._noted, self._many = 0, _MANY
        #: Of each tenant, and last of all together: batches by size; steps that were run, and the members' own.
        self._sizes: Ints = np.zeros((tenants + 1, self.most + 1), dtype=np.int64)
        self._steps_run: Ints = np.zeros((2, tenants + 1), dtype=np.int64)
        #: Until when a batch has had the thread (core, context).
        self._held: dict[tuple[int, int], int] = {}

    def add(self, leads: Ints, cycles: Ints, tenants: Ints, templates: Ints | None = None) -> None:
        """Note members of batches, one batch for each leader and cycle; templates: None for rounds, of one step."""
        one = np.ones(len(leads), dtype=np.int64)
        steps, padded = (one, 0 * one) if templates is None else (self._steps[templates], self._pads[templates])
        self._rows.append(np.stack([leads, cycles, tenants, steps, padded]))
        self._noted += len(leads)

    def settle(self, before: int) -> None:
        """Count batches, if many are noted; before: a cycle such that of those with earlier ones all members are."""
        if self._noted >= self._many:
            self._count(before)
            # if few could be counted, the next time comes late
            self._many = max(_MANY, 2 * self._noted)

    def held(self, runs: Runs) -> tuple[Ints, Ints, Ints]:
        """From when until when batches held threads beyond what is known of them already, and by which runs.

        runs: members of batches, in the order of their ends; a thread is held until the last of its batch has finished.
        """
        spans: list[tuple[int, int, int]] = []
        columns = (runs.core, runs.context, runs.start, runs.end)
        for place, (core, context, start, end) in enumerate(zip(*(each.tolist() for each in columns), strict=True)):
            since = max(start, self._held.get((core, context), 0))
            if since < end:
                self._held[core, context] = end
                spans.append((since, end, place))
        made: Ints = np.array(spans, dtype=np.int64).reshape(-1, 3)
        return made[:, 0], made[:, 1], made[:, 2]

    def figures(self) -> tuple[BatchFigures | None, dict[int, BatchFigures]]:
        """The figures of all batches, and by tenant; a batch of several tenants counts in each of them."""
        self._count(_NEVER)
        each = {tenant: self._of(tenant) for tenant in range(self._tenants) if self._steps_run[0, tenant]}
        return (self._of(-1) if each else None), each

    def _count(self, before: int) -> None:
        rows = np.concatenate([*self._rows, np.zeros((_COLUMNS, 0), dtype=np.int64)], axis=1)
        later = rows[1] >= before
        self._rows, self._noted = [rows[:, later]], int(later.sum())
        rows = rows[:, ~later]
        _, own = np.unique(rows[:2], axis=1, return_inverse=True)
        own = own.ravel()
        sizes = np.bincount(own)
        longest = np.zeros(len(sizes), dtype=np.int64)
        np.maximum.at(longest, own, rows[3])
        run = np.where(rows[4] > 0, longest[own], rows[3])
        for place in (*range(self._tenants), -1):
            mine = (rows[2] == place) | (place < 0)
            self._sizes[place] += np.bincount(sizes[np.unique(own[mine])], minlength=self.most + 1)
            self._steps_run[:, place] += run[mine].sum(), rows[3][mine].sum()

    def _of(self, place: int) -> BatchFigures:
        counts, (run, own) = self._sizes[place], self._steps_run[:, place].tolist()
        batches = int(counts.sum())
        mean = int(counts @ np.arange(len(counts))) / batches
        return BatchFigures(batches, mean, tuple(counts[1:].tolist()), 1 - own / run)
