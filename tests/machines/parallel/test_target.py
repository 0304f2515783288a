"""The parallel device as a machine: scenarios of dense recurrent jobs, reports, explanations, sweeps, refusals."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.analysis.files import READABLE, load_trace
from lstmsim.base.errors import InputError
from lstmsim.machines.parallel.device import GATES, ParallelDevice
from lstmsim.machines.parallel.jobs import device_jobs
from lstmsim.machines.parallel.kernels.dense import tile_for
from lstmsim.machines.parallel.kernels.recurrent import CELLS, RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.lowering.program import program_of_jobs
from lstmsim.machines.registry import target_of
from lstmsim.model.cells import cell as workload_cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.program.program import TabledProgram
from lstmsim.program.unflatten import program_of
from lstmsim.studies.simulate.run import Run, explain, run
from tests.timelines import assert_equal

SMALL = {
    "kind": "parallel-device",
    "frequency_mhz": 1000,
    "cores": [{"count": 2, "schedulers": 2, "max_warps": 16}],
    "partitions": 2,
    "launch": 100,
}


@pytest.mark.parametrize("cell", CELLS)
def test_barriers_count_the_rows_of_all_products_of_a_step(cell: str) -> None:
    made = recurrent_layer(RecurrentSizes(7, 5, 1, 1, cell), None, 0, lstmsim.load_chip("edge"))
    sums = sum(each.elements for each in made.run.arrays if each.name in ("gates", "new"))
    assert sums == GATES[cell] * 7


def layer(cell: str = "lstm", hidden: int = 6, inputs: int = 5, **others: Any) -> dict[str, Any]:
    return {"cell": cell, "hidden": hidden, "input": inputs, **others}


def scenario(*jobs: dict[str, Any], **chip: Any) -> dict[str, Any]:
    return {"chip": {**SMALL, **chip}, "jobs": list(jobs)}


def job(*layers: dict[str, Any], steps: int = 2, **others: Any) -> dict[str, Any]:
    return {"model": {"layers": list(layers)}, "steps": steps, **others}


JOBS = {
    "lstm": job(layer()),
    "gru": job(layer("gru")),
    "gru-lbr0": job(layer("gru-lbr0")),
    "rnn": job(layer("rnn")),
    "batch": job(layer(), batch=3),
    "layers": job(layer(), layer("rnn", 4, 6)),
    "directions": job(layer("gru", bidirectional=True)),
}


#: Jobs that run in both ways; the others do in turn, and in both in the long version.
BOTH_WAYS = ("lstm", "directions")


@pytest.mark.halved
@pytest.mark.parametrize(
    ("name", "recurrent"),
    [
        pytest.param(name, recurrent, marks=() if name in BOTH_WAYS or number % 2 == way else pytest.mark.long)
        for way, recurrent in enumerate(("kernels", "persistent"))
        for number, name in enumerate(JOBS)
    ],
)
def test_both_engines_agree_and_everything_adds_up(name: str, recurrent: str) -> None:
    asked = scenario(JOBS[name], recurrent=recurrent)
    fast = run(asked, engine="fast")
    reference = Run(fast.scenario, "reference", fast.program)
    assert fast.totals == reference.totals
    assert np.array_equal(fast.trace.issues, reference.trace.issues)
    for core in fast.report.cores:
        assert sum(core.cycles.values()) == 2 * fast.report.makespan_cycles
        assert sum(core.pe_cycles.values()) == core.peak * fast.report.makespan_cycles
    # a layer that resets before the product has zeros in its matrices, which are no useful work
    macs = sum(each.macs for each in fast.report.cores)
    assert macs == fast.scenario.jobs[0].macs


def test_launches_by_hand() -> None:
    """A kernel for the product and one for the cell in every step; the first comes at `launch`, others behind ends."""
    result = run(scenario(job(layer(), steps=3)))
    kernels = result.program.tasks[1:]
    names = [each.name.split("/")[1].split()[1] for each in kernels]
    assert kernels[0].name.endswith("/0 gemv/0")
    assert set(names) == {"gemv", "cell"}
    arrived, finish = (result.totals.task(name)[1:] for name in ("arrived", "finish"))
    starts = sorted(set(arrived.tolist()))
    assert len(starts) == 6
    assert starts[0] == 100
    for before, after in pairwise(starts):
        assert after == finish[arrived == before].max() + 100
    assert result.report.makespan_cycles == finish.max()


def test_jobs_run_one_after_the_other_in_the_order_of_their_ranks() -> None:
    long, short = job(layer(), steps=3), job(layer(), steps=1)
    report = lstmsim.simulate(scenario(long, short))
    assert report.jobs[1].start == report.jobs[0].finish
    assert report.jobs[0].cores == (0, 1)
    sjf = lstmsim.simulate({**scenario(long, short), "dispatch": "sjf"})
    assert sjf.jobs[0].start == sjf.jobs[1].finish
    late = lstmsim.simulate(scenario(job(layer(), steps=1, arrival=50_000)))
    assert (late.jobs[0].start, late.jobs[0].latency) == (50_000, report.jobs[1].latency - report.jobs[1].start)


def test_a_persistent_kernel_saves_launches_and_pays_grid_barriers() -> None:
    steps = 4
    asked = scenario(job(layer(), steps=steps), launch=5000, grid=50)
    kernels = lstmsim.simulate(asked).makespan_cycles
    persistent = run(asked, overrides=["chip.recurrent=persistent"])
    assert kernels > 2 * steps * 5000
    assert 5000 + 2 * steps * 50 < persistent.report.makespan_cycles < 2 * 5000 + 2 * steps * 2000
    # a gate for the job's start, one for the kernel, one for each grid barrier
    assert len(persistent.program.barriers) == 2 + 2 * steps


def test_a_persistent_kernel_that_does_not_fit_is_refused_with_what_runs_instead() -> None:
    asked = scenario(job(layer(hidden=200)), recurrent="persistent")
    said = r"chip.recurrent: persistent runs a layer lstm of 200 units .* as 200 thread blocks .*: 'kernels' runs it"
    with pytest.raises(InputError, match=said):
        lstmsim.simulate(asked)
    assert lstmsim.simulate(asked, overrides=["chip.recurrent=kernels"]).makespan_cycles > 0


def test_its_program_is_kept_as_tables() -> None:
    loaded = lstmsim.load_scenario(scenario(JOBS["layers"]))
    program = machines.lower(loaded.chip, loaded.jobs)
    assert isinstance(program, TabledProgram)
    assert "_whole" not in vars(program)
    assert engines.totals(program) == engines.totals(program_of(program.flat, program.names))


def test_equal_steps_share_their_bodies() -> None:
    few, many = (run(scenario(job(layer(), steps=steps))).program for steps in (2, 9))
    assert isinstance(few, TabledProgram)
    assert isinstance(many, TabledProgram)
    assert len(few.flat.table("bodies")) == len(many.flat.table("bodies"))
    assert len(few.flat.table("tasks")) < len(many.flat.table("tasks"))


@pytest.mark.parametrize("name", JOBS)
def test_a_step_has_no_more_operations_than_its_bound(name: str) -> None:
    loaded = lstmsim.load_scenario(scenario(JOBS[name]))
    one = loaded.jobs[0]
    machine = target_of("parallel-device")
    bound = machine.per_step(loaded.chip.cores[:1], one.model, one.batch)
    program = run(scenario(JOBS[name])).program
    operations = sum(len(each.variants[0][1][0].body.operations) for each in program.tasks)
    assert operations <= bound.most * one.steps
    assert len(device_jobs(loaded.chip, loaded.jobs)) == 1


@pytest.mark.halved
@pytest.mark.parametrize(
    ("recurrent", "cell", "hidden", "inputs", "batch"),
    # rows that begin anywhere, several slices, two products, each default tile
    [
        ("kernels", "lstm", 33, 31, 2),
        ("persistent", "lstm", 33, 31, 2),
        ("persistent", "gru-lbr0", 24, 200, 3),
        ("kernels", "rnn", 40, 40, 17),
        ("kernels", "gru", 8, 7, 65),
        ("persistent", "rnn", 1, 1, 130),
    ],
)
def test_products_have_no_more_operations_than_their_bound(
    recurrent: str, cell: str, hidden: int, inputs: int, batch: int
) -> None:
    chip = lstmsim.load_chip("v100")
    assert isinstance(chip, ParallelDevice)
    chip = replace(chip, recurrent=recurrent)
    (one,) = lstmsim.load_scenario(scenario(job(layer(cell, hidden, inputs), steps=1, batch=batch))).jobs
    real = _operations(chip, one)
    assert real <= target_of("parallel-device").per_step(chip.cores[:1], one.model, batch).most


def _operations(chip: ParallelDevice, one: Job) -> int:
    """How many operations the blocks of all kernels have."""
    flat = program_of_jobs(chip, device_jobs(chip, [one])).flat
    row = flat.column("tasks", "profile")
    for table, column in (("profiles", "first_variant"), ("variants", "first_phase"), ("phases", "body")):
        row = flat.column(table, column)[row]
    return int(flat.column("bodies", "operations")[row].sum())


@pytest.mark.slow
def test_the_bound_of_a_product_by_tiles_is_near_what_is_written() -> None:
    """On the V100: 23.4 million operations were once the bound of an LSTM of 1024 units, which has 2.3 million."""
    chip = lstmsim.load_chip("v100")
    assert isinstance(chip, ParallelDevice)
    (one,) = lstmsim.load_scenario(scenario(job(layer("lstm", 256, 256), steps=1, batch=2))).jobs
    machine = target_of("parallel-device")
    assert machine.per_step(chip.cores[:1], one.model, 2).most < 2 * _operations(chip, one)
    large = Model("large", (Layer(workload_cell("lstm"), 1024, 1024),))
    assert machine.per_step(chip.cores[:1], large, 2).most < 5_000_000


def test_too_large_jobs_are_refused_before_a_kernel_is_written() -> None:
    with pytest.raises(InputError, match=r"takes up to .* operations on this chip, a job may have 2,000,000,000"):
        lstmsim.simulate({"chip": "v100", "jobs": [job(layer(hidden=100_000, inputs=100_000))]})


def test_a_step_that_is_too_large_for_its_batch_is_told_a_smaller_one() -> None:
    entry = job(layer("lstm", 1024, 1024), steps=1, batch=256)
    said = r"more than 24,000,000: too many to simulate; with batch 128 it takes up to 19,\d{3},\d{3}$"
    with pytest.raises(InputError, match=said):
        lstmsim.load_scenario({"chip": "v100", "jobs": [entry]})
    asked = lstmsim.load_scenario({"chip": "v100", "jobs": [{**entry, "batch": 128}]})
    with pytest.raises(InputError, match=said):
        machines.lower(asked.chip, [replace(asked.jobs[0], batch=256)])
    # the largest published networks have room, where steps are kernels of their own
    for hidden in (2560, 2816):
        lstmsim.load_scenario({"chip": "v100", "jobs": [job(layer("gru", hidden, hidden), steps=2)]})
    # too large with any batch: nothing is promised
    with pytest.raises(InputError, match=r"too many to simulate$"):
        lstmsim.load_scenario({"chip": "v100", "jobs": [job(layer("lstm", 8192, 8192), steps=1, batch=2)]})


def test_the_tile_of_a_large_product_is_the_largest_that_keeps_every_sm_busy() -> None:
    sms = len(lstmsim.load_chip("v100").cores)
    assert tile_for(4096, 16, sms).bm == 64
    assert [tile_for(rows, 128, sms).bn for rows in (1024, 5120, 10240)] == [64, 64, 128]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"cores": [0]}, "cores: a parallel device runs a job on all of its SMs: leave it out"),
        ({"frame_interval": 5}, "frame_interval: a parallel device has the whole input of a job at once, got 5"),
        ({"patience": 5}, "patience: a parallel device turns no jobs away"),
        ({"queue_limit": 5}, "queue_limit: a parallel device turns no jobs away"),
    ],
)
def test_what_its_jobs_cannot_ask_for(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said.replace(":", ".*", 1)):
        lstmsim.simulate(scenario({**JOBS["lstm"], **keys}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cores": [{"count": 1}, {"lanes": 8}]}, "must be equal: all SMs of a parallel device are alike"),
        ({"cores": [{"warp": 48}]}, "warp: must be 32 or 64"),
        ({"cores": [{"lanes": 4}]}, "latency.alu: must be at least 8, the cycles of an issue"),
        ({"partitions": 65}, "partitions: must be at most 64"),
        ({"l2_state": "hot"}, "l2_state"),
        ({"fusion": "of"}, "fusion: must be 'cell', 'on' or 'off', got 'of'; did you mean 'off'"),
        ({"fusion": True}, "fusion: must be 'cell', 'on' or 'off', got true"),
        ({"split_rule": "costs"}, "split_rule: must be 'paper' or 'costed'"),
        ({"lunch": 5}, "lunch: unknown key; did you mean 'launch'"),
    ],
)
def test_wrong_descriptions(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        lstmsim.simulate(scenario(JOBS["lstm"], **change))


def test_cells_without_kernels_are_refused() -> None:
    with pytest.raises(InputError, match="it has kernels for lstm, gru, gru-lbr0, rnn, rnn-relu layers only"):
        lstmsim.simulate(scenario(job(layer("lstm-peephole"))))


@pytest.mark.slow
def test_it_is_explained() -> None:
    explanation = explain(run(scenario({**JOBS["layers"], "steps": 1})))
    assert sum(share.cycles for share in explanation.shares) == explanation.makespan_cycles
    # two kernels a step, two layers
    launches = next(share for share in explanation.shares if share.kind == "behind")
    assert launches.cycles == 4 * 100
    assert {"SMs doubled", "persistent kernels"} <= {each.name for each in explanation.what_if.alternatives}
    assert "a kernel is being launched" in explanation.to_text()


@pytest.mark.parametrize("suffix", [each for each in READABLE if each != ".kanata"])
def test_timelines_have_rows_for_schedulers_warps_and_partitions(tmp_path: Path, suffix: str) -> None:
    timeline = run(scenario(JOBS["rnn"])).timeline
    names = [row.name for row in timeline.rows]
    assert sum("thread" in each for each in names) == 2 * 16
    assert [each for each in names if "dram" in each]
    assert "dispatcher" in " ".join(names)
    assert "host" not in " ".join(names)
    lstmsim.save_trace(timeline, tmp_path / f"trace{suffix}")
    assert_equal(lstmsim.load_trace(tmp_path / f"trace{suffix}"), timeline)
    assert load_trace(tmp_path / f"trace{suffix}").makespan_cycles == timeline.makespan_cycles


@pytest.mark.slow
def test_it_is_swept_and_compared(tmp_path: Path) -> None:
    asked = scenario(JOBS["lstm"])
    axes = {
        "schedulers": {"path": "chip.cores.0.schedulers", "values": [1, 4]},
        "launch": {"path": "chip.launch", "values": [0, 300]},
        "l1": {"path": "chip.cores.0.latency.l1", "values": [10]},
    }
    lstmsim.sweep({"scenario": asked, "axes": axes}, tmp_path, jobs=1)
    with (tmp_path / "sweep.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4
    for row in rows:
        path = [f"chip.cores.0.schedulers={row['schedulers']}", f"chip.launch={row['launch']}"]
        cycles = lstmsim.simulate(asked, overrides=[*path, "chip.cores.0.latency.l1=10"]).makespan_cycles
        assert int(row["makespan_cycles"]) == cycles
        assert row["sms"] == "2"
    comparison = lstmsim.compare(asked, ["column-npu-16k", "v100"])
    assert [machine.name for machine in comparison.machines][1:] == ["column-npu-16k", "v100"]


def test_it_says_what_it_leaves_out_and_how_far_to_trust_it() -> None:
    report = lstmsim.simulate(scenario(JOBS["lstm"]))
    assert "left out: instruction fetch" in report.remarks[0]
    assert "docs/parallel_device.md" in target_of("parallel-device").fidelity.text
