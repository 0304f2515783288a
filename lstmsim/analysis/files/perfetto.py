"""Traces for Perfetto: Chrome trace events as JSON, and its own protobuf format (docs/traces.md)."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, pairwise
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.analysis.files.columns import Spans, as_json, facts, timeline_of, unpacked
from lstmsim.analysis.spans import busy_windows, step_edges, window_edges
from lstmsim.analysis.timeline import MAIN, STATES, Row, Timeline
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import whole_file
from lstmsim.program.stall_reasons import CAUSES
from lstmsim.program.unit_names import beside_cores

#: In JSON the chip is a process and rows are its threads, whose numbers begin here.
PROCESS, FIRST_TRACK = 1, 1000

_WINDOWS = 300


def group_name(timeline: Timeline) -> str:
    """The name of the one group of all tracks."""
    return ", ".join(filter(None, (f"{timeline.chip} (1 ns = 1 cycle)", timeline.shown_text)))


def track_names(rows: Sequence[Row]) -> list[str]:
    """The name of the track of each row. It holds the name of the core if there are several cores."""
    if len({row.core for row in rows if not beside_cores(row.kind)}) > 1:
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
    """How busy main units are in windows of time, each of which has at least so many cycles."""

    window_cycles: int
    edges: list[int]
    percent: dict[str, list[float]]


def busy_counters(timeline: Timeline, start: int, end: int) -> Counters:
    """Count how busy main units are from cycle `start` to cycle `end`."""
    plain: NDArray[np.int64] = window_edges(start, end, _WINDOWS)
    if len(plain) < 2:
        return Counters(0, [], {})
    edges, on_steps = step_edges(timeline, start, end, _WINDOWS)
    by_core = busy_windows(timeline, edges)
    window = int(plain[1] - plain[0])
    text = f"busy % (windows of {'at least ' * on_steps}{window:,} cycle{'s' * (window > 1)})"
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
    # a flow begins at the first work of its job, and ends at the last
    ends = ["", ',"flow_out":true', ',"flow_in":true', ',"flow_in":true,"flow_out":true']
    bound = [f',"bind_id":"{job + 1:#x}"' for job in range(len(timeline.jobs))]
    flows = _flow_ends(timeline).tolist()
    for (row, start, end, state, job, layer, step), flow in zip(timeline.spans(), flows, strict=True):
        name = jobs[job] if state == busy else waits[state]
        more = bound[job] + ends[flow] if flow else ""
        yield (
            f'{{"ph":"X","ts":{_microseconds(start)},"dur":{_microseconds(end - start)},{tracks[row]},'
            f'"cat":"{STATES[state]}","name":{name},"args":{{"cycle":{start},"cycles":{end - start},'
            f'"job":{job},"layer":{layer},"step":{step}}}{more}}}'
        )


def _flow_ends(timeline: Timeline) -> NDArray[np.int64]:
    """Of each span: 1 if the flow of its job goes on behind it, and 2 more if the flow comes from another span."""
    spans = np.flatnonzero(_in_flow(timeline, slice(None)))
    # as viewers sort them: by time, then by rows, and each row goes on in time
    ordered = spans[np.lexsort((timeline.start[spans], timeline.job[spans]))]
    result = np.zeros(len(timeline), dtype=np.int64)
    alike = np.diff(timeline.job[ordered]) == 0
    result[ordered[:-1][alike]] += 1
    result[ordered[1:][alike]] += 2
    return result


def _in_flow(timeline: Timeline, spans: slice) -> NDArray[np.bool_]:
    """Whether spans belong to the flow of their job: work on units does; threads show it again."""
    units = np.array([row.kind != "thread" for row in timeline.rows], dtype=bool)[timeline.row[spans]]
    mine: NDArray[np.bool_] = (timeline.state[spans] == STATES.index("busy")) & (timeline.job[spans] >= 0)
    return units & mine


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

    with unpacked(path, LIMIT_BYTES, "JSON; save long traces as .csv", plain=True) as file:
        content = file.read()
    try:
        whole = json.loads(content, object_hook=take)
    except (ValueError, RecursionError) as error:
        raise InputError(Mistake(path, f"not valid JSON, perhaps cut short ({error!s:.80})")) from None
    known = whole.get("otherData") if isinstance(whole, dict) else None
    if problems and isinstance(known, dict) and "schema" in known:
        raise InputError(Mistake(path, f"not a slice of an lstmsim trace: {problems[0]!r:.80}"))
    return timeline_of(path, known if isinstance(known, dict) else {}, spans)


#: Lightness in percent (Perfetto has 40 to 79): work has at most the first, waits have at least the second.
DARK, PALE = 58, 76
#: How many hues jobs have. Jobs with neighbouring numbers have hues that are far apart.
_HUES = 24
_STRIDE = 7
_NEAR_DEGREES = 6
#: Waits lie between blue and pink, where light colours are the least vivid.
_CALM_FROM, _CALM_DEGREES = 200, 160


def _hash(text: str, size: int) -> int:
    """Perfetto's hash of a text, below `size`."""
    value = 0x811C9DC5 & 0xFFFFFFF
    for letter in text:
        # As JavaScript does it: a product of doubles, which loses its last digits, then 32 bits with a sign.
        value = int(float(value ^ ord(letter)) * 16777619.0) & 0xFFFFFFFF
        value -= 2**32 if value >= 2**31 else 0
    return abs(value) % size


def colour_of(word: str) -> tuple[int, int]:
    """The hue in degrees and the lightness in percent (HSLuv) that Perfetto gives to a word as correlation id."""
    return _hash(word, 360), _hash(f"{word}x", 40) + 40


@lru_cache(None)
def _word(stem: str, hue: int, low: int, high: int) -> str:
    """The first of `stem 0`, `stem 1` ... with a lightness from `low` to `high` and a hue near `hue`."""
    for number in count():
        word = f"{stem} {number}"
        own, lightness = colour_of(word)
        if low <= lightness <= high and abs((own - hue + 180) % 360 - 180) <= _NEAR_DEGREES:
            return word
    raise AssertionError  # `count` has no end.


def work_word(job: int) -> str:
    """The word for the work of the job with this number. It is dark; the first 24 jobs have hues of their own."""
    place = job * _STRIDE % _HUES
    return _word("work", (210 + place * 360 // _HUES) % 360, 40, DARK)


def state_word(state: str) -> str:
    """The word for a state that is no work. It is pale, and each state has its own word."""
    return _word(state, _CALM_FROM + STATES.index(state) * _CALM_DEGREES // len(STATES), PALE, 79)


Numbers = NDArray[np.int64]

#: Arguments of a slice: numbers of the job, the layer and the time step. A span may lack some of them.
ARGUMENTS = ("job", "layer", "step")

_BLOCK_BYTES = 2**20
#: So many spans become bytes at once.
_CHUNK = 2**14
#: Each kind of track has numbers of its own. Counters are numbered from the third on, rows from the last on.
_GROUP, _FACTS_TRACK, _COUNTER_TRACKS, _ROW_TRACKS = 2**40, 2**40 + 1, 2**41, 2**42
#: Packet sequences: the first describes the tracks; the sequences of rows are numbered from the second on.
_DESCRIPTION, _FIRST_ROW = 1, 2


def builder(_: object, path: str) -> Any:
    """The module with the streaming builder; `InputError` if it is not installed."""
    try:
        from perfetto.trace_builder import proto_builder
    except ImportError:
        sentence = "writing .pftrace needs the extra: pip install 'lstmsim[trace]'; .json.gz needs nothing"
        raise InputError(Mistake(path, sentence)) from None
    return proto_builder


@dataclass(frozen=True)
class _Blocks:
    """Collects packets and writes them to `file` in compressed blocks."""

    module: Any
    file: IO[bytes]
    content: io.BytesIO = field(default_factory=io.BytesIO)

    def write(self, packets: Iterable[Any]) -> None:
        """Write packets."""
        for packet in packets:
            content = self.module.Trace(packet=[packet]).SerializeToString()
            self.add(content, np.array([len(content)]))

    def add(self, content: bytes, ends: Numbers) -> None:
        """Write packets that are bytes already; ends: the place behind each packet. A block ends with a packet."""
        done = 0
        while (last := np.searchsorted(ends, done + _BLOCK_BYTES - self.content.tell())) < len(ends):
            self.content.write(content[done : ends[last]])
            done = int(ends[last])
            self.flush()
        self.content.write(content[done:])

    def flush(self) -> None:
        """Write what is left as one block."""
        packet = self.module.TracePacket(compressed_packets=zlib.compress(self.content.getvalue()))
        self.file.write(self.module.Trace(packet=[packet]).SerializeToString())
        self.content.seek(0)
        self.content.truncate()


def write_pftrace(timeline: Timeline, path: str) -> None:
    """Write a timeline to the file `path`. Equal timelines give equal bytes."""
    module = builder(timeline, path)
    with whole_file(path, "wb") as file:
        blocks = _Blocks(module, file)
        blocks.write(_description(timeline, module.TracePacket))
        blocks.write(_counters_protobuf(timeline, module.TracePacket))
        _write_slices(timeline, blocks)
        blocks.flush()


def _description(timeline: Timeline, packet_type: Any) -> Iterator[Any]:
    """Yield the tracks of the chip and its rows, and the facts."""
    packet = _packet(packet_type, _DESCRIPTION)
    track = packet.track_descriptor
    track.uuid, track.name, track.child_ordering = _GROUP, _text(group_name(timeline)), track.EXPLICIT
    yield packet
    for number, name in enumerate(track_names(timeline.rows)):
        yield _child(packet_type, _ROW_TRACKS + number, name, number)
    yield _child(packet_type, _FACTS_TRACK, "facts", 2**30)
    yield _facts(timeline, packet_type)


def _child(packet_type: Any, number: int, name: str, rank: int) -> Any:
    """The description of a track below the chip, at the place `rank` among its siblings."""
    packet = _packet(packet_type, _DESCRIPTION)
    track = packet.track_descriptor
    track.uuid, track.parent_uuid, track.name, track.sibling_order_rank = number, _GROUP, name, rank
    return packet


def _facts(timeline: Timeline, packet_type: Any) -> Any:
    packet = _packet(packet_type, _DESCRIPTION, timestamp=timeline.shown[0])
    event = packet.track_event
    event.type, event.name = event.TYPE_INSTANT, "facts"
    event.track_uuid = _FACTS_TRACK
    for key, value in facts(timeline).items():
        event.debug_annotations.add(name=key, string_value=value if isinstance(value, str) else as_json(value))
    return packet


def _packet(packet_type: Any, sequence: int, **fields: Any) -> Any:
    return packet_type(trusted_packet_sequence_id=sequence, **fields)


def _text(text: str) -> str:
    """The text with a UTF-8 form: half a surrogate pair has none, and is replaced."""
    return text.encode("utf-8", "replace").decode()


def _counters_protobuf(timeline: Timeline, packet_type: Any) -> Iterator[Any]:
    """Yield how busy the arrays are in percent, one track for each counter, below the rows."""
    counters = busy_counters(timeline, *timeline.shown)
    for number, (name, values) in enumerate(counters.percent.items()):
        packet = _child(packet_type, _COUNTER_TRACKS + number, name, len(timeline.rows) + number)
        packet.track_descriptor.counter.unit_name = "%"
        yield packet
        for cycle, value in zip(counters.edges, values, strict=True):
            packet = _packet(packet_type, _DESCRIPTION, timestamp=cycle)
            event = packet.track_event
            event.type, event.track_uuid = event.TYPE_COUNTER, _COUNTER_TRACKS + number
            event.double_counter_value = value
            yield packet


def _write_slices(timeline: Timeline, blocks: _Blocks) -> None:
    """Write begin and end of every span, each row on a sequence of its own."""
    job, state, busy, none = timeline.job, timeline.state, STATES.index("busy"), len(timeline.jobs)
    names = [*(_text(name) for name in slice_names(timeline.jobs, timeline.groups)), "work", *wait_names()]
    groups = [*timeline.coloured[1].tolist(), none]
    colours = [*(work_word(index) for index in groups), *(state_word(each) for each in STATES)]
    # wide: a state has 8 bits, too few for the number of a name behind the jobs'
    name = np.where(state == busy, np.where(job >= 0, job, none), none + 1 + state.astype(np.int64))
    encoded = lru_cache(1)(lambda part: _slices_protobuf(timeline, slice(part * _CHUNK, (part + 1) * _CHUNK), name))
    # a timeline is sorted by rows
    cuts = np.searchsorted(timeline.row, np.arange(len(timeline.rows) + 1)).tolist()
    for number, (first, last) in enumerate(pairwise(cuts)):
        used = np.unique(name[first:last]).tolist()
        blocks.write([_interned(number, names, colours, used, blocks.module.TracePacket)])
        for part in range(first // _CHUNK, -(-last // _CHUNK)):
            content, ends = encoded(part)
            low, high = (2 * min(max(place - part * _CHUNK, 0), _CHUNK) for place in (first, last))
            blocks.add(content[ends[low] : ends[high]], ends[low + 1 : high + 1] - ends[low])


def _interned(number: int, names: list[str], colours: list[str], used: list[int], packet_type: Any) -> Any:
    """The packet that says once, for the sequence of a row, its track and the words that its slices use."""
    packet = _packet(packet_type, _FIRST_ROW + number)
    packet.sequence_flags = packet_type.SEQ_INCREMENTAL_STATE_CLEARED | packet_type.SEQ_NEEDS_INCREMENTAL_STATE
    packet.trace_packet_defaults.track_event_defaults.track_uuid = _ROW_TRACKS + number
    words = packet.interned_data
    for index in used:
        words.event_names.add(iid=index + 1, name=names[index])
        words.correlation_id_str.add(iid=index + 1, str=colours[index].encode())
    for index, state in enumerate(STATES):
        words.event_categories.add(iid=index + 1, name=state)
    for index, argument in enumerate(ARGUMENTS):
        words.debug_annotation_names.add(iid=index + 1, name=argument)
    return packet


#: Bytes of a field of many messages at once: shape (messages, most bytes), and how many of them each message has. One
#: row stands for all messages.
_Field = tuple[NDArray[np.uint8], Numbers]


def _fixed(text: str) -> _Field:
    """Bytes that all messages have, in hexadecimal digits."""
    content = bytes.fromhex(text)
    return np.frombuffer(content, dtype=np.uint8)[None], np.array([len(content)])


def _varint(values: NDArray[Any]) -> _Field:
    """Numbers from 0 on: seven bits a byte, the lowest first; the highest bit of a byte says that another follows."""
    size = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    parts = values[:, None].astype(np.int64) >> 7 * np.arange(size)
    lengths = np.maximum(1, np.count_nonzero(parts, axis=1))
    more = np.arange(1, size + 1) < lengths[:, None]
    return (parts & 127 | more * 128).astype(np.uint8), lengths


def _flows(timeline: Timeline, spans: slice) -> _Field:
    """The flow of each span's job, as a field of 64 bits."""
    mine = _in_flow(timeline, spans)
    content = np.empty((len(mine), 10), dtype=np.uint8)
    content[:, :2] = (0xF9, 0x02)
    content[:, 2:] = (timeline.job[spans].astype("<i8") + 1).view(np.uint8).reshape(-1, 8)
    return content, 10 * mine


def _message(tag: str, *fields: _Field) -> list[_Field]:
    """A message within another: its tag, its length, its fields."""
    lengths: Numbers = np.sum(np.broadcast_arrays(*(length for _, length in fields)), axis=0)
    return [_fixed(tag), _varint(lengths), *fields]


def _slices_protobuf(timeline: Timeline, spans: slice, name: Numbers) -> tuple[bytes, Numbers]:
    """Begin and end of some spans as packets, and where each of them begins or, at last, all end.

    A packet has the fields timestamp (8), trusted_packet_sequence_id (10), track_event (11) and sequence_flags (13). An
    event has category_iids (3), debug_annotations (4), type (9), name_iid (10), flow_ids (47) and
    correlation_id_str_iid (54).
    """
    sequence, flags = _varint(_FIRST_ROW + timeline.row[spans]), _fixed("6802")
    arguments = []
    for index, argument in enumerate(ARGUMENTS):
        values = getattr(timeline, argument)[spans]
        annotation = _message("22", _fixed(f"08{index + 1:02x}20"), _varint(np.maximum(values, 0)))
        arguments += [(content, lengths * (values >= 0)) for content, lengths in annotation]
    flow = _flows(timeline, spans)
    category, title = _varint(timeline.state[spans] + 1), _varint(name[spans] + 1)
    event = _message("5a", _fixed("18"), category, *arguments, _fixed("480150"), title, _fixed("b003"), title, flow)
    begin = _message("0a", _fixed("40"), _varint(timeline.start[spans]), _fixed("50"), sequence, *event, flags)
    end = _message("0a", _fixed("40"), _varint(timeline.end[spans]), _fixed("50"), sequence, _fixed("5a024802"), flags)
    fields = begin + end
    content = np.empty((len(name[spans]), sum(each.shape[1] for each, _ in fields)), dtype=np.uint8)
    kept, at = np.empty(content.shape, dtype=bool), 0
    for each, lengths in fields:
        place = slice(at, at := at + each.shape[1])
        content[:, place], kept[:, place] = each, np.arange(each.shape[1]) < lengths[:, None]
    sizes = np.stack(np.broadcast_arrays(*(sum(lengths for _, lengths in each) for each in (begin, end))), axis=1)
    return content[kept].tobytes(), np.append(0, np.cumsum(sizes))
