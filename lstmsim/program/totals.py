"""The totals of a run, without its trace: cycles by name, work that was done, when tasks ran and paused."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lstmsim.program.trace_tables import PAUSES, TASKS

__all__ = ["Totals"]


@dataclass(frozen=True, eq=False)
class Totals:
    """The totals of a run.

    cycles: how many cycles of each core bear each name, shape (cores, names in the order of `CYCLE_NAMES`).
    work: useful multiply-accumulates of each core, shape (cores,).
    issues: issues of all units of each core, shape (cores,).
    tasks: what happened to each task, as in `Trace.tasks`.
    pauses: when tasks had given up their threads, as in `Trace.pauses`.

    >>> cycles = np.array([[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]])
    >>> Totals(cycles, np.array([8]), np.array([3]), np.array([[0, 0, 0, 4, 0, 0, 0]])).makespan_cycles
    4
    """

    cycles: NDArray[np.int64]
    work: NDArray[np.int64]
    issues: NDArray[np.int64]
    tasks: NDArray[np.int64]
    pauses: NDArray[np.int64] = field(default_factory=PAUSES.empty)

    @property
    def makespan_cycles(self) -> int:
        """The cycle from which every task is finished."""
        return int(self.task("finish").max(initial=0))

    def task(self, name: str) -> NDArray[np.int64]:
        """One column of `tasks` by its name."""
        return TASKS.of(self.tasks, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Totals):
            return NotImplemented
        names = ("cycles", "work", "issues", "tasks", "pauses")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]
