"""The machine of a program of kernels: cores and units, and how large numbers of operations can get.

Cores: the SMs, in order; one that stands for all memory partitions and the sync unit; the dispatcher; the host.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import Priced
from lstmsim.program.policy import POLICIES

__all__ = ["CAPACITY", "DISPATCHER", "HOST", "MEMORY", "SM", "Places", "bounds", "machine_tables", "unit_names"]

#: What an SM has for the contents of its blocks: so much that a block's share of it says how many there may be.
CAPACITY = 1 << 40
#: Kinds of cores.
SM, MEMORY, DISPATCHER, HOST = range(4)


class Places:
    """Where tasks may run: tables of groups, places and seats.

    sms: how many SMs there are.

    >>> places = Places(2)
    >>> places.group(1, None), places.group(1, 1), places.alone(3), places.tables["places"]
    (0, 1, 2, [[0, 3], [3, 3], [6, 1]])
    """

    def __init__(self, sms: int) -> None:
        self.sms = sms
        self.tables: dict[str, list[list[int]]] = {name: [] for name in ("groups", "places", "seats")}
        self._groups: dict[tuple[int, int | None], int] = {}
        self._of_warps: dict[int, int] = {}

    def group(self, warps: int, sm: int | None) -> int:
        """The row of the group for blocks of so many warps, on one SM or (None) on any."""
        if warps not in self._of_warps:
            self._of_warps[warps] = len(self.tables["places"])
            for each in range(self.sms):
                self._place([each] * warps + [self.sms] * warps + [self.sms + 1])
        first = self._of_warps[warps]
        return self._group((warps, sm), [first, self.sms] if sm is None else [first + sm, 1])

    def alone(self, core: int) -> int:
        """The row of the group for tasks on one thread of a core."""
        if (0, core) not in self._groups:
            self._place([core])
        return self._group((0, core), [len(self.tables["places"]) - 1, 1])

    def seats_of(self, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many seats each place of some groups has."""
        firsts = np.array(self.tables["groups"])[groups, 0]
        seats: NDArray[np.int64] = np.array(self.tables["places"])[firsts, 1]
        return seats

    def _group(self, key: tuple[int, int | None], row: list[int]) -> int:
        if key not in self._groups:
            self._groups[key] = len(self.tables["groups"])
            self.tables["groups"].append(row)
        return self._groups[key]

    def _place(self, cores: list[int]) -> None:
        self.tables["places"].append([len(self.tables["seats"]), len(cores)])
        self.tables["seats"] += [[core] for core in cores]


def machine_tables(device: Device) -> tuple[list[list[int]], list[list[int]]]:
    """The rows of `cores` and `units`."""
    number = {name: place for place, name in enumerate(POLICIES)}
    policy, fifo = number[device.warp_policy], number["fifo"]
    cores, units = [], []
    for sm in range(device.sms):
        cores.append([SM, device.max_warps, 3 * sm, 3, 0, CAPACITY, 0, 0, 0, 0])
        units += [[policy, 0, device.schedulers], [fifo, 0, 1], [fifo, 0, 1]]
    memory = 2 * device.partitions + 1
    first = len(units)
    cores.append([MEMORY, device.sms * device.max_warps, first, memory, -1, -1, 1, 1, 0, 0])
    cores.append([DISPATCHER, device.sms * device.max_warps, first + memory, 1, -1, -1, 1, 0, 0, 0])
    cores.append([HOST, 1, first + memory + 1, 1, -1, -1, 1, 0, 0, 0])
    units += [[fifo, 0, 1]] * (memory + 2)
    return cores, units


def bounds(device: Device, kernels: Sequence[Priced]) -> tuple[int, int]:
    """More than any count or number of cycles of an operation, and more than any delay of a need."""
    sectors, cycles = device.port
    tops = [device.dispatch, device.dram, device.atomic, 2]
    for kernel in kernels:
        numbers = kernel.numbers
        tops += [_top(kernel.instructions.count), _top(numbers.lsu), -(-_top(numbers.sectors) * cycles // sectors)]
        tops.append(_top(numbers.missing) * max(device.dram, device.atomic))
        tops.append(len(kernel.instructions.kind) if kernel.shape.persistent else 0)
    most = max(tops) + 1
    latency = max(getattr(device.latencies, name) for name in vars(device.latencies))
    return most, most + max(latency, device.grid, device.start) + device.start + 1


def _top(values: NDArray[np.int32]) -> int:
    return int(values.max(initial=0))


def unit_names(device: Device) -> tuple[tuple[str, bool, str], ...]:
    """Of each unit its name, whether timelines show it, and the name of the way of its results."""
    partitions = range(device.partitions)
    memory = (*(f"dram{each}" for each in partitions), *(f"atomic{each}" for each in partitions), "sync")
    units = (("issue", "lsu", "port"),) * device.sms + (memory, ("dispatcher",), ("host",))
    return tuple((name, name != "host", "") for core in units for name in core)
