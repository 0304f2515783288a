"""SpMM: C = A B with a sparse A: options, tiles, and the text, instruction by instruction (docs/sparse_kernels.md, 3).

Entries of rows go to shared memory in strips, and then four at a time to multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import (
    Ints,
    Kernel,
    KernelShape,
    Made,
    Mask,
    Memory,
    Narrow,
    Run,
    Values,
    in_pieces,
)
from lstmsim.machines.parallel.kernels.rows import (
    ALIGNMENTS,
    DISPATCH,
    ORDER,
    REGISTERS,
    VECTOR,
    Dealt,
    Options,
    RowsPlan,
    RowsText,
    Stored,
    add_strips,
    allocated,
    dealt,
    default_vector,
    fours,
    gathered,
    grids,
    memories,
    option_mistakes,
    ordered,
    stored,
)
from lstmsim.machines.parallel.writing.streams import (
    Grid,
    Result,
    Warps,
    at_place,
    chained,
    joined,
    later,
    places_before,
    written,
)
from lstmsim.model.sparse.csr import Csr, Dcsr, dcsr_of
from lstmsim.model.sparse.made import number_type


@record
class SpmmOptions(Options):
    """Parameters of SpMM. None stands for what follows from the sizes."""

    tile: Annotated[int | None, Key("columns of C that a block works on; by default 64, 32, 16 or 8", low=1)] = None
    v: Annotated[int | None, VECTOR] = None
    warps: Annotated[int, Key("warps of a block", low=1)] = 1
    k_tile: Annotated[int, Key("entries of a row that are staged in shared memory at once", low=1, rule=fours)] = 32
    order: Annotated[str, ORDER] = "plain"
    dispatch: Annotated[str, DISPATCH] = "demand"
    align: Annotated[
        str,
        Key(
            "how vectors meet rows that begin anywhere: from the aligned element before (reverse), by scalar loads "
            "(none), or in a copy with filled rows (pad)",
            choices=ALIGNMENTS,
        ),
    ] = "reverse"
    share: Annotated[bool, Key("whether the warps of a block share its rows and divide its columns")] = False
    fetch: Annotated[
        str, Key("elements of B: the needed ones as they come, or first all of the tile", choices=("needed", "all"))
    ] = "needed"
    format: Annotated[str, Key("format of A", choices=("csr", "dcsr"))] = "csr"
    registers: Annotated[int, REGISTERS] = 40
    blocks: Annotated[
        int | None,
        Key("thread blocks to which tiles are dealt to and fro; by default each tile of a bundle is one", low=1),
    ] = None

    def __post_init__(self) -> None:
        wrong = list(option_mistakes(self))
        if not wrong and self.blocks is not None and (self.warps, self.dispatch) != (1, "demand"):
            text = "needs warps 1 and dispatch demand: each thread block has a list of tiles of its own"
            wrong.append(Mistake("blocks", text))
        refuse(wrong)


@dataclass(frozen=True, eq=False)
class SpmmPlan(RowsPlan):
    """Everything about an SpMM that its text asks."""

    options: SpmmOptions
    device: ParallelDevice  # whose kernel it is
    rows: int  # rows, inner, columns: sizes M, K and N
    inner: int
    columns: int
    tile: int  # columns of a block; width: of a warp
    width: int
    repeats: int  # vectors of a lane
    stored: Stored  # the rows of A in memory
    empty_rows: Ints  # rows that the kernel `zero` writes
    column: Ints  # shape (streams,); the first column of each warp
    # shape (thread blocks + 1,); where the tiles of each thread block begin, if it has several; else None
    first: Ints | None = None

    @cached_property
    def subwarp(self) -> Ints:
        """The subwarp of each lane of a warp, shape (lanes of a warp,)."""
        return np.arange(self.warp) // self.lanes

    def listed(self, stream: Ints) -> Ints:
        """As of `RowsPlan`; warps that share rows have the same ones."""
        if not self.options.share:
            return super().listed(stream)
        return self.dealt.bundle[stream // self.options.warps] * self.subwarps

    def base(self, stream: Ints) -> Ints:
        """Where in shared memory the values of each warp begin, in bytes, shape (n, 1)."""
        own = 8 * self.subwarps * self.options.k_tile
        return np.zeros((len(stream), 1), np.int64) if self.options.share else own * self.warp_of(stream)[:, None]

    def first_of_tile(self, stream: Ints) -> Ints:
        """The first column of each warp's tile."""
        return self.dealt.tile[stream // self.options.warps] * self.tile

    @property
    def single(self) -> bool:
        """Whether a lane has one sum only, so that each multiply-add waits for the one before."""
        return self.v * self.repeats == 1

    @property
    def staged(self) -> int:
        """Bytes of shared memory in which values and columns of rows are staged."""
        return _staged(self.options, self.subwarps)

    @property
    def shape(self) -> KernelShape:
        """What the kernel asks of a multiprocessor."""
        fetched = 4 * self.inner * self.tile if self.options.fetch == "all" else 0
        return KernelShape("spmm", self.options.warps, self.options.registers, self.staged + fetched, ordered=("B",))

    @property
    def arrays(self) -> tuple[Memory, ...]:
        """The arrays in the order of their declaration."""
        listed, entries = len(self.stored.row), allocated(len(self.stored.cols))
        return memories(
            perm=listed if self.options.order == "sorted" else None,
            rows=listed if self.options.format == "dcsr" else None,
            row_ptr=listed + 1,
            cols=entries,
            values=entries,
            B=self.inner * self.columns,
            C=self.rows * self.columns,
        )


def _staged(options: SpmmOptions, subwarps: int) -> int:
    return 8 * subwarps * options.k_tile * (1 if options.share else options.warps)


def spmm_plan(matrix: Csr, columns: int, options: SpmmOptions, device: ParallelDevice) -> SpmmPlan:
    """How C = A B is cut into tiles and dealt to warps."""
    v = options.v or default_vector(columns)
    tile = options.tile or next(size for size in (64, 32, 16, 8, 0) if columns >= size or size == 8)
    width = tile // options.warps if options.share else tile
    refuse(_indivisible(columns, v, tile, options))
    lanes = min(1 << (width // v).bit_length() - 1, device.core.warp)
    if width % (lanes * v):
        refuse([Mistake("tile", f"must be whole vectors of {lanes} lanes x v {v} for each warp, got {tile}")])
    subwarps = device.core.warp // lanes
    refuse([_too_much_shared(matrix, tile, subwarps, options, device.core.shared_bytes)])
    kept: Csr | Dcsr = dcsr_of(matrix) if options.format == "dcsr" else matrix
    rows = stored(kept, v, options.align)
    order = ordered(rows.length, options.order)
    tiles = -(-columns // tile)
    bundle = subwarps * (1 if options.share else options.warps)
    loads = np.broadcast_to(rows.length, (tiles, len(rows.length)))
    grid, first = _grid(order, loads, bundle, options, device.sms)
    column = np.repeat(grid.tile * tile, options.warps)
    if options.share:
        column = column + np.tile(np.arange(options.warps) * width, len(grid.tile))
    return SpmmPlan(
        options=options,
        warp=device.core.warp,
        lanes=lanes,
        v=v,
        dealt=grid,
        which=grid.rows(options.warps, subwarps, options.share),
        device=device,
        rows=matrix.rows,
        inner=matrix.columns,
        columns=columns,
        tile=tile,
        width=width,
        repeats=width // (lanes * v),
        stored=rows,
        empty_rows=kept.empty_rows if isinstance(kept, Dcsr) else np.zeros(0, np.int64),
        column=column,
        first=first,
    )


def _grid(order: Ints, loads: Ints, bundle: int, options: SpmmOptions, sms: int) -> tuple[Dealt, Ints | None]:
    """The tiles, and where those of each thread block begin if it has several; arguments as of `dealt`."""
    if options.blocks is None:
        return dealt(order, loads, bundle, options.dispatch, sms), None
    blocks = min(options.blocks, max(1, len(loads) * -(-len(order) // bundle)))
    return gathered(dealt(order, loads, bundle, "snake", blocks), blocks)


def _indivisible(columns: int, v: int, tile: int, options: SpmmOptions) -> list[Mistake]:
    wrong = []
    if columns % v:
        wrong.append(Mistake("v", f"must divide the {columns} columns of B, got {v}"))
    if options.share and tile % (options.warps * v):
        wrong.append(Mistake("tile", f"must be a multiple of warps {options.warps} x v {v} to be shared, got {tile}"))
    elif tile % v:
        wrong.append(Mistake("tile", f"must be a multiple of v {v}, got {tile}"))
    return wrong


def _too_much_shared(matrix: Csr, tile: int, subwarps: int, options: SpmmOptions, most: int) -> Mistake | None:
    staged, fetched = _staged(options, subwarps), 4 * matrix.columns * tile if options.fetch == "all" else 0
    if in_pieces(staged + fetched) <= most:
        return None
    asked = f"{staged} bytes of rows" + (f" and {fetched} bytes of B" if fetched else "")
    place = "fetch" if fetched else "k_tile"
    given = options.fetch if fetched else options.k_tile
    return Mistake(place, f"must fit {most} bytes of shared memory, got {given}: {asked} for each block")


@dataclass(frozen=True, eq=False)
class Strips:
    """Strips of rows that warps write side by side, one segment each."""

    plan: SpmmPlan  # of the kernel
    warps: Warps  # what writes them
    stream: Ints  # shape (n,); the warp of each
    number: Ints  # shape (n,); which strip of its rows it is
    masked: Ints  # shape (n, subwarps); how many elements before its first entry each row loads
    start: Ints  # start, end: shape (n, subwarps); as in `Stored`; a subwarp without a row has an end of 0
    end: Ints
    length: Ints  # shape (n, subwarps); entries of each row

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


def staged(strips: Strips, ready: Ints, shifted: bool) -> tuple[Narrow, list[Result], int]:
    """Bring the entries of strips to shared memory.

    Gives which stored entry is then at each place of shared memory, shape (n, subwarps, k_tile), -1 for none and for
    what belongs to no row; the stores; and how many elements were read after the ends of rows.
    """
    plan, kt, va = strips.plan, strips.plan.options.k_tile, strips.plan.stored.vector
    known = at_place(strips.warps, ready)
    held = np.full((len(strips.stream), plan.subwarps * kt), -1, np.int32)
    start, end, base = plan.spread(strips.start), plan.spread(strips.end), plan.base(strips.stream)
    below = np.minimum(strips.begin + kt, end)
    loads: list[tuple[Warps, Mask, list[Result], Ints]] = []
    tail = 0
    for q in range(-(-kt // (plan.lanes * va))):
        place = (q * plan.lanes + plan.lane) * va
        p = strips.begin + place
        on = p < below
        row, lane = np.nonzero(on)
        to, entry = (plan.subwarp * kt + place)[lane], (start + p)[row, lane]
        for element in range(va):
            held[row, to + element] = entry + element
        mask = np.logical_or.reduce(on, axis=1)
        if plan.options.share:
            mask &= q % plan.options.warps == plan.warp_of(strips.stream)
        if not mask.any():
            continue
        on, index = on[mask], (start + p)[mask]
        tail += int(np.maximum(p + va - end, 0)[mask][on].sum())
        warps = strips.warps.part(mask)
        results = [warps.ldg(name, index, on, [known], va) for name in ("cols", "values")]
        loads.append((warps, on, results, base[mask] + 4 * (plan.subwarp * kt + place)))
    stores: list[Result] = []
    for warps, on, results, begin in loads:
        waits = [warps.alu(2, results)] if shifted else results
        for address in (begin, begin + 4 * plan.subwarps * kt):
            stores.append(warps.sts(address, on, va, waits))
    return _useful(strips, held), stores, tail if plan.options.align == "reverse" else 0


def _useful(strips: Strips, held: Narrow) -> Narrow:
    """Without what is before the begin of a row, after its end, or fill."""
    plan, kt = strips.plan, strips.plan.options.k_tile
    table = held.reshape(len(held), plan.subwarps, kt)
    p = strips.begin[:, :, None] + np.arange(kt)
    begin = strips.masked[:, :, None]
    table[(p < begin) | (p >= begin + strips.length[:, :, None])] = -1
    return table


def multiplied(strips: Strips, held: Narrow, stores: list[Result]) -> list[Result]:
    """The inner loop of strips: four entries of each row at a time.

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


def _before(strips: Strips) -> Result | None:
    """The last multiply-add of the strip before, if the first one of these strips waits for it."""
    if not strips.plan.single or not strips.number.any():
        return None
    # an `alu`, and with shared rows a `bar`, follow it
    return places_before(strips.warps.part(strips.number > 0), 3 if strips.plan.options.share else 2)


def _steps(
    strips: Strips, n: int, steps: Ints, four: Narrow, known: list[Result], last: Result | None
) -> Result | None:
    """Up to four entries of each row: the loads of B, then the multiply-adds."""
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
        last = later(last, done) if plan.single else None
    return last


def _operand(strips: Strips, row: Ints, inside: Mask, q: int, address: Result) -> Result | None:
    """Vectors of B for an entry of each row."""
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


class SpmmText(RowsText):
    """Writes an SpMM.

    take: gets strips, and which stored entry is at each index of their shared memory, as of `staged`.
    tail, slots, active: counts of section 8.
    """

    def __init__(self, plan: SpmmPlan, take: Callable[[Strips, Narrow], None]) -> None:
        super().__init__(plan, plan.stored, plan.options.k_tile, take)
        self.alone = int(plan.options.fetch == "all")
        self.tail = self.slots = self.active = 0
        #: where in its stream each warp knows the numbers of its rows
        self._named = np.full(len(plan.which), -1, np.int64)
        #: vectors of columns that a subwarp of each warp has
        self._vectors = np.clip(plan.columns - plan.column, 0, plan.width) // plan.v

    def _prologue(self, every: Warps, streams: Ints) -> None:
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
        known, pointers = plan.pointers(warps, stream, known)
        if plan.options.format == "dcsr":
            which = plan.spread(plan.which[stream])
            self._named[stream] = warps.ldg("rows", which, which >= 0, [known]).places
        self._ready[stream] = warps.alu(3, pointers).places

    def _fetch(self, warps: Warps, stream: Ints) -> list[Result]:
        """All of B in the tile goes to shared memory, brought by all warps of the block together."""
        plan, turns, lanes = self.plan, self.plan.options.warps, self.plan.warp
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
        strips = Strips(plan, warps, stream, number, *(column[stream] for column in self._rows))
        held, stores, tail = staged(strips, self._ready[stream], shifted)
        if share:
            warps.bar(stores)
        loads = multiplied(strips, held, [] if share else stores)
        goes_on = number < self._strips[stream] - 1
        if share and goes_on.any():
            warps.part(goes_on).bar(loads)
        self.tail += tail
        steps = np.minimum(strips.end.max(axis=1) - number * plan.options.k_tile, plan.options.k_tile)
        self.slots += int(steps.sum()) * plan.warp * plan.repeats
        self.active += int(((held >= 0).sum(axis=(1, 2)) * self._vectors[stream]).sum())
        self.take(strips, held)

    def _epilogue(self, warps: Warps, stream: Ints) -> None:
        """C goes to memory."""
        plan = self.plan
        # an `alu` stands between the last multiply-add and the epilogue
        last = self._last(warps, stream, 2)
        named = at_place(warps, self._named[stream]) if plan.options.format == "dcsr" else None
        for q in range(plan.repeats):
            index, on = self.results(stream, q)
            warps.stg_if("C", index, on, [last, named], plan.v)

    def results(self, stream: Ints, q: int) -> tuple[Ints, Mask]:
        """Which vectors of C the lanes of warps store, and which lanes store one, each of shape (n, lanes)."""
        plan = self.plan
        row = np.append(plan.stored.row, 0)[plan.which[stream]]
        across = plan.column[stream][:, None] + (q * plan.lanes + plan.lane) * plan.v
        on = plan.spread(plan.which[stream] >= 0) & (across < plan.columns)
        return plan.spread(row * plan.columns) + across, on


#: Addresses that a piece of a kernel has in hand for each line of its text.
_AT_ONCE = 1 << 19
_BLOCKS = 1 << 14


def spmm(matrix: Csr, dense: Values, options: SpmmOptions, device: ParallelDevice) -> Made:
    """C = A B on a device; `InputError` if sizes do not fit.

    matrix: A. dense: B, shape (columns of A, N). options: parameters of the kernel.

    A matrix without rows or a B without columns makes an empty grid, one without columns rows of zeros.
    """
    if dense.ndim != 2 or len(dense) != matrix.columns:
        wrong = f"must have {matrix.columns} rows and 2 dimensions, got shape {dense.shape}"
        raise InputError(Mistake("dense operand", wrong))
    plan = spmm_plan(matrix, dense.shape[1], options, device)
    arrays = plan.arrays
    numbers = _Numbers(plan, dense)
    text = SpmmText(plan, numbers.take)
    grid = grids(device, arrays)
    size = max(1, _AT_ONCE // max(device.core.warp, plan.subwarps * options.k_tile))
    kernel = written(text.write, text.counts, grid, plan.shape, plan.dealt.sm, size)
    if plan.first is not None:
        kernel = chained(kernel, plan.first, plan.shape, np.full(len(plan.first) - 1, -1))
    kernels = (_zeros(plan, grid), kernel) if len(plan.empty_rows) else (kernel,)
    metrics = {
        "masked": int(plan.stored.masked.sum()) * -(-plan.columns // plan.tile),
        "tail": text.tail,
        "lane_slots": text.slots,
        "lane_active": text.active,
        "macs": matrix.entries * plan.columns,
        "storage": len(plan.stored.cols),
        "blocks_in_grid": len(kernel.sm),
        "lanes": plan.lanes,
    }
    return Made(Run(arrays, kernels), numbers.result(text), metrics, plan)


def _zeros(plan: SpmmPlan, grid: Callable[[], Grid]) -> Kernel:
    """The kernel that writes the rows which DCSR does not have."""
    shape = KernelShape("zero", 1, 16)
    vector = default_vector(plan.columns)
    lane = np.arange(plan.warp) * vector

    def piece(rows: Ints) -> Kernel:
        into = grid()
        warps = into.warps(np.arange(len(rows)))
        begin = warps.alu(4)
        for column in range(0, plan.columns, plan.warp * vector):
            across = column + lane
            warps.stg("C", rows[:, None] * plan.columns + across, across < plan.columns, [begin], vector)
        return into.kernel(shape, np.full(len(rows), -1, np.int32))

    empty = plan.empty_rows
    return joined(piece(empty[start : start + _BLOCKS]) for start in range(0, len(empty), _BLOCKS))


class _Numbers:
    """The sums of all lanes of an SpMM, made of the entries that they find in shared memory."""

    def __init__(self, plan: SpmmPlan, dense: Values) -> None:
        self.plan = plan
        kind = number_type(plan.stored.values, dense)
        self.values = plan.stored.values.astype(kind, copy=False)
        #: warps that stand side by side in a row of B
        self.parts = -(-plan.columns // plan.tile) * (plan.tile // plan.width)
        padded = np.zeros((plan.inner, self.parts * plan.width), kind)
        padded[:, : plan.columns] = dense
        self.operand = padded.reshape(-1, plan.width)
        self.sums = np.zeros((*plan.which.shape, plan.width), kind)

    def take(self, strips: Strips, held: Narrow) -> None:
        """Add the products of strips."""
        plan, on = self.plan, held.transpose(1, 0, 2) >= 0
        entry = held.transpose(1, 0, 2)[on]
        counts = on.sum(axis=2)
        part = plan.column[strips.stream] // plan.width
        row = plan.stored.cols[entry] * self.parts + np.repeat(np.tile(part, len(counts)), counts.reshape(-1))
        values = self.values[entry][:, None]
        add_strips(self.sums, strips.stream, counts, lambda numbers: values[numbers] * self.operand[row[numbers]])

    def result(self, text: SpmmText) -> Values:
        """C, of what lanes store."""
        plan = self.plan
        made = np.zeros(plan.rows * plan.columns, self.sums.dtype)
        for start in range(0, len(plan.which), _BLOCKS):
            stream = np.arange(start, min(start + _BLOCKS, len(plan.which)))
            own = self.sums[stream].reshape(len(stream), plan.subwarps, plan.repeats, plan.lanes, plan.v)
            for q in range(plan.repeats):
                index, on = text.results(stream, q)
                vectors = own[:, :, q].reshape(len(stream), -1, plan.v)
                for element in range(plan.v):
                    made[index[on] + element] = vectors[:, :, element][on]
        return made.reshape(plan.rows, plan.columns)
