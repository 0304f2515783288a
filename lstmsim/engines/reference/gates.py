"""Gates in the reference engine: how many have arrived, and when a gate opens."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Gate"]


@dataclass
class Gate:
    """A gate.

    left: how many must still arrive.
    latest: the latest cycle of those that have; it may be to come, where that is the end of an issue.
    """

    left: int
    latest: int = 0

    @property
    def opens(self) -> int | None:
        """The cycle in which it opens; None if that is not known yet."""
        return None if self.left else self.latest

    def arrive(self, cycle: int) -> bool:
        """Count one that arrives at a cycle. Tells whether all have come now.

        >>> gate = Gate(2)
        >>> gate.arrive(7), gate.arrive(3), gate.opens
        (False, True, 7)
        """
        self.left -= 1
        self.latest = max(self.latest, cycle)
        return self.left == 0
