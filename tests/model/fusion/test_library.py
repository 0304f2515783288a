"""Named graphs: those of golden cases node for node, sizes, mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.fusion.graph import Node
from lstmsim.model.fusion.library import GRAPHS, named_graph

CASES = json.loads((Path(__file__).parents[2] / "data" / "contract_cases_fusion.json").read_text())
#: Name of a golden graph -> our name and sizes.
NAMED: dict[str, tuple[str, dict[str, int]]] = {
    "fig3": ("figure-3", {}),
    "reduce-4x2048": ("row-sum", {}),
    "fig4": ("figure-4", {}),
    "fig7": ("figure-7", {}),
    "cycle": ("cycle", {}),
    "overflow-200x300": ("overflow", {}),
    "softmax-64x256": ("softmax", {}),
    "ln-lstm-1x64": ("ln-lstm", {}),
    "ln-lstm-16x128": ("ln-lstm", {"batch": 16, "hidden": 128}),
    "lstm-1x64": ("lstm-tail", {}),
    "attention-3x20x16": ("attention", {"batch": 3, "steps": 20, "features": 16}),
    "logsoftmax-1x465": ("log-softmax", {}),
    "l2-5x64": ("l2-norm", {"rows": 5, "length": 64}),
    "quant-4x64": ("quantisation", {"rows": 4, "length": 64}),
    "bias-gradient-100x96": ("bias-gradient", {}),
}


def _node(raw: dict[str, Any]) -> Node:
    axes = next((raw[key] for key in ("axes", "dims", "perm", "start") if key in raw), ())
    return Node(raw["name"], raw["op"], tuple(raw["inputs"]), tuple(raw["shape"]), tuple(axes))


def test_graphs_of_golden_cases_are_the_same_node_for_node() -> None:
    compared = set()
    for case in CASES:
        raw = case["graph"]
        if raw["name"] == "random":
            continue
        name, sizes = NAMED[raw["name"]]
        graph = named_graph(name, sizes)
        assert graph.nodes == tuple(map(_node, raw["nodes"]))
        assert graph.outputs == tuple(raw["outputs"])
        compared.add(raw["name"])
    assert compared == set(NAMED)


@pytest.mark.parametrize(
    ("name", "sizes", "sentence"),
    [
        ("lnlstm", {}, "no graph called 'lnlstm'; did you mean 'ln-lstm'?"),
        ("softmax", {"row": 3}, "row: graph 'softmax' has no such size; did you mean 'rows'?"),
        ("softmax", {"batch": 3}, "batch: graph 'softmax' has no such size; its sizes: rows and length"),
        ("softmax", {"rows": 0}, "rows: must be from 1 to 16777216, got 0"),
        ("softmax", {"rows": True}, "rows: must be a whole number, got true"),
        ("softmax", {"rows": 1 << 20, "length": 1 << 20}, "the pass takes tensors of at most"),
    ],
)
def test_wrong_names_and_sizes_get_a_sentence(name: str, sizes: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        named_graph(name, sizes)


def test_all_sizes_are_used() -> None:
    for name, known in GRAPHS.items():
        before = named_graph(name)
        for size, default in known.sizes.items():
            # a size that nothing depends on would be a lie
            changed = named_graph(name, {size: 7 if default == "hidden" else int(default) + 8})
            assert changed.nodes != before.nodes, (name, size)


@pytest.mark.parametrize(("name", "other"), [("ln-lstm", "lstm-layernorm"), ("lstm-layernorm", "ln-lstm")])
def test_the_two_layer_normalised_lstms_point_at_each_other(name: str, other: str) -> None:
    graph = named_graph(name)
    operations = sum(node.intensive for node in graph.nodes)
    for reported in (GRAPHS[name].meaning, graph.about[0]):
        assert f"{operations} operations: " in reported
        assert f"; {other} " in reported
