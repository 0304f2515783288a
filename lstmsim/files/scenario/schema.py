"""The keys, types and bounds of scenario, chip and model files, and the check of a document against such entries.

Those of chips are in the machines' descriptions. No other module sees a value that the entries refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from lstmsim.base.bounds import MAX_CELLS, MAX_CORES, MAX_CYCLES, MAX_INTERVAL_CYCLES, MAX_JOBS, MAX_SIZE
from lstmsim.base.checks import DataPath, Notes, checker_of
from lstmsim.base.keys import Described, Entry, Key, entry_class, keys_of, unwrapped
from lstmsim.files.scenario.request_schema import (
    AnySteps,
    ArrivalEntry,
    Arrivals,
    BatchingEntry,
    Cycles,
    DensityEntry,
    Name,
    Steps,
    TraceEntry,
)
from lstmsim.files.yaml.document import Document
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import COMMON
from lstmsim.model.cell_rules import MAX_GATES, MAX_NODES
from lstmsim.model.scenario import DISPATCH

if TYPE_CHECKING:
    pass

#: The default of a mapping that is left out.
NOTHING: Mapping[str, Any] = MappingProxyType({})


E = TypeVar("E")


class WrongPaths(list[DataPath]):
    """The paths of mistakes. `below` gives the mistakes in one mapping without a walk through all paths."""

    _below: dict[DataPath, set[str | int]]
    _counted = 0

    def below(self, path: DataPath) -> set[str | int]:
        """Give the keys of the mapping at `path` that hold a mistake."""
        if not self._counted:
            self._below = {}
        for each in self[self._counted :]:
            for depth, key in enumerate(each):
                self._below.setdefault(each[:depth], set()).add(key)
        self._counted = len(self)
        return set(self._below.get(path, ()))


def check(kind: type[E], document: Document, known: Collection[DataPath] = ()) -> tuple[E | None, WrongPaths]:
    """Check the document's data. Give the entry (None if there are mistakes) and the paths of mistakes.

    kind: class of the entry.
    known: paths at which a mistake has been noted before; no other mistake is noted there.
    """
    notes: Notes = []
    entry = checker_of(kind)(document.data, (), notes)
    for each in notes:
        if each.path not in known:
            shown = (document.at(each.path), document.raw(each.path)) if each.shows else (None,)
            document.blame(each.path, each.message(*shown), key=bool(each.holder), alone=not each.holder)
    return entry, WrongPaths(each.path for each in notes)


def usable(
    kind: type[E], data: Any, wrong: Collection[str | int], instead: Mapping[str, Any] | None = None
) -> E | None:
    """Make an entry of data without its wrong keys, so that other mistakes show; None if it needs one of these keys."""
    if not isinstance(data, dict):
        return None
    right = {key: value for key, value in data.items() if key not in wrong} | dict(instead or {})
    entry: E | None = checker_of(kind)(right, (), [])
    return entry


def _ending(*suffixes: str) -> Callable[[str], str]:
    def wrong(path: str) -> str:
        name = path.replace("\\", "/").rpartition("/")[2]
        right = path.isprintable() and name.endswith(suffixes) and name not in suffixes
        return "" if right else f"must be the path of a file that ends in {' or '.join(suffixes)}"

    return wrong


Text = Annotated[str, Key(high=10_000)]
Size = Annotated[int, Key(low=1, high=MAX_SIZE)]
Width = Annotated[int, Key(low=-MAX_SIZE, high=MAX_SIZE)]
Word = Annotated[str, Key(high=200)]
Vectors = Annotated[list[Word], Key(high=MAX_GATES)]
Parts = Annotated[dict[str, Vectors], Key(high=MAX_GATES)]
Sums = Vectors | Parts
WeightsPath = Annotated[str, Key(high=4096, rule=_ending(".safetensors"))]
InputsPath = Annotated[str, Key(high=4096, rule=_ending(".safetensors", ".npy", ".csv"))]


class UnknownChip(Entry):
    """A chip of an unknown kind: its other keys cannot be checked."""

    any_keys = True
    kind: Annotated[str, Key(" or ".join(KINDS), choices=tuple(KINDS))]


@cache
def core_entry(kind: str) -> type[Entry]:
    """Give the entry of a core: the keys of the machine's core, and `count`, the number of equal cores."""
    count = Described("count", int, 1, Key("equal cores", low=1, high=MAX_CORES))
    return entry_class("CoreEntry", {"count": count} | dict(keys_of(target_of(kind).core)))


@cache
def chip_of_kind(kind: str) -> type[Entry]:
    """Give the entry of a chip of a kind: the keys of every chip, and the keys of the machine."""
    own = dict(keys_of(target_of(kind).chip))
    name = unwrapped(Annotated[Name, Key("name of the chip in outputs")])
    text = unwrapped(Annotated[Text, Key("where the chip comes from")])
    keys = [
        Described("kind", str, MISSING, Key(f"the target, for example {kind}", choices=(kind,))),
        Described("name", name[0], kind, name[1] or Key()),
        Described("source", text[0], "", text[1] or Key()),
        own.pop("frequency_mhz"),
        Described("cores", list[core_entry(kind)], MISSING, Key("a list of cores", low=1, high=MAX_CORES)),  # type: ignore[misc]
        *(each for each in own.values() if each.name not in COMMON),
        Described("sources", Mapping[str, Text], NOTHING, Key("where each number comes from")),
    ]
    return entry_class("ChipEntry", {each.name: each for each in keys})


def chip_entry(chip: Any) -> type[Entry]:
    """Give the entry of a chip; `chip`: its data, which states its kind."""
    kind = chip.get("kind") if isinstance(chip, dict) else next(iter(KINDS))
    return chip_of_kind(kind) if isinstance(kind, str) and kind in KINDS else UnknownChip


class StageEntry(Entry):
    """A stage of a cell.

    gates: each gate's vectors, or its sums by name with the vectors of each.
    rows: the rows of each gate's matrix: one for each unit, or one for each element of the projection.
    """

    gates: Annotated[dict[str, Sums], Key("each gate's vectors", high=MAX_GATES)]
    rows: Literal["hidden", "projection"] = "hidden"


class CellEntry(Entry):
    """A cell of the user, by the rules of `lstmsim.model.cell_rules`. A node is an operation and its inputs.

    source: where the cell comes from.
    stages: matrix products, one stage after the other.
    nodes: each node's operation and inputs, like `sigmoid r`.
    states: each state and the node of its next value.
    parameters: vectors that the cell reads beside its sums.
    """

    source: Text = ""
    stages: Annotated[list[StageEntry], Key("a list of stages", low=1, high=MAX_GATES)]
    nodes: Annotated[dict[str, Text], Key("each node's operation and inputs, like 'sigmoid r'", high=MAX_NODES)]
    states: Annotated[dict[str, Word], Key("each state and the node of its next value", high=MAX_GATES)]
    parameters: Annotated[tuple[Word, ...], Key(high=MAX_NODES)] = ()


Cells = Annotated[Mapping[str, CellEntry], Key(high=MAX_CELLS)]


class LayerEntry(Entry):
    """One layer.

    cell: name of its cell.
    hidden: units.
    input: elements of the input.
    bidirectional: whether it has a second pass, from the last step to the first.
    projection: units of h, if the cell projects h.
    reverse: whether its only pass runs from the last step to the first.
    """

    cell: Annotated[str, Key("for example lstm")]
    hidden: Annotated[Size, Key("units of the layer")]
    input: Annotated[Size, Key("elements of its input")]
    bidirectional: bool = False
    projection: Annotated[Size | None, Key("units of h where the cell projects it")] = None
    reverse: bool = False


class ModelFile(Entry):
    """A network, its origin, its cells and weights, and the number of steps that a benchmark runs it for.

    name: name of the model; default: the file's.
    source, licence: where the network comes from, and under which licence.
    layers: its layers, the first one first.
    layer_order: whether all steps of a layer run before the next layer, or all layers of a step before the next step.
    steps: time steps of a job that states none.
    weights: file with the numbers of its weights.
    states_from: model whose last states its states begin with.
    states_whole: whether these are all states of that model.
    cells: cells of the user, by name.
    """

    name: Name | None = None
    source: Text = ""
    licence: Text = ""
    layers: Annotated[list[LayerEntry], Key("a list of layers", low=1, high=10_000)]
    layer_order: Literal["layer", "step"] = "layer"
    steps: Steps | None = None
    weights: WeightsPath | None = None
    states_from: Text = ""
    states_whole: bool = True
    cells: Cells = NOTHING


AnyArrival = Cycles | Arrivals | ArrivalEntry
CoreNumber = Annotated[int, Key(low=0, below=MAX_CORES)]


class InitialEntry(Entry):
    """The origin of the states before the first step.

    job: name of an earlier job, with whose last states the job begins.
    file: a file of states.
    """

    job: Name | None = None
    file: WeightsPath | None = None


AnyInitial = Annotated[Word, Key(low=1)] | InitialEntry


class JobEntry(Entry):
    """An entry of a scenario's jobs: `count` jobs that are equal except for their arrivals and steps.

    model: a model's name, its path, or its layers.
    steps: time steps; a list has one number for each job; a mapping draws them.
    count: how many jobs the entry stands for.
    arrival: cycle at which the jobs come; a list has one for each job; a mapping describes a process.
    core: the one core on which the jobs run; in place of `cores`.
    split: how the job runs on all of `cores` at once; auto: on the free ones, or on one.
    weights: what caches hold when the job begins, on machines that have such caches.
    batch: inferences that run together, on machines that have batching.
    batching: how requests wait for others, to run together.
    inputs: file with the numbers of the frames. No cycle depends on it.
    on: for a kind of machine or a chip's name, keys that count there: threads, weights, split, cores.
    initial: where its first states come from: the name of an earlier job, or a mapping with `job` or `file`.
    Other keys: as in `lstmsim.model.scenario.Job`.
    """

    name: Name | None = None
    model: Annotated[ModelFile, Key("a model's name, its path, or its layers")]
    steps: AnySteps | None = None
    count: Annotated[int, Key(low=1, high=MAX_JOBS)] = 1
    arrival: AnyArrival = 0
    frame_interval: Annotated[int, Key(low=0, high=MAX_INTERVAL_CYCLES)] = 0
    core: CoreNumber | None = None
    cores: Annotated[list[CoreNumber], Key(low=1, high=MAX_CORES)] | None = None
    split: Literal["rows", "layers", "auto"] | None = None
    threads: Annotated[int, Key("cores that a job takes", low=1, high=MAX_CORES)] | None = None
    density: DensityEntry | None = None
    weights: Literal["cold", "warm"] | None = None
    batch: Size = 1
    batching: BatchingEntry | None = None
    priority: Annotated[int, Key(low=-MAX_SIZE, high=MAX_SIZE)] = 0
    deadline: Annotated[int, Key(low=1, high=MAX_CYCLES)] | None = None
    queue_limit: Annotated[int, Key(low=0, high=MAX_JOBS)] | None = None
    patience: Cycles | None = None
    inputs: InputsPath | None = None
    initial: AnyInitial | None = None
    on: Annotated[dict[str, Any], Key("keys that count on one kind of machine or one chip")] | None = None


AnyCalibration = InputsPath | Annotated[dict[str, InputsPath], Key(low=1, high=MAX_JOBS)]


class PrecisionEntry(Entry):
    """Widths of numbers; meaning, defaults and ranges are those of `lstmsim.model.model.Precision`.

    calibration: frames on which formats are calibrated: one file, or a file for each model's name.
    """

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
    formats: Literal["own", "shared"] = "own"
    shift: Literal["row", "common"] = "row"
    calibration: AnyCalibration | None = None


class ScenarioFile(Entry):
    """A scenario: a chip, its jobs, and cells that models share. Names of chips and models are already replaced.

    name: name of the scenario in outputs; default: the file's.
    chip: a preset's name, a path, or the chip itself.
    dispatch: which waiting job goes first.
    preemption: whether a job gives up its thread, at its next step, to a job that goes before it.
    placement: where a job goes that several cores could take: to the one with least to do, or to one with its weights.
    arrivals: a file whose rows are the requests of the whole scenario.
    jobs: the job entries.
    precision: widths of the numbers in fixed point; without it outputs are in float64.
    cells: cells that the models of the scenario share, by name.
    """

    name: Name | None = None
    chip: Annotated[Any, Key("a preset's name, a path, or the chip itself")]
    dispatch: Annotated[str, Key(choices=tuple(DISPATCH))] = "fcfs"
    preemption: bool = False
    placement: Literal["least-loaded", "affinity"] = "least-loaded"
    arrivals: TraceEntry | None = None
    jobs: Annotated[list[JobEntry], Key("a list of jobs", low=1, high=MAX_JOBS)]
    precision: PrecisionEntry = PrecisionEntry()
    cells: Cells = NOTHING


#: Scenarios by the entry of their chip.
_WITH_CHIP: dict[type, type[ScenarioFile]] = {}


def scenario_entry(scenario: Any) -> type[ScenarioFile]:
    """Give the entry of a scenario; `scenario`: its data, whose chip states its kind."""
    entry = chip_entry(scenario.get("chip") if isinstance(scenario, dict) else None)
    if entry not in _WITH_CHIP:
        key = keys_of(ScenarioFile)["chip"].key
        _WITH_CHIP[entry] = type("ScenarioFile", (ScenarioFile,), {"__annotations__": {"chip": Annotated[entry, key]}})
    return _WITH_CHIP[entry]
