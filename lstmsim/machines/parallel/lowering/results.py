"""How long units serve instructions, where the results of each come from, and when they are there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lstmsim.machines.parallel.device import Device
from lstmsim.machines.parallel.kernel import CLASS, Ints
from lstmsim.machines.parallel.lowering.pick import Picked
from lstmsim.machines.parallel.lowering.prototypes import ARITHMETIC, DEPENDENCE, MEMORY, Writing
from lstmsim.model.sparse.ranges import firsts, spans
from lstmsim.program.packed import need_word

__all__ = ["Results", "Served", "kept", "results"]

_SHFL, _LDS, _STS, _LDG, _STG, _ATOM = (CLASS[name] for name in ("shfl", "lds", "sts", "ldg", "stg", "atom"))


@dataclass(frozen=True, eq=False)
class Served:
    """Where instructions are served, one row for each.

    count: issues in a row of arithmetic; 1 of everything else.
    has_lsu, has_port: 1 where the load/store unit, the port serves it.
    lsu, port: cycles of these.
    from_lsu, from_port: whether a result comes from there.
    missing_row, missing_place, missing: of each row of partitions the instruction, its place there, cycles.
    """

    count: Ints
    has_lsu: Ints
    has_port: Ints
    lsu: Ints
    port: Ints
    from_lsu: NDArray[np.bool_]
    from_port: NDArray[np.bool_]
    missing_row: Ints
    missing_place: Ints
    missing: Ints

    @classmethod
    def of(cls, device: Device, rows: Picked) -> Served:
        """The service of picked instructions on a device."""
        kind = rows.kind
        has_lsu = (kind >= _SHFL) & (kind <= _ATOM)
        through = (kind >= _LDG) & (kind <= _ATOM)
        loads = kind == _LDG
        has_port = through & ((rows.sectors > 0) | (rows.misses > 0) | ~loads)
        lsu = np.maximum(rows.lsu, 1).astype(np.int64)
        sectors, cycles = device.port
        port = np.maximum(-(-rows.sectors.astype(np.int64) * cycles // sectors), 1)
        found_l2 = loads & rows.in_l2 & has_port
        nothing = through & (rows.misses == 0) & ~found_l2
        # a load that finds nothing anywhere, or an atomic without lanes, is over when the last unit has served it
        from_port = found_l2 | (kind == _STG) | (nothing & (kind == _ATOM))
        from_lsu = (has_lsu & ~through) | (loads & rows.in_l1) | (nothing & loads & ~rows.in_l1)
        own = np.repeat(np.arange(len(kind)), rows.misses)
        places = np.arange(len(own)) - firsts(rows.misses)[own]
        rate = np.where(kind[own] == _ATOM, device.atomic, device.dram)
        arithmetic = np.isin(kind, [CLASS[name] for name in ARITHMETIC])
        return cls(
            count=np.where(arithmetic, rows.count, 1).astype(np.int64),
            has_lsu=has_lsu.astype(np.int64),
            has_port=has_port.astype(np.int64),
            lsu=lsu,
            port=port,
            from_lsu=from_lsu,
            from_port=from_port,
            missing_row=own,
            missing_place=places,
            missing=rate * rows.missing.astype(np.int64),
        )


@dataclass(frozen=True, eq=False)
class Results:
    """The needs of whoever waits for an instruction.

    first: shape (n + 1,); row i is there when everything from `first[i]` to `first[i + 1]` is.
    words: of each of these the word of a need.
    unit: which unit of the stream serves it; units are numbered apart, and serve a stream in its order.
    served, delay: cycles of the operation, cycles from its start until the result is there.
    """

    first: Ints
    words: Ints
    unit: Ints
    served: Ints
    delay: Ints


def results(writing: Writing, rows: Picked, served: Served, place: Ints) -> Results:
    """The results of picked instructions.

    place: shape (n,); of each instruction's first operation in its body.
    """
    device, latency, kind = writing.device, writing.device.latencies, rows.kind
    arithmetic = kind < _SHFL
    counts = arithmetic + served.from_lsu.astype(np.int64) + served.from_port + rows.misses
    first = firsts(counts)
    total = int(first[-1])
    operation, code, unit, length, delay = (np.empty(total, dtype=np.int64) for _ in range(5))
    later = np.zeros(len(CLASS), dtype=np.int64)
    later[: len(ARITHMETIC)] = [getattr(latency, name) for name in ARITHMETIC]
    later[[_SHFL, _LDS, _STS, _LDG]] = latency.shuffle, latency.shared, latency.shared, latency.l1
    issue = np.zeros(len(CLASS), dtype=np.int64)
    issue[: len(ARITHMETIC)] = [-(-device.warp // each) for each in (device.lanes, device.lanes, device.sfu_lanes)]
    own = np.flatnonzero(arithmetic)
    at = first[own]
    operation[at], unit[at], length[at], delay[at], code[at] = (
        place[own],
        0,
        issue[kind[own]],
        later[kind[own]],
        DEPENDENCE,
    )
    own = np.flatnonzero(served.from_lsu)
    at = first[own]
    lag = np.where((kind[own] == _LDG) & ~rows.in_l1[own], 0, later[kind[own]])
    operation[at], unit[at], length[at], delay[at] = place[own] + 1, 1, served.lsu[own], served.lsu[own] + lag
    own = np.flatnonzero(served.from_port)
    at = first[own] + served.from_lsu[own]
    lag = np.where(kind[own] == _ATOM, 0, latency.l2)
    operation[at], unit[at], length[at], delay[at] = place[own] + 2, 2, served.port[own], served.port[own] + lag
    own = served.missing_row
    at = (first[:-1] + served.from_lsu + served.from_port)[own] + served.missing_place
    behind = np.zeros(len(CLASS), dtype=np.int64)
    behind[[_LDG, _ATOM]] = latency.dram, latency.l2
    operation[at], length[at] = place[own] + 3 + served.missing_place, served.missing
    unit[at] = 3 + rows.partition + np.where(kind[own] == _ATOM, device.partitions, 0)
    delay[at] = served.missing + behind[kind[own]]
    code[unit > 0] = MEMORY
    words = need_word(writing.needs.of(2 * code * writing.delays + delay).astype(np.int64), operation)
    return Results(first, words, unit, length, delay)


def kept(table: Results, targets: Ints, waits: Ints, many: int) -> tuple[Ints, Ints]:
    """Which entries of a table instructions need.

    targets: rows that are waited for, one instruction after the other.
    waits: how many of these each instruction has.
    many: of instructions with more entries, those that a later entry implies are left out.

    Gives the entries of all instructions, one after the other, and how many each has.
    """
    each = table.first[targets + 1] - table.first[targets]
    entries = spans(table.first[targets], each)
    bounds = firsts(each)[firsts(waits)]
    counts = np.diff(bounds)
    rows = np.flatnonzero(counts > many)
    if not len(rows):
        return entries, counts
    keep = np.ones(len(entries), dtype=bool)
    for row in rows.tolist():
        own = slice(int(bounds[row]), int(bounds[row + 1]))
        keep[own] = _telling(table, entries[own])
        counts[row] = np.count_nonzero(keep[own])
    return entries[keep], counts


def _telling(table: Results, entries: Ints) -> NDArray[np.bool_]:
    """Which of the entries of one instruction no later entry implies.

    A unit serves the requests of a stream one after the other. So a request starts no sooner than the one before is
    served, and if its delay is no shorter than what the one before has left then, its result is there no sooner.
    """
    order = np.lexsort((table.words[entries] & 0xFFFFFFFF, table.unit[entries]))
    sorted_ = entries[order]
    unit, delay, served = table.unit[sorted_], table.delay[sorted_], table.served[sorted_]
    last = np.append(unit[1:] != unit[:-1], True)
    final = np.repeat(delay[last], np.diff(np.append(-1, np.flatnonzero(last))))
    telling = np.zeros(len(entries), dtype=bool)
    telling[order] = last | (served + final < delay)
    return telling
