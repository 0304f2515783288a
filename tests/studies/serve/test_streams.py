"""Live streams: frames of several streams, pinned or not, against a schedule made by hand, on both engines."""

from typing import Any

import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.base.errors import InputError
from lstmsim.program.trace import TASKS
from lstmsim.studies.serve.request import Row
from lstmsim.studies.shared.loading import load_scenario

#: An LSTM 8/8 of 2 steps, which takes 115 cycles alone on this core (docs/timing.md, section 9).
MODEL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
CORE = {"npe": 64, "ep": 4, "vp": 16, "tail_width": 64, "threads": 1}


def _scenario(cores: int, frames: int, keys: dict[str, Any], **job: Any) -> dict[str, Any]:
    """Streams of a frame every 250 cycles."""
    chip = {"kind": "column-npu", "frequency_mhz": 1000, "cores": [{"count": cores, **CORE}]}
    arrival = {"kind": "stream", "frame_ms": 0.00025, **keys}
    return {
        "chip": chip,
        "jobs": [{"model": MODEL, "steps": 2, "count": keys["streams"] * frames, "arrival": arrival, **job}],
    }


def _tasks(scenario: dict[str, Any], engine: str) -> list[tuple[int, int, int, int]]:
    read = load_scenario(scenario)
    tasks = engines.totals(machines.lower(read.chip, read.jobs), engine).tasks
    columns = (TASKS.of(tasks, name).tolist() for name in ("arrived", "admitted", "finish", "core"))
    return list(zip(*columns, strict=True))


def _by_hand(cores: int, streams: int, frames: int, *, together: bool) -> list[tuple[int, int, int, int]]:
    """Arrival, start, finish and core of pinned frames: each core takes its streams' frames in the order they come."""
    free, rows = [0] * cores, []
    for request in range(streams * frames):
        stream, frame = request % streams, request // streams
        arrival = frame * 250 if together else (frame * streams + stream) * 250 // streams
        start = max(arrival, free[stream % cores])
        free[stream % cores] = start + 115
        rows.append((arrival, start, start + 115, stream % cores))
    return rows


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize(("cores", "streams"), [(1, 2), (2, 3), (2, 4), (2, 5), (3, 7)])
@pytest.mark.parametrize("phases", ["even", "together"])
def test_pinned_frames_run_as_by_hand(cores: int, streams: int, phases: str, engine: str) -> None:
    scenario = _scenario(cores, 4, {"streams": streams, "phases": phases, "session": "pinned"})
    assert _tasks(scenario, engine) == _by_hand(cores, streams, 4, together=phases == "together")


def test_the_worked_example_of_the_docs() -> None:
    rows = _tasks(_scenario(2, 3, {"streams": 3, "session": "pinned"}), "fast")
    assert rows[0::3] == [(0, 0, 115, 0), (250, 281, 396, 0), (500, 531, 646, 0)]
    assert rows[1::3] == [(83, 83, 198, 1), (333, 333, 448, 1), (583, 583, 698, 1)]
    assert rows[2::3] == [(166, 166, 281, 0), (416, 416, 531, 0), (666, 666, 781, 0)]


@pytest.mark.parametrize("session", ["anywhere", "pinned"])
@pytest.mark.parametrize("phases", ["even", "together"])
@pytest.mark.parametrize("streams", [3, 4, 5])
def test_frames_are_served_as_simulated_and_due_before_the_next_of_their_stream(
    session: str, phases: str, streams: int
) -> None:
    scenario = _scenario(2, 5, {"streams": streams, "phases": phases, "session": session})
    rows: list[Row] = []
    served, report = lstmsim.serve(scenario, rows=rows.extend), lstmsim.simulate(scenario)
    mine = sorted((each.arrival, each.start, each.finish, each.core) for each in rows)
    assert mine == sorted((each.arrival, each.start, each.finish, each.core) for each in report.jobs)
    assert served.serving.misses == sum(each.finish - each.arrival > 250 for each in rows)
    assert (served.serving.misses > 0) == (streams == 5)


@pytest.mark.parametrize("streams", [2, 3, 4])
def test_the_load_is_that_of_the_core_with_the_most_streams(streams: int) -> None:
    load = lstmsim.serve(_scenario(2, 60, {"streams": streams, "session": "pinned"})).serving.load
    assert load is not None
    assert load.parts["threads"] == pytest.approx(-(-streams // 2) * 115 / 250)


@pytest.mark.slow
def test_one_stream_is_as_before_and_a_device_has_one_place() -> None:
    one = _scenario(1, 5, {"streams": 1})
    plain = {**one, "jobs": [{**one["jobs"][0], "arrival": {"kind": "stream", "frame_ms": 0.00025}}]}
    assert _tasks(one, "fast") == _tasks(plain, "fast")
    arrival = {"kind": "stream", "frame_ms": 10, "streams": 3, "session": "pinned"}
    batching = {"max_batch_size": 3}
    job = {"model": MODEL, "steps": 1, "count": 9, "arrival": arrival, "batching": batching}
    assert lstmsim.serve({"chip": "edge", "jobs": [job]}).serving.misses == 0


@pytest.mark.parametrize(
    ("job", "place"),
    [
        ({"split": "rows"}, r"jobs\.0\.split"),
        ({"batching": {"max_batch_size": 2}}, r"jobs\.0\.batching: .*pinned streams"),
        ({"steps": {"kind": "uniform", "low": 1, "high": 2}}, r"jobs\.0\.steps"),
    ],
)
def test_what_pinned_streams_do_not_go_with(job: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match=place):
        lstmsim.serve(_scenario(2, 2, {"streams": 2, "session": "pinned"}, **job))
    with pytest.raises(InputError, match=r"arrival\.streams: above 4,096 pinned streams must be a multiple of the 2"):
        lstmsim.serve(_scenario(2, 1, {"streams": 4097, "session": "pinned"}))
    arrival = {"kind": "stream", "frame_ms": 1, "session": "pinned"}
    with pytest.raises(InputError, match=r"arrival\.session: jobs of this machine run on several cores"):
        lstmsim.serve({"chip": "epyc-7742", "jobs": [{"model": MODEL, "steps": 1, "arrival": arrival}]})


def test_pinned_streams_are_not_compared_on_chips_of_other_cores() -> None:
    """They were dealt out over the cores of the scenario's own chip: elsewhere they once ran anywhere, in silence."""
    keys = {"streams": 3, "session": "pinned"}
    one = _scenario(1, 4, keys)
    rows = lstmsim.compare(one, ["epyc-7742", "column-npu-16k", "v100"]).entries[0]
    text = "pinned streams have their states on the 1 core of column-npu: choose session anywhere"
    assert [each.reason for each in rows] == ["", text, "", ""]
    assert lstmsim.compare(_scenario(2, 4, keys), ["column-npu-16k"]).entries[0][1].reason.endswith("anywhere")
    free = lstmsim.compare(_scenario(2, 4, {"streams": 3}), ["column-npu-16k"])
    assert free.entries[0][1].reason == ""
