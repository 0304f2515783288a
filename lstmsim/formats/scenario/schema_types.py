"""The types of values in scenario, chip and model files; their bounds are those of `lstmsim.bounds`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from lstmsim.bounds import (
    MAX_BANKS,
    MAX_CELLS,
    MAX_CONTEXTS,
    MAX_CORES,
    MAX_CYCLES,
    MAX_FREQUENCY_MHZ,
    MAX_GB_PER_S,
    MAX_INTERVAL_CYCLES,
    MAX_JOBS,
    MAX_LATENCY_CYCLES,
    MAX_PES,
    MAX_SIZE,
    MAX_STEPS,
    MAX_THREADS,
    MAX_WEIGHT_KIB,
    MIN_FREQUENCY_MHZ,
    MIN_GB_PER_S,
)
from lstmsim.workload.cell_rules import MAX_GATES

__all__ = [
    "MAX_BANKS",
    "MAX_CELLS",
    "MAX_CONTEXTS",
    "MAX_CORES",
    "MAX_CYCLES",
    "MAX_FREQUENCY_MHZ",
    "MAX_GB_PER_S",
    "MAX_INTERVAL_CYCLES",
    "MAX_JOBS",
    "MAX_LATENCY_CYCLES",
    "MAX_PES",
    "MAX_SIZE",
    "MAX_STEPS",
    "MAX_THREADS",
    "MAX_WEIGHT_KIB",
    "MIN_FREQUENCY_MHZ",
    "MIN_GB_PER_S",
    "Arrivals",
    "Cycles",
    "Depth",
    "DepthOrNone",
    "Entry",
    "Frequency",
    "InputsPath",
    "Name",
    "Parts",
    "Pes",
    "Size",
    "Steps",
    "Sums",
    "Text",
    "Vectors",
    "WeightsPath",
    "Width",
    "Word",
]


def _named(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("must be printable text without spaces around it")
    return name


def _ticking(frequency_mhz: float) -> float:
    if frequency_mhz < MIN_FREQUENCY_MHZ:
        raise ValueError(f"must be at least {MIN_FREQUENCY_MHZ:g}")
    return frequency_mhz


def _parts_or_list(value: Any) -> str:
    return "(parts)" if isinstance(value, dict) else "(list)"


def _ending(*suffixes: str) -> AfterValidator:
    def check(path: str) -> str:
        name = path.replace("\\", "/").rpartition("/")[2]
        if not path.isprintable() or not name.endswith(suffixes) or name in suffixes:
            raise ValueError(f"must be the path of a file that ends in {' or '.join(suffixes)}")
        return path

    return AfterValidator(check)


Frequency = Annotated[
    float, Field(gt=0, le=MAX_FREQUENCY_MHZ, description="the clock in MHz"), AfterValidator(_ticking)
]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_named)]
Text = Annotated[str, Field(max_length=10_000)]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE)]
Pes = Annotated[int, Field(ge=1, le=MAX_PES)]
Cycles = Annotated[int, Field(ge=0, le=MAX_CYCLES)]
Depth = Annotated[int, Field(ge=1, le=MAX_LATENCY_CYCLES)]
DepthOrNone = Annotated[int, Field(ge=0, le=MAX_LATENCY_CYCLES)]
Steps = Annotated[int, Field(ge=1, le=MAX_STEPS)]
Arrivals = Annotated[list[Cycles], Field(max_length=MAX_JOBS)]
Width = Annotated[int, Field(ge=-MAX_SIZE, le=MAX_SIZE)]
Word = Annotated[str, Field(max_length=200)]
Vectors = Annotated[list[Word], Field(max_length=MAX_GATES)]
Parts = Annotated[dict[str, Vectors], Field(max_length=MAX_GATES)]
Sums = Annotated[Annotated[Vectors, Tag("(list)")] | Annotated[Parts, Tag("(parts)")], Discriminator(_parts_or_list)]
WeightsPath = Annotated[str, Field(max_length=4096), _ending(".safetensors")]
InputsPath = Annotated[str, Field(max_length=4096), _ending(".safetensors", ".npy", ".csv")]


class Entry(BaseModel):
    """Keys and values of one mapping: no other keys, no values of other types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
