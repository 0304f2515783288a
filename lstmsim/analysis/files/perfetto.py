"""Chrome trace events as JSON, for ui.perfetto.dev and chrome://tracing.

The chip is one process, which viewers open because it is the only one. Each row is a track, so that slices of a track
follow each other and never overlap. The format counts in microseconds, and viewers keep whole nanoseconds. One cycle is
written as one nanosecond, and the name of the process says so.
Perfetto colours a slice by its name without the digits. So names have words, and numbers stand in `args`.
`displayTimeUnit` is left out, because old Perfetto versions scale all times by it.
Source: the Trace Event Format (ph X, C, M) and Perfetto's JSON reader.

Tracks, names of slices and counters are the same in Perfetto's protobuf format (`protobuf.py`).
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.drawn import busy_windows, window_edges
from lstmsim.analysis.files.columns import Spans, as_json, facts, timeline_of
from lstmsim.analysis.timeline import MAIN, STATES, Row, Timeline
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file, whole_file
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.unit_names import MEMORY

#: In JSON the chip is a process and rows are its threads, whose numbers begin here.
PROCESS, FIRST_TRACK = 1, 1000

_WINDOWS = 300


def group_name(timeline: Timeline) -> str:
    """The name of the one group of all tracks."""
    return ", ".join(filter(None, (f"{timeline.chip} (1 ns = 1 cycle)", timeline.shown_text)))


def track_names(rows: Sequence[Row]) -> list[str]:
    """The name of the track of each row. It holds the name of the core if there are several cores."""
    if len({row.core for row in rows if row.kind != MEMORY}) > 1:
        return [row.name for row in rows]
    return [row.title for row in rows]


def wait_names() -> list[str]:
    """For each state the name of a slice that is no work."""
    return [f"stall: {state}" if state in CAUSES else state for state in STATES]


def slice_names(jobs: tuple[str, ...], groups: tuple[str, ...] = ()) -> list[str]:
    """A name for each job that stays distinct when a viewer ignores digits. So each job gets a colour of its own."""
    if groups:
        return list(jobs)
    words = [re.sub(r"\s*\d+", "", name).strip() for name in jobs]
    count: dict[str, int] = {}
    for word in words:
        count[word] = count.get(word, 0) + 1
    return [
        name if word and count[word] == 1 else f"{name} {_letters(number)}"
        for number, (name, word) in enumerate(zip(jobs, words, strict=True))
    ]


def _letters(number: int) -> str:
    """A number in letters: a, b ... z, aa, ab ..."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


@dataclass(frozen=True, eq=False)
class Counters:
    """How busy main units are in windows of time."""

    window_cycles: int
    edges: list[int]
    percent: dict[str, list[float]]


def busy_counters(timeline: Timeline, start: int, end: int) -> Counters:
    """Count how busy main units are from cycle `start` to cycle `end`."""
    edges: NDArray[np.int64] = window_edges(start, end, _WINDOWS)
    if len(edges) < 2:
        return Counters(0, [], {})
    by_core = busy_windows(timeline, edges)
    window = int(edges[1] - edges[0])
    text = f"busy % (windows of {window:,} cycle{'s' * (window > 1)})"
    if len(by_core) > 1:
        shares = {f"all {timeline.unit}s {text}": np.mean(list(by_core.values()), axis=0)}
        shares |= {f"{Row(core, MAIN, unit=timeline.unit).name} {text}": each for core, each in by_core.items()}
    else:
        shares = {f"{timeline.unit} {text}": each for each in by_core.values()}
    return Counters(window, edges.tolist(), {name: [*(100 * each).tolist(), 0.0] for name, each in shares.items()})


#: Unpacked size above which a file is not read: about five million slices.
LIMIT_BYTES = 768 * 2**20


def _microseconds(cycle: int) -> str:
    """A cycle as microseconds with three decimals, by whole numbers only."""
    return f"{cycle // 1000}.{cycle % 1000:03d}"


def write_perfetto(timeline: Timeline, path: str) -> None:
    """Write a timeline to the file `path`, packed by gzip if it ends in .gz. Equal timelines give equal bytes."""
    counters = busy_counters(timeline, *timeline.shown)
    other = {**facts(timeline), "counter_window_cycles": counters.window_cycles}
    with whole_file(path, "wz" if path.lower().endswith(".gz") else "w") as file:
        file.write(f'{{"otherData":{as_json(other)},\n"traceEvents":[\n')
        events = _events(timeline, counters)
        file.write(next(events))
        for event in events:
            file.write(",\n" + event)
        file.write("\n]}\n")


def _events(timeline: Timeline, counters: Counters) -> Iterator[str]:
    yield from _names(timeline)
    yield from _counters(counters)
    yield from _slices(timeline)


def _meta(kind: str, track: int, key: str, value: object) -> str:
    return f'{{"ph":"M","pid":{PROCESS},"tid":{track},"name":"{kind}","args":{{"{key}":{as_json(value)}}}}}'


def _names(timeline: Timeline) -> Iterator[str]:
    """Yield the names of the process and its tracks, and the order of the tracks."""
    yield _meta("process_name", 0, "name", group_name(timeline))
    for number, name in enumerate(track_names(timeline.rows)):
        yield _meta("thread_name", FIRST_TRACK + number, "name", name)
        yield _meta("thread_sort_index", FIRST_TRACK + number, "sort_index", number)


def _counters(counters: Counters) -> Iterator[str]:
    """Yield one value for each window, and 0 at the end of the last."""
    for name, values in counters.percent.items():
        for cycle, value in zip(counters.edges, values, strict=True):
            place = f'"ph":"C","ts":{_microseconds(cycle)},"pid":{PROCESS}'
            yield f'{{{place},"name":"{name}","args":{{"busy %":{value:.2f}}}}}'


def _slices(timeline: Timeline) -> Iterator[str]:
    """Yield one complete event for each span."""
    tracks = [f'"pid":{PROCESS},"tid":{FIRST_TRACK + number}' for number in range(len(timeline.rows))]
    jobs = [as_json(name) for name in [*slice_names(timeline.jobs, timeline.groups), "work"]]
    waits = [as_json(name) for name in wait_names()]
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
    """Read the timeline from a file of `write_perfetto`; `InputError` for a broken file or one of another program."""
    spans, problems = Spans(), []
    number = {state: index for index, state in enumerate(STATES)}

    def take(entry: dict[str, Any]) -> dict[str, Any] | None:
        """Slices go straight into the columns: millions of dictionaries would fill the memory."""
        if entry.get("ph") != "X":
            return entry
        try:
            args = entry["args"]
            start, length = args["cycle"], args["cycles"]
            span = (entry["tid"] - FIRST_TRACK, start, start + length)
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
    """All bytes of the file, unpacked if it is packed; `InputError` above `LIMIT_BYTES`."""
    with readable_file(path, kept=False) as file:
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
