"""What accesses cost on the parallel device, by section 5 of docs/parallel_device.md: loops, sets and lists alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LINE, SECTOR = 128, 32


@dataclass
class Access:
    """A global access of one instruction: what the lanes touch and what that costs."""

    op: str
    array: str
    sectors: list[int]
    through: int = 0
    misses: dict[int, int] = field(default_factory=dict)
    in_l1: bool = False
    in_l2: bool = False


@dataclass
class Grid:
    """A kernel: blocks of streams of accesses; None stands for any other instruction."""

    warps: int
    registers: int
    shared: int
    ordered: set[str]
    sm: list[int]
    blocks: list[list[list[Access | None]]]


def lines_and_sectors(addresses: list[int]) -> tuple[int, list[int]]:
    """Rule 2: how many lines, and which sectors, the addresses of the active lanes lie in."""
    return len({address // LINE for address in addresses}), sorted({address // SECTOR for address in addresses})


def wavefronts(addresses: list[int | None], vector: int, banks: int) -> int:
    """Rule 3: groups of lanes, and for each the worst bank's distinct words."""
    size = len(addresses) // vector
    total = 0
    for group in range(vector):
        words: dict[int, set[int]] = {}
        for address in addresses[group * size : (group + 1) * size]:
            if address is not None:
                for word in range(address // 4, address // 4 + vector):
                    words.setdefault(word % banks, set()).add(word)
        total += max((len(each) for each in words.values()), default=0)
    return max(total, 1)


def places_of(arrays: list[tuple[str, int]]) -> dict[str, int]:
    """Rule 1: the address of each array."""
    places, end = {}, 0
    for name, elements in arrays:
        while end % 256:
            end += 1
        places[name] = end
        end += 4 * elements
    return places


def cost(arrays: list[tuple[str, int]], kernels: list[Grid], device: Any) -> None:
    """Rules 4 and 5: fills in what each access costs."""
    base = {name: place // SECTOR for name, place in places_of(arrays).items()}
    everything = {(access.array, sector) for grid in kernels for access in _accesses(grid) for sector in access.sectors}
    fits = SECTOR * len(everything) <= device.l2_bytes
    earlier: set[tuple[str, int]] = set()
    for grid in kernels:
        _cost_of(grid, base, fits, earlier, device)
        earlier |= {(access.array, sector) for access in _accesses(grid) for sector in access.sectors}


def resident_of(grid: Grid, device: Any) -> int:
    """Section 3.2: how many blocks are on an SM at once."""
    limits = [device.core.max_blocks, device.core.max_warps // grid.warps]
    if grid.registers > 0:
        limits.append(device.core.registers // (grid.warps * _rounded(grid.registers * device.core.warp)))
    if grid.shared > 0:
        limits.append(device.core.shared_bytes // _rounded(grid.shared))
    return int(min(limits))


def _rounded(size: int) -> int:
    while size % 256:
        size += 1
    return size


def _accesses(grid: Grid) -> list[Access]:
    return [access for block in grid.blocks for stream in block for access in stream if access is not None]


def _cost_of(grid: Grid, base: dict[str, int], fits: bool, earlier: set[tuple[str, int]], device: Any) -> None:
    resident, shared = resident_of(grid, device), _rounded(grid.shared)
    queues: list[list[int]] = [[] for _ in range(device.sms)]
    for block, sm in enumerate(grid.sm):
        queues[block % device.sms if sm < 0 else sm].append(block)
    cohorts = [(at // resident, queue[at : at + resident]) for queue in queues for at in range(0, len(queue), resident)]
    room = device.core.l1_bytes - resident * shared
    written = {access.array for access in _accesses(grid) if access.op != "ldg"}
    reaching: list[tuple[tuple[int, int, int, int], Access, list[int]]] = []
    for wave, blocks in cohorts:
        places = {
            (place, block, warp): access
            for block in blocks
            for warp, stream in enumerate(grid.blocks[block])
            for place, access in enumerate(stream)
            if access is not None
        }
        loads = [access for access in places.values() if access.op == "ldg" and access.array not in written]
        held = set()
        for array in {access.array for access in loads}:
            distinct = {sector for access in loads if access.array == array for sector in access.sectors}
            if SECTOR * len(distinct) <= room or (room > 0 and array in grid.ordered):
                held.add(array)
        touched: set[tuple[str, int]] = set()
        for place, block, warp in sorted(places):
            access = places[place, block, warp]
            rest = access.sectors
            if access.op == "ldg" and access.array in held:
                rest = [sector for sector in access.sectors if (access.array, sector) not in touched]
                touched |= {(access.array, sector) for sector in access.sectors}
                access.in_l1 = len(rest) < len(access.sectors)
            reaching.append(((wave, place, block, warp), access, rest))
    _reach_l2(grid, reaching, base, fits, earlier, device)


def _reach_l2(
    grid: Grid,
    reaching: list[tuple[tuple[int, int, int, int], Access, list[int]]],
    base: dict[str, int],
    fits: bool,
    earlier: set[tuple[str, int]],
    device: Any,
) -> None:
    own: dict[str, set[int]] = {}
    for access in _accesses(grid):
        own.setdefault(access.array, set()).update(access.sectors)
    seen: set[tuple[str, int]] = set()
    for _, access, rest in sorted(reaching, key=lambda each: each[0]):
        access.through = len(set(rest))
        access.misses, access.in_l2 = {}, False
        for sector in rest:
            partition = (base[access.array] + sector) * SECTOR // LINE % device.partitions
            size = SECTOR * len(own[access.array])
            if size > device.l2_bytes and sector * SECTOR // LINE * device.l2_bytes % size >= device.l2_bytes:
                missing = True
            else:
                first = (access.array, sector) not in seen
                known = fits and (device.l2_state == "warm" or (access.array, sector) in earlier)
                missing = first and not known
            if access.op == "atom" or missing:
                access.misses[partition] = access.misses.get(partition, 0) + 1
            elif not missing:
                access.in_l2 = True
        seen |= {(access.array, sector) for sector in rest}
