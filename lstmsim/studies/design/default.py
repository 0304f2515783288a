"""The space that is walked where nobody has given one: sizes and structure of equal cores, never assumed latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import as_data
from lstmsim.machines.registry import capability
from lstmsim.model.scenario import Scenario
from lstmsim.studies.design.bounds.multipliers import multiplier_blocks
from lstmsim.studies.design.judge import scaled
from lstmsim.studies.design.space import Box
from lstmsim.studies.fit.device import Device
from lstmsim.studies.fit.needs import hardware_of
from lstmsim.studies.search.array import doublings, limits_of

#: Cores of a chip, and the least multipliers of a core, that are tried.
_CORES, _LEAST = (1, 2, 4, 8), 256
#: Tails, the narrowest first, beside which the largest array is tried.
_TAILS = 2
#: How much more of the device is looked at, too.
MORE = 1.1
_CORE = "chip.cores.0"


def default_space(
    scenario: Scenario, device: Device | None, overrides: Sequence[str]
) -> tuple[dict[str, tuple[Any, ...]], tuple[str, ...]]:
    """Give the axes, and what is set beside them; `InputError` where nothing is known of what is worth a try.

    EP doubles from 1, and VP is NPE // EP, as in `lstmsim search`; trees are built for the EP. NPE doubles up to the
    device, whose whole, half, quarter and eighth are among the sizes; without a device it stays. What `--set` sets
    stays, too.
    """
    kind, cores = scenario.chip.kind, scenario.chip.cores
    machine: Any = capability(kind, "bounds")
    if machine is None or capability(kind, "array_search") is None:
        raise InputError(Mistake("axes", f"a chip of kind {kind!r} has no space of its own: name at least one key"))
    if len(set(cores)) > 1:
        text = f"the {len(cores)} cores of chip {scenario.chip.name} are not equal: name at least one key"
        raise InputError(Mistake("axes", text))
    core = cores[0]
    further = machine.axes(core)
    tails = {key: values for key, values in further.items() if key == "tail_width"}
    limits = limits_of(dict.fromkeys(job.model for job in scenario.jobs))
    own = scenario.chip.core_figures[0].peak
    sizes = _sizes(scenario, device, tails) if device is not None else (own,)
    eps = [ep for ep in doublings(limits, max(sizes)) if ep < 2 * limits.width]
    axes: dict[str, tuple[Any, ...]] = {}
    if all(job.cores is None and not job.split for job in scenario.jobs):
        axes[f"{_CORE}.count"] = _CORES
    axes |= {f"{_CORE}.npe": sizes, f"{_CORE}.ep": tuple(eps)}
    axes |= {f"{_CORE}.{key}": values for key, values in further.items()}
    given = {each.partition("=")[0].strip() for each in overrides}
    beside = {f"{_CORE}.{key}": value for key, value in (("vp", "null"), ("tree_inputs", "null"), ("cat", "1"))}
    kept = {key: values for key, values in axes.items() if key not in given}
    return kept, tuple(f"{key}={value}" for key, value in beside.items() if key not in given)


def _sizes(scenario: Scenario, device: Device, tails: Mapping[str, tuple[Any, ...]]) -> tuple[int, ...]:
    """The multipliers of a core that are worth a try on a device, and on one with 10 % more of them."""
    hardware, core, precision = hardware_of(scenario.chip), scenario.chip.cores[0], scenario.precision
    peak = scenario.chip.core_figures[0].peak
    packing = device.packing(precision.weight_bits, precision.vector_bits, *hardware.meets(core))
    if packing is None or device.multipliers is None:
        return (peak,)
    # a core without an array has the tail's multipliers alone
    entry = as_data(core) | {"npe": 0} | {key: np.array(values) for key, values in tails.items()}
    blocks = multiplier_blocks(Box(np.arange(1), scenario, (entry,), (1,)), device)
    tail_blocks = np.unique(blocks if blocks is not None else 0)[:_TAILS].tolist()
    sizes = set()
    for own in (device, scaled(device, MORE, device.multiplier)):
        for count in _CORES:
            sizes |= {((own.multipliers or 0) // count - tail) * packing.products for tail in tail_blocks}
    most = max(sizes)
    sizes |= {1 << power for power in range(most.bit_length()) if 1 << power >= _LEAST}
    return tuple(sorted(each for each in sizes if each >= _LEAST)) or (peak,)
