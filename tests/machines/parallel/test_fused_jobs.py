"""Recurrent jobs by fused kernels: times from parts that are timed alone, order of kernels, refusals, what is told."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim import engines, machines
from lstmsim.analysis.report_text import report_json
from lstmsim.base.errors import InputError
from lstmsim.machines.parallel import fusion
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.jobs import fused_step, fused_text, per_step
from lstmsim.machines.parallel.kernels.dense import gemv
from lstmsim.machines.parallel.lowering.program import program_of_kernels
from lstmsim.machines.parallel.traffic import priced
from lstmsim.machines.registry import target_of
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.cells import step_graph
from lstmsim.model.fusion.plan import FusionDevice
from lstmsim.model.fusion.planner import planned
from lstmsim.model.model import Layer
from lstmsim.program.flat import FlatProgram
from lstmsim.program.flatten import FlatNames
from lstmsim.program.unflatten import tabled
from lstmsim.studies.simulate.run import Run, run

SMALL = {
    "kind": "parallel-device",
    "frequency_mhz": 1000,
    "cores": [{"count": 2, "schedulers": 2, "max_warps": 32}],
    "partitions": 2,
    "launch": 100,
    "grid": 50,
}


def job(name: str, batch: int = 1, steps: int = 2, **others: Any) -> dict[str, Any]:
    projection = {"projection": 3} if CELLS[name].projected else {}
    return {
        "model": {"layers": [{"cell": name, "hidden": 6, "input": 5, **projection, **others}]},
        "steps": steps,
        "batch": batch,
    }


def scenario(*jobs: dict[str, Any], **chip: Any) -> dict[str, Any]:
    return {"chip": {**SMALL, **chip}, "jobs": list(jobs)}


@pytest.mark.parametrize(
    ("name", "fusion", "batch"),
    [
        ("lstm-layernorm", "on", 1),
        ("gru", "off", 3),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("gru-lbr0", "on", 3), ("lstm-projection", "off", 1))
        ),
    ],
)
def test_both_engines_agree_and_everything_adds_up(name: str, fusion: str, batch: int) -> None:
    asked = scenario(job(name, batch, steps=1 if name == "lstm-layernorm" else 2), fusion=fusion)
    fast = run(asked, engine="fast")
    reference = Run(fast.scenario, "reference", fast.program)
    assert fast.totals == reference.totals
    assert np.array_equal(fast.trace.issues, reference.trace.issues)
    assert sum(each.macs for each in fast.report.cores) == fast.scenario.jobs[0].macs
    for core in fast.report.cores:
        assert sum(core.cycles.values()) == 2 * fast.report.makespan_cycles


@pytest.mark.parametrize("name", ["lstm", "mingru", "lstm-layernorm"])
def test_a_step_takes_what_its_product_and_its_tail_take_alone(name: str) -> None:
    """With no L2 nothing is left behind by the product, so that a step is its parts one after the other."""
    asked = scenario(job(name, steps=3), fusion="on", l2_bytes=0)
    whole = run(asked)
    chip = whole.scenario.chip
    assert isinstance(chip, ParallelDevice)
    layer = whole.scenario.jobs[0].model.layers[0]
    drawn = step_graph(layer, 1)
    kernels = [each.kernel for each in planned(drawn.graph, fusion.numbers(chip, {})).subgraphs]
    work = fusion.lower(chip, drawn.graph, kernels, "tail")
    tail = _cycles(work.flat, work.names)
    (product,) = drawn.products
    rows, columns = sum(product.rows), sum(product.columns)
    if name == "lstm-layernorm":
        # rows that leave out the zeros under x or h take less than whole ones
        assert whole.report.makespan_cycles < 3 * (tail + _alone(chip, rows, columns))
    else:
        assert whole.report.makespan_cycles == 3 * (tail + _alone(chip, rows, columns))


def _cycles(flat: FlatProgram, names: FlatNames) -> int:
    return int(engines.totals(tabled(flat, names)).task("finish").max())


def _alone(chip: ParallelDevice, rows: int, columns: int) -> int:
    lowered = program_of_kernels(chip, priced(gemv(rows, columns, chip).run, chip))
    return _cycles(lowered.flat, lowered.names)


def _kernels(result: Run) -> list[str]:
    """Names of the kernels in the order in which they run."""
    return [name for name, _ in _runs(result)]


def _runs(result: Run) -> list[tuple[str, int]]:
    arrived = result.totals.task("arrived")[1:].tolist()
    names = [each.name.split("/")[1] for each in result.program.tasks[1:]]
    return sorted(dict(zip(names, arrived, strict=True)).items(), key=lambda each: each[1])


def test_kernels_of_a_step_stand_in_the_order_of_their_first_operations() -> None:
    names = _kernels(run(scenario(job("gru-lbr0"), fusion="on")))
    # two products and two tails a step, two steps: the second product waits for the first tail
    assert [name.split()[1] for name in names[:4]][::2] == ["gemv", "gemv"]
    assert len(names) == 8
    off = _kernels(run(scenario(job("gru-lbr0", steps=1), fusion="off")))
    operations = sum(node.intensive for node in step_graph(Layer(cell("gru-lbr0"), 6, 5), 1).graph.nodes)
    assert len(off) == operations + 2


def test_every_kernel_waits_for_its_launch() -> None:
    result = run(scenario(job("rnn", steps=3), fusion="on"))
    starts = [at for _, at in _runs(result)]
    assert len(starts) == 6
    assert starts[0] == 100
    assert min(after - before for before, after in pairwise(starts)) > 100


def test_equal_steps_are_the_same_kernels() -> None:
    chip = lstmsim.load_chip("edge")
    assert isinstance(chip, ParallelDevice)
    layer = Layer(cell("slstm"), 6, 5)
    step = fused_step(chip, layer, 1, "on", "paper")
    few, many = (priced(replace(step.run, kernels=step.run.kernels * steps), chip) for steps in (2, 50))
    assert len(set(map(id, many))) == len(set(map(id, few))) <= 2 * len(step.products)


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize(("name", "batch"), [("lstm-layernorm", 1), ("gru-lbr0", 5), ("rnn", 1), ("dense", 33)])
def test_a_step_has_no_more_operations_than_its_bound(name: str, batch: int) -> None:
    for setting in ("on", "off"):
        asked = run(scenario(job(name, batch, steps=1), fusion=setting))
        one = asked.scenario.jobs[0]
        bound = per_step(asked.scenario.chip.cores[:1], one.model, one.batch, fused=True)
        operations = sum(len(each.variants[0][1][0].body.operations) for each in asked.program.tasks)
        assert operations <= bound.most * one.steps


def test_cells_without_kernels_run_by_fused_kernels_only() -> None:
    with pytest.raises(InputError, match="none of them: it runs with the chip's `fusion: on` or `off`"):
        lstmsim.simulate(scenario(job("slstm")))
    asked = lstmsim.load_scenario(scenario(job("slstm"), fusion="on"))
    assert isinstance(asked.chip, ParallelDevice)
    chip = replace(asked.chip, fusion="cell")
    with pytest.raises(InputError, match="no core can run it: it has kernels for lstm"):
        machines.lower(chip, asked.jobs)


@pytest.mark.parametrize("fusion", ["on", "off"])
def test_a_persistent_kernel_and_fused_ones_exclude_each_other(fusion: str) -> None:
    said = f"fusion: must be cell where recurrent kernels are persistent, got '{fusion}'"
    with pytest.raises(InputError, match=said):
        lstmsim.simulate(scenario(job("lstm"), fusion=fusion, recurrent="persistent"))
    chip = lstmsim.load_chip("v100")
    assert isinstance(chip, ParallelDevice)
    with pytest.raises(InputError, match=said):
        replace(chip, fusion=fusion, recurrent="persistent")


def test_a_yaml_file_may_say_on(tmp_path: Any) -> None:
    path = tmp_path / "s.yaml"
    entry = "{kind: parallel-device, frequency_mhz: 1000, cores: [{count: 2, max_warps: 32}], fusion: on}"
    path.write_text(f"chip: {entry}\njobs:\n- {{model: {{layers: [{{cell: lstm, hidden: 6, input: 5}}]}}, steps: 1}}\n")
    chip = lstmsim.load_scenario(path).chip
    assert isinstance(chip, ParallelDevice)
    assert chip.fusion == "on"


@pytest.mark.slow
def test_reports_tell_how_the_tail_was_cut() -> None:
    report = run(scenario(job("lstm-layernorm"), fusion="on")).report
    (reported,) = report.kernels
    assert "is 1 product and 1 kernel: 104 operations in 11 stages, 1 block of" in reported
    assert "9 shared" in reported
    assert "Fusion on, split_rule paper: a step of layer 0" in report.to_text()
    assert report_json(report)["kernels"] == [reported]
    (off,) = run(scenario(job("lstm-layernorm"), fusion="off")).report.kernels
    assert off.endswith("is 1 product and 104 operations, a kernel for each.")
    plain = run(scenario(job("lstm"))).report
    assert plain.kernels == ()
    assert "kernels" not in report_json(plain)


def test_a_split_rule_without_effect_is_said() -> None:
    (reported,) = run(scenario(job("lstm"), split_rule="costed")).report.kernels
    assert reported == "split_rule: costed has no effect: only `fusion: on` splits rows, and fusion is cell."
    assert run(scenario(job("lstm"), fusion="off", split_rule="costed")).report.kernels[-1].endswith("fusion is off.")
    (reported,) = run(scenario(job("lstm", bidirectional=True), fusion="on", split_rule="costed")).report.kernels
    assert reported.startswith("Fusion on, split_rule costed: a step of layer 0 of")
    assert "batch 1), in each direction, is 1 product" in reported


def test_what_the_other_split_rule_would_have_is_said_where_it_differs() -> None:
    asked = lstmsim.load_scenario({"chip": "edge", "jobs": [job("lstm", steps=1, hidden=272, input=8)]})
    (long,) = asked.jobs
    chip = lstmsim.load_chip("v100")
    assert isinstance(chip, ParallelDevice)
    layer = replace(long.model.layers[0], cell=cell("lstm-layernorm"))
    jobs = [replace(long, model=replace(long.model, layers=(layer,)))]
    paper, costed = (fused_text(replace(chip, fusion="on", split_rule=rule), jobs)[0] for rule in ("paper", "costed"))
    assert paper.endswith("grid barriers; split_rule costed would have no grid barrier; `simulate --explain` tries it.")
    barriers = paper.split(", ")[-1].split("; ")[0]
    assert costed.endswith(f"; split_rule paper would have {barriers}.")
    # one kernel for each operation splits nothing
    (off,) = fused_text(replace(chip, fusion="off"), jobs)
    assert "split_rule" not in off


def _changes(asked: dict[str, Any]) -> set[str]:
    """What an explanation tries."""
    loaded = lstmsim.load_scenario(asked)
    return {each.name for each in target_of("parallel-device").changes(loaded.chip, loaded.jobs) if not each.refused}


def test_what_if_tries_the_other_ways() -> None:
    tried = _changes(scenario(job("lstm")))
    assert "fused kernels" in tried
    assert not tried & {"kernels of cells", "costed splits"}
    fused = _changes(scenario(job("slstm"), fusion="on"))
    # nothing else runs this cell
    assert not fused & {"kernels of cells", "persistent kernels", "fused kernels"}
    assert "costed splits" in fused


@pytest.mark.slow
def test_a_costed_split_is_the_quicker_one_for_a_long_row() -> None:
    asked = {"chip": "edge", "jobs": [job("lstm-layernorm", steps=1, hidden=272, input=8)]}
    paper, costed = (
        lstmsim.simulate(asked, overrides=["chip.fusion=on", f"chip.split_rule={rule}"]).makespan_cycles
        for rule in ("paper", "costed")
    )
    assert costed < 0.7 * paper


def test_numbers_of_plans_are_those_of_the_chip() -> None:
    chip = lstmsim.load_chip("v100")
    assert isinstance(chip, ParallelDevice)
    assert fusion.numbers(chip, {}) == FusionDevice()
    # blocks get whole pieces of 256 bytes: a block of 832 bytes would not fit
    small = replace(chip, cores=(replace(chip.cores[0], shared_bytes=1000),) * 80)
    assert fusion.numbers(small, {}).shared_limit == 768


def test_the_tail_of_the_projects_lstm_takes_what_the_golden_one_takes() -> None:
    """Golden cycles of the case `lstm-1x64`, op and stitch: the same operations in a slightly different order."""
    chip = lstmsim.load_chip("v100")
    assert isinstance(chip, ParallelDevice)
    graph = step_graph(Layer(cell("lstm"), 64, 64), 1).graph
    device = fusion.numbers(chip, {})
    plan = planned(graph, device)
    work = [fusion.lower(chip, graph, kernels_of(graph, plan, device, mode), mode) for mode in ("op", "stitch")]
    assert [_cycles(each.flat, each.names) for each in work] == [82418, 7548]
