"""The size of a trace file, estimated before it is written: a long run makes gigabytes faster than a user notices."""

from __future__ import annotations

from lstmsim.analysis.timeline import Timeline
from lstmsim.base.errors import InputError, Mistake

__all__ = ["BYTES_PER_SPAN", "estimated_bytes", "require_small"]

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
    """Estimate the bytes of a timeline in a file.

    suffix: ending of the file, a key of `BYTES_PER_SPAN`.

    >>> import numpy as np
    >>> none = np.zeros(10**6, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
    >>> timeline = Timeline("chip", 260.0, 1, (), (), **table)
    >>> estimated_bytes(timeline, ".json") // 10**6, estimated_bytes(timeline, ".pftrace") // 10**6
    (160, 7)
    """
    return round(BYTES_PER_SPAN[suffix] * len(timeline))


def require_small(timeline: Timeline, path: str, suffix: str, limit_bytes: int) -> None:
    """Refuse to write a file of more than `limit_bytes`.

    path, suffix: name of the file and its ending.
    `InputError` if the file would be larger; it says how large, and what helps.

    >>> import numpy as np
    >>> none = np.zeros(10**5, dtype=np.int64)
    >>> table = dict(row=none, start=none, end=none, state=none, job=none, layer=none, step=none)
    >>> timeline = Timeline("chip", 260.0, 1, (), (), **table)
    >>> require_small(timeline, "a.csv", ".csv", 10**7)
    >>> require_small(timeline, "a.json", ".json", 10**7)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    lstmsim.InputError: a.json: 100,000 spans would take about 16 MB, the limit is 10 MB; cut out a
    window of cycles, or write .fst (0.22 MB) or .pftrace (0.76 MB) or .csv.gz (1 MB)
    """
    size = estimated_bytes(timeline, suffix)
    if size <= limit_bytes:
        return
    fitting = [each for each in _SMALL if BYTES_PER_SPAN[each] < BYTES_PER_SPAN[suffix]]
    others = [f"{each} ({_megabytes(estimated_bytes(timeline, each))})" for each in fitting]
    instead = f", or write {' or '.join(others)}" if others else ""
    takes = f"{len(timeline):,} spans would take about {_megabytes(size)}, the limit is {_megabytes(limit_bytes)}"
    raise InputError(Mistake(path, f"{takes}; cut out a window of cycles{instead}"))


def _megabytes(size: int) -> str:
    """A number of bytes for people.

    >>> _megabytes(2_340_000_000), _megabytes(23_400_000), _megabytes(2_340_000)
    ('2.3 GB', '23 MB', '2.3 MB')
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.2g} {unit}" if size < 100 * factor else f"{size / factor:,.0f} {unit}"
    return f"{size / 10**6:.2g} MB"
