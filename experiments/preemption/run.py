"""What does preemption buy where short and long networks share a core: first come first served, or the shortest first?

What is simulated, and what is assumed, is in study.py beside this file. Run `python experiments/preemption/run.py`;
`--write` refreshes expected.md beside it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

from experiments.holds import as_it_is, held_paragraph
from experiments.preemption.study import (
    GRUS,
    LOADS,
    LSTMS,
    MIXES,
    POLICIES,
    TASKS,
    Outcome,
    Results,
    alone_cycles,
    chip,
    drawn,
    outcome,
    results,
    task,
)
from experiments.room import room_paragraph
from lstmsim.base.wording import ranged
from lstmsim.report.stability import Conclusions
from lstmsim.studies.shared.stability import Vary
from lstmsim.traffic.intervals import student_t

#: PREMA's figures, of its abstract.
PUBLISHED = {"ANTT": 7.8, "STP": 1.4, "misses": 4.8}
#: A task misses if it takes longer than so many times its time alone; the first table has the one named `TARGET`.
TARGETS, TARGET = (2, 4, 8, 16), 4
FIRST, SHORTEST, STOPPING, URGENT, URGENT_STOPPING = POLICIES
#: Sets whose numbers are printed one by one.
SHOWN = 4
#: Sets of each setting that are asked again with other latencies.
ASKED = 20

#: What a set is asked.
Measure = Callable[[Outcome], float]


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its 95 % interval over independent sets."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 2) -> str:
        """`1.40 (1.31 to 1.50)`."""
        return f"{self.value:,.{digits}f} ({self.low:,.{digits}f} to {self.high:,.{digits}f})"


def mean(values: Sequence[float]) -> Estimate:
    """The mean over sets."""
    count, middle = len(values), sum(values) / len(values)
    spread = sqrt(sum((each - middle) ** 2 for each in values) / (count - 1))
    half = student_t(0.95, count - 1) * spread / sqrt(count)
    return Estimate(middle, middle - half, middle + half)


def times(one: Sequence[float], two: Sequence[float]) -> Estimate:
    """How many times `two` the sets have of `one`: the geometric mean, set by set."""
    mean_log = mean([log(a / b) for a, b in zip(one, two, strict=True)])
    return Estimate(exp(mean_log.value), exp(mean_log.low), exp(mean_log.high))


def fewer(one: Sequence[float], two: Sequence[float]) -> Estimate | None:
    """How many times as large the mean of `one` is as that of `two`; None if `two` is 0 everywhere.

    The ratio estimator of paired samples (Cochran, Sampling Techniques, 1977, chapter 6): a set may have none.
    """
    if not sum(two):
        return None
    ratio = sum(one) / sum(two)
    off = mean([a - ratio * b for a, b in zip(one, two, strict=True)])
    half = (off.high - off.value) * len(two) / sum(two)
    return Estimate(ratio, ratio - half, ratio + half)


def missed(target: float) -> Measure:
    """The share of a set's tasks that take longer than so many times their time alone."""
    return lambda each: each.misses(target)


def column(outcome: Results, mix: str, load: float, policy: str, measure: Measure) -> list[float]:
    """A measure of every set."""
    return [measure(each) for each in outcome[mix, load, policy]]


def gain(outcome: Results, mix: str, load: float, policy: str, name: str) -> Estimate | None:
    """How many times better than first come first served: ANTT, STP or misses."""
    measures: dict[str, Measure] = {
        "ANTT": lambda each: each.antt,
        "STP": lambda each: each.stp,
        "misses": missed(TARGET),
        "longest": lambda each: each.longest,
    }
    base, own = (column(outcome, mix, load, each, measures[name]) for each in (FIRST, policy))
    if name == "STP":
        return times(own, base)
    return fewer(base, own) if name == "misses" else times(base, own)


def settings(outcome: Results) -> list[tuple[str, float]]:
    """Mixes and loads, in their order."""
    return list(dict.fromkeys((mix, load) for mix, load, _ in outcome))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> list[str]:
    """Make a table whose first `words` columns are words."""
    lines = [f"| {' | '.join(heads)} |", "| " + " | ".join(["---"] * words + ["---:"] * (len(heads) - words)) + " |"]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def measures_table(outcome: Results) -> list[str]:
    """ANTT, STP and misses of every policy, and how many times better than first come first served."""
    heads = ("mix, load", "policy", "ANTT", "better, times", "STP", "better, times", "misses, %", "fewer, times")
    rows = []
    for mix, load in settings(outcome):
        for policy in POLICIES:
            cells = [f"{mix}, {load}", policy]
            values = (lambda each: each.antt, lambda each: each.stp, lambda each: 100 * each.misses(TARGET))
            for (name, digits), measure in zip((("ANTT", 2), ("STP", 2), ("misses", 1)), values, strict=True):
                better = None if policy == FIRST else gain(outcome, mix, load, policy, name)
                cells += [mean(column(outcome, mix, load, policy, measure)).text(digits)]
                cells += ["-" if better is None else better.text()]
            rows.append(cells)
    return table(heads, rows, words=2)


def payers_table(outcome: Results) -> list[str]:
    """The longest task, the urgent ones, tasks that are later than first come first served, stops, all done."""
    heads = ("mix, load", "policy", "NTT of the longest task", "NTT of urgent tasks", "later than if first come, %")
    rows = []
    for mix, load in settings(outcome):
        first = outcome[mix, load, FIRST]
        for policy in POLICIES:
            own = outcome[mix, load, policy]
            pairs = list(zip(first, own, strict=True))
            later = [100 * sum(a < b for a, b in zip(one.ntt, two.ntt, strict=True)) / TASKS for one, two in pairs]
            urgent = [each.urgent for each in own if each.urgent is not None]
            stops, makespan = mean([each.stops for each in own]), [two.makespan / one.makespan for one, two in pairs]
            cells = [mean([each.longest for each in own]).text(), mean(urgent).text(), f"{mean(later).value:.1f}"]
            cells += [f"{stops.value:.2f}", f"{100 * (mean(makespan).value - 1):+.3f}"]
            rows.append([f"{mix}, {load}", policy, *cells])
    return table((*heads, "stops a set", "all done, % later"), rows, words=2)


def targets_table(outcome: Results) -> list[str]:
    """Give the misses for each definition of a miss."""
    heads = ("mix, load", "policy", *(f"{target} times alone" for target in TARGETS))
    rows = [
        [f"{mix}, {load}", policy]
        + [f"{mean(column(outcome, mix, load, policy, missed(target))).value:.1%}" for target in TARGETS]
        for mix, load in settings(outcome)
        for policy in (FIRST, SHORTEST, STOPPING)
    ]
    return table(heads, rows, words=2)


def sets_table(outcome: Results) -> list[str]:
    """The first sets of the first mix, one by one."""
    mix, load = next(iter(outcome))[0], LOADS[1]
    heads = ("set", "tasks, cycles alone", *(f"ANTT, {policy}" for policy in POLICIES))
    rows = []
    for number in range(SHOWN):
        cycles = ", ".join(f"{alone_cycles(job):,}" for job in drawn(mix, number, load))
        rows.append([str(number), cycles, *(f"{outcome[mix, load, policy][number].antt:.3f}" for policy in POLICIES)])
    return table(heads, rows, words=2)


def gains(outcome: Results, policy: str, name: str) -> list[Estimate]:
    """How many times better than first come first served, at every setting where that is known."""
    every = (gain(outcome, mix, load, policy, name) for mix, load in settings(outcome))
    return [each for each in every if each is not None]


def span(outcome: Results, policy: str, name: str) -> str:
    """`1.09 to 2.30`, over all settings; `2.62` where all are alike."""
    values = [each.value for each in gains(outcome, policy, name)]
    return ranged(f"{min(values):.2f}", f"{max(values):.2f}") if values else "any number of"


def beside_published(outcome: Results) -> str:
    """Which of PREMA's averages lie inside the range of the settings."""
    places = []
    for name, value in PUBLISHED.items():
        every = [each.value for each in gains(outcome, STOPPING, name)]
        place = "inside" if min(every) <= value <= max(every) else "below" if value < min(every) else "above"
        places.append(f"{name} {value} ({place})")
    better = all(each.low > 1 for name in PUBLISHED for each in gains(outcome, STOPPING, name))
    kind = "All three are better at every setting" if better else "Not all three are better at every setting"
    return f"{kind}. PREMA's averages beside these ranges: {', '.join(places)}."


def payers(outcome: Results) -> str:
    """Say which tasks are worse off with preemption."""
    longest = gains(outcome, STOPPING, "longest")
    always = all(each.high < 1 for each in longest)
    worst = 1 / min(each.value for each in longest)
    ends = []
    for mix, load in settings(outcome):
        pairs = zip(outcome[mix, load, FIRST], outcome[mix, load, STOPPING], strict=True)
        ends.append(100 * (mean([two.makespan / one.makespan for one, two in pairs]).value - 1))
    return (
        f"The long tasks pay: the longest of a set takes up to {worst:.2f} times as long on average as first come, "
        f"first served ({'longer at every setting' if always else 'not longer at every setting'}), because every "
        "shorter task that comes stops it. The core as such loses little: what has begun has to drain before each "
        f"change of tasks, so a set is done {max(ends):.2f} % later at most."
    )


def verdict(outcome: Results) -> list[str]:
    """What came out, as paragraphs."""
    own, short, long = (task(name)[1] for name in ("lstm-256-150", "lstm-1024-25", "gru-2816-750"))
    least = min(task(name)[1] for name in GRUS)
    lengths = [task(name)[1] for name in LSTMS]
    return [
        f"Shortest first with preemption against first come, first served: ANTT {span(outcome, STOPPING, 'ANTT')} "
        f"times better, STP {span(outcome, STOPPING, 'STP')} times, {span(outcome, STOPPING, 'misses')} times fewer "
        f"tasks that take more than {TARGET} times their time alone. {beside_published(outcome)} How much it is "
        f"depends on how unlike the tasks are: the LSTMs take {min(lengths):,} to {max(lengths):,} cycles alone, with "
        f"the GRUs it is "
        f"{least:,} to {long:,}, and a task of {least:,} cycles behind one of {long:,} decides the mean of its set.",
        f"The order alone, without preemption, brings ANTT {span(outcome, SHORTEST, 'ANTT')} times and STP "
        f"{span(outcome, SHORTEST, 'STP')} times: a short task still waits for the end of a long one that has begun. "
        f"Preemption by priorities that say nothing of length brings ANTT {span(outcome, URGENT_STOPPING, 'ANTT')} "
        f"times and STP {span(outcome, URGENT_STOPPING, 'STP')} times; it serves the urgent tasks, not the mean.",
        payers(outcome),
        "Not as in PREMA: its machine, its networks, and its policy, of which summaries say that tokens grow with "
        "priority and slowdown; here a long task waits for every shorter one, however long it has waited, and nothing "
        "is moved when a task is stopped. PREMA's figures are those of its abstract (latency, throughput, SLA "
        "satisfaction); that they are ANTT, STP and misses against first come, first served was not verified in the "
        "paper itself. How long a task is, is known here from its multiply-accumulates, which can mislead: "
        f"lstm-256-150 ({own:,} cycles alone) counts as shorter than lstm-1024-25 ({short:,}).",
    ]


def summary(outcome: Results) -> str:
    """Tables and what they say, as Markdown."""
    count = len(next(iter(outcome.values())))
    mix = next(iter(outcome))[0]
    lines = ["# What preemption buys", ""]
    for paragraph in verdict(outcome):
        lines += [*textwrap.wrap(paragraph, 120), ""]
    lines += [*room_paragraph("column-npu-64k", "PREMA"), ""]
    about = (
        f"{count} sets of {TASKS} tasks for each mix, the same at every load and under every policy; in brackets 95 % "
        "intervals over sets (Student). Load: the set's time alone divided by the time in which its tasks come. Times "
        f"better: the geometric mean of the sets; misses: tasks that take more than {TARGET} times their time alone, "
        "and the ratio of their means. With the GRUs the mean ANTT hangs on the few sets with a short task behind a "
        "very long one."
    )
    lines += ["## ANTT, STP, misses", "", *textwrap.wrap(about, 120), "", *measures_table(outcome), ""]
    lines += ["## Who pays", "", *payers_table(outcome), "", "## Misses, by what counts as one", ""]
    lines += [*targets_table(outcome), "", f"## The first sets: {mix}, load {LOADS[1]}", "", *sets_table(outcome), ""]
    return "\n".join(lines)


def conclusions(vary: Vary = as_it_is) -> Conclusions:
    """Whether shortest first with preemption is better than first come, first served, on some sets of each setting."""
    machine = vary(chip())
    found = {
        (mix, load, policy): [outcome(drawn(mix, number, load), policy, machine) for number in range(ASKED)]
        for mix in MIXES
        for load in LOADS
        for policy in (FIRST, STOPPING)
    }
    gained = {(*at, name): gain(found, *at, STOPPING, name) for at in settings(found) for name in PUBLISHED}
    return {
        f"{name} of {mix} at load {load:g}": "better" if each is None or each.value > 1 else "not better"
        for (mix, load, name), each in gained.items()
    }


def holds() -> str:
    """Whether the headline holds, as a paragraph."""
    said = f"Asked of the first {ASKED} sets of each setting, at the same arrivals."
    return held_paragraph([chip()], conclusions, said=said)


def text(small: bool = False) -> str:
    """The summary; `small`: of a part of it."""
    return summary(results(small)) + ("" if small else holds())


if __name__ == "__main__":
    from experiments.run import main

    main("preemption")
