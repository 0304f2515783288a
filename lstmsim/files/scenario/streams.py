"""The keys of arrivals and of drawn steps in scenario files, and the types of values that all files share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from lstmsim.base.bounds import MAX_CYCLES, MAX_INTERVAL_CYCLES, MAX_JOBS, MAX_SIZE, MAX_STEPS
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Entry, Key, keys_of
from lstmsim.base.wording import listed
from lstmsim.files.scenario.arrival_columns import Measure
from lstmsim.model.cell_rules import MAX_GATES
from lstmsim.traffic.arrivals import MAX_CLIENTS, Bursty, ClosedLoop, Fixed, OpenArrivals, Periodic, Poisson, Stream
from lstmsim.traffic.lengths import Geometric, Lengths, Uniform, Weighted

#: The default of a mapping that is left out.
NOTHING: Mapping[str, Any] = MappingProxyType({})


def _named(name: str) -> str:
    return "" if name.isprintable() and name == name.strip() else "must be printable text without spaces around it"


def _ending(*suffixes: str) -> Callable[[str], str]:
    def wrong(path: str) -> str:
        name = path.replace("\\", "/").rpartition("/")[2]
        right = path.isprintable() and name.endswith(suffixes) and name not in suffixes
        return "" if right else f"must be the path of a file that ends in {' or '.join(suffixes)}"

    return wrong


Name = Annotated[str, Key(low=1, high=200, rule=_named)]
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


#: A request per cycle at the fastest clock that a chip may have.
MAX_RATE = 1e12
#: As many cycles as a run may have, at 1 GHz.
MAX_MS = MAX_CYCLES / 1e6


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
    "stream": (("frame_ms",), ("start_cycle",)),
    "closed": (("clients", "think_ms"), ("think", "seed")),
    "file": (("path",), ("job", "job_column", "tenant_column", "speedup", "rows")),
}


class ArrivalEntry(Entry):
    """A description of arrivals. One class serves all kinds, so that each key is checked whatever the kind.

    kind: the kind of arrivals, for example poisson.
    rate_per_second: the mean rate of a Poisson process.
    frame_ms: from one frame of a stream to the next.
    seed: chooses the random arrivals of a kind.
    path: a file with a row for each request (`lstmsim.files.scenario.arrival_file`).
    job: word in `job_column` of the rows that are taken; None: all rows.
    job_column, tenant_column, speedup, rows: as in `TraceEntry`.
    Other keys: as in `lstmsim.traffic.arrivals` and `lstmsim.traffic.arrivals`.
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
    clients: Annotated[int, Key(low=1, high=MAX_CLIENTS)] = 1
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
    needed, allowed = ARRIVAL_KEYS[entry.kind]
    given = entry.given - {"kind"}
    mistakes = [(key, f"required key is missing for {entry.kind}") for key in needed if key not in given]
    foreign = [key for key in keys_of(ArrivalEntry) if key in given and key not in (*needed, *allowed)]
    keys = listed((*needed, *allowed), "and")
    mistakes += [(key, f"is no key of {entry.kind}; its keys: {keys}") for key in foreign]
    if not mistakes and entry.kind != "file":
        try:
            describe(entry)
        except InputError as error:
            mistakes += [(each.place.rpartition(": ")[2], each.sentence) for each in error.mistakes]
    return mistakes


def describe(entry: ArrivalEntry) -> OpenArrivals | ClosedLoop:
    """Turn an entry without mistakes into a description; `InputError` for kind `file`, which has to be read.

    >>> describe(ArrivalEntry(kind="stream", frame_ms=10.0))
    Stream(frame_ms=10.0, start_cycle=0)
    """
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
            return Stream(entry.frame_ms, entry.start_cycle)
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
    """List the mistakes between the keys of an entry, as (key, sentence). Each key by itself is right.

    >>> steps_mistakes(StepsEntry(kind="uniform", low=3, most=9))
    [('high', 'required key is missing for uniform'), ('most', 'is no key of uniform; its keys: low, high and seed')]
    >>> steps_mistakes(StepsEntry(kind="uniform", low=3, high=2))
    [('high', 'must be at least low (3), got 2')]
    """
    needed, allowed = STEPS_KEYS[entry.kind]
    given = entry.given - {"kind"}
    mistakes = [(key, f"required key is missing for {entry.kind}") for key in needed if key not in given]
    foreign = [key for key in keys_of(StepsEntry) if key in given and key not in (*needed, *allowed)]
    keys = listed((*needed, *allowed), "and")
    mistakes += [(key, f"is no key of {entry.kind}; its keys: {keys}") for key in foreign]
    if not mistakes:
        try:
            random_lengths(entry)
        except InputError as error:
            mistakes += [(each.place.rpartition(": ")[2], each.sentence) for each in error.mistakes]
    return mistakes


def random_lengths(entry: StepsEntry) -> Lengths | None:
    """Turn an entry without mistakes into a distribution; None if a file has to be read for it.

    >>> random_lengths(StepsEntry(kind="uniform", low=3, high=5))
    Uniform(low=3, high=5)
    """
    match entry.kind:
        case "list":
            return Weighted(tuple(entry.values or ()), tuple(entry.weights or ()))
        case "uniform":
            return Uniform(entry.low, entry.high)
        case "geometric":
            return Geometric(entry.mean, entry.most)
        case "empirical" | "column":
            return None


def measure_of(entry: StepsEntry) -> Measure:
    """Give the rule that makes steps of columns.

    >>> measure_of(StepsEntry(kind="column", column="ContextTokens", per_step=16.0))
    Measure(columns=('ContextTokens',), per_step=16.0)
    """
    columns = (entry.column,) if isinstance(entry.column, str) else tuple(entry.column)
    return Measure(columns, entry.per_step)
