"""Jobs: which model runs how long, when it arrives, and where it may run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Protocol

from lstmsim.errors import InputError, Mistake
from lstmsim.records import record
from lstmsim.workload.dispatch import DISPATCH
from lstmsim.workload.model import Model
from lstmsim.workload.offer import Offer
from lstmsim.workload.precision import Precision

#: How one job may run on several cores at once.
SPLITS = {
    "rows": "each core has an equal share of the units of every gate matrix, and sends its h to the others",
    "layers": "a pipeline: each core has some layers, and starts a step when the layer below has it",
    "auto": "as rows over all cores that are free when its turn comes and nobody else waits for them; else on one",
}

#: Which of several cores with a free thread a job takes.
PLACEMENTS = {
    "least-loaded": "the core with the fewest jobs; Winston, Journal of Applied Probability 14, 1977",
    "affinity": "first one that holds its weights; Squillante and Lazowska 1993, doi 10.1109/71.207589",
}

__all__ = ["PLACEMENTS", "SPLITS", "Chip", "CoreFigures", "Job", "Scenario", "Words"]


@record
class Words:
    """What a name of cycles or losses is called on one machine; where a text is empty, the usual one stands.

    meaning: what it is. remedy: how a user could get less of it. glossary: what it is, in the glossary of explanations;
    any word of the glossary may have one.
    """

    meaning: str = ""
    remedy: str = ""
    glossary: str = ""


@record
class CoreFigures:
    """What accounts and reports need to know of a core, whatever machine it belongs to.

    peak: multiply-accumulates that it can do in a cycle.
    issuing: how many of them take part when it issues; the others are lost then (`unmapped`).
    columns: sizes that a report shows beside its cycles, by the name of the column.
    settings: other figures to show, by name.
    stalls: names of cycles that this machine knows beside those of every machine.
    words: names of cycles and losses that mean something of their own on this machine.

    >>> CoreFigures(peak=10, issuing=8, columns={"npe": 10, "ep": 2, "vp": 4}).peak
    10
    """

    peak: int
    issuing: int
    columns: Mapping[str, int] = field(default_factory=dict, hash=False)
    settings: Mapping[str, int | str] = field(default_factory=dict, hash=False)
    stalls: tuple[str, ...] = ()
    words: Mapping[str, Words] = field(default_factory=dict, hash=False)


class Chip(Protocol):
    """What every target's description has: a name, the kind that selects its lowering, and one clock."""

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


@record
class Job:
    """One inference: `steps` of `model`, arriving at cycle `arrival`.

    Frame t of its input is there from cycle `arrival + t * frame_interval`. `cores`: the cores that it may use (None:
    all); it runs on one of them or, with `split` (a key of `SPLITS`), on all of them at once (`auto`: on those that it
    finds free, or on one). `batch` inferences run together where the target has batching (1 elsewhere). `inputs`: the
    file with the numbers of its frames, or empty; no cycle depends on it. With `after`, the position of an earlier job,
    it arrives `arrival` cycles after that has finished. `dispatch` (a key of `lstmsim.workload.dispatch.DISPATCH`)
    ranks it among jobs that wait, by its `priority` (more is sooner) or `deadline` (cycles from its arrival) where that
    asks for them; if it `preempts`, a running job of a larger rank gives up its thread at the next step. `affinity`: it
    prefers a core that holds its weights. It is turned away if `queue_limit` jobs stand before it when it comes, or as
    soon as it has waited more than `patience` cycles. `tenant`: the entry of the scenario that it belongs to, by which
    requests are counted; no cycle depends on it. `initial`: what its states begin with, a file or `zero`; empty: what
    the network fixes, else 0. `states_of`: the position of an earlier job, the one that it comes `after`, with whose
    last states it begins instead. No cycle depends on either.

    >>> from lstmsim.workload.cells import cell
    >>> from lstmsim.workload.model import Layer
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

    def __post_init__(self) -> None:
        least = {"steps": 1, "arrival": 0, "frame_interval": 0, "batch": 1}
        least |= {key: 0 for key in ("queue_limit", "patience") if getattr(self, key) is not None}
        if self.dispatch not in DISPATCH:
            text = f"must be one of {', '.join(DISPATCH)}, got {self.dispatch!r}"
            raise InputError(Mistake(f"job {self.name}: dispatch", text))
        if self.deadline is not None and self.deadline < 1:
            raise InputError(Mistake(f"job {self.name}: deadline", f"must be at least 1, got {self.deadline}"))
        if self.split and self.split not in SPLITS:
            text = f"must be one of {', '.join(SPLITS)}, got {self.split!r}"
            raise InputError(Mistake(f"job {self.name}: split", text))
        if self.cores is not None and not self.cores:
            raise InputError(Mistake(f"job {self.name}: cores", "must name at least one core"))
        wrong = [(key, low) for key, low in least.items() if getattr(self, key) < low]
        if wrong:
            texts = [
                (f"job {self.name}: {key}", f"must be at least {low}, got {getattr(self, key)}") for key, low in wrong
            ]
            raise InputError([Mistake(place, text) for place, text in texts])

    def allowed(self, cores: int) -> tuple[int, ...]:
        """The cores that it may use on a chip with so many.

        >>> from lstmsim.workload.cells import cell
        >>> from lstmsim.workload.model import Layer
        >>> Job("a", Model("m", (Layer(cell("rnn"), 4, 4),)), steps=3).allowed(2)
        (0, 1)
        """
        return tuple(range(cores)) if self.cores is None else self.cores

    def together(self, cores: int, taken: int = 0) -> tuple[int, ...]:
        """The cores that it takes at once on a chip with so many; empty if it runs on one of those that it may use.

        `taken`: which of its cores it took, where that is found out as it runs (as in `Trace.tasks`).
        """
        if not self.split:
            return ()
        allowed = self.allowed(cores)
        if self.split == "auto":
            allowed = tuple(core for place, core in enumerate(allowed) if taken >> place & 1)
        return allowed if len(allowed) > 1 else ()

    def settled(self, cores: int) -> Job:
        """The job as a chip with so many cores takes it: what is split over one core is not split.

        >>> from lstmsim.workload.cells import cell
        >>> from lstmsim.workload.model import Layer
        >>> job = Job("a", Model("m", (Layer(cell("rnn"), 4, 4),)), steps=3, split="rows")
        >>> [job.settled(cores).split for cores in (1, 2)]
        ['', 'rows']
        """
        return replace(self, split="") if self.split and len(self.allowed(cores)) == 1 else self

    def split_over(self, members: int) -> str:
        """How it is split when it runs on so many cores: a key of `SPLITS` but `auto`, or empty.

        >>> from lstmsim.workload.cells import cell
        >>> from lstmsim.workload.model import Layer
        >>> job = Job("a", Model("m", (Layer(cell("rnn"), 4, 4),)), steps=3, split="auto")
        >>> [job.split_over(members) for members in (1, 2)]
        ['', 'rows']
        """
        if members == 1:
            return ""
        return "rows" if self.split == "auto" else self.split

    @property
    def may_leave(self) -> bool:
        """Whether it can be turned away."""
        return self.queue_limit is not None or self.patience is not None

    def may_use(self, cores: Iterable[int]) -> bool:
        """Whether it may use any of these."""
        return self.cores is None or not set(self.cores).isdisjoint(cores)

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates of the whole job."""
        return self.model.macs_per_step * self.steps * self.batch


@record
class Scenario:
    """A chip and the jobs it serves, in the user's order; `precision` is for its numbers only.

    `precision_given`: whether the user asked for fixed point (None: if `precision` is not the usual one); outputs are
    in float64 otherwise. `calibration`: the file of frames that the fixed-point formats of a model are calibrated on,
    by the model's name; those of other models are calibrated on their jobs. `offers`: by tenant, at which rates
    requests come in the long run, where the file says it; no cycle depends on it.
    """

    chip: Chip
    jobs: tuple[Job, ...]
    name: str = "scenario"
    precision: Precision = field(default_factory=Precision)
    offers: Mapping[str, Offer] = field(default_factory=dict, compare=False, repr=False)
    precision_given: bool | None = field(default=None, compare=False)
    calibration: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.precision_given is None:
            object.__setattr__(self, "precision_given", self.precision != Precision())
        if not self.jobs:
            raise InputError(Mistake(f"scenario {self.name}: jobs", "must hold at least one job"))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the chip has to say about the jobs, of each model once: limits not kept, missing sources."""
        first = {(id(job.model), job.cores): job for job in reversed(self.jobs)}
        return tuple(dict.fromkeys(text for job in reversed(first.values()) for text in self.chip.remarks(job)))
