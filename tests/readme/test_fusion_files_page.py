"""The page on graphs in files: its example is read, and its table has the operators that have rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lstmsim.base.bounds import MAX_ELEMENTS, MAX_GRAPH_NODES, MAX_RANK
from lstmsim.base.keys import keys_of
from lstmsim.files.graphs import GraphEntry, NodeEntry, read_graph
from lstmsim.importers.onnx.operations.computing import ELEMENTWISE, NORMALISING, PRODUCTS
from lstmsim.importers.onnx.operations.moving import FOLDING, MOVING

FILE = Path(__file__).resolve().parents[2] / "docs" / "fusion_files.md"
PAGE = FILE.read_text(encoding="utf-8") if FILE.is_file() else ""
pytestmark = pytest.mark.skipif(not PAGE, reason="the page is in the checkout only")


def test_the_example_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(PAGE.split("```yaml\n")[1].split("```")[0])
    graph = read_graph(tmp_path / "a.yaml")
    assert [node.shape for node in graph.nodes[1:4]] == [(8,), (8, 40), (8, 40)]


def test_the_table_has_all_keys() -> None:
    keys = PAGE.split("| key | meaning |")[1].split("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in keys.splitlines()[2:])))
    assert named == {*keys_of(GraphEntry), *keys_of(NodeEntry)}


def test_the_table_has_all_operators() -> None:
    rows = [line.split("|")[1] for line in PAGE.split("| operators | become |")[1].splitlines()[2:7]]
    tables = (ELEMENTWISE, NORMALISING, MOVING, PRODUCTS, FOLDING)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [sorted(each) for each in tables]


def test_the_bounds_are_the_bounds() -> None:
    assert f"{MAX_GRAPH_NODES:,} nodes" in PAGE
    assert (MAX_ELEMENTS, MAX_RANK) == (2**28, 16)
