"""In which order waiting jobs get a free thread: pure functions, one for each name.

Each function gives a key, and whether the key counts from the job's arrival. The job with the smallest key is admitted
first; jobs with equal keys are admitted in the order of arrival. Running jobs go on, except that a job which preempts
(`lstmsim.model.scenario.Job`) may take the thread of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

__all__ = ["DISPATCH", "Ranked", "edf", "fcfs", "priority", "sjf"]

#: The deadline of jobs that have none: later than any deadline.
_NO_DEADLINE = 1 << 59


class Ranked(Protocol):
    """The properties of a job that an order looks at."""

    @property
    def macs(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def deadline(self) -> int | None: ...


def fcfs(job: Ranked) -> tuple[int, bool]:
    """Order jobs as first come, first served.

    Source: Kleinrock, Queueing Systems, volume 1, 1975.
    """
    return 0, False


def sjf(job: Ranked) -> tuple[int, bool]:
    """Order jobs as shortest job first.

    The length of a job is its multiply-accumulates, because its cycles are not known before it runs. This order
    shortens the mean wait, and lets long jobs starve.

    Source: Smith 1956, doi 10.1002/nav.3800030106.
    """
    return job.macs, False


def edf(job: Ranked) -> tuple[int, bool]:
    """Order jobs as earliest deadline first. Jobs without a deadline come last.

    Source: Liu and Layland 1973, doi 10.1145/321738.321743.
    """
    return (_NO_DEADLINE, False) if job.deadline is None else (job.deadline, True)


def priority(job: Ranked) -> tuple[int, bool]:
    """Order jobs by priority, the highest first.

    Source: Cobham 1954, doi 10.1287/opre.2.1.70.
    """
    return -job.priority, False


#: Name -> order.
DISPATCH: Mapping[str, Callable[[Ranked], tuple[int, bool]]] = {
    "fcfs": fcfs,
    "sjf": sjf,
    "edf": edf,
    "priority": priority,
}
