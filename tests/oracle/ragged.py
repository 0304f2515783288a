"""A plain model of one ragged batch of LSTMs on a column-wise NPU, tile by tile, from docs/batching.md and timing.md.

One core of one thread with EP 4, VP 16 and a tail at least 4 wide: a row block has 4 units, which the tail takes in a
cycle. Sums reach the tail 16 cycles after the last tile, h is visible 36 cycles after the tail's cycle (section 11, A).

Weights may come from a memory (timing.md, section 10): those that stay before the first tile, a streamed row block in
every step, once for all members: its first tile waits, and its place is free when its last tile has issued.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

EP, UNITS, TO_TAIL, TO_VISIBLE = 4, 4, 16, 36
#: A pass of a layer: width of its input, hidden units, and whether steps descend.
Pass = tuple[int, int, bool]
#: Of each element of a vector, the cycle from which it is visible.
Vector = list[int]


@dataclass
class Moved:
    """Weights from a memory: room for `room` weights, `rate` of them a cycle; `there`: what stays is there."""

    room: int
    rate: Fraction
    latency: int
    places: int
    there: bool
    streamed: set[tuple[int, int, int]] = field(default_factory=set)
    sizes: dict[tuple[int, int, int], int] = field(default_factory=dict)
    free: int = 0
    transfers: int = 0
    freed: list[int] = field(default_factory=list)

    def begin(self, layers: Sequence[Sequence[Pass]]) -> int:
        """Say which row blocks (layer, direction, number) stay; gives the cycle from which tiles may issue."""
        for number, layer in enumerate(layers):
            for direction, (width, hidden, _) in enumerate(layer):
                for block, first in enumerate(range(0, hidden, UNITS)):
                    self.sizes[number, direction, block] = 4 * min(UNITS, hidden - first) * (width + hidden)
        left = self.room
        if sum(self.sizes.values()) > left:
            left -= self.places * max(self.sizes.values())
        for block, size in self.sizes.items():
            if size > left:
                self.streamed.add(block)
            else:
                left -= size
        kept = sum(size for block, size in self.sizes.items() if block not in self.streamed)
        if self.there or not kept:
            return 0
        self.free = self.cycles(kept)
        return self.free + self.latency

    def cycles(self, weights: int) -> int:
        return max(1, -(-weights * self.rate.denominator // self.rate.numerator))

    def transfer(self, block: tuple[int, int, int]) -> int:
        """Transfer a row block as soon as there is a place; gives the cycle from which it can be used."""
        before = self.transfers - self.places
        start = max(self.free, self.freed[before]) if before >= 0 else self.free
        self.transfers += 1
        self.free = start + self.cycles(self.sizes[block])
        return self.free + self.latency


def finishes(
    layers: Sequence[Sequence[Pass]], steps: Sequence[int], banks: int, by_column: bool, moved: Moved | None = None
) -> list[int]:
    """The finish of each member, in the order of `steps`, which descend; each layer is its passes, forward first."""
    machine = _Machine(banks)
    loaded = moved.begin(layers) if moved else 0
    done = [0] * len(steps)
    below: list[list[Vector]] = [[[0] * layers[0][0][0]] * count for count in steps]
    for number, layer in enumerate(layers):
        outs = []
        for direction, (_, hidden, backward) in enumerate(layer):
            out: list[dict[int, Vector]] = [{} for _ in steps]
            times = range(steps[0])
            for t in reversed(times) if backward else times:
                members = [m for m, count in enumerate(steps) if count > t]
                last = {m: out[m].get(t + 1 if backward else t - 1, [0] * hidden) for m in members}
                for m in members:
                    out[m][t] = [0] * hidden
                for block, m, tiles in _order(members, {m: [*below[m][t]] for m in members}, last, hidden, by_column):
                    there, first, last_tile = tiles
                    place = number, direction, block
                    streamed = moved if moved and place in moved.streamed else None
                    if streamed and first and m == members[0]:
                        there = max(there, streamed.transfer(place))
                    visible = machine.tile((block, m), max(there, loaded), first, last_tile)
                    if streamed and last_tile and m == members[-1]:
                        streamed.freed.append(machine.now + 1)
                    if visible:
                        for unit in range(block * UNITS, min(block * UNITS + UNITS, hidden)):
                            out[m][t][unit] = visible
                        done[m] = max(done[m], visible)
            outs.append(out)
        below = [[[each for out in outs for each in out[m][t]] for t in range(count)] for m, count in enumerate(steps)]
    return done


def _order(
    members: list[int], x: dict[int, Vector], h: dict[int, Vector], hidden: int, by_column: bool
) -> Iterator[tuple[int, int, tuple[int, bool, bool]]]:
    """Tiles as (row block, member, (elements there from, first, last of its sums)), in their order."""
    blocks = range(-(-hidden // UNITS))
    for outer in [0] if by_column else blocks:
        for m in members:
            groups = [max(v[at : at + EP]) for v in (x[m], h[m]) for at in range(0, len(v), EP)]
            for number, there in enumerate(groups):
                for block in blocks if by_column else [outer]:
                    yield block, m, (there, number == 0, number == len(groups) - 1)


class _Machine:
    """The array, the banks of the thread, and the tail."""

    def __init__(self, banks: int) -> None:
        self.now, self.tail = -1, -1
        self.banks = [0] * banks
        self.freed: list[int] = []
        self.taken = 0

    def tile(self, sums: tuple[int, int], there: int, first: bool, last: bool) -> int:
        """Issue a tile; gives the cycle from which the units of its row block are visible, 0 before the last one."""
        self.now = max(self.now + 1, there)
        if first:
            # the k-th bank taken is free again when the (k - banks)-th was given back
            if self.taken >= len(self.banks):
                self.now = max(self.now, self.freed[self.taken - len(self.banks)])
            self.taken += 1
        if not last:
            return 0
        self.tail = max(self.tail + 1, self.now + TO_TAIL)
        self.freed.append(self.tail + 1)
        return self.tail + TO_VISIBLE
