"""What the host writes: read back word by word, it is the weights, frames and adapters of the fixed-point model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.rtl.lanes.lanes_module import SPACES
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.rtl.planning import design as plan_design
from lstmsim.machines.column.rtl.words import constants, frames, passes_of, shifts_of, weights
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed_point import saturate, shifted
from lstmsim.model.numerics.golden import initial_states
from lstmsim.model.numerics.jobs import JobData, JobNumbers, fixed_numbers
from lstmsim.model.numerics.weights import Network, random_network, random_stimulus
from lstmsim.model.scenario import Job, Scenario

MODEL = Model("m", (Layer(cell("gru"), 7, 5), Layer(cell("lstm-projection"), 5, 7, projection=3)))
CORE = ColumnCore(npe=40, ep=4, vp=9, tail_width=2, threads=2)


def _made(
    precision: Precision, core: ColumnCore = CORE, others: Network | None = None, started: bool = False
) -> tuple[Design, dict[int, JobNumbers]]:
    """Two jobs of one model on one core; the second one has other weights, or begins with states."""
    network = random_network(MODEL, seed=1)
    jobs = (Job("a", MODEL, 3), Job("b", MODEL, 2))
    data = []
    for seed, job in enumerate(jobs):
        stimulus = random_stimulus(MODEL, job.steps, seed)
        if seed and started:
            stimulus = replace(stimulus, initial={(1, 0): {"h": np.array([0.5, -1.0, 0.25])}})
        data.append(JobData(others if seed and others else network, stimulus, "", ""))
    numbers = fixed_numbers(dict(enumerate(data)), precision)
    return plan_design(Scenario(ColumnNpu("c", 100, (core,)), jobs), precision, numbers), numbers


def _words(writes: Iterable[tuple[int, int]], space: str, bits: int) -> dict[int, int]:
    """Words by their addresses, joined from their parts as docs/rtl.md section 10 says."""
    parts = 1
    while parts * 32 < bits:
        parts *= 2
    words: dict[int, int] = {}
    for address, data in writes:
        assert address >> 28 == SPACES[space]
        assert address >> 24 & 15 == 0
        word, part = divmod(address & 0xFFFFFF, parts)
        assert part * 32 < bits
        words[word] = words.get(word, 0) | data << 32 * part
    return words


def _signed(word: int, place: int, bits: int) -> int:
    value = word >> place & ((1 << bits) - 1)
    return value - (value >> bits - 1 << bits)


@pytest.mark.parametrize("order", ["row", "column"])
def test_weights_lie_in_the_order_of_issue(order: str) -> None:
    bits = 5
    made, numbers = _made(Precision(weight_bits=bits), replace(CORE, block_order=order, accumulator_banks=8))
    passes, plan = passes_of(made, numbers), made.cores[0]
    words = _words(weights(made, passes), "weights", plan.rows * CORE.ep * bits)
    program = plan.programs[0]
    assert program is not None
    address = 0
    for row in program.stages:
        own = passes[0, row.layer, row.direction]
        gates = own.layer.cell.stages[row.stage].gates
        runs = [(read, group) for read in row.reads for group in range(read.groups)]
        if order == "row":
            tiles = [(block, *run) for block in range(row.blocks) for run in runs]
        else:
            tiles = [(block, *run) for run in runs for block in range(row.blocks)]
        for block, read, group in tiles:
            for place in range(plan.rows * CORE.ep):
                r, e = divmod(place, CORE.ep)
                unit, column = block * row.units + r // row.gates, group * CORE.ep + e
                expected = 0
                inside = r < row.units * row.gates and unit < row.unit_count and column < read.elements
                sums = [each.name for each in gates[r % row.gates].sums if read.vector in each.vectors]
                if inside and sums:
                    expected = int(own.matrix(sums[0], read.vector)[unit, column])
                assert _signed(words[address], place * bits, bits) == expected
            address += 1
    assert sorted(words) == list(range(address)) == list(range(plan.weight_words))


@pytest.mark.parametrize(
    "precision",
    [
        Precision(),
        Precision(multiplier_bits=5, tail_bits=24, accumulator_bits=20),
        Precision(shift="common", formats="shared", multiplier_bits=9),
    ],
)
def test_adapters_of_a_turn_do_what_the_rules_say(precision: Precision) -> None:
    made, numbers = _made(precision)
    passes, plan = passes_of(made, numbers), made.cores[0]
    shifts = shifts_of(made, passes)
    stored = 0 if shifts.rows else shifts.bits
    entry = precision.multiplier_bits + stored + 32
    words = _words(constants(made, passes, shifts), "constants", entry * CORE.tail_width * plan.sums)
    assert len(words) == plan.constant_words
    program = plan.programs[0]
    assert program is not None
    random = np.random.default_rng(1)
    for place, row in enumerate(program.stages):
        own = passes[0, row.layer, row.direction].counting_anew()
        for number, each in enumerate(own.layer.cell.stages[row.stage].sums):
            top = 1 << precision.accumulator_bits - 1
            total = random.integers(-top, top, row.unit_count)
            expected = own.adapt(each.name, total, slice(None)).tolist()
            for unit in range(row.unit_count):
                block, inside = divmod(unit, row.units)
                turn, lane = divmod(inside, CORE.tail_width)
                word = words[row.constant_base + block * -(-row.units // CORE.tail_width) + turn]
                own_word = word >> entry * (lane * plan.sums + number) & ((1 << entry) - 1)
                factor = own_word & ((1 << precision.multiplier_bits) - 1)
                held = own_word >> precision.multiplier_bits & ((1 << stored) - 1)
                shift = (shifts.rows[place][number] if shifts.rows else held) - shifts.left
                exact = shifted(total[unit : unit + 1] * factor, np.array([shift]))
                exact = exact + _signed(own_word, precision.multiplier_bits + stored, 32)
                assert saturate(exact, own.formats[each.name])[0][0] == expected[unit]


def test_frames_are_groups_and_h_before_step_0_follows_them() -> None:
    made, numbers = _made(Precision(vector_bits=7), started=True)
    passes, plan = passes_of(made, numbers), made.cores[0]
    words = _words(frames(made, passes, numbers), "frames", 7 * CORE.ep)
    assert sorted(words) == list(range(plan.frame_words))

    def read(first: int, width: int) -> list[int]:
        places = [divmod(each, CORE.ep) for each in range(width)]
        return [_signed(words[first + word], 7 * place, 7) for word, place in places]

    for job, row in zip(made.jobs, plan.jobs, strict=True):
        assert row is not None
        x = passes[0, 0, 0].encode(numbers[job.index].stimulus.x)
        assert [read(row.frame_start + 2 * step, 5) for step in range(job.steps)] == x.tolist()
    second = plan.jobs[1]
    assert second is not None
    starts = {start for start in second.h_starts if start >= 0}
    h = initial_states(passes[0, 1, 0], numbers[1].stimulus, 1, 0)["h"].tolist()
    assert h in [read(start, 3) for start in starts]


def test_jobs_of_one_model_have_the_same_weights() -> None:
    made, numbers = _made(Precision(), others=random_network(MODEL, seed=2))
    with pytest.raises(InputError, match="job b: weights: must be those of the earlier jobs of model 'm'"):
        passes_of(made, numbers)


def test_a_memory_beyond_the_bus_is_refused() -> None:
    made, numbers = _made(Precision())
    passes = passes_of(made, numbers)
    plan = made.cores[0]
    program = plan.programs[0]
    assert program is not None
    far = replace(program.stages[0], weight_base=(1 << 24) // 8)
    moved = replace(made, cores=(replace(plan, programs=(replace(program, stages=(far,)),)),))
    with pytest.raises(InputError, match="the weights of core 0 need more than the 16,777,216 words"):
        list(weights(moved, passes))
