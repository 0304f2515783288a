"""Split jobs on chips of several devices: both engines, the cycle-stepped model of section 9, its example, numbers."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lstmsim
from lstmsim import InputError, engines
from lstmsim.engines.reference import run as reference
from lstmsim.machines import lower
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Devices
from lstmsim.machines.column.phases import operations_per_step
from lstmsim.machines.column.shape import ARRAY
from lstmsim.machines.column.subset import outside
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.accounts import named_cycles, totals_of
from lstmsim.studies.serve.demands import memory_cycles
from tests.analysis.replay.test_replay_mutations import assert_found
from tests.oracle import split as oracle
from tests.replays import assert_golden, moved, run, waited, without
from tests.splits import issues, linked, phases_of

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "8"))
CORE = ColumnCore(npe=64, ep=4, vp=16)
LSTM_8 = {"name": "m", "layers": [{"cell": "lstm", "hidden": 8, "input": 8}]}
LSTM = Model("m", (Layer(cell("lstm"), 8, 8),))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(linked())
def test_random_jobs_over_devices_as_the_cycle_stepped_model_has_them(case: tuple[ColumnNpu, list[Job]]) -> None:
    chip, jobs = case
    assert chip.devices is not None
    program = lower(chip, jobs)
    trace = reference.run(program)
    assert engines.run(program) == trace
    assert engines.totals(program) == totals_of(program, trace)
    places = [(job, job.cores or ()) for job in jobs]
    device = tuple(map(chip.device_of, range(len(chip.cores))))
    finish, cores = oracle.simulate_splits(places, chip.cores[0], device, chip.exchange, chip.devices)
    assert trace.task("finish").tolist() == finish
    for on, core in enumerate(cores):
        assert issues(trace, on, ARRAY) == core.issued
        names = {name: cycles for name, cycles in named_cycles(program, trace, on).totals().items() if cycles}
        first = min(job.arrival for job in jobs)
        assert names == core.names | ({"idle": core.names.get("idle", 0) + first} if first else {})


@settings(max_examples=EXAMPLES, deadline=None)
@given(linked())
def test_links_change_nothing_for_jobs_that_stay_on_a_device(case: tuple[ColumnNpu, list[Job]]) -> None:
    chip, jobs = case
    each = len(chip.cores) // chip.device_count
    own = [job for job in jobs if len({core // each for core in job.cores or ()}) == 1]
    if own:
        one = replace(chip, devices=None)
        assert reference.run(lower(chip, own)) == reference.run(lower(one, own))


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(linked())
def test_jobs_over_devices_give_the_bits_of_the_golden_model(case: tuple[ColumnNpu, list[Job]]) -> None:
    scenario = Scenario(case[0], tuple(case[1]))
    assert_golden(scenario, *run(scenario, "fast"))


@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(linked(), st.integers(1, 20))
def test_a_slower_link_never_ends_sooner(case: tuple[ColumnNpu, list[Job]], more: int) -> None:
    chip, (job, *_) = case
    assert chip.devices is not None
    assume(len(set(job.cores or ())) == len(job.cores or ()))
    ends = [
        reference.run(lower(replace(chip, devices=links), [job])).makespan_cycles
        for links in (
            replace(chip.devices, width=chip.devices.width + more),
            chip.devices,
            replace(chip.devices, latency_cycles=chip.devices.latency_cycles + more),
        )
    ]
    assert ends == sorted(ends)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(linked())
def test_the_load_of_links_is_what_a_trace_has(case: tuple[ColumnNpu, list[Job]]) -> None:
    chip, (job, *_) = case
    program = lower(chip, [job])
    trace = reference.run(program)
    places = len(chip.cores)
    busy = np.zeros(chip.device_count, dtype=np.int64)
    columns = (trace.issue(name) for name in ("core", "unit", "count", "cycles"))
    for core, unit, count, cycles in zip(*(each.tolist() for each in columns), strict=True):
        if core == places:
            busy[unit] += count * cycles
    assert memory_cycles(program, program.tasks[0]).tolist() == [busy.tolist()]
    operations = sum(len(phase.body.operations) for phase in phases_of(program))
    assert operations <= operations_per_step(job.model.layers, chip.cores[0], job.split, len(job.cores or ()))


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2, deadline=None)
@given(linked(), st.data())
def test_a_link_that_sends_nothing_or_too_early_is_found(
    case: tuple[ColumnNpu, list[Job]], data: st.DataObject
) -> None:
    scenario = Scenario(case[0], tuple(case[1]))
    program, trace = run(scenario, "fast")
    rows = np.flatnonzero(trace.issue("core") == len(case[0].cores)).tolist()
    assume(rows)
    row = data.draw(st.sampled_from(rows))
    assert_found((scenario, program, trace), without(trace, row), "has not been computed by then")
    if row in waited(trace, "hazard"):
        assert_found((scenario, program, trace), moved(trace, row, -1))


def test_the_example_of_section_9() -> None:
    chip = ColumnNpu("c", 260, (CORE,) * 2, devices=Devices(20, 2, 2))
    trace = reference.run(lower(chip, [Job("j", LSTM, 2, split="rows")]))
    assert trace.makespan_cycles == 166
    assert [issues(trace, on, ARRAY) for on in (0, 1)] == [
        [(at, 0) for at in (0, 1, 2, 3, 4, 5, 55, 84)],
        [(at, 0) for at in (0, 1, 2, 3, 4, 5, 84, 85)],
    ]
    assert [issues(trace, on, 2) for on in (0, 1)] == [[(55, 0), (136, 0)], [(55, 0), (137, 0)]]
    # the links are units of a core of their own, whose threads stand for those of the cores
    assert [issues(trace, 2, device) for device in (0, 1)] == [[(63, 0), (144, 0)], [(63, 1), (145, 1)]]
    scenario = Scenario(chip, (Job("j", LSTM, 2, split="rows"),))
    names = [row.name for row in lstmsim.run(scenario).timeline.rows]
    assert names[-3:] == ["core 1 exchange", "link0", "link1"]


def test_members_on_one_device_share_its_link() -> None:
    """Two cores on each of two devices, two units each: what the second core of a device sends waits for the first."""
    chip = ColumnNpu("c", 260, (CORE,) * 4, devices=Devices(20, 1, 2))
    trace = reference.run(lower(chip, [Job("j", LSTM, 1, split="rows")]))
    assert [issues(trace, 4, device) for device in (0, 1)] == [[(63, 0), (65, 1)], [(63, 2), (65, 3)]]
    assert trace.makespan_cycles == 65 + 1 + 20


def test_who_reads_on_the_own_device_does_not_wait_for_the_link() -> None:
    """Of three layers on cores 0, 1 and 2 only the h of the second goes from one device to the other."""
    model = Model("m", (LSTM.layers[0],) * 3, "step")
    chip = ColumnNpu("c", 260, (CORE,) * 4, devices=Devices(500, 64, 2))
    trace = reference.run(lower(chip, [Job("j", model, 2, cores=(0, 1, 2), split="layers")]))
    assert [len(issues(trace, 4, device)) for device in (0, 1)] == [4, 0]


def test_jobs_that_find_out_their_cores_stay_on_a_device() -> None:
    chip = ColumnNpu("c", 260, (CORE,) * 4, devices=Devices(20, 2, 2))
    one = replace(chip, devices=None)
    job = Job("j", LSTM, 2, cores=(2, 3), split="auto")
    assert reference.run(lower(chip, [job, job])) == reference.run(lower(one, [job, job]))
    assert engines.run(lower(chip, [job])).makespan_cycles == 124
    with pytest.raises(InputError, match="split: auto takes the cores of one device, and these are on several"):
        lower(chip, [replace(job, cores=None)])


FILE: dict[str, Any] = {
    "chip": {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 64, "ep": 4, "count": 4}], "devices": {}},
    "jobs": [{"model": "lstm-256", "steps": 1}],
}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"devices": {"count": 3}}, "chip.devices.count: must share out the cores evenly: 4 cores on 3 devices"),
        ({"devices": {"count": 0}}, "chip.devices.count: must be at least 1, got 0"),
        ({"devices": {"width": 0}}, "chip.devices.width: must be at least 1, got 0"),
        ({"memory": {"gb_per_s": 10}}, "chip.memory: one memory serves all cores, and several devices have one each"),
    ],
)
def test_what_devices_cannot_be_is_named(changes: dict[str, Any], text: str) -> None:
    chip = FILE["chip"] | {"cores": [{"npe": 64, "ep": 4, "count": 4, "weight_kib": 9999}]} | changes
    with pytest.raises(InputError, match=text):
        lstmsim.simulate(FILE | {"chip": chip})
    with pytest.raises(InputError, match="must share out the cores evenly: 3 cores on 2 devices"):
        ColumnNpu("c", 260, (CORE,) * 3, devices=Devices())


def test_generated_hardware_is_one_device() -> None:
    scenario = lstmsim.load_scenario(FILE)
    text = "chip column-npu: devices: must be left out: generated hardware is one device, got 2"
    assert [str(each) for each in outside(scenario.chip, scenario.jobs)] == [text]


def test_one_of_several_devices_is_asked_whether_it_fits() -> None:
    alone = FILE["chip"] | {"cores": [{"npe": 64, "ep": 4, "count": 2}], "devices": None}
    own, one = lstmsim.fit(FILE), lstmsim.fit(FILE | {"chip": alone})
    assert [replace(each, chip="") for each in own] == [replace(each, chip="") for each in one]
    assert own[0].chip == "column-npu (each of 2 devices)"


@pytest.mark.slow
def test_devices_are_axes_of_sweeps_and_change_keys(tmp_path: Path) -> None:
    paths = {"devices": "chip.devices.count", "cores": "chip.cores.0.count", "latency": "chip.devices.latency_cycles"}
    values: dict[str, list[int]] = {"devices": [1, 2, 4], "cores": [4, 6], "latency": [0, 90]}
    axes = {name: {"path": path, "values": values[name]} for name, path in paths.items()}
    scenario = FILE | {"jobs": [{"model": LSTM_8, "steps": 2, "split": "rows"}]}
    lstmsim.sweep({"scenario": scenario, "axes": axes}, tmp_path)
    found = {}
    with open(tmp_path / "sweep.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[tuple(int(row[name]) for name in paths)] = int(row["makespan_cycles"] or 0)
    assert len(found) == 12
    for (count, cores, latency), cycles in found.items():
        if cores % count:
            assert cycles == 0
            continue
        chip = FILE["chip"] | {"cores": [{"npe": 64, "ep": 4, "count": cores}]}
        chip |= {"devices": {"count": count, "latency_cycles": latency}}
        assert lstmsim.simulate(scenario | {"chip": chip}).makespan_cycles == cycles
    assert len(set(found.values())) > 6


def test_what_a_second_device_buys_for_an_lstm_of_2048() -> None:
    """The figures of docs/howto/threads_and_cores.md."""
    job = {"model": "deepbench-lstm-2048-25", "steps": 25, "cores": [0, 1]}

    def cycles(latency: int = 390, **more: Any) -> int:
        scenario = {"chip": "column-npu-4x64k", "jobs": [job | more]}
        return lstmsim.simulate(scenario, overrides=[f"chip.devices.latency_cycles={latency}"]).makespan_cycles

    assert cycles(cores=[0]) == 12_861
    assert cycles(count=2) == 12_861
    assert [cycles(each, split="rows") for each in (390, 200, 100, 50)] == [15_686, 10_936, 8_436, 7_186]
    assert [cycles(each, split="rows") <= 12_861 for each in (277, 278)] == [True, False]
