"""The resolved input: every key is there, and it loads again as the same scenario."""

from __future__ import annotations

import os
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lstmsim as api
from lstmsim.files.scenario.scenario_file import load_chip, load_scenario, scenario_from_document
from lstmsim.files.scenario.written import loads_again, resolved_text
from lstmsim.files.yaml.document import OnOneLine, document_of, yaml_text
from lstmsim.files.yaml.source import parse_document
from lstmsim.machines.column.npu import ColumnNpu
from lstmsim.machines.row.npu import RowNpu
from lstmsim.model.cell_rules import in_order
from lstmsim.model.cells import CELLS, cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from tests.strategies import CHARACTERS, scenarios

SCENARIOS = sorted((Path(__file__).parents[3] / "experiments/scenarios").glob("*.yaml"))
PRESETS = ("column-npu-64k", "column-npu-4x16k", "intel-npu-rtl", "brainwave-s10")


def loaded(text: str) -> Scenario:
    return scenario_from_document(document_of(parse_document(text, "resolved.yaml").data))


def assert_same(one: Scenario, other: Scenario) -> None:
    assert one == other
    # Fields that comparisons of jobs leave out.
    assert (one.name, dict(one.chip.sources)) == (other.name, dict(other.chip.sources))
    assert [job.inputs for job in one.jobs] == [job.inputs for job in other.jobs]
    assert [job.model.weights for job in one.jobs] == [job.model.weights for job in other.jobs]
    assert [layer.cell.states for job in one.jobs for layer in job.model.layers] == [
        layer.cell.states for job in other.jobs for layer in job.model.layers
    ]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_shipped_scenario_comes_back_from_a_file_and_gives_the_same_cycles(path: Path, tmp_path: Path) -> None:
    scenario = load_scenario(path)
    file = tmp_path / "resolved.yaml"
    file.write_text(resolved_text(scenario), encoding="utf-8")
    assert_same(load_scenario(file), scenario)
    assert api.simulate(file) == api.simulate(path)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_key_of_a_preset_is_written_out(preset: str) -> None:
    model = {"layers": [{"cell": "lstm", "hidden": 64, "input": 64}]}
    scenario = load_scenario({"chip": preset, "jobs": [{"model": model, "steps": 2}], "precision": {}})
    text = resolved_text(scenario)
    assert_same(loaded(text), scenario)
    data = parse_document(text, "resolved.yaml").data
    core = load_chip(preset).cores[0]
    assert {each.name for each in fields(core)} <= set(data["chip"]["cores"][0])
    assert data["chip"]["cores"][0]["latency"] == asdict(core.latency)
    whole = {"dispatch", "preempts", "affinity", "density", "numbers", "on", "batching", "session", "move_cycles"}
    assert {each.name for each in fields(Job)} - {"inputs", "after", "tenant", "initial", "states_of", *whole} <= set(
        data["jobs"][0]
    )
    assert {"dispatch", "preemption", "placement"} <= set(data)
    assert data["precision"] == asdict(scenario.precision)
    assert data["chip"]["sources"]


def test_jobs_that_begin_where_others_end_come_back() -> None:
    entry = {"model": "lstm-256", "steps": 3, "count": 3}
    jobs = [
        {**entry, "name": "enc"},
        {"model": "lstm-512", "steps": 2, "count": 2},
        {**entry, "name": "dec", "initial": "enc"},
    ]
    scenario = load_scenario({"chip": "column-npu-16k", "jobs": jobs})
    assert loads_again(scenario)
    again = loaded(resolved_text(scenario))
    assert_same(again, scenario)
    assert [job.states_of for job in again.jobs] == [None] * 5 + [0, 1, 2]


def test_where_numbers_are_from_comes_back(tmp_path: Path) -> None:
    job = {"model": "lstm-256", "steps": 2, "initial": "zero"}
    given = {"chip": "column-npu-16k", "jobs": [job], "precision": {"calibration": str(tmp_path / "c.npy")}}
    scenario = load_scenario(given)
    again = loaded(resolved_text(scenario))
    assert again.jobs[0].initial == "zero"
    assert again.calibration == {"lstm-256": str(tmp_path / "c.npy")}
    assert again.precision_given
    # Without the key outputs are in float64, so a page must not add the key.
    plain = load_scenario({"chip": "column-npu-16k", "jobs": [job]})
    assert "precision" not in resolved_text(plain)


@pytest.mark.slow
@settings(max_examples=20)
@given(scenarios())
def test_any_scenario_comes_back(scenario: Scenario) -> None:
    assert_same(loaded(resolved_text(scenario)), scenario)


def test_equal_jobs_are_one_entry_and_others_are_not() -> None:
    entry = {"model": "lstm-256", "steps": 3}
    jobs = [entry | {"count": 30, "arrival": list(range(30))}, entry | {"steps": 4}, entry | {"name": "lstm-256-b-b"}]
    scenario = load_scenario({"chip": "column-npu-16k", "jobs": jobs})
    data = parse_document(resolved_text(scenario), "resolved.yaml").data
    assert [job["count"] for job in data["jobs"]] == [30, 1, 1]
    assert_same(loaded(resolved_text(scenario)), scenario)


def test_names_that_counting_would_not_give_are_kept() -> None:
    model = Model("m", (Layer(cell("lstm"), 8, 8),))
    jobs = tuple(Job(name, model, 2) for name in ("m-b", "m-a", "m-c", "x"))
    scenario = Scenario(load_chip("column-npu-16k"), jobs)
    assert_same(loaded(resolved_text(scenario)), scenario)


def test_orders_of_dispatch_and_what_no_file_can_say() -> None:
    jobs = [{"model": "lstm-256", "steps": 3, "deadline": 700, "priority": -2, "count": 3}]
    scenario = load_scenario({"chip": "column-npu-16k", "dispatch": "edf", "jobs": jobs})
    assert loads_again(scenario)
    assert_same(loaded(resolved_text(scenario)), scenario)
    first, second, third = scenario.jobs
    assert not loads_again(replace(scenario, jobs=(first, replace(second, after=0), third)))
    assert not loads_again(replace(scenario, jobs=(first, replace(second, dispatch="sjf"), third)))


def test_cells_of_the_users_own_even_of_the_same_name() -> None:
    one = in_order(replace(CELLS["gru-lbr0"], name="mine", source='a "source"\nof two lines'))
    other = in_order(replace(CELLS["lstm-projection"], name="mine"))
    first = Model("a", (Layer(one, 8, 4),))
    second = Model("b", (Layer(other, 8, 4, projection=4),))
    chip = load_chip("column-npu-16k")
    shared = Scenario(chip, (Job("a", first, 2), Job("b", first, 3)))
    assert resolved_text(shared).count("mine:") == 1
    assert_same(loaded(resolved_text(shared)), shared)
    apart = Scenario(chip, (Job("a", first, 2), Job("b", second, 3)))
    assert resolved_text(apart).count("mine:") == 2
    assert_same(loaded(resolved_text(apart)), apart)


@pytest.mark.parametrize("frequency", [260, 260.5, 1e-6, 1e5 / 3, 1_000_000])
def test_frequencies(frequency: float) -> None:
    for kind, preset in ((ColumnNpu, "column-npu-64k"), (RowNpu, "intel-npu-rtl")):
        chip = load_chip(preset)
        assert isinstance(chip, kind)
        scenario = Scenario(
            replace(chip, frequency_mhz=frequency), (Job("a", Model("m", (Layer(cell("gru"), 8, 8),)), 2),)
        )
        assert_same(loaded(resolved_text(scenario)), scenario)


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS)
)
KEYS = st.text(CHARACTERS, max_size=8)


@pytest.mark.slow
@settings(max_examples=int(os.environ.get("LSTMSIM_EXAMPLES", "25")))
@given(
    st.dictionaries(
        KEYS,
        st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)),
        min_size=1,
        max_size=4,
    )
)
def test_plain_data_comes_back(data: dict[str, object]) -> None:
    document = parse_document(yaml_text(data), "data.yaml")
    assert not document.mistakes
    assert document.data == data


def test_halves_of_letters_are_replaced_and_odd_words_quoted() -> None:
    text = yaml_text({"a": "x\ud800", "b": OnOneLine(c="no", d=[1, "2"]), "e": "1e5", "f": "# x"})
    assert text == 'a: "x\N{REPLACEMENT CHARACTER}"\nb: {c: "no", d: [1, "2"]}\ne: "1e5"\nf: "# x"\n'
