"""The golden cases of `docs/fusion.md`, read."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.plan import FusionDevice

CASES = Path(__file__).parents[2] / "data" / "contract_cases_fusion.json"
#: Attributes of the golden graphs that stand in `Node.axes`.
AXES = ("axes", "dims", "perm", "start")


@cache
def cases() -> tuple[dict[str, Any], ...]:
    """All cases as they stand."""
    return tuple(json.loads(CASES.read_text()))


def graph_of(case: dict[str, Any]) -> Graph:
    """The graph of a case."""
    return Graph(
        case["graph"]["name"],
        tuple(
            Node(
                each["name"],
                each["op"],
                tuple(each["inputs"]),
                tuple(each["shape"]),
                next((tuple(each[name]) for name in AXES if name in each), ()),
            )
            for each in case["graph"]["nodes"]
        ),
        tuple(case["graph"]["outputs"]),
    )


def device_of(case: dict[str, Any]) -> FusionDevice:
    """The device of a case."""
    return FusionDevice(**{name: value for name, value in case["device"].items() if name != "name"})
