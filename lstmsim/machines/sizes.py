"""The limits on the size of a scenario: for a step, for a job and for all jobs. Each limit has one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lstmsim.program.program import Phase

__all__ = [
    "MAX_OPERATIONS",
    "MAX_REMEMBERED",
    "MAX_STEP_OPERATIONS",
    "PerStep",
    "Tally",
    "TooLarge",
    "remembered_fault",
    "way_out",
]

#: Most operations of one step: a program holds them one by one.
MAX_STEP_OPERATIONS = 500_000
#: Most operations of a scenario, and so of one job: ten seconds to some minutes for the fast engine.
MAX_OPERATIONS = 2_000_000_000
#: Most operations of a job whose starts a thread remembers, 8 bytes each, because later phases look back at them.
MAX_REMEMBERED = 2**27

_RHYTHM = "fewer steps show the same rhythm"


@dataclass(frozen=True, slots=True)
class PerStep:
    """Bounds on the operations of one step of a job.

    most: operations of one step, on any core that may run the job.
    held: operations of one step in a program, which holds all ways in which the job can run.
    packed: how many of its operations take the room of one that is held as an object.

    >>> PerStep(37, 37).held
    37
    """

    most: int
    held: int
    packed: int = 1


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Why jobs are too many operations to simulate.

    what: what is too large: `step`, `job` or `all`.
    sentence: how large it is, and how large it may be.

    >>> TooLarge("step", "one step of 'm' takes ...").what
    'step'
    """

    what: str
    sentence: str


def way_out(wrong: TooLarge | None, batch: int, bound: Callable[[int], PerStep]) -> TooLarge | None:
    """Add to what is too large a smaller batch with which a step is not: a half, a quarter and so on, the largest.

    wrong: what is too large; None if nothing is.
    batch: of the job.
    bound: from a batch to bounds on the operations of one step.

    >>> way_out(TooLarge("step", "one step takes ..."), 40, lambda batch: PerStep(1, 40_000 * batch)).sentence
    'one step takes ...; with batch 10 it takes up to 400,000'
    """
    if wrong is None or wrong.what != "step":
        return wrong
    for shift in range(1, batch.bit_length()):
        each = bound(batch >> shift)
        if each.held <= MAX_STEP_OPERATIONS * each.packed:
            return TooLarge("step", f"{wrong.sentence}; with batch {batch >> shift} it takes up to {each.held:,}")
    return wrong


class Tally:
    """A sum of the operations of a scenario's jobs. It takes the jobs in order and says what is too large.

    >>> tally = Tally()
    >>> tally.add("'m'", PerStep(100, 100), steps=50)
    >>> tally.add("'m'", PerStep(600_000, 600_000), steps=1).sentence
    "one step of 'm' takes up to 600,000 operations on this chip, more than 500,000: too many to simulate"
    """

    def __init__(self) -> None:
        self.total = 0

    def add(
        self, model: str, each: PerStep, steps: int, count: int = 1, exact: Callable[[], int] | None = None
    ) -> TooLarge | None:
        """Add jobs. Returns what is too large; None if nothing is.

        model: the name of the model in a sentence.
        each: bounds on the operations of one step.
        steps: the most steps that one of the jobs has.
        count: how many jobs there are.
        exact: gives the steps of all jobs together, if not all jobs have the most; called only if it matters.
        """
        most = each.most * steps
        if most > MAX_OPERATIONS:
            text = f"takes up to {most:,} operations on this chip, a job may have {MAX_OPERATIONS:,}"
            return TooLarge("job", f"{text}; {_RHYTHM}")
        before, self.total = self.total, self.total + most * count
        if self.total > MAX_OPERATIONS >= before and exact is not None:
            self.total = before + each.most * exact()
        if each.held > MAX_STEP_OPERATIONS * each.packed:
            text = f"one step of {model} takes up to {each.held:,} operations on this chip"
            bound = MAX_STEP_OPERATIONS * each.packed
            return TooLarge("step", f"{text}, more than {bound:,}: too many to simulate")
        if before <= MAX_OPERATIONS < self.total:
            text = f"this job and those before it take up to {self.total:,} operations on this chip"
            return TooLarge("all", f"{text}, more than {MAX_OPERATIONS:,}: too many to simulate; {_RHYTHM}")
        return None


def remembered_fault(phases: Sequence[Phase]) -> str:
    """Say that the later phases of a job look back at more operations than a thread remembers; empty if they do not.

    phases: of the job on one kind of core.

    >>> from lstmsim.program.program import Body, Dependence, Operation
    >>> body = Body((Operation(0),))
    >>> later = Body((Operation(0, needs=(Dependence(0, 1, phase=0),)),))
    >>> remembered_fault([Phase(body, 2**28), Phase(later, 1)])[:59]
    'its later phases look back at 268,435,456 operations, and a'
    """
    looked_at = {need.phase for each in phases for one in each.body.operations for need in one.needs} - {None}
    sizes = [phases[number].repeat * len(phases[number].body.operations) for number in looked_at if number is not None]
    if sum(sizes) <= MAX_REMEMBERED:
        return ""
    text = f"its later phases look back at {sum(sizes):,} operations, and a thread remembers {MAX_REMEMBERED:,}"
    return f"{text}; {_RHYTHM}"
