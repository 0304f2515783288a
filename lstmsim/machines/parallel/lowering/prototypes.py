"""Prototypes of operations and needs: what a packed body's words name, each once for the whole program.

An operation is a role (which unit, what it tells of its result), a number (count of arithmetic, cycles of everything
else) and a member (which warp). A need is a delay and a cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.kernel import CLASS, CLASSES
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.program.operations import CAUSE_NUMBERS, need_word

#: Classes that only take a scheduler, several issues in a row.
ARITHMETIC = ("alu", "fma", "sfu")
#: Largest table that is looked up by code; beyond it codes are searched.
_MOST_LOOKED_UP = 1 << 24

Ints = NDArray[np.int64]


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

    def of(self, codes: Ints) -> NDArray[np.int32]:
        """The rows of some codes, which are at least 0."""
        if not len(codes):
            return np.zeros(0, dtype=np.int32)
        top = int(codes.max())
        if top >= _MOST_LOOKED_UP:
            return self._searched(codes)
        if top >= len(self._rows):
            more = np.full(max(top + 1 - len(self._rows), len(self._rows)), -1, dtype=np.int32)
            self._rows = np.concatenate([self._rows, more])
        rows: NDArray[np.int32] = self._rows[codes]
        if rows.min() < 0:
            for code in np.unique(codes[rows < 0]).tolist():
                self._rows[code] = self._row(code)
            rows = self._rows[codes]
        return rows

    def _searched(self, codes: Ints) -> NDArray[np.int32]:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return np.array([self._row(code) for code in distinct.tolist()], dtype=np.int32)[inverse]

    def _row(self, code: int) -> int:
        if code not in self._known:
            self._known[code] = len(self.codes)
            self.codes.append(code)
        return self._known[code]


@dataclass(frozen=True)
class _Role:
    """What operations of a role have in common.

    unit: number of the unit of its core.
    label: for people.
    cycles, result: from the number, cycles of an issue and cycles until the results are there.
    counted: whether the number is a count; else it is the cycles.
    gate: whether the number is a gate at which the operation arrives.
    """

    unit: int
    label: str
    cycles: Callable[[int], int]
    result: Callable[[int], int]
    counted: bool = False
    gate: bool = False


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
            roles = [self._add(_Role(unit, name, _same, _plus(later))) for unit in units]
            self.partition[CLASS[name]] = roles[0]
        end = _plus(retire)
        sync = device.sync
        self.sync = self._add(_Role(2 * device.partitions, "sync", lambda _: sync, lambda _: sync + retire, gate=True))
        started = device.dispatch + device.start
        self.dispatch = self._add(_Role(0, "dispatch", _same, lambda _: end(started)))
        self.quiet = self._add(_Role(0, "empty", lambda _: 1, lambda _: 1, counted=True))

    def _add(self, role: _Role) -> int:
        self._roles.append(role)
        return len(self._roles) - 1

    def _served(self, unit: int, name: str, later: int) -> tuple[int, int]:
        return self._add(_Role(unit, name, _same, _same)), self._add(_Role(unit, name, _same, _plus(later)))

    def _issue(self, name: str) -> int:
        device = self.device
        if name not in ARITHMETIC:
            result = 1 + (device.retire if name == "bar" else 0)
            return self._add(_Role(0, name, lambda _: 1, lambda _: result))
        cycles = device.core.function_cycles if name == "sfu" else device.core.arithmetic_cycles
        result = getattr(device.core.latency, name) + device.retire
        return self._add(_Role(0, name, lambda _: cycles, lambda _: result, counted=True))

    def prototypes(self, role: Ints, number: Ints, member: Ints, work: Ints | None = None) -> NDArray[np.int32]:
        """The rows of `operations` of some operations."""
        codes = (role * self.most + number) * self.members + member
        if work is not None:
            codes = codes + self.works.of(work) * np.int64(len(self._roles) * self.most * self.members)
        return self.rows.of(codes)

    def table(self) -> tuple[Ints, tuple[tuple[str, tuple[int, ...]], ...]]:
        """The rows of `operations` in use, and the name of each."""
        columns = tuple(FLAT_TABLES["operations"].columns)
        rows = np.zeros((len(self.rows.codes), len(columns)), dtype=np.int64)
        names: list[tuple[str, tuple[int, ...]]] = []
        for row, code in zip(rows, self.rows.codes, strict=True):
            work, code = divmod(code, len(self._roles) * self.most * self.members)
            rest, member = divmod(code, self.members)
            number, role = rest % self.most, self._roles[rest // self.most]
            values: dict[str, Any] = {
                "unit": role.unit,
                "cycles": role.cycles(number),
                "result_cycles": role.result(number),
                "count": number if role.counted else 1,
                "member": member,
                **dict.fromkeys(("takes", "frees", "extra"), -1),
                "arrives": number if role.gate else -1,
                "work": self.works.codes[work],
            }
            row[:] = [values.get(name, 0) for name in columns]
            names.append((role.label, ()))
        return rows, tuple(names)


def _same(number: int) -> int:
    return number


def _plus(later: int) -> Callable[[int], int]:
    return lambda number: number + later


def need_rows(codes: Sequence[int], most: int) -> Ints:
    """The rows of `needs` in use."""
    columns = tuple(FLAT_TABLES["needs"].columns)
    rows = np.zeros((len(codes), len(columns)), dtype=np.int64)
    for row, code in zip(rows, codes, strict=True):
        kind, delay = divmod(code, most)
        cause, gate = divmod(kind, 2)
        values = {"delay": delay, "cause": cause, "gate": gate, "phase": -1}
        row[:] = [values.get(name, 0) for name in columns]
    return rows


#: Numbers of the causes of the device.
MEMORY, BARRIER, DEPENDENCE, START = (CAUSE_NUMBERS[name] for name in ("memory", "barrier", "dependence", "start"))


@dataclass(frozen=True)
class Writing:
    """What all pieces of a program have in common.

    device: the device.
    roles: prototypes of operations.
    needs: numbering of prototypes of needs, by code.
    delays: more than any delay.
    """

    device: ParallelDevice
    roles: Roles
    needs: Numbering
    delays: int

    def need(self, cause: int, delay: Ints | int, gate: int = 0) -> Ints:
        """What the words of needs have in common: the prototype, without the operation."""
        codes = np.atleast_1d((2 * cause + gate) * self.delays + np.asarray(delay, dtype=np.int64))
        return need_word(self.needs.of(codes).astype(np.int64), 0)
