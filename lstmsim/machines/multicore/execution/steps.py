"""The steps of each thread, in its order, and the order in which pieces of C are visited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from lstmsim.machines.gemm import Division
from lstmsim.machines.multicore.execution.checks import check_division
from lstmsim.machines.multicore.machine import Machine
from lstmsim.machines.multicore.planning.blocks import Blocks, blocks_of

__all__ = ["Step", "steps_of", "sub_blocks_in_turn"]

#: First and end of rows, of columns, or of a part of K.
Span = tuple[int, int]


class Step(NamedTuple):
    """One step of a thread: a block of multiplications, or the adding of a buffer into C.

    thread: whose it is.
    number: its place among the steps of its thread.
    rows, columns: of C, each as (first, end).
    ks: range of K, as (first, end); empty for an update.
    update: whether a buffer is added into C; else blocks are multiplied.
    packs_b: whether B is packed in it.
    gemv: whether its one row is multiplied by a kernel that packs nothing.
    after: (thread, number) of the step before it on its piece of C, if that is another thread's.
    """

    thread: int
    number: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    ks: tuple[int, int]
    update: bool = False
    packs_b: bool = False
    after: tuple[int, int] | None = None
    gemv: bool = False


@lru_cache(maxsize=8)
def steps_of(machine: Machine, division: Division) -> tuple[tuple[Step, ...], ...]:
    """The steps of each thread, in its order; a thread without rows, columns or part of K has none.

    machine: of it only the blocks that fit its caches count, and whether one row needs no packing.
    division: any cut, also one that no planner would give.
    `InputError` for a division that leaves out a part of its product.
    """
    check_division(division)
    blocks = blocks_of(machine)
    cut = division.cut
    gemv = machine.packs_nothing(division.product.m)
    threads = [_steps_of_thread(blocks, division, thread, gemv) for thread in range(cut.threads)]
    if cut.p_k == 1:
        return tuple(map(tuple, threads))
    groups = [threads[first : first + cut.p_k] for first in range(0, cut.threads, cut.p_k)]
    return tuple(tuple(steps) for group in groups for steps in _in_turn(group))


def sub_blocks_in_turn(division: Division, thread: int) -> list[tuple[Span, Span]]:
    """Rows and columns of each sub-block of a thread's block of C, in the order in which the thread comes to them.

    The threads of a K-group begin at different ones. Without sub-blocks there is one: the whole block.

    >>> from lstmsim.machines.gemm import Cut, Product, SubBlocks
    >>> division = Division(Product(4, 16, 32), Cut("MK", 1, 1, 2, 4, 16, 16), SubBlocks(4, 8, 1, 2))
    >>> sub_blocks_in_turn(division, 1)
    [((0, 4), (8, 16)), ((0, 4), (0, 8))]
    """
    rows, columns, _ = division.cut.owned(thread, division.product)
    sub = division.sub_blocks
    if sub is None:
        return [(rows, columns)]
    pieces = [(part, own) for part in _parts(rows, sub.sm) for own in _parts(columns, sub.sn)]
    first = division.cut.place(thread)[2] * len(pieces) // division.cut.p_k
    return pieces[first:] + pieces[:first]


def _parts(span: Span, size: int) -> Iterator[Span]:
    """The parts of a span that are `size` long; the last one may be shorter."""
    first, end = span
    return ((at, min(at + size, end)) for at in range(first, end, size))


def _steps_of_thread(blocks: Blocks, division: Division, thread: int, gemv: bool) -> list[Step]:
    """The steps of a thread, without those that they follow."""
    rows, columns, ks = division.cut.owned(thread, division.product)
    if not (rows[0] < rows[1] and columns[0] < columns[1] and ks[0] < ks[1]):
        return []
    turns = sub_blocks_in_turn(division, thread)
    packs = not division.packed and not gemv
    # a buffer is of use only if others add into the same block
    buffered = division.buffer and division.cut.p_k > 1
    steps: list[Step] = []
    for own_rows, own_columns in [(rows, columns)] if buffered else turns:
        for jc in _parts(own_columns, blocks.nc):
            for pc in _parts(ks, blocks.kc):
                for ic in _parts(own_rows, blocks.mc):
                    packs_b = packs and ic[0] == own_rows[0]
                    steps.append(Step(thread, len(steps), ic, jc, pc, packs_b=packs_b, gemv=gemv))
    if buffered:
        first = len(steps)
        steps += [Step(thread, first + i, *piece, (0, 0), update=True) for i, piece in enumerate(turns)]
    return steps


def _in_turn(group: Sequence[Sequence[Step]]) -> list[list[Step]]:
    """The steps of the threads of a K-group, each with the step that it follows on its piece of C.

    A piece is visited in the order of (number of the step in its thread, place of the thread in the group). Pieces do
    not overlap, so their first row and first column name them.
    """
    buffered = any(step.update for steps in group for step in steps)
    linked: list[list[Step]] = [[] for _ in group]
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for together in zip_longest(*group):
        for own, step in zip(linked, together, strict=True):
            if step is None:
                continue
            if step.update or not buffered:
                piece = step.rows[0], step.columns[0]
                before = last.get(piece)
                last[piece] = step.thread, step.number
                if before is not None and before[0] != step.thread:
                    step = step._replace(after=before)
            own.append(step)
    return linked
