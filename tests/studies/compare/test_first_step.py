"""A machine whose jobs begin with weights to load: the ratio by later steps stands beside that of the whole."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

import lstmsim
from experiments.deepbench.tables import comparison_markdown
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.machines.registry import target_of
from lstmsim.studies.compare.report import comparison_rows
from lstmsim.studies.compare.result import Comparison

NPU = {"kind": "column-npu", "name": "npu", "frequency_mhz": 260, "cores": [{"npe": 1024, "ep": 8, "vp": 128}]}
CPU = {"kind": "multicore", "name": "cpu", "frequency_mhz": 2250, "cores": [{"count": 4}]}
LSTM = {"name": "small", "layers": [{"cell": "lstm", "hidden": 16, "input": 16}]}
GRU = {
    "name": "two",
    "layers": [{"cell": "gru", "hidden": 24, "input": 24}, {"cell": "gru", "hidden": 24, "input": 24}],
}


def job(**more: Any) -> dict[str, Any]:
    return {"model": LSTM, "steps": 6, "threads": 2, **more}


def scenario(*jobs: dict[str, Any], chip: dict[str, Any] = NPU) -> dict[str, Any]:
    taken = [{key: value for key, value in each.items() if chip is CPU or key != "threads"} for each in jobs]
    return {"chip": chip, "jobs": taken}


@pytest.fixture
def cpu(tmp_path: Any) -> str:
    (tmp_path / "cpu.json").write_text(json.dumps(CPU))
    return str(tmp_path / "cpu.json")


@pytest.fixture
def npu(tmp_path: Any) -> str:
    (tmp_path / "npu.json").write_text(json.dumps(NPU))
    return str(tmp_path / "npu.json")


def flat(comparison: Comparison) -> str:
    return " ".join(comparison.to_text().split())


def cycles(chip: dict[str, Any], *jobs: dict[str, Any]) -> int:
    return lstmsim.simulate(scenario(*jobs, chip=chip)).makespan_cycles


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("jobs", [[job()], [job(), job(model=GRU, steps=3)]], ids=["one", "two"])
def test_first_and_later_steps_are_those_of_simulations(jobs: list[dict[str, Any]], engine: str, npu: str) -> None:
    compared = lstmsim.compare(scenario(*jobs, chip=CPU), npu, engine=engine)
    once = [{**each, "steps": 1} for each in jobs]
    for entry, chip in zip(compared.entries[0], (CPU, NPU), strict=True):
        assert entry.first_cycles == cycles(chip, *once)
        assert entry.later_cycles == cycles(chip, *jobs) - cycles(chip, *once)
    one, two = (entry.later_cycles for entry in compared.entries[0])
    assert one is not None
    assert two is not None
    assert compared.later_speedup(0, 1) == pytest.approx(one / 2250 / (two / 260))
    assert compared.later_speedup(0, 0) == 1


def test_the_ratio_by_later_steps_stands_at_the_verdict_of_a_faster_base(cpu: str) -> None:
    compared = lstmsim.compare(scenario(job(steps=2)), cpu)
    entry, whole, later = compared.entries[0][1], compared.speedup(0, 1), compared.later_speedup(0, 1)
    assert entry.cycles is not None
    assert entry.first_cycles is not None
    assert whole is not None
    assert later is not None
    assert later > whole
    share = f"{100 * entry.first_cycles / entry.cycles:.1f} %"
    reported = f"{share} of the cycles of cpu are its first step, which loads the weights"
    words = f"takes {whole:#.3g} times as long" if whole > 1 else f"is {1 / whole:#.3g} times as fast"
    ratio = later if whole > 1 else 1 / later
    rest = f"{ratio:#.3g} times by later steps ({reported})"
    assert compared.to_dict()["workloads"][0]["entries"][1]["first_step"] == f"npu {words}; {rest}"
    assert rest in flat(compared).partition("WHERE npu TAKES LONGER (makespan) than cpu:")[2]
    rows = {line[:22].strip(): line.split()[-2:] for line in compared.to_text().splitlines()}
    assert rows["cycles of first step"][1] == f"{entry.first_cycles:,}"
    assert rows["cycles of later steps"][1] == f"{entry.later_cycles:,}"
    assert f"speed-up by later steps 1.00 {later:#.3g}" in flat(compared)
    assert max(map(len, compared.to_text().splitlines())) <= 100


def test_the_same_where_the_base_begins_cold(npu: str) -> None:
    compared = lstmsim.compare(scenario(job(threads=1), chip=CPU), npu, each=True)
    whole, later = compared.speedup(0, 1), compared.later_speedup(0, 1)
    assert whole is not None
    assert later is not None
    words = f"{whole:.2f} times as long; " if whole > 1 else f"cpu is {1 / whole:#.3g} times as fast; "
    rest = f"{later if whole > 1 else 1 / later:#.3g} times by later steps ("
    assert words + rest in flat(compared)
    assert f"SPEED-UP BY LATER STEPS cpu npu simulated simulated small 1.00 {later:#.3g} geometric mean" in flat(
        compared
    )
    assert compared.to_dict()["machines"][1]["mean_speedup_by_later_steps"] == pytest.approx(later)
    lines = comparison_markdown(compared)
    assert f"| small | {1 / later:#.3g} |" in lines[lines.index("| task | npu |") + 5 :]
    assert any(line.startswith("* small: cpu ") and rest in line for line in lines)


def test_csv_has_the_figures(cpu: str) -> None:
    compared = lstmsim.compare(scenario(job()), cpu)
    file = io.StringIO()
    csv.writer(file).writerows(comparison_rows(compared))
    one, two = csv.DictReader(io.StringIO(file.getvalue()))
    assert (one["begins_cold"], two["begins_cold"]) == ("0", "1")
    assert two["first_step_cycles"] == str(compared.entries[0][1].first_cycles)
    assert two["later_steps_cycles"] == str(compared.entries[0][1].later_cycles)
    assert float(two["speedup_by_later_steps"]) == compared.later_speedup(0, 1)


def test_jobs_of_one_step_and_jobs_over_time_have_no_later_steps_and_say_so(cpu: str) -> None:
    one_step = lstmsim.compare(scenario(job(steps=1)), cpu)
    assert one_step.entries[0][1].first_cycles is None
    assert "no job has a second time step, so all of the time of cpu is a first step, which loads" in flat(one_step)
    late = lstmsim.compare(scenario(job(), job(arrival=90_000_000)), cpu)
    assert late.by_latency
    later = lstmsim.compare(scenario(job(), job(arrival=50)), cpu)
    assert not later.by_latency
    for over_time in (late, later):
        assert over_time.entries[0][1].first_cycles is None
        text = "later steps are not measured where jobs come over time: on cpu each job first loads its weights"
        assert text in flat(over_time)


def test_where_no_machine_begins_cold_nothing_is_said_of_first_steps() -> None:
    compared = lstmsim.compare(scenario(job()), "column-npu-16k")
    assert [entry.first_cycles for entry in compared.entries[0]] == [None, None]
    assert "step" not in compared.to_text()
    assert compared.to_dict()["workloads"][0]["entries"][1]["first_step"] == ""
    assert not any("later" in line for line in comparison_markdown(compared))


@pytest.mark.slow
@pytest.mark.halved
@pytest.mark.parametrize("l2", ["cold", "warm"])
@pytest.mark.parametrize("mode", ["kernels", "persistent"])
def test_a_machine_begins_cold_where_the_first_step_takes_longer(mode: str, l2: str) -> None:
    """A small network, which L2 holds."""
    overrides = [f"chip.recurrent={mode}", f"chip.l2_state={l2}"]
    data = [{"chip": "v100", "jobs": [{"model": LSTM, "steps": steps}]} for steps in (1, 2, 3)]
    one, two, three = (lstmsim.simulate(each, overrides=overrides).makespan_cycles for each in data)
    assert three - two == two - one
    chip = load_scenario(data[0], overrides=overrides).chip
    assert target_of(chip.kind).begins_cold(chip) == (one > two - one)


def test_a_job_without_threads_on_several_cores_hears_that_fewer_may_be_faster() -> None:
    def reported(**more: Any) -> bool:
        chip = {**CPU, "cores": [{"count": more.pop("count", 4)}]}
        loaded = load_scenario({"chip": chip, "jobs": [{"model": LSTM, "steps": 2, **more}]})
        return any("takes all cores" in text and "--explain" in text for text in loaded.remarks)

    assert reported()
    assert not reported(threads=2)
    assert not reported(count=1)


def test_the_remark_comes_too_where_another_job_of_the_model_has_threads(npu: str) -> None:
    compared = lstmsim.compare(scenario(job(), job(threads=None), chip=CPU), npu)
    assert "a job without threads takes all cores" in flat(compared)
