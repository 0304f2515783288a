"""The pass against a model of docs/fusion.md in lists and loops, on golden cases and on random graphs."""

from __future__ import annotations

import os

import pytest

from tests.model.fusion.golden import cases
from tests.model.fusion.plain import agree, odd_device
from tests.model.fusion.random_graphs import DEVICES, random_graph
from tests.oracle.fusion_graph import Graph
from tests.oracle.fusion_modes import MODES, counted, kernels_of
from tests.oracle.fusion_plan import plans, reported

LONG = "LSTMSIM_EXAMPLES" in os.environ
#: Random graphs: 12 in the usual run, at least 400 in the long one (LSTMSIM_EXAMPLES).
COUNT = max(400, int(os.environ["LSTMSIM_EXAMPLES"])) if LONG else 12
#: Cases of more elements than this are for the long run.
MOST = 20_000


def small(case) -> bool:
    return LONG or sum(Graph(case["graph"]).sizes) < MOST


@pytest.mark.parametrize("case", [each for each in cases() if small(each)], ids=lambda case: case["name"])
def test_the_model_is_right_on_golden_cases(case) -> None:
    graph, expect = Graph(case["graph"]), case["expect"]
    made, refused = plans(graph, case["device"])
    assert [[graph.names[v] for v in plan.nodes] for plan in made] == expect["subgraphs"]
    assert [[graph.names[u], graph.names[v]] for u, v in refused] == expect["refused_edges"]
    assert [reported(graph, plan) for plan in made] == expect["plans"]
    assert {mode: counted(graph, kernels_of(graph, made, mode, case["device"])) for mode in MODES} == expect["modes"]


@pytest.mark.parametrize("name", DEVICES)
def test_plans_of_random_graphs(name) -> None:
    begin = 2 * sorted(DEVICES).index(name)
    for seed in range(begin, begin + (COUNT if LONG else 2)):
        agree(random_graph(seed), DEVICES[name])


def test_plans_for_random_devices() -> None:
    planned = [agree(random_graph(seed), odd_device(seed)) for seed in range(COUNT)]
    assert sum(planned) > COUNT // 2
