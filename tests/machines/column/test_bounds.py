"""The least cycles of single jobs on the column-wise NPU, against simulation."""

from __future__ import annotations

import random
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from lstmsim.base.keys import as_data
from lstmsim.machines.column import bounds
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Latency
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.studies.sweep.evaluate import simulated
from tests.strategies import examples


def layer_of(name: str, size: int) -> Model:
    return Model("m", (Layer(cell(name), size, size),))


@pytest.mark.parametrize(
    ("name", "size", "ep", "vp", "cycles"),
    [
        *(("lstm", 512, 32, 2048, 1423), ("lstm", 1024, 32, 2048, 2735), ("lstm", 1024, 16, 4096, 2628)),
        *(("gru", 512, 32, 2048, 1583), ("gru-lbr0", 512, 32, 2048, 2343)),
    ],
)
def test_the_worked_examples_of_the_contract_are_met_exactly(
    name: str, size: int, ep: int, vp: int, cycles: int
) -> None:
    core = bounds.read({"npe": 65536, "ep": ep, "vp": vp})
    assert bounds.least(core, layer_of(name, size), 20, 0).alone == cycles


def drawn(rng: random.Random) -> tuple[ColumnCore, Model, int, int]:
    """A core, a model that it can run, steps, cycles between frames."""
    while True:
        kind = cell(rng.choice([*CELLS, "lstm", "gru", "lstm"]))
        order, layers, width = rng.choice(["layer", "step"]), list[Layer](), rng.randint(1, 90)
        for _ in range(rng.choice([1, 1, 2, 3])):
            one_way = order == "step" or not kind.recurrent
            both = not one_way and rng.random() < 0.3
            turned = not one_way and not both and rng.random() < 0.2
            projection = rng.randint(1, 40) if kind.projected else None
            layers.append(Layer(kind, rng.randint(1, 90), width, both, projection, turned))
            width = layers[-1].output
        latency = Latency() if rng.random() < 0.4 else Latency(**{key: rng.randint(1, 20) for key in asdict(Latency())})
        ep, vp = rng.choice([1, 2, 4, 7, 8, 16, 32, 64]), rng.randint(4, 300)
        core = ColumnCore(
            npe=ep * vp,
            ep=ep,
            vp=vp,
            tail_width=rng.choice([1, 2, 5, 16, 64]),
            accumulator_banks=rng.choice([1, 2, 2, 3, 8, 90]),
            block_order=rng.choice(["row", "row", "column"]),
            latency=latency,
        )
        model = Model("m", tuple(layers), order)
        able = bool(bounds.able(bounds.read(as_data(core)), model))
        assert able == (core.refusal(model) is None)
        if able:
            return core, model, rng.choice([1, 2, 5, 20]), rng.choice([0, 0, 0, rng.randint(1, 400)])


def compared(seed: int, batch: int = 1) -> float:
    """Compare one job; give its bound as a share of the truth."""
    core, model, steps, interval = drawn(random.Random(seed))
    job = Job("a", model, steps, frame_interval=interval, batch=batch)
    truth = simulated(ColumnNpu("c", 250, (core,)), [job]).makespan_cycles
    least = bounds.least(bounds.read(as_data(core)), model, steps, interval, batch)
    assert least.alone <= truth, seed
    for work, after in least.work.values():
        assert work - 1 + after <= truth, seed
    # the context is held no longer than it takes without frames
    plain = simulated(ColumnNpu("c", 250, (core,)), [replace(job, frame_interval=0)]).makespan_cycles
    assert least.held <= plain, seed
    return float(least.alone / truth)


def test_no_schedule_of_a_job_beats_its_bound_and_many_meet_it() -> None:
    shares = [compared(seed) for seed in range(examples(100))]
    assert np.mean(shares) > 0.96
    assert np.mean(np.array(shares) == 1) > 0.5


@pytest.mark.slow
def test_no_schedule_of_a_batch_beats_its_bound_and_some_meet_it() -> None:
    shares = [compared(seed, 2 + seed % 4) for seed in range(300, 360)]
    assert np.mean(shares) > 0.6
    assert np.max(shares) == 1


@pytest.mark.long
@pytest.mark.parametrize("batch", range(20))
def test_no_schedule_beats_the_bounds_of_more_jobs(batch: int) -> None:
    for seed in range(500):
        compared(10_000 + 500 * batch + seed, random.Random(seed).choice([1, 1, 2, 5]))


def test_columns_are_what_each_core_gives_alone() -> None:
    rng = random.Random(4)
    model = Model("m", (Layer(cell("lstm-layernorm"), 40, 20), Layer(cell("gru-lbr0"), 24, 40)), "step")
    entries: list[dict[str, Any]] = [
        {"npe": 4096, "ep": rng.choice([1, 3, 8]), "vp": rng.choice([8, 30, 100]), "tail_width": rng.choice([2, 9])}
        | {
            "accumulator_banks": rng.randint(1, 4),
            "threads": 1,
            "latency": {"add": rng.randint(1, 3), "quantize": rng.randint(0, 5)},
        }
        for _ in range(50)
    ]
    columns: dict[str, Any] = {key: np.array([each[key] for each in entries]) for key in entries[0] if key != "latency"}
    columns["latency"] = {key: np.array([each["latency"][key] for each in entries]) for key in ("add", "quantize")}
    many = bounds.least(bounds.read(columns), model, 7, 30)
    for place, entry in enumerate(entries):
        one = bounds.least(bounds.read(entry), model, 7, 30)
        assert (one.alone, one.held) == (many.alone[place], many.held[place])
        for unit, numbers in one.work.items():
            assert [int(each) for each in numbers] == [
                int(np.broadcast_to(each, 50)[place]) for each in many.work[unit]
            ]


def test_rules_are_those_of_the_description() -> None:
    rng = random.Random(1)
    for _ in range(300):
        entry = {"npe": rng.choice([8, 64]), "ep": rng.choice([1, 4, 6, 16]), "vp": rng.choice([1, 4, 16, None])}
        entry |= {"cat": rng.choice([1, 2, 3, 4]), "tree_inputs": rng.choice([None, 4, 16, 128])}
        told = bounds.broken([bounds.read(entry)], (1,))
        try:
            made = ColumnCore(**{key: value for key, value in entry.items() if key != "vp"}, vp=entry["vp"])
            wrong = bool(made.mistakes())
        except Exception:
            wrong = True
        assert any(bool(np.any(each)) for each in told.values()) == wrong, entry
