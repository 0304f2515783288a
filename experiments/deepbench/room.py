"""The largest column-wise chip that has room on the FPGA of another machine, and what it does with each task there.

Largest: with as many multipliers as the device's blocks give beside those of the tail, for LSTM and GRU at once, the
logic sufficient even at the upper end of its estimate. Each task runs with the fastest (EP, VP) on the greedy search's
walk whose memories fit. Where no weights fit, as many row blocks stay on the chip as its block RAM holds, and the rest
comes from a memory beside it in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lstmsim import ColumnNpu, Model, Scenario, targets
from lstmsim.comparison.compare import compare
from lstmsim.comparison.result import Entry
from lstmsim.comparison.rooms import Room, room_on
from lstmsim.devices.device import Device
from lstmsim.devices.fit import fit
from lstmsim.search.search import search
from lstmsim.targets.column_weights import blocks_of, streamed
from lstmsim.targets.memory import Memory
from lstmsim.workload.precision import Precision

#: A multiple of every EP up to this one, so that no multiplier is left over.
STEP = 64
LEAST_EP = 16
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
    """A task on the device: the chip, what it did, the room that it takes, the share of weights that is streamed."""

    task: str
    chip: ColumnNpu
    entry: Entry
    room: Room
    streamed: float


def largest(models: Sequence[Model], make: Callable[[int, int], ColumnNpu], on: Device) -> int:
    """The most multipliers, a multiple of `STEP`, with which a chip that runs all these models has blocks and logic
    enough; `make` builds it from multipliers and EP."""

    def enough(count: int) -> bool:
        # a small EP: its many rows have accumulators that take more logic than the trees of a larger one
        found = fit(make(STEP * count, LEAST_EP), models, Precision(), on)
        return found.multipliers.fits is True and found.logic.fits is True

    low, high = 1, 2
    while enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return STEP * low


def placed(task: str, scenario: Scenario, npe: int, make: Callable[[int, int], ColumnNpu], on: Device) -> Placed:
    """The task of a scenario on the fastest of its chips that fit, or streaming what does not fit."""
    model = scenario.jobs[0].model
    walk = search(replace(scenario, chip=make(npe, 1)), npe).common.walk
    shaped = [replace_shape(make(npe, point.ep), point.ep, point.vp) for point in walk.path]
    chips = [each for each in shaped if fit(each, [model], Precision(), on).fits]
    if not chips:
        chips = [each for each in (streaming(one, model, on) for one in shaped) if each is not None]
    # what is streamed comes anew in every step: a few of them tell which shape is the fastest
    short = replace(scenario, jobs=(replace(scenario.jobs[0], steps=min(scenario.jobs[0].steps, TRIED)),))
    tried = zip(compare(short if chips[0].memory else scenario, chips).entries[0], chips, strict=True)
    entry, chip = min((pair for pair in tried if pair[0].known), key=lambda pair: pair[0].ms or 0.0)
    if chip.memory:
        entry = compare(scenario, [chip]).entries[0][0]
    room = room_on(chip, [model], Precision(), on, workload=task)
    return Placed(task, chip, entry, room, streamed_share(chip, scenario))


def replace_shape(chip: ColumnNpu, ep: int, vp: int) -> ColumnNpu:
    """The chip with another EP and VP."""
    return replace(chip, cores=(replace(chip.cores[0], ep=ep, vp=vp),))


def streamed_share(chip: ColumnNpu, scenario: Scenario) -> float:
    """The share of the weights that comes from the memory in every step."""
    capacity, memory = chip.cores[0].weight_capacity, chip.memory
    if capacity is None or memory is None:
        return 0.0
    whole = replace(chip, cores=(replace(chip.cores[0], weight_kib=None),), memory=None)
    ((_, phases),) = targets.lower(whole, scenario.jobs).tasks[0].variants
    blocks = blocks_of(phases)
    return sum(blocks[each] for each in streamed(blocks, capacity, memory)) / sum(blocks.values())


def streaming(chip: ColumnNpu, model: Model, on: Device) -> ColumnNpu | None:
    """The chip with as much memory for weights as the device's blocks give, and a memory beside it; None if it does not
    fit with the least memory either."""

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
