"""What jobs have their colours from: each has its own, or requests of an entry, or of a model, have one together."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lstmsim.model.scenario import Job
from lstmsim.report.looks import JOB_STYLES

__all__ = ["job_groups", "named_groups"]


def job_groups(jobs: Sequence[Job]) -> tuple[str, ...]:
    """Name for each job what it has its colour from; empty: each job has its own.

    As soon as there are more jobs than colours, that is their tenant, then their entry, then their model: the first of
    which there are no more than colours, else that of which there are fewest.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> model = Model("m", (Layer(cell("gru"), 8, 4),))
    >>> job_groups([Job("a", model, 1), Job("b", model, 1)])
    ()
    >>> job_groups([Job(f"{name} #{number}", model, 1, tenant=name) for name in "ab" for number in range(9)])[8:10]
    ('a', 'b')
    """
    if len(jobs) <= len(JOB_STYLES):
        return ()
    tenants = [job.tenant or job.name for job in jobs]
    ways = (tenants, [name.partition("/")[0] for name in tenants], [job.model.name for job in jobs])
    counts = [len(set(names)) for names in ways]
    chosen = next((at for at, count in enumerate(counts) if count <= len(JOB_STYLES)), counts.index(min(counts)))
    return () if counts[chosen] == len(jobs) else tuple(ways[chosen])


def named_groups(names: Sequence[str]) -> tuple[str, ...]:
    """`job_groups` where only names are known, as of kept programs: requests of an entry have its name and a number.

    >>> named_groups([f"{name} #{number}" for name in "ab" for number in range(9)])[8:10]
    ('a', 'b')
    >>> named_groups(["a #1", "a #2"])
    ()
    """
    if len(names) <= len(JOB_STYLES):
        return ()
    entries = tuple(re.sub(r" #\d+$", "", name) for name in names)
    return () if len(set(entries)) == len(names) else entries
