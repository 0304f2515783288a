"""Keys of jobs by machine: one scenario for all machines."""

from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.files.scenario.written import resolved_data

CHIPS = ("column-npu-16k", "brainwave-s10", "v100", "epyc-7742", "xeon-gold-5122")
MODEL = {"name": "m", "layers": [{"cell": "lstm", "hidden": 32, "input": 32}]}


def _job(chip: Any, **keys: Any) -> Any:
    return lstmsim.load_scenario({"chip": chip, "jobs": [{"model": MODEL, "steps": 2, **keys}]}).jobs[0]


def test_one_scenario_serves_all_machines() -> None:
    keys = {"threads": {"epyc-7742": 8, "multicore": 2}, "on": {"parallel-device": {"weights": "warm"}}}
    found = {chip: (job.threads, job.weights) for chip in CHIPS for job in [_job(chip, **keys)]}
    assert found == {
        "column-npu-16k": (None, None),
        "brainwave-s10": (None, None),
        "v100": (None, "warm"),
        "epyc-7742": (8, None),
        "xeon-gold-5122": (2, None),
    }


def test_a_name_goes_before_a_kind_and_both_before_the_plain_key() -> None:
    keys = {"threads": 3, "on": {"epyc-7742": {"threads": 8}, "multicore": {"threads": 2, "weights": "warm"}}}
    assert [_job(chip, **keys).threads for chip in ("epyc-7742", "xeon-gold-5122", "v100")] == [8, 2, 3]
    assert _job("epyc-7742", **keys).weights == "warm"


def test_a_job_moves_to_other_machines_with_what_is_meant_for_them() -> None:
    keys = {"threads": 3, "on": {"epyc-7742": {"threads": 8}, "v100": {"weights": "cold"}}}
    jobs = {chip: _job(chip, **keys) for chip in CHIPS}
    for job in jobs.values():
        for chip in CHIPS:
            assert job.at(lstmsim.load_chip(chip)) == jobs[chip]


@pytest.mark.parametrize("base", ["column-npu-16k", "epyc-7742"])
def test_comparisons_take_what_is_meant_for_each_chip(base: str) -> None:
    job = {"model": MODEL, "steps": 2, "threads": {"epyc-7742": 2}}
    (other,) = {"epyc-7742", "column-npu-16k"} - {base}
    compared = lstmsim.compare({"chip": base, "jobs": [job]}, [other])
    alone = lstmsim.simulate({"chip": "epyc-7742", "jobs": [{**job, "threads": 2}]}).makespan_cycles
    found = dict(zip((each.name for each in compared.machines), compared.entries[0], strict=True))
    assert found["epyc-7742"].cycles == alone


@pytest.mark.parametrize("chip", ["column-npu-16k", "brainwave-s10", "v100"])
def test_what_a_machine_has_no_use_for_is_left_out_with_a_remark(chip: str) -> None:
    plain, given = ({"chip": chip, "jobs": [{"model": MODEL, "steps": 2, **keys}]} for keys in ({}, {"threads": 8}))
    report = lstmsim.simulate(given)
    assert report.makespan_cycles == lstmsim.simulate(plain).makespan_cycles
    assert "`threads` of jobs is left out: this machine has no such thing" in report.remarks


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"threads": {"epyc-7724": 8}}, "jobs.0.threads.epyc-7724: there is no kind of machine or chip called"),
        ({"threads": {"epyc-7724": 8}}, "did you mean 'epyc-7742'"),
        ({"on": {"multicor": {"threads": 2}}}, "did you mean 'multicore'"),
        ({"on": {"multicore": {"threds": 2}}}, "jobs.0.on.multicore.threds: there is no key of a job for one machine"),
        ({"on": {"multicore": {"steps": 2}}}, "known are threads, weights, split, cores"),
        ({"on": {"multicore": {"threads": "all"}}}, "jobs.0.on.multicore.threads: must be a whole number, got 'all'"),
        ({"on": {"multicore": 3}}, "jobs.0.on.multicore: must be a mapping of keys to values, got 3"),
        ({"on": 3}, "jobs.0.on: must be a mapping of machines to keys, got 3"),
        ({"weights": "hot"}, "jobs.0.weights: must be 'cold' or 'warm', got 'hot'"),
        ({"threads": "all"}, "jobs.0.threads: must be a whole number, got 'all'"),
    ],
)
def test_mistakes_are_mistakes_on_every_machine(keys: dict[str, Any], said: str) -> None:
    for chip in ("column-npu-16k", "epyc-7742"):
        with pytest.raises(InputError) as caught:
            _job(chip, **keys)
        assert said in str(caught.value)


def test_a_scenario_that_is_written_out_keeps_them() -> None:
    job = {"model": MODEL, "steps": 2, "threads": 3, "on": {"epyc-7742": {"threads": 8}}}
    for chip in ("epyc-7742", "v100"):
        scenario = lstmsim.load_scenario({"chip": chip, "jobs": [job]})
        again = lstmsim.load_scenario(resolved_data(scenario))
        assert again.jobs == scenario.jobs
        assert again.jobs[0].at(lstmsim.load_chip("xeon-gold-5122")).threads == 3
