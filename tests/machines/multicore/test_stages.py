"""Stages as a Program, against a model that goes from event to event and knows no Program."""

from __future__ import annotations

import random
from heapq import heappop, heappush

from lstmsim import engines
from lstmsim.machines.multicore.chip import MulticoreCpu
from lstmsim.machines.multicore.lines.space import Stage, TimedStep
from lstmsim.machines.multicore.product import program_of
from lstmsim.machines.multicore.stages import Block, cores_of, phases_of, place_of
from lstmsim.program.accounts import named_cycles
from lstmsim.program.program import Phase, Program, Task
from lstmsim.program.validate import validate
from tests.machines.multicore.chips import TOY, changed
from tests.strategies import examples
from tools.multicore_waits import step_times, waits_of


class Run:
    """Blocks on cores that nobody else takes: what sections 6 and 7 of docs/multicore.md say of them.

    asks: (cycle, core, memory, lines, thread), of steps that have begun and whose lines nobody has served yet.
    """

    def __init__(self, machine: MulticoreCpu, first: int, blocks: list[Block], arrival: int, interval: int) -> None:
        self.machine, self.first = machine, first
        self.stages = []
        for block in blocks:
            for turn in range(block.repeat):
                frame = arrival + interval * (block.first_step + (-turn if block.mirrored else turn))
                self.stages += [(stage, frame) for stage in block.stages]
        self.threads = len(blocks[0].stages[0].steps)
        self.release, self.finish = arrival, 0
        self.waits = {"contention": 0, "barrier": 0, "memory": 0}
        self.behind, self.computed = [0] * self.threads, [0] * self.threads
        self.over = [arrival] * self.threads
        self.asks: list[tuple[int, int, int, int, int]] = []
        self.number = -1
        self.next_stage()

    def next_stage(self) -> None:
        self.number += 1
        if self.number == len(self.stages):
            self.finish = self.release
            return
        self.done: list[list[int]] = [[] for _ in range(self.threads)]
        self.open = [0] * self.threads
        self.go()

    def go(self) -> None:
        """Begin every step of which is known when it begins."""
        stage, frame = self.stages[self.number]
        moved = True
        while moved:
            moved = False
            for thread, steps in enumerate(stage.steps):
                if len(self.done[thread]) < len(steps) and not self.open[thread]:
                    moved |= self.begin(thread, steps[len(self.done[thread])], frame if stage.frames else None)
        over = (len(done) == len(steps) for done, steps in zip(self.done, stage.steps, strict=True))
        if all(over) and not any(self.open):
            self.release = max(done[-1] for done in self.done if done) + self.machine.barrier(self.threads)
            self.next_stage()

    def begin(self, thread: int, step: TimedStep, frame: int | None) -> bool:
        machine, core, own = self.machine, self.first + thread, self.done[thread]
        piece = 0
        if step.after is not None:
            other, number = step.after
            if len(self.done[other]) - (self.open[other] > 0) <= number:
                return False
            piece = self.done[other][number] + machine.handover_cycles
        free = max(self.over[thread], frame if frame is not None and not own else 0)
        start = max(free, piece, self.release)
        self.waits["barrier" if step.after is None else "contention"] += start - free
        self.waits["memory"] += self.behind[thread]
        self.asks += [(start + 1, core, domain, lines, thread) for domain, lines in enumerate(step.lines) if lines]
        self.open[thread] = sum(lines > 0 for lines in step.lines)
        own.append(start + step.cycles)
        self.computed[thread] = start + step.cycles
        self.ended(thread, 0)
        return True

    def ended(self, thread: int, there: int) -> None:
        end = self.done[thread][-1] = self.over[thread] = max(self.done[thread][-1], there)
        self.behind[thread] = end - self.computed[thread]

    def served(self, thread: int, there: int) -> None:
        """Lines of a thread's step are there."""
        self.open[thread] -= 1
        self.ended(thread, there)
        self.go()


def plainly(machine: MulticoreCpu, runs: list[Run]) -> None:
    """Let runs go to their ends: each memory serves those first who ask first, and of these the lowest core."""
    free = [0] * machine.domains
    asks: list[tuple[int, int, int, int, int, int]] = []
    while True:
        for number, run in enumerate(runs):
            for each in run.asks:
                heappush(asks, (*each, number))
            run.asks = []
        if not asks:
            return
        when, core, domain, lines, thread, number = heappop(asks)
        busy = lines * machine.memory_cycles_per_line
        begun = max(when, free[domain])
        free[domain] = begun + busy
        far = machine.remote_latency if domain != machine.domain(core) else 0
        runs[number].served(thread, free[domain] + machine.memory_latency + far)


def drawn_stage(draw: random.Random, machine: MulticoreCpu, threads: int, frames: bool = False) -> Stage:
    """A stage in which steps may wait for steps of lower threads, or of the turn before."""
    counts = [draw.choice([0, 1, 1, 2, 3]) for _ in range(threads)]
    counts[draw.randrange(threads)] = 2
    steps: list[tuple[TimedStep, ...]] = []
    known: list[tuple[int, int]] = []
    by_thread: list[list[TimedStep]] = [[] for _ in range(threads)]
    for number in range(max(counts)):
        for thread in range(threads):
            if number < counts[thread]:
                others = [each for each in known if each[0] != thread]
                after = draw.choice(others) if others and draw.random() < 0.4 else None
                lines = tuple(draw.choice([0, 0, 1, 5, 40]) for _ in range(machine.domains))
                cycles = draw.choice([1, 2, 30, 200])
                of_memory = draw.choice([0, 0, cycles // 2, cycles - 1])
                by_thread[thread].append(TimedStep(cycles, lines, after, work=3, of_memory=of_memory))
                known.append((thread, number))
    steps = [tuple(each) for each in by_thread]
    return Stage(tuple(steps), frames)


def drawn_machine(draw: random.Random) -> MulticoreCpu:
    cores = draw.choice([1, 2, 3, 6])
    return changed(
        TOY,
        cores=cores,
        cores_per_domain=draw.choice([1, 2, 6]),
        barrier_cycles=draw.choice([0, 1, 10]),
        handover_cycles=draw.choice([0, 20]),
        memory_cycles_per_line=draw.choice([1, 3]),
        memory_latency=draw.choice([0, 50]),
        remote_latency=draw.choice([0, 7]),
    )


def test_the_worked_example_of_ownership() -> None:
    """Section 8, C: two threads add to one line of C; the second one begins a handover after the first has ended."""
    stage = Stage(((TimedStep(60, (7,)),), (TimedStep(60, (6,), after=(0, 0)),)))
    program = program_of(TOY, stage)
    trace = engines.run(program)
    assert trace.makespan_cycles == 171
    assert waits_of(step_times(program, trace)) == {"contention": 92, "barrier": 0, "memory": 0}
    assert step_times(program, trace).end.tolist() == [72, 161]
    second = trace.issue("core") == 1
    assert trace.issue("contention_until")[second].tolist() == [92]


def test_names_of_waits_behind_a_barrier() -> None:
    """A thread waits for its own lines, whoever pays for them, then for the barrier; one alone for its lines only."""
    stage = Stage(((TimedStep(5, (2,)),), (TimedStep(9, (0,), of_memory=4),)))
    two = _until(phases_of(TOY, [Block((stage,)), Block((stage,))]), 2)
    assert (two["barrier_until"], two["memory_until"]) == ([0, 0, 67, 67], [0, 0, 57, 9])
    alone = Stage(stage.steps[:1])
    one = _until(phases_of(TOY, [Block((alone,)), Block((alone,))]), 1)
    assert (one["barrier_until"], one["memory_until"]) == ([0, 0], [0, 57])


def test_cycles_for_lines_of_memory_are_memory() -> None:
    """Of 9 cycles a core has 4 only because of lines of memory; what it does next waits as long as before."""
    steps = (TimedStep(9, (0,), of_memory=4), TimedStep(3, (0,)))
    program = program_of(TOY, Stage((steps,)))
    trace = engines.run(program)
    names = {name: cycles for name, cycles in named_cycles(program, trace, 0).totals().items() if cycles}
    assert (names, trace.makespan_cycles) == ({"busy": 8, "memory": 4}, 12)
    times = step_times(program, trace)
    assert (times.done.tolist(), times.of_memory.tolist()) == ([9, 12], [4, 0])


def _until(phases: tuple[Phase, ...], threads: int) -> dict[str, list[int]]:
    own, *others = place_of(TOY, 0, threads)
    trace = engines.run(Program(cores_of(TOY), (Task("t", ((0, phases),), (), (own,), gang=(tuple(others),)),)))
    steps = (trace.issue("core") < len(TOY.cores)) & (trace.issue("unit") == 0)
    return {name: trace.issue(name)[steps].tolist() for name in ("barrier_until", "memory_until")}


def test_products() -> None:
    for seed in range(examples(40)):
        draw = random.Random(seed)
        machine = drawn_machine(draw)
        stage = drawn_stage(draw, machine, draw.randint(1, len(machine.cores)))
        program = program_of(machine, stage)
        validate(program)
        plain = Run(machine, 0, [Block((stage,))], 0, 0)
        plainly(machine, [plain])
        for engine in engines.ENGINES:
            trace = engines.run(program, engine)
            assert trace.makespan_cycles == plain.finish, seed
            assert waits_of(step_times(program, trace)) == plain.waits, seed


def test_jobs_that_meet_in_the_memories() -> None:
    """Blocks that repeat, also backwards, several at once, with frames that come."""
    for seed in range(examples(20)):
        draw = random.Random(seed)
        machine = drawn_machine(draw)
        threads = draw.randint(1, len(machine.cores))
        steps = draw.choice([1, 2, 3, 5])
        tasks, runs = [], []
        for number in range(len(machine.cores) // threads):
            first = number * threads
            blocks = []
            for mirrored in (False, True):
                order = [steps - 1 - each if mirrored else each for each in range(steps)]
                for at, repeat in ((0, 1), (1, 1), (2, steps - 2)):
                    stages = tuple(drawn_stage(draw, machine, threads, not mirrored) for _ in range(2))
                    blocks += [Block(stages, repeat, order[at], mirrored)] if at < steps else []
            arrival, interval = draw.choice([0, 5]), draw.choice([0, 300])
            own, *others = place_of(machine, first, threads)
            phases = phases_of(machine, blocks, first)
            tasks.append(Task("job", ((0, phases),), (), (own,), arrival, interval, gang=(tuple(others),)))
            runs.append(Run(machine, first, blocks, arrival, interval))
        program = Program(cores_of(machine), tuple(tasks))
        validate(program)
        plainly(machine, runs)
        for engine in engines.ENGINES:
            trace = engines.run(program, engine)
            assert trace.task("finish").tolist() == [run.finish for run in runs], seed
            waits = [waits_of(step_times(program, trace, number)) for number in range(len(runs))]
            assert waits == [run.waits for run in runs], seed
