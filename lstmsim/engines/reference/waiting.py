"""Tasks that wait, on the reference engine."""

from __future__ import annotations

from dataclasses import dataclass

from lstmsim.program.program import Task

#: A boundary between iterations, as (phase, iteration): everything before this iteration is done.
Boundary = tuple[int, int]
#: A place where a task may run: one core for each of the task's threads, the task's first core first.
Place = tuple[int, ...]


@dataclass(frozen=True)
class Waiting:
    """A task that waits since the cycle `arrived`.

    paused_at: boundary from which a paused task goes on; rounds: in a pool that goes on step by step, how many it had.
    """

    rank: int
    arrived: int
    number: int
    task: Task
    places: tuple[Place, ...]
    paused_at: Boundary | None = None
    rounds: int = 0

    @property
    def turn(self) -> tuple[int, int, int]:
        """The sorting key for the order in which the dispatcher looks at waiting tasks."""
        return self.rank, self.arrived, self.number

    @property
    def begun(self) -> bool:
        """Whether the task has run already."""
        return self.paused_at is not None or self.rounds > 0

    def reneges(self, now: int) -> bool:
        """Whether the task has waited longer than its patience. A task that has run once waits for ever."""
        patience = self.task.patience
        return not self.begun and patience is not None and now - self.arrived > patience
