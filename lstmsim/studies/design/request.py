"""Options of designs: what is minimised, under which constraints, among which chips."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Annotated, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key
from lstmsim.base.records import record
from lstmsim.base.wording import nearest
from lstmsim.studies.shared.request import (
    CLOCK_MODEL,
    Clock,
    Jobs,
    Overrides,
    Path,
    Progress,
    Source,
    StabilityShare,
    share_in,
)

#: What can be minimised -> the column of a sweep's table that has it; empty: it is known before a simulation.
OBJECTIVES = {
    "cycles": "makespan_cycles",
    "ms": "makespan_cycles",
    "us": "makespan_cycles",
    "p50_ms": "latency_ms_p50",
    "p95_ms": "latency_ms_p95",
    "p99_ms": "latency_ms_p99",
    "energy_j": "",
    "npe": "",
    "share": "",
}
#: What is minimised in a time of the makespan -> how many of it are a microsecond.
MAKESPAN = {"ms": 1000.0, "us": 1.0}
#: What can be maximised.
BEARS = "requests_per_second"
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
            f"Objective to minimise, of {', '.join(OBJECTIVES)}; several, with commas between them, give a front.",
            metavar="WHAT",
            follows="cycles, if nothing is maximised",
            read=_names,
        ),
    ] = ()
    maximise: Annotated[
        Sequence[str],
        Key(
            f"Objective to maximise: {BEARS}, the highest rate that keeps --bound-ms, as lstmsim saturate finds it.",
            metavar="WHAT",
            read=_names,
        ),
    ] = ()
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
        bool, Key("Accept designs of which it cannot be told whether they fit the device; the report says so.")
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
        float | None, Key("Upper bound on the percentile of latencies, in ms.", above=0, metavar="MS")
    ] = None
    at_rate: Annotated[
        float | None,
        Key(
            "Requests per second at which every design must certainly keep --bound-ms, instead of the scenario's rate.",
            above=0,
            metavar="RATE",
        ),
    ] = None
    percentile: Annotated[int, Key("Percentile that --bound-ms bounds: 50, 95, 99 or 100.", metavar="P")] = 99
    accuracy_db: Annotated[
        float | None,
        Key(
            "Lowest accuracy of every job's outputs against float64, in dB, as lstmsim accuracy measures it.",
            low=0,
            metavar="DB",
        ),
    ] = None
    most: Annotated[
        int | None,
        Key("Most designs to simulate; the report says how far the answer is from the bound.", low=1, metavar="N"),
    ] = None
    trials: Annotated[
        int | None,
        Key(
            "Number of designs that Optuna chooses in place of all; a space may have more than 10,000,000 then.",
            low=1,
            high=1_000_000,
            metavar="N",
        ),
    ] = None
    until: Annotated[
        int,
        Key(
            "Most requests of a run that judges a rate, or that compares designs under random arrivals.",
            low=1,
            high=1_000_000,
            metavar="N",
        ),
    ] = 20_000
    folder: Annotated[
        Path | None,
        Key(
            "Folder for the table and the best chips; the same command resumes an interrupted search from it.",
            flag="--out",
            metavar="DIR",
        ),
    ] = None
    stability: StabilityShare = None
    clock: Clock = None
    jobs: Jobs = None
    dask: Annotated[str | None, Key("Compute on a dask cluster, like tcp://host:8786.", metavar="ADDRESS")] = None
    overrides: Overrides = ()
    progress: Progress = None
    announce: Annotated[
        Callable[[str], None] | None, Key("Function that is called with the space, before it is walked.")
    ] = None

    @property
    def told(self) -> bool:
        """Whether each design has the clock that the model of its machine tells."""
        return self.clock == CLOCK_MODEL

    @property
    def names(self) -> tuple[str, ...]:
        """What is sought: what is minimised, then what is maximised."""
        return (*self.minimise, *self.maximise)


def checked(request: DesignRequest) -> DesignRequest:
    """Fill in what is minimised where nobody said it; `InputError` for what does not go together."""
    if not request.names:
        request = replace(request, minimise=("cycles",))
    for option, known in (("minimise", [*OBJECTIVES]), ("maximise", [BEARS])):
        names = getattr(request, option)
        for name in names:
            if name not in known:
                text = f"is not known{nearest(name, known)}; there are: {', '.join(known)}"
                raise InputError(Mistake(f"{option} {name}", text))
        if len(set(names)) < len(names):
            raise InputError(Mistake(option, "names something twice"))
    if request.percentile not in PERCENTILES:
        text = f"must be one of {', '.join(map(str, PERCENTILES))}, got {request.percentile}"
        raise InputError(Mistake("percentile", text))
    if request.device == "none":
        for wrong, name in ((request.fill is not None, "fill"), ("share" in request.minimise, "minimise share")):
            if wrong:
                raise InputError(Mistake(name, "needs a device, got none"))
    if request.clock is not None:
        _check_clock(request)
    if request.trials is not None:
        others = {"most": request.most, "stability": request.stability, "several objectives": request.names[1:] or None}
        for option in (each for each, value in others.items() if value is not None):
            raise InputError(Mistake("trials", f"does not go with {option}"))
    if request.maximise or request.at_rate is not None:
        _check_rates(request, f"maximise {BEARS}" if request.maximise else "at_rate")
    return request


def _check_clock(request: DesignRequest) -> None:
    """`InputError` for a clock beside another one, or with what is not answered at clocks that are predicted."""
    keys = [*(request.axes or ()), *(each.partition("=")[0] for each in request.overrides)]
    if any(key.strip().endswith("frequency_mhz") for key in keys):
        raise InputError(Mistake("clock", "does not go with chip.frequency_mhz: it takes its place"))
    if not request.told:
        return
    others = {name: getattr(request, name) for name in ("bound_ms", "at_rate", "stability", "trials")}
    asked = [option for option, value in others.items() if value is not None]
    asked += [f"minimise {name}" for name in request.minimise if name in PERCENT_OF]
    asked += [f"maximise {name}" for name in request.maximise]
    for option in asked:
        text = "does not go with clock model, which is asked of the makespan only: name MHz, or the file of a build"
        raise InputError(Mistake(option, text))
    if not set(MAKESPAN) & set(request.minimise):
        raise InputError(Mistake("clock", "model changes times only: minimise us or ms, alone or with others"))


def _check_rates(request: DesignRequest, name: str) -> None:
    """`InputError` for a question about rates that is not whole, or that is not answered."""
    if request.bound_ms is None:
        raise InputError(Mistake("bound_ms", f"is missing: {name} needs a bound on latencies"))
    if request.percentile == 100:
        raise InputError(Mistake("percentile", f"must be below 100 with {name}, got 100"))
    for other in ("stability", "dask"):
        if getattr(request, other) is not None:
            raise InputError(Mistake(other, f"does not go with {name}: rates are searched here, on chips as they are"))
