"""What a first time step that loads the weights does to a ratio of times, in words beside the ratio."""

from __future__ import annotations

from lstmsim.report.figures_text import percent, three_digits
from lstmsim.studies.compare.result import Comparison

__all__ = ["CAPTION", "about_first_step", "by_later_steps"]

#: What the figures of first and later steps are; it takes the names of the machines that begin cold.
CAPTION = (
    "First step: cycles of the same jobs with one time step each; it loads the weights on {}. Later steps: what the "
    "others add."
)


def about_first_step(comparison: Comparison, row: int, column: int) -> str:
    """Say how long the base takes beside a machine, as a whole and by later steps.

    row, column: of the machine's entry.
    Empty where neither begins cold, or where there is no ratio.

    >>> from lstmsim.studies.compare.result import Entry, Machine, Workload
    >>> machines = Machine("a", False, 100, 250.0), Machine("b", False, 400, 250.0, begins_cold=True)
    >>> entries = Entry(cycles=10, ms=1.0, first_cycles=2), Entry(cycles=100, ms=10.0, first_cycles=60)
    >>> about_first_step(Comparison("s", "fast", False, machines, (Workload("s", 1, 9),), (entries,)), 0, 1)
    'a is 10.0 times as fast; 5.00 times by later steps (60.0 % of the cycles of b are its first step, which \
loads the weights)'
    """
    clause, speedup = by_later_steps(comparison, row, column), comparison.speedup(row, column)
    if not clause or speedup is None or comparison.by_latency:
        return clause
    base = comparison.machines[0].name
    if speedup > 1:
        return f"{base} takes {three_digits(speedup)} times as long; {clause}"
    return f"{base} is {three_digits(1 / speedup)} times as fast; {clause}"


def by_later_steps(comparison: Comparison, row: int, column: int) -> str:
    """Give the ratio by later steps in words, the way round of the whole ratio, or say why there is none.

    row, column: of the machine's entry.
    Empty where neither begins cold, or where there is no ratio.
    """
    machines, entries = comparison.machines, comparison.entries[row]
    speedup, later = comparison.speedup(row, column), comparison.later_speedup(row, column)
    cold = [each for each in dict.fromkeys((0, column)) if machines[each].begins_cold]
    if not cold or speedup is None or column == 0:
        return ""
    names = " and ".join(machines[each].name for each in cold)
    shares = [
        f"{percent(entry.first_cycles, entry.cycles)} of the cycles of {machines[each].name}"
        for each in cold
        if (entry := entries[each]).first_cycles is not None and entry.cycles
    ]
    if not shares:
        if comparison.way != "at once":
            return (
                f"later steps are not measured where jobs come over time: on {names} each job first loads its weights"
            )
        return f"no job has a second time step, so all of the time of {names} is a first step, which loads the weights"
    why = f"{' and '.join(shares)} are its first step, which loads the weights"
    if later is None:
        return f"by later steps it is not known, but {why}"
    times = later if speedup > 1 else 1 / later
    return f"{three_digits(times)} times by later steps ({why})"
