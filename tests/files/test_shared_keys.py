"""Keys of jobs on several cores, of memories, and of queues that end: what they become, and every way to miss them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lstmsim import check_numerics, load_scenario, run, simulate
from lstmsim.base.errors import InputError
from lstmsim.machines.column.npu import Exchange, Memory

LAYER = {"cell": "lstm", "hidden": 64, "input": 64}
MODEL = {"name": "m", "layers": [LAYER, LAYER]}
#: 128 KiB for the two layers at 16 bits a weight.
CORE = {"npe": 64, "ep": 4, "vp": 16, "count": 2, "threads": 2, "weight_kib": 150, "weight_bits": 16}


def data(**job: Any) -> dict[str, Any]:
    chip = {"kind": "column-npu", "frequency_mhz": 100, "cores": [CORE]}
    chip |= {"memory": {"gb_per_s": 10}, "exchange": {"latency_cycles": 8}}
    return {"chip": chip, "jobs": [{"model": MODEL, "steps": 2, **job}]}


def test_keys_become_plain_descriptions() -> None:
    whole = data(cores=[1, 0], split="rows", queue_limit=3, patience=9) | {"dispatch": "edf", "placement": "affinity"}
    scenario = load_scenario(whole, ["chip.exchange.width=8", "chip.memory.prefetch_blocks=4", "preemption=true"])
    (job,) = scenario.jobs
    assert (job.cores, job.split, job.queue_limit, job.patience) == ((1, 0), "rows", 3, 9)
    assert (job.dispatch, job.affinity) == ("edf", True)
    assert job.preempts
    assert scenario.chip.memory == Memory(10, prefetch_blocks=4)
    assert scenario.chip.exchange == Exchange(width=8)
    assert scenario.chip.cores[0].weight_capacity == 150 * 8192 // 16
    assert load_scenario(data(core=1)).jobs[0].cores == (1,)


ONE_CORE = (["chip.cores.0.count=1"], ["jobs.0.cores=[1]"], ["jobs.0.core=0"])


@pytest.mark.parametrize(
    ("change", "more"),
    [
        pytest.param(change, more, marks=[pytest.mark.long] * (way != number))
        for number, change in enumerate(("jobs.0.split=rows", "jobs.0.split=layers", "placement=affinity"))
        for way, more in enumerate(ONE_CORE)
    ],
)
def test_what_changes_nothing_is_allowed(change: str, more: list[str]) -> None:
    """So that it can be an axis: one core, and weights that all stay on the chip."""
    small = {"name": "m", "layers": [LAYER | {"hidden": 16, "input": 16}] * 2}
    whole = data(count=3, model=small) | {"dispatch": "sjf", "preemption": True}
    # short ones stop long ones
    whole["jobs"].append({"model": small, "steps": 1, "arrival": 100, "count": 4})
    plain = [*more, *(each.replace("jobs.0", "jobs.1") for each in more if "jobs" in each)]
    plain += ["chip.memory=null", "chip.cores.0.weight_kib=null", "chip.cores.0.threads=1"]
    before, after = (run(whole, overrides=changes) for changes in (plain, [*plain, change]))
    assert after.scenario != before.scenario
    assert after.program == before.program
    assert after.trace == before.trace
    assert len(after.trace.pauses) > 0
    assert len(check_numerics(after, random_weights=0)) == 7


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["jobs.0.cores=[0, 2]"], r"jobs\.0\.cores=\[0, 2\]: 1: must be one of the chip's cores 0 to 1, got 2"),
        (["jobs.0.cores=[]"], "must be a list of at least 1 entry, got 0"),
        (["jobs.0.cores=[-1]"], "must be at least 0, got -1"),
        (["jobs.0.cores=[0.5]"], "must be a whole number, got 0.5"),
        (["jobs.0.cores=0"], "must be a list"),
        (["jobs.0.core=0", "jobs.0.cores=[0]"], "says the same as `cores`: give one of them"),
        (["jobs.0.cores=[1, 1]"], "names core 1 twice; only a job split into layers takes several threads of a core"),
        (["jobs.0.split=row"], "must be 'rows', 'layers' or 'auto', got 'row'; did you mean 'rows'"),
        (["jobs.0.split=layers", "jobs.0.cores=[0, 0, 1]"], "there are 3 members for 2 layers; each needs a layer"),
        (["jobs.0.split=layers", "jobs.0.model.layers.1.bidirectional=true"], "layer 1 is bidirectional"),
        (["jobs.0.split=rows", "jobs.0.model.layers.1.hidden=1"], "layer 1 has 1 hidden units for 2 cores"),
        (["jobs.0.queue_limit=-1"], "must be at least 0, got -1"),
        (["jobs.0.patience=soon"], "must be a whole number, got 'soon'"),
        (["preemption=true"], "has no effect with dispatch fcfs"),
        (["preemption=perhaps"], "must be true or false, got 'perhaps'"),
        (["placement=affinty"], "must be 'least-loaded' or 'affinity', got 'affinty'; did you mean 'affinity'"),
        (["chip.memory.gb_per_s=0"], "must be at least 0.001, got 0"),
        (["chip.memory.gb_per_s=.nan"], "must be a finite number"),
        (["chip.memory.gb_per_s=.inf"], "must be a finite number"),
        (["chip.memory.gb_per_s=1e99"], "must be at most"),
        (["chip.memory.latency_cycles=-1"], "must be at least 0, got -1"),
        (["chip.memory.prefetch_blocks=0"], "must be at least 1, got 0"),
        (["chip.memory={}"], "gb_per_s: required key is missing"),
        (["chip.memory.bandwidth=3"], "unknown key; known keys: gb_per_s, latency_cycles and prefetch_blocks"),
        (["chip.exchange.width=0"], "must be at least 1, got 0"),
        (["chip.exchange.latency_cycles=x"], "must be a whole number, got 'x'"),
        (["chip.cores.0.weight_kib=0"], "must be at least 1, got 0"),
        (["chip.cores.0.weight_bits=0"], "must be at least"),
        (["precision.weight_bits=8"], "must be 8, as in `precision` or on the cores before, got 16"),
    ],
)
def test_mistakes_are_named(changes: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_scenario(data(), changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        # without a memory the first models stay, and what is needed and there is said
        (
            ["chip.memory=null", "chip.cores.0.weight_kib=50"],
            "its weights take 128 KiB at 16 bits a weight, core 0 holds 50",
        ),
        # a core that has not even room for the row blocks on their way
        (["chip.cores.0.weight_kib=3"], r"its weights take 128 KiB, a core keeps 3 KiB.* prefetch_blocks 2 row blocks"),
        (
            ["chip.cores.0.weight_kib=50", "chip.cores.0.block_order=column", "chip.cores.0.accumulator_banks=16"],
            "weights are streamed with block_order 'row' only",
        ),
        (
            ["jobs.0.split=layers", "jobs.0.cores=[0, 0]", "chip.cores.0.threads=1"],
            "takes 2 threads of core 0, which has 1",
        ),
    ],
)
def test_what_cannot_run_is_refused(changes: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        simulate(data(), overrides=changes)


def test_the_second_model_finds_the_memory_taken() -> None:
    other = {"name": "other", "layers": [LAYER, LAYER], "layer_order": "step"}
    whole = data()
    whole["jobs"].append({"model": other, "steps": 2})
    assert simulate(whole).memory_busy_cycles
    whole["chip"]["memory"] = None
    # one stays on each core, if that is said; otherwise the first lies on both
    with pytest.raises(
        InputError, match=r"job other: its weights take 128 KiB .* of the 150 KiB of core 0, 128 are taken"
    ):
        simulate(whole)
    whole["jobs"][0]["cores"] = [0]
    assert [job.core for job in simulate(whole).jobs] == [0, 1]


def test_cores_of_a_split_job_must_be_equal() -> None:
    unequal = data(split="rows")
    unequal["chip"]["cores"] = [{**CORE, "count": 2}, {**CORE, "count": 1, "tail_width": 1}]
    where, wrong = "jobs.0.split", "the cores of a job that is split must be equal: name some that are (`cores`)"
    for cores in ({}, {"cores": [0, 2]}):
        with pytest.raises(InputError) as caught:
            load_scenario({**unequal, "jobs": [{**unequal["jobs"][0], **cores}]})
        assert [(each.location, each.sentence) for each in caught.value.mistakes] == [(where, wrong)]
    # those that are named are equal; on one core nothing is split
    for cores in ({"cores": [0, 1]}, {"cores": [1, 0]}, {"cores": [2]}):
        (job,) = load_scenario({**unequal, "jobs": [{**unequal["jobs"][0], **cores}]}).jobs
        assert job.cores == tuple(cores["cores"])


def test_a_row_npu_splits_nothing() -> None:
    jobs = [{"model": MODEL, "steps": 2, "split": "rows"}]
    with pytest.raises(InputError, match="a row-wise NPU runs a job on one core: leave it out"):
        load_scenario({"chip": "brainwave-s10", "jobs": jobs})


def test_left_out_mappings_can_be_reached_where_they_belong() -> None:
    preset = {"chip": "column-npu-4x16k", "jobs": [{"model": MODEL, "steps": 2}]}
    scenario = load_scenario(preset, ["chip.exchange.latency_cycles=32", "precision.vector_bits=6"])
    assert scenario.chip.exchange == Exchange(latency_cycles=32)
    for change, sentence in (
        ("precison.vector_bits=6", "the top has no key 'precison'; did you mean 'precision'?"),
        ("chip.exchnge.width=6", "'chip' has no key 'exchnge'; did you mean 'exchange'?"),
        ("chip.cores.0.latncy.add=2", "'chip.cores.0' has no key 'latncy'; did you mean 'latency'?"),
        ("jobs.0.latency.add=2", "'jobs.0' has no key 'latency'$"),
    ):
        with pytest.raises(InputError, match=re.escape(sentence).replace(re.escape("$"), "$")):
            load_scenario(preset, [change])
