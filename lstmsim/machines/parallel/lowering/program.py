"""From priced kernels to a flat program, and what its run came to.

Blocks are tasks, barriers order kernels, equal blocks share bodies.

Cores of the program: the SMs, in order; one that stands for all memory partitions and the sync unit; the dispatcher;
the host. `docs/parallel_device.md`, section 7, says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from lstmsim.base.errors import DeadlockError, InputError
from lstmsim.base.records import record
from lstmsim.machines.kernels import ArrayLoads, KernelFigures, KernelSpan
from lstmsim.machines.parallel.device import STALLS, ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS, Ints, Kernel, Narrow, Priced, Run, residency
from lstmsim.machines.parallel.lowering.bodies import block_keys, bodies, picked
from lstmsim.machines.parallel.lowering.prototypes import Numbering, Roles, Writing, need_rows, table_rows
from lstmsim.model.sparse.csr import firsts
from lstmsim.program.flat import FlatProgram, flat_program
from lstmsim.program.flatten import CYCLE_TABLES, FlatNames
from lstmsim.program.policy import POLICIES
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import TASKS, Totals

#: What an SM has for the weight sets of its blocks: so much that a block's share of it says how many there may be.
CAPACITY = 1 << 40
#: Kinds of cores.
SM, MEMORY, DISPATCHER, HOST = range(4)


class Places:
    """Where tasks may run: tables of groups, places and thread slots.

    sms: how many SMs there are.

    >>> places = Places(2)
    >>> places.group(1, None), places.group(1, 1), places.alone(3), places.tables["places"]
    (0, 1, 2, [[0, 3], [3, 3], [6, 1]])
    """

    def __init__(self, sms: int) -> None:
        self.sms = sms
        self.tables: dict[str, list[list[int]]] = {name: [] for name in ("groups", "places", "thread_slots")}
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

    def thread_slots_of(self, groups: Ints) -> Ints:
        """How many thread slots each place of some groups has."""
        firsts = np.array(self.tables["groups"])[groups, 0]
        thread_slots: Ints = np.array(self.tables["places"])[firsts, 1]
        return thread_slots

    def _group(self, key: tuple[int, int | None], row: list[int]) -> int:
        if key not in self._groups:
            self._groups[key] = len(self.tables["groups"])
            self.tables["groups"].append(row)
        return self._groups[key]

    def _place(self, cores: list[int]) -> None:
        self.tables["places"].append([len(self.tables["thread_slots"]), len(cores)])
        self.tables["thread_slots"] += [[core] for core in cores]


def machine_tables(device: ParallelDevice) -> tuple[Ints, Ints]:
    """The rows of `cores` and `units`."""
    number = {name: place for place, name in enumerate(POLICIES)}
    sms, slots, memory = device.sms, device.core.max_warps, 2 * device.partitions + 1
    counts = np.array([3] * sms + [memory, 1, 1])
    first = firsts(counts)
    many = np.array([slots] * sms + [slots * sms] * 2 + [1])
    shared = np.arange(sms + 3) >= sms
    cores = table_rows(
        "cores",
        sms + 3,
        kind=np.array([SM] * sms + [MEMORY, DISPATCHER, HOST]),
        contexts=many,
        first_unit=first[:-1],
        units=counts,
        accounted=np.where(shared, -1, 0),
        capacity=np.where(shared, -1, CAPACITY),
        shared=shared,
        mirrors=np.arange(sms + 3) == sms,
    )
    units = table_rows("units", int(first[-1]), policy=number["fifo"], instances=1)
    schedulers = table_rows("units", 1, policy=number[device.core.warp_policy], instances=device.core.schedulers)
    units[: 3 * sms : 3] = schedulers
    return cores, units


def bounds(device: ParallelDevice, kernels: Sequence[Priced]) -> tuple[int, int]:
    """More than any count or number of cycles of an operation, and more than any delay of a need."""
    sectors, cycles = device.core.port
    tops = [device.dispatch, device.dram, device.atomic, 2]
    for kernel in kernels:
        numbers = kernel.numbers
        tops += [_top(kernel.instructions.count), _top(numbers.lsu), -(-_top(numbers.sectors) * cycles // sectors)]
        tops.append(_top(numbers.missing) * max(device.dram, device.atomic))
        tops.append(len(kernel.instructions.kind) if kernel.shape.persistent else 0)
    most = max(tops) + 1
    latency = max(getattr(device.core.latency, name) for name in vars(device.core.latency))
    return most, most + max(latency, device.grid, device.start) + device.start + 1


def _top(values: Narrow) -> int:
    return int(values.max(initial=0))


def unit_names(device: ParallelDevice) -> tuple[tuple[str, bool, str], ...]:
    """Of each unit its name, whether timelines show it, and the name of the way of its results."""
    partitions = range(device.partitions)
    memory = (*(f"dram{each}" for each in partitions), *(f"atomic{each}" for each in partitions), "sync")
    units = (("issue", "lsu", "port"),) * device.sms + (memory, ("dispatcher",), ("host",))
    return tuple((name, name != "host", "") for core in units for name in core)


def grid_barriers(kernel: Priced) -> int:
    """How many grid barriers each stream of a kernel has; `InputError` if they differ."""
    whole = kernel.instructions
    own = np.flatnonzero(whole.kind == CLASS["gridbar"])
    if not len(own):
        return 0
    counts = np.bincount(np.searchsorted(whole.first, own, side="right") - 1, minlength=len(whole.first) - 1)
    if counts.min() != counts.max():
        raise InputError(f"kernel {kernel.shape.name}: its streams must have the same number of grid barriers")
    if not kernel.shape.persistent:
        raise InputError(f"kernel {kernel.shape.name}: has grid barriers, so it must be persistent")
    return int(counts[0])


def check_kernel(kernel: Priced, device: ParallelDevice, resident: int) -> int:
    """How many grid barriers each stream has; an error if a kernel cannot run: a pin, or barriers that block it."""
    top = int(kernel.sm.max(initial=-1))
    if top >= device.sms:
        raise InputError(f"kernel {kernel.shape.name}: a block is pinned to SM {top}; there are {device.sms}")
    barriers = grid_barriers(kernel)
    blocks = len(kernel.sm)
    worst = int(np.bincount(kernel.sm[kernel.sm >= 0], minlength=device.sms).max(initial=0))
    if kernel.shape.persistent and (blocks > resident * device.sms or (barriers and worst > resident)):
        room = f"{resident} on each of {device.sms} SMs"
        text = f"kernel {kernel.shape.name}: its {blocks} blocks meet at grid barriers and do not fit at once, {room}"
        raise DeadlockError(0, (text,))
    return barriers


#: Rows of instructions that are worked on at once: their tables stay in a cache.
_PIECE = 1 << 16


@record
class DeviceJob:
    """Kernels that run one after the other."""

    name: str  # of the job
    kernels: tuple[Priced, ...]  # in order. A kernel that runs again may be the same object.
    # of each kernel the useful multiply-accumulates of its streams, shape (streams,), or None; empty: none of any
    work: tuple[Ints | None, ...] = ()
    # release, key, key_from_arrival, after: as of `lstmsim.program.program.Task`, by which jobs run one after the other
    release: int = 0
    key: int = 0
    key_from_arrival: bool = False
    after: int | None = None


@record
class KernelTasks:
    """Where a kernel is in a program."""

    job: int  # number of its job
    kernel: Priced  # the kernel
    first: int  # its first task; the others follow, one for each block. An empty grid has one task.
    resident: int  # how many of its blocks an SM holds at once

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return len(self.kernel.sm)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A program of kernels. Its first tasks stand for the jobs, one for each; then come the blocks."""

    flat: FlatProgram  # the program
    names: FlatNames  # what people read of it
    kernels: tuple[KernelTasks, ...]  # where each kernel is, job after job


def program_of_kernels(device: ParallelDevice, kernels: Sequence[Priced], name: str = "run") -> Lowered:
    """The program of kernels that run one after the other."""
    return program_of_jobs(device, [DeviceJob(name, tuple(kernels))])


def program_of_jobs(device: ParallelDevice, jobs: Sequence[DeviceJob]) -> Lowered:
    """The program of jobs that run one after the other, each made of kernels; errors as of `program_of_kernels`."""
    return _Writer(device, jobs).lowered()


class _Writer:
    """The tables of a program on their way."""

    def __init__(self, device: ParallelDevice, jobs: Sequence[DeviceJob]) -> None:
        self.device, self.jobs = device, jobs
        kernels = {id(kernel): kernel for job in jobs for kernel in job.kernels}.values()
        most, delays = bounds(device, list(kernels))
        members = 1 + 2 * max([kernel.shape.warps for kernel in kernels], default=1)
        self.writing = Writing(device, Roles(device, members, most), Numbering(), delays)
        self.places = Places(device.sms)
        self.weight_sets: list[int] = []
        self.rows: dict[str, list[Ints]] = {
            name: [] for name in ("bodies", "phases", "profiles", "variants", "tasks", "words")
        }
        self.count = dict.fromkeys(("bodies", "profiles", "words", "tasks"), 0)
        self.barriers: list[int] = []
        self.known: dict[tuple[int, int, int], int] = {}
        self.profiles: dict[tuple[int, int], Ints] = {}
        self.names: list[str] = []
        self.kernels: list[KernelTasks] = []

    def lowered(self) -> Lowered:
        """The program."""
        device = self.device
        # body 0 has no operation: for jobs and empty grids
        self._add("bodies", table_rows("bodies", 1, first_word=-1))
        nothing = np.zeros(1, dtype=np.int64)
        host = self._profiles(nothing, np.array([self.places.alone(device.sms + 2)]), -1, 0, 0, HOST)
        # a job with kernels has a barrier before each and one after the last
        counts = np.array([len(job.kernels) + 1 if job.kernels else 0 for job in self.jobs], dtype=np.int64)
        barriers, some = firsts(counts), counts > 0
        self.barriers = [1] * int(barriers[-1])
        self._add(
            "tasks",
            table_rows(
                "tasks",
                len(self.jobs),
                profile=host[0],
                release=[job.release for job in self.jobs],
                key=[job.key for job in self.jobs],
                key_from_arrival=[job.key_from_arrival for job in self.jobs],
                after=[-1 if job.after is None else job.after for job in self.jobs],
                behind=-1,
                starts=np.where(some, barriers[:-1], -1),
                ends=-1,
                until=np.where(some, barriers[1:] - 1, -1),
            ),
        )
        self.names += [job.name for job in self.jobs]
        for number, job in enumerate(self.jobs):
            for place, kernel in enumerate(job.kernels):
                self._kernel(number, place, kernel, int(barriers[number]) + place)
        return Lowered(self._flat(), self._flat_names(), tuple(self.kernels))

    def _add(self, table: str, rows: Ints) -> None:
        self.rows[table].append(rows)
        self.count[table] += len(rows)

    def _kernel(self, job: int, number: int, kernel: Priced, behind: int) -> None:
        """Write the tasks of a kernel."""
        resident = residency(kernel.shape, self.device)
        blocks = len(kernel.sm)
        barriers = check_kernel(kernel, self.device, resident)
        self.kernels.append(KernelTasks(job, kernel, self.count["tasks"], resident))
        self.barriers[behind + 1] = max(blocks, 1)
        name = f"{self.jobs[job].name}/{number} {kernel.shape.name}"
        if blocks:
            work = self.jobs[job].work
            profile = self._profiles_of(kernel, work[number] if work else None, resident, barriers)
            self.names += [f"{name}/{block}" for block in range(blocks)]
        else:
            group = np.array([self.places.alone(self.device.sms + 1)])
            profile = self._profiles(np.zeros(1, dtype=np.int64), group, -1, 0, 0, DISPATCHER)
            self.names.append(name)
        barrier = {"after": -1, "behind": behind, "starts": -1, "ends": behind + 1, "until": -1}
        self._add("tasks", table_rows("tasks", len(profile), profile=profile, release=self.device.launch, **barrier))

    def _profiles_of(self, kernel: Priced, work: Ints | None, resident: int, barriers: int) -> Ints:
        """The profile of each block of a kernel. Kernels that are one object share them, unless they have barriers."""
        key = (id(kernel), id(work))
        profiles = None if barriers else self.profiles.get(key)
        if profiles is None:
            warps = kernel.shape.warps
            free = self.places.group(warps, None)
            pinned = {sm: self.places.group(warps, sm) for sm in np.unique(kernel.sm).tolist() if sm >= 0}
            group = np.full(self.device.sms + 1, free)
            for sm, row in pinned.items():
                group[sm] = row
            first_barrier = len(self.barriers)
            self.barriers += [len(kernel.sm)] * barriers
            if resident not in self.weight_sets:
                self.weight_sets.append(resident)
            weight_set, own = self.weight_sets.index(resident), self._bodies(kernel, work)
            profiles = self._profiles(own, group[kernel.sm], weight_set, first_barrier, barriers, SM)
            if not barriers:
                self.profiles[key] = profiles
        return profiles

    def _profiles(self, body: Ints, group: Ints, weight_set: int, first_barrier: int, barriers: int, kind: int) -> Ints:
        """Write profiles with a variant and a phase each, for the distinct pairs of bodies and groups."""
        groups = int(group.max(initial=0)) + 1
        pairs, inverse = np.unique(body * groups + group, return_inverse=True)
        n, first = len(pairs), self.count["profiles"]
        own = np.arange(first, first + n)
        profiles = table_rows(
            "profiles",
            n,
            group=pairs % groups,
            weight_set=weight_set,
            queue_limit=-1,
            patience=-1,
            pool=-1,
            first_variant=own,
            variants=1,
            # there are no moldable variants, and their first row must be one that could be there
            first_moldable=own,
        )
        self._add("profiles", profiles)
        variant = {"members": self.places.thread_slots_of(pairs % groups), "first_phase": own, "phases": 1}
        self.rows["variants"].append(table_rows("variants", n, kind=kind, **variant))
        phase = {"body": pairs // groups, "repeat": 1, "first_barrier": first_barrier, "barriers": barriers}
        self.rows["phases"].append(table_rows("phases", n, **phase))
        each: Ints = own[inverse.ravel()]
        return each

    def _bodies(self, kernel: Priced, work: Ints | None) -> Ints:
        """The body of each block of a kernel; those that are new are written."""
        warps = kernel.shape.warps
        first = kernel.instructions.first[::warps]
        rows = np.empty(len(kernel.sm), dtype=np.int64)
        begin = 0
        while begin < len(rows):
            end = max(begin + 1, int(np.searchsorted(first, first[begin] + _PIECE, side="right")) - 1)
            blocks = np.arange(begin, min(end, len(rows)))
            some = picked(kernel, blocks, work)
            keys = [(warps, *pair) for pair in block_keys(some).tolist()]
            new = [number for number, key in enumerate(keys) if self._is_new(key)]
            if new:
                alone = some if len(new) == len(blocks) else picked(kernel, blocks[new], work)
                made, (operations, words) = bodies(self.writing, alone)
                begins = self.count["words"] + np.cumsum(words) - words
                sizes = {"operations": operations, "first_word": begins, "words": words}
                self._add("bodies", table_rows("bodies", len(new), first_operation=-1, **sizes))
                self._add("words", made)
            rows[blocks] = [self.known[key] for key in keys]
            begin = int(blocks[-1]) + 1
        return rows

    def _is_new(self, key: tuple[int, int, int]) -> bool:
        if key in self.known:
            return False
        # body 0 is the empty one
        self.known[key] = 1 + len(self.known)
        return True

    def _flat(self) -> FlatProgram:
        # the numbers of a body's words are many: they are laid out once more when all tables are joined, then forgotten
        words = self.rows.pop("words")
        cores, units = machine_tables(self.device)
        return flat_program(
            {
                **CYCLE_TABLES,
                **self.places.tables,
                "weight_sets": [[-1, CAPACITY // resident] for resident in self.weight_sets],
                **{name: np.concatenate([table_rows(name, 0), *rows]) for name, rows in self.rows.items()},
                "cores": cores,
                "units": units,
                "words": np.concatenate(words) if words else (),
                "operations": self.writing.roles.table()[0],
                "needs": need_rows(self.writing.needs.codes, self.writing.delays),
                "barriers": self.barriers,
            }
        )

    def _flat_names(self) -> FlatNames:
        return FlatNames(
            tasks=tuple(self.names),
            units=unit_names(self.device),
            buffers=(),
            operations=self.writing.roles.table()[1],
            held=((),) * (self.device.sms + 3),
        )


#: Names of scheduler-cycles -> the names of cycles that they are in a program.
ACCOUNTS: Mapping[str, str] = {"issue": "busy", **{name: name for name in (*STALLS, "drain")}, "empty": "idle"}


F = TypeVar("F", bound=KernelFigures)


def figures_of(kind: type[F], device: ParallelDevice, lowered: Lowered, totals: Totals, **more: Any) -> F:
    """The figures of the run of a program.

    kind: the class of the figures. more: its further fields.
    """
    cycles = totals.cycles[: device.sms]
    accounts = {name: cycles[:, CYCLE_NAMES.index(own)] for name, own in ACCOUNTS.items()}
    kernels: list[KernelSpan] = []
    blocks: list[tuple[int, int, int]] = []
    for each in lowered.kernels:
        rows = totals.tasks[each.first : each.first + max(each.blocks, 1)]
        ends = TASKS.of(rows, "finish")
        arrives = int(TASKS.of(rows, "arrived").min())
        kernels.append(KernelSpan(each.kernel.shape.name, each.blocks, arrives, int(ends.max())))
        if each.blocks:
            columns = (TASKS.of(rows, "core"), TASKS.of(rows, "admitted"), ends)
            blocks += zip(*(column.tolist() for column in columns), strict=True)
    return kind(
        makespan=totals.makespan_cycles,
        kernels=tuple(kernels),
        busy=tuple(accounts["issue"].tolist()),
        accounts={name: int(cycles.sum()) for name, cycles in accounts.items()},
        account_cycles=device.sms * device.core.schedulers * totals.makespan_cycles,
        blocks=tuple(blocks),
        **more,
    )


_LDG, _STG, _ATOM = (CLASS[name] for name in ("ldg", "stg", "atom"))


@record
class Traffic:
    """What the accesses of a run bring, in sectors of 32 bytes."""

    # `load_requests`, `ldg` instructions; `requests`, these, `stg` and `atom`; `l1_sectors`, loaded sectors that L1
    # answers; `l2_sectors`, through the ports, stores and atomics included; `dram_sectors`, sectors that L2 has not,
    # stores included (atomics have none)
    counts: Mapping[str, int]
    # of each array, in the order in which arrays are declared, those that nobody loads included
    loads: tuple[ArrayLoads, ...]


def traffic_of(run: Run, kernels: tuple[Priced, ...]) -> Traffic:
    """The traffic of a run, summed over its kernels, which are priced."""
    arrays = len(run.arrays)
    loads, others = np.zeros((4, arrays), np.int64), np.zeros((4, arrays), np.int64)
    times = Counter(id(each) for each in kernels)
    # A kernel that is priced once stands in the run under one object.
    for kernel, each in {id(each): (kernel, each) for kernel, each in zip(run.kernels, kernels, strict=True)}.values():
        load = kernel.instructions.kind == _LDG
        other = (kernel.instructions.kind == _STG) | (kernel.instructions.kind == _ATOM)
        often = times[id(each)]
        loads += often * _by_array(kernel, each, np.flatnonzero(load), arrays)
        others += often * _by_array(kernel, each, np.flatnonzero(other), arrays)
    levels = ("L1", "L2", "DRAM")
    names, rows = (each.name for each in run.arrays), loads.T.tolist()
    by_array = tuple(
        ArrayLoads(name, requests, dict(zip(levels, sectors, strict=True)))
        for name, (requests, *sectors) in zip(names, rows, strict=True)
    )
    requests, l1, l2, dram = loads.sum(axis=1).tolist()
    more_requests, _, more_l2, more_dram = others.sum(axis=1).tolist()
    counts = {"load_requests": requests, "requests": requests + more_requests, "l1_sectors": l1}
    return Traffic(counts | {"l2_sectors": l2 + more_l2, "dram_sectors": dram + more_dram}, by_array)


def _by_array(kernel: Kernel, each: Priced, rows: Ints, arrays: int) -> Ints:
    """Shape (4, arrays); requests, sectors of L1, L2 and DRAM of some accesses."""
    numbers, array = each.numbers, kernel.array[rows]
    touched = kernel.first_sector[rows + 1] - kernel.first_sector[rows]
    dram = firsts(numbers.missing)
    missed = dram[numbers.first_miss[rows + 1]] - dram[numbers.first_miss[rows]]
    missed[kernel.instructions.kind[rows] == _ATOM] = 0  # Its numbers are lanes.
    sectors = numbers.sectors[rows]
    columns = (np.ones(len(rows)), touched - sectors, sectors, missed)
    return np.stack([np.bincount(array, column, arrays) for column in columns]).astype(np.int64)
