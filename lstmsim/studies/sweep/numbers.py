"""The numbers of a row of a sweep, straight from the totals of its simulation: no report is made for them."""

from __future__ import annotations

from functools import lru_cache

from lstmsim.analysis.measure import latency_statistics, utilization
from lstmsim.analysis.report import ACCOUNTS
from lstmsim.base.units import cycles_to_ms, tops
from lstmsim.machines.registry import target_of
from lstmsim.model.scenario import Scenario
from lstmsim.program.cycles import CYCLE_NAMES
from lstmsim.program.totals import Totals

__all__ = ["NUMBERS", "numbers_of"]

#: The numbers of a row that was simulated, in this order; cycles by name are summed over the cores.
NUMBERS = (
    "makespan_cycles",
    "utilization",
    "tops",
    *CYCLE_NAMES,
    "turned_away",
    "pes_used",
    "adders",
    *(f"latency_ms_{each}" for each in ("mean", "p50", "p95", "p99", "max")),
)


def numbers_of(scenario: Scenario, totals: Totals) -> tuple[int | float, ...]:
    """Give the `NUMBERS` of a run: equal to those of its report, to the last bit.

    scenario: what was simulated.
    totals: of its program, whose cores and tasks begin with the scenario's, in the same order.

    >>> from lstmsim import ColumnCore, ColumnNpu, Job, Layer, Model, cell, engines, machines
    >>> jobs = (Job("a", Model("m", (Layer(cell("lstm"), 512, 512),)), steps=20),)
    >>> scenario = Scenario(ColumnNpu("c", 260, (ColumnCore(npe=65536, ep=32, vp=2048),)), jobs)
    >>> numbers = numbers_of(scenario, engines.totals(machines.lower(scenario.chip, jobs)))
    >>> dict(zip(NUMBERS, numbers))["makespan_cycles"]
    1423
    """
    chip, makespan = scenario.chip, totals.makespan_cycles
    rows, macs = totals.tasks[: len(scenario.jobs)].tolist(), sum(totals.work.tolist())
    served = [finish - arrived for core, _, _, finish, arrived, _, _ in rows if core >= 0]
    latency = latency_statistics([cycles_to_ms(each, chip.frequency_mhz) for each in served])
    return (
        makespan,
        utilization(chip, macs, makespan),
        tops(macs, makespan, chip.frequency_mhz),
        *_cycles(scenario, totals),
        len(rows) - len(served),
        sum(core.issuing for core in chip.core_figures),
        target_of(chip.kind).adders(chip),
        *(latency.mean, latency.p50, latency.p95, latency.p99, latency.max),
    )


def _cycles(scenario: Scenario, totals: Totals) -> list[int]:
    """The cycles of each name, summed over the cores that know it; a memory beside the chip is not a core."""
    summed = [0] * len(CYCLE_NAMES)
    for core, counts in zip(scenario.chip.core_figures, totals.cycles.tolist(), strict=False):
        for place in _places(core.stalls):
            summed[place] += counts[place]
    return summed


@lru_cache(64)
def _places(stalls: tuple[str, ...]) -> tuple[int, ...]:
    """The places among `CYCLE_NAMES` of the names that the cycles of a machine with these `stalls` can have."""
    return tuple(place for place, name in enumerate(CYCLE_NAMES) if name in ACCOUNTS or name in stalls)
