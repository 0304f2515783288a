"""The common part of all lowerings: classes of operations, which core can run a job, sizes, tasks made of phases."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.model.model import Model
from lstmsim.model.scenario import Claim, Claims, Job
from lstmsim.program.program import Buffer, Core, Moldable, Phase, Program, Task, WeightSet

T = TypeVar("T")

#: Most operations of one step: a program holds them one by one.
MAX_STEP_OPERATIONS = 500_000
#: Most operations of a scenario, and so of one job: ten seconds to some minutes for the fast engine.
MAX_OPERATIONS = 2_000_000_000
#: In every sentence about jobs that are too many operations.
SIZE_WORDS = "operations on this chip"
#: Most operations of a job whose starts a thread remembers, 8 bytes each, because later phases look back at them.
MAX_REMEMBERED = 2**27


@record
class OperationClasses:
    """The classes into which a machine puts the operations of cells; operations of one class take the same.

    >>> OperationClasses.grouped("my-npu", {"slow": "divide", "fast": "add subtract"}).of_operation("add")
    'fast'
    """

    machine: str  # kind of the machine
    of: Mapping[str, str] = field(hash=False)  # operation -> its class

    @classmethod
    def grouped(cls, machine: str, groups: Mapping[str, str]) -> OperationClasses:
        """The classes of a machine, each with its operations, separated by spaces."""
        return cls(
            machine, {operation: name for name, operations in groups.items() for operation in operations.split()}
        )

    def of_operation(self, operation: str) -> str:
        """The class of an operation; `InputError` if the machine has none for it."""
        if operation not in self.of:
            text = f"a {self.machine} has no class for operation {operation!r}, so what it takes is unknown"
            raise InputError(Mistake("cell", text))
        return self.of[operation]

    def value(self, operation: str, values: Mapping[str, T]) -> T:
        """The value of an operation's class among those by class; `InputError` if there is none."""
        name = self.of_operation(operation)
        if name not in values:
            raise InputError(
                Mistake("cell", f"operation {operation!r}: class {name!r} of a {self.machine} has no value")
            )
        return values[name]


_RHYTHM = "fewer steps show the same rhythm"


@record
class PerStep:
    """Bounds on the operations of one step of a job.

    >>> PerStep(37, 37).held
    37
    """

    most: int  # operations of one step, on any core that may run the job
    held: int  # operations of one step in a program, which holds all ways in which the job can run
    packed: int = 1  # how many of its operations take the room of one that is held as an object


@record
class TooLarge:
    """Why jobs are too many operations to simulate.

    >>> TooLarge("step", "takes ...").message("'m'")
    "one step of 'm' takes ..."
    """

    what: str  # what is too large: `step`, `job` or `all`
    sentence: str  # how large it is, and how large it may be; of a step, without whose it is

    def message(self, model: str) -> str:
        """The whole sentence; `model`: how it names the model."""
        return f"one step of {model} {self.sentence}" if self.what == "step" else self.sentence


def way_out(wrong: TooLarge, batch: int, bound: Callable[[int], PerStep]) -> TooLarge:
    """Add to what is too large a smaller batch with which a step is not: a half, a quarter and so on, the largest.

    wrong: what is too large.
    batch: of the job.
    bound: from a batch to bounds on the operations of one step.

    >>> way_out(TooLarge("step", "takes ..."), 40, lambda batch: PerStep(1, 40_000 * batch)).sentence
    'takes ...; with batch 10 it takes up to 400,000'
    """
    for shift in range(1, batch.bit_length() if wrong.what == "step" else 1):
        each = bound(batch >> shift)
        if each.held <= MAX_STEP_OPERATIONS * each.packed:
            return TooLarge("step", f"{wrong.sentence}; with batch {batch >> shift} it takes up to {each.held:,}")
    return wrong


@dataclass(slots=True)
class Tally:
    """A sum of the operations of a scenario's jobs. It takes the jobs in order and says what is too large.

    >>> tally = Tally()
    >>> tally.add(PerStep(100, 100), steps=50)
    >>> tally.add(PerStep(600_000, 600_000), steps=1).sentence
    'takes up to 600,000 operations on this chip, more than 500,000: too many to simulate'
    """

    total: int = 0

    def add(self, each: PerStep, steps: int, count: int = 1, exact: Callable[[], int] | None = None) -> TooLarge | None:
        """Add jobs. Returns what is too large; None if nothing is.

        each: bounds on the operations of one step.
        steps: the most steps that one of the jobs has.
        count: how many jobs there are.
        exact: gives the steps of all jobs together, if not all jobs have the most; called only if it matters.
        """
        most = each.most * steps
        if most > MAX_OPERATIONS:
            text = f"takes up to {most:,} {SIZE_WORDS}, a job may have {MAX_OPERATIONS:,}"
            return TooLarge("job", f"{text}; {_RHYTHM}")
        before, self.total = self.total, self.total + most * count
        if self.total > MAX_OPERATIONS >= before and exact is not None:
            self.total = before + each.most * exact()
        if each.held > MAX_STEP_OPERATIONS * each.packed:
            text = f"takes up to {each.held:,} {SIZE_WORDS}"
            bound = MAX_STEP_OPERATIONS * each.packed
            return TooLarge("step", f"{text}, more than {bound:,}: too many to simulate")
        if before <= MAX_OPERATIONS < self.total:
            text = f"this job and those before it take up to {self.total:,} {SIZE_WORDS}"
            return TooLarge("all", f"{text}, more than {MAX_OPERATIONS:,}: too many to simulate; {_RHYTHM}")
        return None


def remembered_fault(phases: Sequence[Phase]) -> str:
    """Say that the later phases of a job look back at more operations than a thread remembers; empty if they do not."""
    looked_at = {need.phase for each in phases for one in each.body.operations for need in one.needs} - {None}
    sizes = [phases[number].repeat * len(phases[number].body.operations) for number in looked_at if number is not None]
    if sum(sizes) <= MAX_REMEMBERED:
        return ""
    text = f"its later phases look back at {sum(sizes):,} operations, and a thread remembers {MAX_REMEMBERED:,}"
    return f"{text}; {_RHYTHM}"


Phases = tuple[Phase, ...]
#: Phases of a task by kind of core.
Variants = tuple[tuple[int, Phases], ...]


class AnyCore(Protocol):
    """The methods that the core of every target has: its mistakes as (key, sentence) pairs, its refusal of a model."""

    def mistakes(self) -> list[tuple[str, str]]: ...
    def refusal(self, model: Model) -> str | None: ...


C = TypeVar("C", bound=AnyCore)


#: Bounds on the operations of one step, as `lstmsim.machines.target.Target.per_step`.
Bound = Callable[[Sequence[C], Model, int, str, int], PerStep]


@record
class Footprint:
    """The needs of a job on a machine. The fields have the meanings of the fields of `Task`."""

    variants: Variants
    buffers: tuple[tuple[int, tuple[Buffer, ...]], ...]
    cores: tuple[int, ...]
    gang: tuple[tuple[int, ...], ...] = ()
    weight_set: WeightSet | None = None
    moldable: tuple[Moldable, ...] = ()


@record
class Parts(Generic[C]):
    """The functions with which a target makes the parts of a Program."""

    per_step: Bound[C]  # bounds on the operations of one step, as `lstmsim.machines.target.Target.per_step`
    phases: Callable[[Job, C], Phases]  # phases of a job on a core
    buffers: Callable[[C], tuple[Buffer, ...]]  # buffers of a core
    core: Callable[[int, C], Core]  # core of a program, from the number of its kind and its description


def check_cores(cores: Sequence[AnyCore], job: Job) -> None:
    """`InputError` if a job names a core that does not exist, or if no core that it may use can run it."""
    allowed = job.allowed(len(cores))
    unknown = [each for each in allowed if not 0 <= each < len(cores)]
    if unknown:
        text = f"there is no core {unknown[0]}; the chip has {len(cores)} (0 to {len(cores) - 1})"
        raise InputError(Mistake(f"job {job.name}: core", text))
    # of many cores the first one that can run it is enough
    if not job.together(len(cores)) and all(cores[each].refusal(job.model) is not None for each in allowed):
        reason = cores[allowed[0]].refusal(job.model)
        raise InputError(Mistake(f"job {job.name}", f"no core can run it: {reason}"))


@record
class Kinds(Generic[C]):
    """The cores of a chip, and which of them are alike: what one of a thousand equal cores can do is asked once."""

    each: tuple[C, ...]  # the different cores, in the order of their first
    of: tuple[int, ...]  # for each core its kind, its place in `each`

    def able(self, claim: Claim) -> dict[int, C]:
        """The kinds that can run jobs of a claim, with their cores; all kinds, if a job takes several cores at once."""
        model = claim.job.model
        return {kind: core for kind, core in enumerate(self.each) if claim.together or core.refusal(model) is None}

    def allowed(self, claim: Claim, able: Mapping[int, C]) -> list[C]:
        """The different cores that may run jobs of a claim, in the order in which these name them, if they are able."""
        if claim.job.cores is None:
            return list(able.values())
        return [able[kind] for kind in dict.fromkeys(self.of[core] for core in claim.allowed) if kind in able]


def kinds_of(cores: Sequence[C]) -> Kinds[C]:
    """Tell the kinds of cores apart.

    >>> from lstmsim.machines.column.npu import ColumnCore
    >>> kinds_of([ColumnCore(npe=64, ep=4, vp=2)] * 3).of
    (0, 0, 0)
    """
    places: dict[C, int] = {}
    of = tuple([places.setdefault(core, len(places)) for core in cores])
    return Kinds(tuple(places), of)


def _per_step(cores: Sequence[C], claim: Claim, bound: Bound[C], batch: int) -> PerStep:
    """Bounds on the operations of one step of a job, if it has some batch."""
    return bound(cores, claim.job.model, batch, claim.job.split, claim.members)


def check_size(cores: Sequence[Sequence[C]], claims: Claims, bound: Bound[C], *, templates: bool = False) -> None:
    """`InputError` if jobs are too many operations to simulate.

    cores: for each claim the different cores that may and can run its jobs.
    claims: what the jobs claim of the chip.
    bound: bounds on the operations of one step, as `lstmsim.machines.target.Target.per_step`.
    templates: as for `lstmsim.machines.lower`.
    """
    tally = Tally()
    pairs = zip(cores, claims.different, strict=True)
    steps = [_per_step(able, claim, bound, claim.job.batch) for able, claim in pairs]
    for index, (job, claim, _) in enumerate(claims.jobs):
        tally = Tally() if templates else tally
        wrong = tally.add(steps[claim.number], job.steps)
        if wrong is not None:
            wrong = way_out(wrong, job.batch, partial(_per_step, cores[claim.number], claim, bound))
            where = "" if wrong.what == "step" else ".steps"
            raise InputError(Mistake(f"jobs.{index}{where} (job {job.name})", wrong.message(repr(job.model.name))))


def usual_footprint(
    kinds: Kinds[C], able: Mapping[int, C], job: Job, allowed: Sequence[int], parts: Parts[C]
) -> Footprint:
    """The footprint of a job that runs on one core: any core that it is allowed and that is able to run it."""
    variants = tuple([(kind, parts.phases(job, core)) for kind, core in able.items()])
    # in one order, so that jobs which may use the same cores wait in one queue
    where = tuple([each for each in sorted(set(allowed)) if kinds.of[each] in able])
    return Footprint(variants, tuple([(kind, parts.buffers(core)) for kind, core in enumerate(kinds.each)]), where)


def assemble(
    cores: Sequence[C],
    claims: Claims,
    parts: Parts[C],
    footprint: Callable[[Job], Footprint] | None = None,
    machine: Callable[[], tuple[Core, ...]] | None = None,
    *,
    templates: bool = False,
) -> Program:
    """Make the Program of jobs on cores, both in their order.

    cores, claims: the cores of the chip; what the jobs claim of it, none of which it refuses.
    parts: makes the parts of the Program.
    footprint: needs of a job, called once for each distinct job; None: `usual_footprint`.
    machine: gives the cores of the Program, if there are more than the cores of the chip.
    templates: as for `lstmsim.machines.lower`.
    `InputError` if the jobs are too large.
    """
    kinds = kinds_of(cores)
    able = [kinds.able(claim) for claim in claims.different]
    allowed = [kinds.allowed(claim, able[claim.number]) for claim in claims.different]
    check_size(allowed, claims, parts.per_step, templates=templates)
    known: dict[Hashable, Footprint] = {}
    tasks = []
    for job, claim, (rank, from_arrival) in claims.jobs:
        # what `Job.identity` is made of
        key = (claim.number, job.steps, job.frame_interval)
        if key not in known:
            made = (
                footprint(job) if footprint else usual_footprint(kinds, able[claim.number], job, claim.allowed, parts)
            )
            known[key] = made
        each = known[key]
        task = Task(
            name=job.name,
            variants=each.variants,
            buffers=each.buffers,
            cores=each.cores,
            release=job.arrival,
            frame_interval=job.frame_interval,
            key=rank,
            key_from_arrival=from_arrival,
            after=job.after,
            gang=each.gang,
            weight_set=each.weight_set,
            # where weights never move, all cores hold them
            affine=job.affinity and each.weight_set is not None,
            preempts=job.preempts and not each.gang and not each.moldable,
            queue_limit=job.queue_limit,
            patience=job.patience,
            moldable=each.moldable,
        )
        tasks.append(task)
    described = machine() if machine else tuple(map(parts.core, kinds.of, cores))
    return Program(described, tuple(tasks))
