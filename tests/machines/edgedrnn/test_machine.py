"""EdgeDRNN as a machine: what a job's numbers become, what is refused, and what users see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.base.errors import InputError
from lstmsim.machines.edgedrnn.chip import ColumnMemory, DeltaCore, EdgeDrnn, Thresholds
from lstmsim.machines.edgedrnn.network import layers_of, run_of
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.numerics.golden import float_arithmetic, run_network
from lstmsim.model.numerics.jobs import AllNumbers, JobData, OwnNumbers
from lstmsim.model.numerics.weights import Network, PassWeights, random_network
from lstmsim.model.scenario import Density, Job
from tools.contract_edgedrnn import Clock

LANES = 4
MODEL = Model("m", (Layer(cell("gru"), 8, 6), Layer(cell("gru"), 12, 8)), layer_order="step")
CORE = DeltaCore(pe=LANES, memory=ColumnMemory(latency=3), threshold=Thresholds(x=0.05, h=0.05))
CHIP = EdgeDrnn("c", 125, (CORE,))
JOB = Job("j", MODEL, 3, density=Density(0.5, 0.5))


def own_numbers(steps: int = 5, scale: float = 1.0, bias: float = 0.0) -> OwnNumbers:
    """Random weights, without a recurrent bias of the candidate unless it is given."""
    drawn = random_network(MODEL, 0)
    passes = [
        tuple(PassWeights(each.matrices, {**each.biases, "nh": 0 * each.biases["nh"] + bias}) for each in both)
        for both in drawn.passes
    ]
    network = Network(MODEL, tuple(passes))
    frames = scale * np.cumsum(np.random.default_rng(1).normal(size=(steps, MODEL.layers[0].input)), axis=0)
    data = {0: JobData(network, network.stimulus(frames), "random", "random")}
    return OwnNumbers(AllNumbers(lambda: data, None), 0, (scale, bias))


def test_a_job_takes_the_cycles_of_the_clock_of_the_text() -> None:
    numbers = own_numbers()
    program = machines.lower(CHIP, [Job("j", MODEL, 5, numbers=numbers)])
    fast = engines.run(program, "fast")
    assert fast == engines.run(program, "reference")
    case: dict[str, Any] = {"x0": 0, "fifo": 32, "lat": 3, "period": 1, "gap": 0, "maxout": 0, "xint": 0}
    clock = Clock(case | dict.fromkeys(("wthr", "xwait", "ostall", "wseed"), 0))
    layers, _ = layers_of(numbers.data, LANES)
    for number, entries in enumerate(run_of(numbers, LANES, CORE.threshold.registers).steps):
        clock.layer_step(entries, layers[number % 2].sizes, *divmod(number, 2), last=number % 2 == 1)
    assert fast.makespan_cycles == clock.final + 1


def test_its_numbers_are_near_those_of_float64() -> None:
    """Thresholds of 0 send every change, so the rest is rounding: tables have four bits behind the point."""
    numbers = own_numbers()
    run = run_of(numbers, LANES, (0, 0))
    exact = run_network(float_arithmetic(numbers.data.network), numbers.data.stimulus).output()
    assert np.abs(run.outputs / 256 - exact).max() < 0.15
    assert np.abs(exact).max() > 0.3
    assert run.weights_lost == run.inputs_lost == 0


def test_what_does_not_fit_saturates_and_is_said() -> None:
    job = Job("j", MODEL, 5, numbers=own_numbers(scale=400.0))
    lost = run_of(job.numbers, LANES, CORE.threshold.registers).inputs_lost  # type: ignore[arg-type]
    assert lost > 0
    assert f"0 weights beyond -1 to 127/128 and {lost:,} inputs beyond 16 bits saturated" in CHIP.remarks(job)[1]


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([("lstm", 8, 8)], "is of cell 'lstm', and the machine has 'gru' only"),
        ([("gru-lbr0", 8, 8)], "has 'gru' only"),
        ([("gru", 8, 8)] * 5, "it has 5 layers, and the machine's registers hold 4"),
        ([("gru", 10, 8)], "10 hidden units, which must be a multiple of pe 4"),
        ([("gru", 4, 8)], "as many hidden units as lanes"),
        ([("gru", 8, 7)], "7 inputs, which must be a multiple of pe 4, or 2 more"),
        ([("gru", 1028, 8)], "1028 hidden units, and the machine's registers hold 1024"),
        ([("gru", 12, 8), ("gru", 8, 12)], "is narrower"),
    ],
)
def test_networks_that_are_refused(layers: list[tuple[str, int, int]], words: str) -> None:
    model = Model("m", tuple(Layer(cell(name), hidden, width) for name, hidden, width in layers))
    with pytest.raises(InputError, match=words):
        machines.lower(CHIP, [replace(JOB, model=model)])


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (replace(JOB, density=None), "its cycles depend on its numbers"),
        (replace(JOB, preempts=True), "which a job that is stopped would lose"),
        (replace(JOB, initial="states.safetensors"), "a reset clears them"),
        (replace(JOB, batch=2), "batch"),
        (replace(JOB, steps=100_000), "operations of its own, more than"),
        (replace(JOB, density=None, numbers=own_numbers(bias=0.5)), "has a recurrent bias of its candidate"),
    ],
)
def test_jobs_that_are_refused(job: Job, words: str) -> None:
    with pytest.raises(InputError, match=words):
        machines.lower(CHIP, [job])


def test_frames_that_come_late_are_refused_on_two_lanes_and_waited_for_on_four() -> None:
    two = EdgeDrnn("c", 125, (replace(CORE, pe=2),))
    paced = replace(JOB, frame_interval=5000)
    with pytest.raises(InputError, match="must be 0 on cores of 2 lanes"):
        machines.lower(two, [paced])
    totals = engines.totals(machines.lower(CHIP, [paced]))
    assert 10_000 < totals.makespan_cycles < 11_000
    assert lstmsim.simulate(lstmsim.Scenario(CHIP, [paced])).cores[0].cycles["input"] > 9000


def test_numbers_of_a_core_that_were_never_compared_are_refused() -> None:
    with pytest.raises(InputError, match="pe: must be one of 2, 4, 8, 16, 32"):
        EdgeDrnn("c", 125, (DeltaCore(pe=6),))
    with pytest.raises(InputError, match="fifo: must be one of 4, 16, 32, 64"):
        EdgeDrnn("c", 125, (DeltaCore(fifo=8),))
    with pytest.raises(InputError, match=r"x: must be at most 1.99"):
        EdgeDrnn("c", 125, (DeltaCore(threshold=Thresholds(x=2.5)),))


LARGE = {"layers": [{"cell": "gru", "hidden": 768, "input": 40}, {"cell": "gru", "hidden": 768, "input": 768}]}


@pytest.mark.needs_core
def test_the_example_of_the_page_and_its_accounts() -> None:
    job = {"model": {**LARGE, "layer_order": "step"}, "steps": 10, "density": {"x": 0.1, "h": 0.1, "seed": 1}}
    report = lstmsim.simulate({"chip": "edgedrnn-8", "jobs": [job]})
    assert report.makespan_cycles == 630_151
    (core,) = report.cores
    assert sum(core.cycles.values()) == report.makespan_cycles
    assert core.cycles["activation"] > 0 < core.cycles["scan"]
    assert report.left_out == pytest.approx(0.908, abs=0.001)
    assert "10 % of the elements of x" in report.remarks[0]
    assert report.stamp is not None
    assert "public RTL" in report.stamp.against


@pytest.mark.needs_core
def test_users_can_do_with_it_what_they_do_with_machines(tmp_path: Path) -> None:
    small = {"layers": [{"cell": "gru", "hidden": 32, "input": 16}]}
    job: dict[str, Any] = {"model": small, "steps": 4, "density": {"x": 0.3, "h": 0.3}}
    scenario = {"chip": "edgedrnn-8", "jobs": [job]}
    explanation = lstmsim.explain(scenario)
    tried = {each.name: each for each in explanation.what_if.alternatives}
    assert tried["lanes doubled"].cycles < explanation.makespan_cycles  # type: ignore[operator]
    assert all(each.work == 1 for each in tried.values())
    assert 0 < explanation.utilization < 1
    assert lstmsim.compare(scenario, ["edgedrnn-8-slow"]).machines[1].name == "edgedrnn-8-slow"
    axes = {"fifo": {"path": "chip.cores.0.fifo", "values": [4, 32]}}
    swept = lstmsim.sweep({"scenario": scenario, "axes": axes}, tmp_path)
    assert len(swept.to_records()) == 2
    assert "(cycles depend on the data)" in " ".join(swept.to_text().split())
    assert swept.stamp is not None
    assert "cycles depend on the data: 30 % of the elements of x" in swept.stamp.text
    arrival = {"kind": "poisson", "rate_per_second": 1000}
    served = lstmsim.serve({**scenario, "jobs": [{**job, "arrival": arrival}]}, requests=200)
    assert served.serving.requests == 200
