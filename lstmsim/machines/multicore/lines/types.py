"""What passes between the walk of a step, the caches, and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.records import record

__all__ = ["COLUMNS", "Array", "Runs", "Stage", "TimedStep"]

#: Numbers that the caches count for each step; then come the lines of each memory.
COLUMNS = (
    *("l1", "l1_hit", "l2", "l2_hit", "llc", "llc_hit", "l1_l2", "l2_llc"),
    *("memory_read", "memory_write", "remote", "transfers"),
)


@record
class Array:
    """An array in the address space. It begins with a page.

    name: for people.
    first, size: address of its first byte; how many bytes it has.
    domain: the memory where all of its pages are; None: page i of the space is in memory `i mod domains`.
    own: whether it is a thread's own: a line of it that was never written comes from no memory.
    shared: whether several threads use lines of it that one of them writes.
    """

    name: str
    first: int
    size: int
    domain: int | None = None
    own: bool = False
    shared: bool = False


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of bytes that a step touches, in order. A run touches each of its lines once.

    address, size: of each run, in bytes; shape (runs,).
    write: whether it is written; shape (runs,).
    """

    address: NDArray[np.int64]
    size: NDArray[np.int64]
    write: NDArray[np.bool_]


class TimedStep(NamedTuple):
    """A step as the clock sees it.

    cycles: how long it takes its core.
    lines: lines of each memory.
    after: (thread, number) of the step of this stage whose end it waits for, because both are on one piece of C; None:
        of none.
    work: useful multiply-accumulates.
    label: for people.
    place: layer and direction, of a recurrent job; for people.
    of_memory: how many of the cycles its core has only because of lines from and to memory; less than all.
    """

    cycles: int
    lines: tuple[int, ...]
    after: tuple[int, int] | None = None
    work: int = 0
    label: str = ""
    place: tuple[int, ...] = ()
    of_memory: int = 0


@record
class Stage:
    """What threads do between two barriers.

    steps: of each thread its steps, in order; a thread may have none.
    frames: whether the first step of each thread also waits for the input frame.
    """

    steps: tuple[tuple[TimedStep, ...], ...]
    frames: bool = False
