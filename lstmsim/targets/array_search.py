"""What a search of the best (EP, VP) asks of a machine that has an array of multipliers with adder trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lstmsim.workload.model import Model

__all__ = ["ArraySearch"]


class ArraySearch(ABC):
    """A core's array of `npe` multipliers is used as `vp` rows of `ep`; everything else about the core stays."""

    @abstractmethod
    def with_array(self, core: Any, npe: int, ep: int, vp: int) -> Any:
        """The core with that array, its adder trees built for just that `ep`."""

    @abstractmethod
    def tail_width(self, core: Any) -> int:
        """Units that its tail takes in a cycle: blocks of whole turns are worth a try."""

    @abstractmethod
    def tiles(self, core: Any, model: Model) -> tuple[int, int]:
        """Tiles of a step, of which the array issues at most one a cycle, and those of the last step that cannot issue
        before its frame is there."""

    @abstractmethod
    def last_cycles(self, core: Any) -> int:
        """Cycles from the issue of the last tile until something of its sums can be visible, at least."""

    @abstractmethod
    def widest_core(self, count: int, npe: int) -> dict[str, int]:
        """The keys of `count` cores with so many multipliers that run whatever any array runs."""
