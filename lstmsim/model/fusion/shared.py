"""When all blocks meet, and which buffer of shared memory has which value; docs/fusion.md, sections 7.1 and 7.2."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

import numpy as np

from lstmsim.base.records import record
from lstmsim.model.fusion.plan import Owners

__all__ = ["Buffers", "buffered", "grid_barriers", "most_of_a_block"]


def grid_barriers(
    stages: Sequence[int],
    reads: Mapping[int, Collection[int]],
    across: Set[int],
    split: Set[int],
    outputs: Set[int],
) -> tuple[frozenset[int], bool]:
    """The stages before which all blocks meet, and whether they meet at the end.

    stages: the candidates in order.
    reads: the candidates that each stage reads.
    across: candidates that lie in device memory for other blocks.
    split: those of them whose results are split over blocks.
    outputs: what the sub-graph puts out.

    >>> grid_barriers([3, 5, 8], {3: [], 5: [3], 8: [5]}, {3, 8}, {8}, {8})
    (frozenset({5}), True)
    """
    before: set[int] = set()
    written: set[int] = set()  # by stages since the last barrier, and read across blocks
    for stage in stages:
        if written.intersection(reads[stage]):
            before.add(stage)
            written.clear()
        if stage in across:
            written.add(stage)
    return frozenset(before), bool(written & split & outputs)


@record
class Buffers:
    """Buffers of shared memory of a block.

    sizes: bytes of each.
    of: number of the buffer of each candidate that has one.
    """

    sizes: tuple[int, ...]
    of: Mapping[int, int]


def buffered(stages: Sequence[int], requests: Mapping[int, int], last_reader: Mapping[int, int]) -> Buffers:
    """A buffer for each shared value. A stage may read a buffer and write its own value over it.

    stages: the candidates in order.
    requests: bytes of each candidate that lies in shared memory.
    last_reader: number of the last stage that reads each of these.

    >>> buffered([1, 4, 6, 9], {1: 400, 4: 100, 6: 200}, {1: 4, 4: 9, 6: 9})
    Buffers(sizes=(400, 200), of={1: 0, 4: 0, 6: 1})
    """
    sizes: list[int] = []
    until: list[int] = []  # the last stage that reads what is in each buffer
    of: dict[int, int] = {}
    for stage in stages:
        if stage not in requests:
            continue
        free = [number for number, last in enumerate(until) if last <= stage]
        enough = [number for number in free if sizes[number] >= requests[stage]]
        if enough:
            number = min(enough, key=lambda each: sizes[each])
        elif free:
            number = max(free, key=lambda each: sizes[each])
            sizes[number] = requests[stage]
        else:
            number = len(sizes)
            sizes.append(requests[stage])
            until.append(stage)
        of[stage], until[number] = number, last_reader[stage]
    return Buffers(tuple(sizes), of)


def most_of_a_block(owners: Owners) -> int:
    """The most elements that one block owns.

    owners: of a tensor.

    >>> most_of_a_block(Owners(np.int32([0, 2, 2]), np.int32([0, 0, 1])))
    2
    """
    return int(np.bincount(owners.block).max()) if owners.block.size else 0
