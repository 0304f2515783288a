"""Prototypes of operations and needs: what a packed body's words name, each once for the whole program.

An operation is a role (which unit, what it tells of its result), a number (count of arithmetic, cycles of everything
else) and a member (which warp). A need is a delay and a cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lstmsim.base.records import record
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS, CLASSES, Ints, Narrow
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import CAUSE_NUMBERS, need_word

#: Classes that only take a scheduler, several issues in a row.
ARITHMETIC = ("alu", "fma", "sfu")
#: Largest table that is looked up by code; beyond it codes are searched.
_MOST_LOOKED_UP = 1 << 24


class Numbering:
    """Rows for codes, in the order in which codes come for the first time (those of one call: ascending).

    >>> rows = Numbering()
    >>> rows.of(np.array([7, 3, 7])).tolist(), rows.of(np.array([9, 3])).tolist(), rows.codes
    ([1, 0, 1], [2, 0], [3, 7, 9])
    """

    def __init__(self) -> None:
        self.codes: list[int] = []
        self._rows = np.full(1024, -1, dtype=np.int32)
        self._known: dict[int, int] = {}

    def of(self, codes: Ints) -> Narrow:
        """The rows of some codes, which are at least 0."""
        if not len(codes):
            return np.zeros(0, dtype=np.int32)
        top = int(codes.max())
        if top >= _MOST_LOOKED_UP:
            return self._searched(codes)
        if top >= len(self._rows):
            more = np.full(max(top + 1 - len(self._rows), len(self._rows)), -1, dtype=np.int32)
            self._rows = np.concatenate([self._rows, more])
        rows: Narrow = self._rows[codes]
        if rows.min() < 0:
            for code in np.unique(codes[rows < 0]).tolist():
                self._rows[code] = self._row(code)
            rows = self._rows[codes]
        return rows

    def _searched(self, codes: Ints) -> Narrow:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return np.array([self._row(code) for code in distinct.tolist()], dtype=np.int32)[inverse]

    def _row(self, code: int) -> int:
        if code not in self._known:
            self._known[code] = len(self.codes)
            self.codes.append(code)
        return self._known[code]


def table_rows(table: str, n: int, **columns: Any) -> Ints:
    """Rows of a flat table by the names of its columns, numbers or of shape (n,); what is not named is 0.

    >>> table_rows("barriers", 2, arrivals=3).tolist()
    [[3], [3]]
    """
    rows = np.zeros((n, FLAT_TABLES[table].width), dtype=np.int64)
    for name, values in columns.items():
        rows[:, FLAT_TABLES[table].place(name)] = values
    return rows


@record
class _Role:
    """What operations of a role have in common."""

    unit: int  # number of the unit of its core; label: for people
    label: str
    cycles: int = 0  # of an issue; 0: the number
    result: int = 0  # cycles until the results are there; where the number is the cycles, from their end on
    counted: bool = False  # whether the number is a count
    barrier: bool = False  # whether the number is a barrier at which the operation arrives


class Roles:
    """The roles of operations on a device, and the prototypes in use.

    device: the device.
    members: more than any member has as its number.
    most: more than any count or number of cycles.
    issue: shape (classes,); role of each class on the scheduler.
    lsu, port: shape (classes, 2); on the load/store unit and the port; the second one gives a result.
    partition: shape (classes,); on partition 0, of which the others follow.
    sync, dispatch: at the sync unit and the dispatcher.
    quiet: what stands for an empty stream on the scheduler, with number 0.
    """

    def __init__(self, device: ParallelDevice, members: int, most: int) -> None:
        self.device, self.members, self.most = device, members, most
        self.rows, self.works = Numbering(), Numbering()
        # the first number of work is none
        self.works.of(np.zeros(1, dtype=np.int64))
        self._roles: list[_Role] = []
        latency, retire = device.core.latency, device.retire
        self.issue = np.array([self._issue(name) for name in CLASSES])
        self.lsu = np.zeros((len(CLASSES), 2), dtype=np.int64)
        self.port = np.zeros((len(CLASSES), 2), dtype=np.int64)
        self.partition = np.zeros(len(CLASSES), dtype=np.int64)
        then = {"shfl": latency.shuffle, "lds": latency.shared, "sts": latency.shared, "ldg": latency.l1}
        for name in ("shfl", "lds", "sts", "ldg", "stg", "atom"):
            self.lsu[CLASS[name]] = self._served(1, name, then.get(name, 0) + retire)
        for name in ("ldg", "stg", "atom"):
            self.port[CLASS[name]] = self._served(2, name, latency.l2 + retire)
            later = {"ldg": latency.dram, "stg": 0, "atom": latency.l2}[name] + retire
            first = device.partitions if name == "atom" else 0
            units = range(first, first + device.partitions)
            roles = [self._add(_Role(unit, name, result=later)) for unit in units]
            self.partition[CLASS[name]] = roles[0]
        sync = device.sync
        self.sync = self._add(_Role(2 * device.partitions, "sync", sync, sync + retire, barrier=True))
        self.dispatch = self._add(_Role(0, "dispatch", result=device.start + retire))
        self.quiet = self._add(_Role(0, "empty", 1, 1, counted=True))

    def _add(self, role: _Role) -> int:
        self._roles.append(role)
        return len(self._roles) - 1

    def _served(self, unit: int, name: str, later: int) -> tuple[int, int]:
        return self._add(_Role(unit, name)), self._add(_Role(unit, name, result=later))

    def _issue(self, name: str) -> int:
        device = self.device
        if name not in ARITHMETIC:
            return self._add(_Role(0, name, 1, 1 + (device.retire if name == "bar" else 0)))
        cycles = device.core.function_cycles if name == "sfu" else device.core.arithmetic_cycles
        result = getattr(device.core.latency, name) + device.retire
        return self._add(_Role(0, name, cycles, result, counted=True))

    def prototypes(self, role: Ints, number: Ints, member: Ints, work: Ints | None = None) -> Ints:
        """The rows of `operations` of some operations."""
        codes = (role * self.most + number) * self.members + member
        if work is not None:
            codes = codes + self.works.of(work) * np.int64(len(self._roles) * self.most * self.members)
        return self.rows.of(codes).astype(np.int64)

    def table(self) -> tuple[Ints, tuple[tuple[str, tuple[int, ...]], ...]]:
        """The rows of `operations` in use, and the name of each."""
        codes = np.array(self.rows.codes, dtype=np.int64)
        work, codes = np.divmod(codes, len(self._roles) * self.most * self.members)
        rest, member = np.divmod(codes, self.members)
        role, number = np.divmod(rest, self.most)
        roles = [self._roles[each] for each in role.tolist()]
        cycles, result, counted, barrier, unit = (
            np.array(
                [(each.cycles, each.result, each.counted, each.barrier, each.unit) for each in roles], dtype=np.int64
            )
            .reshape(-1, 5)
            .T
        )
        rows = table_rows(
            "operations",
            len(codes),
            unit=unit,
            cycles=np.where(cycles > 0, cycles, number),
            count=np.where(counted > 0, number, 1),
            takes=-1,
            frees=-1,
            result_cycles=np.where(cycles > 0, result, number + result),
            work=np.array(self.works.codes, dtype=np.int64)[work],
            member=member,
            extra=-1,
            arrives=np.where(barrier > 0, number, -1),
        )
        return rows, tuple((each.label, ()) for each in roles)


def need_rows(codes: Sequence[int], most: int) -> Ints:
    """The rows of `needs` in use."""
    kind, delay = np.divmod(np.array(codes, dtype=np.int64), most)
    return table_rows("needs", len(codes), delay=delay, cause=kind // 2, barrier=kind % 2, phase=-1)


#: Numbers of the causes of the device.
MEMORY, BARRIER, DEPENDENCE, START = (CAUSE_NUMBERS[name] for name in ("memory", "barrier", "dependence", "start"))


@dataclass(frozen=True)
class Writing:
    """What all pieces of a program have in common."""

    device: ParallelDevice  # the device
    roles: Roles  # prototypes of operations
    needs: Numbering  # numbering of prototypes of needs, by code
    delays: int  # more than any delay

    def need(self, cause: int, delay: Ints | int, barrier: int = 0) -> Ints:
        """What the words of needs have in common: the prototype, without the operation."""
        codes = np.atleast_1d((2 * cause + barrier) * self.delays + np.asarray(delay, dtype=np.int64))
        return need_word(self.needs.of(codes).astype(np.int64), 0)
