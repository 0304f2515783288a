"""The steps of each thread, in its order, and the order in which pieces of C are visited."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Step"]


class Step(NamedTuple):
    """One step of a thread: a block of multiplications, or the adding of a buffer into C.

    thread: whose it is.
    number: its place among the steps of its thread.
    rows, columns: of C, each as (first, end).
    ks: range of K, as (first, end); empty for an update.
    update: whether a buffer is added into C; else blocks are multiplied.
    packs_b: whether B is packed in it.
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
