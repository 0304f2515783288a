"""From the instructions of blocks to packed bodies, for all blocks of a piece of a kernel at once; equal blocks.

Body of a block: the dispatcher's operation, then the instructions between two barriers warp after warp. So whatever an
operation waits for stands before it. An instruction is an operation on its scheduler, then, as it needs them, on the
load/store unit, the port and partitions, each of which waits for the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS, Ints, Mask, Narrow, Priced
from lstmsim.machines.parallel.lowering.prototypes import ARITHMETIC, BARRIER, DEPENDENCE, MEMORY, START, Writing
from lstmsim.model.sparse.csr import firsts, spans
from lstmsim.program.operations import MOST_NEEDS, need_word, operation_word


@dataclass(frozen=True, eq=False)
class Picked:
    """The instructions of some blocks, one row for each, as in `Instructions` and `Numbers`."""

    warps: int  # streams of a block
    first: Ints  # shape (streams + 1,); stream s has the rows from `first[s]` to `first[s + 1]`
    kind: NDArray[np.int8]  # kind, count, lsu, sectors, in_l1, in_l2: shape (n,)
    count: Narrow
    lsu: Narrow
    sectors: Narrow
    in_l1: Mask
    in_l2: Mask
    waits: Ints  # waits, misses: shape (n,); how many each row has
    misses: Ints
    wait: Narrow  # wait, partition, missing: of all rows, one after the other
    partition: Narrow
    missing: Narrow
    work: Ints  # shape (streams,); useful multiply-accumulates of each stream

    @property
    def blocks(self) -> int:
        """How many blocks were picked."""
        return (len(self.first) - 1) // self.warps


def picked(kernel: Priced, blocks: Ints, work: Ints | None = None) -> Picked:
    """Take blocks out of a kernel."""
    warps, whole, numbers = kernel.shape.warps, kernel.instructions, kernel.numbers
    streams = spans(blocks * warps, np.full(len(blocks), warps))
    lengths = whole.first[streams + 1] - whole.first[streams]
    rows: slice | Ints
    if len(blocks) and blocks[-1] - blocks[0] == len(blocks) - 1:
        rows = slice(int(whole.first[streams[0]]), int(whole.first[streams[-1] + 1]))
    else:
        rows = spans(whole.first[streams], lengths)
    waits, wait_rows = _listed(whole.first_wait, rows)
    misses, miss_rows = _listed(numbers.first_miss, rows)
    return Picked(
        warps=warps,
        first=firsts(lengths),
        kind=whole.kind[rows],
        count=whole.count[rows],
        lsu=numbers.lsu[rows],
        sectors=numbers.sectors[rows],
        in_l1=numbers.in_l1[rows],
        in_l2=numbers.in_l2[rows],
        waits=waits,
        misses=misses,
        wait=whole.wait[wait_rows],
        partition=numbers.partition[miss_rows],
        missing=numbers.missing[miss_rows],
        work=np.zeros(len(streams), dtype=np.int64) if work is None else work[streams],
    )


def _listed(first: Ints, rows: slice | Ints) -> tuple[Ints, slice | Ints]:
    """How many entries each row has, and which ones."""
    if isinstance(rows, slice):
        own = first[rows.start : rows.stop + 1]
        return np.diff(own), slice(int(own[0]), int(own[-1]))
    counts = first[rows + 1] - first[rows]
    return counts, spans(first[rows], counts)


_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def _mixed(values: NDArray[np.uint64], odd: int) -> NDArray[np.uint64]:
    """Well mixed numbers (as splitmix64 ends), so that sums of them tell lists apart."""
    mixed = values * np.uint64(odd)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_ODD[3])
    mixed ^= mixed >> np.uint64(29)
    return mixed


def block_keys(rows: Picked) -> NDArray[np.uint64]:
    """Two numbers of each block, shape (blocks, 2). Blocks with the same two are equal.

    The numbers are sums of well mixed 64-bit numbers, one for each row, wait and partition at its place in the block: a
    thousand million unequal blocks agree in both with a probability below 10**-19.
    """
    first = rows.first[:: rows.warps]
    streams = _within(np.arange(len(rows.first) - 1), np.arange(rows.blocks + 1) * rows.warps)
    own = (rows.kind.astype(np.uint64) << np.uint64(58)) ^ rows.count.astype(np.uint64) << np.uint64(28)
    own ^= rows.lsu.astype(np.uint64) << np.uint64(14) ^ rows.sectors.astype(np.uint64)
    own = _mixed(own, _ODD[2])
    own ^= (rows.waits.astype(np.uint64) << np.uint64(40)) ^ (rows.misses.astype(np.uint64) << np.uint64(4))
    own ^= rows.in_l1.astype(np.uint64) << np.uint64(1) ^ rows.in_l2.astype(np.uint64)
    waits, misses = firsts(rows.waits), firsts(rows.misses)
    lists = (
        (own, first),
        (rows.wait.astype(np.uint64), waits[first]),
        (rows.partition.astype(np.uint64) << np.uint64(32) ^ rows.missing.astype(np.uint64), misses[first]),
        (np.diff(rows.first).astype(np.uint64), np.arange(rows.blocks + 1) * rows.warps),
        (rows.work.astype(np.uint64), np.arange(rows.blocks + 1) * rows.warps),
    )
    keys = np.zeros((rows.blocks, 2), dtype=np.uint64)
    for number, (values, bounds) in enumerate(lists):
        places = streams if number >= 3 else _within(np.arange(len(values)), bounds)
        spread = values + places * np.uint64(_ODD[1]) + np.uint64(number * _ODD[0] % 2**64)
        for column in (0, 1):
            total = np.zeros(len(values) + 1, dtype=np.uint64)
            np.cumsum(_mixed(spread, _ODD[column]), out=total[1:])
            keys[:, column] += total[bounds[1:]] - total[bounds[:-1]]
    return keys


def _within(numbers: Ints, bounds: Ints) -> NDArray[np.uint64]:
    """The index of each number in its block."""
    return (numbers - np.repeat(bounds[:-1], np.diff(bounds))).astype(np.uint64)


class Meetings:
    """The barriers of some blocks, one row for each instruction.

    order: the instructions in the order of bodies: block, part between two barriers, warp, place.
    ordinal: of a `bar` or a `gridbar` which one of its class it is in its stream.
    behind, behind_grid: 1 for what follows a `bar`, or a `gridbar`, in its stream.
    syncs: 1 for the `gridbar` of a block's last warp.
    """

    def __init__(self, rows: Picked, stream: Ints) -> None:
        bar, grid = rows.kind == CLASS["bar"], rows.kind == CLASS["gridbar"]
        self.warps, self.stream = rows.warps, stream
        self.order = _order(rows, stream, bar | grid)
        self.ordinal, self.behind, self.behind_grid = np.zeros((3, len(stream)), dtype=np.int64)
        self.syncs = (grid & (stream % rows.warps == rows.warps - 1)).astype(np.int64)
        # of each kind the rows of all its barriers, stream after stream, and where those of each stream begin
        self._rows: list[tuple[Ints, Ints]] = []
        for each, marks in ((bar, self.behind), (grid, self.behind_grid)):
            own = np.flatnonzero(each)
            counts = np.bincount(stream[own], minlength=len(rows.first) - 1).astype(np.int64)
            begins = firsts(counts)
            self.ordinal[own] = np.arange(len(own)) - begins[stream[own]]
            by_block = counts.reshape(-1, rows.warps)
            if (by_block != by_block[:, :1]).any():
                raise InputError("the streams of a block must have the same number of barriers of each kind")
            self._rows.append((own, begins))
            marks[1:] = each[:-1] & (stream[1:] == stream[:-1])

    def mates(self, followers: Ints, *, grid: bool) -> Ints:
        """The rows that meet at a barrier, one of each warp."""
        rows, begins = self._rows[grid]
        barrier = followers - 1
        first = self.stream[barrier] // self.warps * self.warps
        streams = spans(first, np.full(len(first), self.warps))
        mates: Ints = rows[begins[streams] + np.repeat(self.ordinal[barrier], self.warps)]
        return mates


def _order(rows: Picked, stream: Ints, barrier: Mask) -> Ints:
    """The rows by block, number of barriers before, warp, index."""
    n = len(stream)
    if rows.warps == 1 or not barrier.any():
        return np.arange(n)
    before = firsts(barrier.astype(np.int64))[:-1]
    part = before - before[np.minimum(rows.first[stream], n - 1)]
    block, warp = stream // rows.warps, stream % rows.warps
    cell = (block * (part.max() + 1) + part) * rows.warps + warp
    # rows of a cell stand one after the other already: cells are counted and laid out anew
    starts = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    lengths = np.diff(np.append(starts, n))
    return spans(*(each[np.argsort(cell[starts], kind="stable")] for each in (starts, lengths)))


_SHFL, _LDS, _STS, _LDG, _STG, _ATOM = (CLASS[name] for name in ("shfl", "lds", "sts", "ldg", "stg", "atom"))


class Served:
    """Where instructions are served on a device, one row for each.

    count: issues in a row of arithmetic; 1 of everything else.
    has_lsu, has_port: 1 where the load/store unit, the port serves it; lsu, port: cycles of these.
    from_lsu, from_port: whether a result comes from there.
    missing_row, missing_place, missing: of each row of partitions the instruction, its place there, cycles.
    """

    def __init__(self, device: ParallelDevice, rows: Picked) -> None:
        kind = rows.kind
        lsu, through, loads = (kind >= _SHFL) & (kind <= _ATOM), (kind >= _LDG) & (kind <= _ATOM), kind == _LDG
        port = through & ((rows.sectors > 0) | (rows.misses > 0) | ~loads)
        found_l2 = loads & rows.in_l2 & port
        nothing = through & (rows.misses == 0) & ~found_l2
        # a load that finds nothing anywhere, or an atomic without lanes, is over when the last unit has served it
        self.from_port = found_l2 | (kind == _STG) | (nothing & (kind == _ATOM))
        self.from_lsu = (lsu & ~through) | (loads & rows.in_l1) | (nothing & loads & ~rows.in_l1)
        self.has_lsu, self.has_port = lsu.astype(np.int64), port.astype(np.int64)
        self.lsu = np.maximum(rows.lsu, 1).astype(np.int64)
        sectors, cycles = device.core.port
        self.port = np.maximum(-(-rows.sectors.astype(np.int64) * cycles // sectors), 1)
        self.missing_row = own = np.repeat(np.arange(len(kind)), rows.misses)
        self.missing_place = np.arange(len(own)) - firsts(rows.misses)[own]
        self.missing = np.where(kind[own] == _ATOM, device.atomic, device.dram) * rows.missing.astype(np.int64)
        arithmetic = np.isin(kind, [CLASS[name] for name in ARITHMETIC])
        self.count = np.where(arithmetic, rows.count, 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Results:
    """The needs of whoever waits for an instruction."""

    first: Ints  # shape (n + 1,); row i is there when everything from `first[i]` to `first[i + 1]` is
    words: Ints  # of each of these the word of a need
    unit: Ints  # which unit of the stream serves it; units are numbered apart, and serve a stream in its order
    served: Ints  # served, delay: cycles of the operation, cycles from its start until the result is there
    delay: Ints


def results(writing: Writing, rows: Picked, served: Served, place: Ints) -> Results:
    """The results of picked instructions."""
    device, core, kind = writing.device, writing.device.core, rows.kind
    latency = core.latency
    arithmetic = kind < _SHFL
    counts = arithmetic + served.from_lsu.astype(np.int64) + served.from_port + rows.misses
    first = firsts(counts)
    total = int(first[-1])
    operation, code, unit, length, delay = (np.empty(total, dtype=np.int64) for _ in range(5))
    later = np.zeros(len(CLASS), dtype=np.int64)
    later[: len(ARITHMETIC)] = [getattr(latency, name) for name in ARITHMETIC]
    later[[_SHFL, _LDS, _STS, _LDG]] = latency.shuffle, latency.shared, latency.shared, latency.l1
    issue = np.zeros(len(CLASS), dtype=np.int64)
    issue[: len(ARITHMETIC)] = core.arithmetic_cycles, core.arithmetic_cycles, core.function_cycles
    own = np.flatnonzero(arithmetic)
    at = first[own]
    operation[at], unit[at], code[at] = place[own], 0, DEPENDENCE
    length[at], delay[at] = issue[kind[own]], later[kind[own]]
    own = np.flatnonzero(served.from_lsu)
    at = first[own]
    lag = np.where((kind[own] == _LDG) & ~rows.in_l1[own], 0, later[kind[own]])
    operation[at], unit[at], length[at], delay[at] = place[own] + 1, 1, served.lsu[own], served.lsu[own] + lag
    own = np.flatnonzero(served.from_port)
    at = first[own] + served.from_lsu[own]
    lag = np.where(kind[own] == _ATOM, 0, latency.l2)
    operation[at], unit[at], length[at], delay[at] = place[own] + 2, 2, served.port[own], served.port[own] + lag
    own = served.missing_row
    at = (first[:-1] + served.from_lsu + served.from_port)[own] + served.missing_place
    behind = np.zeros(len(CLASS), dtype=np.int64)
    behind[[_LDG, _ATOM]] = latency.dram, latency.l2
    operation[at], length[at] = place[own] + 3 + served.missing_place, served.missing
    unit[at] = 3 + rows.partition + np.where(kind[own] == _ATOM, device.partitions, 0)
    delay[at] = served.missing + behind[kind[own]]
    code[unit > 0] = MEMORY
    words = need_word(writing.needs.of(2 * code * writing.delays + delay).astype(np.int64), operation)
    return Results(first, words, unit, length, delay)


def kept(table: Results, targets: Ints, waits: Ints, many: int) -> tuple[Ints, Ints]:
    """Which entries of a table instructions need.

    Gives the entries of all instructions, one after the other, and how many each has.
    """
    each = table.first[targets + 1] - table.first[targets]
    entries = spans(table.first[targets], each)
    bounds = firsts(each)[firsts(waits)]
    counts = np.diff(bounds)
    rows = np.flatnonzero(counts > many)
    if not len(rows):
        return entries, counts
    keep = np.ones(len(entries), dtype=bool)
    for row in rows.tolist():
        own = slice(int(bounds[row]), int(bounds[row + 1]))
        keep[own] = _telling(table, entries[own])
        counts[row] = np.count_nonzero(keep[own])
    return entries[keep], counts


def _telling(table: Results, entries: Ints) -> Mask:
    """Which of the entries of one instruction no later entry implies.

    A unit serves the requests of a stream one after the other. So a request starts no sooner than the one before is
    served, and if its delay is no shorter than what the one before has left then, its result is there no sooner.
    """
    order = np.lexsort((table.words[entries] & 0xFFFFFFFF, table.unit[entries]))
    sorted_ = entries[order]
    unit, delay, served = table.unit[sorted_], table.delay[sorted_], table.served[sorted_]
    last = np.append(unit[1:] != unit[:-1], True)
    final = np.repeat(delay[last], np.diff(np.append(-1, np.flatnonzero(last))))
    telling = np.zeros(len(entries), dtype=bool)
    telling[order] = last | (served + final < delay)
    return telling


#: From how many needs of an operation on those that others imply are looked for.
_MANY_NEEDS = 96


def bodies(writing: Writing, rows: Picked) -> tuple[Ints, tuple[Ints, Ints]]:
    """The packed bodies of picked blocks: words, and how many operations and words each body has.

    `InputError` if an instruction waits for too much at once.
    """
    return _Piece(writing, rows).written()


class _Piece:
    """The instructions of some blocks on their way to words."""

    def __init__(self, writing: Writing, rows: Picked) -> None:
        self.writing, self.rows = writing, rows
        self.lengths = np.diff(rows.first)
        self.stream = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.warp = self.stream % rows.warps
        self.meet = Meetings(rows, self.stream)
        self.served = Served(writing.device, rows)

    @cached_property
    def operations(self) -> Ints:
        """How many operations each instruction is."""
        served = self.served
        counts: Ints = 1 + served.has_lsu + served.has_port + self.rows.misses + self.meet.syncs
        return counts

    @cached_property
    def place(self) -> Ints:
        """The index of each instruction's first operation in its body."""
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

    def written(self) -> tuple[Ints, tuple[Ints, Ints]]:
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
        return words, (operations, np.diff(bounds))

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
            words[there] = operation_word(quiet, 1)
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
        words[at] = operation_word(prototypes, needs)

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
                self.writing.need(BARRIER, device.core.latency.barrier)[0] + operations
            )
        at = at + self.meet.behind * warps
        met = np.flatnonzero(self.meet.behind_grid)
        if len(met):
            words[at[met]] = self.writing.need(BARRIER, device.grid, barrier=1)[0] + self.meet.ordinal[met - 1]
        at = at + self.meet.behind_grid
        words[spans(at, counts)] = waits

    def _behind(self, words: Ints, at: Ints) -> None:
        """The load/store unit, the port, the partitions: each waits for the one before."""
        rows, served, writing, roles = self.rows, self.served, self.writing, self.writing.roles
        own = np.flatnonzero(served.has_lsu)
        there = at[own]
        role = roles.lsu[rows.kind[own], served.from_lsu[own].astype(np.int64)]
        words[there] = operation_word(roles.prototypes(role, served.lsu[own], self.warp[own]), 1)
        words[there + 1] = writing.need(MEMORY, 1)[0] + self.place[own]
        at = at + 2 * served.has_lsu
        own = np.flatnonzero(served.has_port)
        there = at[own]
        role = roles.port[rows.kind[own], served.from_port[own].astype(np.int64)]
        words[there] = operation_word(roles.prototypes(role, served.port[own], self.warp[own]), 1)
        words[there + 1] = writing.need(MEMORY, served.lsu[own]) + self.place[own] + 1
        at = at + 2 * served.has_port
        own = served.missing_row
        there = at[own] + 2 * served.missing_place
        role = roles.partition[rows.kind[own]] + rows.partition
        member = rows.warps + self.warp[own]
        words[there] = operation_word(roles.prototypes(role, served.missing, member), 1)
        words[there + 1] = writing.need(MEMORY, served.port[own]) + self.place[own] + 2

    def _sync(self, words: Ints, at: Ints) -> None:
        """The service of a block at the sync unit, after the last warp's `gridbar`."""
        met = np.flatnonzero(self.meet.syncs)
        if not len(met):
            return
        warps, roles = self.rows.warps, self.writing.roles
        member = np.full(len(met), warps)
        role = np.full(len(met), roles.sync)
        words[at[met]] = operation_word(roles.prototypes(role, self.meet.ordinal[met], member), warps)
        operations = self.place[self.meet.mates(met + 1, grid=True)]
        words[spans(at[met] + 1, np.full(len(met), warps))] = self.writing.need(BARRIER, 1)[0] + operations
