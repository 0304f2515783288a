"""The contents of every trace file: facts and spans of a timeline, and the checks when a file is read."""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.timeline import COLUMNS, MAIN, STATES, Row, Timeline
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file
from lstmsim.program.unit_names import is_unit

#: The schema that every trace file names. Its number rises when the meaning of a field changes.
SCHEMA = "lstmsim/trace/1"

_LIMIT_32 = 2**31 - 1
Column = NDArray[np.int64]


class Spans:
    """The spans of a timeline that is being read."""

    def __init__(self) -> None:
        self._values = array("q")

    def add(self, *values: int) -> None:
        """Add a span; values as in `Timeline`. TypeError for a value that is no number, OverflowError above 64 bits."""
        self._values.extend(values)

    def __len__(self) -> int:
        return len(self._values) // len(COLUMNS)

    def sorted(self) -> Column:
        """Give the spans by (row, start), shape [columns, spans]."""
        table = np.array(self._values, dtype=np.int64).reshape(-1, len(COLUMNS))
        ordered: Column = table[np.lexsort((table[:, 1], table[:, 0]))].T
        return ordered


@contextmanager
def unpacked(path: str, limit: int, more: str, plain: bool = False) -> Iterator[io.BufferedReader]:
    """Open a file that may be packed by gzip; `InputError` if it cannot be read, or is larger than `limit`."""
    with readable_file(path, kept=False) as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        try:
            source = gzip.GzipFile(fileobj=file) if packed else file
            yield io.BufferedReader(_Limited(path, source, limit, more)) if packed or plain else file
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise _refuse(path, f"a damaged gzip file ({error})") from None
        except OSError as error:
            raise _refuse(path, f"cannot be read ({error.strerror})") from None


class _Limited(io.RawIOBase):
    """The contents of a file up to a limit, because a small packed file may unpack to any size."""

    def __init__(self, path: str, source: Any, limit: int, more: str) -> None:
        self.path, self.source, self.limit, self.more, self.taken = path, source, limit, more, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.source.read(len(buffer))
        self.taken += len(content)
        if self.taken > self.limit:
            raise _refuse(self.path, f"more than {self.limit // 2**20:,} MB of {self.more}")
        buffer[: len(content)] = content
        return len(content)


def facts(timeline: Timeline) -> dict[str, object]:
    """The facts about a timeline without its spans, ready for JSON. Only a part of a run has the key `window`."""
    window = {} if timeline.window is None else {"window": list(timeline.window)}
    # the name of most machines is not said
    unit = {} if timeline.unit == MAIN else {"main_unit": timeline.unit}
    names, place = timeline.coloured
    return {
        "schema": SCHEMA,
        "time": "1 ns = 1 cycle",
        "chip": timeline.chip,
        "frequency_mhz": float(timeline.frequency_mhz),
        "makespan_cycles": int(timeline.makespan_cycles),
        **window,
        **unit,
        "rows": [[row.core, row.label, row.index] for row in timeline.rows],
        "jobs": list(timeline.jobs),
        **({"groups": list(names), "group_of": place.tolist()} if timeline.groups else {}),
        "spans": len(timeline),
    }


def _groups(path: str, known: Mapping[str, Any]) -> tuple[str, ...]:
    names, places = known.get("groups", []), known.get("group_of", [])
    good = isinstance(names, list) and isinstance(places, list) and len(places) in (0, len(known["jobs"]))
    if not good or not all(isinstance(each, str) for each in names):
        raise _refuse(path, "groups: expected a list of names, and in group_of an index into it for each job")
    if not all(_is_count(each, len(names) - 1) for each in places):
        raise _refuse(path, "group_of: expected an index into groups for each job")
    return tuple(names[each] for each in places)


def as_json(value: object) -> str:
    """JSON on one line. Letters are written as they are, because old trace viewers do not read escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # Half a surrogate pair has no UTF-8 form.
    return text if text.isprintable() else json.dumps(value, separators=(",", ":"))


def _refuse(path: str, sentence: str) -> InputError:
    return InputError(Mistake(path, sentence))


def _is_count(value: object, limit: int = 2**62) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limit


def _is_number(value: object) -> bool:
    return _is_count(value, _LIMIT_32)


def _rows(path: str, listed: object, unit: object) -> tuple[Row, ...]:
    if not isinstance(unit, str) or (unit != MAIN and not is_unit(unit)):
        raise _refuse(path, f"main_unit: expected a unit's name, got {unit!r:.40}")
    rows = []
    for entry in listed if isinstance(listed, list) else [None]:
        match entry:
            case [core, "thread", index] if _is_number(core) and _is_number(index):
                rows.append(Row(core, "thread", index))
            case [core, str(kind), index] if kind == unit and _is_number(core) and _is_number(index):
                rows.append(Row(core, MAIN, index, unit))
            case [core, str(kind), index] if is_unit(kind) and _is_number(core) and _is_number(index):
                rows.append(Row(core, kind, index))
            case _:
                raise _refuse(
                    path, f"rows: expected a list of [core, kind, index], kind {unit}, thread or a unit's name"
                )
    if len(set(rows)) < len(rows):
        raise _refuse(path, "rows: the same row is listed twice")
    return tuple(rows)


def _require(path: str, known: Mapping[str, Any]) -> None:
    """Refuse facts that no trace of lstmsim has."""
    if known.get("schema") != SCHEMA:
        got = f"{known.get('schema')!r:.40}"
        raise _refuse(path, f"not a trace that lstmsim wrote (expected schema {SCHEMA}, got {got})")
    jobs, frequency = known.get("jobs"), known.get("frequency_mhz")
    if not isinstance(known.get("chip"), str):
        raise _refuse(path, "chip: expected a name")
    if isinstance(frequency, bool) or not isinstance(frequency, int | float) or not 0 < frequency < math.inf:
        raise _refuse(path, f"frequency_mhz: expected a number above 0, got {frequency!r:.40}")
    if not _is_count(known.get("makespan_cycles")):
        raise _refuse(path, f"makespan_cycles: expected a whole number, got {known.get('makespan_cycles')!r:.40}")
    if not isinstance(jobs, list) or not all(isinstance(name, str) for name in jobs):
        raise _refuse(path, "jobs: expected a list of names")


def _shown(path: str, known: Mapping[str, Any]) -> tuple[int, int]:
    """The window that the file says it holds, or the whole run."""
    makespan = known["makespan_cycles"]
    match known.get("window", [0, makespan]):
        case [start, end] if _is_count(start) and _is_count(end, makespan) and (start < end or makespan == 0):
            return start, end
        case other:
            raise _refuse(path, f"window: expected [start, end] within 0 to {makespan}, got {other!r:.40}")


def _require_whole(
    path: str, known: Mapping[str, Any], cycles_shown: int, rows: tuple[Row, ...], row: Column, cycles: Column
) -> None:
    """Refuse a file that lacks spans: it has fewer than it says, or a main unit has cycles without a span."""
    if known.get("spans", len(row)) != len(row):
        raise _refuse(path, f"holds {len(row)} of {known['spans']!r:.40} spans, perhaps cut short")
    named = np.zeros(len(rows), dtype=np.int64)
    np.add.at(named, row, cycles)
    for each, count in zip(rows, named.tolist(), strict=True):
        if each.kind == MAIN and count != cycles_shown:
            raise _refuse(path, f"{each.name} has spans for {count} of {cycles_shown} cycles, perhaps cut short")


def timeline_of(path: str, known: Mapping[str, Any], spans: Spans) -> Timeline:
    """Make the timeline of a file."""
    _require(path, known)
    rows, jobs = _rows(path, known.get("rows"), known.get("main_unit", MAIN)), tuple(known["jobs"])
    first, last = _shown(path, known)
    table = spans.sorted()
    column = dict(zip(COLUMNS, table, strict=True))
    row, start, end = table[:3]
    limits = {
        "row": (0, len(rows) - 1),
        "state": (0, len(STATES) - 1),
        "job": (-1, len(jobs) - 1),
        "layer": (-1, _LIMIT_32),
        "step": (-1, _LIMIT_32),
    }
    for name, (low, high) in limits.items():
        wrong = (column[name] < low) | (column[name] > high)
        if wrong.any():
            raise _refuse(path, f"a span's {name} is {column[name][wrong][0]}, expected {low} to {high}")
    outside = (start < first) | (end <= start) | (end > last)
    if outside.any():
        at = int(np.argmax(outside))
        raise _refuse(path, f"a span covers the cycles {start[at]} to {end[at]}, expected a part of {first} to {last}")
    overlap = (row[1:] == row[:-1]) & (start[1:] < end[:-1])
    if overlap.any():
        at = int(np.argmax(overlap))
        raise _refuse(path, f"two spans of {rows[row[at]].name} overlap at cycle {start[at + 1]}")
    _require_whole(path, known, last - first, rows, row, end - start)
    return Timeline(
        chip=known["chip"],
        frequency_mhz=float(known["frequency_mhz"]),
        makespan_cycles=known["makespan_cycles"],
        rows=rows,
        jobs=jobs,
        **{name: column[name].astype(kind) for name, kind in COLUMNS.items()},
        groups=_groups(path, known),
        window=None if (first, last) == (0, known["makespan_cycles"]) else (first, last),
    )
