"""Units of cores do one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from lstmsim.errors import ReplayError
from lstmsim.targets.column.tiles import ARRAY

__all__ = ["Units"]


@dataclass(eq=False)
class Units:
    """Until when each unit of each core is busy, and with which thread; two things at once are an error, and so is a
    change of the array's thread without the cycles that it takes."""

    until: dict[tuple[int, int], int] = field(default_factory=dict)
    thread: dict[int, int] = field(default_factory=dict)

    def take(self, core: int, unit: int, start: int, cycles: int) -> None:
        """A unit is busy from `start` on."""
        free = self.until.get((core, unit), 0)
        if start < free:
            raise ReplayError(f"unit {unit} of core {core} starts something at cycle {start}, but is busy until {free}")
        self.until[core, unit] = start + cycles

    def turn(self, core: int, context: int, start: int, switch_cycles: int) -> None:
        """The array of a core goes on with a thread; the active one at cycle 0 is thread 0."""
        if self.thread.get(core, 0) != context:
            free = self.until.get((core, ARRAY), 0) + switch_cycles
            if start < free:
                text = f"the array of core {core} turns to thread {context} at cycle {start}"
                raise ReplayError(f"{text}, but the switch takes until {free}")
        self.thread[core] = context
