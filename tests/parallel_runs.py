"""Runs of kernels for tests of the parallel device: hand-made ones, and random ones."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np

from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice
from lstmsim.machines.parallel.kernel import CLASSES, Instructions, Kernel, KernelShape, Memory
from tests.oracle.parallel_traffic import Access, Grid

Arrays = Sequence[tuple[str, int]]


def device_with(
    *, sms: int = 2, partitions: int = 2, l2_bytes: int = 6291456, l2_state: str = "cold", **core: int
) -> ParallelDevice:
    """A device; core: numbers of its SMs."""
    cores = (ParallelCore(**core),) * sms
    return ParallelDevice("x", 1, cores, partitions, l2_bytes=l2_bytes, l2_state=l2_state)


def kernel_of(grid: Grid, arrays: Arrays) -> Kernel:
    """The kernel of a grid as the oracle has it, row by row."""
    names = [name for name, _ in arrays]
    first, kind, array, lsu, first_sector, sector = [0], [], [], [], [0], []
    for stream in (stream for block in grid.blocks for stream in block):
        for access in stream:
            kind.append(CLASSES.index(access.op if access else "alu"))
            array.append(names.index(access.array) if access else -1)
            lsu.append(len({each // 4 for each in access.sectors}) if access else 0)
            sector += access.sectors if access else []
            first_sector.append(len(sector))
        first.append(len(kind))
    n = len(kind)
    text = Instructions(
        np.array(first, np.int64),
        np.array(kind, np.int8),
        np.ones(n, np.int32),
        np.zeros(n + 1, np.int64),
        np.zeros(0, np.int32),
    )
    return Kernel(
        KernelShape("k", grid.warps, grid.registers, grid.shared, ordered=tuple(sorted(grid.ordered))),
        np.array(grid.sm, np.int32),
        text,
        np.array(lsu, np.int32),
        np.array(array, np.int8),
        np.array(first_sector, np.int64),
        np.array(sector, np.int32),
    )


def memories(arrays: Arrays) -> tuple[Memory, ...]:
    """The arrays as a run declares them."""
    return tuple(Memory(name, elements) for name, elements in arrays)


def random_device(random: Random) -> ParallelDevice:
    """A small device: caches that hold much, little or nothing of what random kernels touch."""
    return device_with(
        sms=random.randint(1, 3),
        partitions=random.randint(1, 4),
        l1_bytes=random.choice([0, 96, 256, 640, 2048, 131072]),
        l2_bytes=random.choice([32, 160, 512, 1024, 4096, 6291456]),
        l2_state=random.choice(["cold", "warm"]),
        max_blocks=random.randint(1, 3),
        max_warps=random.randint(3, 8),
        shared_bytes=1024,
    )


def random_arrays(random: Random) -> list[tuple[str, int]]:
    """A few small arrays."""
    return [(name, random.choice([1, 8, 65, 200, 700])) for name in "abcd"[: random.randint(1, 4)]]


def random_grid(random: Random, arrays: Arrays, sms: int) -> Grid:
    """A kernel of random accesses, some of whose arrays it only reads, some ordered."""
    warps = random.randint(1, 3)
    pinned = random.choice([0.0, 0.3, 1.0])
    writing = random.choice([0.0, 0.1, 0.5])
    read_only = {name for name, _ in arrays if random.random() < 0.5}
    blocks = random.randint(0, 8)

    def access() -> Access | None:
        name, elements = random.choice(arrays)
        op = random.choice(["stg", "atom"]) if random.random() < writing and name not in read_only else "ldg"
        last = -(-elements // 8) - 1
        if random.random() < 0.3:
            return None
        sectors = sorted(random.randint(0, last) for _ in range(random.randint(0, 6)))
        return Access(op, name, sectors if op == "atom" else sorted(set(sectors)))

    return Grid(
        warps,
        random.choice([0, 32]),
        random.choice([0, 0, 100, 300]),
        {name for name, _ in arrays if random.random() < 0.3},
        [random.randrange(sms) if random.random() < pinned else -1 for _ in range(blocks)],
        [[[access() for _ in range(random.randint(0, 5))] for _ in range(warps)] for _ in range(blocks)],
    )
