"""What scenario, chip and model files may hold: keys, types, bounds, and the sentence for each way to miss them.

The pydantic models here are the edge: nothing behind them sees a value that they have not let through. Bounds are far
above anything built and keep every cycle count that can come out within 64 bits.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from lstmsim.formats.document import DataPath, Document
from lstmsim.formats.wording import listed, nearest, show

__all__ = ["ChipFile", "CoreEntry", "JobEntry", "LatencyEntry", "LayerEntry", "ModelFile", "ScenarioFile", "check"]

MAX_SIZE = 1_000_000
MAX_STEPS = 1_000_000_000
MAX_LATENCY_CYCLES = 1_000_000
MAX_CYCLES = 1_000_000_000_000
MAX_INTERVAL_CYCLES = 1_000_000_000
MAX_PES = 10_000_000
MAX_BANKS = 65_536
MAX_THREADS = 1024
MAX_CORES = 4096
MAX_CONTEXTS = 65_536
MAX_JOBS = 1_000_000
MIN_FREQUENCY_MHZ = 1e-6
MAX_FREQUENCY_MHZ = 1_000_000


def _named(name: str) -> str:
    if not name.isprintable() or name != name.strip():
        raise ValueError("must be printable text without spaces around it")
    return name


def _ticking(frequency_mhz: float) -> float:
    if frequency_mhz < MIN_FREQUENCY_MHZ:
        raise ValueError(f"must be at least {MIN_FREQUENCY_MHZ:g}")
    return frequency_mhz


def _one_or_list(value: Any) -> str:
    return "(list)" if isinstance(value, list) else "(one)"


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_named)]
Text = Annotated[str, Field(max_length=10_000)]
Size = Annotated[int, Field(ge=1, le=MAX_SIZE)]
Pes = Annotated[int, Field(ge=1, le=MAX_PES)]
Cycles = Annotated[int, Field(ge=0, le=MAX_CYCLES)]
Depth = Annotated[int, Field(ge=1, le=MAX_LATENCY_CYCLES)]
DepthOrNone = Annotated[int, Field(ge=0, le=MAX_LATENCY_CYCLES)]
Steps = Annotated[int, Field(ge=1, le=MAX_STEPS)]
Arrivals = Annotated[list[Cycles], Field(max_length=MAX_JOBS)]
Arrival = Annotated[Annotated[Cycles, Tag("(one)")] | Annotated[Arrivals, Tag("(list)")], Discriminator(_one_or_list)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class LatencyEntry(_Entry):
    """Pipeline depths in cycles; meaning and defaults as in `lstmsim.targets.column_npu.Latency`."""

    read: DepthOrNone = 4
    multiply: Depth = 4
    add: Depth = 1
    accumulate: Depth = 2
    convert: DepthOrNone = 4
    activation: Depth = 8
    elementwise_multiply: Depth = 4
    elementwise_add: Depth = 4
    quantize: DepthOrNone = 4
    writeback: DepthOrNone = 4


class CoreEntry(_Entry):
    """`count` equal cores of a column-wise NPU; `vp` left out is `npe // ep`."""

    count: Annotated[int, Field(ge=1, le=MAX_CORES)] = 1
    npe: Annotated[Pes, Field(description="multipliers of the core")]
    ep: Annotated[Pes, Field(description="elements in parallel")]
    vp: Pes | None = Field(default=None, description="rows in parallel")
    threads: Annotated[int, Field(ge=1, le=MAX_THREADS)] = 1
    tail_width: Size = 64
    accumulator_banks: Annotated[int, Field(ge=1, le=MAX_BANKS)] = 2
    tree_inputs: Pes | None = Field(default=None, description="leaves of each adder tree")
    cat: Pes = 1
    thread_policy: Literal["coarse", "fine"] = "coarse"
    switch_cycles: Annotated[int, Field(ge=0, le=MAX_LATENCY_CYCLES)] = 0
    block_order: Literal["row", "column"] = "row"
    latency: LatencyEntry = LatencyEntry()


class ChipFile(_Entry):
    """A chip: a preset, a chip file, or in place in a scenario. `sources` says where each number comes from."""

    kind: Annotated[Literal["column-npu"], Field(description="the target, for example column-npu")]
    name: Name = "column-npu"
    source: Text = ""
    frequency_mhz: Annotated[
        float, Field(gt=0, le=MAX_FREQUENCY_MHZ, description="the clock in MHz"), AfterValidator(_ticking)
    ]
    cores: Annotated[list[CoreEntry], Field(min_length=1, max_length=MAX_CORES, description="a list of cores")]
    sources: dict[str, Text] = {}


class LayerEntry(_Entry):
    """One layer: `hidden` units over `input` elements."""

    cell: Annotated[str, Field(description="for example lstm")]
    hidden: Annotated[Size, Field(description="units of the layer")]
    input: Annotated[Size, Field(description="elements of its input")]
    bidirectional: bool = False


class ModelFile(_Entry):
    """A network, its origin, and the number of steps that a benchmark runs it for."""

    name: Name | None = None
    source: Text = ""
    licence: Text = ""
    layers: Annotated[list[LayerEntry], Field(min_length=1, max_length=10_000, description="a list of layers")]
    layer_order: Literal["layer", "step"] = "layer"
    steps: Steps | None = None


class JobEntry(_Entry):
    """`count` equal jobs."""

    name: Name | None = None
    model: Annotated[ModelFile, Field(description="a model's name, its path, or its layers")]
    steps: Steps | None = None
    count: Annotated[int, Field(ge=1, le=MAX_JOBS)] = 1
    arrival: Arrival = 0
    frame_interval: Annotated[int, Field(ge=0, le=MAX_INTERVAL_CYCLES)] = 0
    core: Annotated[int, Field(ge=0, lt=MAX_CORES)] | None = None
    batch: Size = 1


class ScenarioFile(_Entry):
    """A chip and its jobs, names already replaced by what they stand for."""

    name: Name | None = None
    chip: Annotated[ChipFile, Field(description="a preset's name, a path, or the chip itself")]
    jobs: Annotated[list[JobEntry], Field(min_length=1, max_length=MAX_JOBS, description="a list of jobs")]


Entry = TypeVar("Entry", bound=BaseModel)

_SENTENCES = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "value_error": "{error}",
    "string_too_short": "must hold at least {min_length} letter",
    "string_too_long": "must hold at most {max_length} letters",
}


def check(
    model: type[Entry], document: Document, known: Collection[DataPath] = ()
) -> tuple[Entry | None, list[DataPath]]:
    """The document's data as `model`, or None; every mistake is noted in the document, its path returned.

    At the paths `known` a mistake has been noted before: nothing more is said about them.
    """
    try:
        return model.model_validate(document.data), []
    except ValidationError as error:
        wrong = []
        for each in error.errors(include_url=False):
            path = _data_path(document.data, each["loc"], missing=each["type"] == "missing")
            wrong.append(path)
            if path in known:
                continue
            _blame(document, model, path, dict(each))
        return None, wrong


def _data_path(data: Any, location: tuple[int | str, ...], *, missing: bool) -> DataPath:
    """A pydantic location without the tags of unions, which name no key of the data."""
    path: DataPath = ()
    for part in location:
        if isinstance(data, dict) and (part in data or missing):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
        else:
            continue
        path = (*path, part)
    return path


def _blame(document: Document, model: type[BaseModel], path: DataPath, error: dict[str, Any]) -> None:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        meaning = _model_at(model, path[:-1]).model_fields[str(path[-1])].description
        document.blame(path, "required key is missing" + (f" ({meaning})" if meaning else ""))
    elif kind == "extra_forbidden":
        known = list(_model_at(model, path[:-1]).model_fields)
        hint = nearest(str(path[-1]), known) or f"; known keys: {listed(known, 'and')}"
        document.blame(path, f"unknown key{hint}", key=True)
    elif kind in ("too_short", "too_long"):
        bound = f"at least {context['min_length']}" if kind == "too_short" else f"at most {context['max_length']}"
        document.blame(path, f"must be a list of {bound}, got {context['actual_length']}")
    else:
        value = document.at(path)
        sentence = _SENTENCES.get(kind, error["msg"]).format(**context)
        document.blame(path, f"{sentence}, got {show(value, document.raw(path))}{_hint(kind, value, context)}")


def _hint(kind: str, value: Any, context: dict[str, Any]) -> str:
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"; write {int(value)}" if abs(value) < 1e15 else "; write it without point and exponent"
    if kind in ("int_type", "float_type") and isinstance(value, str) and value.replace(".", "", 1).isdigit():
        return "; leave the quotes out"
    if kind == "literal_error" and isinstance(value, str):
        return nearest(value, context["expected"].replace("'", "").replace(" or ", ", ").split(", "))
    return ""


def _model_at(model: type[BaseModel], path: DataPath) -> type[BaseModel]:
    """The pydantic model of the mapping at `path`, found by the types of the fields on the way."""
    for part in path:
        if isinstance(part, str):
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)
