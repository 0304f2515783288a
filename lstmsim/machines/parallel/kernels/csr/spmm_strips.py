"""The strips of SpMM as warps execute them: entries go to shared memory, and then four at a time to multiply-adds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.kernels.csr.segments import at_place, places_before
from lstmsim.machines.parallel.kernels.csr.spmm_plan import SpmmPlan
from lstmsim.machines.parallel.writing.streams import Result, Warps, later

__all__ = ["Strips", "multiplied", "staged"]

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Held = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Strips:
    """Strips of rows that warps write side by side, one segment each.

    plan: of the kernel.
    warps: what writes them.
    stream: shape (n,); the warp of each.
    number: shape (n,); which strip of its rows it is.
    masked: shape (n, subwarps); how many elements before its first entry each row loads.
    start, end: shape (n, subwarps); as in `Stored`; a subwarp without a row has an end of 0.
    length: shape (n, subwarps); entries of each row.
    """

    plan: SpmmPlan
    warps: Warps
    stream: Ints
    number: Ints
    masked: Ints
    start: Ints
    end: Ints
    length: Ints

    def part(self, mask: Mask) -> Strips:
        """The strips of a mask."""
        if mask.all():
            return self
        columns = ("stream", "number", "masked", "start", "end", "length")
        return replace(self, warps=self.warps.part(mask), **{name: getattr(self, name)[mask] for name in columns})

    @property
    def begin(self) -> Ints:
        """The element of a row with which each strip begins, shape (n, 1)."""
        return self.number[:, None] * self.plan.options.k_tile


@dataclass(frozen=True, eq=False)
class _Load:
    """Vectors of `cols` and `values` on their way to shared memory.

    warps: that load them.
    on: shape (n, lanes).
    results: of the two loads.
    address: shape (n, lanes); where the values go.
    """

    warps: Warps
    on: Mask
    results: list[Result]
    address: Ints


def staged(strips: Strips, ready: Ints, shifted: bool) -> tuple[Held, list[Result], int]:
    """Bring the entries of strips to shared memory.

    ready: shape (n,); where in its stream each warp knows where its rows begin.
    shifted: whether these are first strips, which may begin before their rows.

    Gives which stored entry is then at each place of shared memory, shape (n, subwarps, k_tile), -1 for none and for
    what belongs to no row; the stores; and how many elements were read behind the ends of rows.
    """
    plan, kt, va = strips.plan, strips.plan.options.k_tile, strips.plan.stored.vector
    known = at_place(strips.warps, ready)
    held = np.full((len(strips.stream), plan.subwarps * kt), -1, np.int32)
    start, end, base = plan.spread(strips.start), plan.spread(strips.end), plan.base(strips.stream)
    below = np.minimum(strips.begin + kt, end)
    loads, tail = [], 0
    for q in range(-(-kt // (plan.lanes * va))):
        place = (q * plan.lanes + plan.lane) * va
        p = strips.begin + place
        on = p < below
        _hold(held, on, plan.subwarp * kt + place, start + p, va)
        mask = np.logical_or.reduce(on, axis=1)
        if plan.options.share:
            mask &= q % plan.options.warps == plan.warp_of(strips.stream)
        if not mask.any():
            continue
        on, index = on[mask], (start + p)[mask]
        tail += int(np.maximum(p + va - end, 0)[mask][on].sum())
        warps = strips.warps.part(mask)
        results = [warps.ldg(name, index, on, [known], va) for name in ("cols", "values")]
        loads.append(_Load(warps, on, results, base[mask] + 4 * (plan.subwarp * kt + place)))
    stores: list[Result] = []
    for load in loads:
        waits = [load.warps.alu(2, load.results)] if shifted else load.results
        for address in (load.address, load.address + 4 * plan.subwarps * kt):
            stores.append(load.warps.sts(address, load.on, va, waits))
    return _useful(strips, held), stores, tail if plan.options.align == "reverse" else 0


def _hold(held: Held, on: Mask, place: Ints, index: Ints, vector: int) -> None:
    """Note which stored entries the lanes put into shared memory.

    place: shape (lanes,); where the vectors of lanes go.
    index: shape (n, lanes); the first entry of each vector.
    """
    row, lane = np.nonzero(on)
    to, entry = place[lane], index[row, lane]
    for element in range(vector):
        held[row, to + element] = entry + element


def _useful(strips: Strips, held: Held) -> Held:
    """Without what is before the begin of a row, behind its end, or fill."""
    plan, kt = strips.plan, strips.plan.options.k_tile
    table = held.reshape(len(held), plan.subwarps, kt)
    p = strips.begin[:, :, None] + np.arange(kt)
    begin = strips.masked[:, :, None]
    table[(p < begin) | (p >= begin + strips.length[:, :, None])] = -1
    return table


def multiplied(strips: Strips, held: Held, stores: list[Result]) -> list[Result]:
    """The inner loop of strips: four entries of each row at a time.

    held: shape (n, subwarps, k_tile); which stored entry is where in shared memory.
    stores: what brought them there, if the warp did that alone.

    Gives the loads from shared memory.
    """
    plan, kt = strips.plan, strips.plan.options.k_tile
    count = np.minimum(strips.end.max(axis=1) - strips.number * kt, kt)
    last, loads, base = _before(strips), [], plan.base(strips.stream)
    present = plan.spread(plan.which[strips.stream] >= 0)
    for n in range(0, int(count.max()), 4):
        mask = count > n
        some = strips.part(mask)
        at, on = base[mask] + 4 * (plan.subwarp * kt + n), present[mask]
        values = some.warps.lds(at, on, 4, stores)
        cols = some.warps.lds(at + 4 * plan.subwarps * kt, on, 4, stores)
        steps = np.minimum(4, count[mask] - n)
        address = some.warps.alu(steps, [cols])
        last = _steps(some, n, steps, held[mask][:, :, n : n + 4], [address, values], last)
        some.warps.alu(1)
        loads += [values, cols]
    return loads


def _single(plan: SpmmPlan) -> bool:
    """Whether a lane has one sum only, so that each multiply-add waits for the one before."""
    return plan.v * plan.repeats == 1


def _before(strips: Strips) -> Result | None:
    """The last multiply-add of the strip before, if the first one of these strips waits for it."""
    if not _single(strips.plan) or not strips.number.any():
        return None
    # an `alu`, and with shared rows a `bar`, stand behind it
    return places_before(strips.warps.part(strips.number > 0), 3 if strips.plan.options.share else 2)


def _steps(strips: Strips, n: int, steps: Ints, four: Held, known: list[Result], last: Result | None) -> Result | None:
    """Up to four entries of each row: the loads of B, then the multiply-adds.

    n: place of the first entry in its strip.
    steps: shape (n,); how many entries.
    four: shape (n, subwarps, 4); these.
    known: where the addresses of B are known, and the values.
    last: the multiply-add before, if one waits for it.
    """
    plan, (address, values) = strips.plan, known
    brought = []
    for d in range(int(steps.max())):
        mask = steps > d
        part = strips.part(mask)
        inside = part.begin + n + d < part.end
        entry = four[mask][:, :, d]
        # a masked entry is executed with row 0 of B
        row = np.where(entry >= 0, plan.stored.cols[np.maximum(entry, 0)], 0)
        brought.append((part, [_operand(part, row, inside, q, address) for q in range(plan.repeats)]))
    for part, needed in brought:
        done = part.warps.fma(plan.v * plan.repeats, [*needed, values, last])
        last = later(last, done) if _single(plan) else None
    return last


def _operand(strips: Strips, row: Ints, inside: Mask, q: int, address: Result) -> Result | None:
    """Vectors of B for an entry of each row.

    row: shape (n, subwarps); the row of B.
    inside: shape (n, subwarps); whether the row of A goes so far.
    q: which vector of the lanes.
    """
    plan = strips.plan
    across = plan.column[strips.stream][:, None] + (q * plan.lanes + plan.lane) * plan.v
    on = plan.spread(inside) & (across < plan.columns)
    if plan.options.fetch == "needed":
        return strips.warps.ldg_if("B", plan.spread(row * plan.columns) + across, on, [address], plan.v)
    mask = np.logical_or.reduce(on, axis=1)
    if not mask.any():
        return None
    first = plan.first_of_tile(strips.stream)[:, None]
    place = plan.staged + 4 * (plan.spread(row * plan.tile) + across - first)
    return strips.warps.part(mask).lds(place[mask], on[mask], plan.v, [address])
