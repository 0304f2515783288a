"""The clock of the reference engine: SimPy's events in the order of a cycle, and units that sleep and wake."""

from __future__ import annotations

from collections.abc import Generator

import simpy
from simpy.events import EventPriority

from lstmsim.engines.reference.thread import Seat, Thread
from lstmsim.program.program import Program
from lstmsim.program.trace import TraceBuilder

# after simpy's URGENT (0) and NORMAL (1)
ADMISSION, CHOICE = EventPriority(2), EventPriority(3)

Process = Generator[simpy.Event, None, None]


class Clockwork:
    """The state that all processes of a run share: time, the trace, the seats of threads, and bells that wake units."""

    def __init__(self, program: Program) -> None:
        self.env = simpy.Environment()
        self.program = program
        self.trace = TraceBuilder(len(program.tasks))
        self.contexts: list[list[Seat | None]] = [[None] * core.contexts for core in program.cores]
        #: For each way of a unit, as (core, unit, way): the seats of threads that have operations for it, by context.
        self.queues: dict[tuple[int, int, int], dict[int, Seat]] = {
            (index, number, way): {}
            for index, core in enumerate(program.cores)
            for number, unit in enumerate(core.units)
            for way in range(unit.ways)
        }
        #: For each core: its keys in `queues`, and what they hold.
        self.ways = [
            [(key, queue) for key, queue in self.queues.items() if key[0] == index]
            for index in range(len(program.cores))
        ]
        #: For each way of a unit that sleeps, as (core, unit, way).
        self.bells: dict[tuple[int, int, int], simpy.Event] = {}
        self.last_cycle = 0

    def phase_of_cycle(self, priority: EventPriority) -> simpy.Event:
        """An event of this same cycle that comes after all events of a smaller priority number."""
        return self.at_phase(self.env.event(), priority)

    def at_phase(self, event: simpy.Event, priority: EventPriority, delay: int = 0) -> simpy.Event:
        """Let an event come about so many cycles later, after all events of a smaller priority number."""
        event._ok, event._value = True, None
        self.env.schedule(event, priority=priority, delay=delay)
        return event

    def ring(self, core: int) -> None:
        """Wake the sleeping units of a core, so that they choose in this cycle: something has changed.

        Ways without threads that have operations for them have nothing to choose, and sleep on.
        """
        for key, queue in self.ways[core]:
            if queue and key in self.bells:
                self.at_phase(self.bells.pop(key), CHOICE)

    def ring_all(self, thread: Thread) -> None:
        """Wake the units of a thread's cores."""
        for core, _ in thread.seats:
            self.ring(core)

    def ring_at(self, thread: Thread, cycle: int) -> None:
        """Wake the units of a thread's cores at a later cycle."""
        timer = self.env.timeout(cycle - self.now)
        timer.callbacks.append(lambda _: self.ring_all(thread))

    def ring_everywhere(self, cycle: int) -> None:
        """Wake the units of all cores at a later cycle."""
        timer = self.env.timeout(cycle - self.now)
        timer.callbacks.append(lambda _: self.ring_each())

    def ring_each(self) -> None:
        """Wake the units of all cores."""
        for core in range(len(self.program.cores)):
            self.ring(core)

    @property
    def now(self) -> int:
        return int(self.env.now)
