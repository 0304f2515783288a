"""Jobs and scenarios: which model runs for how long, when it arrives, on which cores, and in which order jobs run.

An order of dispatch gives a key, and whether the key counts from the job's arrival. The job with the smallest key is
admitted first; jobs with equal keys are admitted in the order of arrival. Running jobs go on, except that a job which
preempts (`Job`) may take the thread of another.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple, Protocol

from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.records import record
from lstmsim.base.wording import show
from lstmsim.model.batching import Batching
from lstmsim.model.figures import CoreFigures
from lstmsim.model.model import Model, Precision

#: Least arrivals to estimate a rate from. With fewer, the rate is off by a fifth or more, even if they come evenly.
LEAST_ESTIMATED = 20
#: Least arrivals of a window, on average. With fewer, their number does not say how irregularly they come.
LEAST_IN_WINDOW = 5


@record
class Offer:
    """How the requests of one entry come.

    rate_per_second: rate in the long run; 0 if there is none, because the requests come once (all together, or too few
        to be a process) or because clients ask.
    variability: squared coefficient of variation of the gaps between requests, in the long run (0: even, 1: Poisson).
    clients: how many clients ask, in a closed loop; else 0.
    estimated: whether the rate was estimated from a list of arrivals.
    lengths: (number of steps, share of the requests that have it), if there is more than one number of steps.
    entry: common name of the entry's jobs, if they belong to several tenants.
    requests: how many requests come in all; 0: as many as the user asks for.
    memory_seconds: after about so long the arrivals have forgotten their past; infinite: not known. Clients forget with
        each request if they think for exponential times (0).
    pinned: whether they belong to streams that were dealt out over the cores of the scenario's own chip.
    move_cycles: cycles that a request may take more, because its stream's states are moved to its core.
    process: what comes, so that more can be drawn: a description of `lstmsim.traffic.arrivals`, or cycles in order.

    >>> Offer(1000.0, variability=1.0).is_process, Offer(clients=4).is_process, Offer().is_process
    (True, True, False)
    """

    rate_per_second: float = 0.0
    variability: float = 0.0
    clients: int = 0
    estimated: bool = False
    lengths: tuple[tuple[int, float], ...] = ()
    entry: str = ""
    requests: int = 0
    memory_seconds: float = 0.0
    pinned: bool = False
    move_cycles: int = 0
    process: Any = field(default=None, compare=False, repr=False)

    @property
    def is_process(self) -> bool:
        """Whether requests go on coming."""
        return self.rate_per_second > 0 or self.clients > 0


def estimated_offer(cycles: Sequence[int], frequency_mhz: float) -> Offer:
    """Estimate the offer of a list of arrivals (cycles, in order). It is empty if they are few or come all at once."""
    span = cycles[-1] - cycles[0] if cycles else 0
    if len(cycles) < LEAST_ESTIMATED or span <= 0:
        return Offer()
    mean = span / (len(cycles) - 1)
    squares = sum((two - one - mean) ** 2 for one, two in pairwise(cycles))
    variability = max(squares / (len(cycles) - 1) / mean**2, _dispersion(cycles))
    return Offer(frequency_mhz * 1e6 / mean, variability, estimated=True, memory_seconds=inf, process=tuple(cycles))


def _dispersion(cycles: Sequence[int]) -> float:
    """The largest index of dispersion over windows of several lengths: the variance of the counts / their mean.

    Gaps that depend on each other vary little one by one and much together (Cox and Lewis, The statistical analysis of
    series of events, 1966). The index is 0 if no window would hold five arrivals.
    """
    largest, span = 0.0, cycles[-1] - cycles[0]
    for windows in (20, 40, 80, 160, 320):
        if len(cycles) < LEAST_IN_WINDOW * windows:
            break
        edges = [bisect_left(cycles, cycles[0] + span * place // windows) for place in range(windows)]
        counts = [two - one for one, two in pairwise([*edges, len(cycles)])]
        mean = len(cycles) / windows
        largest = max(largest, sum((each - mean) ** 2 for each in counts) / (windows - 1) / mean)
    return largest


#: The deadline of jobs that have none: later than any deadline.
_NO_DEADLINE = 1 << 59


class Ranked(Protocol):
    """The properties of a job that an order looks at."""

    @property
    def macs(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def deadline(self) -> int | None: ...


def fcfs(job: Ranked) -> tuple[int, bool]:
    """Order jobs as first come, first served.

    Source: Kleinrock, Queueing Systems, volume 1, 1975.
    """
    return 0, False


def sjf(job: Ranked) -> tuple[int, bool]:
    """Order jobs as shortest job first.

    The length of a job is its multiply-accumulates, because its cycles are not known before it runs. This order
    shortens the mean wait, and lets long jobs starve.

    Source: Smith 1956, doi 10.1002/nav.3800030106.
    """
    return job.macs, False


def edf(job: Ranked) -> tuple[int, bool]:
    """Order jobs as earliest deadline first. Jobs without a deadline come last.

    Source: Liu and Layland 1973, doi 10.1145/321738.321743.
    """
    return (_NO_DEADLINE, False) if job.deadline is None else (job.deadline, True)


def priority(job: Ranked) -> tuple[int, bool]:
    """Order jobs by priority, the highest first.

    Source: Cobham 1954, doi 10.1287/opre.2.1.70.
    """
    return -job.priority, False


#: Name -> order.
DISPATCH: Mapping[str, Callable[[Ranked], tuple[int, bool]]] = {
    "fcfs": fcfs,
    "sjf": sjf,
    "edf": edf,
    "priority": priority,
}


#: Name -> how one job may run on several cores at once.
SPLITS = {
    "rows": "each core has an equal share of the units of every gate matrix, and sends its h to the others",
    "layers": "a pipeline: each core has some layers, and starts a step when the layer below has it",
    "auto": "as rows over all cores that are free when its turn comes and nobody else waits for them; else on one",
}

#: Name -> what the caches of a machine hold when a job begins, where that changes its cycles.
WEIGHTS = {
    "cold": "nothing of the job",
    "warm": "what the same job on the same cores left there, when it had run again and again",
}

#: Name -> which core a job takes if several have a free thread.
PLACEMENTS = {
    "least-loaded": "the core with the fewest jobs; Winston, Journal of Applied Probability 14, 1977",
    "affinity": "first one that holds its weights; Squillante and Lazowska 1993, doi 10.1109/71.207589",
}


class Chip(Protocol):
    """What the chip of every target has: a name, the kind that selects its target, one clock, and cores."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def frequency_mhz(self) -> float: ...
    @property
    def cores(self) -> tuple[Any, ...]: ...
    @property
    def sources(self) -> Mapping[str, str]: ...
    @property
    def core_figures(self) -> tuple[CoreFigures, ...]: ...
    def remarks(self, job: Job, /) -> tuple[str, ...]: ...
    def __hash__(self) -> int: ...


#: Of a kind of machine, or a chip's name, keys of a job with values.
OnMachines = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]

#: Keys of a job with their least values.
_LEAST = dict.fromkeys(("steps", "batch", "threads"), 1)
_LEAST |= dict.fromkeys(("arrival", "frame_interval", "queue_limit", "patience"), 0)


@record
class Density:
    """How many elements of vectors change by enough to be sent, where cycles depend on it: drawn, in place of numbers.

    x, h: chance of an element of the input of a layer, and of its output of the step before, each by itself; 0 to 1.
    seed: of the draws.
    place: number of the job in its scenario, which is part of the seed: jobs draw numbers of their own.
    `InputError` if a value is out of its range.

    >>> Density(x=0.1, h=0.1, seed=1, place=2).drawn_from
    2000007
    """

    x: float
    h: float
    seed: int = 0
    place: int = 0

    def __post_init__(self) -> None:
        given = {"x": self.x, "h": self.h}
        texts = {key: f"must be 0 to 1, got {each}" for key, each in given.items() if not 0 <= each <= 1}
        refuse(Mistake(f"density: {key}", text) for key, text in texts.items())

    @property
    def drawn_from(self) -> int:
        """The seed of the job's own draws."""
        return self.seed + 1_000_003 * self.place


@record
class Job:
    """One inference.

    name: name of the job.
    model: the network.
    steps: time steps.
    arrival: cycle at which the job comes; with `after`, cycles from the end of that job.
    frame_interval: cycles; frame t of the input is there from cycle `arrival + t * frame_interval`.
    cores: cores that the job may use; None for all. It runs on one of them, unless it is split.
    batch: inferences that run together, on targets that have batching; 1 on other targets.
    inputs: file with the numbers of the frames, or empty. No cycle depends on it.
    after: position of an earlier job; this job comes when that job has finished or was rejected.
    priority: larger is sooner, for the `dispatch` that asks for it.
    deadline: cycles from the arrival, for the `dispatch` that asks for it; None for none.
    dispatch: rank among jobs that wait, a key of `lstmsim.model.scenario.DISPATCH`.
    split: how the job runs on all of `cores` at once, a key of `SPLITS` (`auto`: on the free ones, or one); else empty.
    preempts: whether a running job of a larger rank gives up its thread to this job at its next step.
    affinity: whether the job prefers a core that holds its weights.
    queue_limit: the job is rejected if so many jobs wait before it when it comes; None for no limit.
    patience: the job is rejected when it has waited more cycles than this; None for no limit.
    tenant: entry of the scenario that the job belongs to, by which requests are counted. No cycle depends on it.
    density: how many elements change, on machines whose cycles depend on it; None: `numbers` say it.
    numbers: what it computes on, on machines whose cycles depend on it (`lstmsim.model.numerics.jobs.OwnNumbers`).
    threads: on how many cores the job's threads run, one on each, on machines that spread a job over threads; None: on
        all cores there.
    weights: what caches hold at its beginning, a key of `WEIGHTS`, on machines that have such caches; None: what the
        machine says (docs of the machine).
    on: values of keys on other machines: of the empty name those of machines that are not named, then of each kind of
        machine and each chip that is.
    initial: first values of its states, a file or `zero`; empty: those that the network fixes, else 0. As for `inputs`.
    states_of: position of the job that this job comes `after`, if it begins with that job's last states instead of
        `initial`. No cycle depends on it.
    batching: how the job waits for others, to run together with them; None: it runs alone.
    session: the stream whose states it goes on with, if these may have to be moved to its core (docs/streams.md).
    move_cycles: cycles of such a move.
    `InputError` if a value is out of its range.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer
    >>> Job("a", Model("m", (Layer(cell("rnn"), 4, 4),)), steps=3).macs
    96
    """

    name: str
    model: Model
    steps: int
    arrival: int = 0
    frame_interval: int = 0
    cores: tuple[int, ...] | None = None
    batch: int = 1
    inputs: str = field(default="", compare=False)
    after: int | None = None
    priority: int = 0
    deadline: int | None = None
    dispatch: str = "fcfs"
    split: str = ""
    preempts: bool = False
    affinity: bool = False
    queue_limit: int | None = None
    patience: int | None = None
    tenant: str = field(default="", compare=False)
    initial: str = field(default="", compare=False)
    states_of: int | None = field(default=None, compare=False)
    threads: int | None = None
    density: Density | None = None
    numbers: Hashable = None
    weights: str | None = None
    on: OnMachines = field(default=(), compare=False, repr=False)
    batching: Batching | None = None
    session: tuple[int, int] | None = None
    move_cycles: int = 0

    def __post_init__(self) -> None:
        given: object = self.model
        if not isinstance(given, Model):
            wrong = {"model": f"must be a Model, got {show(given)}; lstmsim.Job takes names too"}
        elif self.dispatch not in DISPATCH:
            wrong = {"dispatch": f"must be one of {', '.join(DISPATCH)}, got {self.dispatch!r}"}
        elif self.deadline is not None and self.deadline < 1:
            wrong = {"deadline": f"must be at least 1, got {self.deadline}"}
        elif self.split and self.split not in SPLITS:
            wrong = {"split": f"must be one of {', '.join(SPLITS)}, got {self.split!r}"}
        elif self.weights is not None and self.weights not in WEIGHTS:
            wrong = {"weights": f"must be one of {', '.join(WEIGHTS)}, got {self.weights!r}"}
        elif self.cores is not None and not self.cores:
            wrong = {"cores": "must name at least one core"}
        else:
            given_numbers = {key: getattr(self, key) for key in _LEAST}
            low = {key: value for key, value in given_numbers.items() if value is not None and value < _LEAST[key]}
            wrong = {key: f"must be at least {_LEAST[key]}, got {value}" for key, value in low.items()}
        if wrong:
            raise InputError([Mistake(f"job {self.name}: {key}", text) for key, text in wrong.items()])

    def at(self, chip: Chip) -> Job:
        """The job as it is meant for a chip: that of its name goes before that of its kind."""
        if not self.on:
            return self
        stated = dict(self.on)
        values: dict[str, Any] = {}
        for machine in ("", chip.kind, chip.name):
            values |= dict(stated.get(machine, ()))
        if "split" in values:
            values["split"] = values["split"] or ""
        return replace(self, **values)

    def allowed(self, cores: int) -> tuple[int, ...]:
        """The cores that the job may use on a chip with `cores` cores."""
        return tuple(range(cores)) if self.cores is None else self.cores

    def together(self, cores: int, taken: int = 0) -> tuple[int, ...]:
        """The cores that the job takes at once on a chip with `cores` cores; empty if it runs on one core.

        taken: for `auto`, the cores that it took in a run, one bit for each core it may use (column of `Trace.tasks`).
        """
        if not self.split:
            return ()
        allowed = self.allowed(cores)
        if self.split == "auto":
            allowed = tuple(core for place, core in enumerate(allowed) if taken >> place & 1)
        return allowed if len(allowed) > 1 else ()

    def settled(self, cores: int) -> Job:
        """The job as a chip with `cores` cores takes it: a job that is split over one core is not split."""
        return replace(self, split="") if self.split and len(self.allowed(cores)) == 1 else self

    def split_over(self, members: int) -> str:
        """How the job is split if it runs on `members` cores: a key of `SPLITS` but not `auto`, or empty."""
        if members == 1:
            return ""
        return "rows" if self.split == "auto" else self.split

    def members(self, cores: int) -> int:
        """Over how many cores the job is spread on a chip with `cores` cores, if the machine spreads it at all."""
        return len(self.allowed(cores)) if self.threads is None else self.threads

    @property
    def configuration(self) -> tuple[Hashable, ...]:
        """Everything on which it depends whether and where a chip runs the job, and what it says of it.

        Jobs that differ in their lengths and arrivals share it. Equal models are equal here, whatever their weights.
        """
        data = self.density, self.numbers
        return (self.model, self.batch, self.cores, self.split, self.threads, self.weights, *data)

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The configuration with length, pace of frames, and whether it goes step by step: alike when run alone."""
        return (*self.configuration, self.steps, self.frame_interval, self.batching and self.batching.alone)

    @property
    def may_leave(self) -> bool:
        """Whether the job can be rejected."""
        return self.queue_limit is not None or self.patience is not None

    def may_use(self, cores: Iterable[int]) -> bool:
        """Whether the job may use any of these cores."""
        return self.cores is None or not set(self.cores).isdisjoint(cores)

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates of the whole job."""
        return self.model.macs_per_step * self.steps * self.batch


@record
class Scenario:
    """A chip and the jobs that it serves.

    jobs: in the user's order.
    precision: widths of the numbers. No cycle depends on it.
    offers: tenant -> rate at which its requests come in the long run, if the file says it. No cycle depends on it.
    precision_given: whether the user asked for fixed point; else outputs are in float64. None: whether `precision` is
        not the usual one.
    calibration: name of a model -> file of frames on which its fixed-point formats are calibrated; the formats of other
        models are calibrated on their jobs.
    seeds: place of each random process in the file, like `jobs.0.arrival`, and its seed.
    origin: the document that the scenario was read from, if jobs were drawn from it; then rates can be drawn anew.
        `dataclasses.replace` leaves it out, for what was changed is no longer what was read.
    `InputError` if there are no jobs.
    """

    chip: Chip
    jobs: tuple[Job, ...]
    name: str = "scenario"
    precision: Precision = field(default_factory=Precision)
    offers: Mapping[str, Offer] = field(default_factory=dict, compare=False, repr=False)
    precision_given: bool | None = field(default=None, compare=False)
    calibration: Mapping[str, str] = field(default_factory=dict, compare=False)
    seeds: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    origin: Any = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.precision_given is None:
            object.__setattr__(self, "precision_given", self.precision != Precision())
        if not hasattr(self.chip, "kind"):
            text = f"must be a chip, got {show(self.chip)}; lstmsim.Scenario and lstmsim.load_chip take names too"
            raise InputError(Mistake(f"scenario {self.name}: chip", text))
        if not self.jobs:
            raise InputError(Mistake(f"scenario {self.name}: jobs", "must hold at least one job"))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks of the chip on the jobs, once for each configuration: limits that are not kept, missing sources."""
        own = [text for job in distinct_jobs(self.jobs) for text in self.chip.remarks(job)]
        idle = (job for job in self.jobs if job.batching is not None and job.batching.idle_keys)
        own += [f"job {job.tenant or job.name}: {job.batching.idle_keys}" for job in idle if job.batching]
        own += [
            f"streams {job.tenant or job.name}: a frame on another core than the one before waits {job.move_cycles:,} "
            "cycles for its states (an assumption, docs/streams.md), counted as waits for input"
            for job in self.jobs
            if job.session is not None
        ]
        return tuple(dict.fromkeys(own))


def data_words(job: Job) -> str:
    """For which data the cycles of a job hold, on machines whose cycles depend on them, in a sentence."""
    if job.density is not None:
        own = job.density
        text = f"{100 * own.x:g} % of the elements of x and {100 * own.h:g} % of those of h change, drawn"
        text += f" independently with seed {own.seed}; `simulate` draws for each request, `serve` once for an entry"
        return f"Job {job.name}: {text}; changes of real data are not independent"
    return f"Job {job.name}: the numbers of {os.path.basename(job.inputs) or 'no file'}"


_DENSITY = "give it a `density` like {x: 0.2, h: 0.2}, the shares of elements that change"


def no_data(job: Job) -> str:
    """What a job lacks on a machine whose cycles depend on data, in a sentence."""
    if job.inputs:
        return f"its cycles depend on its numbers, which are not read for requests that keep coming: {_DENSITY}"
    return f"its cycles depend on its numbers: give it `inputs` (and a model with weights), or {_DENSITY}"


def for_data(jobs: Sequence[Job]) -> str:
    """The end of a sentence on machines whose cycles depend on data: for which data they hold."""
    words = list(dict.fromkeys(data_words(job).partition(": ")[2] for job in jobs))
    more = f", and {len(words) - 1} more" if len(words) > 1 else ""
    return f"cycles depend on the data: {words[0]}{more}" if words else "cycles depend on the data"


def distinct_jobs(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The first job of each configuration, in the order of the jobs."""
    first: dict[Hashable, Job] = {}
    for job in jobs:
        first.setdefault(job.configuration, job)
    return tuple(first.values())


class Claim(NamedTuple):
    """What jobs of one configuration claim of a chip with some number of cores, asked once for all of them.

    number: its place among the claims, in the order of the first jobs.
    job: the first of its jobs.
    allowed, together, members: what the methods of `Job` by these names give.
    """

    number: int
    job: Job
    allowed: tuple[int, ...]
    together: tuple[int, ...]
    members: int


class Claims(NamedTuple):
    """Jobs as a lowering takes them.

    different: the claim of each configuration.
    jobs: each job with its claim and its key for the order of dispatch, in the order of the jobs.
    """

    different: tuple[Claim, ...]
    jobs: tuple[tuple[Job, Claim, tuple[int, bool]], ...]


def claims_of(jobs: Iterable[Job], cores: int) -> Claims:
    """Ask jobs what a chip with `cores` cores has to know of them."""
    known: dict[Hashable, Claim] = {}
    claimants = []
    for job in jobs:
        key = job.configuration
        claim = known.get(key)
        if claim is None:
            claim = Claim(len(known), job, job.allowed(cores), job.together(cores), job.members(cores))
            known[key] = claim
        claimants.append((job, claim, DISPATCH[job.dispatch](job)))
    return Claims(tuple(known.values()), tuple(claimants))


def unused(job: Job, *keys: str) -> tuple[str, ...]:
    """Remarks on keys that a job gives and a machine has no use for, because they change nothing of what is asked.

    >>> from lstmsim.model.cells import cell
    >>> from lstmsim.model.model import Layer, Model
    >>> unused(Job("a", Model("m", (Layer(cell("lstm"), 8, 8),)), steps=1, threads=2), "threads", "weights")
    ('`threads` of jobs is left out: this machine has no such thing',)
    """
    given = (key for key in keys if getattr(job, key) is not None)
    return tuple(f"`{key}` of jobs is left out: this machine has no such thing" for key in given)


def cores_at_once(chip: Chip, job: Job, first: int = 0, taken: int = 0) -> tuple[int, ...]:
    """The cores that a job takes at once on a chip; empty if it runs on one core.

    first: the first of them, where a job is spread over neighbouring cores; taken: as for `Job.together`.
    """
    cores = len(chip.core_figures)
    if not chip.core_figures[0].spreads:
        return job.together(cores, taken)
    members = job.members(cores)
    return tuple(range(first, first + members)) if members > 1 else ()


#: Ways in which jobs come, and what follows for the makespan of a run.
ARRIVING = {
    "at once": "all jobs come in one cycle; the makespan is the time that the chip needs for them",
    "open": "jobs come at times that the chip has no part in; a chip that keeps up ends soon after the last has come",
    "closed": "some jobs come after others have finished; a faster chip is asked sooner",
}


def arriving(jobs: Sequence[Job]) -> str:
    """The way in which the jobs come, a key of `ARRIVING`."""
    if any(job.after is not None for job in jobs):
        return "closed"
    return "open" if len({job.arrival for job in jobs}) > 1 else "at once"
