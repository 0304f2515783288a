"""The Program: a timed event graph with shared units and admission, and nothing else.

Clock rules, which every engine states and keeps on its own:

1. Time is a whole number of cycles.
2. At each cycle first everything due takes effect (results, freed buffer slots, finished tasks), then tasks are
   admitted, then every free unit chooses once.
3. Within a thread the operations of one unit issue in the body's order (an in-order stream per unit); between
   units only dependences order them. What is issued at t takes effect at t + 1 at the earliest.
4. A choice depends on the candidates, the policy's own state and numbers of the program: never on creation,
   storage or wake-up order.
5. If nothing can ever start again while tasks are unfinished, that is a `DeadlockError`.

An `Operation` may stand for `count` issues in a row, each `cycles` long, each a choice of its own (so a
fine-grained unit may put other threads' work between them). Its dependences hold back the first issue; others
depend on its last one.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CAUSES", "Body", "Buffer", "Core", "Dependence", "Operation", "Phase", "Program", "Task", "Unit"]

#: Why a thread waits, strongest first: a thread that lacks several things waits for the first of them.
CAUSES = ("dispatch", "hazard", "input", "backpressure")


@dataclass(frozen=True)
class Unit:
    """Something that can start one operation at a time, and how it chooses among the threads of its core.

    `policy` is a key of `lstmsim.program.policy.POLICIES`; a change of the active thread takes `switch_cycles`.
    `shown`: whether timelines have a row for it.
    """

    name: str
    policy: str
    switch_cycles: int = 0
    shown: bool = True


@dataclass(frozen=True)
class Dependence:
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


@dataclass(frozen=True)
class Operation:
    """`count` issues of `cycles` each on unit number `unit` of the core.

    `frame` True: the first issue also waits (cause `input`) for the task's frame of its step; that is `ahead` steps
    after the iteration's own (a vector loaded for the next step). `takes` / `frees`:
    index of a task buffer of which a slot is taken with the first issue / is free again at the end of the last.
    `result_cycles`: from the start of the last issue until its results are there; the task finishes when all
    are. `work`: useful multiply-accumulates of one issue. `label` and `place` name it for people (`place`:
    layer, direction, row block, first column group).
    """

    unit: int
    cycles: int = 1
    count: int = 1
    needs: tuple[Dependence, ...] = ()
    frame: bool = False
    takes: int | None = None
    frees: int | None = None
    result_cycles: int = 1
    work: int = 0
    label: str = ""
    place: tuple[int, ...] = ()
    ahead: int = 0


@dataclass(frozen=True)
class Body:
    """The operations of one iteration (one time step), in issue order."""

    operations: tuple[Operation, ...]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Buffer:
    """Slots per thread: the k-th take waits (cause `backpressure`) for the (k - slots)-th free."""

    name: str
    slots: int
    cause: str = "backpressure"


@dataclass(frozen=True)
class Task:
    """What one job asks of the machine: per kind of core a sequence of phases, and when it may start.

    `variants` maps a core's `kind` to its phases (as pairs); `buffers` likewise. `cores` are the cores it may
    use. It arrives at cycle `release` or, if `after` names an earlier task, `release` cycles after that has finished.
    The frame of step t is there from its arrival + `t * frame_interval`. Of the tasks that wait the one with the
    smallest `key` (plus its arrival, if `key_from_arrival`) is admitted first, of equal ones the one that arrived
    first, of these the one that stands first.
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

    def phases(self, kind: int) -> tuple[Phase, ...]:
        """The phases for a core of that kind."""
        return dict(self.variants)[kind]

    def slots(self, kind: int) -> tuple[Buffer, ...]:
        """The buffers for a core of that kind."""
        return dict(self.buffers).get(kind, ())


@dataclass(frozen=True)
class Core:
    """Units and a number of thread contexts. Cores of the same `kind` run the same variant of a task.

    `accounted` is the unit whose cycles the accounts name (the PE array).
    """

    kind: int
    units: tuple[Unit, ...]
    contexts: int = 1
    accounted: int = 0


@dataclass(frozen=True)
class Program:
    """Cores and the tasks they are to run, in the order of admission among equals."""

    cores: tuple[Core, ...]
    tasks: tuple[Task, ...]
