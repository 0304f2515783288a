"""The size of a trace file, estimated before it is written: a long run makes gigabytes faster than a user notices."""

from __future__ import annotations

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake

#: Suffix -> bytes for each span, measured on timelines of 10^5 and 10^6 spans (tests/files/test_traces_window.py
#: measures again). Long names of jobs make text formats larger. Regular traces make packed formats smaller.
BYTES_PER_SPAN = {
    ".json": 160.0,
    ".json.gz": 14.4,
    ".csv": 72.0,
    ".csv.gz": 10.1,
    ".vcd": 21.4,
    ".fst": 2.2,
    ".pftrace": 7.6,
    ".kanata": 68.0,
}

#: Suffixes to offer instead, the smallest file first.
_SMALL = (".fst", ".pftrace", ".csv.gz")


def estimated_bytes(timeline: Timeline, suffix: str) -> int:
    """Estimate the bytes of a timeline in a file."""
    return round(BYTES_PER_SPAN[suffix] * len(timeline))


def require_small(timeline: Timeline, path: str, suffix: str, limit_bytes: int) -> None:
    """Refuse to write a file of more than `limit_bytes`."""
    size = estimated_bytes(timeline, suffix)
    if size <= limit_bytes:
        return
    fitting = [each for each in _SMALL if BYTES_PER_SPAN[each] < BYTES_PER_SPAN[suffix]]
    others = [f"{each} ({_megabytes(estimated_bytes(timeline, each))})" for each in fitting]
    instead = f", or write {' or '.join(others)}" if others else ""
    takes = f"{len(timeline):,} spans would take about {_megabytes(size)}, the limit is {_megabytes(limit_bytes)}"
    raise InputError(Mistake(path, f"{takes}; cut out a window of cycles{instead}"))


def _megabytes(size: int) -> str:
    """A number of bytes for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.2g} {unit}" if size < 100 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size / 10**6:.2g} MB"
