"""One thread of the reference engine: its task, the next operation for each unit, and until when that is held back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from lstmsim.program.program import CAUSES, Buffer, Dependence, Operation, Phase, Task

__all__ = ["Head", "Thread", "stream"]


@dataclass
class Head:
    """The next operation of one stream: issues left, and its place in the task."""

    phase: int
    iteration: int
    index: int
    operation: Operation
    left: int
    since: int = 0


def stream(phases: tuple[Phase, ...], unit: int) -> Iterator[Head]:
    """The operations of one unit in the order in which they issue, iteration by iteration, phase by phase."""
    for number, phase in enumerate(phases):
        mine = [(i, each) for i, each in enumerate(phase.body.operations) if each.unit == unit]
        for iteration in range(phase.repeat):
            for index, operation in mine:
                yield Head(number, iteration, index, operation, operation.count)


@dataclass
class Thread:
    """One context's work: its task, the next operation per unit, and what has happened so far."""

    number: int
    task: Task
    arrived: int
    admitted: int
    phases: tuple[Phase, ...]
    buffers: tuple[Buffer, ...]
    streams: list[Iterator[Head]] = field(default_factory=list)
    heads: list[Head | None] = field(default_factory=list)
    starts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    freed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    finish: int = 0

    @property
    def frames(self) -> int:
        """How many frames the task waits for, from the first on."""
        last = [
            phase.step(iteration, operation.ahead)
            for phase in self.phases
            for operation in phase.body.operations
            for iteration in (0, phase.repeat - 1)
            if operation.frame
        ]
        return 1 + max(last, default=-1)

    def source(self, head: Head, need: Dependence) -> tuple[int, int, int] | None:
        """Key of the operation that `need` points to; None where it holds nothing back."""
        if need.phase is None:
            iteration = head.iteration - need.lag
            return None if iteration < 0 else (head.phase, iteration, need.operation)
        repeat = self.phases[need.phase].repeat
        iteration = repeat - 1 - head.iteration if need.mirrored else head.iteration
        return (need.phase, iteration, need.operation) if 0 <= iteration < repeat else None

    def lacking(self, head: Head) -> str | None:
        """What has not even started yet that `head` needs; None if all its waits have a known end."""
        for need in head.operation.needs:
            key = self.source(head, need)
            if key is not None and key not in self.starts:
                operation = self.phases[key[0]].body.operations[key[2]]
                return f"{operation.label or 'operation'} {key[2]} of phase {key[0]}, iteration {key[1]}"
        buffer = head.operation.takes
        if buffer is not None and self.taken[buffer] - self.buffers[buffer].slots >= len(self.freed[buffer]):
            return f"a free slot of buffer {buffer}"
        return None

    def until(self, head: Head) -> tuple[int, ...]:
        """Per cause, the cycle from which it no longer holds `head` back; only when nothing is lacking."""
        until = dict.fromkeys(CAUSES, 0)
        for need in head.operation.needs:
            key = self.source(head, need)
            if key is not None:
                until[need.cause] = max(until[need.cause], self.starts[key] + need.delay)
        if head.operation.frame:
            step = self.phases[head.phase].step(head.iteration, head.operation.ahead)
            until["input"] = max(until["input"], self.arrived + step * self.task.frame_interval)
        buffer = head.operation.takes
        if buffer is not None and self.taken[buffer] >= self.buffers[buffer].slots:
            cause = self.buffers[buffer].cause
            until[cause] = max(until[cause], self.freed[buffer][self.taken[buffer] - self.buffers[buffer].slots])
        return tuple(until.values())

    def ready(self, unit: int, now: int) -> int | None:
        """The cycle from which the next operation on `unit` could start; None if not by `now`."""
        head = self.heads[unit]
        if head is None:
            return None
        if head.left == head.operation.count:
            if self.lacking(head) is not None:
                return None
            head.since = max(self.admitted, *self.until(head))
        return head.since if head.since <= now else None
