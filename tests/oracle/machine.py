"""The cores, cycle by cycle: issue, tail, admission, names of cycles (sections 3, 4, 5 and 8.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

from lstmsim.machines.column.npu import ColumnCore
from lstmsim.model.scenario import Job, Scenario
from tests.oracle.delta import DeltaThread
from tests.oracle.thread import NEVER, Thread
from tests.oracle.tiles import row_blocks


@dataclass
class OracleCore:
    core: ColumnCore
    threads: list[Thread | None]
    active: int = 0
    fresh: bool = False
    switching_until: int = 0
    tail_free: int = 0
    names: dict[str, int] = field(default_factory=dict)
    macs: int = 0

    def cycle(self, now: int) -> None:
        self.tail(now)
        name = self.step(now)
        self.names[name] = self.names.get(name, 0) + 1

    def tail(self, now: int) -> None:
        """First come first served between the threads, in its own order within a thread."""
        if now >= self.tail_free:
            waiting = [(each.ready_from(), number) for number, each in enumerate(self.threads) if each is not None]
            come, number = min(waiting, default=(NEVER, 0))
            thread = self.threads[number]
            if come <= now and thread is not None:
                self.tail_free = now + thread.enter_tail(now)

    def step(self, now: int) -> str:
        if now < self.switching_until:
            return "switch"
        states = [None if thread is None else thread.state(now) for thread in self.threads]
        count = len(states)
        ring = [(self.active + k) % count for k in range(count)]
        if self.core.thread_policy == "fine" and not self.fresh:
            ring = ring[1:] + ring[:1]
        for index in ring:
            if states[index] == "issue":
                if index != self.active and self.core.switch_cycles:
                    self.active, self.fresh = index, True
                    self.switching_until = now + self.core.switch_cycles
                    return "switch"
                self.active, self.fresh = index, False
                thread = self.threads[index]
                assert thread is not None
                self.macs += thread.issue(now)
                return "busy"
        return next((name for name in ("hazard", "backpressure", "input", "drain") if name in states), "idle")


def may_run(job: Job, core: ColumnCore) -> bool:
    for layer in job.model.layers:
        for number, stage in enumerate(layer.cell.stages):
            if core.vp < len(stage.gates):
                return False
            if core.block_order == "column" and core.accumulator_banks < len(row_blocks(layer, core, number)):
                return False
    return True


def simulate(scenario: Scenario) -> tuple[list[tuple[int, int, int, int]], list[tuple[dict[str, int], int]]]:
    """Per job (core, thread, start, finish); per core (named cycles, useful multiply-accumulates)."""
    cores = [OracleCore(core, [None] * core.threads) for core in scenario.chip.cores]  # type: ignore[attr-defined]
    order = sorted(range(len(scenario.jobs)), key=lambda index: (scenario.jobs[index].arrival, index))
    done: dict[int, tuple[int, int, int, int]] = {}
    now = 0
    while True:
        for number, core in enumerate(cores):
            for context, thread in enumerate(core.threads):
                if thread is not None and thread.finish == now:
                    done[thread.index] = (number, context, thread.start, now)
                    core.threads[context] = None
        if len(done) == len(scenario.jobs):
            break
        for index in list(order):
            job = scenario.jobs[index]
            allowed = [
                (sum(thread is not None for thread in core.threads), number)
                for number, core in enumerate(cores)
                if number in job.allowed(len(cores)) and None in core.threads and may_run(job, core.core)
            ]
            if job.arrival <= now and allowed:
                core = cores[min(allowed)[1]]
                make = Thread if core.core.delta is None else DeltaThread
                core.threads[core.threads.index(None)] = make(index, job, now, core.core)
                order.remove(index)
        for core in cores:
            core.cycle(now)
        now += 1
    return [done[index] for index in range(len(scenario.jobs))], [(core.names, core.macs) for core in cores]
