"""The dispatcher of the reference engine: tasks come, are admitted or turned away, pause, and leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from lstmsim.engines.reference.admission import (
    Memory,
    Place,
    Waiting,
    asked_to_pause,
    best_place,
    spread_over,
    too_many_wait,
)
from lstmsim.engines.reference.clock import ADMISSION, Clockwork, Process
from lstmsim.engines.reference.thread import Seat, Thread, stream
from lstmsim.program.program import Program

__all__ = ["Dispatcher"]


class Dispatcher(Clockwork):
    """Tasks from their arrival to their end. What happens while they run is in `lstmsim.engines.reference.run`."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        sizes = {task.content.key: task.content.size for task in program.tasks if task.content is not None}
        self.memories = [Memory(core, sizes) for core in program.cores]
        self.finished = 0
        self.knocked = self.env.event()
        self.newcomers: list[int] = []
        self.left: list[Thread] = []
        self.waiting: list[Waiting] = []
        self.admitted: dict[int, int] = {}
        self.paused: dict[int, tuple[int, int, int]] = {}
        self.followers: dict[int, list[int]] = defaultdict(list)
        for index, task in enumerate(program.tasks):
            if task.after is not None:
                self.followers[task.after].append(index)
        self.env.process(self.dispatcher())

    def expect(self, numbers: Iterable[int]) -> None:
        """Let the tasks with these numbers come when it is time."""
        self.env.process(self.arrivals(numbers))

    def arrivals(self, numbers: Iterable[int]) -> Process:
        """Let those of the tasks come that come after no other task, in order of (release, position)."""
        tasks = self.program.tasks
        free = [number for number in numbers if tasks[number].after is None]
        for task in sorted(free, key=lambda index: (tasks[index].release, index)):
            if tasks[task].release > self.now:
                yield self.env.timeout(tasks[task].release - self.now)
            self.come(task)

    def follow(self, task: int) -> Process:
        """Let a task come `release` cycles after the task that it follows has finished or was turned away."""
        yield self.env.timeout(self.program.tasks[task].release)
        self.come(task)

    def come(self, task: int) -> None:
        """Note that a task has come."""
        self.newcomers.append(task)
        self.knock()

    def done_with(self, task: int) -> None:
        """Note that a task has finished or was turned away. Tasks that come after it may come now."""
        self.finished += 1
        for follower in self.followers[task]:
            if self.program.tasks[follower].release:
                self.env.process(self.follow(follower))
            else:
                self.come(follower)

    def knock(self) -> None:
        """Tell the dispatcher that a task has come or a context is free."""
        if not self.knocked.triggered:
            self.knocked.succeed()

    def knock_in(self, cycles: int) -> None:
        """Tell the dispatcher at a later cycle to look again."""
        timer = self.env.timeout(cycles)
        timer.callbacks.append(lambda _: self.knock())

    def dispatcher(self) -> Process:
        """Hand waiting tasks to free contexts, once a cycle and after all effects."""
        while True:
            yield self.knocked
            yield self.phase_of_cycle(ADMISSION)
            self.let_go()
            self.give_up()
            self.let_in()
            self.admit()
            while self.newcomers:  # they follow a task that was turned away in this cycle
                self.let_in()
                self.admit()
            # all knocks of this cycle have been answered
            self.knocked = self.env.event()

    def let_go(self) -> None:
        """Let threads that have finished in this cycle leave their contents, in the order of cores and contexts."""
        for thread in sorted(self.left, key=lambda thread: thread.seats[0]):
            for core in dict.fromkeys(core for core, _ in thread.seats):
                self.memories[core].leave(thread.task.content)
        self.left = []

    def give_up(self) -> None:
        """Turn away tasks that have waited longer than their patience. Newcomers are counted after that."""
        for each in [each for each in self.waiting if each.tired(self.now)]:
            self.waiting.remove(each)
            self.turn_away(each)

    def let_in(self) -> None:
        """Let newcomers begin to wait, or turn them away. Tasks that follow other tasks come last."""
        tasks = self.program.tasks
        came, self.newcomers = self.newcomers, []
        for number in sorted(came, key=lambda number: (tasks[number].after is not None, number)):
            task = tasks[number]
            rank = task.key + (self.now if task.key_from_arrival else 0)
            each = Waiting(rank, self.now, number, task, task.places)
            if too_many_wait(each, self.waiting, self.contexts):
                self.turn_away(each)
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

    def turn_away(self, each: Waiting) -> None:
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
        seats: list[tuple[int, int]] = []
        for core in place:
            free = (context for context, seat in enumerate(self.contexts[core]) if seat is None)
            seats.append((core, next(context for context in free if (core, context) not in seats)))
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
            loads=loads,
        )
        for member, (core, context) in enumerate(seats):
            self.contexts[core][context] = Seat(thread, member)
            if member:
                self.trace.seat(each.number, member=member, core=core, context=context)
            for unit in range(len(self.program.cores[core].units)):
                thread.streams[member, unit] = stream(phases, (member, unit), first)
                thread.heads[member, unit] = next(thread.streams[member, unit], None)
        if each.paused_at is None:
            self.admitted[each.number] = self.now
        else:
            core, context, paused = self.paused.pop(each.number)
            self.trace.pause(each.number, core=core, context=context, paused=paused, resumed=self.now)
        self.last_cycle = max(self.last_cycle, self.now)
        if each.task.frame_interval:
            self.env.process(self.frames(thread))
        self.ring_all(thread)

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

        If it pauses, its task waits from then on.
        """
        pauses = thread.stop is not None and thread.stop != thread.end
        yield self.env.timeout(max(thread.clear if pauses else thread.finish, earliest) - self.now)
        for core, context in thread.seats:
            self.contexts[core][context] = None
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
        self.knock()
