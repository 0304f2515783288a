"""SpMM before it is written: its options, its tiles, and which warp has which rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from lstmsim.base.errors import Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import Ints, KernelShape, Memory, in_pieces
from lstmsim.machines.parallel.kernels.rows import (
    ALIGNMENTS,
    DISPATCH,
    ORDER,
    REGISTERS,
    VECTOR,
    Dealt,
    Options,
    RowsPlan,
    Stored,
    allocated,
    dealt,
    default_vector,
    fours,
    gathered,
    memories,
    option_mistakes,
    ordered,
    refuse,
    stored,
)
from lstmsim.model.sparse.csr import Csr, Dcsr, dcsr_of


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
    """Everything about an SpMM that its text asks.

    rows, inner, columns: sizes M, K and N.
    first: shape (thread blocks + 1,); where the tiles of each thread block begin, if it has several; else None.
    """

    options: SpmmOptions
    device: ParallelDevice  # whose kernel it is
    rows: int
    inner: int
    columns: int
    tile: int  # columns of a block; width: of a warp
    width: int
    repeats: int  # vectors of a lane
    stored: Stored  # the rows of A in memory
    empty_rows: Ints  # rows that the kernel `zero` writes
    column: Ints  # shape (streams,); the first column of each warp
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
