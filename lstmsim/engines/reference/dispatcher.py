"""The dispatcher of the reference engine: tasks come, are admitted or rejected, are asked to pause, and leave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from lstmsim.engines.reference.pools import Company
from lstmsim.engines.reference.thread import ADMISSION, Barrier, Clockwork, Process, Thread, ThreadSlot, stream
from lstmsim.engines.reference.waiting import Place, Waiting
from lstmsim.program.program import Core, Program, Task, WeightSet


@dataclass
class Memory:
    """The weight sets of a core's memory.

    sizes: key of a weight set -> its size; own: room that running tasks have for themselves alone, together.
    held: keys of the weight sets in the memory, the least recently used first; on_way: those that are being loaded.
    users: key of a weight set -> how many running tasks use it.
    """

    core: Core
    sizes: dict[int, int]
    held: list[int] = field(default_factory=list)
    on_way: set[int] = field(default_factory=set)
    users: dict[int, int] = field(default_factory=dict)
    own: int = 0

    def __post_init__(self) -> None:
        self.held = list(self.core.held)

    def holds(self, weight_set: WeightSet | None) -> bool:
        """Whether the memory holds the weight set that a task needs."""
        return weight_set is None or self.core.capacity is None or weight_set.key in self.held

    def has_room(self, weight_set: WeightSet | None) -> bool:
        """Whether the weight set is here (and not only on its way), or fits next to those that running tasks use."""
        if weight_set is None or self.core.capacity is None:
            return True
        if weight_set.key in self.held:
            return weight_set.key not in self.on_way
        used = sum(self.sizes[key] for key, users in self.users.items() if users)
        return used + self.own + weight_set.size <= self.core.capacity

    def enter(self, weight_set: WeightSet | None, loads: int) -> None:
        """Make room for the weight set of a task that begins, hold it, and count the task as a user.

        Room of the task's own holds nothing, and is there until the task finishes. loads: how many operations of the
        task load the weight set; if there are any, it is on its way.
        """
        if weight_set is None or self.core.capacity is None:
            return
        if weight_set.key not in self.held:
            while sum(self.sizes.get(key, 0) for key in self.held) + self.own + weight_set.size > self.core.capacity:
                self.held.remove(next(key for key in self.held if not self.users.get(key)))
            if weight_set.key is None:
                self.own += weight_set.size
                return
            self.held.append(weight_set.key)
            if loads:
                self.on_way.add(weight_set.key)
        self.users[weight_set.key] = self.users.get(weight_set.key, 0) + 1
        self._touch(weight_set.key)

    def leave(self, weight_set: WeightSet | None) -> None:
        """Count one user less: a task that needed the weight set has finished."""
        if weight_set is None or self.core.capacity is None:
            return
        if weight_set.key is None:
            self.own -= weight_set.size
        else:
            self.users[weight_set.key] -= 1
            self._touch(weight_set.key)

    def _touch(self, key: int) -> None:
        self.held.remove(key)
        self.held.append(key)


Contexts = Sequence[Sequence[ThreadSlot | None]]


def occupied(contexts: Contexts, core: int) -> int:
    """How many threads of a core are taken."""
    return sum(thread_slot is not None for thread_slot in contexts[core])


def best_place(waiting: Waiting, contexts: Contexts, memories: Sequence[Memory], kept: Collection[int]) -> Place | None:
    """The place where a task is admitted now; None if there is none."""
    weight_set = waiting.task.weight_set
    able = [
        place
        for place in waiting.places
        if all(
            core not in kept and place.count(core) <= contexts[core].count(None) and memories[core].has_room(weight_set)
            for core in place
        )
    ]
    if not able:
        return None

    def preference(place: Place) -> tuple[bool, int, Place]:
        lacks = waiting.task.affine and not all(memories[core].holds(weight_set) for core in place)
        own = [core for core in place if not memories[core].core.shared]
        return lacks, sum(occupied(contexts, core) for core in own), place

    return min(able, key=preference)


def spread_over(one: Waiting, others: Sequence[Waiting], contexts: Contexts) -> Place | None:
    """The cores that a moldable task takes at once; None if it takes the one place that is free for it."""
    own = set(one.task.cores)
    if not one.task.moldable or any(core in own for each in others for place in each.places for core in place):
        return None
    free = [core for core in one.task.cores if None in contexts[core]]
    members = max((each.members for each in one.task.moldable if each.members <= len(free)), default=1)
    return tuple(free[:members]) if members > 1 else None


def asked_to_pause(waiting: Waiting, contexts: Contexts, kept: Collection[int]) -> Thread | None:
    """The running thread that is asked to pause for a task without a place; None if none may be, or one is about to."""
    candidates: list[tuple[int, int, int, int, Thread]] = []
    for core, context, thread in _running(waiting, contexts, kept):
        if thread.stop is not None and thread.stop != thread.end:
            return None
        whole = len(thread.thread_slots) == 1 and thread.task.weight_set is None and not thread.task.moldable
        movable = whole and thread.stop is None
        if movable and thread.rank > waiting.rank:
            candidates.append((thread.rank, thread.since, core, context, thread))
    return max(candidates, key=lambda each: each[:-1])[-1] if candidates else None


def _running(waiting: Waiting, contexts: Contexts, kept: Collection[int]) -> Iterator[tuple[int, int, Thread]]:
    for core in sorted({place[0] for place in waiting.places}):
        if core not in kept:
            for context, thread_slot in enumerate(contexts[core]):
                if thread_slot is not None:
                    yield core, context, thread_slot.thread


def too_many_wait(
    newcomer: Waiting, waiting: Sequence[Waiting], contexts: Contexts, pools: Sequence[Company] = ()
) -> bool:
    """Whether the queue of a task is full when the task comes."""
    limit, pool = newcomer.task.queue_limit, newcomer.task.pool
    if limit is None:
        return False
    before = sum(not each.begun and each.places == newcomer.places for each in waiting)
    cores = {place[0] for place in newcomer.places}
    free = sum(contexts[core].count(None) for core in cores) - sum(each.places_of_begun(cores) for each in pools)
    return before - max(free, 0) * (1 if pool is None else pools[pool].pool.most) >= limit


class Arrivals(Clockwork):
    """Tasks up to the cycle in which they come. The dispatcher lets them wait.

    knocked, newcomers: the event for which the dispatcher waits; tasks that have come and do not wait yet.
    barriers, opened: the barriers, and for each an event, as soon as it is known when the barrier opens.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.finished = 0
        self.knocked = self.env.event()
        self.newcomers: list[int] = []
        self.barriers = [Barrier(arrivals) for arrivals in program.barriers]
        self.opened = [self.env.event() for _ in self.barriers]
        #: For each task, those that come after it, and for each barrier, those that come behind it.
        self.followers: dict[int, list[int]] = defaultdict(list)
        self.behind: dict[int, list[int]] = defaultdict(list)
        for index, task in enumerate(program.tasks):
            if task.after is not None:
                self.followers[task.after].append(index)
            if task.behind is not None:
                self.behind[task.behind].append(index)
        #: After how many cycles operations may go on that wait for barriers.
        variants = [phases for task in program.tasks for _, phases in task.variants]
        variants += [each.phases for task in program.tasks for each in task.moldable]
        phases = {id(phase): phase for one in {id(one): one for one in variants}.values() for phase in one}
        needs = (need for phase in phases.values() for each in phase.body.operations for need in each.needs)
        self.barrier_delays = {need.delay for need in needs if need.barrier} if program.barriers else set()

    def expect(self, numbers: Iterable[int]) -> None:
        """Let the tasks with these numbers come when it is time."""
        self.env.process(self.arrivals(numbers))

    def arrivals(self, numbers: Iterable[int]) -> Process:
        """Let those of the tasks come that follow nothing, in order of (release, position)."""
        tasks = self.program.tasks
        free = [number for number in numbers if not follows(tasks[number])]
        for task in sorted(free, key=lambda index: (tasks[index].release, index)):
            if tasks[task].release > self.now:
                yield self.env.timeout(tasks[task].release - self.now)
            self.come(task)

    def follow(self, task: int, since: int) -> Process:
        """Let a task come `release` cycles after cycle `since`, in which what it follows has happened."""
        yield self.env.timeout(since + self.program.tasks[task].release - self.now)
        self.come(task)

    def come(self, task: int) -> None:
        """Note that a task has come."""
        self.newcomers.append(task)
        self.knock()

    def done_with(self, task: int) -> None:
        """Note that a task has finished or was rejected. Tasks that come after it may come now."""
        self.finished += 1
        self.let_follow(self.followers[task], self.now)

    def let_follow(self, tasks: Iterable[int], since: int) -> None:
        """Let tasks come, each so long after cycle `since` as it wants; at once if that is now."""
        for task in tasks:
            if since + self.program.tasks[task].release > self.now:
                self.env.process(self.follow(task, since))
            else:
                self.come(task)

    def arrive_at(self, number: int | None, cycle: int) -> None:
        """Note that somebody arrives at a barrier, if it is one. If all have, others know when it opens."""
        if number is None or not self.barriers[number].arrive(cycle):
            return
        opens = self.barriers[number].latest
        self.let_follow(self.behind[number], opens)
        self.opened[number].succeed()
        for delay in self.barrier_delays:
            self.ring_everywhere(opens + delay)

    def knock(self) -> None:
        """Tell the dispatcher that a task has come or a context is free."""
        if not self.knocked.triggered:
            self.knocked.succeed()

    def knock_in(self, cycles: int) -> None:
        """Tell the dispatcher at a later cycle to look again."""
        timer = self.env.timeout(cycles)
        timer.callbacks.append(lambda _: self.knock())


def follows(task: Task) -> bool:
    """Whether a task comes after another one or after a barrier."""
    return task.after is not None or task.behind is not None


class Dispatcher(Arrivals):
    """Tasks from their arrival to their end. What happens while they run is in `lstmsim.engines.reference.run`."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        weight_sets = [task.weight_set for task in program.tasks if task.weight_set is not None]
        sizes = {weight_set.key: weight_set.size for weight_set in weight_sets if weight_set.key is not None}
        self.memories = [Memory(core, sizes) for core in program.cores]
        self.left: list[Thread] = []
        self.waiting: list[Waiting] = []
        self.admitted: dict[int, int] = {}
        #: Of a task that has run and waits: core, context, since when, and who led its batch (-1: it ran alone).
        self.paused: dict[int, tuple[int, int, int, int]] = {}
        #: Of each session the core on which its states are.
        self.homes: dict[int, int] = {}
        self.pools = [Company(pool) for pool in program.pools]
        self.env.process(self.dispatcher())

    def dispatcher(self) -> Process:
        """Hand waiting tasks to free contexts, once a cycle and after all effects."""
        while True:
            yield self.knocked
            yield self.phase_of_cycle(ADMISSION)
            for thread in sorted(self.left, key=lambda thread: thread.thread_slots[0]):
                for core in dict.fromkeys(core for core, _ in thread.thread_slots):
                    self.memories[core].leave(thread.task.weight_set)
            self.left = []
            # those that renege leave before newcomers are counted
            # those that renege at once leave in the order in which they came
            for each in [each for each in self.everybody if each.reneges(self.now)]:
                self._forget(each)
                self.reject(each)
            self.let_in()
            self.admit()
            while self.newcomers:  # they follow a task that was rejected, or admissions, in this cycle
                self.let_in()
                self.admit()
            # all knocks of this cycle have been answered
            self.knocked = self.env.event()

    @property
    def everybody(self) -> list[Waiting]:
        """All tasks that wait, in pools too."""
        return [*self.waiting, *(each for pool in self.pools for each in pool.all)]

    def _forget(self, one: Waiting) -> None:
        if one.task.pool is None:
            self.waiting.remove(one)
        else:
            self.pools[one.task.pool].leave(one)

    def let_in(self) -> None:
        """Let newcomers begin to wait, or reject them. Tasks that follow other tasks come last."""
        tasks = self.program.tasks
        came, self.newcomers = self.newcomers, []
        for number in sorted(came, key=lambda number: (follows(tasks[number]), number)):
            task = tasks[number]
            rank = task.key + (self.now if task.key_from_arrival else 0)
            each = Waiting(rank, self.now, number, task, task.places)
            if too_many_wait(each, self.everybody, self.contexts, self.pools):
                self.reject(each)
                continue
            if task.pool is None:
                self.waiting.append(each)
            elif (look := self.pools[task.pool].join(each, self.now)) > self.now:
                self.knock_in(look - self.now)
            if task.patience is not None:
                self.knock_in(task.patience + 1)

    def admit(self) -> None:
        """Give places to waiting tasks, in order.

        A task without a place keeps its cores from the tasks behind it. If it preempts and no more task comes in this
        cycle, it asks a running thread to pause.
        """
        kept: set[int] = set()
        asking = not self.newcomers
        for pool in self.pools:
            pool.close_due(self.now)
        looked_at = [*self.waiting, *(each for pool in self.pools for each in pool.looked_at())]
        gone: set[int] = set()
        for each in sorted(looked_at, key=lambda each: each.turn):
            pooled = None if each.task.pool is None else self.pools[each.task.pool]
            if each.number in gone or (pooled and not pooled.ripe(self.now)):
                continue
            place = best_place(each, self.contexts, self.memories, kept)
            if place is None:
                victim = asked_to_pause(each, self.contexts, kept) if asking and each.task.preempts else None
                if victim is not None:
                    self.stop(victim)
                    self.knock_in(1)  # the victim may just finish, and another thread may have to be asked
                cores = {core for place in each.places for core in place}
                kept.update(core for core in cores if not self.program.cores[core].shared)
                continue
            batch = [each] if pooled is None else pooled.take(each, place[0])
            gone.update(member.number for member in batch)
            if pooled is None:
                self.waiting.remove(each)
            ripe = [one for own in self.pools if own.ripe(self.now) for one in own.looked_at()]
            place = spread_over(each, [*self.waiting, *ripe], self.contexts) or place
            self.place(batch[0], place, batch)

    def reject(self, each: Waiting) -> None:
        """Let a task leave without having run."""
        self.trace.task(each.number, core=-1, context=-1, admitted=self.now, finish=-1, arrived=each.arrived)
        self.done_with(each.number)

    def place(self, each: Waiting, place: Place, batch: Sequence[Waiting]) -> None:
        """Let a task, or a batch that it leads, take the lowest free contexts of a place, and begin or go on."""
        kind, weight_set = self.program.cores[place[0]].kind, each.task.weight_set
        phases = each.task.phases(kind, len(place), len(batch))
        first = each.paused_at or (0, 0)
        loads = 0
        if weight_set is not None and all(self.memories[core].holds(weight_set) for core in place):
            first = (weight_set.loading, 0)
        elif weight_set is not None:
            loads = sum(len(phase.body.operations) * phase.repeat for phase in phases[: weight_set.loading])
        for core in dict.fromkeys(place):
            self.memories[core].enter(weight_set, loads)
        thread_slots, opens = self.thread_slots(place), self.now + self.move(each.task, place[0])
        thread = Thread(
            number=each.number,
            task=each.task,
            rank=each.rank,
            arrived=each.arrived,
            since=self.now,
            phases=phases,
            buffers=each.task.slots(kind, len(place)),
            thread_slots=tuple(thread_slots),
            first=first,
            barriers=self.barriers,
            finish=opens,
            opens=opens,
            loads=loads,
            batch=tuple(batch),
            ragged=each.task.pool is not None and self.pools[each.task.pool].ragged,
        )
        for member, (core, context) in enumerate(thread_slots):
            thread_slot = self.contexts[core][context] = ThreadSlot(thread, member)
            if member:
                self.trace.take_thread_slot(each.number, member=member, core=core, context=context)
            for number, unit in enumerate(self.program.cores[core].units):
                thread.streams[member, number] = stream(thread, (member, number))
                head = thread.heads[member, number] = next(thread.streams[member, number], None)
                if head is not None:
                    self.queues[core, number, context % unit.instances][context] = thread_slot
        for one in batch:
            if one.begun:
                self.trace.pause(one.number, *self.paused.pop(one.number), resumed=self.now)
            else:
                self.admitted[one.number] = self.now
        for late in sorted(thread.lateness):
            if each.task.frame_interval or late:
                self.env.process(self.frames(thread, late))
        self.ring_all(thread)
        if opens > self.now:
            self.ring_at(thread, opens)
        if thread.over:
            self.env.process(self.leave(thread, self.now))
        self.arrive_at(each.task.starts, self.now)

    def move(self, task: Task, core: int) -> int:
        """How long the states of an admitted task's session move to its core; from now on they are there."""
        if task.session is None:
            return 0
        before, self.homes[task.session] = self.homes.get(task.session, core), core
        return 0 if before == core else task.move_cycles

    def thread_slots(self, place: Place) -> list[tuple[int, int]]:
        """(core, context) of each member of a task that takes a place: the lowest free context of its core.

        On a core that mirrors others, it is the context that stands for that of the member's counterpart.
        """
        cores = self.program.cores
        first = list(accumulate((0 if each.shared else each.contexts for each in cores), initial=0))
        thread_slots: list[tuple[int, int]] = []
        for core in place:
            if cores[core].mirrors:
                own = [thread_slot for thread_slot in thread_slots if not cores[thread_slot[0]].shared]
                other, context = own[sum(thread_slot[0] == core for thread_slot in thread_slots)]
                thread_slots.append((core, first[other] + context))
            else:
                free = (context for context, thread_slot in enumerate(self.contexts[core]) if thread_slot is None)
                thread_slots.append((core, next(context for context in free if (core, context) not in thread_slots)))
        return thread_slots

    def frames(self, thread: Thread, late: int) -> Process:
        """Wake the cores so many cycles after each frame of the thread's task has come in."""
        for step in range(thread.frames if thread.task.frame_interval else 1):
            cycle = thread.arrived + step * thread.task.frame_interval + late
            if cycle > self.now:
                yield self.env.timeout(cycle - self.now)
                self.ring_all(thread)

    def loaded(self, thread: Thread) -> Process:
        """Note when all of a thread's weight set is there: from then on other tasks that need it may be admitted."""
        yield self.env.timeout(thread.loaded - self.now)
        assert thread.task.weight_set is not None
        for core, _ in thread.thread_slots:
            self.memories[core].on_way.discard(thread.task.weight_set.key)
        self.knock()

    def stop(self, thread: Thread) -> None:
        """Ask a thread to pause at the next boundary."""
        over = thread.over
        thread.stop = thread.next_boundary()
        for (member, unit), head in thread.heads.items():
            if head is not None and thread.parked(head) and thread.ended.get((member, unit), thread.since) < self.now:
                core, context = thread.thread_slots[member]
                self.trace.halt(self.now, (core, unit, context, thread.number), thread.until(head))
        if thread.over and not over:
            self.env.process(self.leave(thread, self.now + 1))

    def leave(self, thread: Thread, earliest: int) -> Process:
        """End a thread when all its results are there. Its contexts are free in that same cycle.

        If it pauses, its task waits from then on. If its task lasts until a barrier has opened, it leaves no earlier.
        """
        barrier = thread.task.until
        if barrier is not None:
            yield self.opened[barrier]
            earliest = max(earliest, self.barriers[barrier].latest)
        pauses = thread.stop is not None and thread.stop != thread.end
        yield self.env.timeout(max(thread.clear if pauses else thread.finish, earliest) - self.now)
        for core, context in thread.thread_slots:
            self.contexts[core][context] = None
            for number, unit in enumerate(self.program.cores[core].units):
                self.queues[core, number, context % unit.instances].pop(context, None)
        core, context = thread.thread_slots[0]
        if pauses:
            self.paused[thread.number] = (core, context, self.now, -1)
            places = ((core,),)
            each = Waiting(thread.rank, thread.arrived, thread.number, thread.task, places, thread.stop)
            self.waiting.append(each)
        else:
            self.left.append(thread)
            pooled = None if thread.task.pool is None else self.pools[thread.task.pool]
            for one in thread.batch:
                if pooled and pooled.in_rounds and one.rounds + 1 < one.task.length:
                    self.paused[one.number] = (core, context, self.now, thread.number)
                    pooled.waiting.append(replace(one, places=((core,),), rounds=one.rounds + 1))
                elif one.number not in thread.gone:
                    self.finish_one(thread, one)
            self.arrive_at(thread.task.ends, self.now)
        self.knock()

    def finish_one(self, thread: Thread, one: Waiting) -> None:
        """Note that a task has finished that runs on a thread, perhaps with others."""
        (core, context), own = thread.thread_slots[0], thread.task.cores if thread.task.moldable else ()
        taken = sum(2 ** own.index(core) for core, _ in thread.thread_slots if own)
        # of a task without a pool there is no batch to speak of
        lead = -1 if thread.task.pool is None else thread.number
        times = {"admitted": self.admitted[one.number], "finish": self.now, "arrived": one.arrived}
        self.trace.task(one.number, core=core, context=context, **times, taken=taken, batch=lead)
        self.done_with(one.number)

    def finish_part(self, thread: Thread, one: Waiting, cycle: int) -> Process:
        """Let a member of a ragged batch finish at a cycle, before the others."""
        yield self.env.timeout(cycle - self.now)
        thread.gone.add(one.number)
        self.finish_one(thread, one)
        self.knock()
