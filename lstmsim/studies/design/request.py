"""Options of designs: what is minimised, under which constraints, among which chips."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any

from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.studies.shared.request import Jobs, Overrides, Path, Progress, Source, StabilityShare, share_in

#: What can be minimised -> the column of a sweep's table that has it; empty: it is known before a simulation.
OBJECTIVES = {
    "cycles": "makespan_cycles",
    "ms": "makespan_cycles",
    "p50_ms": "latency_ms_p50",
    "p95_ms": "latency_ms_p95",
    "p99_ms": "latency_ms_p99",
    "energy_j": "",
    "npe": "",
    "share": "",
}
#: What is minimised -> its percentile of latencies.
PERCENT_OF = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
#: Percentiles of latencies that can be bounded -> their columns.
PERCENTILES = {50: "latency_ms_p50", 95: "latency_ms_p95", 99: "latency_ms_p99", 100: "latency_ms_max"}


def _values(texts: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Texts like `chip.cores.0.ep=16,32` as values by key; a value is a number, true, false, null or a word."""
    axes: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        key = key.strip()
        words = [each.strip() for each in values.split(",")]
        if not equals or not key or "" in words:
            raise ValueError(f"{text!r} is not a key and its values, like chip.cores.0.ep=16,32")
        if key in axes:
            raise ValueError(f"{key!r} comes twice; name all of its values at once")
        axes[key] = tuple(_value(each) for each in words)
    return axes


def _value(word: str) -> Any:
    try:
        value = json.loads(word) if len(word) < 300 else word
    except (ValueError, RecursionError):
        return word
    return value if isinstance(value, int | float | str | bool | None) else word


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(","))


@record
class DesignRequest:
    """A scenario, what is minimised, and the designs among which the best is sought."""

    scenario: Source
    device: Annotated[
        Path, Key("A known device or a device file that the chip must fit, or none.", flag="--device", metavar="NAME")
    ]
    _: KW_ONLY
    minimise: Annotated[
        Sequence[str],
        Key(
            f"What is minimised, of {', '.join(OBJECTIVES)}; several, with commas between them, for a front.",
            metavar="WHAT",
            read=_names,
        ),
    ] = ("cycles",)
    axes: Annotated[
        Mapping[str, Sequence[Any]] | None,
        Key(
            "A key and its values, like chip.cores.0.ep=16,32.",
            follows="a space of sizes",
            flag="--axis",
            metavar="KEY=V1,V2,...",
            repeatable=True,
            read=_values,
        ),
    ] = None
    allow_cannot_tell: Annotated[
        bool, Key("Take designs of which it cannot be told whether they fit; the report says so.")
    ] = False
    fill: Annotated[
        float | None,
        Key(
            "Share of the device that may be used, like 80%.",
            above=0,
            below=1,
            metavar="SHARE",
            follows="all of it",
            read=share_in,
        ),
    ] = None
    bound_ms: Annotated[
        float | None, Key("Most ms that the percentile of latencies may be.", above=0, metavar="MS")
    ] = None
    percentile: Annotated[int, Key("Percentile that --bound-ms bounds: 50, 95, 99 or 100.", metavar="P")] = 99
    accuracy_db: Annotated[
        float | None,
        Key(
            "Least dB that each job's outputs must have against float64, as lstmsim accuracy measures.",
            low=0,
            metavar="DB",
        ),
    ] = None
    most: Annotated[
        int | None,
        Key("Most designs to simulate; the report says how far from the bound the search ends.", low=1, metavar="N"),
    ] = None
    until: Annotated[
        int,
        Key("At drawn arrivals, most requests of a run that tells designs apart.", low=1, high=1_000_000, metavar="N"),
    ] = 20_000
    folder: Annotated[
        Path | None,
        Key(
            "Folder for the table, the best chips, and what a run that is killed goes on with.",
            flag="--out",
            metavar="DIR",
        ),
    ] = None
    stability: StabilityShare = None
    jobs: Jobs = None
    dask: Annotated[str | None, Key("Compute on a dask cluster, like tcp://host:8786.", metavar="ADDRESS")] = None
    overrides: Overrides = ()
    progress: Progress = None
    announce: Annotated[
        Callable[[str], None] | None, Key("Function that is called with the space, before it is walked.")
    ] = None
