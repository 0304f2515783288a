"""SpMV as its warps execute it, instruction by instruction (docs/sparse_kernels.md, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernels.csr.rows import Dealt, Stored
from lstmsim.machines.parallel.kernels.csr.segments import Piece, at_place, places_before
from lstmsim.machines.parallel.writing.streams import Result, Warps, later

__all__ = ["SpmvPlan", "SpmvText"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SpmvPlan:
    """Everything about an SpMV that its text asks.

    warp: lanes of a warp.
    warps: of a block.
    lanes: of a row.
    v: consecutive elements of a lane.
    perm: whether rows are sorted.
    shifted: whether a row may begin before its first entry.
    stored: the rows in memory.
    dealt: the grid.
    which: shape (streams, rows of a warp); the stored row of each subwarp, -1 for none.
    """

    warp: int
    warps: int
    lanes: int
    v: int
    perm: bool
    shifted: bool
    stored: Stored
    dealt: Dealt
    which: Ints

    def spread(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """A column for each lane, of a table with a column for each row of a warp."""
        return np.repeat(table, self.lanes, axis=1)


class SpmvText:
    """Writes the segments of an SpMV, and counts on the way.

    plan: what is written.
    take: gets warps, shape (n,), and the stored entries of their lanes in a strip, shape (n, lanes of a warp, v), -1
        for a masked one or none.
    steps: multiply-adds of the inner loop, by all warps.
    """

    def __init__(self, plan: SpmvPlan, take: Callable[[Ints, Ints], None]) -> None:
        self.plan = plan
        self.take = take
        self.steps = 0
        rows = plan.stored
        # place -1 finds the row that is none
        self._masked, self._start, self._end = (
            np.append(column, 0)[plan.which] for column in (rows.masked, rows.start, rows.end)
        )
        self._some = np.logical_or.reduce(plan.which >= 0, axis=1)
        self._strips = -(-self._end.max(axis=1, initial=0) // (plan.lanes * plan.v))
        #: where in its stream each warp knows where its rows begin
        self._ready = np.full(len(plan.which), -1, np.int64)

    @property
    def counts(self) -> Ints:
        """Segments of each warp: a prologue, its strips, and an epilogue."""
        return np.where(self._some, self._strips + 2, 0)

    def write(self, piece: Piece) -> None:
        """Write some segments."""
        first, last = piece.place == 0, piece.place == self._strips[piece.stream] + 1
        opening = (piece.place == 1) & ~last & self.plan.shifted
        texts: tuple[tuple[Mask, Callable[[Warps, Ints, Ints], None]], ...] = (
            (first, self._prologue),
            (opening, self._strip),
            (~first & ~last & ~opening, self._strip),
            (last, self._epilogue),
        )
        for mask, write in texts:
            if mask.any():
                chosen, warps = piece.where(mask)
                write(warps, piece.stream[chosen], piece.place[chosen] - 1)

    def _prologue(self, warps: Warps, stream: Ints, _: Ints) -> None:
        plan, known = self.plan, warps.alu(4)
        which = plan.spread(plan.which[stream])
        on = which >= 0
        if plan.perm:
            rows = plan.which.shape[1]
            place = plan.dealt.bundle[stream // plan.warps] * plan.warps * rows + stream % plan.warps * rows
            known = warps.ldg("perm", plan.spread(place[:, None] + np.arange(rows)), on, [known])
        begin = warps.ldg("row_ptr", which, on, [known])
        end = warps.ldg("row_ptr", which + 1, on, [known])
        self._ready[stream] = warps.alu(3, [begin, end]).places

    def _strip(self, warps: Warps, stream: Ints, number: Ints) -> None:
        plan, v = self.plan, self.plan.v
        lane = np.arange(plan.warp) % plan.lanes
        p = (number[:, None] * plan.lanes + lane) * v
        start, end, masked = (plan.spread(column[stream]) for column in (self._start, self._end, self._masked))
        ready = at_place(warps, self._ready[stream])
        need: list[Result | None] = []
        for q in range(0, v, plan.stored.vector):
            for name in ("cols", "values"):
                need.append(warps.ldg_if(name, start + p + q, p + q < end, [ready], plan.stored.vector))
        if plan.shifted and not number.any():
            need = [warps.alu(2, need)]
        address = warps.alu(v, need)
        entry = np.empty((*p.shape, v), np.int64)
        brought = []
        for d in range(v):
            useful = (p + d >= masked) & (p + d < end)
            entry[:, :, d] = np.where(useful, start + p + d, -1)
            column = np.append(plan.stored.cols, 0)[entry[:, :, d]]
            brought.append(warps.ldg_if("x", column, p + d < end, [address]))
        behind = warps.part(number > 0)
        last = places_before(behind, 1) if len(behind) else None
        for x in brought:
            if x is not None:
                part = warps if x.numbers is warps.numbers else warps.part(np.isin(warps.numbers, x.numbers))
                last = later(last, part.fma(1, [x, *need, last]))
                self.steps += len(part)
        self.take(stream, entry)

    def _epilogue(self, warps: Warps, stream: Ints, _: Ints) -> None:
        """The lanes of a row add up what they have, and one stores it."""
        plan, long = self.plan, self._strips[stream] > 0
        some, none = warps.part(long), warps.part(~long)
        last = later(places_before(some, 1), at_place(none, self._ready[stream[~long]]))
        for _step in range(plan.lanes.bit_length() - 1):
            last = warps.fma(1, [warps.shfl([last])])
        index, on = self.results(stream)
        warps.stg("y", index, on, [last])

    def results(self, stream: Ints) -> tuple[Ints, Mask]:
        """Which elements of y the lanes of warps store, and which lanes store one, each of shape (n, lanes).

        stream: shape (n,); warps.
        """
        plan, which = self.plan, self.plan.which[stream]
        row = np.append(plan.stored.row, 0)[which]
        return plan.spread(row), (plan.spread(which) >= 0) & (np.arange(plan.warp) % plan.lanes == 0)
