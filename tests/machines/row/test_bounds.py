"""The least cycles of jobs on the row-wise NPU, against simulation."""

from __future__ import annotations

import random
from dataclasses import asdict, replace

import pytest

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
