"""The contract that every machine fills in, once, in its own folder: in files, as a program, and what else it can do.

All other packages ask this contract, and never ask which machine it is: files, sweeps, explanations, devices, the
replay of a trace, reports and pages. If a machine leaves a method out, the method here says what that means. Keys with
their types, defaults and bounds are read off the descriptions (`lstmsim.base.keys`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from lstmsim.base.bounds import MAX_FREQUENCY_MHZ, MIN_FREQUENCY_MHZ
from lstmsim.base.errors import InputError, Mistake, refuse
from lstmsim.base.keys import Key, described, keys_of, mistakes_of, values_of
from lstmsim.base.records import record
from lstmsim.machines.assembly import PerStep, check_cores
from lstmsim.model.model import Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Program

if TYPE_CHECKING:
    from lstmsim.machines.change import Change
    from lstmsim.machines.hardware import Hardware
    from lstmsim.model.figures import PlannedProducts
    from lstmsim.model.numerics.arithmetic import Arithmetic
    from lstmsim.model.numerics.golden import NetworkRun, Sender
    from lstmsim.model.numerics.jobs import JobNumbers
    from lstmsim.program.trace import Trace


@record
class Fidelity:
    """The evidence for the cycles of a kind of machine. Each entry is a sentence without a full stop.

    >>> Fidelity(("the contract, cycle by cycle",), ("latencies",)).text
    'exact: the contract, cycle by cycle. Assumed: latencies.'
    """

    exact: tuple[str, ...]  # what the simulation agrees with, and how closely
    assumed: tuple[str, ...]  # what no source says

    @property
    def text(self) -> str:
        """Both kinds of entries on one line."""
        return f"exact: {'; '.join(self.exact)}. Assumed: {'; '.join(self.assumed)}."


@record
class Evidence:
    """What stands behind the cycles of certain jobs on a certain chip, in words without a full stop.

    >>> Evidence().against
    'the timing contract only, no hardware'
    """

    against: str = "the timing contract only, no hardware"  # what they are exact against
    inside: str = "every size that the contract allows"  # where that was shown, or why no hardware stands behind them
    compared: str = "own contract, nothing else"  # what they were compared with; up to a comma in a table
    silicon: bool = False  # whether that is measured hardware
    outside: bool = True  # whether these jobs on this chip lie outside what was compared


@record
class MemoryRate:
    """What the memory beside the cores of a chip gives to all of them together.

    bytes_per_cycle: its rate, in bytes a cycle of the chip's clock.
    weight_bytes: bytes of a weight there.
    source: the keys of the chip that say so.

    >>> MemoryRate(64.0, 0.5, "memory.gb_per_s").bytes_per_cycle
    64.0
    """

    bytes_per_cycle: float
    weight_bytes: float
    source: str


#: The keys that a chip of any kind has.
COMMON = ("name", "frequency_mhz", "cores", "sources", "kind")

#: The clock of a chip: whole cycles of every machine become seconds by it.
Clock = Annotated[float, Key("the clock in MHz", "MHz", MIN_FREQUENCY_MHZ, MAX_FREQUENCY_MHZ, above=0)]

#: Units of latencies and bandwidths: what takes time, and what is done in a time.
PER_CYCLE = "a cycle"
TIMES, RATES = ("cycles",), (PER_CYCLE, "GB/s")

Path = tuple[str | int, ...]


@record
class Fault:
    """A mistake in an entry whose keys are right one by one.

    >>> Fault.at("latency.add", "must be at least 1, got 0").keys
    (('latency', 'add'),)
    """

    keys: tuple[Path, ...]  # paths below the entry of the keys that may be wrong; the first one names the place
    sentence: str  # what is wrong, without the place
    known: Sequence[str] = ()  # names that could stand there, if a name is wrong; else empty

    @classmethod
    def at(cls, key: str, sentence: str, *others: str) -> Fault:
        """The fault of a key. Levels of a key are separated by dots. Keys in `others` may also be the wrong ones."""
        return cls(tuple(tuple(each.split(".")) for each in (key, *others)), sentence)


def check_description(chip: Any) -> None:
    """`InputError` with every mistake of a chip and of its cores; every chip calls it when it is made.

    >>> from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
    >>> ColumnNpu("c", 260, (ColumnCore(npe=64, ep=4, vp=32),))
    Traceback (most recent call last):
    lstmsim.InputError: chip c: cores.0.vp: ep * vp must not exceed npe: 4 * 32 = 128 > 64
    """
    cores = enumerate(chip.cores)
    mistakes = [(f"cores.{index}.{key}", text) for index, core in cores for key, text in core.mistakes()]
    mistakes += mistakes_of(chip)
    refuse(Mistake(f"chip {chip.name}: {key}", text) for key, text in mistakes)


class Entries:
    """The description of a machine in files. The defaults fit a machine with independent numbers and plain jobs."""

    kind: ClassVar[str]  # the machine's word in the file of a chip
    title: ClassVar[str]  # its name for people
    chip: ClassVar[type]  # chip, core: classes of the frozen descriptions
    core: ClassVar[type]
    # keys of a core that are judged together; if one of them is wrong, nothing is said about the others
    together: ClassVar[frozenset[str]] = frozenset()
    # whether the inferences of a batch run together
    batches: ClassVar[bool] = False
    rounds: ClassVar[bool] = False  # whether requests may join and leave a batch between two steps (`continuous`)
    ragged: ClassVar[bool] = False  # whether inferences of a batch may end one by one
    # whether comparisons give the inferences of a batch to the machine's threads, each as a job of its own
    deals: ClassVar[bool] = True
    threads: ClassVar[bool] = False  # whether a job may say on how many cores its threads run
    # how a job may run on several cores at once, keys of `lstmsim.model.scenario.SPLITS`
    splits: ClassVar[tuple[str, ...]] = ()

    def core_of(self, entry: Mapping[str, Any]) -> Any | Fault:
        """The core of an entry, or the fault because of which it cannot be described.

        entry: the keys that the file gives; each is right by itself.
        """
        return described(self.core, entry)

    def core_faults(self, core: Any) -> Sequence[Fault]:
        """What is wrong with a core's numbers, alone and taken together."""
        return tuple(Fault.at(key, text) for key, text in core.mistakes())

    def chip_of(self, entry: Mapping[str, Any], cores: Sequence[Any]) -> Any:
        """The chip of an entry without mistakes.

        entry: every key of the file, with `name` and `sources`, but without the keys of cores.
        cores: the cores.
        """
        clock = float(entry["frequency_mhz"])
        # 260 in a file is 260 in a report, not 260.0
        frequency = int(clock) if clock.is_integer() else clock
        own = {key: entry[key] for key in keys_of(self.chip) if key in entry and key not in COMMON}
        return self.chip(
            **values_of(self.chip, own),
            name=entry["name"],
            frequency_mhz=frequency,
            cores=tuple(cores),
            sources=dict(entry.get("sources", {})),
        )

    def faults_of_all(self, cores: Sequence[Any]) -> Sequence[str]:
        """What is wrong with all cores of a chip together, in sentences about the key `cores`."""
        return ()

    def chip_faults(self, entry: Mapping[str, Any], cores: Sequence[Any]) -> Sequence[Fault]:
        """What is wrong with the numbers of a chip taken together.

        entry: the entry of the chip; each of its own keys is right by itself.
        cores: the cores of the chip.
        """
        return ()

    def without_effect(self, entry: Mapping[str, Any]) -> Sequence[Fault]:
        """Faults for keys of a chip's entry that change nothing. The entry may hold mistakes of other kinds."""
        return ()

    def weight_width(self, entry: Mapping[str, Any]) -> tuple[str, int] | None:
        """The key of a core's entry that gives the width of its weights, and the width in bits; None if no key does."""
        return None

    def with_weight_bits(self, chip: Any, bits: int) -> Any:
        """The chip with memories for weights of `bits` bits. A machine that counts words returns the same chip."""
        return chip

    def job_faults(
        self, batch: int, split: str | None, threads: int | None = None, cores: int | None = None
    ) -> Sequence[Fault]:
        """Faults for keys of a job that this machine does not have (batches, splits), and for too many threads.

        Threads on machines without them change nothing that is asked: remarks of the chip name them.

        batch, split, threads: as in `lstmsim.model.scenario.Job`.
        cores: how many cores the chip has; None: that is not known.
        """
        faults = []
        if batch != 1 and not self.batches:
            text = f"a {self.title} runs no batches: leave it out and use `count`, got {batch}"
            faults.append(Fault.at("batch", text))
        if split and not self.splits:
            text = f"a {self.title} spreads a job over threads: leave it out, and say how many they are (`threads`)"
            alone = f"a {self.title} runs a job on one core: leave it out"
            faults.append(Fault.at("split", text if self.threads else alone))
        if self.threads and threads is not None and cores is not None and threads > cores:
            faults.append(Fault.at("threads", f"must be at most the chip's {cores} cores, got {threads}"))
        return tuple(faults)

    def check_job(self, cores: Sequence[Any], job: Job) -> None:
        """`InputError` if the machine lacks batches, splits or threads that a job asks for, or no core can run it."""
        faults = self.job_faults(job.batch, job.split, job.threads, len(cores))
        if faults:
            raise InputError([Mistake(f"job {job.name}: {each.keys[0][0]}", each.sentence) for each in faults])
        check_cores(cores, job)

    def model_refusal(self, entry: Mapping[str, Any], model: Model) -> str | None:
        """Why a chip cannot run a model, whatever its cores, in a sentence; None if it can.

        entry: the entry of the chip; it may hold mistakes.
        model: the network.
        """
        return None

    def split_refusal(self, core: Any, model: Model, split: str, members: int) -> str | None:
        """Why a job cannot be split over `members` cores like this one, in a sentence; None if it can."""
        return None

    def reads_numbers(self, chip: Any) -> bool:
        """Whether cycles depend on what jobs compute: their `density` or their `numbers` then say it."""
        return False

    def with_threshold(self, chip: Any, threshold: float) -> Any | None:
        """The chip with this least change of an element, of x and of h; None: the machine skips no columns."""
        return None

    def left_out(self, chip: Any, jobs: Sequence[Job]) -> float | None:
        """The share of the groups of columns that jobs do not send, 0 to 1; None: the machine sends all."""
        return None

    def senders(self, chip: Any, job: Job, arithmetic: Sequence[Sequence[Arithmetic]]) -> Sequence[Sender]:
        """For each layer what its products see in place of its vectors; empty: the vectors."""
        return ()

    def varies(self, chip: Any) -> bool:
        """Whether a sweep may change the numbers of the chip's cores without reading the file anew."""
        return True


class StructuralModel(Protocol):
    """A model of a machine's structure. It executes a trace on real numbers, and relies on the trace alone."""

    def __call__(
        self,
        scenario: Scenario,
        program: Program,
        trace: Trace,
        numbers: Mapping[int, JobNumbers],
        progress: Callable[[int, int], None] | None = None,
    ) -> Mapping[int, NetworkRun]:
        """The results of the jobs in `numbers`. Arguments and errors are those of `lstmsim.analysis.replay.replay`."""


class Target(Entries, ABC):
    """One kind of machine.

    kind, title, chip, core and the other class variables: as in `lstmsim.machines.target.Entries`.
    """

    fidelity: ClassVar[Fidelity]  # what its cycles agree with exactly, and what is assumed
    warms: ClassVar[bool] = False  # whether the cycles of a job depend on what caches hold when it begins
    # whether it runs one job after the other, each to its end, and all begin alike: then the cycles of a job depend on
    # the job alone, and requests that keep coming are served as whole jobs
    one_by_one: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ()  # the names in `chip_counts`, each a column of sweeps
    # a sentence without a full stop on how its numbers are, if it does not compute in the fixed point of scenarios;
    # empty: it does
    other_numbers: ClassVar[str] = ""

    @abstractmethod
    def lower(self, chip: Any, jobs: Sequence[Job], *, templates: bool = False) -> Program:
        """Lower jobs to a Program, as `lstmsim.machines.lower`."""

    def check(self, chip: Any, job: Job) -> None:
        """`InputError` if the chip cannot run a job: the machine lacks what it asks for, or no core can run it."""
        self.check_job(chip.cores, job)

    @abstractmethod
    def per_step(
        self, cores: Sequence[Any], model: Model, batch: int = 1, split: str = "", members: int = 1
    ) -> PerStep:
        """Bounds on the operations of one step of a job.

        cores: the distinct cores that may and can run the job, at least one.
        model: the network.
        batch: how many inferences the job has.
        split: how the job is split, a key of `lstmsim.model.scenario.SPLITS`; empty if it is not.
        members: over how many cores the job is split, or its threads are spread.
        """

    def evidence(
        self, chip: Any, jobs: Sequence[Job], *, bits: bool, preset: str, changed: Collection[str]
    ) -> Evidence:
        """What the cycles of these jobs on a chip are exact against; the contract only, unless a machine has more.

        chip: one of this kind.
        jobs: what it runs; none: products or kernels that no job asks for.
        bits: whether numbers of fixed point are asked for.
        preset: the preset by the chip's name; empty: there is none.
        changed: paths of the keys in which the chip differs from it.
        """
        return Evidence()

    def structural_model(self) -> StructuralModel | None:
        """The model that executes traces of the machine on real numbers; None: its numbers cannot be checked."""
        return None

    def hardware(self) -> Hardware | None:
        """What the cores are built of; None: they cannot be counted on a device, and have no energy."""
        return None

    def chip_counts(self, chip: Any) -> Mapping[str, int]:
        """Counts of a chip that a sweep shows next to its multipliers, each a sum over the cores.

        The names are those of `counts`. Some mean the same on every machine that has them: `threads` are contexts,
        `tail_width` elements that all tails take in a cycle, `banks` accumulator banks. A chip leaves out what it does
        not have.
        """
        return {}

    def adders(self, chip: Any) -> int:
        """Adders in the trees and accumulators of all cores; 0 if the machine has none."""
        return 0

    def changes(self, chip: Any, jobs: Sequence[Job]) -> Sequence[Change]:
        """Changes to the chip or its jobs that are worth a try, the most telling first. An explanation simulates them.

        Empty: the machine has nothing to propose.
        """
        return ()

    def order_changes(self, chip: Any, jobs: Sequence[Job]) -> Sequence[Change]:
        """Changes of who goes first inside a core, as `changes`; an explanation tries them before all others.

        Orders of dispatch are no question to machines: explanations try them on every machine.
        """
        return ()

    def planned(self, chip: Any, jobs: Sequence[Job]) -> PlannedProducts | None:
        """How the products of jobs are spread over threads; None: the machine plans no threads for them."""
        return None

    def kernels(self, chip: Any, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Sentences on how the time steps of jobs were cut into kernels; empty: as the machine always does it."""
        return ()

    def begins_cold(self, chip: Any) -> bool:
        """Whether the first time step of a job loads weights that later steps have near: it is then no steady step.

        chip: one of this kind.
        """
        return False

    def element_bytes(self, chip: Any) -> int | None:
        """Bytes of an element of what is timed; None: cycles do not depend on the precision.

        chip: one of this kind.
        """
        return None

    def memory_rate(self, chip: Any) -> MemoryRate | None:
        """What the memory of a chip gives; None: the machine times no memory from which weights come.

        chip: one of this kind.
        """
        return None

    def shared_parts(self, chip: Any, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Sentences on what the cores share, as far as these jobs use it."""
        return ()
