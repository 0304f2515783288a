"""The dispatcher of the reference engine: tasks come, are admitted or rejected, pause, and leave."""

from __future__ import annotations

from itertools import accumulate

from lstmsim.engines.reference.admission import (
    Arrivals,
    Memory,
    Place,
    Waiting,
    asked_to_pause,
    best_place,
    follows,
    spread_over,
    too_many_wait,
)
from lstmsim.engines.reference.thread import ADMISSION, Process, Seat, Thread, stream
from lstmsim.program.program import Program


class Dispatcher(Arrivals):
    """Tasks from their arrival to their end. What happens while they run is in `lstmsim.engines.reference.run`."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        contents = [task.content for task in program.tasks if task.content is not None]
        sizes = {content.key: content.size for content in contents if content.key is not None}
        self.memories = [Memory(core, sizes) for core in program.cores]
        self.left: list[Thread] = []
        self.waiting: list[Waiting] = []
        self.admitted: dict[int, int] = {}
        self.paused: dict[int, tuple[int, int, int]] = {}
        self.env.process(self.dispatcher())

    def dispatcher(self) -> Process:
        """Hand waiting tasks to free contexts, once a cycle and after all effects."""
        while True:
            yield self.knocked
            yield self.phase_of_cycle(ADMISSION)
            for thread in sorted(self.left, key=lambda thread: thread.seats[0]):
                for core in dict.fromkeys(core for core, _ in thread.seats):
                    self.memories[core].leave(thread.task.content)
            self.left = []
            # those that renege leave before newcomers are counted
            for each in [each for each in self.waiting if each.reneges(self.now)]:
                self.waiting.remove(each)
                self.reject(each)
            self.let_in()
            self.admit()
            while self.newcomers:  # they follow a task that was rejected, or admissions, in this cycle
                self.let_in()
                self.admit()
            # all knocks of this cycle have been answered
            self.knocked = self.env.event()

    def let_in(self) -> None:
        """Let newcomers begin to wait, or reject them. Tasks that follow other tasks come last."""
        tasks = self.program.tasks
        came, self.newcomers = self.newcomers, []
        for number in sorted(came, key=lambda number: (follows(tasks[number]), number)):
            task = tasks[number]
            rank = task.key + (self.now if task.key_from_arrival else 0)
            each = Waiting(rank, self.now, number, task, task.places)
            if too_many_wait(each, self.waiting, self.contexts):
                self.reject(each)
            else:
                self.waiting.append(each)
                if task.patience is not None:
                    self.knock_in(task.patience + 1)

    def admit(self) -> None:
        """Give places to waiting tasks, in order.

        A task without a place keeps its cores from the tasks behind it. If it preempts and no more task comes in this
        cycle, it asks a running thread to pause.
        """
        kept: set[int] = set()
        asking = not self.newcomers
        for each in sorted(self.waiting, key=lambda each: each.turn):
            place = best_place(each, self.contexts, self.memories, kept)
            if place is None:
                victim = asked_to_pause(each, self.contexts, kept) if asking and each.task.preempts else None
                if victim is not None:
                    self.stop(victim)
                    self.knock_in(1)  # the victim may just finish, and another thread may have to be asked
                cores = {core for place in each.places for core in place}
                kept.update(core for core in cores if not self.program.cores[core].shared)
                continue
            self.waiting.remove(each)
            self.place(each, spread_over(each, self.waiting, self.contexts) or place)

    def reject(self, each: Waiting) -> None:
        """Let a task leave without having run."""
        self.trace.task(each.number, core=-1, context=-1, admitted=self.now, finish=-1, arrived=each.arrived)
        self.done_with(each.number)

    def place(self, each: Waiting, place: Place) -> None:
        """Let a task take the lowest free contexts of a place, and begin or go on."""
        kind, content = self.program.cores[place[0]].kind, each.task.content
        phases = each.task.phases(kind, len(place))
        first = each.paused_at or (0, 0)
        loads = 0
        if content is not None and all(self.memories[core].holds(content) for core in place):
            first = (content.loading, 0)
        elif content is not None:
            loads = sum(len(phase.body.operations) * phase.repeat for phase in phases[: content.loading])
        for core in dict.fromkeys(place):
            self.memories[core].enter(content, loads)
        seats = self.seats(place)
        thread = Thread(
            number=each.number,
            task=each.task,
            rank=each.rank,
            arrived=each.arrived,
            since=self.now,
            phases=phases,
            buffers=each.task.slots(kind, len(place)),
            seats=tuple(seats),
            first=first,
            gates=self.gates,
            finish=self.now,
            loads=loads,
        )
        for member, (core, context) in enumerate(seats):
            seat = self.contexts[core][context] = Seat(thread, member)
            if member:
                self.trace.seat(each.number, member=member, core=core, context=context)
            for number, unit in enumerate(self.program.cores[core].units):
                thread.streams[member, number] = stream(phases, (member, number), first)
                head = thread.heads[member, number] = next(thread.streams[member, number], None)
                if head is not None:
                    self.queues[core, number, context % unit.ways][context] = seat
        if each.paused_at is None:
            self.admitted[each.number] = self.now
        else:
            core, context, paused = self.paused.pop(each.number)
            self.trace.pause(each.number, core=core, context=context, paused=paused, resumed=self.now)
        if each.task.frame_interval:
            self.env.process(self.frames(thread))
        self.ring_all(thread)
        if thread.over:
            self.env.process(self.leave(thread, self.now))
        self.arrive_at(each.task.starts, self.now)

    def seats(self, place: Place) -> list[tuple[int, int]]:
        """(core, context) of each member of a task that takes a place: the lowest free context of its core.

        On a core that mirrors others, it is the context that stands for that of the member's counterpart.
        """
        cores = self.program.cores
        first = list(accumulate((0 if each.shared else each.contexts for each in cores), initial=0))
        seats: list[tuple[int, int]] = []
        for core in place:
            if cores[core].mirrors:
                own = [seat for seat in seats if not cores[seat[0]].shared]
                other, context = own[sum(seat[0] == core for seat in seats)]
                seats.append((core, first[other] + context))
            else:
                free = (context for context, seat in enumerate(self.contexts[core]) if seat is None)
                seats.append((core, next(context for context in free if (core, context) not in seats)))
        return seats

    def frames(self, thread: Thread) -> Process:
        """Wake the cores whenever a frame of the thread's task comes in."""
        for step in range(thread.frames):
            cycle = thread.arrived + step * thread.task.frame_interval
            if cycle > self.now:
                yield self.env.timeout(cycle - self.now)
                self.ring_all(thread)

    def loaded(self, thread: Thread) -> Process:
        """Note when all of a thread's content is there. Other tasks that need the content may be admitted from then."""
        yield self.env.timeout(thread.loaded - self.now)
        assert thread.task.content is not None
        for core, _ in thread.seats:
            self.memories[core].on_way.discard(thread.task.content.key)
        self.knock()

    def stop(self, thread: Thread) -> None:
        """Ask a thread to pause at the next boundary."""
        over = thread.over
        thread.stop = thread.next_boundary()
        for (member, unit), head in thread.heads.items():
            if head is not None and thread.parked(head) and thread.ended.get((member, unit), thread.since) < self.now:
                core, context = thread.seats[member]
                self.trace.halt(self.now, (core, unit, context, thread.number), thread.until(head))
        if thread.over and not over:
            self.env.process(self.leave(thread, self.now + 1))

    def leave(self, thread: Thread, earliest: int) -> Process:
        """End a thread when all its results are there. Its contexts are free in that same cycle.

        If it pauses, its task waits from then on. If its task lasts until a gate has opened, it leaves no earlier.
        """
        gate = thread.task.until
        if gate is not None:
            yield self.opened[gate]
            earliest = max(earliest, self.gates[gate].latest)
        pauses = thread.stop is not None and thread.stop != thread.end
        yield self.env.timeout(max(thread.clear if pauses else thread.finish, earliest) - self.now)
        for core, context in thread.seats:
            self.contexts[core][context] = None
            for number, unit in enumerate(self.program.cores[core].units):
                self.queues[core, number, context % unit.ways].pop(context, None)
        core, context = thread.seats[0]
        if pauses:
            self.paused[thread.number] = (core, context, self.now)
            places = ((core,),)
            each = Waiting(thread.rank, thread.arrived, thread.number, thread.task, places, thread.stop)
            self.waiting.append(each)
        else:
            self.left.append(thread)
            times = {"admitted": self.admitted[thread.number], "finish": self.now, "arrived": thread.arrived}
            own = thread.task.cores if thread.task.wide else ()
            taken = sum(2 ** own.index(core) for core, _ in thread.seats if own)
            self.trace.task(thread.number, core=core, context=context, **times, taken=taken)
            self.done_with(thread.number)
            self.arrive_at(thread.task.ends, self.now)
        self.knock()
