"""How long do requests take, and how many can be served, on one large core, four smaller ones and eight small ones?

What is simulated is in study.py beside this file. Run `python experiments/serving/run.py`; `--write` refreshes
expected.md beside it.
"""

from __future__ import annotations

import textwrap
from itertools import combinations

from experiments.holds import as_it_is, held_paragraph
from experiments.serving import coverage
from experiments.serving.study import (
    BACKLOG,
    BOUND_MS,
    CONFIDENCE,
    LONE,
    LONE_REQUESTS,
    MORE_REQUESTS,
    REQUESTS,
    TASKS,
    TOLERANCE,
    Machine,
    Results,
    Served,
    chip,
    cycles_alone,
    machines,
    peak,
    results,
    task,
)
from lstmsim.report.stability import Conclusions
from lstmsim.studies.serve.programs import alone
from lstmsim.studies.serve.result import Serving
from lstmsim.studies.shared.stability import Vary
from lstmsim.traffic.intervals import Interval


def ms(measured: Serving, each: Interval) -> str:
    """Give milliseconds with their 95 % half width, if there are enough requests for one."""
    if each.half_width is None:
        return f"{measured.ms(each.value):.4f}"
    return f"{measured.ms(each.value):.4f} ± {measured.ms(each.half_width):.4f}"


def marks(each: Served, full: bool) -> str:
    """Say what to keep in mind of a row: that more comes than the machine can do, or the verdict."""
    verdict = each.serving.verdict
    return ", ".join(["full"] * full + [verdict] * (verdict != "settled"))


def table(outcome: Results) -> list[str]:
    """A row for each machine and load."""
    lines = ["| machine | load | mean, ms | p99, ms | threads taken % | PEs useful % | waiting | |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for machine, row in outcome.runs.items():
        for load, each in row.items():
            own, full = each.serving, load * outcome.reference >= outcome.capacity[machine]
            shares = f"{100 * own.utilization:.1f} | {100 * each.useful:.1f} | {own.little_waiting.inside:.2f}"
            times = f"{ms(own, own.latency.mean)} | {ms(own, own.latency.p99)}"
            lines.append(f"| {machine.name} | {load} | {times} | {shares} | {marks(each, full)} |")
    return lines


def machine_table(outcome: Results) -> list[str]:
    """What each machine is and can do."""
    lines = ["| machine | EP | cycles of a task alone, mean | most requests a second | as a load |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for each, most in outcome.capacity.items():
        mean = sum(cycles_alone(each, name) for name in TASKS) / len(TASKS)
        share = most / outcome.reference
        lines.append(f"| {each.name} | {chip(each).cores[0].ep} | {mean:,.0f} | {most:,.0f} | {share:.3f} |")
    return lines


def bound_table(outcome: Results) -> list[str]:
    """Up to which load each machine keeps the bound."""
    lines = [
        f"| machine | p99 at most {BOUND_MS:g} ms up to load | more from load | runs |",
        "| --- | ---: | ---: | ---: |",
    ]
    for machine, each in outcome.saturation.items():
        ends = [None if rate is None else rate / outcome.reference for rate in (each.rate, each.fails_from)]
        low, high = ("-" if share is None else f"{share:.3f}" for share in ends)
        lines.append(f"| {machine.name} | {low} | {high} | {each.runs} |")
    return lines


def ranked(outcome: Results, load: float, p99: bool, cores: int | None = None) -> list[tuple[Interval, Machine]]:
    """Give latencies in ms and machines that are not full at this load, the best first.

    p99: rank by the 99th percentile, else by the mean.
    cores: only machines of so many cores; None: all.
    """
    pairs = []
    for machine, row in outcome.runs.items():
        if load * outcome.reference < outcome.capacity[machine] and cores in (None, machine.cores):
            own = row[load].serving
            each = own.latency.p99 if p99 else own.latency.mean
            pairs.append((each.scaled(own.ms(1)), machine))
    return sorted(pairs, key=lambda pair: pair[0].value)


def turns(outcome: Results, p99: bool, cores: int | None = None) -> str:
    """Which machine is best from which load on."""
    parts, best = [], None
    for load in next(iter(outcome.runs.values())):
        _, first = ranked(outcome, load, p99, cores)[0]
        parts += [f"{first.name} from load {load}"] * (first != best)
        best = first
    return ", ".join(parts)


def winners(outcome: Results) -> list[str]:
    """Which machine is best at which load, and where that changes."""
    lines = []
    for p99, title in enumerate(("Mean latency", "99th percentile")):
        lines += [f"{title}, the shortest of those that are not full:", ""]
        for load in next(iter(outcome.runs.values())):
            (least, first), (second, other), *_ = ranked(outcome, load, bool(p99))
            close = " (within the half width)" * (second.value - least.value <= (least.half_width or 0))
            close = " (too few to tell)" if least.half_width is None else close
            more = f"{100 * (second.value / least.value - 1):.1f} % more{close}"
            lines.append(f"* load {load}: {first.name}, {least.value:.4f} ms; next {other.name}, {more}")
        lines.append(f"* so, of all: {turns(outcome, bool(p99))}")
        for cores in dict.fromkeys(machine.cores for machine in outcome.runs):
            lines.append(f"* of those with {cores} core{'s' * (cores > 1)}: {turns(outcome, bool(p99), cores)}")
        lines.append("")
    return [line for each in lines for line in textwrap.wrap(each, 120, subsequent_indent="  ") or [""]]


def theory(outcome: Results) -> list[str]:
    """The formulas and the laws."""
    lines = [
        "| queue | machine | load | mean wait, cycles | formula | inside |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for each in outcome.checks:
        inside = "yes" if each.wait.holds(each.formula) else "no"
        wait = f"{each.wait.value:.1f} ± {each.wait.half_width:.1f}"
        lines.append(
            f"| {each.queue} | {each.machine.name} | {each.load:.3f} | {wait} | {each.formula:.1f} | {inside} |"
        )
    every = [each for row in outcome.runs.values() for each in row.values()] + [each.run for each in outcome.checks]
    single = [each for row in outcome.runs if row.threads == 1 for each in outcome.runs[row].values()]
    little = sum(not each.serving.little.difference and not each.serving.little_waiting.difference for each in every)
    busy = sum(not each.idle_while_waiting for each in every)
    alone = sum(each.serving.service_cycles == each.alone_cycles for each in single)
    return [
        *lines,
        "",
        f"* Little's law, in whole cycles, of the queue and of the system: exact on {little} of {len(every)} runs.",
        f"* Work conservation: not a single thread-cycle free while a request waits on {busy} of {len(every)} runs.",
        f"* One thread: all services together take exactly what they take alone on {alone} of {len(single)} runs.",
    ]


def summary(outcome: Results) -> str:
    """Tables and what they say, as Markdown."""
    reference = f"{outcome.reference:,.0f} requests a second"
    texts = (
        f"{', '.join(TASKS)}, equally often; {REQUESTS:,} requests on average in each run, the same for all machines; "
        f"intervals of 95 % from batch means. Load 1 is {reference}, the most that any of the machines can do with one "
        "thread, by what the tasks take alone. EP: of those that the adder tree of the preset can be set to (CAT), the "
        "one with which the tasks take the least; 8,192 multipliers have the tree of 16,384.",
        "The most requests a second: of one thread by what the tasks take alone, of more threads measured on a backlog "
        f"of {BACKLOG:,} requests on average, to about a thousandth. All multipliers useful in all cycles would be "
        f"{peak():,.0f}.",
    )
    marked = (
        "full: more comes than the machine can do by the table above; unstable, too few: the verdicts of `simulate "
        "--serving` where it is not `settled` (docs/serving.md); values without ± have too few requests for an "
        "interval. Threads taken: share of their cycles with a request; PEs useful: of all PE-cycles; waiting: "
        "requests on average; ± 0.0000: the percentile is the time of the longest task alone."
    )
    checked = (
        f"Cores with one thread: one task ({LONE[0]}; {min(LONE_REQUESTS.values()):,} requests on average, "
        f"{LONE_REQUESTS[0.9]:,} at load 0.9; other arrivals in each row) or the mix ({MORE_REQUESTS:,} where the "
        "table's run has too few); load: of that machine; the intervals together hold with "
        f"{100 * CONFIDENCE:g} % (Bonferroni)."
    )
    lines = ["# Serving the DeepBench LSTMs", ""]
    for each in texts:
        lines += [*textwrap.wrap(each, 120, break_on_hyphens=False), ""]
    lines += [*machine_table(outcome), "", "## Latency against load", "", *table(outcome), ""]
    lines += [*textwrap.wrap(marked, 120), "", *winners(outcome), "## The highest load within a bound", ""]
    lines += [f"The bound is an assumption; the bisection ends within {TOLERANCE:g} of the load.", ""]
    lines += [*bound_table(outcome), "", "## Theory", "", *textwrap.wrap(checked, 120, break_on_hyphens=False), ""]
    lines += [*theory(outcome), "", "## What intervals cover", "", *textwrap.wrap(COVERED, 120), ""]
    return "\n".join([*lines, *coverage.table(outcome.coverage), ""])


COVERED = (
    "Nominal 95 %, on M/D/1 whose truth is known (coverage.py): the share of runs that have an interval, and of those "
    "the share whose interval holds the true value. A run begins empty and its first tenth is left out."
)


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """Which machine can do more requests with one thread, by what the tasks take alone."""
    chips = {each.name: vary(chip(each)) for each in machines() if each.threads == 1}
    rates = {
        name: len(own.cores) / sum(alone(own, task(each)).latency_cycles for each in TASKS)
        for name, own in chips.items()
    }
    return {f"{a} or {b} can do more": max((a, b), key=rates.__getitem__) for a, b in combinations(rates, 2)}


def holds() -> str:
    """Whether the order of the machines holds, as a paragraph."""
    said = (
        f"Latencies under load are not asked again: each answer takes a run of {REQUESTS:,} requests for each machine."
    )
    return held_paragraph([chip(each) for each in machines() if each.threads == 1], conclusions, said=said)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("serving")
