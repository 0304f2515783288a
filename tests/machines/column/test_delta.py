"""Delta columns against docs/delta_columns.md: its examples, a cycle-stepped model of its text, the dense machine."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.analysis.replay import check_numerics
from lstmsim.base.errors import InputError, ReplayError
from lstmsim.files.scenario.written import resolved_data
from lstmsim.machines.column.delta import Sent, sent_phases
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Delta, Latency
from lstmsim.machines.column.phases import own_units
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.delta import LastSent, Rule
from lstmsim.model.numerics.jobs import AllNumbers, JobData, OwnNumbers, run_jobs
from lstmsim.model.numerics.weights import random_network
from lstmsim.model.scenario import Density, Job, Scenario
from lstmsim.program.accounts import CYCLE_NAMES, totals_of
from lstmsim.program.program import Buffer, Core, Program, Task
from lstmsim.program.trace import Trace
from tests.conftest import EXAMPLES
from tests.oracle.machine import simulate

SMALL = ColumnCore(npe=64, ep=4, vp=16, delta=Delta())
AT_ONCE = replace(SMALL, latency=Latency(delta=0))
EIGHT = Model("m", (Layer(cell("lstm"), 8, 8),))
ALL = Sent(np.ones(2, np.bool_), np.ones(2, np.bool_))
NONE = Sent(np.zeros(2, np.bool_), np.zeros(2, np.bool_))
#: The third row of example B: x0 and x1, then x1 and h0; the last group goes anyway.
SOME = (Sent(np.array([True, True]), np.array([False, False])), Sent(np.array([False, True]), np.array([True, False])))


def ran(core: ColumnCore, *steps: Sent) -> tuple[int, ...]:
    """Makespan; cycles that are busy, waiting for data, for a bank, draining."""
    phases = sent_phases(EIGHT, core, [steps])
    task = Task("j", ((0, phases),), ((0, (Buffer("accumulator bank", core.accumulator_banks),)),), (0,))
    program = Program((Core(0, own_units(core), core.threads, 0),), (task,))
    fast = engines.run(program, "fast")
    assert fast == engines.run(program, "reference")
    named = dict(zip(CYCLE_NAMES, totals_of(program, fast).cycles[0].tolist(), strict=True))
    return fast.makespan_cycles, named["busy"], named["hazard"] + named["input"], named["backpressure"], named["drain"]


@pytest.mark.parametrize(
    ("core", "steps", "expected"),
    [
        (AT_ONCE, (ALL, ALL), (115, 16, 36, 12, 51)),
        (SMALL, (ALL, ALL), (123, 16, 44, 12, 51)),
        (SMALL, SOME, (120, 12, 44, 13, 51)),
        (SMALL, (NONE, NONE), (114, 4, 59, 0, 51)),
        (replace(SMALL, block_order="column"), SOME, (119, 12, 41, 15, 51)),
    ],
)
def test_example_b(core: ColumnCore, steps: tuple[Sent, ...], expected: tuple[int, ...]) -> None:
    assert ran(core, *steps) == expected


@pytest.mark.needs_core
@pytest.mark.parametrize(
    ("hidden", "ep", "expected"),
    [(512, 32, {0.5: 1488, 0.05: 1439, 0: 1320}), (1024, 16, {0.1: 2213, 0: 1460}), (1024, 4, {0.1: 3505, 0.01: 1444})],
)
def test_example_c(hidden: int, ep: int, expected: dict[float, int]) -> None:
    core = ColumnCore(npe=65536, ep=ep, vp=65536 // ep, delta=Delta())
    model = Model("m", (Layer(cell("lstm"), hidden, hidden),))
    for chance, cycles in expected.items():
        job = Job("j", model, 20, density=Density(chance, chance, 1))
        assert engines.totals(machines.lower(ColumnNpu("c", 250, (core,)), [job])).makespan_cycles == cycles


def test_example_a() -> None:
    """The rule in numbers: changes add up to what a dense product of the values sent last gives."""
    layer = SimpleNamespace(matrix=None)
    memory = LastSent(layer, Rule(4, 4, 2), last="h")  # type: ignore[arg-type]
    total, before = 0, np.zeros(2)
    for values, sums in (((0, 3), 0), ((2, 5), -1), ((5, 4), -1), ((9, 4), 14)):
        seen = memory.step({"x": np.array(values)})["x"]
        total += int(np.array([2, -1]) @ (seen - before))
        before = seen
        assert total == sums == int(np.array([2, -1]) @ seen)


def random_scenario(seed: int) -> Scenario:
    rng = random.Random(seed)
    ep = rng.choice([1, 2, 3, 4])
    delta = Delta(group=ep * rng.choice([1, 1, 2, 3]))
    cores = []
    for _ in range(rng.choice([1, 1, 2])):
        vp = rng.choice([4, 8, 16])
        cores.append(
            ColumnCore(
                npe=ep * vp,
                ep=ep,
                vp=vp,
                accumulator_banks=rng.choice([1, 2, 12]),
                threads=rng.choice([1, 1, 2, 3]),
                tail_width=rng.choice([1, 2, 64]),
                thread_policy=rng.choice(["coarse", "fine"]),
                switch_cycles=rng.choice([0, 0, 2]),
                block_order=rng.choice(["row", "row", "column"]),
                delta=delta,
                latency=Latency(delta=rng.choice([0, 1, 4, 9]), writeback=rng.choice([0, 4])),
            )
        )
    jobs = []
    for number in range(rng.randint(1, 3)):
        layers, width = [], rng.randint(1, 9)
        for _ in range(rng.randint(1, 3)):
            hidden = rng.randint(1, 10)
            layers.append(Layer(cell(rng.choice(["lstm", "gru", "rnn", "dense"])), hidden, width))
            width = hidden
        model = Model(f"m{number}", tuple(layers), layer_order=rng.choice(["layer", "step"]))
        own = Density(rng.choice([0, 0.1, 0.3, 0.7, 1]), rng.choice([0, 0.2, 0.6, 1]), rng.randint(0, 9), number)
        came = {"arrival": rng.choice([0, 0, 7, 30]), "frame_interval": rng.choice([0, 0, 3, 40])}
        jobs.append(Job(f"j{number}", model, rng.randint(1, 4), density=own, **came))
    return Scenario(ColumnNpu("c", 100, tuple(cores)), tuple(jobs))


def accounts(program: Program, trace: Trace) -> tuple[Any, ...]:
    totals = totals_of(program, trace)
    names = ("core", "context", "admitted", "finish")
    jobs = list(zip(*(trace.task(name).tolist() for name in names), strict=True))
    named = [dict(zip(CYCLE_NAMES, row, strict=True)) for row in totals.cycles.tolist()]
    return jobs, [{name: count for name, count in each.items() if count} for each in named], totals.work.tolist()


@pytest.mark.parametrize("seed", range(max(8, EXAMPLES // 3)))
def test_a_model_of_the_text_gives_the_same_cycles(seed: int) -> None:
    scenario = random_scenario(seed)
    try:
        program = machines.lower(scenario.chip, scenario.jobs)
    except InputError:
        pytest.skip("no core has banks for all row blocks in column order")
    jobs, cores = simulate(scenario)
    mine = accounts(program, engines.run(program, "fast"))
    assert mine == (jobs, [names for names, _ in cores], [macs for _, macs in cores])
    if seed < 4:
        assert mine == accounts(program, engines.run(program, "reference"))


def tiles(program: Program, trace: Trace) -> list[tuple[int, ...]]:
    """Core, thread and cycle of every tile."""
    rows = zip(*(trace.issue(name).tolist() for name in ("core", "unit", "context", "start", "count")), strict=True)
    return sorted((core, at + i, context) for core, unit, context, at, count in rows if not unit for i in range(count))


def with_numbers(scenario: Scenario, seed: int, precision: Precision | None) -> tuple[Scenario, AllNumbers]:
    """The scenario with random weights, and frames that change little by little, in place of densities."""
    draw = np.random.default_rng(seed)
    data = {}
    for number, job in enumerate(scenario.jobs):
        frames = np.cumsum(0.15 * draw.normal(size=(job.steps, job.model.layers[0].input)), axis=0)
        network = random_network(job.model, number)
        data[number] = JobData(network, network.stimulus(frames), "random", "random")
    every = AllNumbers(lambda: data, precision)
    jobs = [replace(job, density=None, numbers=OwnNumbers(every, at, at)) for at, job in enumerate(scenario.jobs)]
    given = {} if precision is None else {"precision": precision, "precision_given": True}
    return replace(scenario, jobs=tuple(jobs), **given), every


def on(scenario: Scenario, late: int | None = None, delta: Delta | None = None) -> Scenario:
    """The scenario on cores of another latency and other thresholds."""
    cores = []
    for core in scenario.chip.cores:
        latency = core.latency if late is None else replace(core.latency, delta=late)
        cores.append(replace(core, latency=latency, delta=delta and replace(delta, group=delta.group or core.ep)))
    return replace(scenario, chip=replace(scenario.chip, cores=tuple(cores)))


def lowered(scenario: Scenario) -> tuple[Program, Trace]:
    try:
        program = machines.lower(scenario.chip, scenario.jobs)
    except InputError:
        pytest.skip("no core has banks for all row blocks in column order")
    return program, engines.run(program, "fast")


@pytest.mark.parametrize("seed", range(max(6, EXAMPLES // 5)))
def test_without_threshold_and_latency_it_is_the_dense_machine(seed: int) -> None:
    scenario, every = with_numbers(random_scenario(1000 + seed), seed, Precision())
    own, dense = lowered(on(scenario, 0, Delta())), lowered(on(scenario, 0))
    assert tiles(*own) == tiles(*dense)
    assert accounts(*own) == accounts(*dense)
    # the smallest step of fixed point leaves out what has not changed at all
    golden = run_jobs(every.jobs)
    for threshold in (0.0, 1e-9):
        lowered(on(scenario, 0, Delta(threshold, threshold)))
        for number, job in enumerate(scenario.jobs):
            rule = Rule(threshold, threshold, on(scenario, 0, Delta()).chip.cores[0].delta_group)
            sent, _ = every.runs[number, rule]
            for one, other in zip(sent.passes, golden[number].passes, strict=True):
                assert np.array_equal(one[0].h, other[0].h), (job.name, threshold)


@pytest.mark.halved
@pytest.mark.parametrize("seed", range(max(6, EXAMPLES // 5)))
def test_traces_are_executed_with_kept_sums(seed: int) -> None:
    """Every bank has just the groups that its step sends, and gives what the golden model computes."""
    fixed = Precision() if seed % 2 else None
    scenario, every = with_numbers(random_scenario(2000 + seed), seed, fixed)
    rng = random.Random(seed)
    ep = scenario.chip.cores[0].ep
    scenario = on(scenario, None, Delta(rng.choice([0.1, 0.3]), 0.1, group=ep * rng.choice([1, 2, 3])))
    program, trace = lowered(scenario)
    for own in check_numerics(scenario, program, trace, every.data):
        assert own.fixed_executed == bool(fixed)
        assert np.isnan(own.float_error) == bool(fixed)


def test_a_trace_that_leaves_out_what_has_changed_does_not_pass() -> None:
    scenario, every = with_numbers(Scenario(ColumnNpu("c", 100, (SMALL,)), (Job("j", EIGHT, 3),)), 1, None)
    chip = ColumnNpu("c", 100, (replace(SMALL, delta=Delta(0.5, 0.5)),))
    program = machines.lower(chip, scenario.jobs)
    with pytest.raises(ReplayError, match="is left out, but has changed"):
        check_numerics(scenario, program, engines.run(program), every.data)


JOB = Job("j", EIGHT, 3, density=Density(0.5, 0.5))


@pytest.mark.parametrize(
    ("cores", "job", "words"),
    [
        ((SMALL,), replace(JOB, density=None), "its cycles depend on its numbers"),
        ((SMALL, replace(SMALL, delta=None)), JOB, "may use cores that differ in `delta`"),
        ((SMALL, replace(SMALL, delta=Delta(x=0.1))), JOB, "may use cores that differ in `delta`"),
        ((SMALL, SMALL), replace(JOB, split="rows"), "do not split jobs"),
        ((SMALL,), replace(JOB, preempts=True), "no preemption with `delta`"),
        ((replace(SMALL, weight_kib=64),), JOB, "are not built"),
        ((SMALL,), replace(JOB, steps=500_000), "operations of its own with delta columns"),
        ((SMALL,), replace(JOB, model=Model("m", (Layer(cell("lstm"), 8, 8, bidirectional=True),))), "bidirectional"),
        ((SMALL,), replace(JOB, model=Model("m", (Layer(cell("lstm"), 8, 8, reverse=True),))), "runs in reverse"),
        ((SMALL,), replace(JOB, model=Model("m", (Layer(cell("gru-lbr0"), 8, 8),))), "several products or reductions"),
    ],
)
def test_what_is_refused(cores: tuple[ColumnCore, ...], job: Job, words: str) -> None:
    with pytest.raises(InputError, match=words):
        machines.lower(ColumnNpu("c", 100, cores), [job])


def test_a_group_is_a_multiple_of_ep() -> None:
    with pytest.raises(InputError, match="group must be a multiple of ep 4, got 6"):
        ColumnNpu("c", 100, (replace(SMALL, delta=Delta(group=6)),))


FILE = {
    "chip": {
        "kind": "column-npu",
        "name": "c",
        "frequency_mhz": 250,
        "cores": [{"npe": 512, "ep": 4, "vp": 128, "delta": {"x": 0.05, "h": 0.05}}],
    },
    "jobs": [{"model": "silero-vad-16k", "steps": 10, "inputs": "silero-speech.safetensors"}],
}


@pytest.mark.needs_core
def test_from_a_file_to_a_report() -> None:
    report = lstmsim.simulate(FILE)
    assert report.left_out is not None
    assert 0.1 < report.left_out < 0.9
    assert report.effective_tops > report.tops
    assert "the numbers of silero-speech.safetensors" in report.remarks[0]
    assert "of the groups of columns" in report.to_text()
    assert report.to_dict()["left_out"] == report.left_out
    drawn = {**FILE, "jobs": [{"model": "silero-vad-16k", "steps": 10, "density": {"x": 0.1, "h": 0.1}}]}
    first, second = (lstmsim.simulate(drawn, overrides=[f"jobs.0.density.seed={seed}"]) for seed in (0, 1))
    assert "drawn independently with seed 1" in second.remarks[0]
    assert first.makespan_cycles != second.makespan_cycles
    again = lstmsim.load_scenario(resolved_data(lstmsim.load_scenario(drawn)))
    assert again.jobs[0].density == Density(0.1, 0.1)


@pytest.mark.needs_core
def test_accuracy_over_thresholds() -> None:
    scenario = lstmsim.load_scenario(FILE)
    report = lstmsim.accuracy(scenario, thresholds=[0.0, 0.05])
    exact, skipped = report.by_threshold.values()
    assert exact.left_out == 0.0
    assert skipped.cycles < exact.cycles
    assert skipped.cycles == lstmsim.simulate(scenario).makespan_cycles
    assert exact.accuracy[0].max_error == 0.0 < skipped.accuracy[0].max_error
    assert "THRESHOLDS" in report.to_text()


@pytest.mark.needs_core
def test_other_widths_send_other_columns() -> None:
    """What is kept of a run belongs to its numbers: files, widths and all that formats are calibrated on."""
    scenario = {**FILE, "precision": {"weight_bits": 8}}
    cycles = [
        lstmsim.simulate(scenario, overrides=[f"precision.vector_bits={bits}"]).makespan_cycles for bits in (8, 4, 8)
    ]
    assert cycles[0] == cycles[2] != cycles[1]


def test_a_drawn_density_has_no_numbers_to_check_and_dense_machines_say_that_they_leave_it_out() -> None:
    model = {"name": "m", "layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}
    job = {"model": model, "steps": 1, "density": {"x": 0.2, "h": 0.2}}
    core = {"npe": 64, "ep": 4, "vp": 16}
    skips = {"kind": "column-npu", "frequency_mhz": 250, "cores": [core | {"delta": {"x": 0.1, "h": 0.1, "group": 4}}]}
    with pytest.raises(InputError, match="density: which elements change is drawn"):
        lstmsim.check_numerics({"chip": skips, "jobs": [job]}, random_weights=0)
    for chip in ("column-npu-64k", "intel-npu-rtl", "v100", "epyc-7742"):
        remarks = lstmsim.simulate({"chip": chip, "jobs": [job]}).remarks
        assert "`density` of jobs is left out: this machine has no such thing" in remarks


def test_that_nothing_was_left_out_is_said_in_json_too() -> None:
    core = {"npe": 64, "ep": 4, "vp": 16, "delta": {"group": 4}}
    chip = {"kind": "column-npu", "frequency_mhz": 250, "cores": [core]}
    model = {"name": "m", "layers": [{"cell": "dense", "hidden": 32, "input": 32}]}
    report = lstmsim.simulate({"chip": chip, "jobs": [{"model": model, "steps": 1, "density": {"x": 1, "h": 1}}]})
    assert report.left_out == 0.0
    assert report.to_dict()["left_out"] == 0.0
