"""Chrome trace events as JSON, for ui.perfetto.dev and chrome://tracing.

One process a core, one track a row, so that slices of a track follow each other and never overlap. The format counts
in microseconds and viewers keep whole nanoseconds: one cycle is written as one nanosecond, and says so.
Perfetto colours a slice by its name without the digits, hence words in names and numbers in `args`. `displayTimeUnit`
is left out: old Perfetto versions scale all times by it.
Source: the Trace Event Format (ph X, C, M) and Perfetto's JSON reader.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.files import readable_file, whole_file
from lstmsim.formats.traces.columns import Spans, as_json, facts, timeline_of
from lstmsim.metrics.binning import busy_windows, window_edges
from lstmsim.metrics.timeline import STATES, Timeline

__all__ = ["LIMIT_BYTES", "read_perfetto", "slice_names", "write_perfetto"]

#: Unpacked size above which a file is not read: about five million slices.
LIMIT_BYTES = 768 * 2**20

_WINDOWS = 300
_FIRST_TRACK = 1000
_STALLS = ("hazard", "input", "backpressure", "dispatch")


def _microseconds(cycle: int) -> str:
    """A cycle as microseconds with three decimals, by whole numbers only.

    >>> _microseconds(1471)
    '1.471'
    """
    return f"{cycle // 1000}.{cycle % 1000:03d}"


def slice_names(jobs: tuple[str, ...]) -> list[str]:
    """A name for each job that stays distinct, and so gets a colour of its own, when a viewer ignores digits.

    >>> slice_names(("lstm-512 #0", "lstm-512 #1", "gru"))
    ['lstm-512 #0 a', 'lstm-512 #1 b', 'gru']
    """
    words = [re.sub(r"\s*\d+", "", name).strip() for name in jobs]
    count: dict[str, int] = {}
    for word in words:
        count[word] = count.get(word, 0) + 1
    return [
        name if word and count[word] == 1 else f"{name} {_letters(number)}"
        for number, (name, word) in enumerate(zip(jobs, words, strict=True))
    ]


def _letters(number: int) -> str:
    """a, b ... z, aa, ab ...: a number without digits."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def write_perfetto(timeline: Timeline, path: str) -> None:
    """Write the timeline to `path` (gzip if it ends in .gz), one event a line; equal timelines give equal bytes."""
    edges = window_edges(0, timeline.makespan_cycles, _WINDOWS)
    other = {**facts(timeline), "counter_window_cycles": int(edges[1] - edges[0]) if len(edges) > 1 else 0}
    with whole_file(path, "wz" if path.lower().endswith(".gz") else "w") as file:
        file.write(f'{{"otherData":{as_json(other)},\n"traceEvents":[\n')
        events = _events(timeline, edges)
        file.write(next(events))
        for event in events:
            file.write(",\n" + event)
        file.write("\n]}\n")


def _events(timeline: Timeline, edges: NDArray[np.int64]) -> Iterator[str]:
    yield from _names(timeline)
    yield from _counters(timeline, edges)
    yield from _slices(timeline)


def _chip_process(timeline: Timeline) -> int:
    return max((row.core for row in timeline.rows), default=0) + 2


def _meta(kind: str, process: int, track: int, key: str, value: object) -> str:
    return f'{{"ph":"M","pid":{process},"tid":{track},"name":"{kind}","args":{{"{key}":{as_json(value)}}}}}'


def _names(timeline: Timeline) -> Iterator[str]:
    """Names and order of processes and tracks."""
    chip = _chip_process(timeline)
    processes = {chip: f"{timeline.chip} (1 ns = 1 cycle)"}
    processes |= {row.core + 1: f"core {row.core} (1 ns = 1 cycle)" for row in timeline.rows}
    for process, name in processes.items():
        yield _meta("process_name", process, 0, "name", name)
        yield _meta("process_sort_index", process, 0, "sort_index", 0 if process == chip else process)
    for number, row in enumerate(timeline.rows):
        label = f"{row.kind} {row.index}" if row.kind == "thread" else row.kind
        yield _meta("thread_name", row.core + 1, _FIRST_TRACK + number, "name", label)
        yield _meta("thread_sort_index", row.core + 1, _FIRST_TRACK + number, "sort_index", number)


def _counters(timeline: Timeline, edges: NDArray[np.int64]) -> Iterator[str]:
    """Busy percentage of the arrays, one value a window: by core, and of the chip if it has several cores."""
    if len(edges) < 2:
        return
    by_core = busy_windows(timeline, edges)
    tracks = {core + 1: values for core, values in by_core.items()}
    if len(by_core) > 1:
        tracks[_chip_process(timeline)] = np.mean(list(by_core.values()), axis=0)
    window = int(edges[1] - edges[0])
    name = f"array busy % (windows of {window} cycle{'s' * (window > 1)})"
    for process, values in tracks.items():
        for cycle, value in zip(edges.tolist(), [*(100 * values).tolist(), 0.0], strict=True):
            place = f'"ph":"C","ts":{_microseconds(cycle)},"pid":{process}'
            yield f'{{{place},"name":"{name}","args":{{"busy %":{value:.2f}}}}}'


def _slices(timeline: Timeline) -> Iterator[str]:
    """One complete event a span."""
    tracks = [f'"pid":{row.core + 1},"tid":{_FIRST_TRACK + number}' for number, row in enumerate(timeline.rows)]
    jobs = [as_json(name) for name in [*slice_names(timeline.jobs), "work"]]
    waits = [as_json(f"stall: {state}" if state in _STALLS else state) for state in STATES]
    busy = STATES.index("busy")
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    for row, start, end, state, job, layer, step in zip(*(column.tolist() for column in columns), strict=True):
        name = jobs[job] if state == busy else waits[state]
        yield (
            f'{{"ph":"X","ts":{_microseconds(start)},"dur":{_microseconds(end - start)},{tracks[row]},'
            f'"cat":"{STATES[state]}","name":{name},"args":{{"cycle":{start},"cycles":{end - start},'
            f'"job":{job},"layer":{layer},"step":{step}}}}}'
        )


def read_perfetto(path: str) -> Timeline:
    """The timeline in a file of `write_perfetto`; a file of another program, or a broken one, is an `InputError`."""
    spans, problems = Spans(), []
    number = {state: index for index, state in enumerate(STATES)}

    def take(entry: dict[str, Any]) -> dict[str, Any] | None:
        """Slices go straight into the columns: millions of dictionaries would fill the memory."""
        if entry.get("ph") != "X":
            return entry
        try:
            args = entry["args"]
            start, length = args["cycle"], args["cycles"]
            span = (entry["tid"] - _FIRST_TRACK, start, start + length)
            spans.add(*span, number[entry["cat"]], args["job"], args["layer"], args["step"])
        except (KeyError, TypeError, OverflowError):
            problems.append(entry)
        return None

    try:
        whole = json.loads(_content(path), object_hook=take)
    except (ValueError, RecursionError) as error:
        raise InputError(Mistake(path, f"not valid JSON, perhaps cut short ({error!s:.80})")) from None
    known = whole.get("otherData") if isinstance(whole, dict) else None
    if problems and isinstance(known, dict) and "schema" in known:
        raise InputError(Mistake(path, f"not a slice of an lstmsim trace: {problems[0]!r:.80}"))
    return timeline_of(path, known if isinstance(known, dict) else {}, spans)


def _content(path: str) -> bytes:
    """All bytes of the file, unpacked if packed, as long as they are not too many."""
    with readable_file(path) as file:
        source: Any = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file
        try:
            content: bytes = source.read(LIMIT_BYTES + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(Mistake(path, f"a damaged gzip file ({error})")) from None
        except OSError as error:
            raise InputError(Mistake(path, f"cannot be read ({error.strerror})")) from None
    if len(content) > LIMIT_BYTES:
        raise InputError(Mistake(path, f"more than {LIMIT_BYTES // 2**20} MB of JSON; save long traces as .csv"))
    return content
