"""From the instructions of blocks to packed bodies, for all blocks of a piece of a kernel at once.

Body of a block: the dispatcher's operation, then the instructions between two barriers warp after warp. So whatever an
operation waits for stands before it. An instruction is an operation on its scheduler, then, as it needs them, on the
load/store unit, the port and partitions, each of which waits for the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.kernel import Ints
from lstmsim.machines.parallel.lowering.barriers import Meetings, meetings
from lstmsim.machines.parallel.lowering.pick import Picked
from lstmsim.machines.parallel.lowering.prototypes import BARRIER, MEMORY, START, Writing
from lstmsim.machines.parallel.lowering.results import Served, kept, results
from lstmsim.model.sparse.ranges import firsts, spans
from lstmsim.program.packed import MOST_NEEDS, operation_word

__all__ = ["Bodies", "bodies"]

#: From how many needs of an operation on those that others imply are looked for.
_MANY_NEEDS = 96


@dataclass(frozen=True, eq=False)
class Bodies:
    """Packed bodies.

    words: of all bodies, one after the other.
    sizes: shape (bodies, 2); how many operations and how many words each has.
    """

    words: Ints
    sizes: Ints


def bodies(writing: Writing, rows: Picked) -> Bodies:
    """Write the bodies of picked blocks; `InputError` if an instruction waits for too much at once."""
    return _Piece(writing, rows).written()


class _Piece:
    """The instructions of some blocks on their way to words."""

    def __init__(self, writing: Writing, rows: Picked) -> None:
        self.writing, self.rows = writing, rows
        self.lengths = np.diff(rows.first)
        self.stream = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.warp = self.stream % rows.warps
        self.meet: Meetings = meetings(rows, self.stream)
        self.served = Served.of(writing.device, rows)

    @cached_property
    def operations(self) -> Ints:
        """How many operations each instruction is."""
        served = self.served
        return 1 + served.has_lsu + served.has_port + self.rows.misses + self.meet.syncs

    @cached_property
    def place(self) -> Ints:
        """The place of each instruction's first operation in its body."""
        ordered = firsts(self.operations[self.meet.order])
        begin = np.empty(len(self.stream), dtype=np.int64)
        begin[self.meet.order] = ordered[:-1]
        begins = ordered[self.rows.first[:: self.rows.warps]][:-1]
        place: Ints = begin - np.repeat(begins - self.empty, self.per_block) + 1
        return place

    @cached_property
    def empty(self) -> Ints:
        """Empty streams of each block: their warps only wait until they might issue."""
        counts: Ints = np.count_nonzero(self.lengths.reshape(-1, self.rows.warps) == 0, axis=1)
        return counts

    @cached_property
    def per_block(self) -> Ints:
        """Instructions of each block."""
        return np.diff(self.rows.first[:: self.rows.warps])

    def written(self) -> Bodies:
        """The bodies."""
        rows, warps = self.rows, self.rows.warps
        table = results(self.writing, rows, self.served, self.place)
        targets = np.repeat(rows.first[self.stream], rows.waits) + rows.wait
        entries, counts = kept(table, targets, rows.waits, _MANY_NEEDS)
        begin = np.zeros(len(self.stream), dtype=np.int64)
        begin[rows.first[:-1][self.lengths > 0]] = 1
        needs = begin + self.meet.behind * warps + self.meet.behind_grid + counts
        if len(needs) and needs.max() > MOST_NEEDS:
            raise InputError(
                f"an instruction waits for {needs.max()} results at once; at most {MOST_NEEDS} are simulated"
            )
        served = self.served
        behind = 1 + needs + 2 * (served.has_lsu + served.has_port)
        sizes = behind + 2 * rows.misses + self.meet.syncs * (1 + warps)
        ordered = firsts(sizes[self.meet.order])
        begins = 1 + 2 * self.empty
        bounds = ordered[rows.first[::warps]] + firsts(begins)
        at = np.empty(len(self.stream), dtype=np.int64)
        at[self.meet.order] = ordered[:-1]
        at += np.repeat(np.cumsum(begins), self.per_block)
        words = np.empty(int(bounds[-1]), dtype=np.int64)
        self._dispatch(words, bounds[:-1])
        self._issue(words, at, needs)
        self._needs(words, at + 1, begin, table.words[entries], counts)
        self._behind(words, at + 1 + needs)
        self._sync(words, at + behind + 2 * rows.misses)
        operations = np.add.reduceat(np.append(self.operations, 0), rows.first[::warps][:-1]) if rows.blocks else at
        operations = np.where(self.per_block > 0, operations, 0) + 1 + self.empty
        return Bodies(words, np.stack([operations, np.diff(bounds)], axis=1))

    def _dispatch(self, words: Ints, at: Ints) -> None:
        """The dispatcher's operation, then what stands for empty streams."""
        device, roles, warps = self.writing.device, self.writing.roles, self.rows.warps
        one = roles.prototypes(np.array([roles.dispatch]), np.array([device.dispatch]), np.array([2 * warps]))
        words[at] = operation_word(int(one[0]), 0)
        streams = np.flatnonzero(self.lengths == 0)
        if len(streams):
            there = spans(at + 1, 2 * self.empty)[::2]
            zero = np.zeros(1, dtype=np.int64)
            quiet = roles.prototypes(zero + roles.quiet, zero, streams % warps)
            words[there] = operation_word(quiet.astype(np.int64), 1)
            words[there + 1] = self.writing.need(START, device.dispatch + device.start)[0]

    def _issue(self, words: Ints, at: Ints, needs: Ints) -> None:
        roles = self.writing.roles
        rows, work = self.rows, None
        if rows.work.any():
            # the last instruction of a single issue stands for what its stream did
            single = np.where(self.served.count == 1, np.arange(len(self.stream)), -1)
            own = np.flatnonzero(rows.work)
            work = np.zeros(len(self.stream), dtype=np.int64)
            work[np.maximum.accumulate(single)[rows.first[own + 1] - 1]] = rows.work[own]
        prototypes = roles.prototypes(roles.issue[rows.kind], self.served.count, self.warp, work)
        words[at] = operation_word(prototypes.astype(np.int64), needs)

    def _needs(self, words: Ints, at: Ints, begin: Ints, waits: Ints, counts: Ints) -> None:
        """The needs of instructions: of the dispatcher, of barriers, of results."""
        device, warps = self.writing.device, self.rows.warps
        first = at[begin > 0]
        words[first] = self.writing.need(START, device.dispatch + device.start)[0]
        at = at + begin
        met = np.flatnonzero(self.meet.behind)
        if len(met):
            operations = self.place[self.meet.mates(met, grid=False)]
            words[spans(at[met], np.full(len(met), warps))] = (
                self.writing.need(BARRIER, device.latencies.barrier)[0] + operations
            )
        at = at + self.meet.behind * warps
        met = np.flatnonzero(self.meet.behind_grid)
        if len(met):
            words[at[met]] = self.writing.need(BARRIER, device.grid, gate=1)[0] + self.meet.ordinal[met - 1]
        at = at + self.meet.behind_grid
        words[spans(at, counts)] = waits

    def _behind(self, words: Ints, at: Ints) -> None:
        """The load/store unit, the port, the partitions: each waits for the one before."""
        rows, served, writing, roles = self.rows, self.served, self.writing, self.writing.roles
        own = np.flatnonzero(served.has_lsu)
        there = at[own]
        role = roles.lsu[rows.kind[own], served.from_lsu[own].astype(np.int64)]
        words[there] = operation_word(roles.prototypes(role, served.lsu[own], self.warp[own]).astype(np.int64), 1)
        words[there + 1] = writing.need(MEMORY, 1)[0] + self.place[own]
        at = at + 2 * served.has_lsu
        own = np.flatnonzero(served.has_port)
        there = at[own]
        role = roles.port[rows.kind[own], served.from_port[own].astype(np.int64)]
        words[there] = operation_word(roles.prototypes(role, served.port[own], self.warp[own]).astype(np.int64), 1)
        words[there + 1] = writing.need(MEMORY, served.lsu[own]) + self.place[own] + 1
        at = at + 2 * served.has_port
        own = served.missing_row
        there = at[own] + 2 * served.missing_place
        role = roles.partition[rows.kind[own]] + rows.partition
        member = rows.warps + self.warp[own]
        words[there] = operation_word(roles.prototypes(role, served.missing, member).astype(np.int64), 1)
        words[there + 1] = writing.need(MEMORY, served.port[own]) + self.place[own] + 2

    def _sync(self, words: Ints, at: Ints) -> None:
        """The service of a block at the sync unit, behind the last warp's `gridbar`."""
        met = np.flatnonzero(self.meet.syncs)
        if not len(met):
            return
        warps, roles = self.rows.warps, self.writing.roles
        member = np.full(len(met), warps)
        role = np.full(len(met), roles.sync)
        words[at[met]] = operation_word(roles.prototypes(role, self.meet.ordinal[met], member).astype(np.int64), warps)
        operations = self.place[self.meet.mates(met + 1, grid=True)]
        words[spans(at[met] + 1, np.full(len(met), warps))] = self.writing.need(BARRIER, 1)[0] + operations
