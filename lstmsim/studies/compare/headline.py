"""The answer of a comparison in a sentence: the fastest machine, and by how much the next one is slower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lstmsim.base.wording import listed, ranged
from lstmsim.report.figures_text import three_digits
from lstmsim.studies.compare.result import Comparison, Latencies, geometric_mean, not_comparable, not_told

_UNTOLD = "Cannot tell what answers fastest on"


def headline(comparison: Comparison) -> str:
    """Say which machine is fastest and by how much, or that it cannot be told and what is missing.

    A published design of which a chip here is the model is no rival: its figures show the error of that model.

    >>> from lstmsim.studies.compare.result import Entry, Machine, Workload
    >>> machines = Machine("a", False, 100, 250.0), Machine("b", False, 400, 250.0), Machine("c", False, 400, 250.0)
    >>> rows = ((Entry(ms=3.0), Entry(ms=1.5), Entry(reason="weights do not fit")),)
    >>> headline(Comparison("s", "fast", False, machines, (Workload("s", 1, 9),), rows))
    'b is fastest on s: makespan 1.50 ms, 2.00 times as fast as a; c cannot run it.'
    """
    models = {each.stands_for for each in comparison.machines}
    rivals = [number for number, each in enumerate(comparison.machines) if each.name not in models]
    ran = [any(entry.known for entry in column) for column in zip(*comparison.entries, strict=True)]
    outside = [number for number, each in enumerate(comparison.stamps) if each.outside and ran[number]]
    caveat = f"; outside what was validated: {_names(comparison, outside)}" if outside else ""
    if comparison.each:
        return f"{_of_models(comparison, rivals)}{_not_run(comparison, rivals)}{caveat}."
    return f"{_of_scenario(comparison, rivals)}{caveat}."


def _of_scenario(comparison: Comparison, rivals: Sequence[int]) -> str:
    """The answer for jobs that run together."""
    name, entries = comparison.workloads[0].name, comparison.entries[0]
    times = {number: ms for number in rivals if (ms := entries[number].ms) is not None}
    refused = [number for number in rivals if number not in times and not comparison.machines[number].published]
    left_out = f"; {_names(comparison, refused)} cannot run it" if refused else ""
    if len(times) < 2:
        took = "".join(f"{_names(comparison, [number])} takes {three_digits(ms)} ms; " for number, ms in times.items())
        return f"Cannot tell what is fastest on {name}: {took}no other machine has a time{left_out}"
    if comparison.by_latency:
        return f"{_by_latency(comparison, list(times))}{left_out}"
    first, second = _least(times)
    makespan = f"makespan {three_digits(times[first[0]])} ms"
    if not second:
        return f"{_names(comparison, first)} are equally fast on {name}: {makespan}{left_out}"
    fastest = f"{_names(comparison, first)} {'is' if len(first) == 1 else 'are equally'} fastest on {name}"
    ahead = _ahead(comparison, times[first[0]], times[second[0]], second)
    later = _by_later_steps(comparison, first[0], times)
    return f"{fastest}: {makespan}, {ahead}{later}{_by_answers(comparison, list(times))}{left_out}"


def _least(times: Mapping[int, float]) -> tuple[list[int], list[int]]:
    """The machines with the least time, and those with the next one."""
    order = sorted(set(times.values()))
    first, second = ([number for number, each in times.items() if each == time] for time in (*order, -1.0)[:2])
    return first, second


def _ahead(comparison: Comparison, time: float, longer: float, others: Sequence[int]) -> str:
    """How much faster a time is than the longer one of other machines."""
    times = three_digits(longer / time)
    ahead = "less than 1 % faster than" if times == "1.00" else f"{times} times as fast as"
    return f"{ahead} {_names(comparison, others)}"


def _by_later_steps(comparison: Comparison, first: int, ran: Iterable[int]) -> str:
    """Who is faster by later steps, where that is another one: first steps load weights."""
    later = {number: ms for number in ran if (ms := comparison.entries[0][number].later_ms)}
    best = min(later, key=lambda number: later[number], default=first)
    if first not in later or later[best] == later[first]:
        return ""
    ahead = _ahead(comparison, later[best], later[first], [first])
    return f"; by later steps, without loading weights, {_names(comparison, [best])} is {ahead}"


def _by_answers(comparison: Comparison, ran: Sequence[int]) -> str:
    """Who answers fastest, where that is known and jobs come after others: the makespan has the time between them."""
    if comparison.way != "closed" or any(comparison.entries[0][number].latencies is None for number in ran):
        return ""
    answer = _by_latency(comparison, ran)
    return "" if answer.startswith(_UNTOLD) else f"; {answer}"


def _by_latency(comparison: Comparison, ran: Sequence[int]) -> str:
    """The answer where jobs come over time, as far as intervals tell it."""
    name, entries = comparison.workloads[0].name, comparison.entries[0]
    own = {number: each for number in ran if (each := entries[number].latencies) is not None}
    growing = [number for number, each in own.items() if each.unstable]
    unknown = [number for number, each in own.items() if each.verdict == "cannot tell"]
    able = sorted((number for number in own if number not in growing), key=lambda number: own[number].mean.value)
    queue = f"more requests come than {_names(comparison, growing)} can serve" if growing else ""
    if not able:
        return f"No machine keeps up with the requests of {name}: {queue}"
    best, *others = able
    means = {number: own[number].mean.value for number in able}
    first, second = _least(means)
    mean = f"mean latency {three_digits(means[best])} ms"
    if second:
        mean += f", {_ahead(comparison, means[best], means[second[0]], second)}"
    elif not others and own[best].mean.half_width is None:
        mean += " in this run, which has no interval of it"
    # of a machine further behind the interval may be wider than that of the next one
    doubts = [(number, text) for number in others if (text := _doubt(own[best], own[number]))]
    why = f"whether {_names(comparison, unknown)} can keep up is not known" if unknown else ""
    if doubts and not unknown:
        number, text = doubts[0]
        why = f"of {_names(comparison, [best])} and {_names(comparison, [number])}, {text}"
    if why:
        has = "has the least" if len(first) == 1 else "have the same"
        run = f"in this run {_names(comparison, first)} {has}, {mean}"
        return "; ".join(filter(None, (f"{_UNTOLD} {name}: {why}", run, queue)))
    fastest = "answers fastest on" if others else "alone keeps up with the requests of"
    return "; ".join(filter(None, (f"{_names(comparison, [best])} {fastest} {name}: {mean}", queue)))


def _doubt(one: Latencies, other: Latencies) -> str:
    return not_comparable(one, other) or not_told(one, other)


def _of_models(comparison: Comparison, rivals: Sequence[int]) -> str:
    """The answer for models that run alone: how many of them each machine wins, and what all together say."""
    wins: Counter[int] = Counter()
    seconds: Counter[int] = Counter()
    leads = []
    for entries in comparison.entries:
        times = {number: ms for number in rivals if (ms := entries[number].ms) is not None}
        if len(times) > 1:
            first, second = _least(times)
            wins.update(first)
            seconds.update(second)
            leads.append(times[second[0]] / times[first[0]] if len(first) == 1 else 1.0)
    models = len(comparison.workloads)
    if not leads:
        return "Cannot tell what is fastest: no model has times of two machines"
    every = f"all {models} models" if models > 1 else comparison.workloads[0].name
    of = every if len(leads) == models else f"the {len(leads)} of {models} models that two machines ran"
    (winner, most), *others = wins.most_common()
    if most == len(leads) and min(leads) > 1:
        least, greatest = (three_digits(end) for end in (min(leads), max(leads)))
        lead = f"{ranged(least, greatest) if least != '1.00' else f'at most {greatest}'} times as fast as"
        ahead = "less than 1 % faster than" if greatest == "1.00" else lead
        return (
            f"{_names(comparison, [winner])} is fastest on {of}, {ahead} the next ({_names(comparison, list(seconds))})"
        )
    won = listed([f"{_names(comparison, [number])} on {count}" for number, count in [(winner, most), *others]], "and")
    return f"No machine alone is fastest on {of}: {won}{_on_average(comparison, rivals)}"


def _not_run(comparison: Comparison, rivals: Sequence[int]) -> str:
    """Which chips could not run some of the models: a chip that wins may have been spared what it cannot do."""
    by_count: dict[int, list[int]] = {}
    for number in rivals:
        if not comparison.machines[number].published:
            count = sum(entries[number].ms is None for entries in comparison.entries)
            by_count.setdefault(count, []).append(number)
    models = len(comparison.workloads)
    text = ""
    for count in sorted(set(by_count) - {0}):
        what = "it" if models == 1 else f"{count} of {models} models{' each' * (len(by_count[count]) > 1)}"
        text += f"; {_names(comparison, by_count[count])} cannot run {what}"
    return text


def _on_average(comparison: Comparison, rivals: Sequence[int]) -> str:
    """Who is fastest by the geometric mean, over the models that all machines ran that ran any."""
    ran = [number for number in rivals if any(row[number].known for row in comparison.entries)]
    rows = [[row[number].ms for number in ran] for row in comparison.entries]
    whole = [row for row in rows if None not in row]
    means = [geometric_mean([ms for ms in column if ms]) for column in zip(*whole, strict=True)]
    times = {number: mean for number, mean in zip(ran, means, strict=False) if mean is not None}
    if not times:
        return "; no model was run by all of them, so no mean says more"
    first, second = _least(times)
    over = f"over the {len(whole)} that all of them ran, " if len(whole) < len(rows) else ""
    if len(first) > 1 or not second:
        return f"; {over}{_names(comparison, first)} are equally fast by the geometric mean"
    ahead = _ahead(comparison, times[first[0]], times[second[0]], second)
    return f"; {over}{_names(comparison, first)} is {ahead} by the geometric mean"


def _names(comparison: Comparison, numbers: Sequence[int]) -> str:
    machines = [comparison.machines[number] for number in numbers]
    return listed([f"{each.name} (published)" if each.published else each.name for each in machines], "and")
