"""Which lane evaluates which element of a stage in which turn, and who shares a result; docs/fusion.md, section 10.

From planned kernels to kernels of the device, stage by stage; docs/fusion.md, section 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.fused.values import Homes, Table, Values, arrays_of
from lstmsim.machines.parallel.kernel import Ints, Kernel, KernelShape, Mask, Run
from lstmsim.machines.parallel.kernels.rows import addressable, grids, numbered
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined, later
from lstmsim.model.fusion.graph import REDUCE, Graph
from lstmsim.model.fusion.plan import SHARED, VALUE_BYTES, Owners, PlannedKernel, Stage, up
from lstmsim.model.fusion.schemes import positions


@dataclass(frozen=True, eq=False)
class Turn:
    """What lanes evaluate at once."""

    number: tuple[int, int]  # of the pass (each thread's results, one after the other), and of the turn in it
    streams: Ints  # shape (n,); ascending numbers of the warps that take part
    on: Mask  # shape (n, lanes); which lanes do
    elements: Ints  # shape (n, lanes); their elements; 0 where a lane does not


@dataclass(frozen=True, eq=False)
class Turns:
    """The elements of a stage in the order of their threads, the elements of a thread in the order of their turns."""

    lanes: int  # lanes, row: lanes of a warp, and lanes of all warps of a block
    row: int
    elements: Ints  # shape (n,); the elements
    lane: Ints  # shape (n,); block * row + thread of each
    step: Ints  # step, turn: shape (n,); its pass, and its turn in that
    turn: Ints
    most: int  # the most elements that a thread has

    def of_blocks(self, begin: int, end: int) -> Iterator[Turn]:
        """The turns of the blocks from `begin` to before `end`, in order; their streams are counted from `begin` on."""
        first, last = np.searchsorted(self.lane, (begin * self.row, end * self.row)).tolist()
        if first == last:
            return
        part = slice(first, last)
        each = int(self.turn[part].max()) + 1
        code = self.step[part] * each + self.turn[part]
        order = np.argsort(code, kind="stable")
        bounds = np.flatnonzero(np.diff(code[order], prepend=-1, append=-1))
        lane, elements = self.lane[part][order] - begin * self.row, self.elements[part][order]
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            number = divmod(int(code[order[start]]), each)
            yield self._turn(number, lane[start:stop], elements[start:stop])

    def _turn(self, number: tuple[int, int], lane: Ints, elements: Ints) -> Turn:
        stream = lane // self.lanes
        new = np.diff(stream, prepend=-1) > 0
        place = (np.cumsum(new) - 1) * self.lanes + lane % self.lanes
        streams = stream[new]
        on = np.zeros((len(streams), self.lanes), bool)
        table = np.zeros((len(streams), self.lanes), np.int64)
        on.reshape(-1)[place] = True
        table.reshape(-1)[place] = elements
        return Turn(number, streams, on, table)


def turns_of(owners: Owners, lanes: int, warps: int, results: Ints | None = None) -> Turns:
    """The turns of a stage."""
    row = lanes * warps
    lane = owners.block.astype(np.int64) * row + owners.thread
    # without results each thread has one pass
    order = np.argsort(lane, kind="stable") if results is None else np.lexsort((results, lane))
    lane = lane[order]
    thread_new = np.diff(lane, prepend=-1) > 0
    result_new = thread_new
    if results is not None:
        result_new = thread_new | (np.diff(results[order], prepend=-1) != 0)
    rank, starts = _ranks(thread_new)
    turn, _ = _ranks(result_new)
    numbers = np.cumsum(result_new) - 1
    step = numbers - np.repeat(numbers[starts], np.diff(np.append(starts, len(lane))))
    return Turns(lanes, row, order, lane, step, turn, int(rank.max(initial=-1)) + 1)


def _ranks(new: Mask) -> tuple[Ints, Ints]:
    """The rank of each row in its run of rows, and where the runs begin."""
    starts = np.flatnonzero(new)
    return np.arange(len(new)) - np.repeat(starts, np.diff(np.append(starts, len(new)))), starts


@dataclass(frozen=True, eq=False)
class Spans:
    """The results of the warps of a turn."""

    results: Ints  # shape (n, lanes); the result of each lane, 0 where a lane is off
    alike: Mask  # shape (n,); whether two lanes of a warp have the same result
    spanning: Mask  # shape (n, lanes); the first lane of each result that other warps of the block have as well
    lowest: Mask  # shape (n, lanes); the first lane of each result that no lower warp of the block has


def spans_of(turn: Turn, results: Ints, warps: int) -> Spans:
    """The spans of the first turn of a pass."""
    row, lane = np.nonzero(turn.on)
    result = results[row, lane]
    block = turn.streams[row] // warps
    order = np.lexsort((result, block))
    heads, spanning, lowest = (np.zeros(turn.on.shape, bool) for _ in range(3))
    row, lane, result, block = row[order], lane[order], result[order], block[order]
    first = _new(result, block)
    head = first | _new(row)
    number = np.cumsum(first) - 1
    heads[row[head], lane[head]] = True
    lowest[row[first], lane[first]] = True
    several = np.bincount(number[head]) > 1
    mask = head & several[number]
    spanning[row[mask], lane[mask]] = True
    alike = np.count_nonzero(heads, axis=1) < np.count_nonzero(turn.on, axis=1)
    return Spans(results, alike, spanning, lowest)


def spanning_passes(turns: Turns, results: Ints) -> dict[int, int]:
    """The passes of a reduce in which, in some block, several warps have the same result, and at most how many have."""
    begin = np.flatnonzero(turns.turn == 0)
    step = turns.step[begin]
    # small numbers are sorted fast
    begin = begin[np.argsort(step.astype(np.uint16) if step.max(initial=0) < 1 << 16 else step, kind="stable")]
    keys = [turns.step[begin], turns.lane[begin] // turns.lanes, results[begin]]
    # neighbours in a warp have the same result as a rule: there are fewer rows to sort
    keys = [each[_new(*keys)] for each in keys]
    step, stream, result = keys
    block = stream // (turns.row // turns.lanes)
    order = np.lexsort((stream, result, block, step))
    step, block, result, stream = (each[order] for each in (step, block, result, stream))
    new = _new(step, block, result)
    other = new | _new(stream)
    starts = np.flatnonzero(new)
    most = np.zeros(int(step.max(initial=-1)) + 1, np.int64)
    if len(starts):
        np.maximum.at(most, step[starts], np.add.reduceat(other.astype(np.int64), starts))
    return {number: warps for number, warps in enumerate(most.tolist()) if warps > 1}


def _new(*columns: Ints) -> Mask:
    """Which rows differ from the one before in some column; the first one does."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


@dataclass(frozen=True, eq=False)
class StageTurns:
    """In which turns the threads of a kernel do a stage."""

    stage: Stage  # the stage
    turns: Turns  # of its elements, those of the operand of a reduce
    # the passes of a reduce in which warps of a block share a result, and at most how many do
    crossing: Mapping[int, int] = field(default_factory=dict)
    ends: Turns | None = None  # at the end of the kernel, of those who combine the partials of an output; else None


def stage_turns(homes: Homes, stage: Stage, lanes: int, warps: int) -> StageTurns:
    """The turns of a stage."""
    graph = homes.graph
    if graph.nodes[stage.node].kind != REDUCE:
        return StageTurns(stage, turns_of(stage.work, lanes, warps))
    results = positions(graph, stage.node, np.arange(len(stage.work.block)))[0]
    turns = turns_of(stage.work, lanes, warps, results)
    combines = stage.partials and stage.node in homes.outputs
    ends = turns_of(stage.owners, lanes, warps) if combines else None
    return StageTurns(stage, turns, spanning_passes(turns, results[turns.elements]), ends)


class Text:
    """The streams of some consecutive blocks of a kernel while they are written.

    homes: the kernel.
    grid: what they are written into.
    begin, end: the blocks from `begin` to before `end`.
    warps: of a block.
    """

    def __init__(self, homes: Homes, grid: Grid, begin: int, end: int, warps: int) -> None:
        self.homes, self.grid, self.begin, self.end, self.warps = homes, grid, begin, end, warps
        self.values = Values(homes)
        self.everyone = grid.warps(np.arange((end - begin) * warps))
        self._some: dict[bytes, Warps] = {}
        self._sts: list[Result] = []
        self._stg: list[Result] = []

    def write(self, stages: list[StageTurns]) -> None:
        """Write all stages, then the end of the kernel."""
        for each in stages:
            stage = each.stage
            if stage.grid_barrier:
                self._gridbar()
            self.values.begin(stage.node, each.turns.most <= self.homes.kernel.register_elements)
            if self.homes.graph.nodes[stage.node].kind == REDUCE:
                self._reduce(each)
            else:
                self._elements(each)
            if stage.scheme == SHARED:
                self._bar()
        if self.homes.kernel.end_barrier:
            self._gridbar()
        for each in stages:
            if each.ends is not None:
                self._combine(each.stage, each.ends)

    def _gridbar(self) -> None:
        self.everyone.gridbar(self._stg)
        self._stg = []

    def _bar(self) -> None:
        self.everyone.bar(self._sts)
        self._sts = []

    def _table(self, turn: Turn) -> Table:
        key = turn.streams.tobytes()
        warps = self._some.get(key)
        if warps is None:
            warps = self._some[key] = self.everyone.part(np.isin(self.everyone.numbers, turn.streams))
        return Table(warps, turn.elements, turn.on)

    def _elements(self, each: StageTurns) -> None:
        for turn in each.turns.of_blocks(self.begin, self.end):
            table = self._table(turn)
            self._store(each.stage, table, self.values.of(each.stage.node, table))
            self.values.end_turn()

    def _store(self, stage: Stage, table: Table, value: Result) -> None:
        """Store elements of a stage's result where its scheme says."""
        warps, on, elements = table.warps, table.on, table.elements
        if stage.scheme == SHARED:
            self._sts.append(warps.sts(self.homes.shared[stage.node][elements], on, waits=[value]))
        if stage.written:
            self._stg.append(warps.stg(self.homes.arrays[stage.node], elements, on, [value]))

    def _reduce(self, each: StageTurns) -> None:
        operand = self.homes.graph.operands[each.stage.node][0]
        done = -1
        for step, turns in groupby(each.turns.of_blocks(self.begin, self.end), lambda turn: turn.number[0]):
            self._idle(each, done + 1, step)
            done = step
            total: Result | None = None
            first: Turn | None = None
            for turn in turns:
                table = self._table(turn)
                added = table.warps.fma(1, [self.values.of(operand, table), total])
                total = added if total is None else _after(total, added)
                self.values.end_turn()
                first = first or turn
            assert first is not None
            assert total is not None
            self._joined(each, first, total, each.crossing.get(step, 1))
        self._idle(each, done + 1, max(each.crossing, default=-1) + 1)

    def _idle(self, each: StageTurns, begin: int, end: int) -> None:
        """Passes in which only other blocks have results: the code is one, so these meet all the same."""
        for step in range(begin, end):
            if step in each.crossing:
                self._bar()

    def _joined(self, each: StageTurns, first: Turn, total: Result, sharing: int) -> None:
        """Put the sums of the lanes and warps of a pass together, and store the results."""
        graph, stage = self.homes.graph, each.stage
        warps = self._table(first).warps
        spans = spans_of(first, positions(graph, stage.node, first.elements)[0], self.warps)
        total = self._shuffled(warps.part(spans.alike), total, self.grid.lanes)
        if sharing > 1:
            total = self._crossed(warps, spans, total, sharing)
        owning = _any(spans.lowest)
        table = Table(warps.part(owning), spans.results[owning], spans.lowest[owning])
        if not stage.partials:
            self._store(stage, table, total)
            return
        piece = self.homes.pieces[stage.node].of(table.elements, table.warps.numbers // self.warps + self.begin)
        array, index = self.homes.partials[stage.node], table.elements * stage.partials + piece
        self._stg.append(table.warps.stg(array, index, table.on, [total]))

    def _shuffled(self, warps: Warps, total: Result, sharing: int) -> Result:
        """The sums after so many lanes of these warps have exchanged theirs."""
        if len(warps):
            for _ in range((sharing - 1).bit_length()):
                total = _after(total, warps.fma(1, [warps.shfl([total])]))
        return total

    def _crossed(self, warps: Warps, spans: Spans, total: Result, sharing: int) -> Result:
        """The sums after the warps of each block have exchanged theirs; the lowest one of each result has them."""
        scratch = sum(self.homes.kernel.buffers)
        spanning = _any(spans.spanning)
        some = warps.part(spanning)
        if len(some):
            place = scratch + VALUE_BYTES * (some.numbers % self.warps)
            self._sts.append(some.sts(place[:, None], spans.spanning[spanning], waits=[total]))
        self._bar()
        lowest = spans.spanning & spans.lowest
        reading = _any(lowest)
        some = warps.part(reading)
        if not len(some):
            return total
        loaded = some.lds(scratch + VALUE_BYTES * (np.arange(self.grid.lanes) % self.warps))
        return self._shuffled(some, _after(total, loaded), sharing)

    def _combine(self, stage: Stage, turns: Turns) -> None:
        """The owners of an output combine its partials and write it."""
        self.values.begin(stage.node, False)
        for turn in turns.of_blocks(self.begin, self.end):
            table = self._table(turn)
            value = self.values.combined(stage.node, stage.partials, table)
            self._stg.append(table.warps.stg(self.homes.arrays[stage.node], table.elements, table.on, [value]))


def _any(table: Mask) -> Mask:
    """The rows of a table with some lane on."""
    rows: Mask = np.logical_or.reduce(table, axis=1)
    return rows


def _after(first: Result, then: Result) -> Result:
    """The later one of two results of each warp."""
    both = later(first, then)
    assert both is not None
    return both


#: Warps that are written together: their tables stay in a cache.
_WARPS = 4096


def fused_run(graph: Graph, kernels: Sequence[PlannedKernel], device: ParallelDevice) -> Run:
    """The kernels of a device for planned kernels; arrays: all nodes of the graph, then partials as they come."""
    memories, partials = arrays_of(graph, kernels)
    memories = addressable(memories, device.element_bytes)
    places = numbered(memories)
    return Run(memories, tuple(fused_kernel(graph, each, partials, places, device) for each in kernels))


def fused_kernel(
    graph: Graph, kernel: PlannedKernel, partials: Mapping[int, str], places: Mapping[str, int], device: ParallelDevice
) -> Kernel:
    """The kernel of the device for one planned kernel."""
    warps = up(kernel.threads, device.core.warp)
    homes = Homes(graph, kernel, partials)
    stages = [stage_turns(homes, stage, device.core.warp, warps) for stage in kernel.stages]
    shape = KernelShape(kernel.name, warps, kernel.registers, kernel.shared_bytes, kernel.grid_barriers > 0)

    def pieces() -> Iterator[Kernel]:
        step = max(1, _WARPS // warps)
        for begin in range(0, kernel.blocks, step):
            end = min(begin + step, kernel.blocks)
            grid = grids(device, places)()
            Text(homes, grid, begin, end, warps).write(stages)
            yield grid.kernel(shape, np.full(end - begin, -1, np.int32))

    return joined(pieces())
