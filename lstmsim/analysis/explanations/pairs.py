"""Which pairs of changes are worth a try: two changes may help where neither does alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from lstmsim.machines.change import Change
from lstmsim.model.scenario import Chip, Job

__all__ = ["Single", "pairs"]


@dataclass(frozen=True)
class Single:
    """A change that was simulated alone.

    change: the change. saved_cycles: how many cycles it saves, negative if it did harm.
    gained: how much more utilization it gives, negative if less.
    """

    change: Change
    saved_cycles: int
    gained: float

    @property
    def helps(self) -> bool:
        """Whether it shortens the run, or uses the multipliers better."""
        return self.saved_cycles > 0 or self.gained > 0


def pairs(
    singles: Sequence[Single],
    base: tuple[Chip, tuple[Job, ...]],
    proposed: Callable[[Chip, Sequence[Job]], Sequence[Change]],
) -> list[tuple[tuple[str, str], Change]]:
    """The names and the change of each pair of which at least one change helps alone, the most promising first.

    The second change of a pair is one that is proposed for the chip with the first, so it may be one that the chip
    alone has no use for. A pair that makes the chip of another pair, or of one change, is left out. Promising is what
    saves most together, or gains most, if effects were added; the two orders take turns.

    singles: the changes that were simulated alone.
    base: the chip and the jobs without a change.
    proposed: the changes that are worth a try on a chip with its jobs.
    """
    known = {each.change.name: each for each in singles}
    seen = [base, *((each.change.chip, each.change.jobs) for each in singles)]
    found = []
    for first in singles:
        if first.change.chip is None:
            continue
        for change in proposed(first.change.chip, first.change.jobs):
            made = (change.chip, change.jobs)
            second = known.get(change.name, Single(change, 0, 0.0))
            same = change.name == first.change.name
            if same or change.chip is None or not (first.helps or second.helps) or made in seen:
                continue
            seen.append(made)
            detail = ", ".join(each for each in (first.change.detail, change.detail) if each)
            names = first.change.name, change.name
            pair = names, Change(" + ".join(names), detail, change.chip, change.jobs)
            found.append((first.saved_cycles + second.saved_cycles, first.gained + second.gained, pair))
    saving = sorted(found, key=lambda each: -each[0])
    gaining = sorted(found, key=lambda each: -each[1])
    turns = chain.from_iterable(zip_longest(saving, gaining))
    return list({each[2][0]: each[2] for each in turns if each is not None}.values())
