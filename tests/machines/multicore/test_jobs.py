"""What the random jobs seldom or never have: parts of K, long jobs, directions, cells of all kinds, places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lstmsim import engines, load_chip
from lstmsim.base.errors import InputError
from lstmsim.machines.multicore.chip import CpuCore, MulticoreCpu, cell_work, refusal
from lstmsim.machines.multicore.jobs import (
    Shape,
    kinds_of_cores,
    laid_out,
    lower,
    operations_per_step,
    plans_of,
    tail_runs,
    traced,
)
from lstmsim.machines.multicore.lines.space import COLUMNS
from lstmsim.machines.multicore.stages import Block
from lstmsim.model.cells import CELLS, cell, step_products
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.program.accounts import totals_of
from lstmsim.program.stall_reasons import CYCLE_NAMES
from tests.machines.multicore.chips import TOY, changed, flat
from tests.machines.multicore.drawn import many_cores
from tests.machines.multicore.test_jobs_against_oracle import check
from tests.machines.multicore.test_stages import Run, plainly
from tests.oracle import multicore_jobs as model
from tools.multicore_waits import step_times, waits_of

TOY_OF_7 = changed(TOY, cores=7)
EPYC = MulticoreCpu("epyc", 2250, (CpuCore(),) * 64)


def job_of(*layers: Layer, steps: int = 3, **others: Any) -> Job:
    return Job("job", Model("m", layers), steps, **others)


@pytest.mark.parametrize("name", ["gru", pytest.param("lstm", marks=pytest.mark.long)])
def test_parts_of_k(name: str) -> None:
    """Products of a time step whose plans cut K: threads wait for pieces of C, and the numbers of steps differ."""
    machine = many_cores(8)
    job = model.Job(name, [(3, 150), (40, 3)], steps=5, batch=2, threads=8, frame_interval=900)
    cuts = [made.division.cut for made in plans_of(machine, Layer(cell(name), 3, 150), 2, 8)]
    assert max(cut.p_k for cut in cuts) > 1
    check(machine, [job, replace(job, arrival=40)])
    assert model.simulate(flat(machine), [job])[0].waits["contention"] > 0


@pytest.mark.parametrize("steps", [1, 2, 3, 100])
def test_few_and_many_time_steps(steps: int) -> None:
    """Of a hundred time steps all but the first two have the counts of the third."""
    job = model.Job("lstm", [(6, 5), (9, 6)], steps, batch=1, threads=3, arrival=7, frame_interval=600)
    check(many_cores(8), [job] * 3)


def test_threads_without_units_and_cores_without_a_place() -> None:
    """Eight cores have two places for three threads, and each other thread waits; five threads of three units."""
    machine = many_cores(8)
    few = model.Job("gru", [(3, 4)], steps=4, batch=1, threads=3)
    check(machine, [few, few, few, replace(few, threads=5), replace(few, threads=1)])
    program = lower(machine, [job_of(Layer(cell("gru"), 3, 4), threads=3)])
    assert [place[:3] for place in program.tasks[0].places] == [(0, 1, 2), (3, 4, 5)]


def test_own_arrays_are_in_the_memory_of_their_thread() -> None:
    """Caches of a few lines spill the packed operands of jobs at the other memory: lines that are near, not far."""
    machine = changed(many_cores(8), llc_sets=2, llc_ways=2, l2_sets=2, remote_latency=70, remote_cycles_per_line=9)
    check(machine, [model.Job("lstm", [(8, 9)], steps=3, batch=4, threads=2)] * 4)


def test_a_place_has_the_traffic_of_its_groups_and_memories() -> None:
    """Places of three threads lie differently in groups of two cores; those that lie alike share their phases."""
    machine = changed(many_cores(12), cores_per_domain=6)
    assert kinds_of_cores(machine, [3]) == (0, 1, 1, 2, 1, 1, 3, 1, 1, 4, 1, 1)
    program = lower(EPYC, [job_of(Layer(cell("lstm"), 8, 8), threads=4)] * 2)
    assert len(program.tasks[0].variants) == 4
    assert program.tasks[0].variants is program.tasks[1].variants


def test_the_arrays_of_both_directions() -> None:
    """A backward pass walks h from the last block to the first; the layer above reads what both left for a step."""
    both = Layer(cell("lstm"), 16, 16, bidirectional=True)
    shape = Shape((both, Layer(cell("rnn"), 16, 32)), steps=4, batch=2, threads=2)
    forward, backward, above = laid_out(TOY, shape, 0)[1]
    (product,) = step_products(both)
    block = 2 * 16 * 4
    assert [each.address for each in forward.segments(product, 1, 2, 4)] == [block, forward.h_read.address + block]
    assert forward.h_written.at(1, 2, 4).address == forward.h_read.address + 2 * block
    assert [each.address for each in backward.segments(product, 1, 2, 4)] == [
        block,
        backward.h_written.address + 2 * block,
    ]
    assert backward.h_read.at(3, 2, 4).address == backward.h_written.address + 4 * block
    assert above.segments(step_products(above.layer)[0], 1, 2, 4)[:2] == (
        (0, 16, forward.h_read.address + 2 * block, 64),
        (16, 32, backward.h_written.address + block, 64),
    )
    written = tail_runs(TOY, backward, (8, 16), 1, 2)
    assert written.address[written.write].tolist()[1::2] == [backward.h_written.address + block + at for at in (32, 96)]


def test_a_backward_pass_reads_the_last_frame_first() -> None:
    """Frames of a page each lie in two memories by turns; of four, the first and the last are in different ones."""
    machine = many_cores(4)
    layer = Layer(cell("rnn"), 4, machine.page // 4)
    forward, backward = (
        traced(machine, Shape((each,), 4, 1, 1), 0)[0].steps[0].counts[0, len(COLUMNS) :]
        for each in (layer, replace(layer, reverse=True))
    )
    frame = machine.page // machine.line
    assert (forward - backward).tolist() == [frame, -frame]


def test_a_thread_that_only_has_a_tail_waits_for_its_frame() -> None:
    """Sixteen rows in parts of three leave nothing for the last of seven threads, but it has a unit."""
    job = model.Job("rnn", [(7, 5)], steps=4, batch=16, threads=7, frame_interval=5000)
    (made,) = plans_of(TOY_OF_7, Layer(cell("rnn"), 7, 5), 16, 7)
    cut = made.division.cut
    assert cut.owned(6, made.product)[0] == (16, 16)
    check(TOY_OF_7, [job])


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_directions_in_time(engine: str) -> None:
    """A backward pass over the frames begins when the last one is there; the layers above need no frames."""
    layers = (Layer(cell("gru"), 12, 10, bidirectional=True), Layer(cell("lstm"), 7, 24, reverse=True))
    job = job_of(*layers, steps=5, batch=2, frame_interval=4000, arrival=30)
    program = lower(TOY, [job])
    blocks = []
    for one in traced(TOY, Shape(layers, 5, 2, 2), 0):
        order = [4, 3, 2] if one.backward else [0, 1, 2]
        for step, first, repeat in zip(one.steps, order, (1, 1, 3), strict=True):
            blocks.append(Block((step.products, step.tail), repeat, first, one.backward))
    plain = Run(TOY, 0, blocks, 30, 4000)
    plainly(TOY, [plain])
    trace = engines.run(program, engine)
    assert trace.makespan_cycles == plain.finish
    assert waits_of(step_times(program, trace)) == plain.waits
    assert [(phase.mirrored, phase.step(0)) for phase in program.tasks[0].phases(0)] == [
        *((False, 0), (False, 1), (False, 2)),
        *((True, 4), (True, 3), (True, 2)) * 2,
    ]


#: Cells that the cores have no products for -> a word of the reason.
REFUSED = {
    "gru-lbr0": "2 stages",
    "lstm-projection": "2 stages",
    "lstm-layernorm": "reduces",
    "lstm-peephole": "pi, pf",
}


@pytest.mark.parametrize("name", [name for name in CELLS if name not in REFUSED])
def test_every_other_cell_does_all_its_products(name: str) -> None:
    job = job_of(Layer(cell(name), 12, 10), Layer(cell(name), 5, 12), steps=4, batch=2, threads=3)
    program = lower(many_cores(4), [job])
    assert int(totals_of(program, engines.run(program)).work.sum()) == job.macs


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_lines_of_memory_are_memory_whoever_pays_for_them(engine: str) -> None:
    """Cores that draw lines slowly, and cores that draw them at once from a memory that is no faster."""
    layer = Layer(cell("lstm"), 96, 96)
    chip = load_chip("xeon-gold-5122")
    slow = replace(chip.cores[0], l2_sets=64)
    shares = {}
    for cycles in (slow.core_memory_cycles_per_line, 0):
        cores = (replace(slow, core_memory_cycles_per_line=cycles),) * 4
        program = lower(replace(chip, cores=cores, llc_sets=256), [job_of(layer)])
        totals = totals_of(program, engines.run(program, engine))
        named = dict(zip(CYCLE_NAMES, totals.cycles[:4].sum(axis=0).tolist(), strict=True))
        shares[cycles] = named["memory"] / sum(named.values())
        assert named["busy"] / sum(named.values()) < 1 - shares[cycles]
    assert all(share > 0.5 for share in shares.values()), shares


def test_cells_that_are_refused() -> None:
    for name, word in REFUSED.items():
        layer = Layer(cell(name), 8, 8, projection=4 if name == "lstm-projection" else None)
        with pytest.raises(InputError, match=f"cell '{name}' .*{word}"):
            lower(EPYC, [job_of(layer)])
    steps = Model("m", (Layer(cell("rnn"), 8, 8),), "step")
    assert refusal(steps) == "it runs layer after layer only"


def test_tails_count_the_nodes_of_any_graph() -> None:
    """An xLSTM has three states beside h; its division is no activation."""
    work = cell_work(cell("slstm"))
    assert (work.states, work.activations, work.others) == (("c", "n", "m"), 5, 12)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_bounds_on_operations(threads: int) -> None:
    """A bound is one, and at most five times too large: not each step has lines of each of four memories."""
    layers = (Layer(cell("gru"), 96, 64, bidirectional=True), Layer(cell("lstm"), 200, 192))
    job = job_of(*layers, steps=5, threads=threads)
    bound = operations_per_step(EPYC, job.model, 1, threads)
    variants = lower(EPYC, [job]).tasks[0].variants
    sizes = [[phase.body.size for phase in phases] for _, phases in variants]
    assert bound.held / 5 < sum(map(sum, sizes)) <= bound.held
    assert bound.most / 5 < max(sum(each[2::3]) for each in sizes) <= bound.most


def test_a_product_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match=r"^job job: its products touch about .* lines one by one"):
        lower(EPYC, [job_of(Layer(cell("rnn"), 200_000, 200_000), batch=512)])


#: An LSTM's time step in the long run, with as many inputs as units: (preset, units, threads) -> microseconds that
#: another model gives. More threads are slower where barriers are all that counts.
STEPS = {
    ("xeon-gold-5122", 64, 1): 0.73,
    ("xeon-gold-5122", 64, 4): 0.30,
    ("epyc-7742", 64, 1): 2.23,
    ("epyc-7742", 64, 4): 0.84,
    ("epyc-7742", 64, 16): 1.21,
}


def test_time_of_a_step_in_the_long_run() -> None:
    for (name, hidden, threads), expected in STEPS.items():
        chip: Any = load_chip(name)
        layer = Layer(cell("lstm"), hidden, hidden)
        short, long = (
            engines.totals(lower(chip, [job_of(layer, steps=steps, threads=threads)])).makespan_cycles
            for steps in (5, 10)
        )
        assert (long - short) / 5 / chip.frequency_mhz == pytest.approx(expected, rel=0.1)
