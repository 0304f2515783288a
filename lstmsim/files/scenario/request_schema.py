"""The keys of how requests of a job entry come, how long they are, and how they run together; and of the density.

The entries of all other keys are in `lstmsim.files.scenario.schema`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from lstmsim.base.bounds import MAX_CYCLES, MAX_INTERVAL_CYCLES, MAX_JOBS, MAX_STEPS
from lstmsim.base.checks import printable
from lstmsim.base.errors import InputError
from lstmsim.base.keys import Entry, Key, keys_of
from lstmsim.base.wording import listed

if TYPE_CHECKING:
    from lstmsim.traffic.arrivals import ClosedLoop, OpenArrivals
    from lstmsim.traffic.lengths import Lengths

Name = Annotated[str, Key(low=1, high=200, rule=printable)]
Cycles = Annotated[int, Key(low=0, high=MAX_CYCLES)]
Steps = Annotated[int, Key(low=1, high=MAX_STEPS)]
Arrivals = Annotated[list[Cycles], Key(high=MAX_JOBS)]
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
    "stream": (("frame_ms",), ("start_cycle", "streams", "phases", "session", "move_cycles")),
    "closed": (("clients", "think_ms"), ("think", "seed")),
    "file": (("path",), ("job", "job_column", "tenant_column", "speedup", "rows")),
}


class ArrivalEntry(Entry):
    """A description of arrivals. One class serves all kinds, so that each key is checked whatever the kind.

    kind: the kind of arrivals, for example poisson.
    rate_per_second: the mean rate of a Poisson process.
    frame_ms: from one frame of a stream to the next.
    phases: how the frames of streams lie to each other: even (spread over a period) or together.
    session: where a stream's states are: anywhere (frames go to any core), pinned (all frames to one core), or moved
        (a frame goes to any core, and pays if the one before it was on another).
    move_cycles: cycles of a move of one stream's states.
    seed: chooses the random arrivals of a kind.
    path: a file with a row for each request (docs/serving.md).
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
    session: Literal["anywhere", "pinned", "moved"] = "anywhere"
    move_cycles: Cycles = 0
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
