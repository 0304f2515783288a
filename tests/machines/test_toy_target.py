"""A machine that is added by its folder and a line in the registry is whole: everything that asks machines asks it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.text import Text

import lstmsim
from lstmsim import engines, machines
from lstmsim.analysis.explanations.text import glossary
from lstmsim.analysis.files import READABLE, load_trace
from lstmsim.analysis.report_text import report_json, report_text
from lstmsim.base.errors import InputError, ProgramError, ReplayError
from lstmsim.machines import registry
from lstmsim.model.cells import cell
from lstmsim.model.figures import MainUnit
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.program import Unit
from lstmsim.program.trace import ISSUES
from lstmsim.program.unit_names import is_unit
from lstmsim.studies.fit.needs import hardware_of
from lstmsim.studies.serve import offered
from lstmsim.studies.simulate.picture import plot
from lstmsim.studies.simulate.run import check_numerics, explain, run
from lstmsim.studies.sweep.resolve import Resolver, every_core_key, quick_path
from lstmsim.studies.sweep.run import prepare
from tests.timelines import assert_equal
from tests.toy_target import lowering
from tests.toy_target.cpu import ToyChip, ToyCore

MODELS = [
    Model("lstm", (Layer(cell("lstm"), 6, 4),)),
    Model("both", (Layer(cell("gru"), 5, 3, bidirectional=True), Layer(cell("rnn"), 4, 10))),
    Model("stages", (Layer(cell("lstm-projection"), 6, 4, projection=3), Layer(cell("lstm-layernorm"), 5, 3))),
]


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.KINDS, "toy-cpu", "tests.toy_target.target")
    _forget()
    yield
    _forget()


def _forget() -> None:
    """Forget what was asked of all machines while the toy was one of them, or was none."""
    for asked in (registry.target_of, quick_path, every_core_key, offered._load):
        asked.cache_clear()


def scenario(*models: Model, cores: tuple[ToyCore, ...] = (ToyCore(lanes=4),)) -> Scenario:
    jobs = tuple(Job(model.name, model, steps=3, arrival=7 * number) for number, model in enumerate(models))
    return Scenario(ToyChip("toy", 1000, cores), jobs)


def test_cycles_by_hand() -> None:
    report = lstmsim.simulate(scenario(MODELS[0]))
    # 4 gates x 6 units x 10 elements on 4 lanes; 5 activations, 3 products, 1 sum and 1 rounding of 6 units, 2 cycles
    # each; each of the two waits 3 cycles for the other's results
    products, nodes = 4 * 6 * 10 // 4, 10 * 6 * 2
    assert report.makespan_cycles == 3 * (products + 3 + nodes + 3)
    core = report.cores[0]
    assert dict(core.cycles) == dict.fromkeys(core.cycles, 0) | {
        "busy": 3 * (products + nodes),
        "hazard": 5 * 3,
        "drain": 3,
    }
    assert core.pe_cycles["padding"] == 4 * 3 * nodes
    assert report.utilization == core.macs / (4 * report.makespan_cycles)


def test_both_engines_agree() -> None:
    asked = scenario(*MODELS, cores=(ToyCore(lanes=4), ToyCore(lanes=2, operation_cycles=1)))
    program = machines.lower(asked.chip, asked.jobs)
    one, other = engines.run(program, "fast"), engines.run(program, "reference")
    assert one.issues.tolist() == other.issues.tolist()
    assert one.tasks.tolist() == other.tasks.tolist()


def test_its_report_shows_its_own_columns_and_words() -> None:
    report = lstmsim.simulate(scenario(MODELS[0]))
    text = report_text(report)
    assert "core  lanes  useful" in text
    assert "the pipeline does something else than multiply" in text
    assert "npe" not in text
    assert report_json(report)["cores"][0]["lanes"] == 4


@pytest.mark.parametrize("model", MODELS, ids=[each.name for each in MODELS])
def test_its_traces_are_executed_on_real_numbers(model: Model) -> None:
    (checked,) = check_numerics(run(scenario(model)), random_weights=1)
    assert checked.values


def test_a_trace_that_reads_too_early_is_refused() -> None:
    result = run(scenario(MODELS[0]))
    result.trace.issues[3, ISSUES.place("start")] -= 1
    with pytest.raises(ReplayError, match="it is there only from cycle"):
        check_numerics(result, random_weights=1)


def test_it_is_explained_and_its_changes_are_simulated() -> None:
    explanation = explain(run(scenario(MODELS[0])))
    assert sum(share.cycles for share in explanation.shares) == explanation.makespan_cycles
    best = explanation.what_if.best
    assert best is not None
    assert (best.name, best.detail) == ("lanes doubled", "lanes 4 -> 8")
    assert {share.name for share in explanation.shares} == {"alu busy", "alu pipeline"}
    assert "the core adds, rounds and so on" in glossary(explanation.to_text(), explanation.words)
    assert "npe" not in explanation.to_text()


FILE: dict[str, Any] = {
    "chip": {"kind": "toy-cpu", "frequency_mhz": 1000, "cores": [{"lanes": 4, "count": 2}]},
    "jobs": [{"model": {"layers": [{"cell": "lstm", "hidden": 6, "input": 4}]}, "steps": 3, "count": 2}],
}


def test_it_is_read_from_a_file_by_the_keys_of_its_description() -> None:
    assert lstmsim.simulate(FILE).makespan_cycles == lstmsim.simulate(scenario(MODELS[0])).makespan_cycles
    wrong = {**FILE, "chip": {**FILE["chip"], "cores": [{"lanes": 65, "latency": 1}]}}
    with pytest.raises(InputError) as caught:
        lstmsim.simulate(wrong)
    text = str(caught.value)
    assert "lanes: must be at most 64, got 65" in text
    assert "latency: unknown key; did you mean 'latency_cycles'?" in text


def test_it_is_swept(tmp_path: Path) -> None:
    spec = {
        "scenario": FILE,
        "axes": {
            "lanes": {"path": "chip.cores.0.lanes", "from": 1, "to": 8, "factor": 2},
            "latency": {"path": "chip.cores.0.latency_cycles", "values": [0, 3]},
        },
    }
    result = lstmsim.sweep(spec, tmp_path, jobs=1)
    assert result.progress.done == 8
    with (tmp_path / "sweep.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    points = {(row["lanes"], row["latency"]): int(row["makespan_cycles"]) for row in rows}
    for (lanes, latency), cycles in points.items():
        path = f"chip.cores.0.lanes={lanes}", f"chip.cores.0.latency_cycles={latency}"
        assert lstmsim.simulate(FILE, overrides=path).makespan_cycles == cycles
    assert len(set(points.values())) == 8
    # the axis has the name of what the machine counts, so that the column has another one; no toy has tails
    assert {(int(row["lanes"]) * 2, row["tail_width"]) for row in rows} == {
        (int(row["chip_lanes"]), "") for row in rows
    }


CACHE = "chip.cores.0.cache"


def test_a_part_that_a_file_leaves_out_is_reached_from_outside() -> None:
    slow = lstmsim.simulate(FILE, overrides=[f"{CACHE}.miss_cycles=40"]).makespan_cycles
    # 3 steps, whose products wait for half of it: that much is hidden by default
    assert slow == lstmsim.simulate(FILE).makespan_cycles + 3 * 20
    with pytest.raises(InputError, match=r"cache\.mis_cycles=40: unknown key; did you mean 'miss_cycles'"):
        lstmsim.simulate(FILE, overrides=[f"{CACHE}.mis_cycles=40"])
    with pytest.raises(InputError, match=r"'chip\.cores\.0' has no key 'cach'; did you mean 'cache'"):
        lstmsim.simulate(FILE, overrides=["chip.cores.0.cach.miss_cycles=40"])
    with pytest.raises(InputError, match=r"latency\.read=1: unknown key; did you mean 'latency_cycles'"):
        lstmsim.simulate(FILE, overrides=["chip.cores.0.latency.read=1"])


def test_keys_of_its_parts_are_swept_whatever_their_type(tmp_path: Path) -> None:
    spec = {
        "scenario": FILE,
        "axes": {
            "miss": {"path": f"{CACHE}.miss_cycles", "values": [0, 40]},
            "hidden": {"path": f"{CACHE}.hidden", "values": [0.25, 0.5, 0.95]},
            "warm": {"path": f"{CACHE}.warm", "values": [False, True]},
        },
    }
    lstmsim.sweep(spec, tmp_path, jobs=1)
    with (tmp_path / "sweep.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    base = lstmsim.simulate(FILE).makespan_cycles
    for row in rows:
        if row["hidden"] == "0.95":
            assert row["status"] == "infeasible"
            assert "must be at most 0.9, got 0.95" in row["reason"]
            continue
        noticed = 0 if row["warm"] == "true" else round(int(row["miss"]) * (1 - float(row["hidden"])))
        assert int(row["makespan_cycles"]) == base + 3 * noticed
        assert row["lanes"] == "8"
    assert len(rows) == 12


@pytest.mark.parametrize(
    ("key", "value", "quick"),
    [
        ("miss_cycles", 40, True),
        ("miss_cycles", 40.0, False),
        ("miss_cycles", True, False),
        ("hidden", 0.25, True),
        ("hidden", 0.05, False),
        ("hidden", 0.95, False),
        ("hidden", float("nan"), False),
        ("hidden", 0, False),
        ("warm", True, False),
    ],
)
def test_numbers_within_their_bounds_need_no_reading(key: str, value: Any, *, quick: bool) -> None:
    """Bounds of a number with a fraction stay what they are; a truth value is no number."""
    axes = {"a": {"path": f"{CACHE}.{key}", "values": [0]}}
    setup = prepare({"scenario": FILE, "axes": axes})
    prepared = Resolver(setup)._prepare(())
    assert prepared is not None
    path = f"{CACHE}.{key}"
    if not quick_path(path):
        assert not quick
        return
    scenario = prepared.scenario([(path, value)])
    assert (scenario is not None) is quick
    if scenario is not None:
        assert getattr(scenario.chip.cores[0].cache, key) == value


@pytest.mark.parametrize("kind", [*registry.KINDS, "toy-cpu"])
def test_what_a_machine_counts_has_a_column(kind: str) -> None:
    preset = {
        "column-npu": "column-npu-64k",
        "row-npu": "brainwave-s10",
        "parallel-device": "v100",
        "multicore": "epyc-7742",
        "edgedrnn": "edgedrnn-8",
    }
    chip = scenario(MODELS[0]).chip if kind == "toy-cpu" else lstmsim.load_chip(preset[kind])
    target = registry.target_of(kind)
    assert chip.kind == kind
    assert {*target.chip_counts(chip)} == {*target.counts}


@pytest.mark.parametrize("suffix", READABLE)
def test_units_of_any_name_within_the_rule_are_read_back(tmp_path: Path, suffix: str) -> None:
    timeline = run(FILE).timeline
    assert [row.kind for row in timeline.rows if is_unit(row.kind)] == ["l1_store"] * 2
    lstmsim.save_trace(timeline, tmp_path / f"trace{suffix}")
    assert_equal(lstmsim.load_trace(tmp_path / f"trace{suffix}"), timeline)


@pytest.mark.parametrize("name", ["ALU0", "thread", "array", "memory", "a b", "", "1st", "a" * 31, "é", "alu"])
def test_units_of_other_names_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(lowering, "UNITS", (Unit("alu", "fifo"), Unit(name, "fifo")))
    asked = scenario(MODELS[0])
    why = "two units are called 'alu'" if name == "alu" else f"no unit can be called {name!r}"
    engines.run(machines.lower(asked.chip, asked.jobs))
    result = run(asked)
    with pytest.raises(ProgramError, match=f"core 0: {why}"):
        _ = result.timeline


def test_its_page_is_written_and_says_that_nobody_can_tell_whether_it_fits(tmp_path: Path) -> None:
    lstmsim.save_report(run(FILE), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "a toy processor at 1000 MHz" in text
    assert "has no parts that could be counted: it is not known which devices it fits" in text


@pytest.mark.slow
def test_it_is_compared_served_and_drawn(tmp_path: Path) -> None:
    comparison = lstmsim.compare(FILE, ["column-npu-16k"])
    assert [machine.name for machine in comparison.machines] == ["toy-cpu", "column-npu-16k"]
    result = run(FILE)
    lstmsim.save_trace(result.timeline, tmp_path / "trace.vcd")
    lstmsim.plot(result.timeline, tmp_path / "timeline.svg")
    assert lstmsim.serving(result).little.difference == 0


#: Words of machines with an array of multipliers. `dasharray` in pictures is none of them.
OTHERS_WORDS = re.compile(
    r"(?<![a-zA-Z])(?:[Aa]rrays?|ARRAYS?|PEs?)(?![a-zA-Z])|accumulator|row block|\bbanks?\b|\btiles?\b"
)
#: Two cores, and jobs that come over time, so that an explanation says what held the slowest up.
OVER_TIME = {**FILE, "jobs": [{**FILE["jobs"][0], "count": 30, "arrival": {"kind": "fixed", "interval_cycles": 250}}]}
OFFERED = {**FILE, "jobs": [{**FILE["jobs"][0], "arrival": {"kind": "poisson", "rate_per_second": 1e6, "seed": 1}}]}


def texts(folder: Path) -> dict[str, str]:
    """Whatever people read of the machine, by what it is."""
    result = run(OVER_TIME)
    explanation = explain(result)
    chip = folder / "chip.json"
    chip.write_text(json.dumps(FILE["chip"]), encoding="utf-8")
    outputs = {
        "report": report_text(result.report),
        "notebook": result.report._repr_html_(),
        "explanation": explanation.to_text(),
        "glossary": glossary(f"{report_text(result.report)}\n{explanation.to_text()}", explanation.words),
        "serving": lstmsim.serving(result).to_text(),
        "serve": lstmsim.serve(OFFERED, requests=200).to_text(),
        "saturate": lstmsim.saturate(OFFERED, bound_ms=0.01, tolerance=0.2, most_requests=500).to_text(),
        "compare": lstmsim.compare(FILE, [chip]).to_text(),
        "compare over time": lstmsim.compare(OVER_TIME, [chip]).to_text(),
        "picture": "\n".join(each.get_text() for each in plot(result.timeline).findobj(Text)),
    }
    lstmsim.save_report(result, folder / "page.html", serving=lstmsim.serving(result))
    for name in ("trace.csv", "trace.json", "trace.vcd", "trace.kanata"):
        lstmsim.save_trace(result.timeline, folder / name)
    files = {each.name: each.read_text(encoding="utf-8") for each in sorted(folder.iterdir())}
    # scripts are read by nobody; the data that they show stay
    files["page.html"] = re.sub('<script type="module">.*?</script>', "", files["page.html"], flags=re.DOTALL)
    return outputs | files


@pytest.mark.slow
def test_no_output_has_a_word_of_machines_with_an_array(tmp_path: Path) -> None:
    outputs = texts(tmp_path)
    for name, text in outputs.items():
        assert len(text) > 70, name
        assert not OTHERS_WORDS.search(text), (name, OTHERS_WORDS.findall(text))
    for name in ("explanation", "picture", "page.html", "trace.csv", "trace.json", "trace.vcd", "trace.kanata"):
        assert "alu" in outputs[name], name
    assert "where the lane-cycles of all cores went" in outputs["report"]
    assert "what the alu did" in outputs["page.html"]
    assert "ALUs" in outputs["serve"]
    assert "ALUs" in outputs["saturate"]
    assert "TOPS per 1000 lanes" in outputs["compare"]
    assert "the pipeline of a core, which multiplies" in outputs["glossary"]
    assert "the pipeline computes" in outputs["explanation"]


def test_a_trace_with_its_main_unit_is_read_again(tmp_path: Path) -> None:
    timeline = run(FILE).timeline
    lstmsim.save_trace(timeline, tmp_path / "trace.csv")
    again = load_trace(tmp_path / "trace.csv")
    assert again.rows == timeline.rows
    assert [row.name for row in again.rows][:2] == ["core 0 alu", "core 0 thread 0"]
    text = (tmp_path / "trace.csv").read_text(encoding="utf-8")
    assert '# main_unit: "alu"\n' in text
    (tmp_path / "wrong.csv").write_text(text.replace('# main_unit: "alu"', '# main_unit: "A 1"'), encoding="utf-8")
    with pytest.raises(InputError, match="main_unit: expected a unit's name, got 'A 1'"):
        load_trace(tmp_path / "wrong.csv")


def test_a_main_unit_has_a_name_that_traces_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.toy_target.cpu.UNIT", MainUnit("ALU 0"))
    with pytest.raises(ProgramError, match="no main unit can be called 'ALU 0'"):
        _ = run(FILE).timeline


@pytest.mark.slow
def test_a_machine_that_names_nothing_has_a_unit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.toy_target.cpu.UNIT", MainUnit())
    monkeypatch.setattr("tests.toy_target.cpu.WORDS", {})
    for name, text in texts(tmp_path).items():
        assert not OTHERS_WORDS.search(text), (name, OTHERS_WORDS.findall(text))
    assert run(FILE).timeline.rows[0].name == "core 0 unit"


def test_a_comparison_of_unlike_machines_says_multipliers() -> None:
    text = lstmsim.compare(FILE, ["column-npu-16k"]).to_text()
    assert "TOPS per 1000 multipliers" in text
    assert not re.search(r"\bPEs?\b", text)


def test_it_says_what_it_cannot_do() -> None:
    asked = scenario(MODELS[0])
    with pytest.raises(InputError, match="a chip of kind 'toy-cpu' has no parts that could be counted"):
        hardware_of(asked.chip)
    with pytest.raises(InputError, match="no parts that could be counted"):
        lstmsim.fit(asked)
    job = FILE["jobs"][0]
    with pytest.raises(InputError, match="batch: a toy processor runs no batches: leave it out"):
        lstmsim.simulate({**FILE, "jobs": [{**job, "batch": 3}]})
    with pytest.raises(InputError, match="split: a toy processor runs a job on one core: leave it out"):
        lstmsim.simulate({**FILE, "jobs": [{**job, "split": "rows", "cores": [0, 1]}]})
    with pytest.raises(InputError, match="job lstm: batch: a toy processor runs no batches"):
        lstmsim.simulate(replace(asked, jobs=(replace(asked.jobs[0], batch=2),)))
    with pytest.raises(InputError, match="job lstm: split: a toy processor runs a job on one core"):
        lstmsim.simulate(replace(asked, jobs=(replace(asked.jobs[0], split="rows"),)))
    with pytest.raises(InputError, match="is of kind 'toy-cpu', which has no EP and VP; expected a column-npu"):
        lstmsim.search(asked, 64)
