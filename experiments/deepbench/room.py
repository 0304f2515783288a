"""The column-wise chips that have room on the FPGA of another machine, and what they do with each task there.

For each of `WIDTHS` lanes of the tail the largest chip is taken. It has as many multipliers as the device's blocks give
beside those of the tail, for LSTM and GRU at once, and the logic is sufficient even at the upper end of its estimate. A
wider tail leaves fewer multipliers to the array, so the fastest of these chips is found by simulation.

Each task runs with the fastest (EP, VP) on the greedy search's walk whose memories fit. Where no weights fit, as many
row blocks stay on the chip as its block RAM holds, and the rest comes from a memory beside it in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lstmsim import ColumnNpu, machines
from lstmsim.machines.column.npu import Memory
from lstmsim.machines.column.plan import blocks_of, streamed
from lstmsim.model.model import Model, Precision
from lstmsim.model.scenario import Scenario
from lstmsim.studies.compare.device_fits import DeviceFit, fit_on
from lstmsim.studies.compare.result import Entry, geometric_mean
from lstmsim.studies.compare.run import compared as compare
from lstmsim.studies.fit.device import Device
from lstmsim.studies.fit.fit import fit
from lstmsim.studies.search.array import limits_of, widest_vp
from lstmsim.studies.search.run import search

#: Lanes of the tail with which the largest chip is looked for.
WIDTHS = (4, 8, 16, 32, 64)
LEAST_EP = 16
#: Fewer multipliers than the largest chip has on any FPGA in the table of devices.
LEAST_NPE = 1024
#: Steps with which shapes are tried where weights are streamed.
TRIED = 4
#: GB/s of the memory beside the FPGA.
BANDWIDTH = 76.8
BANDWIDTH_SOURCE = (
    "four banks of DDR4-2400 at 64 bits, an assumption: POETSII/de10-soak-test (GitHub, release v0.1) has four banks "
    "of DDR4 beside this FPGA and does not name their speed"
)


@dataclass(frozen=True)
class Placed:
    """A task on the device: the chip, its result, the room that it takes, and the share of weights that is streamed."""

    task: str
    chip: ColumnNpu
    entry: Entry
    room: DeviceFit
    streamed: float


@dataclass(frozen=True)
class Tried:
    """The largest chip with so many lanes of the tail: its multipliers, and the tasks that were run on it."""

    tail_width: int
    npe: int
    places: tuple[Placed, ...]

    @property
    def held(self) -> dict[str, float]:
        """Milliseconds of the tasks whose weights the block RAM holds."""
        return {each.task: each.entry.ms or 0.0 for each in self.places if not each.streamed}


def all_tried(
    scenarios: Mapping[str, Scenario], make: Callable[..., ColumnNpu], on: Device, whole: bool
) -> tuple[Tried, ...]:
    """Find the largest chip of each of `WIDTHS` and run the tasks on it.

    make: builds a chip from multipliers, EP and lanes of the tail.
    whole: also run the tasks whose weights the block RAM does not hold; they take by far the longest.
    """
    models, tried = [each.jobs[0].model for each in scenarios.values()], []
    for width in WIDTHS:
        own = partial(make, width=width)
        npe = largest(models, own, on)
        run = placed if whole else held
        places = (run(task, each, npe, own, on) for task, each in scenarios.items())
        tried.append(Tried(width, npe, tuple(each for each in places if each is not None)))
    return tuple(tried)


def held_by_all(tried: Sequence[Tried]) -> list[str]:
    """List the tasks whose weights each of the chips holds in its block RAM."""
    return [task for task in tried[0].held if all(task in each.held for each in tried)]


def fastest(tried: Sequence[Tried]) -> Tried:
    """Give the chip with the least geometric mean of the times of the tasks whose weights all of the chips hold."""
    tasks = held_by_all(tried)
    return min(tried, key=lambda each: geometric_mean([each.held[task] for task in tasks]) or 0.0)


def largest(models: Sequence[Model], make: Callable[[int, int], ColumnNpu], on: Device) -> int:
    """Give the most multipliers with which a chip that runs all these models has blocks and logic enough.

    make: builds a chip from multipliers and EP.
    """

    def enough(count: int) -> bool:
        # a small EP: its many rows have accumulators that take more logic than the trees of a larger one
        need = fit(make(count, LEAST_EP), models, Precision(), on)
        return need.multipliers.fits is True and need.logic.fits is True

    low, high = LEAST_NPE, 2 * LEAST_NPE
    while enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def shapes(scenario: Scenario, npe: int, make: Callable[[int, int], ColumnNpu]) -> list[ColumnNpu]:
    """List the chips on the walk of the greedy search."""
    walk = search(replace(scenario, chip=make(npe, 1)), npe).common.walk
    return [replace_shape(make(npe, point.ep), point.ep, point.vp) for point in walk.path]


def held(task: str, scenario: Scenario, npe: int, make: Callable[[int, int], ColumnNpu], on: Device) -> Placed | None:
    """Run the task of a scenario on the fastest of its chips that fit with all weights; None if none fits."""
    model = scenario.jobs[0].model
    # the walk is among these: where none fits there is nothing to search for
    eps = [1 << each for each in range(npe.bit_length()) if widest_vp(limits_of([model]), npe, 1 << each)[0] >= 4]
    chips = (replace_shape(make(npe, ep), ep, widest_vp(limits_of([model]), npe, ep)[0]) for ep in eps)
    if not any(fit(each, [model], Precision(), on).fits for each in chips):
        return None
    return with_all_weights(task, scenario, shapes(scenario, npe, make), on)


def placed(task: str, scenario: Scenario, npe: int, make: Callable[[int, int], ColumnNpu], on: Device) -> Placed:
    """Run the task of a scenario on the fastest of its chips that fit, or streaming what does not fit."""
    shaped = shapes(scenario, npe, make)
    whole = with_all_weights(task, scenario, shaped, on)
    if whole is not None:
        return whole
    built = (streaming(each, scenario.jobs[0].model, on) for each in shaped)
    # what is streamed comes anew in every step: a few of them tell which shape is the fastest
    short = replace(scenario, jobs=(replace(scenario.jobs[0], steps=min(scenario.jobs[0].steps, TRIED)),))
    return best(task, scenario, short, [each for each in built if each is not None], on)


def with_all_weights(task: str, scenario: Scenario, shaped: Sequence[ColumnNpu], on: Device) -> Placed | None:
    """Run the task on the fastest of these chips that fit; None if none fits."""
    chips = [each for each in shaped if fit(each, [scenario.jobs[0].model], Precision(), on).fits]
    return best(task, scenario, scenario, chips, on) if chips else None


def best(task: str, scenario: Scenario, short: Scenario, chips: Sequence[ColumnNpu], on: Device) -> Placed:
    """Run the task on the chip that is the fastest with a short form of the task."""
    tried = zip(compare(short, chips).entries[0], chips, strict=True)
    entry, chip = min((pair for pair in tried if pair[0].known), key=lambda pair: pair[0].ms or 0.0)
    if short is not scenario:
        entry = compare(scenario, [chip]).entries[0][0]
    room = fit_on(chip, [scenario.jobs[0].model], Precision(), on, workload=task)
    return Placed(task, chip, entry, room, streamed_share(chip, scenario))


def replace_shape(chip: ColumnNpu, ep: int, vp: int) -> ColumnNpu:
    """Give the chip with another EP and VP."""
    return replace(chip, cores=(replace(chip.cores[0], ep=ep, vp=vp),))


def streamed_share(chip: ColumnNpu, scenario: Scenario) -> float:
    """The share of the weights that comes from the memory in every step."""
    capacity, memory = chip.cores[0].weight_capacity, chip.memory
    if capacity is None or memory is None:
        return 0.0
    whole = replace(chip, cores=(replace(chip.cores[0], weight_kib=None),), memory=None)
    ((_, phases),) = machines.lower(whole, scenario.jobs).tasks[0].variants
    blocks = blocks_of(phases)
    return sum(blocks[each] for each in streamed(blocks, capacity, memory)) / sum(blocks.values())


def streaming(chip: ColumnNpu, model: Model, on: Device) -> ColumnNpu | None:
    """Give the chip with as much memory for weights as the device's blocks give, and a memory beside it.

    None if the chip does not fit with the least memory either.
    """

    def with_kib(kib: int) -> ColumnNpu:
        return replace(chip, cores=(replace(chip.cores[0], weight_kib=kib),), memory=Memory(gb_per_s=BANDWIDTH))

    def fits(kib: int) -> bool:
        return bool(fit(with_kib(kib), [model], Precision(), on).fits)

    low, high = 1, 1 << 20
    if not fits(low):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return with_kib(low)
