"""The keys, types and bounds of scenario, chip and model files, and the check of a document against such entries.

Those of chips are in the machines' descriptions. No other module sees a value that the entries refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from lstmsim.base.bounds import MAX_CELLS, MAX_CORES, MAX_CYCLES, MAX_INTERVAL_CYCLES, MAX_JOBS, MAX_SIZE, MAX_STEPS
from lstmsim.base.checks import DataPath, Notes, checker_of, printable
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Described, Entry, Key, entry_class, keys_of, unwrapped
from lstmsim.base.wording import listed
from lstmsim.files.yaml.document import Document
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.target import COMMON
from lstmsim.model.cell_rules import MAX_GATES, MAX_NODES
from lstmsim.model.scenario import DISPATCH

if TYPE_CHECKING:
    from lstmsim.traffic.arrivals import ClosedLoop, OpenArrivals
    from lstmsim.traffic.lengths import Lengths

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


Name = Annotated[str, Key(low=1, high=200, rule=printable)]
Text = Annotated[str, Key(high=10_000)]
Size = Annotated[int, Key(low=1, high=MAX_SIZE)]
Cycles = Annotated[int, Key(low=0, high=MAX_CYCLES)]
Steps = Annotated[int, Key(low=1, high=MAX_STEPS)]
Arrivals = Annotated[list[Cycles], Key(high=MAX_JOBS)]
Width = Annotated[int, Key(low=-MAX_SIZE, high=MAX_SIZE)]
Word = Annotated[str, Key(high=200)]
Vectors = Annotated[list[Word], Key(high=MAX_GATES)]
Parts = Annotated[dict[str, Vectors], Key(high=MAX_GATES)]
Sums = Vectors | Parts
WeightsPath = Annotated[str, Key(high=4096, rule=_ending(".safetensors"))]
InputsPath = Annotated[str, Key(high=4096, rule=_ending(".safetensors", ".npy", ".csv"))]


MAX_RATE = 1e12  # a request per cycle at the fastest clock that a chip may have
MAX_MS = MAX_CYCLES / 1e6  # as many cycles as a run may have, at 1 GHz


def _csv(path: str) -> str:
    right = path.isprintable() and path.endswith((".csv", ".txt"))
    return "" if right else "must be the path of a file that ends in .csv or .txt"


Rate = Annotated[float, Key(above=0, high=MAX_RATE)]
Milliseconds = Annotated[float, Key(above=0, high=MAX_MS)]
ArrivalPath = Annotated[str, Key(high=4096, rule=_csv)]
Speedup = Annotated[float, Key(above=0, high=MAX_RATE)]
FirstRows = Annotated[int, Key(low=1, high=MAX_JOBS)]

#: Keys of each kind: the required keys, and the optional keys.
ARRIVAL_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "fixed": (("interval_cycles",), ("start_cycle",)),
    "periodic": (("interval_cycles", "jitter_cycles"), ("start_cycle", "seed")),
    "poisson": (("rate_per_second",), ("seed",)),
    "bursty": (("on_rate_per_second", "mean_on_ms", "mean_off_ms"), ("seed",)),
    "stream": (("frame_ms",), ("start_cycle", "streams", "phases", "session")),
    "closed": (("clients", "think_ms"), ("think", "seed")),
    "file": (("path",), ("job", "job_column", "tenant_column", "speedup", "rows")),
}


class ArrivalEntry(Entry):
    """A description of arrivals. One class serves all kinds, so that each key is checked whatever the kind.

    kind: the kind of arrivals, for example poisson.
    rate_per_second: the mean rate of a Poisson process.
    frame_ms: from one frame of a stream to the next.
    phases: how the frames of streams lie to each other: even (spread over a period) or together.
    session: where a stream's states are: anywhere (frames go to any core), or pinned (all frames to one core).
    seed: chooses the random arrivals of a kind.
    path: a file with a row for each request (`lstmsim.files.scenario.arrival_file`).
    job: word in `job_column` of the rows that are taken; None: all rows.
    job_column, tenant_column, speedup, rows: as in `TraceEntry`.
    Other keys: as in `lstmsim.traffic.arrivals`.
    """

    kind: Annotated[
        Literal["fixed", "periodic", "poisson", "bursty", "stream", "closed", "file"],
        Key("the kind of arrivals, for example poisson"),
    ]
    interval_cycles: Annotated[int, Key(low=0, high=MAX_INTERVAL_CYCLES)] = 0
    jitter_cycles: Annotated[int, Key(low=0, high=MAX_INTERVAL_CYCLES)] = 0
    start_cycle: Cycles = 0
    rate_per_second: Rate = 1.0
    on_rate_per_second: Rate = 1.0
    mean_on_ms: Milliseconds = 1.0
    mean_off_ms: Milliseconds = 1.0
    frame_ms: Milliseconds = 1.0
    streams: Annotated[int, Key(low=1, high=MAX_JOBS)] = 1
    phases: Literal["even", "together"] = "even"
    session: Literal["anywhere", "pinned"] = "anywhere"
    clients: Annotated[int, Key(low=1, high=MAX_JOBS)] = 1
    think_ms: Annotated[float, Key(low=0, high=MAX_MS)] = 0.0
    think: Literal["exponential", "fixed"] = "exponential"
    path: ArrivalPath = ""
    job: Name | None = None
    job_column: Name = "job"
    tenant_column: Name = "tenant"
    speedup: Speedup = 1.0
    rows: FirstRows | None = None
    seed: Annotated[int, Key(low=0, below=2**63)] = 0

    @property
    def random(self) -> bool:
        """Whether the kind draws random numbers, which its seed chooses."""
        return "seed" in ARRIVAL_KEYS[self.kind][1]


class TraceEntry(Entry):
    """A file whose rows are the requests of a whole scenario.

    path: the file.
    job_column: the column with the name of the row's job entry.
    tenant_column: the column with the name of the row's tenant.
    speedup: how many times as fast the requests come as in the file.
    rows: how many first rows are read; None: all.
    """

    path: Annotated[ArrivalPath, Key("a file with a row for each request")]
    job_column: Name = "job"
    tenant_column: Name = "tenant"
    speedup: Speedup = 1.0
    rows: FirstRows | None = None


def arrival_mistakes(entry: ArrivalEntry) -> list[tuple[str, str]]:
    """List the mistakes between the keys of an entry, as (key, sentence). Each key by itself is right."""
    return _mistakes(
        entry, ARRIVAL_KEYS[entry.kind], (lambda: None) if entry.kind == "file" else lambda: describe(entry)
    )


def _mistakes(
    entry: ArrivalEntry | StepsEntry, keys: tuple[tuple[str, ...], tuple[str, ...]], make: Callable[[], object]
) -> list[tuple[str, str]]:
    """List the keys that the kind of an entry lacks or has too many; if there are none, what `make` refuses."""
    needed, known = keys[0], (*keys[0], *keys[1])
    given = [key for key in keys_of(type(entry)) if key in entry.given - {"kind"}]
    mistakes = [(key, f"required key is missing for {entry.kind}") for key in needed if key not in given]
    foreign = [key for key in given if key not in known]
    mistakes += [(key, f"is no key of {entry.kind}; its keys: {listed(known, 'and')}") for key in foreign]
    if not mistakes:
        try:
            make()
        except InputError as error:
            mistakes += [(each.location.rpartition(": ")[2], each.sentence) for each in error.mistakes]
    return mistakes


def describe(entry: ArrivalEntry) -> OpenArrivals | ClosedLoop:
    """Turn an entry without mistakes into a description; `InputError` for kind `file`, which has to be read."""
    from lstmsim.traffic.arrivals import Bursty, ClosedLoop, Fixed, Periodic, Poisson, Stream

    match entry.kind:
        case "fixed":
            return Fixed(entry.interval_cycles, entry.start_cycle)
        case "periodic":
            return Periodic(entry.interval_cycles, entry.jitter_cycles, entry.start_cycle)
        case "poisson":
            return Poisson(entry.rate_per_second)
        case "bursty":
            return Bursty(entry.on_rate_per_second, entry.mean_on_ms, entry.mean_off_ms)
        case "stream":
            return Stream(entry.frame_ms, entry.start_cycle, entry.streams, entry.phases == "together")
        case "closed":
            return ClosedLoop(entry.clients, entry.think_ms, entry.think)
        case "file":
            raise InputError(f"{entry.path}: arrivals of a file are read, not described")


#: Most different numbers of steps of all entries together. Each number is lowered, and kept in the tables of `serve`.
MAX_LENGTHS = 4096
#: Keys of each kind: the required keys, and the optional keys.
STEPS_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "list": (("values",), ("weights", "seed")),
    "uniform": (("low", "high"), ("seed",)),
    "geometric": (("mean", "most"), ("seed",)),
    "empirical": (("path",), ("column", "per_step", "seed")),
    "column": ((), ("column", "per_step")),
}


Weight = Annotated[float, Key(low=0, high=MAX_STEPS)]
Columns = Name | Annotated[list[Name], Key(low=1, high=20)]


class StepsEntry(Entry):
    """The choice of steps for the requests of an entry. One class serves all kinds, so that each key is checked.

    kind: how the steps are chosen, for example uniform.
    low, high: the smallest and the largest number of steps (kind uniform).
    mean, most: the mean and the largest number of steps (kind geometric).
    per_step: how much of the sum of the columns makes one step.
    path: a file; for each request one of its rows is drawn (kind empirical).
    column: column or columns of that file, or of the request's own row in its file of arrivals (kind column).
    seed: chooses the random steps.
    Other keys: as in `lstmsim.traffic.lengths`.
    """

    kind: Annotated[
        Literal["list", "uniform", "geometric", "empirical", "column"],
        Key("how the steps are chosen, for example uniform"),
    ]
    values: Annotated[list[Steps], Key(low=1, high=65_536)] | None = None
    weights: Annotated[list[Weight], Key(low=1, high=65_536)] | None = None
    low: Steps = 1
    high: Steps = 1
    mean: Annotated[float, Key(low=1, high=MAX_STEPS)] = 1.0
    most: Steps = 1
    path: ArrivalPath = ""
    column: Columns = "steps"
    per_step: Annotated[float, Key(above=0, high=1e12)] = 1.0
    seed: Annotated[int, Key(low=0, below=2**63)] = 0

    @property
    def random(self) -> bool:
        """Whether the kind draws random numbers, which its seed chooses."""
        return "seed" in STEPS_KEYS[self.kind][1]


AnySteps = Steps | Annotated[list[Steps], Key(low=1, high=MAX_JOBS)] | StepsEntry


def steps_mistakes(entry: StepsEntry) -> list[tuple[str, str]]:
    """List the mistakes between the keys of an entry, as (key, sentence). Each key by itself is right."""
    return _mistakes(entry, STEPS_KEYS[entry.kind], lambda: random_lengths(entry))


def random_lengths(entry: StepsEntry) -> Lengths | None:
    """Turn an entry without mistakes into a distribution; None if a file has to be read for it."""
    from lstmsim.traffic.lengths import Geometric, Uniform, Weighted

    match entry.kind:
        case "list":
            return Weighted(tuple(entry.values or ()), tuple(entry.weights or ()))
        case "uniform":
            return Uniform(entry.low, entry.high)
        case "geometric":
            return Geometric(entry.mean, entry.most)
        case "empirical" | "column":
            return None


class Measure(NamedTuple):
    """The rule that gives the steps of a row: the sum of some columns, divided, rounded up, and at least 1."""

    columns: tuple[str, ...] = ("steps",)
    per_step: float = 1


#: The steps of a row as it states them itself.
OWN_STEPS = Measure()


def measure_of(entry: StepsEntry) -> Measure:
    """Give the rule that makes steps of columns."""
    columns = (entry.column,) if isinstance(entry.column, str) else tuple(entry.column)
    return Measure(columns, entry.per_step)


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


Chance = Annotated[float, Key("chance that an element changes by enough to be sent", low=0, high=1)]


class DensityEntry(Entry):
    """How many elements of vectors change, on machines whose cycles depend on it; in place of numbers.

    x: chance of an element of the input of a layer, each by itself.
    h: chance of an element of its output of the step before.
    seed: chooses the random draws; each job has its own.
    """

    x: Chance
    h: Chance
    seed: Annotated[int, Key(low=0, below=2**63)] = 0


MAX_WAIT = 1_000_000_000_000  # the longest wait for company, in cycles
MAX_BATCH = 256


class BatchingEntry(Entry):
    """How requests of a job entry wait for company, to run together.

    max_batch_size: the most requests of a batch.
    policy: when a batch is made: dynamic (by a free context), window (by arrivals alone), continuous (at every step).
    max_wait_cycles: how long the oldest request may be kept waiting for company.
    max_wait_us: the same in us, in place of it.
    lengths: what becomes of unequal steps: pad, equal (never together), ragged (members leave after their last step).
    pool: entries with this name wait together; left out: the entry is a pool of its own.
    """

    max_batch_size: Annotated[int, Key(low=1, high=MAX_BATCH)]
    policy: Literal["dynamic", "window", "continuous"] = "dynamic"
    max_wait_cycles: Annotated[int, Key(low=0, high=MAX_WAIT)] = 0
    max_wait_us: Annotated[float, Key(low=0, high=MAX_WAIT)] | None = None
    lengths: Literal["pad", "ragged", "equal"] = "pad"
    pool: Annotated[str, Key("a name", low=1, high=200)] | None = None


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
