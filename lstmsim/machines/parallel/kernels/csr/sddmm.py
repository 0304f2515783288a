"""SDDMM: D = (A B) o C with a sparse C, A and B dense (docs/sparse_kernels.md, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import Kernel, KernelShape, Memory, Run
from lstmsim.machines.parallel.kernels.csr.rows import (
    DISPATCHES,
    ORDERS,
    RowsMade,
    addressable,
    allocated,
    bad_lanes,
    bad_vector,
    dealt,
    default_vector,
    ordered,
)
from lstmsim.machines.parallel.kernels.csr.sddmm_text import SddmmPlan, SddmmText
from lstmsim.machines.parallel.kernels.options import bad_choice, bad_number, refuse
from lstmsim.machines.parallel.writing.streams import Grid, joined
from lstmsim.model.sparse.csr import Csr
from lstmsim.model.sparse.statistics import lockstep_waste

__all__ = ["SddmmOptions", "sddmm"]

Ints = NDArray[np.int64]
Values = NDArray[Any]
_MODES = ("values", "indicator")
#: Sums of lanes that a piece of a kernel has in hand.
_AT_ONCE = 1 << 21


@record
class SddmmOptions:
    """Parameters of SDDMM. None stands for what follows from the sizes.

    tile: entries of a row of C that a block works on.
    v: elements of rows of A and B that a lane loads at once: 1, 2 or 4.
    lanes: of a row, a power of two; by default as many of a warp as have a vector of A.
    warps: of a block.
    order, dispatch: as in `SpmmOptions`.
    mode: D has the products times the values of C (values), or the products themselves (indicator).
    registers: of a thread.

    `InputError` names every option that is wrong.
    """

    tile: int = 32
    v: int | None = None
    lanes: int | None = None
    warps: int = 1
    order: str = "plain"
    dispatch: str = "demand"
    mode: str = "values"
    registers: int = 64

    def __post_init__(self) -> None:
        refuse(
            [
                bad_number("tile", self.tile),
                None if self.v is None else bad_vector(self.v),
                None if self.lanes is None else bad_number("lanes", self.lanes),
                bad_number("warps", self.warps),
                bad_choice("order", self.order, ORDERS),
                bad_choice("dispatch", self.dispatch, DISPATCHES),
                bad_choice("mode", self.mode, _MODES),
                bad_number("registers", self.registers, 0),
            ]
        )


def sddmm(matrix: Csr, left: Values | int, right: Values | None, options: SddmmOptions, device: Device) -> RowsMade:
    """D = (A B) o C on a device: products of rows of A and columns of B where C has entries.

    matrix: C. Its entries are those of D, exact zeros included.
    left: A, shape (rows of C, K), or only K: then nothing is computed.
    right: B transposed, shape (columns of C, K); None if only K is given.
    options: parameters of the kernel.
    device: whose lanes it is written for.

    The result is D's values in the order of C's entries. With K = 0 they are zeros; a C without rows or columns makes
    an empty grid.

    `InputError` if sizes do not fit.

    >>> from lstmsim.model.sparse.csr import csr_of_dense
    >>> from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
    >>> device = ParallelDevice("v100", 1530, (ParallelCore(),) * 80).view
    >>> ones = np.ones((2, 4), np.int64)
    >>> sddmm(csr_of_dense([[0, 2], [3, 0]]), ones, ones, SddmmOptions(), device).result.tolist()
    [8, 12]
    """
    inner = left if isinstance(left, int) else _inner(matrix, left, right)
    plan = _plan(matrix, inner, options, device)
    arrays = addressable(_arrays(matrix, inner, options))
    places = {memory.name: place for place, memory in enumerate(arrays)}
    operands = None if isinstance(left, int) or right is None else (left, right)
    text = SddmmText(plan, operands)
    kernel = _kernel(plan, text, options, lambda: Grid(device.warp, places, device.banks))
    blocks = len(plan.dealt.sm)
    longest = plan.longest.reshape(blocks, options.warps)
    return RowsMade(
        run=Run(arrays, (kernel,)),
        result=text.result,
        metrics={
            "lane_slots": text.slots,
            "lane_active": matrix.entries * inner,
            "macs": matrix.entries * inner,
            "blocks_in_grid": blocks,
            "idle_blocks": int(np.count_nonzero(longest.max(axis=1, initial=0) == 0)),
            "lanes": plan.lanes,
        },
        order=plan.dealt.order.tolist() if plan.perm else None,
        placing=None if options.dispatch == "demand" else plan.dealt.sm.tolist(),
        lockstep_waste=lockstep_waste(matrix.lengths[plan.dealt.order], plan.which.shape[1] * options.warps),
    )


def _kernel(plan: SddmmPlan, text: SddmmText, options: SddmmOptions, grid: Callable[[], Grid]) -> Kernel:
    """The kernel, written some blocks at a time, each time into an empty grid."""
    shape = KernelShape("sddmm", options.warps, options.registers)
    step = max(1, _AT_ONCE // (plan.warp * options.tile * options.warps))

    def pieces() -> Iterator[Kernel]:
        for start in range(0, max(1, len(plan.dealt.sm)), step):
            sm = plan.dealt.sm[start : start + step]
            into = grid()
            text.write(into, start * options.warps, (start + len(sm)) * options.warps)
            yield into.kernel(shape, sm)

    return joined(pieces())


def _inner(matrix: Csr, left: Values, right: Values | None) -> int:
    if left.ndim != 2 or len(left) != matrix.rows:
        raise InputError(Mistake("A", f"must have {matrix.rows} rows and 2 dimensions, got shape {left.shape}"))
    wanted = (matrix.columns, left.shape[1])
    if right is None or right.shape != wanted:
        got = "nothing" if right is None else right.shape
        raise InputError(Mistake("Bt", f"must have the shape {wanted}, got {got}"))
    return int(left.shape[1])


def _plan(matrix: Csr, inner: int, options: SddmmOptions, device: Device) -> SddmmPlan:
    v = options.v or default_vector(inner)
    wrong = Mistake("v", f"must divide the {inner} columns of A, got {v}") if inner % v else None
    refuse([wrong, bad_lanes(options.lanes, device.warp)])
    lanes = options.lanes or min(device.warp, 1 << max(0, (inner // v).bit_length() - 1))
    order = ordered(matrix.lengths, options.order)
    of_warp = device.warp // lanes
    begins = np.arange(0, matrix.columns, options.tile)
    loads = np.clip(matrix.lengths - begins[:, None], 0, options.tile)
    grid = dealt(order, loads, of_warp * options.warps, options.dispatch, device.sms)
    which = grid.rows(options.warps, of_warp)
    begin = np.repeat(grid.tile * options.tile, options.warps)[:, None]
    length = np.append(matrix.lengths, 0)[which]
    return SddmmPlan(
        warp=device.warp,
        warps=options.warps,
        lanes=lanes,
        v=v,
        inner=inner,
        values=options.mode == "values",
        perm=options.order == "sorted",
        dealt=grid,
        matrix=matrix,
        which=which,
        begin=np.append(matrix.row_ptr[:-1], 0)[which] + begin,
        count=np.clip(length - begin, 0, options.tile),
    )


def _arrays(matrix: Csr, inner: int, options: SddmmOptions) -> tuple[Memory, ...]:
    entries = allocated(matrix.entries)
    sizes = {
        "perm": matrix.rows if options.order == "sorted" else None,
        "row_ptr": matrix.rows + 1,
        "cols": entries,
        "values": entries if options.mode == "values" else None,
        "A": matrix.rows * inner,
        "Bt": matrix.columns * inner,
        "D": entries,
    }
    return tuple(Memory(name, size) for name, size in sizes.items() if size is not None)
