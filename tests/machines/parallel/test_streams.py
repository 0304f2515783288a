"""Kernels written for many warps at once, against a writer that goes warp by warp."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lstmsim.machines.parallel.kernel import CLASSES, Kernel, KernelShape
from lstmsim.machines.parallel.writing import streams as writer
from lstmsim.machines.parallel.writing.streams import Grid, Result, Warps, joined, later
from tests.oracle import parallel_traffic as oracle

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "19"))
LANES = 8
ARRAYS = {"a": 0, "b": 2}
Row = tuple[str, int, list[int], int, int, list[int]]


def rows_of(kernel: Kernel) -> list[list[Row]]:
    """Class, count, waits, load/store cycles, array and sectors of each instruction of each stream."""
    text = kernel.instructions
    return [
        [
            (
                CLASSES[text.kind[row]],
                int(text.count[row]),
                text.wait[text.first_wait[row] : text.first_wait[row + 1]].tolist(),
                int(kernel.lsu[row]),
                int(kernel.array[row]),
                kernel.sector[kernel.first_sector[row] : kernel.first_sector[row + 1]].tolist(),
            )
            for row in range(text.first[stream], text.first[stream + 1])
        ]
        for stream in range(len(text.first) - 1)
    ]


@dataclass
class Naive:
    """Streams as lists, and for each result that the writer returned the place by stream."""

    streams: list[list[Row]]
    places: list[dict[int, int]] = field(default_factory=list)
    results: list[Result | None] = field(default_factory=list)

    def write(
        self,
        numbers: list[int],
        op: str,
        counts: list[int],
        waits: list[int | None],
        tables: dict[str, list[list[int]]],
    ) -> None:
        """One instruction for each of these streams; tables: addresses by "shared" or name of an array and vector."""
        places = {}
        for at, stream in enumerate(numbers):
            own = [self.places[each][stream] for each in waits if each is not None and stream in self.places[each]]
            lsu, array, sectors = 0, -1, []
            for key, table in tables.items():
                name, vector = key.split()
                active = [each for each in table[at] if each >= 0]
                if name == "shared":
                    lsu = oracle.wavefronts([each if each >= 0 else None for each in table[at]], int(vector), 32)
                else:
                    touched = [4 * each + byte for each in active for byte in range(4 * int(vector))]
                    lsu, sectors = oracle.lines_and_sectors(touched)
                    array = ARRAYS[name]
                    if op == "atom":
                        sectors = sorted(each // 8 for each in active)
            places[stream] = len(self.streams[stream])
            self.streams[stream].append((op, counts[at], own, lsu, array, sectors))
        self.places.append(places)


def random_step(random: Random, every: list[Warps], naive: Naive) -> None:
    """Some warps write something, in both ways."""
    warps = random.choice(every)
    n, numbers = len(warps), warps.numbers.tolist()
    picked = [random.choice([None, *range(len(naive.results))]) for _ in range(random.randint(0, 3))]
    waits = [None if each is None else naive.results[each] for each in picked]
    op = random.choice([*CLASSES, "ldg", "ldg", "ldg_if", "stg_if", "atom_if"])
    ones = [1] * n
    if op in ("alu", "fma", "sfu"):
        counts = [random.randint(1, 4) for _ in range(n)] if random.random() < 0.5 else [3] * n
        result: Result | None = getattr(warps, op)(3 if counts == [3] * n else counts, waits)
        naive.write(numbers, op, counts, picked, {})
    elif op in ("shfl", "bar", "gridbar"):
        result = getattr(warps, op)(waits)
        naive.write(numbers, op, ones, picked, {})
    else:
        result = _access(random, warps, naive, op, picked, waits)
    naive.results.append(result)


def _access(
    random: Random, warps: Warps, naive: Naive, op: str, picked: list[int | None], waits: list[Result | None]
) -> Result | None:
    n, numbers = len(warps), warps.numbers.tolist()
    vector = random.choice([1, 2, 4]) if not op.startswith("atom") else 1
    index = [[vector * random.randrange(60) for _ in range(LANES)] for _ in range(n)]
    on = [[random.random() < 0.4 for _ in range(LANES)] for _ in range(n)]
    one_index, one_on = n > 0 and random.random() < 0.4, n > 0 and random.random() < 0.4
    index, on = [index[0]] * n if one_index else index, [on[0]] * n if one_on else on
    table = [[i if o else -1 for i, o in zip(*each, strict=True)] for each in zip(index, on, strict=True)]
    name = random.choice(list(ARRAYS))
    lanes, active = np.array(index).reshape(n, LANES), np.array(on, bool).reshape(n, LANES)
    # One row stands for all warps, as a table or not.
    lanes = random.choice([lanes, lanes[:1], lanes[0]]) if one_index else lanes
    active = random.choice([active, active[:1], active[0]]) if one_on else active
    extra = {} if op.startswith("atom") else {"vector": vector}
    if op in ("lds", "sts"):
        in_bytes = [[4 * each if each >= 0 else -1 for each in row] for row in table]
        naive.write(numbers, op, [1] * n, picked, {f"shared {vector}": in_bytes})
        return getattr(warps, op)(4 * lanes, active, vector, waits)
    rows = [row for row in range(n) if not op.endswith("_if") or any(on[row])]
    naive.write(
        [numbers[row] for row in rows],
        op.removesuffix("_if"),
        [1] * n,
        picked,
        {f"{name} {vector}": [table[row] for row in rows]},
    )
    return getattr(warps, op)(name, lanes, active, waits, **extra)


def random_parts(random: Random, grid: Grid, streams: int) -> list[Warps]:
    """All warps, parts of these, parts of parts, and some named again by their numbers."""
    every = [grid.warps(np.arange(streams))]
    for _ in range(3):
        base = random.choice(every)
        every.append(base.part(np.array([random.random() < 0.6 for _ in range(len(base))], bool)))
    every.append(grid.warps([each for each in range(streams) if random.random() < 0.5]))
    return every


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 5, 4096]))
def test_random_texts_give_the_streams_that_a_writer_warp_by_warp_gives(seed: int, slabs: int) -> None:
    random = Random(seed)
    pieces, expected = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "_SLABS", slabs)
        for _ in range(random.randint(1, 2)):
            blocks = random.randint(1, 3)
            grid = Grid(LANES, ARRAYS)
            naive = Naive([[] for _ in range(2 * blocks)])
            every = random_parts(random, grid, 2 * blocks)
            for _ in range(random.randint(0, 12)):
                random_step(random, every, naive)
                if len(naive.results) > 1 and random.random() < 0.3:
                    one, two = random.choices(range(len(naive.results)), k=2)
                    naive.places.append(naive.places[one] | naive.places[two])
                    naive.results.append(later(naive.results[one], naive.results[two]))
            pieces.append(grid.kernel(KernelShape("k", 2), np.full(blocks, -1)))
            expected += naive.streams
    for places, result in zip(naive.places, naive.results, strict=True):
        found = {} if result is None else dict(zip(result.numbers.tolist(), result.places.tolist(), strict=True))
        assert found == places
    whole = joined(piece for piece in pieces)
    assert rows_of(whole) == expected
    assert len(whole.sm) * 2 == len(whole.instructions.first) - 1


def test_what_a_part_reads_for_all_is_read_by_the_part() -> None:
    grid = Grid(4, {"x": 0})
    warps = grid.warps([0, 1, 2])
    start = warps.numbers[:, None] * 8
    result = warps.ldg_if("x", start, np.array([[False] * 4, [True] * 4, [False] * 4]))
    assert result is not None
    assert result.numbers.tolist() == [1]
    kernel = grid.kernel(KernelShape("k", 1), [-1] * 3)
    assert kernel.instructions.first.tolist() == [0, 0, 1, 1]
    assert kernel.sector.tolist() == [1]
    assert warps.ldg_if("x", start, False) is None


def test_a_vector_that_is_not_aligned_is_refused() -> None:
    grid = Grid(4, {"x": 0})
    grid.warps([0]).ldg("x", [0, 4, 9, 12], vector=4)
    with pytest.raises(ValueError, match="address 9 of a vector of 4 is not a multiple of 4"):
        grid.kernel(KernelShape("k", 1), [-1])
    grid = Grid(4, {"x": 0})
    grid.warps([0]).lds([0, 8, 20, 24], vector=2)
    with pytest.raises(ValueError, match="address 20 of a vector of 2 is not a multiple of 8"):
        grid.kernel(KernelShape("k", 1), [-1])


def test_a_negative_address_of_a_lane_that_is_on_is_refused() -> None:
    grid = Grid(4, {"x": 0})
    grid.warps([0]).ldg("x", [-1, 0, 1, 2], [False, True, True, True])
    assert grid.kernel(KernelShape("k", 1), [-1]).sector.tolist() == [0]
    grid.warps([0]).ldg("x", [-1, 0, 1, 2])
    with pytest.raises(ValueError, match="address -1 of a lane that is on is negative"):
        grid.kernel(KernelShape("k", 1), [-1])


def test_streams_that_the_grid_has_not_are_refused() -> None:
    grid = Grid(4, {})
    with pytest.raises(ValueError, match="numbers of streams ascend"):
        grid.warps([1, 1])
    grid.warps([3]).alu()
    with pytest.raises(ValueError, match="1 blocks of 2 warps have no stream 3"):
        grid.kernel(KernelShape("k", 2), [-1])


def test_pieces_of_different_kernels_are_not_joined() -> None:
    one, two = (Grid(4, {}).kernel(KernelShape(name, 1), [-1]) for name in "ab")
    with pytest.raises(ValueError, match="pieces of one kernel are wanted, these are of 2"):
        joined([one, two])
    with pytest.raises(ValueError, match="pieces of one kernel are wanted, these are of 0"):
        joined([])
