"""One step of one pass (a layer in one direction) as operations of the column-wise NPU, on one core or on several.

Tiles are in `lstmsim.targets.column_tiles`, what follows them in `lstmsim.targets.column_turns`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lstmsim.program.program import Operation
from lstmsim.targets.column_npu import ColumnCore, Exchange
from lstmsim.targets.column_shape import StageShape, issue_order, pass_shapes
from lstmsim.targets.column_tiles import ARRAY, Group, Read, Share, Source, Tiles, column_groups
from lstmsim.targets.column_turns import EXCHANGE, TAIL, Turns
from lstmsim.workload.model import Layer
from lstmsim.workload.segments import Segment, segment_of, segments

__all__ = ["ARRAY", "EXCHANGE", "TAIL", "WHOLE", "Source", "Spread", "pass_operations"]

#: Where in the body the operations of a share begin: by share, stage, segment and unit (tail or exchange).
Homes = Mapping[tuple[int, int, int, int], int]


@dataclass(frozen=True)
class Spread:
    """Over which members of a task a pass is spread: share i of its units is on member `members[i]`, which is on core
    `cores[i]` of the task's. `readers`: the cores on which the layer above reads its h.

    >>> Spread((0, 1), (0, 1), readers=()).sends_to(0, ["h"]), Spread().sends_to(0, ["h"])
    (True, False)
    """

    members: tuple[int, ...] = (0,)
    cores: tuple[int, ...] = (0,)
    readers: tuple[int, ...] = ()
    exchange: Exchange = Exchange()

    def sends_to(self, share: int, readers: Sequence[str]) -> bool:
        """Whether anyone on another core reads a share of what is read by these: `h` (the pass itself), `above`."""
        cores = {*(self.cores if "h" in readers else ()), *(self.readers if "above" in readers else ())}
        return bool(cores - {self.cores[share]})


#: A pass on one core.
WHOLE = Spread()
