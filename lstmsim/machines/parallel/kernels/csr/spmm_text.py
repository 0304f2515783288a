"""SpMM as its warps execute it, instruction by instruction (docs/sparse_kernels.md, section 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernels.csr.segments import Piece, at_place, places_before
from lstmsim.machines.parallel.kernels.csr.spmm_plan import SpmmPlan
from lstmsim.machines.parallel.kernels.csr.spmm_strips import Held, Strips, multiplied, staged
from lstmsim.machines.parallel.writing.streams import Result, Warps, later

__all__ = ["SpmmText"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class SpmmText:
    """Writes the segments of an SpMM, and counts on the way.

    plan: what is written.
    take: gets strips, and which stored entry is at each place of their shared memory, as of `staged`.
    tail, slots, active: counts of section 8.
    """

    def __init__(self, plan: SpmmPlan, take: Callable[[Strips, Held], None]) -> None:
        self.plan = plan
        self.take = take
        self.tail = self.slots = self.active = 0
        rows, self._present = plan.stored, plan.which >= 0
        self._some = np.logical_or.reduce(self._present, axis=1)
        # place -1 finds the row that is none
        self._masked, self._start, self._end, self._length = (
            np.append(column, 0)[plan.which] for column in (rows.masked, rows.start, rows.end, rows.length)
        )
        self._strips = -(-self._end.max(axis=1, initial=0) // plan.options.k_tile)
        #: where in their streams the instructions stand that all strips of a warp need
        self._ready = np.full(len(plan.which), -1, np.int64)
        self._named = np.full(len(plan.which), -1, np.int64)
        #: vectors of columns that a subwarp of each warp has
        self._vectors = np.clip(plan.columns - plan.column, 0, plan.width) // plan.v

    @property
    def counts(self) -> Ints:
        """Segments of each warp: a prologue, its strips, and an epilogue."""
        only = int(self.plan.options.fetch == "all")
        return np.where(self._some, self._strips + 2, only)

    def write(self, piece: Piece) -> None:
        """Write some segments."""
        some, strips = self._some[piece.stream], self._strips[piece.stream]
        first = piece.place == 0
        last = some & (piece.place == strips + 1)
        middle = some & ~first & ~last
        # the first strip of a row has an instruction more if it may begin before the row
        shifted = self.plan.options.align == "reverse" and self.plan.v > 1
        opening = middle & (piece.place == 1) & shifted
        texts: tuple[tuple[Mask, Callable[[Warps, Ints, Ints], None]], ...] = (
            (first, self._prologue),
            (opening, partial(self._strip, shifted=True)),
            (middle & ~opening, partial(self._strip, shifted=False)),
            (last, self._epilogue),
        )
        for mask, write in texts:
            if mask.any():
                chosen, warps = piece.where(mask)
                write(warps, piece.stream[chosen], piece.place[chosen] - 1)

    def _prologue(self, every: Warps, streams: Ints, _: Ints) -> None:
        plan, fetches = self.plan, self.plan.options.fetch == "all"
        stores = self._fetch(every, streams) if fetches else []
        has = self._some[streams]
        warps, idle, stream = every.part(has), every.part(~has), streams[has]
        if fetches and len(idle):
            idle.bar(stores)
        if not len(warps):
            return
        known = warps.alu(4)
        if fetches:
            warps.bar(stores)
        on, which = plan.spread(self._present[stream]), plan.spread(plan.which[stream])
        if plan.options.order == "sorted":
            known = warps.ldg("perm", plan.spread(self._listed(stream)), on, [known])
        begin = warps.ldg("row_ptr", which, on, [known])
        end = warps.ldg("row_ptr", which + 1, on, [known])
        if plan.options.format == "dcsr":
            self._named[stream] = warps.ldg("rows", which, on, [known]).places
        self._ready[stream] = warps.alu(3, [begin, end]).places

    def _listed(self, stream: Ints) -> Ints:
        """The places in the order of rows of the subwarps of warps."""
        plan = self.plan
        first = plan.dealt.bundle[stream // plan.options.warps] * plan.bundle
        if not plan.options.share:
            first = first + plan.warp_of(stream) * plan.subwarps
        return first[:, None] + np.arange(plan.subwarps)

    def _fetch(self, warps: Warps, stream: Ints) -> list[Result]:
        """All of B in the tile goes to shared memory, brought by all warps of the block together."""
        plan, turns, lanes = self.plan, self.plan.options.warps, self.plan.device.warp
        begin, first = warps.alu(4), plan.first_of_tile(stream)
        across = np.minimum(plan.tile, plan.columns - first) // plan.v
        vectors, warp = plan.inner * across, plan.warp_of(stream)
        stores: list[Result] = []
        for group in range(0, int(-(-vectors.max(initial=0) // (lanes * turns))), 4):
            loads = []
            for chunk in (warp + turn * turns for turn in range(group, group + 4)):
                mask = chunk * lanes < vectors
                if mask.any():
                    number = chunk[mask, None] * lanes + np.arange(lanes)
                    on, (k, c) = number < vectors[mask, None], np.divmod(number, across[mask, None])
                    part, index = warps.part(mask), k * plan.columns + first[mask, None] + c * plan.v
                    load = part.ldg("B", index, on, [begin], plan.v)
                    loads.append((part, plan.staged + 4 * (k * plan.tile + c * plan.v), on, load))
            stores += [part.sts(address, on, plan.v, [load]) for part, address, on, load in loads]
        return stores

    def _strip(self, warps: Warps, stream: Ints, number: Ints, *, shifted: bool) -> None:
        plan, share = self.plan, self.plan.options.share
        masked, start, end, length = (column[stream] for column in (self._masked, self._start, self._end, self._length))
        strips = Strips(plan, warps, stream, number, masked, start, end, length)
        held, stores, tail = staged(strips, self._ready[stream], shifted)
        if share:
            warps.bar(stores)
        loads = multiplied(strips, held, [] if share else stores)
        goes_on = number < self._strips[stream] - 1
        if share and goes_on.any():
            warps.part(goes_on).bar(loads)
        self.tail += tail
        steps = np.minimum(strips.end.max(axis=1) - number * plan.options.k_tile, plan.options.k_tile)
        self.slots += int(steps.sum()) * plan.device.warp * plan.repeats
        self.active += int(((held >= 0).sum(axis=(1, 2)) * self._vectors[stream]).sum())
        self.take(strips, held)

    def _epilogue(self, warps: Warps, stream: Ints, _: Ints) -> None:
        """C goes to memory."""
        plan, long = self.plan, self._strips[stream] > 0
        some, none = warps.part(long), warps.part(~long)
        # an `alu` stands behind the last multiply-add
        last = later(places_before(some, 2), at_place(none, self._ready[stream[~long]]))
        named = at_place(warps, self._named[stream]) if plan.options.format == "dcsr" else None
        for q in range(plan.repeats):
            index, on = self.results(stream, q)
            warps.stg_if("C", index, on, [last, named], plan.v)

    def results(self, stream: Ints, q: int) -> tuple[Ints, Mask]:
        """Which vectors of C the lanes of warps store, and which lanes store one, each of shape (n, lanes).

        stream: shape (n,); warps.
        q: which of the lanes' vectors.
        """
        plan = self.plan
        row = np.append(plan.stored.row, 0)[plan.which[stream]]
        across = plan.column[stream][:, None] + (q * plan.lanes + plan.lane) * plan.v
        on = plan.spread(self._present[stream]) & (across < plan.columns)
        return plan.spread(row * plan.columns) + across, on
