"""The row-wise NPU: published cycles on both engines, a model micro-operation by micro-operation, mistakes."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lstmsim
from lstmsim import engines, machines, run, simulate
from lstmsim.analysis.report_text import report_json
from lstmsim.base.errors import InputError
from lstmsim.engines import ENGINES
from lstmsim.files.catalog import list_models
from lstmsim.files.published import IntelWorkload, intel_npu
from lstmsim.files.scenario.scenario_file import load_chip, load_model, load_scenario
from lstmsim.machines.row.npu import RowCore, RowLatency, RowNpu
from lstmsim.machines.row.plan import PROGRAMS
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job
from lstmsim.program.accounts import totals_of
from tests.oracle.row_npu import Machine, compiled

EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "8"))
ROOT = Path(__file__).parents[2]
PRESETS = ("intel-npu-rtl", "intel-npu-cpp", "brainwave-s10")
#: Their GRU multiplies r * h before the product.
CELL_OF = {"gemv": "dense", "mlp": "dense", "gru": "gru-lbr0", "rnn": "rnn", "lstm": "lstm"}


def preset(name: str) -> RowNpu:
    chip = load_chip(name)
    assert isinstance(chip, RowNpu)
    return chip


def stack(name: str, sizes: list[int] | tuple[int, ...]) -> Model:
    return Model("m", tuple(Layer(cell(name), n, i) for i, n in pairwise(sizes)))


def cycles(core: RowCore, job: Job, engine: str = "fast") -> int:
    return engines.run(machines.lower(RowNpu("c", 300, (core,)), [job]), engine).makespan_cycles


@pytest.mark.halved
@pytest.mark.parametrize(
    ("row", "engine"),
    [
        pytest.param(row, engine, id=f"{row.workload}-{engine}", marks=pytest.mark.long if slow else ())
        for number, row in enumerate(intel_npu())
        for engine, slow in (("fast", False), ("reference", number % 4 > 0))
    ],
)
def test_every_published_workload_is_exact(row: IntelWorkload, engine: str) -> None:
    job = Job(row.workload, stack(CELL_OF[row.cell], row.sizes), row.steps, batch=row.batch)
    latencies = [cycles(preset(name).cores[0], job, engine) for name in PRESETS[:2]]
    assert latencies == [row.rtl_cycles, row.cpp_cycles]
    tops = [round(2 * job.macs / (each / 300e6) / 1e12, 2) for each in latencies]
    assert tops == [row.rtl_tops, row.cpp_tops]


SIZES = st.one_of(st.integers(1, 300), st.integers(200, 600), st.sampled_from([280, 281, 480, 481, 560, 1024, 1792]))


@st.composite
def cores(draw: st.DrawFn) -> RowCore:
    """A preset of the Intel NPU, or one that nobody built: every parameter has its effect."""
    core = preset(draw(st.sampled_from(PRESETS[:2]))).cores[0]
    if draw(st.booleans()):
        return core
    least = draw(st.integers(1, 4))
    # the sums of a row group pass at least as fast as the vectors behind them
    vectors, size = draw(st.integers(1, 3)), draw(st.sampled_from([0, 4]))
    latency = {name: draw(st.integers(least, 60)) for name in RowLatency.__dataclass_fields__}
    return replace(
        core,
        tiles=draw(st.integers(1, 7)),
        vectors=vectors,
        chunk_groups=draw(st.integers(1, 12)),
        dispatch_cycles=draw(st.sampled_from([1, 1, 3, 20])),
        start_cycles=draw(st.sampled_from([0, 30])),
        decode_cycles=draw(st.integers(0, 2)),
        empty_slots=draw(st.booleans()),
        serializer_cycles=size,
        count_flushes=draw(st.booleans()),
        latency=RowLatency(**latency),
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(core=cores(), name=st.sampled_from(["rnn", "gru-lbr0", "lstm", "dense"]), data=st.data())
def test_cycles_are_those_of_the_recurrences(core: RowCore, name: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(2, 4)) if name == "dense" else 2
    sizes = data.draw(st.lists(SIZES, min_size=length, max_size=length))
    steps = 1 if name == "dense" else data.draw(st.integers(1, 4))
    batch = data.draw(st.sampled_from([1, core.batch, core.batch + 1, 3 * core.batch]))
    rounds = -(-batch // core.batch)
    expected = Machine(core).run(compiled(core, name, sizes, steps, rounds))
    assert cycles(core, Job("j", stack(name, sizes), steps, batch=batch)) == expected


WAYS = [(chip, order) for order in ("layer", "step") for chip in PRESETS]


@pytest.mark.halved
@pytest.mark.parametrize(
    ("name", "chip", "order"),
    [
        # in the usual run each cell has two of six ways, and each way one or two cells
        pytest.param(name, *way, marks=() if (number + at) % 3 == 0 else pytest.mark.long)
        for number, name in enumerate(sorted(PROGRAMS))
        for at, way in enumerate(WAYS)
    ],
)
def test_engines_agree_on_stacks_and_totals(name: str, chip: str, order: str) -> None:
    # two row groups on both machines; a third of it takes the reference engine as long as all the others
    hidden = 300 if name == "rnn" else 90
    layers = tuple(Layer(cell(name), hidden, i) for i in (200, hidden))
    job = Job("j", Model("m", layers, order), 2, frame_interval=700, batch=3)
    program = machines.lower(preset(chip), [job, replace(job, name="k", arrival=100, batch=1)])
    fast, reference = (engines.run(program, each) for each in ENGINES)
    assert fast == reference
    assert engines.totals(program) == totals_of(program, fast)
    assert totals_of(program, fast).work.sum() == job.macs // 3 * 4


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_a_bidirectional_layer_above_waits_for_both_directions(steps: int) -> None:
    lstm = cell("lstm")
    model = Model("m", (Layer(lstm, 40, 40, bidirectional=True), Layer(lstm, 40, 80)))
    result = run({"chip": "brainwave-s10", "jobs": [{"model": {"layers": _entries(model)}, "steps": steps}]})
    trace, phases = result.trace, result.program.tasks[0].variants[0][1]
    backward = max(number for number, phase in enumerate(phases) if phase.mirrored)
    unit = trace.issue("unit")
    written = trace.issue("start")[(unit == 10) & (trace.issue("phase") == backward)].max()
    first = trace.issue("start")[(unit == 6) & (trace.issue("phase") > backward)].min()
    assert first == written + preset("brainwave-s10").cores[0].latency.tag_mvu or first > written
    assert sorted(set(result.timeline.step.tolist())) == [-1, *range(steps)]


def _entries(model: Model) -> list[dict[str, object]]:
    keys = ("hidden", "input", "bidirectional")
    return [{"cell": each.cell.name, **{key: getattr(each, key) for key in keys}} for each in model.layers]


def test_a_frame_that_comes_late_is_waited_for() -> None:
    job = {"model": {"layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}, "steps": 5}
    soon = simulate({"chip": "intel-npu-rtl", "jobs": [job]})
    late = simulate({"chip": "intel-npu-rtl", "jobs": [{**job, "frame_interval": 5000}]})
    assert late.makespan_cycles > 20_000 > soon.makespan_cycles
    assert soon.cores[0].cycles["input"] == 0 < 15_000 < late.cores[0].cycles["input"]


def test_frames_of_every_cycle_are_frames_too() -> None:
    """Section 4 of docs/row_npu.md: who waits for a frame waits for input, however close the frames come."""
    chip = RowNpu("r", 250, (RowCore(tiles=1, engines=4, lanes=4),))
    model = Model("m", (Layer(cell("lstm"), 8, 8),))
    at_once, paced = Job("at once", model, 3), Job("paced", model, 3, frame_interval=1)
    together = machines.lower(chip, [at_once, paced]).tasks
    alone = [machines.lower(chip, [job]).tasks[0] for job in (at_once, paced)]
    assert [task.variants for task in together] == [task.variants for task in alone]
    assert together[0].variants != together[1].variants


def test_slow_instructions_are_named_as_what_holds_the_machine_back() -> None:
    job = {"model": {"layers": [{"cell": "lstm", "hidden": 256, "input": 256}]}, "steps": 20}
    report = simulate({"chip": "brainwave-s10", "jobs": [job]})
    assert max(report.cores[0].cycles, key=report.cores[0].cycles.__getitem__) == "dispatch"
    assert report.cores[0].cycles["dispatch"] > 0.5 * report.makespan_cycles


@pytest.mark.needs_core
def test_brainwaves_latencies_are_those_of_the_fit() -> None:
    spec = importlib.util.spec_from_file_location("fit_brainwave", ROOT / "tools" / "fit_brainwave.py")
    if spec is None or spec.loader is None or not (ROOT / "tools").is_dir():
        pytest.skip("tools/ is not beside the tests")
    fit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fit)
    for name in ("lstm", "gru"):
        own = preset("brainwave-s10").cores[0].dispatch(name)
        around = range(own.dispatch_cycles - 1, own.dispatch_cycles + 2)
        assert fit.fit(name, around)[:2] == (own.dispatch_cycles, own.start_cycles)


@pytest.mark.parametrize("row", intel_npu()[::6], ids=lambda row: row.workload)
def test_what_a_core_does_not_say_is_as_in_the_rtl_of_the_intel_npu(row: IntelWorkload) -> None:
    """rtl/npu.vh of intel/fpga-npu has 40 elements a cycle in the vector pipe (DOTW), as docs/row_npu.md says."""
    said = {"tiles": 7, "engines": 40, "lanes": 40, "vectors": 3, "replicas": 2, "native_dimension": 40}
    said |= {"chunk_groups": 12, "serializer_cycles": 4}
    model = stack(CELL_OF[row.cell], row.sizes)
    made = cycles(RowCore(**said), Job("j", model, row.steps, batch=row.batch))
    layers = [{"cell": each.cell.name, "hidden": each.hidden, "input": each.input} for each in model.layers]
    job = {"model": {"layers": layers}, "steps": row.steps, "batch": row.batch}
    read = simulate({"chip": {"kind": "row-npu", "frequency_mhz": 300, "cores": [said]}, "jobs": [job]})
    assert made == read.makespan_cycles == row.rtl_cycles


@pytest.mark.parametrize("name", sorted(set(CELLS) - set(PROGRAMS)))
def test_a_cell_without_a_program_is_refused(name: str) -> None:
    layer = {"cell": name, "hidden": 8, "input": 8, **({"projection": 4} if cell(name).projected else {})}
    with pytest.raises(InputError, match=f"no program for cell '{name}'; there are programs for dense, gru"):
        load_scenario({"chip": "intel-npu-rtl", "jobs": [{"model": {"layers": [layer]}, "steps": 1}]})


WRONG = [
    ("chip.cores.0.tiles=0", r"chip.cores.0.tiles=0: must be at least 1, got 0"),
    ("chip.cores.0.lanes=x", r"must be a whole number, got 'x'"),
    ("chip.cores.0.ep=4", r"unknown key; known keys: count, tiles, engines"),
    ("chip.cores.0.latency.evrf=0", r"must be at least 1, got 0"),
    ("chip.cores.0.by_cell={lstn: {start_cycles: 1}}", r"no program for cell 'lstn'; did you mean 'lstm'"),
    ("chip.kind=row-nup", r"^overrides chip.kind=row-nup: must be .* got 'row-nup'; did you mean 'row-npu'\?$"),
    ("chip.cores.0.engines=1000000", r"PEs"),
    ("jobs.0.core=1", r"must be 0, the chip's only core"),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[change for change, _ in WRONG])
def test_mistakes_are_named(change: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_scenario({"chip": "intel-npu-rtl", "jobs": [{"model": "lstm-512", "steps": 2}]}, [change])


@pytest.mark.slow
@pytest.mark.needs_core
def test_how_far_brainwave_rests_on_the_assumed_latencies() -> None:
    """The words of the preset's source of its latencies."""
    chip = preset("brainwave-s10")
    changes = {}
    for times in (0.5, 2.0):
        own = chip.cores[0].latency
        values = {name: max(1, round(getattr(own, name) * times)) for name in RowLatency.__dataclass_fields__}
        core = replace(chip.cores[0], latency=RowLatency(**values))
        for entry in list_models():
            if entry.name.startswith("deepbench-"):
                job = Job("j", load_model(entry.name), int(entry.name.rsplit("-", 1)[1]))
                pair = [totals_cycles(each, job) for each in (chip.cores[0], core)]
                changes[times, entry.name] = abs(pair[1] / pair[0] - 1)
    half, twice = ([change for (times, _), change in changes.items() if times == each] for each in (0.5, 2.0))
    assert max(half) <= 0.015
    assert 0.15 < max(twice) <= 0.19
    assert max(changes, key=changes.__getitem__) == (2.0, "deepbench-gru-2560-375")


def totals_cycles(core: RowCore, job: Job) -> int:
    return engines.totals(machines.lower(RowNpu("c", 250, (core,)), [job])).makespan_cycles


def test_the_start_of_a_job_is_a_wait_for_instructions() -> None:
    report = simulate({"chip": "brainwave-s10", "jobs": [{"model": "deepbench-gru-512-1", "steps": 1}]})
    assert report.cores[0].cycles["dispatch"] > 2520


@pytest.mark.needs_core
@pytest.mark.parametrize("chip", PRESETS)
def test_many_steps_of_a_dense_layer_repeat(chip: str) -> None:
    job = {"model": {"layers": [{"cell": "dense", "hidden": 64, "input": 64}] * 2}, "steps": 3000}
    result = run({"chip": chip, "jobs": [job]})
    assert sum(len(phase.body.operations) for phase in result.program.tasks[0].variants[0][1]) < 1000
    assert result.report.jobs[0].macs == result.totals.work.sum() == 3000 * 2 * 64 * 64


def test_the_simulator_of_intel_counts_what_is_loaded_in_the_same_way_for_all_layers() -> None:
    def cycles(layers: list[dict[str, object]], steps: int, batch: int, *overrides: str) -> int:
        job = {"model": {"layers": layers}, "steps": steps, "batch": batch}
        return simulate({"chip": "intel-npu-cpp", "jobs": [job]}, overrides=overrides).makespan_cycles

    lstm = [{"cell": "lstm", "hidden": 256, "input": 256}]
    product = [{"cell": "dense", "hidden": 1024, "input": 1024}]
    assert cycles(lstm, 8, 6) == 3554
    assert cycles(product, 1, 60) == 2872
    # The last compiler of the repository, which does not count all of dense stacks.
    last = "chip.cores.0.count_flushes=false"
    assert (cycles(product, 1, 60, last), cycles(lstm, 8, 6, last)) == (1796, 3554)


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([("gru", 512, 512)], None),
        ([("gru-lbr0", 512, 512)], "cell gru-lbr0, and fitted are lstm and gru only"),
        ([("rnn", 512, 512)], "cell rnn"),
        ([("lstm", 4096, 4096)], "hidden 4096, and lstm was fitted from 256 to 2048"),
        ([("lstm", 512, 256)], "input 256 unlike hidden"),
        ([("lstm", 512, 512), ("lstm", 512, 512)], "more than one layer"),
    ],
)
def test_what_brainwave_was_not_fitted_to_is_said(layers: list[tuple[str, int, int]], words: str | None) -> None:
    stack = [{"cell": cell, "hidden": hidden, "input": inputs} for cell, hidden, inputs in layers]
    scenario = {"chip": "brainwave-s10", "jobs": [{"model": {"layers": stack}, "steps": 2, "count": 3}]}
    report = lstmsim.simulate(scenario)
    remarks = [text for text in report.remarks if "no published latency stands behind" in text]
    assert len(remarks) == (words is not None)
    assert words is None or words in remarks[0]
    assert report_json(report).get("remarks", []) == list(report.remarks)
    entry = lstmsim.compare(scenario, ["intel-npu-rtl"]).entries[0]
    assert any("no published latency" in text for text in entry[0].remarks) == (words is not None)
    assert not any("no published latency" in text for text in entry[1].remarks)


def test_fitted_sizes_are_checked() -> None:
    dispatch = {"lstm": {"dispatch_cycles": 5, "fitted_hidden": [64, 8]}}
    core = {"tiles": 1, "engines": 4, "lanes": 4, "by_cell": dispatch}
    chip = {"kind": "row-npu", "name": "r", "frequency_mhz": 250, "cores": [core]}
    with pytest.raises(InputError, match="two sizes of at least 1, the smaller first, got 64 and 8"):
        lstmsim.load_scenario({"chip": chip, "jobs": [{"model": "lstm-256", "steps": 1}]})


def test_weights_that_just_fit_the_matrix_memory_are_not_remarked_on() -> None:
    chip, job = preset("intel-npu-rtl"), Job("a", stack("dense", (1024, 512)), 1)

    def with_words(words: int) -> tuple[str, ...]:
        return replace(chip, cores=(replace(chip.cores[0], matrix_words=words),)).remarks(job)

    (remark,) = with_words(1)
    needed = int(remark.split(" take ")[1].split()[0].replace(",", ""))
    assert with_words(needed) == ()
    assert with_words(needed - 1) != ()
