"""The Program: a timed event graph with shared units and admission, and nothing else.

Clock rules, which every engine states and keeps on its own:

1. Time is a whole number of cycles.
2. At each cycle first everything due takes effect (results, freed buffer slots, finished and paused tasks), then tasks
   are admitted (`Task`), then every free unit chooses once.
3. Within a thread the operations of one unit issue in the body's order (an in-order stream per unit); between
   units only dependences order them. What is issued at t takes effect at t + 1 at the earliest.
4. A choice depends on the candidates, the policy's own state and numbers of the program: never on creation,
   storage or wake-up order.
5. If nothing can ever start again while tasks are unfinished, that is a `DeadlockError`.

An `Operation` may stand for `count` issues in a row, each `cycles` long, each a choice of its own (so a
fine-grained unit may put other threads' work between them). Its dependences hold back the first issue; others
depend on its last one. A program has hundreds of thousands of operations and dependences, so these two are named
tuples: they are made in a quarter of the time that a frozen dataclass takes.

A task may take threads of several cores at once (`Task.partners`): a model spread over cores, or a core with a memory
that others share, which is a core of its own. Its operations then say on which of its cores they run (`member`). A
task with `wide` takes all free ones of its cores if nobody else waits for them, and one otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

from lstmsim.records import record

__all__ = [
    *("MAX_SPREAD", "Body", "Buffer", "Content", "Core", "Dependence", "Operation", "Phase", "Program", "Task"),
    *("Unit", "Wide"),
]

#: Most cores of a task with `wide`: a row of the trace has a bit for each.
MAX_SPREAD = 60


@record
class Unit:
    """Something that can start one operation at a time, and how it chooses among the threads of its core.

    `policy` is a key of `lstmsim.program.policy.POLICIES`; a change of the active thread takes `switch_cycles`.
    `shown`: whether timelines have a row for it. `pipeline`: what people call the way of its results until they are
    there; empty: as the unit.
    """

    name: str
    policy: str
    switch_cycles: int = 0
    shown: bool = True
    pipeline: str = ""


class Dependence(NamedTuple):
    """`start >= (start of the last issue of operation) + delay`, with `delay >= 1` cycles.

    `phase` None: the same body, `lag` iterations earlier (no constraint in the first `lag` iterations; with
    lag 0 the operation comes earlier in the body). Otherwise `operation` belongs to that earlier phase of the task,
    at the same iteration or, if `mirrored`, at its `repeat - 1 - iteration`; no constraint where that phase has no such
    iteration. So a mirrored need of iteration 0 is one of the last iteration of the earlier phase.
    """

    operation: int
    delay: int
    cause: str = "hazard"
    lag: int = 0
    phase: int | None = None
    mirrored: bool = False


class Operation(NamedTuple):
    """`count` issues of `cycles` each on unit number `unit` of core number `member` of the task's cores.

    `frame` True: the first issue also waits (cause `input`) for the task's frame of its step; that is `ahead` steps
    after the iteration's own (a vector loaded for the next step). `takes` / `frees`:
    index of a task buffer of which a slot is taken with the first issue / is free again at the end of the last.
    `result_cycles`: from the start of the last issue until its results are there; the task finishes when all
    are. `work`: useful multiply-accumulates of one issue. `label` and `place` name it for people (`place`:
    layer, direction, row block, first column group).
    """

    unit: int
    cycles: int = 1
    count: int = 1  # type: ignore[assignment]  # in place of the method of tuples
    needs: tuple[Dependence, ...] = ()
    frame: bool = False
    takes: int | None = None
    frees: int | None = None
    result_cycles: int = 1
    work: int = 0
    label: str = ""
    place: tuple[int, ...] = ()
    ahead: int = 0
    member: int = 0


@record
class Body:
    """The operations of one iteration (one time step), in issue order."""

    operations: tuple[Operation, ...]


@record
class Phase:
    """A body and how often it repeats. Iteration 0 is step `first_step`, those after it are the steps after it or, if
    `mirrored` (a backward pass), before it. Left out, the steps are 0 to `repeat - 1`.

    >>> [Phase(Body(()), 3, mirrored=True).step(i) for i in range(3)], Phase(Body(()), 1, first_step=5).step(0, 1)
    ([2, 1, 0], 6)
    """

    body: Body
    repeat: int
    mirrored: bool = False
    first_step: int | None = None

    def step(self, iteration: int, ahead: int = 0) -> int:
        """The time step of an iteration, or of what is `ahead` steps further on in the order of the pass."""
        if self.mirrored:
            return (self.repeat - 1 if self.first_step is None else self.first_step) - iteration - ahead
        return (self.first_step or 0) + iteration + ahead


@record
class Buffer:
    """Slots per thread: the k-th take waits (cause `backpressure`) for the (k - slots)-th free."""

    name: str
    slots: int
    cause: str = "backpressure"


@record
class Content:
    """What must lie in a core's memory for a task (weights), named by a number; `size` in the unit of `Core.capacity`.

    Where all cores of the task hold it already, its first `loading` phases are left out, and nothing waits for them. A
    task that has to load it brings it to those of its cores that do not hold it; until all results of its `loading`
    phases are there, no other task that needs it is admitted to those. On some kinds of cores these may be empty.
    """

    key: int
    size: int
    loading: int = 1


@record
class Wide:
    """How a task runs that takes a thread on each of `members` (at least 2) of its cores: its phases and buffers.

    Which of its cores these are does not matter: all of them are of one kind.
    """

    members: int
    phases: tuple[Phase, ...]
    buffers: tuple[Buffer, ...] = ()


@record
class Task:
    """What one job asks of the machine: per kind of core a sequence of phases, and when it may start.

    `variants` maps a core's `kind` to its phases (as pairs); `buffers` likewise. `cores` are the cores it may use; with
    the i-th of them it also takes a thread of each of `partners[i]` (a core may stand there again: a second thread);
    the kind that counts is that of the first.

    It arrives at cycle `release` or, if `after` names an earlier task, `release` cycles after that has finished or has
    been turned away. The frame of step t is there from its arrival + `t * frame_interval`.

    **Coming.** Of the tasks that arrive in a cycle, those that come after no other begin to wait first, then those that
    come after others, both in the order of the program. Who comes at once (`release` 0) after one that found its queue
    full in this very cycle, begins to wait when all these have been admitted or not; then tasks are admitted again.

    **Admission.** Its rank is `key` (plus its arrival, if `key_from_arrival`). Waiting tasks are looked at in the order
    of (rank, arrival, position); those that were paused wait again with the arrival that they had. A task takes, among
    the places (a core with its partners) where every core has a free thread and room for its `content`, one that holds
    the content if `affine`, then the one with the fewest occupied threads on its cores, then the one of the lowest
    cores; there the lowest free threads. A task that finds none keeps those behind it off all cores that it could use
    and that are not `shared`: they neither take threads there (which matters only if some task needs more than a free
    thread) nor ask for one.

    **Spreading.** A task with `wide` that has found a place looks whether another task waits at that moment (new or
    paused, looked at already in this cycle or not) that could use one of its cores: one of the other's places has it.
    If not, it takes, in place of that one thread, the lowest free thread on each of the first m of its `cores` that
    have one, in the order of `cores`: m is the largest number for which there is a `wide` and as many cores have a
    free thread; if that is none, it takes its place as others do. It keeps its threads until it finishes.

    **Turned away.** `queue_limit`: in the cycle in which it comes, before anyone is admitted, if of the tasks that wait
    and may use the same places as many as there are free threads on the first cores of these, and `queue_limit` more,
    stand before it. Tasks that were paused do not count. `patience`: in the cycle that comes so many and one after its
    arrival, if it still waits then; before those that come are counted, and before anyone is admitted. So a place that
    is there just so many cycles after its arrival is still taken. A task that has been admitted has none any more.

    **Preemption.** A task that `preempts` and finds no place asks for a thread of a running task of a larger rank, in
    every cycle again: once, in its turn, when nobody comes any more in that cycle. It looks at the threads of its cores
    (those that stand first in a place) that nobody before it keeps. If one of these is about to pause already, for
    whomever, it asks nobody. Else, of the tasks of a larger rank that were not asked yet, that with the largest rank,
    of these the one admitted (or resumed) last, of these the one on the highest core and thread is asked to pause: each
    of its streams goes on to the first boundary of iterations that none of them has passed, and when all that its
    operations bring about has come about (results, and delays that others wait for), at the earliest in the next cycle,
    it is paused: its thread is free, and it waits for one of the same core. It goes on with that iteration; its
    buffers are empty and needs of earlier iterations hold nothing back. Where that boundary is its end, it just
    finishes, and is not about to pause: so another one may be asked in the next cycle. Tasks with partners, content or
    `wide` neither preempt nor pause.
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
    partners: tuple[tuple[int, ...], ...] = ()
    content: Content | None = None
    affine: bool = False
    preempts: bool = False
    queue_limit: int | None = None
    patience: int | None = None
    wide: tuple[Wide, ...] = ()

    @property
    def spreads(self) -> bool:
        """Whether it takes several of its cores at once if nobody else waits for them."""
        return bool(self.wide)

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The cores of each place where it may run, the first of each being one of `cores`.

        >>> Task("t", (), (), (0, 1), partners=((2,), (2,))).places
        ((0, 2), (1, 2))
        """
        partners = self.partners or ((),) * len(self.cores)
        return tuple((core, *others) for core, others in zip(self.cores, partners, strict=True))

    def phases(self, kind: int, members: int = 1) -> tuple[Phase, ...]:
        """The phases for a core of that kind or, of a task with `wide`, for so many cores."""
        for each in self.wide:
            if each.members == members:
                return each.phases
        return dict(self.variants)[kind]

    def slots(self, kind: int, members: int = 1) -> tuple[Buffer, ...]:
        """The buffers for a core of that kind or, of a task with `wide`, for so many cores."""
        for each in self.wide:
            if each.members == members:
                return each.buffers
        return dict(self.buffers).get(kind, ())


@record
class Core:
    """Units and a number of thread contexts. Cores of the same `kind` run the same variant of a task.

    `accounted` is the unit whose cycles the accounts name (the PE array). `capacity`: how much content its memory holds
    (None: it does not matter); `held`: the keys of what is there at the start, the least recently used first. To make
    room, what no running task uses goes, the least recently used first; used is what a task needed that was admitted or
    finished (in one cycle: first those that finish, in the order of cores and threads). A `shared` core (a memory, a
    link) has threads for the tasks of all others, and is not looked at to find the least occupied place.
    """

    kind: int
    units: tuple[Unit, ...]
    contexts: int = 1
    accounted: int = 0
    capacity: int | None = None
    held: tuple[int, ...] = ()
    shared: bool = False


@record
class Program:
    """Cores and the tasks they are to run, in the order of admission among equals."""

    cores: tuple[Core, ...]
    tasks: tuple[Task, ...]
