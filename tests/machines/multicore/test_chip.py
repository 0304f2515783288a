"""The description of a multi-core CPU: its presets, its keys, and every way to miss them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lstmsim import Job, Layer, Model, engines, load_chip, load_scenario
from lstmsim.base.errors import InputError
from lstmsim.machines.multicore.chip import MAX_CPU_CORES, CpuCore, MulticoreCpu
from lstmsim.machines.multicore.target import changes
from lstmsim.machines.registry import target_of
from lstmsim.model.cells import cell
from tests.machines.multicore.chips import flat
from tools.contract import read_cases

CASES = read_cases(str(Path(__file__).parents[2] / "data" / "contract_cases_gemm.json"))
JOB: dict[str, Any] = {"model": {"name": "m", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}, "steps": 3}
TARGET = target_of("multicore")


def small(**keys: Any) -> dict[str, Any]:
    """The chip of a file: 4 cores."""
    return {"kind": "multicore", "frequency_mhz": 1000, "cores": [{"count": 4}], **keys}


def refused(chip: Any, **job: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_scenario({"chip": chip, "jobs": [{**JOB, **job}]})
    return str(caught.value)


def preset(name: str) -> MulticoreCpu:
    chip = load_chip(name)
    assert isinstance(chip, MulticoreCpu)
    return chip


@pytest.mark.parametrize("name", ["epyc-7742", "xeon-gold-5122"])
def test_presets_are_the_machines_of_the_golden_cases(name: str) -> None:
    chip = preset(name)
    same = [case["machine"] for case in CASES if case["machine"]["name"] == name]
    assert same
    for machine in same:
        own = {key: list(value) if isinstance(value, tuple) else value for key, value in vars(flat(chip)).items()}
        own = {key: value for key, value in own.items() if key in machine}
        # packing was measured since
        assert own.pop("pack_per_cycle") == 2 < machine["pack_per_cycle"]
        assert (
            own | {"name": name, "frequency_mhz": chip.frequency_mhz, "pack_per_cycle": machine["pack_per_cycle"]}
            == machine
        )


def test_the_defaults_are_those_of_the_larger_preset() -> None:
    chip = preset("epyc-7742")
    assert MulticoreCpu("epyc-7742", 2250, (CpuCore(),) * 64) == chip


def test_a_report_counts_lanes_and_names_what_this_machine_waits_for() -> None:
    figures = preset("epyc-7742").core_figures
    assert (len(figures), sum(each.peak for each in figures)) == (64, 1024)
    assert figures[0].stalls == ("memory", "contention", "barrier")
    assert figures[0].settings == {"L1": 32768, "L2": 524288, "mr": 6, "nr": 16}
    assert TARGET.chip_counts(preset("epyc-7742")) == {"threads": 64, "memories": 4}
    assert TARGET.shared_parts(preset("epyc-7742"), ()) == (
        "Last-level caches: 16 of 16,777,216 bytes, each for 4 cores.",
        "Memories: 4, each for 16 cores; a line of 64 bytes takes 4 cycles, and is there 254 (of another memory 274) "
        "cycles later.",
    )
    assert "another memory" not in TARGET.shared_parts(preset("xeon-gold-5122"), ())[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"cores": [{"count": 2}, {"lanes": 16}]},
            "chip.cores: must be equal: all cores of a multi-core CPU are alike",
        ),
        ({"cores": [{"count": MAX_CPU_CORES + 1}]}, "chip.cores: must be at most 256 cores, counts included, got 257"),
        ({"fill": [3, 2]}, "chip.fill: must be at most a whole cache, got 3/2"),
        ({"buffer_fill": [2, 1]}, "chip.buffer_fill: must be at most a whole cache, got 2/1"),
        ({"fill": [1, 0]}, "chip.fill.1: must be at least 1, got 0"),
        ({"line": 66}, "chip.line: must be a multiple of a number's 4 bytes (element_bytes), got 66"),
        ({"page": 1000}, "chip.page: must be a multiple of a line's 64 bytes, got 1000"),
        ({"element_bytes": 3}, "chip.element_bytes: must be 1, 2, 4 or 8, got 3"),
        ({"llc_sets": 1 << 20, "llc_ways": 64}, "the caches of all cores have 67,143,680 lines together, at most"),
        ({"lines": 64}, "chip.lines: unknown key; did you mean 'line'?"),
    ],
)
def test_wrong_numbers_are_told_in_files_and_in_objects(change: dict[str, Any], said: str) -> None:
    assert said in refused(small(**change))
    values = dict(change)
    if "cores" in values:
        counted = [dict(each) for each in values["cores"]]
        values["cores"] = tuple(core for each in counted for core in [CpuCore(**_own(each))] * each.get("count", 1))
    whole: dict[str, Any] = {"name": "c", "frequency_mhz": 1000, "cores": (CpuCore(),) * 4, **values}
    lists: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in whole.items()}
    with pytest.raises(InputError) as caught:
        MulticoreCpu(**lists)
    assert said.removeprefix("chip.") in str(caught.value)


def _own(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "count"}


def test_two_wrong_numbers_are_both_told_and_a_wrong_one_is_judged_with_no_other() -> None:
    both = refused(small(line=66, fill=[3, 2]))
    assert "chip.line: must be a multiple" in both
    assert "chip.fill: must be at most" in both
    alone = refused(small(line=-1, page=1000))
    assert "chip.line: must be at least 1" in alone
    assert "chip.page" not in alone


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"threads": 5}, "jobs.0.threads: must be at most the chip's 4 cores, got 5"),
        ({"threads": 0}, "jobs.0.threads: must be at least 1, got 0"),
        ({"threads": "all"}, "jobs.0.threads: must be a whole number, got 'all'"),
        (
            {"split": "rows"},
            "jobs.0.split: a multi-core CPU spreads a job over threads: leave it out, and say how many",
        ),
    ],
)
def test_what_a_job_cannot_ask_for(keys: dict[str, Any], said: str) -> None:
    assert said in refused(small(), **keys)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"cores": (0,)}, "job a: cores: a multi-core CPU chooses the cores of a job: leave it out, and say with"),
        ({"preempts": True, "dispatch": "sjf"}, "job a: preempts: a multi-core CPU runs each job to its end"),
        ({"threads": 65}, "job a: threads: must be at most the chip's 64 cores, got 65"),
    ],
)
def test_what_an_object_cannot_ask_for(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        TARGET.check(preset("epyc-7742"), Job(name="a", **JOB, **keys))
    assert said in str(caught.value)


def test_a_job_says_how_many_threads_it_has() -> None:
    scenario = load_scenario({"chip": small(), "jobs": [{**JOB, "threads": 2}, JOB]})
    assert [job.threads for job in scenario.jobs] == [2, None]
    assert [job.members(4) for job in scenario.jobs] == [2, 4]
    assert load_scenario({"chip": small(), "jobs": [JOB]}, ["jobs.0.threads=3"]).jobs[0].threads == 3


def test_changes_are_one_thing_each_and_can_be_built() -> None:
    chip = preset("epyc-7742")
    job = Job(name="a", **JOB, threads=32)
    made = {each.name: each for each in changes(chip, (job, job))}
    assert made["threads halved"].jobs[1].threads == 16
    assert made["threads doubled"].detail == "threads 32 -> 64"
    assert made["L2 doubled"].detail == "l2_sets 1024 -> 2048"
    for name, each in made.items():
        alike = [key for key in vars(chip) if getattr(each.chip, key) == getattr(chip, key)]
        assert len(alike) == len(vars(chip)) - (0 if "threads" in name else 1), name
    mixed = changes(chip, (job, replace(job, threads=1)))
    assert mixed[0].detail == "threads of each job"
    assert "threads doubled" not in {each.name for each in changes(chip, (replace(job, threads=None),))}
    # 48 of 64 cores cannot become twice as many
    odd = {each.name: each.detail for each in changes(chip, (replace(job, threads=48),))}
    assert odd["more threads"] == "threads 48 -> 64"
    assert odd["threads halved"] == "threads 48 -> 24"
    assert "threads doubled" not in odd
    most = replace(chip, cores=chip.cores[:1] * MAX_CPU_CORES)
    large = {each.name: each for each in changes(most, ())}
    assert "cores doubled" not in large
    assert large["last-level caches doubled"].chip is None
    assert "lines together, at most 33,554,432" in large["last-level caches doubled"].refused


@pytest.mark.slow
def test_every_rate_of_lines_is_tried_and_none_is_called_twice_as_fast_that_is_not() -> None:
    for name in ("epyc-7742", "xeon-gold-5122"):
        made = {each.name: each.detail for each in changes(preset(name), ())}
        assert made["lines from last-level caches faster"].startswith("llc_cycles_per_line ")
        assert made["a core's lines from memory faster"].startswith("core_memory_cycles_per_line ")
        twice = [detail.split() for name, detail in made.items() if "twice" in name]
        assert twice
        assert all(int(old) == 2 * int(new) for _, old, _, new in twice)
    # Weights of lstm-256 on 4 threads come from L2: no other rate of the chip is worth as much.
    model = Model("m", (Layer(cell("lstm"), 256, 256),))
    jobs = (Job(name="a", model=model, steps=3, threads=4),)
    tried = [each for each in changes(preset("epyc-7742"), jobs) if "fast" in each.name]
    fastest = min(tried, key=lambda each: engines.totals(TARGET.lower(each.chip, jobs)).makespan_cycles)
    assert len(tried) > 5
    assert (fastest.name, fastest.detail) == ("lines from L2 faster", "l2_cycles_per_line 2 -> 1")
