"""Is one core that splits into four full ones, and back, better than one large core?

65536 multipliers: as one core, as four of 16384 with a request on each, and as these four joined, each with a quarter
of the rows of every matrix and h sent around (`split: rows`). Remarn (Que et al., ACM TRETS 16, 2023, doi
10.1145/3534969) reports 2.91 times the performance of the single-threaded NPU for four cores with two threads each.

Tasks are the five LSTMs of DeepBench (Zhao et al. 2019, arXiv:1909.13654, Table 6); cores, latencies and EP as in the
experiment `serving`. Assumptions: those of docs/timing.md, section 9, on what joins the cores; that all requests of a
batch are there at once; the steps and sizes of the stacks and of the mix.

Run `python experiments/splitting/run.py`; `--write` refreshes expected.md beside it.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod

from experiments.holds import as_it_is, held_paragraph
from experiments.room import room_paragraph
from experiments.serving.study import SIZES, TASKS, Machine, chip, known, task
from experiments.splitting.loads import EXPLAINED, LOADS, Latencies, at_load, load_table, load_verdict
from lstmsim import ColumnNpu, Report, Scenario, load_scenario, run
from lstmsim.machines.column.npu import Exchange
from lstmsim.model.scenario import Chip, Job
from lstmsim.report.stability import Conclusions
from lstmsim.studies.search.run import reachable
from lstmsim.studies.shared.stability import Vary

PUBLISHED = 2.91
#: Requests that come at once: two for each thread of the machine that has most of them.
REQUESTS = 16
LATENCIES, WIDTHS = (1, 8, 32, 128), (16, 64, 256)
#: Four equal layers, one for each core.
STACKS = {"4 x lstm-512, 25 steps": 512, "4 x lstm-1024, 25 steps": 1024}
LARGE, SMALL, ROUNDS, BURST, SOON = "lstm-2048-25", "lstm-256-150", 4, 8, 2000

ONE, FOUR = SIZES[:2]
BIG, QUAD = Machine(*ONE, 1), Machine(*FOUR, 1)
BIG_2, QUAD_2 = (replace(each, threads=2) for each in (BIG, QUAD))


@dataclass(frozen=True)
class Results:
    """The whole study; joined machines have `joined` and their name as key.

    alone: cycles of one request, by task and machine.
    batch: cycles of `REQUESTS` requests at once, by task and machine.
    exchange: cycles of a joined request, by task and exchange.
    stacks: cycles of a stack, by the way in which it runs.
    mix: the report of the mix, by policy.
    loads: mean latencies by load and policy.
    """

    alone: dict[str, dict[str, int]]
    batch: dict[str, dict[str, int]]
    exchange: dict[str, dict[Exchange, int]]
    stacks: dict[str, dict[str, int]]
    mix: dict[str, Report]
    loads: Latencies = field(default_factory=dict)


@cache
def joined_chip(threads: int = 1) -> ColumnNpu:
    """Build four cores, with the EP of the preset's tree at which the joined tasks take the least in all."""
    core = known(FOUR[2]).cores[0]
    eps = reachable(core.tree_inputs or core.ep, core.cat)
    machine = replace(QUAD, threads=threads)

    def total(ep: int) -> int:
        return sum(makespan(chip(replace(machine, threads=1), ep), [joined(task(name))]) for name in TASKS)

    return chip(machine, min(eps, key=total))


def whole(job: Job) -> Job:
    """The job on one core."""
    return job


def joined(job: Job) -> Job:
    """The job over all cores."""
    return replace(job, split="rows")


def makespan(machine: Chip, jobs: list[Job]) -> int:
    """Cycles until all jobs are finished."""
    return run(Scenario(machine, tuple(jobs))).report.makespan_cycles


def machines() -> dict[str, tuple[ColumnNpu, bool]]:
    """Every machine and whether its cores are joined; the single-threaded one is the first."""
    chips = {each.name: (chip(each), False) for each in (BIG, BIG_2, QUAD, QUAD_2)}
    return chips | {f"joined {each.name}": (joined_chip(each.threads), True) for each in (QUAD, QUAD_2)}


def batches(names: tuple[str, ...], count: int) -> dict[str, dict[str, int]]:
    """Cycles of so many requests of each task at once, on each machine."""
    return {
        name: {
            each: makespan(machine, [joined(task(name)) if join else task(name)] * count)
            for each, (machine, join) in machines().items()
        }
        for name in names
    }


def exchanges(names: tuple[str, ...]) -> dict[str, dict[Exchange, int]]:
    """One joined request of each task with a slower and a faster exchange."""
    links = [Exchange(latency_cycles=each) for each in LATENCIES] + [Exchange(width=each) for each in WIDTHS]
    machine = joined_chip()
    return {
        name: {link: makespan(replace(machine, exchange=link), [joined(task(name))]) for link in dict.fromkeys(links)}
        for name in names
    }


def stack(hidden: int) -> Job:
    """Four layers."""
    layers = [{"cell": "lstm", "hidden": hidden, "input": hidden}] * 4
    return load_scenario({"chip": FOUR[2], "jobs": [{"model": {"layers": layers}, "steps": 25}]}).jobs[0]


def stacked(job: Job) -> dict[str, int]:
    """One stack: on the big core and on a small one layer by layer and step by step, split in both ways."""
    by_step = replace(job, model=replace(job.model, layer_order="step"))
    cores, threads = chip(QUAD), chip(replace(QUAD, threads=4))
    return {
        "big core, layer by layer": makespan(chip(BIG), [job]),
        "big core, step by step": makespan(chip(BIG), [by_step]),
        "1 of 4 cores, layer by layer": makespan(cores, [job]),
        "1 of 4 cores, a layer on each of 4 threads": makespan(
            threads, [replace(job, split="layers", cores=(0, 0, 0, 0))]
        ),
        "4 cores, a layer on each": makespan(cores, [replace(job, split="layers")]),
        "4 cores, a quarter of the rows on each": makespan(joined_chip(), [joined(job)]),
    }


def mixed() -> dict[str, Report]:
    """Rounds of a large request, then a burst of small ones while it runs: each policy on one thread a core."""
    together = joined_chip()
    # every policy is through with a round before the next one
    rounds = (
        makespan(machine, [change(task(LARGE)), *[change(task(SMALL))] * BURST])
        for machine, change in ((chip(BIG), whole), (chip(QUAD), whole), (together, joined))
    )
    period = max(rounds) * 11 // 10
    large = [replace(task(LARGE), name=f"large-{n}", arrival=n * period) for n in range(ROUNDS)]
    small = [
        replace(task(SMALL), name=f"small-{n}-{k}", arrival=n * period + SOON)
        for n in range(ROUNDS)
        for k in range(BURST)
    ]
    jobs = {
        "one big core": (chip(BIG), large + small),
        "four cores": (chip(QUAD), large + small),
        "always joined": (together, [joined(each) for each in large + small]),
        "joined for the large, split for the small": (together, [joined(each) for each in large] + small),
        "each decides as it starts": (together, [replace(each, split="auto") for each in large + small]),
    }
    return {name: run(Scenario(machine, tuple(each))).report for name, (machine, each) in jobs.items()}


def results(small: bool = False) -> Results:
    """Everything; `small`: one task, no stacks, no mix."""
    names = TASKS[1:2] if small else TASKS
    stacks = {} if small else {name: stacked(stack(hidden)) for name, hidden in STACKS.items()}
    loads = {} if small else {load: at_load(joined_chip(), load) for load in LOADS}
    return Results(
        batches(names, 1), batches(names, REQUESTS), exchanges(names), stacks, {} if small else mixed(), loads
    )


def speedups(outcome: Results, name: str) -> dict[str, float]:
    """How many times the requests a second of the single-threaded big core a machine serves, by task."""
    return {each: row[BIG.name] / row[name] for each, row in outcome.batch.items()}


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return float(prod(values) ** (1 / len(values)))


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """On which side of the published figure each task lies."""
    big, quad = (vary(chip(each)) for each in (BIG, QUAD_2))
    gained = {
        name: makespan(big, batch) / makespan(quad, batch) for name in TASKS for batch in [[task(name)] * REQUESTS]
    }
    return {
        f"4 cores, 2 threads on {name}": f"{'below' if gain < PUBLISHED else 'at or above'} {PUBLISHED}"
        for name, gain in gained.items()
    }


def holds() -> str:
    """Whether the headline holds, as a paragraph."""
    return held_paragraph([chip(BIG), chip(QUAD_2)], conclusions)


def grid(first: str, rows: dict[str, dict[str, int]]) -> list[str]:
    """A table of cycles: a row for each task, a column for each machine."""
    columns = list(next(iter(rows.values())))
    lines = [f"| {first} | {' | '.join(columns)} |", "| --- |" + " ---: |" * len(columns)]
    return [
        *lines,
        *(f"| {name} | {' | '.join(f'{cycles:,}' for cycles in row.values())} |" for name, row in rows.items()),
    ]


def gains(outcome: Results) -> list[str]:
    """Requests a second, as multiples of those of the single-threaded big core."""
    machines = [each for each in next(iter(outcome.batch.values())) if each != BIG.name]
    lines = [f"| requests a second | {' | '.join(machines)} |", "| --- |" + " ---: |" * len(machines)]
    every = {each: speedups(outcome, each) for each in machines}
    for name in outcome.batch:
        lines.append(f"| {name} | {' | '.join(f'{every[each][name]:.2f}' for each in machines)} |")
    means = (f"{mean(list(every[each].values())):.2f}" for each in machines)
    return [*lines, f"| geometric mean of {len(outcome.batch)} | {' | '.join(means)} |"]


def exchange_table(outcome: Results) -> list[str]:
    """One joined request against latency and width of the exchange."""
    links = list(next(iter(outcome.exchange.values())))
    names = [f"latency {each.latency_cycles}, width {each.width}" for each in links]
    rows = {name: dict(zip(names, row.values(), strict=True)) for name, row in outcome.exchange.items()}
    return grid("one joined request, cycles", rows)


def mix_table(outcome: Results) -> list[str]:
    """Mean latencies of the mix."""
    lines = ["| policy | large, mean ms | small, mean ms | all done, cycles |", "| --- | ---: | ---: | ---: |"]
    for name, report in outcome.mix.items():
        parts = []
        for kind in ("large", "small"):
            cycles = [job.latency for job in report.jobs if job.name.startswith(kind)]
            parts.append(f"{sum(cycles) / len(cycles) / report.frequency_mhz / 1000:.4f}")
        lines.append(f"| {name} | {' | '.join(parts)} | {report.makespan_cycles:,} |")
    return lines


def mix_verdict(outcome: Results) -> str:
    """What splitting and joining again brings over cores that stay apart."""
    apart, both = (outcome.mix[name] for name in ("four cores", "joined for the large, split for the small"))
    ratios = {
        kind: sum(job.latency for job in both.jobs if job.name.startswith(kind))
        / sum(job.latency for job in apart.jobs if job.name.startswith(kind))
        for kind in ("large", "small")
    }
    return (
        f"Joined for the large requests and split for the small ones, the cores take {ratios['large']:.2f} times as "
        f"long for a large request as cores that stay apart, and {ratios['small']:.2f} times for a small one."
    )


def verdict(outcome: Results) -> str:
    """Say what the published figure is compared with."""
    every = speedups(outcome, QUAD_2.name)
    above = [name for name, gain in every.items() if gain >= PUBLISHED]
    return (
        f"What these tasks gain on four cores with two threads each is {min(every.values()):.2f} "
        f"({min(every, key=lambda name: every[name])}) to {max(every.values()):.2f} "
        f"({max(every, key=lambda name: every[name])}), geometric mean {mean(list(every.values())):.2f}; "
        f"{len(above)} of {len(every)} gain Remarn's {PUBLISHED} times or more. Its mix of requests is not published: "
        "one of mostly small networks would come to it, an even one of these does not."
    )


def summary(outcome: Results) -> str:
    """Tables and what they say, as Markdown."""
    lines = ["# One core that splits into four, and back", ""]
    lines += [*textwrap.wrap(verdict(outcome), 120), "", *room_paragraph("column-npu-64k", "Remarn"), ""]
    lines += ["## One request", ""]
    text = (
        "Cycles of one request on an empty machine; joined: over all four cores, each with a quarter of the rows. EP: "
        f"{chip(BIG).cores[0].ep} of the big core, {chip(QUAD).cores[0].ep} of the small ones, "
        f"{joined_chip().cores[0].ep} of the joined ones (of those that the preset's tree can be set to, the one with "
        "which all tasks together take the least). Where a quarter of the rows does not fill row blocks well, joined "
        "cores lose: lstm-1536 has 1,536 rows a core for blocks of 1,024."
    )
    lines += [
        *textwrap.wrap(text, 120),
        "",
        *grid("one request, cycles", outcome.alone),
        "",
        f"## {REQUESTS} requests at once",
        "",
    ]
    lines += [
        *grid(f"{REQUESTS} requests, cycles", outcome.batch),
        "",
        *gains(outcome),
        "",
        "## What the exchange costs",
        "",
    ]
    lines += exchange_table(outcome)
    if outcome.stacks:
        lines += ["", "## Stacks of layers", "", *grid("one request, cycles", outcome.stacks)]
    if outcome.mix:
        text = (
            f"{ROUNDS} rounds: {LARGE} comes to an empty machine; {SOON:,} cycles later, {BURST} x {SMALL}. One thread "
            "a core, first come, first served; a joined request waits until all cores are free."
        )
        lines += ["", "## A mix that changes", "", *textwrap.wrap(text, 120), "", *mix_table(outcome)]
        lines += ["", *textwrap.wrap(mix_verdict(outcome), 120)]
    if outcome.loads:
        lines += ["", "## Who decides, at which load", "", *textwrap.wrap(EXPLAINED, 120), ""]
        lines += [*load_table(outcome.loads), "", *textwrap.wrap(load_verdict(outcome.loads), 120)]
    return "\n".join([*lines, ""])


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("splitting")
