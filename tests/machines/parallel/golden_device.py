"""Devices of the golden cases, and arrays in the form in which the cases show them."""

from __future__ import annotations

from typing import Any

from lstmsim.machines.parallel.device import ParallelCore, ParallelDevice, ParallelLatency
from lstmsim.machines.parallel.kernel import Made, Run
from lstmsim.machines.parallel.traffic import addresses

#: What the presets of the cases have other than the defaults, which are those of `v100`.
PRESETS: dict[str, dict[str, Any]] = {
    "v100": {"sms": 80},
    "edge": {"sms": 8, "partitions": 8, "dram": 3, "l2_bytes": 524288, "launch": 13770, "dram_latency": 594},
    "toy": {"sms": 2, "schedulers": 1, "partitions": 2, "launch": 100},
}
_CORE = ("schedulers", "warp", "max_warps", "max_blocks", "l1_bytes", "port", "warp_policy")


def device_of(given: dict[str, Any]) -> ParallelDevice:
    """The device of a case."""
    values = PRESETS[given.get("preset", "toy")] | {name: value for name, value in given.items() if name != "preset"}
    latencies = {name.removesuffix("_latency"): values.pop(name) for name in list(values) if name.endswith("_latency")}
    core = {name: values.pop(name) for name in _CORE if name in values}
    if "port" in core:
        core["port"] = tuple(core["port"])
    sms = values.pop("sms")
    return ParallelDevice("x", 1530, (ParallelCore(**core, latency=ParallelLatency(**latencies)),) * sms, **values)


def laid_out(run: Run) -> list[list[Any]]:
    """Name, address and bytes of the arrays."""
    begins = addresses(run.arrays)
    return [[each.name, begin, 4 * each.elements] for each, begin in zip(run.arrays, begins, strict=True)]


def order_of(made: Made) -> list[int] | None:
    """The rows of the format in the order in which they are bundled; None if that is their own."""
    return made.plan.dealt.order.tolist() if made.plan.options.order == "sorted" else None


def placing_of(made: Made) -> list[int] | None:
    """The multiprocessor of each block in grid order; None if they go on demand."""
    return None if made.plan.options.dispatch == "demand" else made.plan.dealt.sm.tolist()
