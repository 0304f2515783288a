"""What chip files may hold: keys, types, bounds, for each kind of chip."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from lstmsim.formats.scenario.schema_types import (
    MAX_BANKS,
    MAX_CELLS,
    MAX_CORES,
    MAX_GB_PER_S,
    MAX_LATENCY_CYCLES,
    MAX_THREADS,
    MAX_WEIGHT_KIB,
    MIN_GB_PER_S,
    Depth,
    DepthOrNone,
    Entry,
    Frequency,
    Name,
    Pes,
    Size,
    Text,
)

__all__ = [
    "ChipFile",
    "CoreEntry",
    "DispatchEntry",
    "ExchangeEntry",
    "LatencyEntry",
    "MemoryEntry",
    "RowChipFile",
    "RowCoreEntry",
    "RowLatencyEntry",
    "chip_entry",
]


class LatencyEntry(Entry):
    """Pipeline depths in cycles; meaning and defaults as in `lstmsim.targets.column.npu.Latency`."""

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


class CoreEntry(Entry):
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
    weight_kib: Annotated[int, Field(ge=1, le=MAX_WEIGHT_KIB)] | None = None
    weight_bits: Annotated[int, Field(ge=1, le=64)] = 8


class MemoryEntry(Entry):
    """The memory beside a chip; meaning and defaults as in `lstmsim.targets.column.memory.Memory`."""

    gb_per_s: Annotated[float, Field(ge=MIN_GB_PER_S, le=MAX_GB_PER_S, description="bandwidth in 10^9 bytes a second")]
    latency_cycles: DepthOrNone = 64
    prefetch_blocks: Annotated[int, Field(ge=1, le=MAX_BANKS)] = 2


class ExchangeEntry(Entry):
    """How h goes from core to core; meaning and defaults as in `lstmsim.targets.column.npu.Exchange`."""

    latency_cycles: DepthOrNone = 8
    width: Size = 64


class ChipFile(Entry):
    """A column-wise NPU: a preset, a chip file, or in place in a scenario. `sources`: where each number comes from."""

    kind: Annotated[Literal["column-npu", "row-npu"], Field(description="the target, for example column-npu")]
    name: Name = "column-npu"
    source: Text = ""
    frequency_mhz: Frequency
    cores: Annotated[list[CoreEntry], Field(min_length=1, max_length=MAX_CORES, description="a list of cores")]
    memory: MemoryEntry | None = None
    exchange: ExchangeEntry = ExchangeEntry()
    sources: dict[str, Text] = Field(default_factory=dict)


class RowLatencyEntry(Entry):
    """Latencies in cycles; meaning and defaults as in `lstmsim.targets.row.npu.RowLatency`."""

    fetch: Depth = 10
    issue_mvu: Depth = 6
    issue_evrf: Depth = 10
    issue_mfu: Depth = 10
    issue_loader: Depth = 6
    product: Depth = 60
    serializer: Depth = 2
    evrf: Depth = 13
    mfu0: Depth = 25
    mfu1: Depth = 27
    tag_mvu: Depth = 5
    tag_evrf: Depth = 6
    tag_mfu: Depth = 6
    output: DepthOrNone = 6


class DispatchEntry(Entry):
    """How instructions come for layers of one cell; left out is as for all cells. `fitted_hidden`: the sizes that they
    were fitted to, smallest and largest."""

    dispatch_cycles: Depth | None = None
    start_cycles: DepthOrNone | None = None
    fitted_hidden: Annotated[list[Size], Field(min_length=2, max_length=2)] | None = None


class RowCoreEntry(Entry):
    """`count` equal cores of a row-wise NPU; meaning and defaults as in `lstmsim.targets.row.npu.RowCore`."""

    count: Annotated[int, Field(ge=1, le=MAX_CORES)] = 1
    tiles: Annotated[Size, Field(description="tiles of the matrix-vector unit")]
    engines: Annotated[Size, Field(description="dot-product engines of a tile, a row each")]
    lanes: Annotated[Size, Field(description="multipliers of an engine")]
    vectors: Annotated[int, Field(ge=1, le=1024)] = 1
    replicas: Annotated[int, Field(ge=1, le=1024)] = 1
    native_dimension: Size = 1
    chunk_groups: Size = 1
    vector_lanes: Size = 40
    tile_loads: bool = True
    dispatch_cycles: Depth = 1
    start_cycles: DepthOrNone = 0
    decode_cycles: DepthOrNone = 1
    empty_slots: bool = False
    serializer_cycles: DepthOrNone = 0
    count_flushes: bool = True
    by_cell: Annotated[dict[Name, DispatchEntry], Field(max_length=MAX_CELLS)] = Field(default_factory=dict)
    matrix_words: Size | None = None
    latency: RowLatencyEntry = RowLatencyEntry()


class RowChipFile(Entry):
    """A row-wise NPU: a preset, a chip file, or in place in a scenario. `sources`: where each number comes from."""

    kind: Annotated[Literal["row-npu"], Field(description="the target, for example row-npu")]
    name: Name = "row-npu"
    source: Text = ""
    frequency_mhz: Frequency
    cores: Annotated[list[RowCoreEntry], Field(min_length=1, max_length=MAX_CORES, description="a list of cores")]
    sources: dict[str, Text] = Field(default_factory=dict)


class UnknownChipFile(ChipFile):
    """A chip that says no kind that there is: nothing can be said about its other keys."""

    model_config = ConfigDict(extra="ignore")
    kind: Annotated[Literal["column-npu", "row-npu"], Field(description="column-npu or row-npu")]
    frequency_mhz: Any = None
    cores: Any = None
    sources: Any = None


def core_entry(kind: str) -> type[CoreEntry] | type[RowCoreEntry]:
    """What the keys of a core of such a chip are."""
    return RowCoreEntry if kind == "row-npu" else CoreEntry


def chip_entry(chip: Any) -> type[ChipFile] | type[RowChipFile]:
    """What the keys of a chip of that kind are."""
    kind = chip.get("kind") if isinstance(chip, dict) else "column-npu"
    if kind == "row-npu":
        return RowChipFile
    return ChipFile if kind == "column-npu" else UnknownChipFile
