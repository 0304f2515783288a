"""In which order waiting jobs get a free thread: pure functions, one for each name.

Each gives a key, and whether it counts from the job's arrival; the smallest is admitted first, equal ones in the order
of arrival. Running jobs go on, but for jobs that preempt (`lstmsim.workload.scenario.Job`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

__all__ = ["DISPATCH", "Ranked", "edf", "fcfs", "priority", "sjf"]

#: Later than any deadline: of jobs without one.
_NO_DEADLINE = 1 << 59


class Ranked(Protocol):
    """What an order looks at."""

    @property
    def macs(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def deadline(self) -> int | None: ...


def fcfs(job: Ranked) -> tuple[int, bool]:
    """First come, first served.

    Source: Kleinrock, Queueing Systems, volume 1, 1975.
    """
    return 0, False


def sjf(job: Ranked) -> tuple[int, bool]:
    """Shortest job first; a job's length is its multiply-accumulates, because its cycles are not known before it runs.

    Shortens the mean wait, and lets long jobs starve.

    Source: Smith 1956, doi 10.1002/nav.3800030106.
    """
    return job.macs, False


def edf(job: Ranked) -> tuple[int, bool]:
    """Earliest deadline first, jobs without one last.

    Source: Liu and Layland 1973, doi 10.1145/321738.321743.
    """
    return (_NO_DEADLINE, False) if job.deadline is None else (job.deadline, True)


def priority(job: Ranked) -> tuple[int, bool]:
    """The highest priority first.

    Source: Cobham 1954, doi 10.1287/opre.2.1.70.
    """
    return -job.priority, False


#: Orders by name.
DISPATCH: Mapping[str, Callable[[Ranked], tuple[int, bool]]] = {
    "fcfs": fcfs,
    "sjf": sjf,
    "edf": edf,
    "priority": priority,
}
