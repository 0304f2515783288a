"""Bytes and evaluations, on small graphs where they can be counted by hand. The golden ones are in `test_golden`."""

from __future__ import annotations

from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph, Node
from lstmsim.model.fusion.plan import FusionDevice
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import KernelCounts, counted

V100 = FusionDevice()


def counts(graph: Graph, mode: str, device: FusionDevice = V100) -> tuple[KernelCounts, ...]:
    """What the kernels of a mode come to."""
    return counted(graph, kernels_of(graph, planned(graph, device), device, mode)).kernels


def test_an_operand_that_occurs_twice_is_evaluated_twice_and_read_once():
    x, c = Node("x", "input", (), (10,)), Node("c", "tanh", ("x",), (10,))
    graph = Graph("g", (x, c, Node("y", "multiply", ("c", "c"), (10,))), ("y",))
    assert counts(graph, "stitch") == (KernelCounts("stitch 0", 40, 40, 10),)
    assert counts(graph, "op") == (KernelCounts("c", 40, 40, 0), KernelCounts("y", 40, 40, 0))


def test_occurrences_multiply_down_the_expression():
    x = Node("x", "input", (), (3,))
    chain = [Node(f"n{each}", "add", (f"n{each - 1}", f"n{each - 1}"), (3,)) for each in range(1, 21)]
    graph = Graph("g", (x, Node("n0", "negate", ("x",), (3,)), *chain), ("n20",))
    (kernel,) = counts(graph, "tvm")
    # n20 once, n19 twice, ..., n0 2^20 times
    assert (kernel.read, kernel.written, kernel.recomputed) == (12, 12, 3 * (2**21 - 1 - 21))


def test_only_elements_that_are_needed_are_read():
    x = Node("x", "input", (), (8, 4))
    y, z = Node("y", "slice", ("x",), (2, 4), (1, 0)), Node("z", "slice", ("x",), (3, 4), (2, 0))
    t, u = Node("t", "exp", ("y",), (2, 4)), Node("u", "reduce_sum", ("z",), (3,), (1,))
    graph = Graph("g", (x, y, z, t, u), ("t", "u"))
    # rows 1 and 2 for one kernel, 2 to 4 for the other; both are fused nowhere, for they only share an input
    assert [(each.read, each.written) for each in counts(graph, "stitch")] == [(32, 32), (48, 12)]
    assert sum(each.read for each in counts(graph, "op")) == 32 + 48 + 32 + 48


def test_moves_are_not_recomputed_and_candidates_end_the_tree():
    x, s = Node("x", "input", (), (4, 6)), Node("s", "reduce_max", ("x",), (4,), (1,))
    e, b = Node("e", "exp", ("s",), (4,)), Node("b", "broadcast", ("e",), (4, 6), (0,))
    graph = Graph("g", (x, s, e, b, Node("y", "subtract", ("x", "b"), (4, 6))), ("y",))
    # e is a candidate of the pass, stored once; for a kernel like tvm's it is evaluated for each of six readers
    assert counts(graph, "stitch") == (KernelCounts("stitch 0", 96, 96, 0),)
    assert counts(graph, "xla")[-1] == KernelCounts("y", 96 + 16, 96, 0)
    assert counts(graph, "tvm")[-1] == KernelCounts("y", 96 + 16, 96, 4 * 5)


def test_a_split_result_counts_once_and_not_its_partials():
    x, s = Node("x", "input", (), (2, 4096)), Node("s", "reduce_sum", ("x",), (2,), (1,))
    graph = Graph("g", (x, s, Node("y", "tanh", ("s",), (2,))), ("y",))
    plan = planned(graph, V100)
    assert plan.subgraphs[0].kernel.stages[0].partials == 64
    assert counts(graph, "stitch") == (KernelCounts("stitch 0", 2 * 4096 * 4 + 8, 16, 0),)
