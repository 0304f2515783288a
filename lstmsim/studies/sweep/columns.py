"""Columns of a point's row: numbers of its simulation, and figures of its chip, which are never simulated."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from lstmsim.analysis.batches import batches_of, padded_work
from lstmsim.analysis.report import ACCOUNTS, NOBODY, latency_statistics, utilization
from lstmsim.base.errors import InputError
from lstmsim.base.units import tops
from lstmsim.machines.hardware import Stored
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.model.scenario import Chip, Scenario
from lstmsim.program.stall_reasons import CYCLE_NAMES
from lstmsim.program.trace import Totals
from lstmsim.studies.fit.device import Device
from lstmsim.studies.fit.fit import Fit, Resource, fit
from lstmsim.studies.sweep.spec import Value

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
    """Give the `NUMBERS` of a run: equal to those of its report, to the last bit; `InputError` if nobody was served."""
    chip, makespan = scenario.chip, totals.makespan_cycles
    rows, macs = totals.tasks[: len(scenario.jobs)].tolist(), sum(totals.work.tolist())
    macs -= sum(padded_work(scenario, None, batches_of(scenario.jobs, totals)).values())
    served = [finish - arrived for core, _, _, finish, arrived, *_ in rows if core >= 0]
    if not served:
        raise InputError(f"{NOBODY}: it has no latency")
    latency = latency_statistics(served, chip.frequency_mhz)
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
    """The cycles of each name, summed over the cores that know it; a memory outside the chip is not a core."""
    summed = [0] * len(CYCLE_NAMES)
    for core, counts in zip(scenario.chip.core_figures, totals.cycles.tolist(), strict=False):
        for index in _known(core.stalls):
            summed[index] += counts[index]
    return summed


@lru_cache(64)
def _known(stalls: tuple[str, ...]) -> tuple[int, ...]:
    """The indexes among `CYCLE_NAMES` of the names that the cycles of a machine with these `stalls` can have."""
    return tuple(index for index, name in enumerate(CYCLE_NAMES) if name in ACCOUNTS or name in stalls)


#: To be raised whenever `fit` or the sums below count in another way: what was kept is then counted anew.
COST_VERSION = 2

#: Before the name of such a column where an axis has that name already.
PREFIX = "chip_"


def chip_words() -> tuple[str, ...]:
    """Name the columns about the chip alone: multipliers, then what any machine counts, for points may differ in it."""
    return ("npe", *dict.fromkeys(name for kind in KINDS for name in target_of(kind).counts))


@dataclass(frozen=True)
class ChipColumns:
    """Columns about the chip of a point: their names in order, and the FPGA that resources are counted for, if any."""

    names: tuple[str, ...] = ()
    device: Device | None = None

    def values(self, scenario: Scenario) -> tuple[Value, ...]:
        """Give a value for each name; None where it is unknown or the chip has no such part."""
        return (*chip_costs(scenario.chip), *(_device_costs(scenario, self.device) if self.device else ()))


def chip_columns(taken: Collection[str], device: Device | None = None) -> ChipColumns:
    """Choose the columns about the chip for one sweep.

    A name that is taken gets `chip_` before it: the axis may be about one core, while the column is about all.
    """
    lower = {each.lower() for each in taken}
    words = (*chip_words(), *(device_words(device) if device else ()))
    return ChipColumns(tuple(f"{PREFIX}{each}" if each in lower else each for each in words), device)


def device_words(device: Device) -> tuple[str, ...]:
    """Name the columns about an FPGA. Its memory has the name of its blocks, if they are of one kind."""
    single = device.memories[0].name.lower() if len(device.memories) == 1 else ""
    word = single if single.isidentifier() else "memory"
    memory = (word, f"{word}_share") if len(device.memories) == 1 else (f"{word}_share",)
    return ("dsp", "dsp_share", *memory, "logic", "logic_share", "fits")


def chip_costs(chip: Chip) -> tuple[Value, ...]:
    """Give the values of `chip_words`, summed over all cores; None where the machine has no such part."""
    counts = target_of(chip.kind).chip_counts(chip)
    return (sum(each.peak for each in chip.core_figures), *(counts.get(name) for name in chip_words()[1:]))


def _device_costs(scenario: Scenario, device: Device) -> tuple[Value, ...]:
    """The values of `device_words`; all None where nothing can be counted."""
    chip = scenario.chip
    nothing: tuple[Value, ...] = (None,) * len(device_words(device))
    if target_of(chip.kind).hardware() is None:
        return nothing
    try:
        models = tuple(dict.fromkeys(job.model for job in scenario.jobs))
        return _counted(fit(chip, models, scenario.precision, device, Stored.of(scenario.jobs)))
    except InputError:
        # A model that one core runs may not fit on another core.
        return nothing


def _counted(usage: Fit) -> tuple[Value, ...]:
    """The values of `device_words` from what the chip takes of the device."""
    memory = usage.memory
    need, share = _need(memory)
    blocks: tuple[Value, ...] = (need,) if len(usage.device.memories) == 1 else ()
    return (*_need(usage.multipliers), *blocks, share, *_need(usage.logic), usage.fits)


def _need(resource: Resource) -> tuple[Value, Value]:
    """Need and share; both None for a lower bound, because points would be compared by whatever part can be counted."""
    return (None, None) if resource.at_least else (resource.need, resource.share)
