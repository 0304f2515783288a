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


class Together:
    """Counts the batches of requests, those of each tenant and all together.

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
        #: Until when a batch has had the thread (core, context).
        self._held: dict[tuple[int, int], int] = {}

    def add(self, leads: Ints, cycles: Ints, tenants: Ints, templates: Ints | None = None) -> None:
        """Note members of batches, one batch for each leader and cycle; templates: None for rounds, of one step."""
        one = np.ones(len(leads), dtype=np.int64)
        steps, padded = (one, 0 * one) if templates is None else (self._steps[templates], self._pads[templates])
        self._rows.append(np.stack([leads, cycles, tenants, steps, padded]))

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
        rows = np.concatenate([*self._rows, np.zeros((_COLUMNS, 0), dtype=np.int64)], axis=1)
        if not rows.shape[1]:
            return None, {}
        _, own = np.unique(rows[:2], axis=1, return_inverse=True)
        own = own.ravel()
        sizes, longest = np.bincount(own), np.zeros(own.max() + 1, dtype=np.int64)
        np.maximum.at(longest, own, rows[3])
        run = np.where(rows[4] > 0, longest[own], rows[3])
        by_tenant = {}
        for tenant in range(self._tenants):
            mine = rows[2] == tenant
            if mine.any():
                by_tenant[tenant] = self._of(sizes[np.unique(own[mine])], run[mine], rows[3][mine])
        return self._of(sizes, run, rows[3]), by_tenant

    def _of(self, sizes: Ints, run: Ints, own: Ints) -> BatchFigures:
        counts = np.bincount(sizes, minlength=self.most + 1)[1:]
        padding = 1 - int(own.sum()) / int(run.sum())
        return BatchFigures(len(sizes), float(sizes.mean()), tuple(counts.tolist()), padding)
