"""Programs, stepped cycle by cycle from the text of `Task`, `Operation`, `WeightSet`, barriers and clock rules alone.

Nothing is skipped and nothing is remembered about when to look again: in every cycle what is due takes effect, all that
wait are looked at, all units choose. Slow, for small programs that do not get stuck.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lstmsim.program.operations import Dependence, Operation
from lstmsim.program.program import Program, Task

NEVER = 10**18


@dataclass
class Step:
    """An operation in an iteration; `index` of that iteration among all of the task, phase by phase."""

    phase: int
    iteration: int
    index: int
    number: int
    operation: Operation
    left: int
    ready: int = NEVER


@dataclass
class Barriers:
    """Of each barrier, how many it counts, and the cycles of those who have come, as soon as they are known."""

    counts: tuple[int, ...]
    come: list[list[int]]

    def opens(self, barrier: int) -> int:
        assert len(self.come[barrier]) <= self.counts[barrier]
        return max(self.come[barrier]) if len(self.come[barrier]) == self.counts[barrier] else NEVER


@dataclass(eq=False)
class Running:
    """A task on its threads, from where it began; `stop`: it was asked at `asked` to pause before that iteration."""

    number: int
    task: Task
    rank: int
    arrived: int
    since: int
    thread_slots: list[tuple[int, int]]
    kind: int
    first: int
    barriers: Barriers
    stop: int = NEVER
    asked: int = 0
    streams: dict[tuple[int, int], list[Step]] = field(default_factory=dict)
    starts: dict[tuple[int, int, int], int] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    freed: dict[int, list[int]] = field(default_factory=dict)
    reached: int = -1
    results: int = 0
    echoes: int = 0
    to_load: int = 0
    loaded: int = 0

    def __post_init__(self) -> None:
        self.phases, self.slots = dict(self.task.variants)[self.kind], self.task.slots(self.kind)
        for each in self.task.moldable:
            if each.members == len(self.thread_slots):
                self.phases, self.slots = each.phases, each.buffers
        self.sizes = [phase.repeat for phase in self.phases]
        self.end = sum(self.sizes)
        self.results = self.since
        for phase, each in enumerate(self.phases):
            for iteration in range(each.repeat):
                index = self.index(phase, iteration)
                for number, op in enumerate(each.body.operations):
                    if index >= self.first:
                        step = Step(phase, iteration, index, number, op, op.count)
                        self.streams.setdefault((op.member, op.unit), []).append(step)

    def index(self, phase: int, iteration: int) -> int:
        return sum(self.sizes[:phase]) + iteration

    @property
    def pausing(self) -> bool:
        return self.stop < self.end

    def head(self, member: int, unit: int) -> Step | None:
        steps = self.streams.get((member, unit))
        return steps[0] if steps and steps[0].index < self.stop and steps[0].operation.count else None

    def over(self) -> int:
        """The cycle in which it leaves its threads, as far as that is known."""
        left = [steps for steps in self.streams.values() if steps and steps[0].index < self.stop]
        # an operation of no issue is the last one of its stream, and only waits
        if any(steps[0].operation.count for steps in left):
            return NEVER
        self.results = max([self.results, *(max(self.waits(steps[0])) for steps in left)])
        lasts = self.results if self.task.until is None else max(self.results, self.barriers.opens(self.task.until))
        return max(self.echoes, self.asked + 1) if self.pausing else lasts

    def waits(self, step: Step) -> Iterator[int]:
        """Until when whatever it waits for holds a step back; NEVER: not known yet."""
        yield self.since
        for need in step.operation.needs:
            source = None if need.barrier else self.source(step, need)
            if need.barrier:
                barrier = self.barrier(step, need.operation)
                yield 0 if barrier < 0 else self.barriers.opens(barrier) + need.delay
            if source is not None:
                yield self.starts[source] + need.delay if source in self.starts else NEVER
        if step.operation.frame:
            frame = self.phases[step.phase].step(step.iteration, step.operation.ahead)
            yield self.arrived + frame * self.task.frame_interval
        buffer = step.operation.takes
        if buffer is not None:
            turn = self.taken.get(buffer, 0) - self.slots[buffer].slots
            freed = self.freed.get(buffer, [])
            if turn >= 0:
                yield freed[turn] if turn < len(freed) else NEVER

    def barrier(self, step: Step, number: int) -> int:
        phase = self.phases[step.phase]
        return phase.first_barrier + step.iteration * phase.barriers + number

    def source(self, step: Step, need: Dependence) -> tuple[int, int, int] | None:
        phase, iteration = step.phase, step.iteration - need.lag
        if need.phase is not None:
            phase = need.phase
            iteration = self.sizes[phase] - 1 - step.iteration if need.mirrored else step.iteration
        if not 0 <= iteration < self.sizes[phase] or self.index(phase, iteration) < self.first:
            return None
        return phase, iteration, need.operation

    def issue(self, member: int, unit: int, now: int) -> int:
        step = self.streams[member, unit][0]
        op = step.operation
        self.reached = max(self.reached, step.index)
        if step.left == op.count and op.takes is not None:
            self.taken[op.takes] = self.taken.get(op.takes, 0) + 1
        step.left -= 1
        extra = 0 if op.extra is None else self.phases[step.phase].extra_cycles[op.extra][step.iteration]
        now += extra
        if step.left == 0:
            self.streams[member, unit].pop(0)
            self.starts[step.phase, step.iteration, step.number] = now
            self.results = max(self.results, now + op.result_cycles)
            asked = [now + delay for delay in self.delays(step)]
            self.echoes = max(self.echoes, now + op.result_cycles, *asked)
            if op.frees is not None:
                self.freed.setdefault(op.frees, []).append(now + op.cycles)
            if op.arrives is not None:
                self.barriers.come[self.barrier(step, op.arrives)].append(now + op.cycles)
            if self.to_load and self.task.weight_set is not None and step.phase < self.task.weight_set.loading:
                self.to_load -= 1
                self.loaded = max(self.loaded, now + op.result_cycles)
        return op.cycles + extra

    def delays(self, step: Step) -> Iterator[int]:
        yield 0
        for phase, each in enumerate(self.phases):
            for op in each.body.operations:
                for need in op.needs:
                    if not need.barrier and (phase if need.phase is None else need.phase, need.operation) == (
                        step.phase,
                        step.number,
                    ):
                        yield need.delay


@dataclass(eq=False)
class Waiting:
    number: int
    task: Task
    rank: int
    arrived: int
    places: tuple[tuple[int, ...], ...]
    goes_on: int | None = None
    left_at: tuple[int, int, int] = (0, 0, 0)


@dataclass
class Unit:
    active: int = 0
    fresh: bool = False
    free: int = 0


class Machine:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.threads: list[list[Running | None]] = [[None] * core.contexts for core in program.cores]
        self.units = [[[Unit() for _ in range(unit.instances)] for unit in core.units] for core in program.cores]
        self.barriers = Barriers(program.barriers, [[] for _ in program.barriers])
        self.followers = {n for n, t in enumerate(program.tasks) if (t.after, t.behind) != (None, None)}
        self.behind = {n for n, task in enumerate(program.tasks) if task.behind is not None}
        self.held = [list(core.held) for core in program.cores]
        weight_sets = [task.weight_set for task in program.tasks if task.weight_set is not None]
        self.sizes = {each.key: each.size for each in weight_sets if each.key is not None}
        self.on_way: list[set[int]] = [set() for _ in program.cores]
        self.waiting: list[Waiting] = []
        free = (n for n, task in enumerate(program.tasks) if task.after is None and task.behind is None)
        self.comes = {n: program.tasks[n].release for n in free}
        self.rows: dict[int, list[int]] = {}
        self.pauses: list[list[int]] = []
        self.admitted: dict[int, int] = {}
        self.now = 0

    def run(self, limit: int) -> None:
        while len(self.rows) < len(self.program.tasks) and self.now < limit:
            self.effects()
            self.give_up()
            self.look()
            # a task with nothing to do, and one that lasts until another was admitted, leaves in this very cycle
            while self.effects():
                self.look()
            for core, contexts in enumerate(self.threads):
                for unit, ways in enumerate(self.units[core]):
                    for way in range(len(ways)):
                        self.choose(core, contexts, unit, way)
            self.now += 1

    # --- effects ---

    def effects(self) -> bool:
        """Whether a task has left."""
        leaving = []
        for core, contexts in enumerate(self.threads):
            for context, each in enumerate(contexts):
                if each is not None and each.thread_slots[0] == (core, context):
                    weight_set = each.task.weight_set
                    if weight_set is not None and each.loaded == self.now and not each.to_load:
                        for thread_slot in each.thread_slots:
                            self.on_way[thread_slot[0]].discard(weight_set.key)
                    if each.over() == self.now:
                        leaving.append(each)
        for each in leaving:
            self.leave(each)
        # who leaves may open a barrier until which others last
        return bool(leaving) and (self.effects() or True)

    def leave(self, each: Running) -> None:
        core, context = each.thread_slots[0]
        for thread_slot in each.thread_slots:
            self.threads[thread_slot[0]][thread_slot[1]] = None
        if each.pausing:
            left = Waiting(each.number, each.task, each.rank, each.arrived, ((core,),), each.stop)
            left.left_at = core, context, self.now
            self.waiting.append(left)
            return
        for one in dict.fromkeys(thread_slot[0] for thread_slot in each.thread_slots):
            self.use(one, each.task)
        pauses = sum(pause[0] == each.number for pause in self.pauses)
        own = each.task.cores if each.task.moldable else ()
        taken = sum(2**position for position, one in enumerate(own) if one in dict(each.thread_slots))
        self.done(each.number, [core, context, self.admitted[each.number], self.now, each.arrived, pauses, taken])

    def done(self, number: int, row: list[int]) -> None:
        self.rows[number] = row
        if row[3] >= 0:
            self.arrive(self.program.tasks[number].ends)
        for follower, task in enumerate(self.program.tasks):
            if task.after == number:
                self.comes[follower] = self.now + task.release

    def arrive(self, barrier: int | None) -> None:
        if barrier is not None:
            self.barriers.come[barrier].append(self.now)

    # --- waiting ---

    def give_up(self) -> None:
        for each in list(self.waiting):
            patience = each.task.patience
            if each.goes_on is None and patience is not None and self.now == each.arrived + patience + 1:
                self.waiting.remove(each)
                self.done(each.number, [-1, -1, self.now, -1, each.arrived, 0, 0])

    def look(self) -> None:
        newcomers = self.newcomers()
        while True:
            for number in newcomers:
                self.come(number)
            newcomers = self.newcomers()
            self.admit(asking=not newcomers)
            newcomers = sorted([*newcomers, *self.newcomers()], key=lambda number: (number in self.followers, number))
            if not newcomers:
                return

    def newcomers(self) -> list[int]:
        """Of this cycle: those that come after no other first, each kind in the order of the program."""
        tasks = self.program.tasks
        for number in list(self.behind):
            barrier = tasks[number].behind
            assert barrier is not None
            if self.barriers.opens(barrier) < NEVER:
                self.behind.remove(number)
                self.comes[number] = self.barriers.opens(barrier) + tasks[number].release
        found = [number for number, cycle in self.comes.items() if cycle == self.now]
        for number in found:
            del self.comes[number]
        return sorted(found, key=lambda number: (number in self.followers, number))

    def come(self, number: int) -> None:
        task = self.program.tasks[number]
        rank = task.key + (self.now if task.key_from_arrival else 0)
        if task.queue_limit is not None:
            before = sum(each.goes_on is None and each.places == task.places for each in self.waiting)
            free = sum(self.threads[core].count(None) for core in {place[0] for place in task.places})
            if before >= free + task.queue_limit:
                self.done(number, [-1, -1, self.now, -1, self.now, 0, 0])
                return
        self.waiting.append(Waiting(number, task, rank, self.now, task.places))

    def admit(self, *, asking: bool) -> None:
        kept: set[int] = set()
        for each in sorted(self.waiting, key=lambda each: (each.rank, each.arrived, each.number)):
            places = [place for place in each.places if not kept & set(place) and self.room(each.task, place)]
            if places:
                self.waiting.remove(each)
                place = min(places, key=lambda place: self.preference(each.task, place))
                self.start(each, self.spread(each.task) or place)
                continue
            if asking and each.task.preempts:
                self.ask(each, kept)
            kept |= {core for place in each.places for core in place if not self.program.cores[core].shared}

    def room(self, task: Task, place: tuple[int, ...]) -> bool:
        return all(place.count(core) <= self.threads[core].count(None) and self.fits(core, task) for core in place)

    def spread(self, task: Task) -> tuple[int, ...]:
        """The cores that a moldable task takes at once, if nobody who waits beside it could use one of its own."""
        if {core for each in self.waiting for place in each.places for core in place} & set(task.cores):
            return ()
        free = tuple(core for core in task.cores if None in self.threads[core])
        return free[: max((each.members for each in task.moldable if each.members <= len(free)), default=0)]

    def preference(self, task: Task, place: tuple[int, ...]) -> tuple[bool, int, tuple[int, ...]]:
        lacks = task.affine and not all(self.holds(core, task) for core in place)
        own = [core for core in place if not self.program.cores[core].shared]
        return lacks, sum(each is not None for core in own for each in self.threads[core]), place

    def ask(self, waiting: Waiting, kept: set[int]) -> None:
        found = []
        for core in {place[0] for place in waiting.places} - kept:
            for context, each in enumerate(self.threads[core]):
                if each is None:
                    continue
                if each.pausing:
                    return
                alone = len(each.thread_slots) == 1 and each.task.weight_set is None and not each.task.moldable
                if each.rank > waiting.rank and each.stop == NEVER and alone:
                    found.append((each.rank, each.since, core, context))
        if found:
            *_, core, context = max(found)
            asked = self.threads[core][context]
            assert asked is not None
            asked.stop, asked.asked = max(asked.first, asked.reached + 1), self.now

    def start(self, each: Waiting, place: tuple[int, ...]) -> None:
        kind, weight_set = self.program.cores[place[0]].kind, each.task.weight_set
        first, loading = each.goes_on or 0, 0
        if weight_set is not None:
            phases = each.task.phases(kind)[: weight_set.loading]
            if all(self.holds(core, each.task) for core in place):
                first = sum(phase.repeat for phase in phases)
            else:
                loading = sum(len(phase.body.operations) * phase.repeat for phase in phases)
            for core in dict.fromkeys(place):
                self.bring(core, each.task, loading > 0)
        thread_slots = self.thread_slots(place)
        running = Running(
            each.number, each.task, each.rank, each.arrived, self.now, thread_slots, kind, first, self.barriers
        )
        running.to_load = loading
        for core, context in thread_slots:
            self.threads[core][context] = running
        if each.goes_on is None:
            self.admitted[each.number] = self.now
            self.arrive(each.task.starts)
        else:
            self.pauses.append([each.number, *each.left_at, self.now, -1])

    def thread_slots(self, place: tuple[int, ...]) -> list[tuple[int, int]]:
        cores = self.program.cores
        # threads of cores that are not shared, in order: the n-th of them is that of thread n of a core that mirrors
        all_own = [(core, n) for core, one in enumerate(cores) if not one.shared for n in range(one.contexts)]
        thread_slots: list[tuple[int, int]] = []
        for core in place:
            if cores[core].mirrors:
                own = [thread_slot for thread_slot in thread_slots if not cores[thread_slot[0]].shared]
                k = sum(thread_slot[0] == core for thread_slot in thread_slots)
                thread_slots.append((core, all_own.index(own[k])))
                continue
            free = [context for context, one in enumerate(self.threads[core]) if one is None]
            thread_slots.append((core, next(context for context in free if (core, context) not in thread_slots)))
        assert all(self.threads[core][context] is None for core, context in thread_slots)
        return thread_slots

    # --- memories ---

    def matters(self, core: int, task: Task) -> bool:
        weight_set = task.weight_set
        return weight_set is not None and weight_set.key is not None and self.program.cores[core].capacity is not None

    def holds(self, core: int, task: Task) -> bool:
        return not self.matters(core, task) or (task.weight_set is not None and task.weight_set.key in self.held[core])

    def used(self, core: int) -> set[int]:
        running = [each for each in self.threads[core] if each is not None]
        weight_sets = [each.task.weight_set for each in running if each.task.weight_set is not None]
        return {each.key for each in weight_sets if each.key is not None}

    def own_room(self, core: int) -> int:
        """The room that tasks on a core have for themselves; each has it once, on however many threads it runs."""
        running = {id(each): each for each in self.threads[core] if each is not None}
        weight_sets = [each.task.weight_set for each in running.values()]
        return sum(each.size for each in weight_sets if each is not None and each.key is None)

    def fits(self, core: int, task: Task) -> bool:
        weight_set, capacity = task.weight_set, self.program.cores[core].capacity
        if weight_set is None or capacity is None:
            return True
        if weight_set.key in self.held[core]:
            return weight_set.key not in self.on_way[core]
        return sum(self.sizes[key] for key in self.used(core)) + self.own_room(core) + weight_set.size <= capacity

    def bring(self, core: int, task: Task, loading: bool) -> None:
        weight_set, capacity = task.weight_set, self.program.cores[core].capacity
        if weight_set is None or capacity is None:
            return
        if weight_set.key not in self.held[core]:
            room = capacity - weight_set.size - self.own_room(core)
            while sum(self.sizes.get(key, 0) for key in self.held[core]) > room:
                self.held[core].remove(next(key for key in self.held[core] if key not in self.used(core)))
            if weight_set.key is None:
                return
            if loading:
                self.on_way[core].add(weight_set.key)
            self.held[core].append(weight_set.key)
        self.use(core, task)

    def use(self, core: int, task: Task) -> None:
        key = None if task.weight_set is None else task.weight_set.key
        if key is not None and self.matters(core, task):
            self.held[core].remove(key)
            self.held[core].append(key)

    # --- units ---

    def choose(self, core: int, contexts: list[Running | None], number: int, way: int) -> None:
        unit, described = self.units[core][number][way], self.program.cores[core].units[number]
        if unit.free > self.now:
            return
        ready: dict[int, int] = {}
        for context, each in enumerate(contexts):
            if each is not None and context % described.instances == way:
                since = self.ready(each, each.thread_slots.index((core, context)), number)
                if since is not None:
                    ready[context] = since
        if not ready:
            return
        ring = [(unit.active + k) % len(contexts) for k in range(len(contexts))]
        if described.policy == "fifo":
            ring = sorted(ready, key=lambda context: (ready[context], context))
        elif described.policy == "fine" and not unit.fresh:
            ring = ring[1:] + ring[:1]
        chosen = next(context for context in ring if context in ready)
        if chosen != unit.active and described.switch_cycles:
            unit.active, unit.fresh, unit.free = chosen, True, self.now + described.switch_cycles
            return
        unit.active, unit.fresh = chosen, False
        thread = contexts[chosen]
        assert thread is not None
        unit.free = self.now + thread.issue(thread.thread_slots.index((core, chosen)), number, self.now)

    def ready(self, each: Running, member: int, unit: int) -> int | None:
        """Since when the next operation of a thread could have started; None: it may not now."""
        step = each.head(member, unit)
        if step is None:
            return None
        if step.left == step.operation.count:
            step.ready = max(each.waits(step))
        return step.ready if step.ready <= self.now else None


def simulate(program: Program, limit: int) -> tuple[list[list[int]], list[list[int]]]:
    """Rows of `Trace.tasks` and of `Trace.pauses`, as far as cycle `limit`."""
    machine = Machine(program)
    machine.run(limit)
    # nobody here has company, so the last column is that of no batch
    rows = [[*machine.rows[number], -1] if number in machine.rows else [] for number in range(len(program.tasks))]
    return rows, sorted(machine.pauses, key=lambda pause: (pause[3], pause[1], pause[2]))
