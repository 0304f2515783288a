"""Cells of the user's own in scenario and model files: what they mean, and what is said of their mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.models import node_of
from lstmsim.files.scenario.scenario_file import load_model, load_scenario
from lstmsim.model.cell import Cell
from lstmsim.model.cell_rules import in_order
from lstmsim.model.cells import CELLS

HEAD = """\
chip: column-npu-64k
cells:
  my-gru:
    source: reset gate before the product
    stages:
      - gates: {r: [x, h], z: [x, h]}
      - gates: {n: [x, rh]}
        rows: hidden
    nodes:
      rt: sigmoid r
      zt: sigmoid z
      rs: multiply rt s
      rh: quantize rs
      nt: tanh n
      hn: subtract s nt
      zh: multiply zt hn
      hf: add nt zh
      h': quantize hf
    states: {h: h', s: hf}
"""
JOBS = """\
jobs:
  - model: {layers: [{cell: my-gru, hidden: 8, input: 4}]}
    steps: 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reported(folder: Path, text: str, *overrides: str) -> list[str]:
    (folder / "s.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_scenario("s.yaml", overrides)
    return str(caught.value).splitlines()


def laid_out(cell: Cell) -> dict[str, Any]:
    """A cell as it stands in a file."""
    gates = [
        {
            gate.name: list(gate.vectors)
            if [each.name for each in gate.sums] == [gate.name]
            else {each.name: list(each.vectors) for each in gate.sums}
            for gate in stage.gates
        }
        for stage in cell.stages
    ]
    return {
        "source": cell.source,
        "stages": [{"gates": each, "rows": stage.rows} for each, stage in zip(gates, cell.stages, strict=True)],
        "nodes": {node.name: " ".join(map(str, (node.operation, *node.inputs))) for node in cell.nodes},
        "states": dict(cell.states),
        "parameters": list(cell.parameters),
    }


@pytest.mark.parametrize("name", CELLS)
def test_built_in_cells_survive_a_file(name: str) -> None:
    own = replace(CELLS[name], name="own")
    layer = {"cell": "own", "hidden": 8, "input": 4, **({"projection": 3} if own.projected else {})}
    data = {"chip": "column-npu-64k", "cells": {"own": laid_out(own)}, "jobs": [{"model": {"layers": [layer]}}]}
    (job,) = load_scenario(data, ["jobs.0.steps=1"]).jobs
    assert job.model.layers[0].cell == in_order(own)
    assert job.model.layers[0].projection == (3 if own.projected else None)


def test_a_scenario_uses_its_own_cell(folder: Path) -> None:
    (folder / "s.yaml").write_text(HEAD + JOBS)
    cell = load_scenario("s.yaml").jobs[0].model.layers[0].cell
    assert (cell.name, cell.source) == ("my-gru", "reset gate before the product")
    assert cell.stages == CELLS["gru-lbr0"].stages
    assert set(cell.nodes) == set(CELLS["gru-lbr0"].nodes)
    changed = load_scenario("s.yaml", ["cells.my-gru.nodes.nt=relu n"]).jobs[0].model.layers[0].cell
    assert (changed.node("nt").operation, cell.node("nt").operation) == ("relu", "tanh")


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("add 1 r", (1.0, "r")),
        ("add -.5e-3 +2.", (-0.0005, 2.0)),
        ("add  nan\tinf ", ("nan", "inf")),
        ("add 1_0 -inf", ("1_0", "-inf")),
        ("mean", ()),
    ],
)
def test_words_that_are_numbers(text: str, inputs: tuple[str | float, ...]) -> None:
    assert node_of("a", text).inputs == inputs


def model_text(operation: str, **more: Any) -> str:
    cell = {"stages": [{"gates": {"a": ["x", "h"]}}], "nodes": {"t": f"{operation} a", "h'": "quantize t"}}
    model = {"cells": {"own": {**cell, "states": {"h": "h'"}}}, "layers": [{"cell": "own", "hidden": 8, "input": 8}]}
    return json.dumps({**model, "steps": 1, **more})


def test_each_model_uses_the_cells_of_its_own_file(folder: Path) -> None:
    (folder / "one.yaml").write_text(model_text("tanh"))
    (folder / "two.yaml").write_text(model_text("relu"))
    inline = {"model": {"layers": [{"cell": "own", "hidden": 8, "input": 8}]}, "steps": 1}
    cells = json.loads(model_text("sigmoid"))["cells"]
    source = {"chip": "column-npu-64k", "cells": cells, "jobs": [{"model": "one.yaml"}, {"model": "two.yaml"}, inline]}

    def operations(*overrides: str) -> list[str]:
        jobs = load_scenario(source, overrides).jobs
        return [job.model.layers[0].cell.node("t").operation for job in jobs]

    assert operations() == ["tanh", "relu", "sigmoid"]
    assert operations("jobs.1.model.cells.own.nodes.t=exp a") == ["tanh", "exp", "sigmoid"]
    assert load_model("two.yaml").layers[0].cell.node("t").operation == "relu"


def test_a_model_file_without_its_cell_is_no_model(folder: Path) -> None:
    (folder / "m.yaml").write_text("layers:\n  - {cell: own, hidden: 8, input: 8}\n")
    with pytest.raises(InputError, match=r"m\.yaml:2:12: layers\.0\.cell: no cell called 'own'; there are: lstm"):
        load_model("m.yaml")


def test_mistakes_of_cells_have_their_lines(folder: Path) -> None:
    text = HEAD.replace("sigmoid r\n", "sigmoit r\n").replace("[x, rh]", "[x, rhh]").replace("s: hf", "s: hff")
    text = text.replace("add nt zh", "add nt zh 2").replace("subtract s nt", "subtract s nu") + "precise: 1\n" + JOBS
    assert reported(folder, text) == [
        "s.yaml:7:20: cells.my-gru.stages.1.gates.n: 'rhh' is no vector; did you mean 'rh'?",
        "s.yaml:10:11: cells.my-gru.nodes.rt: unknown operation 'sigmoit'; did you mean 'sigmoid'?",
        "s.yaml:15:11: cells.my-gru.nodes.hn: unknown input 'nu'; did you mean 'n'?",
        "s.yaml:17:11: cells.my-gru.nodes.hf: add takes 2 inputs, got 3",
        "s.yaml:19:24: cells.my-gru.states.s: must name the node that gives its next value, got 'hff'; "
        "did you mean 'hf'?",
        "s.yaml:20:1: precise: unknown key; did you mean 'precision'?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("my-gru:\n", "gru:\n", "3:3: cells.gru: 'gru' is a built-in cell, take another name"),
        ("rt: sigmoid r", "rt: sigmoid", "10:11: cells.my-gru.nodes.rt: sigmoid takes 1 input, got 0"),
        ("rt: sigmoid r", "rt: 5", "10:11: cells.my-gru.nodes.rt: must be text, got 5"),
        ("rt: sigmoid r", "rt: ''", "10:11: cells.my-gru.nodes.rt: must be an operation and its inputs, for example"),
        ("rt: sigmoid r", "rt: [sigmoid, r]", "10:11: cells.my-gru.nodes.rt: must be text, got a list"),
        ("rt: sigmoid r", "rt: multiply r rs", "10:11: cells.my-gru.nodes.rt: reads itself by rt -> rs -> rt"),
        ("rt: sigmoid r", "rt: multiply r hn", "7:20: cells.my-gru.stages.1.gates.n: reads 'rh', which is known"),
        ("rt: sigmoid r", "a.b: sigmoid r", "10:12: cells.my-gru.nodes.'a.b': 'a.b' is no name"),
        ("hf: add nt zh", "rt: add nt zh", "17:7: cells.my-gru.nodes.rt: duplicate key, first given on line 10"),
        ("rows: hidden", "rows: hiden", "8:15: cells.my-gru.stages.1.rows: must be 'hidden' or 'projection', got"),
        ("rows: hidden", "row: hidden", "8:9: cells.my-gru.stages.1.row: unknown key; did you mean 'rows'?"),
        ("    nodes:", "    notes:", "9:5: cells.my-gru.notes: unknown key; did you mean 'nodes'?"),
        ("{n: [x, rh]}", "{n: x}", "7:20: cells.my-gru.stages.1.gates.n: must be a list, got 'x'"),
        ("{n: [x, rh]}", "{n: {n: 3}}", "7:24: cells.my-gru.stages.1.gates.n.n: must be a list, got 3"),
        ("{n: [x, rh]}", "{n: [x, 3]}", "7:24: cells.my-gru.stages.1.gates.n.1: must be text, got 3"),
        ("{n: [x, rh]}", "{n: {n: [rh], x: [x]}}", "7:33: cells.my-gru.stages.1.gates.n.x: the name 'x' is taken"),
        ("{n: [x, rh]}", "{}", "7:16: cells.my-gru.stages.1.gates: must hold at least one gate"),
        ("s: hf}", "s: hf}\n    parameters: [p]", "20:18: cells.my-gru.parameters.0: parameter 'p' feeds nothing"),
        ("states: {h: h', s: hf}", "states: {s: hf}", "19:13: cells.my-gru.states: there must be a state h"),
        ("    states: {h: h', s: hf}", "", "4:5: cells.my-gru.states: required key is missing (each state"),
    ],
)
def test_single_mistakes_in_cells(folder: Path, old: str, new: str, line: str) -> None:
    lines = reported(folder, HEAD.replace(old, new) + JOBS)
    assert any(each.startswith(f"s.yaml:{line}") for each in lines), lines


def test_a_broken_cell_adds_no_noise(folder: Path) -> None:
    (line,) = reported(folder, HEAD.replace("sigmoid r\n", "sigmoit r\n") + JOBS)
    assert "unknown operation" in line
    (line,) = reported(folder, HEAD + JOBS, "cells.my-gru.nodes.rt=tanhh r")
    assert line == "overrides cells.my-gru.nodes.rt=tanhh r: unknown operation 'tanhh'; did you mean 'tanh'?"
    (line,) = reported(folder, HEAD + JOBS.replace("my-gru", "mygru"))
    assert line.endswith("jobs.0.model.layers.0.cell: no cell called 'mygru'; did you mean 'my-gru'?")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cell: cell["stages"].extend(cell["stages"] * 100), "stages: must be a list of at most 100"),
        (lambda cell: cell["nodes"].update({f"n{n}": "tanh a" for n in range(1001)}), "nodes: must be a mapping of at"),
        (
            lambda cell: cell["stages"][0].update(gates={f"g{n}": ["x"] for n in range(101)}),
            "stages.0.gates: must be a mapping of at most 100 entries, got 101",
        ),
        (
            lambda cell: cell.update(stages=[{"gates": {f"g{m}_{n}": ["x"] for n in range(60)}} for m in (0, 1)]),
            "stages: must have at most 100 gates",
        ),
        (lambda cell: cell["nodes"].update({"t": "tanh a " + "a " * 10_000}), "nodes.t: must hold at most 10000"),
    ],
)
def test_cells_are_bounded(change: Callable[[Any], object], words: str) -> None:
    data = json.loads(model_text("tanh"))
    change(data["cells"]["own"])
    with pytest.raises(InputError, match=words):
        load_scenario({"chip": "column-npu-64k", "jobs": [{"model": data}]})
