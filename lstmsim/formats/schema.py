"""What scenario, chip and model files may hold: keys, types, bounds.

The pydantic models here are the edge: nothing behind them sees a value that they have not let through. Bounds are far
above anything built and keep every cycle count that can come out within 64 bits. `lstmsim.formats.checks` has the
sentence for each way to miss them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from lstmsim.workload.cell_rules import MAX_GATES, MAX_NODES

__all__ = [
    "CellEntry",
    "ChipFile",
    "CoreEntry",
    "JobEntry",
    "LatencyEntry",
    "LayerEntry",
    "ModelFile",
    "PrecisionEntry",
    "ScenarioFile",
    "StageEntry",
]

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
MAX_CELLS = 100
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


def _parts_or_list(value: Any) -> str:
    return "(parts)" if isinstance(value, dict) else "(list)"


def _ending(*suffixes: str) -> AfterValidator:
    def check(path: str) -> str:
        name = path.replace("\\", "/").rpartition("/")[2]
        if not path.isprintable() or not name.endswith(suffixes) or name in suffixes:
            raise ValueError(f"must be the path of a file that ends in {' or '.join(suffixes)}")
        return path

    return AfterValidator(check)


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
Width = Annotated[int, Field(ge=-MAX_SIZE, le=MAX_SIZE)]
Word = Annotated[str, Field(max_length=200)]
Vectors = Annotated[list[Word], Field(max_length=MAX_GATES)]
Parts = Annotated[dict[str, Vectors], Field(max_length=MAX_GATES)]
Sums = Annotated[Annotated[Vectors, Tag("(list)")] | Annotated[Parts, Tag("(parts)")], Discriminator(_parts_or_list)]
WeightsPath = Annotated[str, Field(max_length=4096), _ending(".safetensors")]
InputsPath = Annotated[str, Field(max_length=4096), _ending(".safetensors", ".npy", ".csv")]


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
    divide: Depth = 16


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


class StageEntry(_Entry):
    """A stage of a cell: each gate's vectors, or its sums by name with the vectors of each."""

    gates: Annotated[dict[str, Sums], Field(max_length=MAX_GATES, description="each gate's vectors")]
    rows: Literal["hidden", "projection"] = "hidden"


class CellEntry(_Entry):
    """A cell of the user's own; `lstmsim.workload.cell_rules` has the rules. A node is its operation and its inputs."""

    source: Text = ""
    stages: Annotated[list[StageEntry], Field(min_length=1, max_length=MAX_GATES, description="a list of stages")]
    nodes: Annotated[
        dict[str, Text], Field(max_length=MAX_NODES, description="each node's operation and inputs, like 'sigmoid r'")
    ]
    states: Annotated[
        dict[str, Word], Field(max_length=MAX_GATES, description="each state and the node of its next value")
    ]
    parameters: Annotated[list[Word], Field(max_length=MAX_NODES)] = []


Cells = Annotated[dict[str, CellEntry], Field(max_length=MAX_CELLS)]


class LayerEntry(_Entry):
    """One layer: `hidden` units over `input` elements; `projection` units of h where the cell projects it."""

    cell: Annotated[str, Field(description="for example lstm")]
    hidden: Annotated[Size, Field(description="units of the layer")]
    input: Annotated[Size, Field(description="elements of its input")]
    bidirectional: bool = False
    projection: Size | None = Field(default=None, description="units of h where the cell projects it")


class ModelFile(_Entry):
    """A network, its origin, its cells and weights, and the number of steps that a benchmark runs it for."""

    name: Name | None = None
    source: Text = ""
    licence: Text = ""
    layers: Annotated[list[LayerEntry], Field(min_length=1, max_length=10_000, description="a list of layers")]
    layer_order: Literal["layer", "step"] = "layer"
    steps: Steps | None = None
    weights: WeightsPath | None = None
    cells: Cells = {}


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
    inputs: InputsPath | None = None


class PrecisionEntry(_Entry):
    """Widths of numbers; meaning, defaults and ranges as in `lstmsim.workload.precision.Precision`."""

    weight_bits: Width = 8
    vector_bits: Width = 8
    weight_scale: Literal["row", "tensor"] = "row"
    accumulator_bits: Width = 32
    multiplier_bits: Width = 16
    tail_bits: Width = 16
    state_bits: Width = 16
    activation: Literal["table", "linear"] = "linear"
    activation_entries: Width = 256
    activation_range: Width = 8


class ScenarioFile(_Entry):
    """A chip and its jobs, names already replaced by what they stand for; cells that their models share."""

    name: Name | None = None
    chip: Annotated[ChipFile, Field(description="a preset's name, a path, or the chip itself")]
    jobs: Annotated[list[JobEntry], Field(min_length=1, max_length=MAX_JOBS, description="a list of jobs")]
    precision: PrecisionEntry = PrecisionEntry()
    cells: Cells = {}
