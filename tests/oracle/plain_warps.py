"""Warps of the sparse kernels written down one by one, as docs/sparse_kernels.md says it: slow, nothing shared.

An instruction is [class, count, waits, cycles of the load/store unit, array, sectors]. A lane that is off is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Lanes = Sequence[int | None]


class Warp:
    """The stream of one warp."""

    def __init__(self, lanes: int, banks: int = 32) -> None:
        self.lanes, self.banks = lanes, banks
        self.stream: list[list[Any]] = []

    def put(self, kind: str, count: int = 1, waits: Sequence[int | None] = ()) -> int:
        self.stream.append([kind, count, [each for each in waits if each is not None], 0, "", []])
        return len(self.stream) - 1

    def memory(
        self, kind: str, array: str, elements: Lanes, waits: Sequence[int | None], vector: int = 1
    ) -> int | None:
        """A load or store of device memory; nothing is issued if no lane is on."""
        on = [each for each in elements if each is not None]
        if not on:
            return None
        assert all(each % vector == 0 for each in on)
        touched = {element + more for element in on for more in range(vector)}
        place = self.put(kind, 1, waits)
        self.stream[place][3:] = [
            len({each * 4 // 128 for each in touched}),
            array,
            sorted({each * 4 // 32 for each in touched}),
        ]
        return place

    def shared(self, kind: str, addresses: Lanes, waits: Sequence[int | None], vector: int = 1) -> int:
        """A load or store of shared memory."""
        place, total, group = self.put(kind, 1, waits), 0, self.lanes // vector
        for start in range(0, self.lanes, group):
            words = {
                each // 4 + more
                for each in addresses[start : start + group]
                if each is not None
                for more in range(vector)
            }
            total += max((sum(word % self.banks == bank for word in words) for bank in range(self.banks)), default=0)
        self.stream[place][3] = max(1, total)
        return place


Row = list[tuple[int, int]]


def grid_of(
    loads: list[list[int]], lists: list[list[int]], dispatch: str, sms: int
) -> list[tuple[int, list[int], int | None]]:
    """The blocks in grid order: tile, rows, SM. `loads` has a row for each tile, `lists` the rows of each bundle."""
    natural = [(tile, rows) for tile in range(len(loads)) for rows in lists]
    n = len(natural)
    if dispatch == "demand":
        return [(tile, rows, None) for tile, rows in natural]
    if dispatch == "static":
        return [(tile, rows, i * sms // n) for i, (tile, rows) in enumerate(natural)]
    weight = [sum(loads[tile][row] for row in rows) for tile, rows in natural]
    ranked = sorted(range(n), key=lambda i: (-weight[i], i))
    placed = []
    for rank, i in enumerate(ranked):
        turn, place = divmod(rank, sms)
        placed.append((*natural[i], sms - 1 - place if dispatch != "round" and turn % 2 else place))
        if dispatch == "hybrid" and rank >= n // 2:
            placed[-1] = (*natural[i], -1)
    return placed


def in_order(lengths: list[int], order: str) -> list[int]:
    """Rows as they are, or longest first."""
    rows = list(range(len(lengths)))
    return sorted(rows, key=lambda row: (-lengths[row], row)) if order == "sorted" else rows


def bundles_of(order: list[int], size: int) -> list[list[int]]:
    return [order[start : start + size] for start in range(0, len(order), size)]


def spread(per_row: Sequence[int | None], lanes: int, subwarps: int) -> list[int | None]:
    """One element for each lane, of one for each row of the warp; rows that are not there are None."""
    return [per_row[s] if s < len(per_row) else None for s in range(subwarps) for _ in range(lanes)]


def pointers(
    warp: Warp, options: dict[str, Any], rows: list[int], first: int, shape: tuple[int, int], dcsr: bool = False
) -> tuple[int | None, int | None, int | None]:
    """From the rows' places to p0, p1 and, of DCSR, rn: `a0` is the last instruction."""
    lanes, subwarps = shape
    a0: int | None = len(warp.stream) - 1
    if options.get("bar"):
        a0 = len(warp.stream) - 2
    if options["order"] == "sorted":
        a0 = warp.memory("ldg", "perm", spread([first + s for s in range(len(rows))], lanes, subwarps), [a0])
    p0 = warp.memory("ldg", "row_ptr", spread(rows, lanes, subwarps), [a0])
    p1 = warp.memory("ldg", "row_ptr", spread([row + 1 for row in rows], lanes, subwarps), [a0])
    rn = warp.memory("ldg", "rows", spread(rows, lanes, subwarps), [a0]) if dcsr else None
    return p0, p1, rn
