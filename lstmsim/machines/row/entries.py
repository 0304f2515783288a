"""The row-wise NPU in files: numbers by cell, what its jobs may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lstmsim.base.keys import described, keys_of
from lstmsim.machines.entries import Entries, Fault
from lstmsim.machines.row.cells import PROGRAMS
from lstmsim.machines.row.core import RowCore
from lstmsim.machines.row.npu import RowNpu

__all__ = ["RowEntries"]

#: Numbers that layers of a cell have from the core, where `by_cell` leaves them out.
_GENERAL = ("dispatch_cycles", "start_cycles")


class RowEntries(Entries):
    """Entries of row-wise NPUs: what `by_cell` leaves out is as for all cells."""

    kind: ClassVar[str] = "row-npu"
    title: ClassVar[str] = "row-wise NPU"
    batches: ClassVar[bool] = True
    chip: ClassVar[type] = RowNpu
    core: ClassVar[type] = RowCore

    def core_of(self, entry: Mapping[str, Any]) -> RowCore | Fault:
        """The core of an entry, or why it cannot be described."""
        by_cell = entry.get("by_cell") or {}
        for cell in by_cell:
            if cell not in PROGRAMS:
                return Fault((("by_cell", cell),), f"a row-npu has no program for cell {cell!r}", [*PROGRAMS])
        keys = keys_of(RowCore)
        general = {key: entry.get(key, keys[key].default) for key in _GENERAL}
        own = {
            cell: general | {key: value for key, value in each.items() if value is not None}
            for cell, each in by_cell.items()
        }
        return described(RowCore, {**entry, "by_cell": own})
