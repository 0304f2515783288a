"""Values, keys and near misses in sentences about files: as `lstmsim.wording` spells them."""

from __future__ import annotations

from lstmsim.wording import dotted, listed, nearest, show

__all__ = ["dotted", "listed", "nearest", "show"]
