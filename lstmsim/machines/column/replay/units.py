"""The check that each unit of a core does one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from lstmsim.base.errors import ReplayError
from lstmsim.machines.column.tiles import ARRAY

__all__ = ["Units"]


@dataclass(eq=False)
class Units:
    """The state of the units of all cores.

    until: (core, unit) -> the cycle until which the unit is busy.
    thread: core -> the thread of its array; thread 0 at first.
    """

    until: dict[tuple[int, int], int] = field(default_factory=dict)
    thread: dict[int, int] = field(default_factory=dict)

    def take(self, core: int, unit: int, start: int, cycles: int) -> None:
        """Occupy a unit for some cycles from `start` on; `ReplayError` if the unit is busy."""
        free = self.until.get((core, unit), 0)
        if start < free:
            raise ReplayError(f"unit {unit} of core {core} starts something at cycle {start}, but is busy until {free}")
        self.until[core, unit] = start + cycles

    def turn(self, core: int, context: int, start: int, switch_cycles: int) -> None:
        """Turn the array of a core to a thread; `ReplayError` if `start` comes before the end of the switch."""
        if self.thread.get(core, 0) != context:
            free = self.until.get((core, ARRAY), 0) + switch_cycles
            if start < free:
                text = f"the array of core {core} turns to thread {context} at cycle {start}"
                raise ReplayError(f"{text}, but the switch takes until {free}")
        self.thread[core] = context
