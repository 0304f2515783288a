"""The part of the contract for a search of the best (EP, VP): an array of multipliers with adder trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lstmsim.model.model import Model

__all__ = ["ArraySearch"]


class ArraySearch(ABC):
    """The answers of a machine whose array of `npe` multipliers is used as `vp` rows of `ep` multipliers."""

    @abstractmethod
    def with_array(self, core: Any, npe: int, ep: int, vp: int) -> Any:
        """The core with this array, and with adder trees for this `ep` only. Nothing else of the core changes."""

    @abstractmethod
    def tail_width(self, core: Any) -> int:
        """Units that the tail of a core takes in a cycle. The search tries row blocks of whole turns."""

    @abstractmethod
    def tiles(self, core: Any, model: Model) -> tuple[int, int]:
        """How many tiles a step has, and how many tiles of the last step cannot issue before its frame is there.

        The array issues at most one tile in a cycle.
        """

    @abstractmethod
    def last_cycles(self, core: Any) -> int:
        """The least number of cycles from the issue of the last tile until a result of its sums can be visible."""

    @abstractmethod
    def widest_core(self, count: int, npe: int) -> dict[str, int]:
        """The keys of `count` cores with `npe` multipliers that can run every model which any array can run."""
