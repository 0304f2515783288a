"""Options of serving: one run, the search of a rate, curves of latency."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, NamedTuple

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Jobs, Overrides, Path, Progress, Source, share_in


class Row(NamedTuple):
    """One request that is done.

    request: its number, in the order in which requests come.
    job: the name of its job entry.
    core, thread: where it ran, step by step where it began; -1: it was rejected, at `start`.
    arrival, start, finish: cycles.
    tenant: the name of the tenant that sent it.
    """

    request: int
    job: str
    core: int
    thread: int
    arrival: int
    start: int
    finish: int
    steps: int
    tenant: str


def _names(text: str) -> tuple[str, ...]:
    words = tuple(each.strip() for each in text.split(","))
    if "" in words:
        raise ValueError(f"{text!r} has an empty entry; expected names with commas between them")
    return words


def _bounds(texts: Sequence[str]) -> dict[str, float]:
    """`NAME=MS` as a bound of the tenant NAME."""
    bounds: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not equals or not name or not 0 < number < float("inf"):
            raise ValueError(f"{text!r} is not a job entry's name and its bound in ms, like lstm-512=0.5")
        if name in bounds:
            raise ValueError(f"{name!r} has two bounds")
        bounds[name] = number
    return bounds


@record
class ServeRequest:
    """A scenario whose requests are served as they come, and for how long."""

    scenario: Source
    _: KW_ONLY
    requests: Annotated[
        int | None,
        Key(
            "Number of requests in all. If no entry at a rate has a `count`, serving ends when the intervals of the "
            "mean and the last percentile are within 5 %, or after 500,000 requests.",
            follows="the file's",
            metavar="N",
        ),
    ] = None
    until_half_width: Annotated[
        float | None,
        Key(
            "Serve until the 95 % intervals of the mean and the last percentile have at most this half width, a share "
            "of the value like 2% or 0.02; --requests then bounds the requests (10,000,000).",
            metavar="SHARE",
            read=share_in,
        ),
    ] = None
    overrides: Overrides = ()
    percentiles: Annotated[Sequence[float], Key("Percentiles of the latencies; the last one is judged.")] = (
        50.0,
        95.0,
        99.0,
        99.9,
    )
    window: Annotated[
        int, Key("Most requests that may be in the machine at once; with more of them, serving ends there.")
    ] = 8192
    rows: Annotated[
        Callable[[Sequence[Row]], None] | None, Key("Function that is called with requests that are done, as they end.")
    ] = None
    progress: Progress = None


MostRequests = Annotated[
    int | None, Key("Most requests of one run.", low=1, high=10**9, follows="1,000,000", metavar="N")
]
Effort = Annotated[
    float | None,
    Key(
        "CPU seconds after which a search ends with the rates known by then.",
        above=0,
        follows="20; no limit with --most-requests alone, whose answers depend on no clock",
        metavar="SECONDS",
    ),
]


@record
class SaturateRequest:
    """A scenario, the bounds that its latencies must meet, and between which rates to search."""

    scenario: Source
    bound_ms: Annotated[
        float | None, Key("Bound on the percentile of the latencies of all requests.", above=0, metavar="MS")
    ] = None
    _: KW_ONLY
    bounds_ms: Annotated[
        Mapping[str, float] | None,
        Key(
            "Bound on the latency of one tenant, by the name of its job entry.",
            flag="--bound",
            metavar="NAME=MS",
            repeatable=True,
            read=_bounds,
        ),
    ] = None
    percentile: Annotated[float, Key("Latency percentile that must meet the bound.", metavar="P")] = 99.0
    low: Annotated[
        float | None,
        Key(
            "Lowest rate that is tried.",
            above=0,
            follows="a hundredth of the highest rate that the machine could serve",
            flag="--from",
            metavar="RATE",
        ),
    ] = None
    high: Annotated[
        float | None,
        Key(
            "Highest rate that is tried.",
            above=0,
            follows="the highest rate that the machine could serve; more if requests may be rejected",
            flag="--to",
            metavar="RATE",
        ),
    ] = None
    tolerance: Annotated[float, Key("Relative tolerance of the reported rate.", metavar="SHARE")] = 0.05
    most_requests: MostRequests = None
    effort: Effort = None
    overrides: Overrides = ()
    progress: Progress = None


def _milliseconds(text: str) -> tuple[float, ...]:
    """`0.5,1,2` as bounds in ms."""
    try:
        numbers = tuple(float(each) for each in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(0 < each < float("inf") for each in numbers):
        raise ValueError(f"{text!r} is no list of bounds in ms, like 0.5,1,2")
    return numbers


def _sizes(text: str) -> tuple[int, ...]:
    """`1,4,16` as sizes of batches."""
    words = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() and int(each) > 0 for each in words):
        raise ValueError(f"{text!r} is no list of sizes of batches from 1 on, like 1,4,16")
    return tuple(map(int, words))


#: Options that `saturate` has for several chips.
Chips = Annotated[
    str | Sequence[str],
    Key("Chip with a rate, in addition to the file's own.", flag="--chip", metavar="NAME_OR_PATH", repeatable=True),
]
AlsoMs = Annotated[
    Sequence[float],
    Key(
        "With --chip or --batch: further bounds, like 0.5,1,2, with a search each.", metavar="LIST", read=_milliseconds
    ),
]
Batches = Annotated[
    Sequence[int],
    Key(
        "Largest batch sizes (`batching.max_batch_size` of all jobs), like 1,4,16; the search is repeated for every "
        "size and chip; with 1, requests run alone.",
        flag="--batch",
        metavar="LIST",
        follows="the file's",
        read=_sizes,
    ),
]
Folder = Annotated[
    Path | None,
    Key(
        "With --chip or --batch: folder that keeps every answer; the same command resumes with the missing answers.",
        flag="--out",
        metavar="DIR",
    ),
]


@record
class SaturateChipsRequest:
    """A scenario, the bound that its latencies must meet, and the chips that are asked for their rates."""

    scenario: Source
    bound_ms: Annotated[float, Key("Bound on the percentile of the latencies of all requests.", above=0, metavar="MS")]
    chips: Chips = ()
    _: KW_ONLY
    also_ms: AlsoMs = ()
    batches: Batches = ()
    percentile: Annotated[float, Key("Latency percentile that must meet the bound.", metavar="P")] = 99.0
    tolerance: Annotated[float, Key("Relative tolerance of the reported rates.", metavar="SHARE")] = 0.05
    most_requests: MostRequests = None
    effort: Effort = None
    folder: Folder = None
    jobs: Jobs = 1
    overrides: Overrides = ()
    progress: Progress = None


@record
class LoadLatencyRequest:
    """A scenario, the loads at which it is served, and its variants, each of which has a curve."""

    scenario: Source
    _: KW_ONLY
    policies: Annotated[
        str | Sequence[str],
        Key("Orders of dispatch, like fcfs,sjf,edf+preempt.", follows="the file's", metavar="LIST", read=_names),
    ] = ()
    placements: Annotated[
        str | Sequence[str],
        Key("Placements, like least-loaded,affinity.", follows="the file's", metavar="LIST", read=_names),
    ] = ()
    chips: Annotated[
        str | Sequence[str],
        Key(
            "Chip with a curve, in addition to the file's own.", flag="--chip", metavar="NAME_OR_PATH", repeatable=True
        ),
    ] = ()
    loads: Annotated[
        str | Sequence[float],
        Key("Loads that are simulated: N evenly spaced ones from A to B, or a list with commas.", metavar="A:B[:N]"),
    ] = "0.3:0.95"
    requests: Annotated[
        int | None,
        Key("Requests of each point.", low=1, metavar="N", follows="20,000 to 200,000, as a p99 takes at that load"),
    ] = None
    until_half_width: Annotated[
        float | None,
        Key(
            "Serve each point until the 95 % intervals of the mean and p99 have at most this half width, a share of "
            "the value like 5%.",
            above=0,
            below=1,
            metavar="SHARE",
            read=share_in,
        ),
    ] = None
    most_requests: Annotated[int, Key("Most requests of a point where intervals decide.", low=1, metavar="N")] = 640_000
    folder: Annotated[
        Path | None,
        Key(
            "Folder in which every point is kept; the same command resumes with the points that are missing.",
            flag="--out",
            metavar="DIR",
        ),
    ] = None
    jobs: Annotated[
        int | None, Key("Number of processes; None stands for one for each processor.", low=1, high=1024, metavar="N")
    ] = 1
    overrides: Overrides = ()
    progress: Progress = None
