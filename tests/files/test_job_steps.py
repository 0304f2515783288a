"""`steps` of a job entry: what each kind draws, that nothing else changes it, and a sentence for every mistake."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.request_schema import MAX_LENGTHS
from lstmsim.files.scenario.requests import load_requests, rate_overrides, rates_of
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.files.scenario.written import resolved_text
from lstmsim.files.yaml.source import parse_document
from lstmsim.machines import assembly as sizes
from lstmsim.machines.registry import target_of
from lstmsim.traffic.lengths import Geometric, Uniform, Weighted, drawn_lengths

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
MODEL = {"layers": [{"cell": "rnn", "hidden": 16, "input": 16}]}
UNIFORM = {"kind": "uniform", "low": 10, "high": 50}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def entry(steps: Any, count: int = 6, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "steps": steps, "count": count, **more}


def steps_of(*jobs: Mapping[str, Any], chip: Any = CHIP, overrides: tuple[str, ...] = ()) -> list[int]:
    return [job.steps for job in load_scenario({"chip": chip, "jobs": list(jobs)}, overrides).jobs]


def expected(lengths: Any, count: int = 6, name: str = "model-rnn-16", occurrence: int = 0, seed: int = 0) -> list[int]:
    return list(islice(drawn_lengths(lengths, (seed, name, occurrence, "steps")), count))


def test_each_kind_draws_what_it_says() -> None:
    assert steps_of(entry([3, 1, 2], 3)) == [3, 1, 2]
    assert steps_of(entry(UNIFORM)) == expected(Uniform(10, 50))
    assert steps_of(entry({"kind": "geometric", "mean": 20, "most": 200})) == expected(Geometric(20, 200))
    listed = {"kind": "list", "values": [10, 20, 40], "weights": [3, 2, 1], "seed": 4}
    assert steps_of(entry(listed)) == expected(Weighted((10, 20, 40), (3, 2, 1)), seed=4)
    Path("lengths.csv").write_text("words,tokens\na,7\nb,0\n\nc,40\n")
    column = {"kind": "empirical", "path": "lengths.csv", "column": "tokens", "per_step": 4}
    assert steps_of(entry(column)) == expected(Weighted((2, 1, 10)))


def test_nothing_else_changes_what_is_drawn() -> None:
    one = entry(UNIFORM, arrival={"kind": "poisson", "rate_per_second": 1e5})
    drawn = steps_of(one)
    assert drawn == steps_of({**one, "count": 9})[:6]
    assert drawn == steps_of({**one, "arrival": {"kind": "poisson", "rate_per_second": 1e3}})
    assert drawn == steps_of(entry(7, name="other"), one)[6:]
    assert drawn == steps_of(one, chip="column-npu-16k")
    assert drawn == steps_of({**one, "model": {**MODEL, "name": "model-rnn-16"}, "priority": 3})
    assert drawn == steps_of(one, overrides=("dispatch=sjf",))
    assert drawn != steps_of({**one, "steps": {**UNIFORM, "seed": 1}})
    assert drawn != steps_of({**one, "name": "other"})
    both = steps_of(one, one)
    assert both[:6] == drawn
    assert both[6:] == expected(Uniform(10, 50), occurrence=1)


def test_values_of_steps_can_be_changed() -> None:
    assert steps_of(entry(UNIFORM), overrides=("jobs.0.steps=50",)) == [50] * 6
    assert steps_of(entry(UNIFORM), overrides=("jobs.0.steps.high=80",)) == expected(Uniform(10, 80))
    assert steps_of(entry(5), overrides=("jobs.0.steps={kind: uniform, low: 10, high: 50}",)) == expected(
        Uniform(10, 50)
    )


def test_streams_of_requests_have_the_same_steps() -> None:
    jobs = [
        entry(UNIFORM, arrival={"kind": "fixed", "interval_cycles": 50}),
        entry([4, 5, 6], 3, arrival=[90, 0, 30], name="listed"),
        entry(9, 1, name="plain"),
    ]
    data = {"chip": CHIP, "jobs": jobs}
    requests = load_requests(data)
    templates = requests.scenario.jobs
    assert [job.steps for job in templates] == [*range(10, 51), 4, 5, 6, 9]
    coming = sorted(
        (arrival, templates[template].name, templates[template].steps)
        for batch in requests.coming
        for arrival, template in zip(batch.arrival.tolist(), batch.template.tolist(), strict=True)
    )
    assert coming == sorted(
        (job.arrival, "model-rnn-16" if job.name.startswith("model") else job.name.partition(" #")[0], job.steps)
        for job in load_scenario(data).jobs
    )
    # a list begins again where more are asked for
    again = load_requests({"chip": CHIP, "jobs": [{**jobs[1], "arrival": jobs[0]["arrival"]}]}, requests=7)
    assert [again.scenario.jobs[template].steps for batch in again.coming for template in batch.template] == [
        4,
        5,
        6,
        4,
        5,
        6,
        4,
    ]


def test_a_resolved_scenario_has_them_one_by_one() -> None:
    data = {"chip": CHIP, "jobs": [entry(UNIFORM, arrival=[0, 1, 2, 3, 4, 5]), entry(3, 2)]}
    scenario = load_scenario(data)
    resolved = parse_document(resolved_text(scenario), "resolved.yaml").data
    assert resolved["jobs"][0]["steps"] == steps_of(data["jobs"][0])
    assert [job["count"] for job in resolved["jobs"]] == [6, 2]
    assert load_scenario(resolved).jobs == scenario.jobs


def test_rates_change_beside_drawn_steps() -> None:
    data = {"chip": CHIP, "jobs": [entry(UNIFORM, arrival={"kind": "poisson", "rate_per_second": 1e5})]}
    faster = rate_overrides(rates_of(data), 1e6)
    assert [job.steps for job in load_scenario(data, faster).jobs] == steps_of(data["jobs"][0])


def test_sizes_count_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    job = entry({"kind": "list", "values": [1, 8], "weights": [99, 1]}, 20)
    scenario = load_scenario({"chip": CHIP, "jobs": [job]})
    step = target_of("column-npu").per_step(scenario.chip.cores, scenario.jobs[0].model).most
    most = step * sum(each.steps for each in scenario.jobs)
    assert most < step * 20 * 8
    monkeypatch.setattr(sizes, "MAX_OPERATIONS", most)
    steps_of(job)
    with pytest.raises(InputError, match=r"jobs\.1\.count: this job and those before it take up to"):
        steps_of(job, {"model": {**MODEL, "steps": 1}, "count": 1})
    with pytest.raises(InputError, match=r"jobs\.0\.steps: this job and those before it take up to"):
        steps_of(entry(8, 20))
    monkeypatch.setattr(sizes, "MAX_OPERATIONS", step * 7)
    with pytest.raises(InputError, match=rf"jobs\.0\.steps: takes up to {step * 8:,} .* a job may have {step * 7:,}"):
        steps_of(job)


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ("many", "jobs.0.steps: must be a whole number, got 'many'"),
        (0, "jobs.0.steps: must be at least 1, got 0"),
        ([], "jobs.0.steps: must be a list of at least 1 entry, got 0"),
        ([1, 2], r"jobs.0.steps: must hold as many numbers as there are jobs \(6\), got 2; \{kind: list"),
        ([1, 2, 3, 4, 5, 0], "jobs.0.steps.5: must be at least 1, got 0"),
        ({}, r"jobs.0.steps.kind: required key is missing \(how the steps are chosen, for example uniform\)"),
        ({"kind": "uniforn"}, "jobs.0.steps.kind: must be .* did you mean 'uniform'"),
        ({"kind": "uniform", "low": 1}, "jobs.0.steps.high: required key is missing for uniform"),
        ({"kind": "uniform", "low": 5, "high": 4}, r"jobs.0.steps.high: must be at least low \(5\), got 4"),
        ({"kind": "uniform", "low": 1, "high": 1.5}, "jobs.0.steps.high: must be a whole number, got 1.5"),
        ({**UNIFORM, "mean": 3}, "jobs.0.steps.mean: is no key of uniform; its keys: low, high and seed"),
        ({**UNIFORM, "lo": 3}, "jobs.0.steps.lo: unknown key; did you mean 'low'"),
        ({"kind": "geometric", "mean": 0.5, "most": 9}, "jobs.0.steps.mean: must be at least 1"),
        ({"kind": "geometric", "mean": 5}, "jobs.0.steps.most: required key is missing for geometric"),
        ({"kind": "list", "values": [1, 2], "weights": [1]}, "jobs.0.steps.weights: must hold as many numbers as val"),
        ({"kind": "list", "values": [1, 2], "weights": [0, 0]}, "jobs.0.steps.weights: must not all be 0"),
        ({"kind": "list", "values": []}, "jobs.0.steps.values: must be a list of at least 1 entry, got 0"),
        ({"kind": "uniform", "low": 1, "high": 10**9}, "jobs.0.steps: may be 1,000,000,000 different numbers"),
        ({"kind": "column"}, "jobs.0.steps.kind: column takes the steps from the rows of a file of arrivals"),
        ({"kind": "empirical", "path": "no.csv"}, "jobs.0.steps.path: no.csv: no such file or folder"),
        ({"kind": "empirical", "path": "no.yaml"}, "jobs.0.steps.path: must be the path of a file that ends in"),
        ({"kind": "empirical", "path": "l.csv"}, r"l\.csv:1: has no column 'steps'; did you mean 'step'"),
        ({"kind": "empirical", "path": "l.csv", "column": "step"}, r"l\.csv:3: step: must be a number .* got 'b'"),
        ({"kind": "empirical", "path": "l.csv", "column": ["k", "k2"]}, r"l\.csv:1: has no column 'k2'"),
        ({"kind": "empirical", "path": "l.csv", "column": 3}, "jobs.0.steps.column: must be text, got 3"),
        ({"kind": "empirical", "path": "l.csv", "per_step": 0}, "jobs.0.steps.per_step: must be greater than 0, got 0"),
    ],
)
def test_mistakes_are_sentences(steps: Any, sentence: str) -> None:
    Path("l.csv").write_text("step,k\n5,1\nb,2\n")
    with pytest.raises(InputError, match=sentence) as error:
        steps_of(entry(steps), entry(5, 0))
    # another mistake beside it is found as well
    assert "jobs.1.count: must be at least 1" in str(error.value)


def test_different_numbers_count_over_all_entries() -> None:
    wide = {"kind": "uniform", "low": 1, "high": MAX_LENGTHS // 2}
    other = {"kind": "uniform", "low": MAX_LENGTHS // 2 + 1, "high": MAX_LENGTHS}
    assert len(steps_of(entry(wide), entry(other), entry(wide), entry(MAX_LENGTHS))) > 12
    with pytest.raises(
        InputError, match=r"^jobs\.2\.steps: may be 4,097 different numbers, with those of the jobs bef"
    ):
        steps_of(entry(wide), entry(other), entry(MAX_LENGTHS + 1))
