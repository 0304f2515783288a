"""The Program: a timed event graph with shared units and admission, and nothing else.

docs/program_format.md has the rules that every engine keeps: of the clock, of barriers, and of tasks that come, are
admitted, spread, pause and are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.errors import ProgramError
from lstmsim.base.records import record
from lstmsim.program.flat import FlatProgram
from lstmsim.program.operations import Dependence, Name, Operation, Rows, operations_of, rows_of

__all__ = [
    "MAX_SPREAD",
    "Body",
    "Buffer",
    "Core",
    "Dependence",
    "Moldable",
    "Operation",
    "Phase",
    "Program",
    "TabledProgram",
    "Task",
    "Unit",
    "Variant",
    "WeightSet",
]


class Body:
    """The operations of one iteration (one time step), in issue order.

    A body is made of operations or of rows, and gives both. It makes what it was not made of when somebody asks for it,
    and keeps it. Two bodies are equal if their operations are.
    """

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self.__dict__["operations"] = operations

    @classmethod
    def of_rows(cls, rows: Rows, names: Sequence[Name]) -> Body:
        """A body from its rows, and of each row the operation's label and place."""
        body = cls.__new__(cls)
        body.__dict__.update(rows=rows, names=names)
        return body

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a body does not change, and so does not its {name}")

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """The operations, in issue order."""
        return operations_of(self.rows, self.names)

    @cached_property
    def rows(self) -> Rows:
        """Its rows of the flat form."""
        return rows_of(self.operations)

    @cached_property
    def names(self) -> Sequence[Name]:
        """Label and place of each operation."""
        return [(each.label, each.place) for each in self.operations]

    @cached_property
    def layers(self) -> NDArray[np.int64]:
        """The layer of each operation, shape (operations,); -1 for operations of none."""
        return np.array([place[0] if place else -1 for _, place in self.names], dtype=np.int64)

    @property
    def size(self) -> int:
        """How many operations it has."""
        return self.rows.size if "rows" in self.__dict__ else len(self.operations)

    def __eq__(self, other: object) -> bool:
        return self.operations == other.operations if isinstance(other, Body) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.operations)

    def __repr__(self) -> str:
        return f"Body(operations={self.operations!r})"


#: Most cores of a moldable task: a row of the trace has a bit for each.
MAX_SPREAD = 60


@record
class Unit:
    """A unit of a core, which can start one operation at a time.

    name: its name, as `lstmsim.program.unit_names` allows it.
    policy: how it chooses among the threads of its core, a key of `lstmsim.program.policy.POLICIES`.
    switch_cycles: cycles of a change of the active thread.
    shown: whether timelines have a row for the unit.
    pipeline: the name for people of the way of its results until they are there; empty: the name of the unit.
    instances: how many equal units stand behind the name. Thread n of the core uses number `n mod instances` of them.
        Each chooses for itself among its own threads.
    """

    name: str
    policy: str
    switch_cycles: int = 0
    shown: bool = True
    pipeline: str = ""
    instances: int = 1


@record
class Phase:
    """A body that repeats.

    body: operations of one iteration.
    repeat: how many iterations.
    mirrored: whether the steps descend from iteration to iteration (a backward pass); else they ascend.
    first_step: time step of iteration 0; None: the steps are 0 to `repeat - 1`.
    extra_cycles: columns of numbers, one number for each iteration. An operation with `extra` takes so many cycles
        more: its issue takes the unit for longer, and its results, the slot that it frees and whatever depends on it
        come so much later, as if it had started later. So one body serves many tasks whose lengths differ.
    first_barrier, barriers: barrier g of the body is barrier `first_barrier + iteration * barriers + g` of the program.
    """

    body: Body
    repeat: int
    mirrored: bool = False
    first_step: int | None = None
    extra_cycles: tuple[tuple[int, ...], ...] = ()
    first_barrier: int = 0
    barriers: int = 0

    def barrier(self, iteration: int, number: int) -> int:
        """The barrier of the program that barrier `number` of the body is in an iteration."""
        return self.first_barrier + iteration * self.barriers + number

    def step(self, iteration: int, ahead: int = 0) -> int:
        """The time step of an iteration, or the step that is `ahead` steps further on in the order of the pass."""
        if self.mirrored:
            return (self.repeat - 1 if self.first_step is None else self.first_step) - iteration - ahead
        return (self.first_step or 0) + iteration + ahead


@record
class Buffer:
    """A buffer with slots for each thread. The k-th take waits for the (k - slots)-th free.

    name: its name.
    slots: how many slots each thread has.
    cause: the name of such a wait.
    """

    name: str
    slots: int
    cause: str = "backpressure"


@record
class WeightSet:
    """The resident weights (a weight set) that a task needs in the memories of its cores.

    If all cores of the task hold the weight set already, the loading phases of the task are left out, and nothing waits
    for them. Otherwise the task brings the weight set to those of its cores that do not hold it. Until all results of
    its loading phases are there, no other task that needs the weight set is admitted to these cores.

    key: number of the weight set; None: room that the task alone needs while it runs. It then loads nothing, prefers no
        place for it, and takes `size` once on each of its cores that has a capacity.
    size: in the unit of `Core.capacity`.
    loading: how many of the task's first phases load the weight set; on some kinds of cores these phases may be empty.
    """

    key: int | None
    size: int
    loading: int = 1


@record
class Moldable:
    """How a task runs on several of its cores at once. All of its cores are of one kind, so any of them may be taken.

    members: how many cores, at least 2; the task takes one thread on each.
    phases, buffers: phases and buffers of the task on so many cores.
    """

    members: int
    phases: tuple[Phase, ...]
    buffers: tuple[Buffer, ...] = ()


#: When a pool makes batches: when a place is free, when a window closes, anew for each round of its tasks.
POOL_POLICIES = ("dynamic", "window", "continuous")


@record
class Pool:
    """Where tasks wait for company. docs/batching.md has the rules.

    most: the most tasks of a batch.
    wait: how many cycles the oldest task may be kept waiting for company.
    policy: when batches are made, one of `POOL_POLICIES`. `continuous`: what a task runs in a batch is a round; it
        waits again on its core until it has had `length` of them.
    ragged: whether operations of an inference are left out in steps beyond the `length` of its task, which finishes
        with the last of its own results. Else all tasks of a batch finish together.
    """

    most: int
    wait: int = 0
    policy: str = "dynamic"
    ragged: bool = False


#: A variant of a task: kind of its core (0 for several cores, all of one kind), how many cores it takes,
#: phases, buffers.
Variant = tuple[int, int, tuple[Phase, ...], tuple[Buffer, ...]]


@record
class Task:
    """The demand of one job on the machine. docs/program_format.md has the rules of admission.

    name: name of the job.
    variants: (kind of core, phases on such a core).
    buffers: (kind of core, buffers on such a core).
    cores: cores that the task may use. The kind that counts is the kind of this core, not of its gang.
    release: cycle of its arrival; with `after`, cycles from the end of that task to the arrival.
    frame_interval: cycles; the frame of step t is there from the arrival + `t * frame_interval`.
    key: its rank; waiting tasks with a smaller rank are looked at first.
    key_from_arrival: whether its arrival is added to its rank.
    after: number of an earlier task; this task arrives `release` cycles after that has finished or was rejected.
    gang: with the i-th of its cores the task also takes a thread of each core in `gang[i]`. A core may stand
        there again: the task then takes a second thread of it.
    weight_set: what must lie in the memories of its cores.
    affine: whether it prefers a place that holds its weight set.
    preempts: whether it asks a running task of a larger rank to pause.
    queue_limit, patience: when it is rejected; None: never.
    moldable: how it runs on several of its cores at once; empty if it does not.
    behind: a barrier; the task arrives `release` cycles after it has opened.
    starts, ends: barriers at which the task arrives when it is admitted, and when it finishes.
    until: a barrier; the task does not finish before it has opened.
    pool: number of the pool in which it waits; None: it runs alone. All tasks of a pool have equal cores and gangs.
    sizes: its variants in a batch of 2, 3, ..., as many as there can be. Buffers are those of the task alone.
    session: number of the session whose states the task reads and leaves; None: it belongs to none.
    move_cycles: for so many cycles after its admission the task issues nothing, if the task of its session that was
        admitted last has another first core.
    length: its steps. A batch runs the variants of its longest member, of equal ones that whose turn comes first, and
        rounds those of the first in turn.
    """

    name: str
    variants: tuple[tuple[int, tuple[Phase, ...]], ...]
    buffers: tuple[tuple[int, tuple[Buffer, ...]], ...]
    cores: tuple[int, ...]
    release: int = 0
    frame_interval: int = 0
    key: int = 0
    key_from_arrival: bool = False
    after: int | None = None
    gang: tuple[tuple[int, ...], ...] = ()
    weight_set: WeightSet | None = None
    affine: bool = False
    preempts: bool = False
    queue_limit: int | None = None
    patience: int | None = None
    moldable: tuple[Moldable, ...] = ()
    behind: int | None = None
    starts: int | None = None
    ends: int | None = None
    until: int | None = None
    pool: int | None = None
    sizes: tuple[tuple[tuple[int, tuple[Phase, ...]], ...], ...] = ()
    length: int = 0
    session: int | None = None
    move_cycles: int = 0

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The cores of each place where the task may run. The first core of a place is one of `cores`."""
        gang = self.gang or ((),) * len(self.cores)
        return tuple((core, *others) for core, others in zip(self.cores, gang, strict=True))

    def in_rounds(self, pools: Sequence[Pool]) -> bool:
        """Whether the task waits again between two steps, among these pools of its program."""
        return self.pool is not None and pools[self.pool].policy == "continuous"

    @property
    def all_variants(self) -> tuple[Variant, ...]:
        """All variants of the task: one for each of `variants`, then those of `sizes`, then those of `moldable`."""
        members = 1 + max(map(len, self.gang)) if self.gang else 1
        buffers = dict(self.buffers)
        single = [(kind, members, phases, buffers.get(kind, ())) for kind, phases in self.variants]
        single += [
            (kind, members, phases, buffers.get(kind, ())) for variants in self.sizes for kind, phases in variants
        ]
        return (*single, *[(0, each.members, each.phases, each.buffers) for each in self.moldable])

    def phases(self, kind: int, members: int = 1, size: int = 1) -> tuple[Phase, ...]:
        """The phases for a core of this kind, for `members` cores of a moldable task, or in a batch of `size`."""
        if size > 1 + len(self.sizes):
            raise ProgramError("a batch is larger than its tasks have variants for")
        if size > 1:
            return dict(self.sizes[size - 2])[kind]
        for each in self.moldable:
            if each.members == members:
                return each.phases
        return dict(self.variants)[kind]

    def slots(self, kind: int, members: int = 1) -> tuple[Buffer, ...]:
        """The buffers for a core of this kind, or for `members` cores of a moldable task."""
        for each in self.moldable:
            if each.members == members:
                return each.buffers
        return dict(self.buffers).get(kind, ())


@record
class Core:
    """A core: units and thread contexts.

    To make room in the memory of a core, weight sets that no running task uses are removed, the least recently used
    first. The admission and the finish of a task use its weight set. In one cycle the tasks that finish come first, in
    the order of cores and threads.

    kind: cores of one kind run the same variant of a task.
    units: the units.
    contexts: how many threads the core has.
    accounted: number of the unit whose cycles the accounts name (the PE array). If it has several instances, the
        cycles of each are named, by its own threads, and counted together. None: no cycles of this core are named.
    capacity: size of all weight sets together that the memory of the core holds; None: any amount.
    held: keys of the weight sets in the memory at the start, the least recently used first.
    shared: whether the core (a memory, a link) has threads for the tasks of all other cores; it does not count when the
        least occupied place is chosen.
    mirrors: whether the threads of a shared core stand for the threads of all cores that are not shared, in their
        order. The k-th member of a task that is on this core takes the thread that stands for the thread of the k-th
        member that is on a core of its own.
    """

    kind: int
    units: tuple[Unit, ...]
    contexts: int = 1
    accounted: int | None = 0
    capacity: int | None = None
    held: tuple[int, ...] = ()
    shared: bool = False
    mirrors: bool = False


@record
class Program:
    """A program.

    cores: the cores.
    tasks: the tasks; of equal tasks the earlier one is admitted first.
    barriers: of each barrier, how many must arrive there before it opens, at least 1.
    pools: the pools in which tasks wait for company.
    """

    cores: tuple[Core, ...]
    tasks: tuple[Task, ...]
    barriers: tuple[int, ...] = ()
    pools: tuple[Pool, ...] = ()


class TabledProgram(Program):
    """A program in its flat form, made by `lstmsim.program.unflatten.tabled`. An engine runs the tables as they are.

    whole: makes the program of tables and names, when cores or tasks are asked for.
    """

    def __init__(self, flat: FlatProgram, names: Any, whole: Callable[[FlatProgram, Any], Program]) -> None:
        # a frozen record takes no assignments; these are not among its fields
        self.__dict__.update(flat=flat, names=names, whole=whole)

    flat: FlatProgram
    names: Any
    whole: Callable[[FlatProgram, Any], Program]

    @cached_property
    def _whole(self) -> Program:
        return self.whole(self.flat, self.names)

    @property
    def cores(self) -> tuple[Core, ...]:
        """The cores."""
        return self._whole.cores

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, with all their operations."""
        return self._whole.tasks

    @property
    def barriers(self) -> tuple[int, ...]:
        """The barriers."""
        return self._whole.barriers

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The pools."""
        return self._whole.pools

    def __eq__(self, other: object) -> bool:
        return self._whole == (other._whole if isinstance(other, TabledProgram) else other)

    __hash__ = None  # type: ignore[assignment]
