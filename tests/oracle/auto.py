"""Jobs that find out at their admission how many cores they take, cycle by cycle (section 11.6), first come first
served."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.model.cell import REDUCTIONS
from lstmsim.model.scenario import Job, Scenario
from tests.oracle.split import Member, Seen, SplitCore, connected, finish_of
from tests.oracle.thread import NEVER, Thread


@dataclass
class Running:
    """A job on its cores: the thread of each."""

    places: list[tuple[int, int]]
    threads: list[Thread]
    seen: dict[int, Seen]
    start: int

    @property
    def finish(self) -> int:
        if len(self.threads) == 1:
            return self.threads[0].finish
        return finish_of([each for each in self.threads if isinstance(each, Member)], self.seen)


def most_members(job: Job, free: int) -> int:
    """Section 11.6: over how many of so many free cores its rows can be cut."""
    cells = [(layer, layer.cell) for layer in job.model.layers]
    if any(node.operation in REDUCTIONS for _, cell in cells for node in cell.nodes):
        return 1
    return min(free, *(layer.units(stage.rows) for layer, cell in cells for stage in cell.stages))


def chosen(job: Job, waiting: list[Job], cores: list[SplitCore]) -> list[int]:
    """The cores that a job takes now, none if there is no free thread."""
    allowed = job.allowed(len(cores))
    free = [each for each in allowed if None in cores[each].threads]
    if not free:
        return []
    wanted = {each for other in waiting if other is not job for each in other.allowed(len(cores))}
    members = most_members(job, len(free)) if job.split == "auto" and wanted.isdisjoint(allowed) else 1
    if members > 1:
        return free[:members]
    return [min(free, key=lambda each: (sum(thread is not None for thread in cores[each].threads), each))]


def begin(job: Job, place: list[int], cores: list[SplitCore], now: int) -> Running:
    core = cores[place[0]].core
    threads: list[Thread] = [Thread(0, job, now, core)]
    seen: dict[int, Seen] = {}
    if len(place) > 1:
        members = [Member(replace(job, split="rows"), core, number, len(place)) for number in range(len(place))]
        seen = connected(members, place)
        threads = list(members)
    contexts = [cores[each].threads.index(None) for each in place]
    for on, context, thread in zip(place, contexts, threads, strict=True):
        cores[on].threads[context] = thread
    return Running(list(zip(place, contexts, strict=True)), threads, seen, now)


def simulate_auto(scenario: Scenario) -> tuple[list[tuple[list[tuple[int, int]], int, int]], list[SplitCore]]:
    """Per job its threads (core, context), start and finish; and the cores."""
    chip = scenario.chip
    assert isinstance(chip, ColumnNpu)
    cores = [SplitCore(core, [None] * core.threads, exchange=chip.exchange) for core in chip.cores]
    order = sorted(scenario.jobs, key=lambda job: job.arrival)
    running: dict[str, Running] = {}
    done: dict[str, tuple[list[tuple[int, int]], int, int]] = {}
    now = 0
    while len(done) < len(scenario.jobs):
        for name, each in list(running.items()):
            if each.finish <= now:
                done[name] = (each.places, each.start, now)
                for on, context in each.places:
                    cores[on].threads[context] = None
                del running[name]
        waiting = [job for job in order if job.arrival <= now]
        for job in list(waiting):
            place = chosen(job, waiting, cores)
            if place:
                running[job.name] = begin(job, place, cores, now)
                waiting.remove(job)
                order.remove(job)
        for core in cores:
            core.tail(now)
        for core in cores:
            core.link(now)
            core.step(now)
        now += 1
        assert now < NEVER
    return [done[job.name] for job in scenario.jobs], cores
