"""Perfetto's protobuf, read by Perfetto's own messages: every span and counter is there, nothing overlaps."""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from lstmsim.analysis.files import save_trace
from lstmsim.analysis.files.columns import facts
from lstmsim.analysis.files.perfetto import busy_counters, colour_of, group_name, slice_names, track_names, wait_names
from lstmsim.analysis.timeline import STATES, Row, Timeline, window
from lstmsim.base.errors import InputError
from tests.strategies import examples
from tests.timelines import BUSY, busy_machine, small, timeline_from, timelines

messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")


def packets(path: Path) -> Iterator[Any]:
    """All packets of a file, unpacked."""
    for packet in messages.Trace.FromString(path.read_bytes()).packet:
        assert packet.WhichOneof("data") == "compressed_packets"
        yield from messages.Trace.FromString(zlib.decompress(packet.compressed_packets)).packet


class Parsed:
    """What Perfetto makes of a file: tracks, closed slices by track, counters by track, the arguments of `facts`."""

    def __init__(self, path: Path) -> None:
        self.tracks: dict[int, Any] = {}
        self.slices: dict[int, list[tuple]] = defaultdict(list)
        self.counters: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.flows: dict[int, list[list[int]]] = defaultdict(list)
        self.facts: dict[str, str] = {}
        self.colours: dict[str, str] = {}
        self._words: dict[int, dict[str, dict[int, str]]] = {}
        self._track: dict[int, int] = {}
        self._open: dict[int, tuple] = {}
        for packet in packets(path):
            self._take(packet)
        assert self._open == {}

    def _take(self, packet: Any) -> None:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
            self._words[sequence] = {
                kind: {word.iid: word.name for word in getattr(packet.interned_data, kind)}
                for kind in ("event_names", "event_categories", "debug_annotation_names")
            }
            self.colours |= {
                self._words[sequence]["event_names"][word.iid]: word.str.decode()
                for word in packet.interned_data.correlation_id_str
            }
            self._track[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        elif packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in self.tracks
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        else:
            self._event(packet.timestamp, packet.track_event, sequence)

    def _event(self, time: int, event: Any, sequence: int) -> None:
        track = event.track_uuid or self._track[sequence]
        assert track in self.tracks
        if event.type == event.TYPE_COUNTER:
            self.counters[track].append((time, event.double_counter_value))
        elif event.type == event.TYPE_INSTANT:
            assert event.name == "facts"
            self.facts = {each.name: each.string_value for each in event.debug_annotations}
        elif event.type == event.TYPE_SLICE_BEGIN:
            assert track not in self._open, "slices of a track overlap"
            words = self._words[sequence]
            values = {
                words["debug_annotation_names"][each.name_iid]: each.int_value for each in event.debug_annotations
            }
            name, (category,) = words["event_names"][event.name_iid], event.category_iids
            assert event.correlation_id_str_iid == event.name_iid
            self.flows[track].append(list(event.flow_ids))
            self._open[track] = (time, words["event_categories"][category], name, values)
        else:
            assert event.type == event.TYPE_SLICE_END
            start, *others = self._open.pop(track)
            self.slices[track].append((start, time, *others))


def saved(timeline: Timeline) -> Parsed:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.pftrace")
        save_trace(timeline, path)
        return Parsed(path)


def expected(timeline: Timeline, number: int) -> list[tuple]:
    """The slices of a row."""
    jobs, waits, slices = slice_names(timeline.jobs), wait_names(), []
    columns = (timeline.row, timeline.start, timeline.end, timeline.state, timeline.job, timeline.layer, timeline.step)
    for row, start, end, state, job, layer, step in zip(*(column.tolist() for column in columns), strict=True):
        if row == number:
            work = jobs[job] if job >= 0 else "work"
            values = {key: value for key, value in (("job", job), ("layer", layer), ("step", step)) if value >= 0}
            slices.append((start, end, STATES[state], work if state == BUSY else waits[state], values))
    return slices


@given(timelines())
@settings(max_examples=examples(12), deadline=None)
def test_every_span_is_a_slice_of_its_rows_track(timeline):
    parsed = saved(timeline)
    (group,) = (each for each in parsed.tracks.values() if not each.parent_uuid)
    below = sorted(
        (each for each in parsed.tracks.values() if each.parent_uuid == group.uuid),
        key=lambda each: each.sibling_order_rank,
    )
    assert len(below) == len(parsed.tracks) - 1
    for number, (track, name) in enumerate(zip(below, track_names(timeline.rows), strict=False)):
        assert track.name == name
        assert parsed.slices[track.uuid] == expected(timeline, number)
        assert all(one[1] <= other[0] for one, other in pairwise(parsed.slices[track.uuid]))


def test_work_of_units_bears_the_flow_of_its_job():
    """A flow goes from slice to slice in the order of time; what rows of threads show is there on the units."""
    timeline = busy_machine(2, 2, 4, 60)
    parsed = saved(timeline)
    tracks = {track.name: number for number, track in parsed.tracks.items()}
    for number, (row, name) in enumerate(zip(timeline.rows, track_names(timeline.rows), strict=True)):
        mine = timeline.row == number
        work = (timeline.state[mine] == BUSY) & (row.kind != "thread")
        jobs = timeline.job[mine].tolist()
        flows = [[job + 1] if working else [] for job, working in zip(jobs, work.tolist(), strict=True)]
        assert parsed.flows[tracks[name]] == flows


@pytest.mark.parametrize("jobs", [100, 117, 121, 127, 128, 300])
def test_waits_have_their_names_with_any_number_of_jobs(jobs):
    """Names are numbered behind the jobs': their numbers are larger than a state's, which have 8 bits."""
    waits = [
        (0, cycle, cycle + 1, state, -1, -1, -1) for cycle, state in enumerate(range(len(STATES))) if state != BUSY
    ]
    work = (0, len(STATES), len(STATES) + 1, BUSY, jobs - 1, 0, 0)
    names = tuple(f"m #{number}" for number in range(jobs))
    timeline = timeline_from([*waits, work], (Row(0, "array"),), names, len(STATES) + 1)
    assert [slices for slices in saved(timeline).slices.values() if slices] == [expected(timeline, 0)]


@pytest.mark.parametrize("cores", [1, 3])
def test_counters_are_those_of_the_json(cores):
    timeline = busy_machine(cores, 2, 4, 50)
    counters = busy_counters(timeline, 0, timeline.makespan_cycles)
    parsed = saved(timeline)
    series = {parsed.tracks[uuid].name: values for uuid, values in parsed.counters.items()}
    wanted = {name: list(zip(counters.edges, values, strict=True)) for name, values in counters.percent.items()}
    assert series == wanted
    assert len(series) == (1 if cores == 1 else cores + 1)


def test_the_trace_states_its_facts_and_its_window():
    timeline = window(small(), 30, 100)
    parsed = saved(timeline)
    known = {key: value if isinstance(value, str) else json.dumps(value) for key, value in facts(timeline).items()}
    assert parsed.facts.keys() == known.keys()
    assert json.loads(parsed.facts["window"]) == [30, 100]
    assert parsed.facts["time"] == "1 ns = 1 cycle"
    times = [time for spans in parsed.slices.values() for span in spans for time in span[:2]]
    assert (min(times), max(times)) == (30, 100)


def test_all_tracks_are_in_one_group_and_none_is_empty():
    # Viewers open a group if it is the only one.
    for timeline in (busy_machine(1, 2, 4, 60), busy_machine(3, 2, 4, 60)):
        parsed = saved(timeline)
        (group,) = (uuid for uuid, each in parsed.tracks.items() if not each.parent_uuid)
        assert (parsed.tracks[group].name, parsed.tracks[group].child_ordering) == (group_name(timeline), 3)
        assert not any(each.HasField("process") or each.HasField("thread") for each in parsed.tracks.values())
        shown = {uuid for uuid, each in parsed.tracks.items() if each.name != "facts"} - {group}
        assert shown == set(parsed.slices) | set(parsed.counters)


def test_waits_are_paler_than_work():
    timeline = busy_machine(1, 2, 4, 60)
    colours = saved(timeline).colours
    waits = {name for name in colours if name in wait_names()}
    assert waits
    assert max(colour_of(word)[1] for name, word in colours.items() if name not in waits) + 15 < min(
        colour_of(colours[name])[1] for name in waits
    )
    assert len(set(colours.values())) == len(colours)


def test_many_blocks_hold_what_one_holds(monkeypatch):
    timeline = busy_machine(1, 2, 4, 60)
    whole = saved(timeline)
    monkeypatch.setattr("lstmsim.analysis.files.perfetto._BLOCK_BYTES", 100)
    parts = saved(timeline)
    assert parts.slices == whole.slices
    assert parts.counters == whole.counters


def test_without_the_package_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "perfetto.trace_builder", None)
    with pytest.raises(
        InputError, match=r"a\.pftrace: writing \.pftrace needs the extra: pip install 'lstmsim\[trace\]'"
    ):
        save_trace(small(), tmp_path / "a.pftrace")
    assert list(tmp_path.iterdir()) == []
