"""How the jobs of a scenario come. This decides which figures of a run say something."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.model.scenario import Job

__all__ = ["ARRIVING", "arriving"]

#: Ways in which jobs come, and what follows for the makespan of a run.
ARRIVING = {
    "at once": "all jobs come in one cycle; the makespan is the time that the chip needs for them",
    "open": "jobs come at times that the chip has no part in; a chip that keeps up ends soon after the last has come",
    "closed": "some jobs come after others have finished; a faster chip is asked sooner",
}


def arriving(jobs: Sequence[Job]) -> str:
    """The way in which the jobs come, a key of `ARRIVING`.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> one, two = (Job("a", Model("m", (Layer(cell("rnn"), 4, 4),)), 3, arrival=each) for each in (5, 9))
    >>> arriving([one, one]), arriving([one, two])
    ('at once', 'open')
    """
    if any(job.after is not None for job in jobs):
        return "closed"
    return "open" if len({job.arrival for job in jobs}) > 1 else "at once"
