"""Explanations of runs whose answer is known: by hand from docs/timing.md, or because the chip was built for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lstmsim import engines, machines
from lstmsim.analysis.explanations.answer import answer
from lstmsim.analysis.explanations.explanation import Explanation, Leg, explain
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.row.npu import RowNpu
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Chip, Job, Scenario

#: The core of the worked examples in docs/timing.md, section 6.
CORE = ColumnCore(npe=65536, ep=32, vp=2048, tail_width=64)


def model(hidden: int, layers: int = 1, name: str = "lstm") -> Model:
    return Model(f"{name}-{hidden}", (Layer(cell(name), hidden, hidden),) * layers)


def jobs(count: int, hidden: int = 512, **more: int) -> tuple[Job, ...]:
    return tuple(Job(f"job{number}", model(hidden), steps=20, **more) for number in range(count))


def explained(core: ColumnCore | Chip, given: tuple[Job, ...]) -> Explanation:
    chip = ColumnNpu("chip", 260, (core,)) if isinstance(core, ColumnCore) else core
    program = machines.lower(chip, given)
    explanation = explain(Scenario(chip, given), program, engines.run(program))
    assert sum(share.cycles for share in explanation.shares) == explanation.makespan_cycles
    return explanation


def cycles(explanation: Explanation) -> dict[str, int]:
    return {share.name: share.cycles for share in explanation.shares}


def legs(explanation: Explanation) -> dict[str, tuple[int, int]]:
    return {leg.name: (leg.times, leg.cycles) for leg in explanation.legs}


def best(explanation: Explanation) -> str:
    return explanation.what_if.best.name if explanation.what_if.best else ""


def test_the_hazard_chain_of_one_lstm() -> None:
    # docs/timing.md: MVM latency 19, tail latency 32, writeback 4; h of the first group is visible 19 + 32 + 4 after
    # the issue of the last tile (a cycle of the array, and of the tail for the first turn); then the 16 tiles of h
    explanation = explained(CORE, jobs(1))
    assert explanation.makespan_cycles == 1423
    step = (("tail pipeline", 19 * 35), ("MVM pipeline", 19 * 18), ("tail busy", 19))
    assert explanation.legs[0] == Leg("step to step", 19, 19 * 54, step)
    assert legs(explanation) == {"step to step": (19, 1026), "end": (1, 18 + 8 + 35)}
    assert cycles(explanation)["array busy"] == 32 + 19 * 16
    # the x tiles of each further step are beside the path
    assert explanation.array_cycles == 640
    first, second = answer(explanation)[:2]
    assert first.startswith("72 % of the makespan (1,026 of 1,423 cycles) is the way from the last tile of a step")
    assert "19 times 54 cycles (tail pipeline 35, MVM pipeline 18, tail busy 1)" in first
    assert "640 cycles (45 %), of which 336 are on this path" in second
    assert best(explanation) == "latencies halved"


def test_the_heart_shows_where_the_largest_way_begins_and_ends() -> None:
    steps = explained(CORE, jobs(1)).heart
    assert [step.what for step in steps[:5]] == [
        *("array busy", "MVM pipeline", "tail busy", "tail pipeline", "array busy")
    ]
    assert (steps[0].layer, steps[0].step, steps[4].step) == (0, 9, 10)
    assert [step.end for step in steps[:-1]] == [step.start for step in steps[1:]]


def test_a_chip_bound_by_its_array() -> None:
    # docs/timing.md, section 6, last row: busy 2560, no hazard, drain 68
    explanation = explained(replace(CORE, ep=16, vp=4096), jobs(1, hidden=1024))
    assert cycles(explanation)["array busy"] == 2560 == explanation.array_cycles
    assert legs(explanation) == {"end": (1, 68)}
    assert answer(explanation)[0].startswith("97 % of the makespan (2,560 of 2,628 cycles) is work of the array: ")
    assert best(explanation) == "npe and ep doubled"


def test_padding_is_named_where_the_array_is_busy_with_it() -> None:
    explanation = explained(replace(CORE, ep=16, vp=4096), jobs(1, hidden=1008))
    assert explanation.array_useful < 0.99
    assert any("do useful work" in sentence for sentence in answer(explanation))
    assert not any("do useful work" in sentence for sentence in answer(explained(CORE, jobs(1))))


def test_a_chip_bound_by_its_tail() -> None:
    # one unit a cycle: the last tile of a step waits for the 512th unit, so a step takes 1 + 18 + 512 + 35 cycles
    explanation = explained(replace(CORE, tail_width=1), jobs(1))
    assert explanation.makespan_cycles == 31 + 20 * 566
    assert cycles(explanation) == {
        "tail busy": 20 * 512,
        "tail pipeline": 20 * 35,
        "MVM pipeline": 20 * 18,
        "array busy": 31 + 20,
    }
    assert "work of the tail" in answer(explanation)[0]
    assert best(explanation) == "tail twice as wide"


def test_a_run_bound_by_the_arrival_of_its_last_job() -> None:
    early, late = jobs(2)
    explanation = explained(replace(CORE, threads=2), (early, replace(late, arrival=50_000)))
    assert cycles(explanation)["before arrival"] == 50_000
    assert explanation.makespan_cycles == 50_000 + 1423
    assert "before the job arrives" in answer(explanation)[0]


def test_a_run_bound_by_its_frames() -> None:
    explanation = explained(CORE, jobs(1, frame_interval=1_000))
    assert cycles(explanation)["input"] == 19_000
    assert legs(explanation)["start"] == (1, 19_000)
    assert "before the input frame arrives" in answer(explanation)[0]


def test_two_threads_that_leave_each_other_holes() -> None:
    # 1471 cycles and 1280 of them busy (docs/timing.md), but one job's own chain is as long as if it were nearly alone
    explanation = explained(replace(CORE, threads=2), jobs(2))
    assert explanation.makespan_cycles == 1471
    assert explanation.array_cycles == 1280
    assert legs(explanation)["step to step"] == (19, 1026)
    assert [each.saved_cycles for each in explanation.what_if.alternatives if each.name == "one more thread"] == [0]


def test_threads_that_fill_each_other_are_bound_by_the_array() -> None:
    # from step to step it takes 54 cycles, in which four others issue 16 tiles or more each: the array never waits
    explanation = explained(replace(CORE, threads=5), jobs(5))
    shares = cycles(explanation)
    assert shares["array busy"] + shares["turn in array"] == 5 * 640 == explanation.array_cycles
    assert shares["turn in array"] > 0
    assert legs(explanation) == {"end": (1, 61)}
    assert "of the makespan are turns of other threads" in answer(explanation)[0]


def test_jobs_that_wait_for_one_thread() -> None:
    explanation = explained(CORE, jobs(2))
    assert explanation.handovers == 1
    assert legs(explanation) == {"step to step": (38, 2 * 1026), "job to job": (1, 61), "end": (1, 61)}
    assert any("waits once for a job to end" in sentence for sentence in answer(explanation))
    # two cores need not share the array
    assert [each.name for each in explanation.what_if.alternatives][:2] == ["one more core", "one more thread"]


def test_too_few_banks() -> None:
    # two row blocks of 64 tiles and one bank: the second block begins when the tail has emptied the first,
    # 19 cycles of MVM latency and 8 turns after its last tile
    explanation = explained(replace(CORE, accumulator_banks=1), jobs(1, hidden=1024))
    assert legs(explanation)["room"][1] == legs(explanation)["room"][0] * (18 + 8)
    assert explanation.causes["backpressure"] > 0
    assert "one more bank" in [each.name for each in explanation.what_if.alternatives if each.saved_cycles > 0]


def test_two_layers() -> None:
    # layer_order layer: the first step of layer 1 has all its x long ago, but in step order it waits for layer 0
    deep = replace(model(512, layers=2), layer_order="step")
    explanation = explained(CORE, (Job("deep", deep, steps=20),))
    assert legs(explanation)["layer to layer"][0] == 20


def test_thread_switches() -> None:
    explanation = explained(replace(CORE, threads=3, switch_cycles=5), jobs(3))
    assert cycles(explanation)["thread switch"] > 0
    assert "switches for free" in [each.name for each in explanation.what_if.alternatives if each.saved_cycles > 0]


@pytest.mark.parametrize("dispatch_cycles", [500, 1000])
def test_a_row_npu_bound_by_dispatch(dispatch_cycles: int) -> None:
    chip = load_chip("brainwave-s10")
    assert isinstance(chip, RowNpu)
    core = replace(chip.cores[0], dispatch_cycles=dispatch_cycles, by_cell=())
    given = (Job("rnn", model(512, name="rnn"), steps=5),)
    program = machines.lower(replace(chip, cores=(core,)), given)
    sent = sum(
        operation.cycles * phase.repeat
        for phase in program.tasks[0].phases(0)
        for operation in phase.body.operations
        if operation.label == "fetch"
    )
    explanation = explained(replace(chip, cores=(core,)), given)
    # every operation is over before the next instruction comes, so that nothing but sending them takes time
    assert cycles(explanation) == {"fetch busy": sent} == {"fetch busy": explanation.makespan_cycles}
    assert "the sending of instructions" in answer(explanation)[0]
    assert best(explanation) == "faster dispatch"


def test_several_cores_and_an_empty_one() -> None:
    explanation = explained(ColumnNpu("two", 260, (CORE, CORE, CORE)), jobs(2))
    assert explanation.makespan_cycles == 1423
    assert explanation.cores == 3
    assert {step.core for step in explanation.path} == {0}


def test_a_request_that_waited_for_weights_on_their_way() -> None:
    """The path goes on through the memory, and the words say so."""
    from lstmsim import explain, run

    layers = [{"cell": "gru", "hidden": 5, "input": 7}, {"cell": "rnn", "hidden": 4, "input": 5}]
    core = {"npe": 64, "ep": 2, "threads": 3, "weight_kib": 1, "weight_bits": 16}
    chip = {
        "kind": "column-npu",
        "frequency_mhz": 100,
        "memory": {"gb_per_s": 2.5, "latency_cycles": 1},
        "cores": [core],
    }
    jobs = [{"model": {"layers": [{"cell": "lstm", "hidden": 5, "input": 7}]}, "steps": 1}]
    jobs.append({"model": {"layers": [*layers, {"cell": "gru", "hidden": 5, "input": 4}]}, "steps": 1, "count": 5})
    result = run({"chip": chip, "jobs": jobs})
    explanation = explain(result)
    assert sum(share.cycles for share in explanation.shares) == explanation.makespan_cycles
    assert any(share.unit == "memory" and not share.array for share in explanation.shares)
    assert "weights" in [leg.name for leg in explanation.legs]


@pytest.mark.parametrize(("share", "named"), [(34, False), (49, False), (50, False), (51, True), (100, True)])
def test_a_way_is_named_only_if_most_of_the_latency_is_in_it(share: int, named: bool) -> None:
    """With half of the latency or less elsewhere, one way is not the answer: then pipelines in general are."""
    run = explained(CORE, jobs(1))
    pipelines = next(each for each in run.shares if each.kind == "latency")
    ways = [Leg("step to step", 1, share + 7, (("tail pipeline", share), ("tail busy", 7)))]
    ways += [Leg("layer to layer", 1, 1, (("MVM pipeline", 1),))] * (100 - share)
    first = answer(replace(run, shares=(replace(pipelines, cycles=100),), legs=tuple(ways)))[0]
    assert ("is the way from the last tile of a step to the first tile of the next step" in first) == named
    assert ("latency of pipelines: results are on their way" in first) == (not named)
