"""The least cycles of jobs on the row-wise NPU, against simulation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from lstmsim.base.bounds import MAX_PES
from lstmsim.base.errors import InputError
from lstmsim.base.keys import as_data
from lstmsim.machines.assembly import SIZE_WORDS
from lstmsim.machines.row import bounds
from lstmsim.machines.row.npu import Dispatch, RowCore, RowLatency, RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.studies.sweep.evaluate import simulated


def _latency(rng: random.Random) -> RowLatency:
    kept = RowLatency()
    return kept if rng.random() < 0.4 else replace(kept, **{key: rng.randint(1, 40) for key in asdict(kept)})


def drawn(rng: random.Random) -> tuple[RowCore, Job]:
    """A core, and a job for it."""
    layers: list[Layer] = []
    order, width = rng.choice(["layer", "layer", "step"]), rng.randint(1, 300)
    dense = rng.random() < 0.2
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        name = "dense" if dense else rng.choice(["lstm", "lstm", "gru", "gru-lbr0", "rnn", "dense"])
        both = order == "layer" and name != "dense" and rng.random() < 0.2
        layers.append(Layer(cell(name), rng.randint(1, 300), width, both))
        width = layers[-1].output
    by_cell = tuple(
        Dispatch(name, rng.choice([1, 9, 70]), rng.choice([0, 300]))
        for name in ("lstm", "gru", "dense")
        if rng.random() < 0.15
    )
    core = RowCore(
        tiles=rng.choice([1, 2, 3, 7]),
        engines=rng.choice([1, 4, 16, 40, 100]),
        lanes=rng.choice([1, 4, 16, 40]),
        vectors=rng.choice([1, 1, 2, 3]),
        replicas=rng.choice([1, 1, 2]),
        native_dimension=rng.choice([1, 1, 10, 64]),
        chunk_groups=rng.choice([1, 1, 2, 5, 16]),
        vector_lanes=rng.choice([1, 8, 40, 200]),
        tile_loads=rng.random() < 0.6,
        dispatch_cycles=rng.choice([1, 1, 4, 60]),
        start_cycles=rng.choice([0, 0, 200]),
        decode_cycles=rng.choice([0, 1, 5]),
        empty_slots=rng.random() < 0.3,
        serializer_cycles=rng.choice([0, 0, 1, 4]),
        count_flushes=rng.random() < 0.6,
        by_cell=by_cell,
        latency=_latency(rng),
    )
    interval = rng.choice([0, 0, 0, 50, 3000])
    job = Job("j", Model("m", tuple(layers), order), rng.choice([1, 2, 3, 9]), 0, frame_interval=interval)
    return core, replace(job, batch=rng.choice([1, 1, 1, 2, 5, 9]))


def compared(seed: int) -> float:
    """Compare one bound with the truth; give their ratio, 1 where the job is too large to be simulated."""
    core, job = drawn(random.Random(seed))
    own = bounds.least(bounds.read(as_data(core)), job.model, job.steps, job.frame_interval, job.batch)
    try:
        truth = int(simulated(RowNpu("c", 100, (core,)), (job,)).makespan_cycles)
    except InputError as error:
        if SIZE_WORDS not in str(error):
            raise
        return 1.0
    assert own.alone <= truth, (seed, int(own.alone), truth)
    assert own.held <= own.alone
    return float(own.alone) / truth


@pytest.mark.slow
def test_no_bound_is_above_the_truth() -> None:
    ratios = [compared(seed) for seed in range(100)]
    assert sum(ratios) / len(ratios) > 0.5


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_no_bound_is_above_the_truth_of_ten_thousand_jobs(part: int) -> None:
    for seed in range(1000 * (part + 1), 1000 * (part + 2)):
        compared(seed)


#: 8 elements are two words and two row groups: a product takes 4 cycles, a vector passes the pipe in 2.
CORE: dict[str, Any] = {"tiles": 1, "engines": 4, "lanes": 4, "vector_lanes": 4, "native_dimension": 1}
CORE |= {"chunk_groups": 1, "dispatch_cycles": 1, "start_cycles": 7, "decode_cycles": 0, "serializer_cycles": 0}
#: Latencies whose sums tell how often each is in them; the others are the least that there may be.
LATENCY = {"product": 101, "evrf": 307, "mfu0": 1009, "mfu1": 3001, "tag_mfu": 10_007, "tag_evrf": 30_011}
LATENCY |= {"tag_mvu": 100_003, "output": 300_007}
LEAST = dict.fromkeys(asdict(RowLatency()), 1)


def stack(*cells: str, order: str = "layer", both: bool = False, first: int = 8, hidden: int = 8) -> Model:
    """Layers of `hidden` elements, the first one with `first` inputs."""
    layers: list[Layer] = []
    for name in cells:
        layers.append(Layer(cell(name), hidden, layers[-1].output if layers else first, both))
    return Model("m", tuple(layers), order)


def held(model: Model, steps: int, batch: int = 1, latency: Mapping[str, int] = LEAST, **core: Any) -> int:
    """The bound of a job on `CORE` with some keys changed."""
    entry = bounds.read({**CORE, "latency": {**LEAST, **latency}, **core})
    return int(bounds.least(entry, model, steps, 0, batch).held)


def taken(model: Model, steps: int, batch: int = 1, latency: Mapping[str, int] = LEAST, **core: Any) -> int:
    """What the job takes there."""
    own = RowCore(**{**CORE, "latency": RowLatency(**{**LEAST, **latency}), **core})
    job = replace(Job("j", model, steps), batch=batch)
    return int(simulated(RowNpu("c", 100, (own,)), (job,)).makespan_cycles)


def after(cycles: int, **times: int) -> int:
    """So many cycles, and latencies by name, each so many times."""
    return cycles + sum(LATENCY[name] * number for name, number in times.items())


#: By cell, by hand from docs/row_npu.md: cycles of the x part; from the first product of h, in cycle 0, to the cycle in
#: which the last elements of h leave MFU1.
WAYS = {
    # the last word comes in cycle 3
    "rnn": (4, after(3, product=1, evrf=1, mfu0=1, mfu1=1)),
    # i ends in cycle 7; i * g, c and h wait for i, i * g and c, and for the second row group of each
    "lstm": (16, after(7 + 3, product=1, evrf=2, mfu0=2, mfu1=4, tag_mfu=2, tag_evrf=1)),
    # r ends in cycle 7; n waits for r, and h reads n
    "gru": (12, after(7 + 2, product=1, evrf=2, mfu0=3, mfu1=3, tag_mfu=1, tag_evrf=1)),
    # r * h ends in cycle 7; the product of it takes 4 cycles, and h reads what it gives
    "gru-lbr0": (12, after(7 + 3 + 1, product=2, evrf=3, mfu0=3, mfu1=3, tag_mvu=1, tag_evrf=1)),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_way_from_one_h_to_the_next_is_that_of_the_text(name: str) -> None:
    """Two steps wait for h, the third one ends the job: 7 cycles before it starts, and one behind its end."""
    first, way = WAYS[name]
    again = way + LATENCY["tag_mvu"]
    bound = held(stack(name), 3, latency=LATENCY)
    assert bound == 7 + 2 * again + first + way + LATENCY["output"] + 1
    assert bound <= taken(stack(name), 3, latency=LATENCY)
    # step by step through all layers, a job ends no sooner than its last step begins
    assert held(stack(name, name, order="step"), 3, 2, latency=LATENCY) == 7 + 2 * 2 * again + 1


def test_each_further_step_of_an_lstm_takes_what_the_bound_says() -> None:
    def further(cycles: Callable[..., int]) -> int:
        return cycles(stack("lstm"), 5, latency=LATENCY) - cycles(stack("lstm"), 3, latency=LATENCY)

    assert further(held) == further(taken) == 2 * (WAYS["lstm"][1] + LATENCY["tag_mvu"])


def ended(way: int, first: int) -> int:
    """Two steps whose h takes so long from its first product, the last one behind an x part."""
    return way + LATENCY["tag_mvu"] + first + way + LATENCY["output"]


#: A row a cycle, and an instruction every 50 cycles.
FEW = {"tiles": 2, "lanes": 2, "engines": 1, "dispatch_cycles": 50}
#: From the last word of a product to the cycle in which a result that waits for nothing leaves MFU1.
PASSED = after(0, product=1, evrf=1, mfu0=1, mfu1=1)
#: What bounds a job, by hand: the job, keys of the core, and cycles between its start and its last one.
BUSY: dict[str, tuple[Model, int, int, dict[str, Any], int]] = {
    # 8 cycles of products a step and layer, but for the last product
    "products": (stack("rnn", "rnn", order="step"), 4, 1, {}, 4 * 16 - 4),
    # c and h are read
    "products of four gates": (stack("lstm", order="step"), 4, 1, {}, 4 * 32),
    # 8 x 16 and 16 x 16 elements, three rounds
    "products of rounds": (stack("dense", "dense", hidden=16), 3, 3, {}, 3 * 3 * (8 + 16) - 16),
    # 10 elements are three words; five row groups take as long as to load a word
    "padded products": (stack("dense"), 3, 1, {"native_dimension": 10, "chunk_groups": 5}, 2 * 5 * 3),
    # in each direction three times a step, then: x part, two words and rows of h, its way, out
    "both directions": (stack("rnn", both=True), 4, 1, {}, 4 * 8 + 3 * 8 + 4 + 3 + 4 + 1),
    # a row group of 4 engines and two vectors is 8 elements, one a cycle: 16 cycles for each of two chains
    "pipe": (stack("rnn"), 4, 1, {"vector_lanes": 1, "vectors": 2}, 4 * 32 - 16),
    "pipe of rounds": (stack("rnn"), 4, 5, {"vector_lanes": 1, "vectors": 2}, 3 * 4 * 32 - 16),
    # x part, h part, a loader for each tile: four of eight row groups are written, two for each tile
    "instructions": (
        stack("rnn"),
        3,
        1,
        {**(few := {"tiles": 2, "lanes": 2, "engines": 1}), "dispatch_cycles": 50},
        550,
    ),
    "one loader": (stack("rnn"), 3, 1, {**few, "dispatch_cycles": 50, "tile_loads": False}, 3 * 150 - 50),
    # f, i, o, i * g pass the pipe in 16 cycles each; c and h wait for the one before, and for its last elements
    "pipe and latency": (
        stack("lstm"),
        2,
        1,
        {"vector_lanes": 1, "vectors": 2, "latency": {"product": 1000}},
        2 * (1000 + 63 + 3 + 1 + 15 + 1 + 1 + 15 + 3) + 1 + 16 + 1,
    ),
    # of five row groups two are h, the others padding, which passes, too, where one loader writes all
    "no padding": (stack("rnn"), 2, 1, {"chunk_groups": 5, "latency": LATENCY}, ended(PASSED + 1, 10)),
    "padding": (
        stack("rnn"),
        2,
        1,
        {"chunk_groups": 5, "latency": LATENCY, "tile_loads": False},
        ended(PASSED + 9, 10),
    ),
    # what stays in the register file has all five row groups: i ends in cycle 19
    "padding that is kept": (
        stack("lstm"),
        2,
        1,
        {"chunk_groups": 5, "latency": LATENCY},
        ended(after(19 + 4 + 4 + 1, product=1, evrf=2, mfu0=2, mfu1=4, tag_mfu=2, tag_evrf=1), 40),
    ),
}


@pytest.mark.parametrize("what", BUSY)
def test_the_busiest_unit_bounds_a_job(what: str) -> None:
    model, steps, batch, core, cycles = BUSY[what]
    assert held(model, steps, batch, **core) == 7 + cycles + 1
    assert held(model, steps, batch, **core) <= taken(model, steps, batch, **core)


def test_what_a_core_is_and_can() -> None:
    core = bounds.read({"tiles": 2, "engines": 3, "lanes": 5, "vectors": 7, "replicas": 11})
    assert (bounds.peak(core), core.ep, core.batch, bounds.contexts(core)) == (2310, 10, 77, 1)
    usual = bounds.read({"tiles": 1, "engines": 1, "lanes": 1})
    assert (usual.dispatch_cycles, usual.latency.product) == (RowCore.dispatch_cycles, RowLatency().product)
    assert bounds.able(core, stack("lstm", "gru"))
    assert not bounds.able(core, stack("lstm", "lstm-peephole"))
    renamed = replace(cell("gru"), name="lstm")
    assert not bounds.able(core, Model("m", (Layer(renamed, 8, 8),)))


def test_too_many_pes_of_one_core_are_enough_to_refuse_a_design() -> None:
    large = {"tiles": MAX_PES // 1000, "engines": 10, "lanes": 10, "vectors": 10, "replicas": 1}
    fits, not_quite = bounds.read(large), bounds.read({**large, "tiles": MAX_PES // 1000 + 1})
    for cores, refused in (([fits], False), ([fits, fits], False), ([fits, not_quite], True), ([not_quite], True)):
        assert [bool(each) for each in bounds.broken(cores, [1] * len(cores)).values()] == [refused]


def test_a_job_ends_no_sooner_than_its_last_frame_comes() -> None:
    def alone(steps: int, interval: int) -> tuple[int, int]:
        own = bounds.least(bounds.read({**CORE, "latency": LEAST}), stack("dense"), steps, interval)
        return int(own.alone), int(own.held)

    # the job holds the core for as long as without frames, as far as is known
    assert alone(3, 0) == (7 + 2 * 4 + 1, 7 + 2 * 4 + 1)
    assert alone(3, 500) == (1001, 7 + 2 * 4 + 1)


def test_the_dispatch_of_a_cell_is_that_of_its_layers() -> None:
    own = {"rnn": {"dispatch_cycles": 50, "start_cycles": 30}}
    # x part, h part and a loader in each of three steps
    assert held(stack("rnn"), 3, by_cell=own) == 30 + 3 * 150 - 50 + 1
    assert held(stack("rnn"), 3, by_cell={"rnn": {"dispatch_cycles": 50}}) == 7 + 3 * 150 - 50 + 1
    assert held(stack("rnn"), 3, by_cell={"gru": own["rnn"]}) == held(stack("rnn"), 3)
    # a job begins with its first layer
    mixed = stack("rnn", "gru")
    assert held(mixed, 3, by_cell={"rnn": {"start_cycles": 30}}) == held(mixed, 3) + 30 - 7
    assert held(mixed, 3, by_cell={"gru": {"start_cycles": 30}}) == held(mixed, 3)
