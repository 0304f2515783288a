"""In which order kernels and calls of libraries run."""

from __future__ import annotations

import pytest

from lstmsim.base.errors import InputError
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph, Sketch
from lstmsim.model.fusion.library import named_graph
from lstmsim.model.fusion.mapping import in_order, steps
from lstmsim.model.fusion.plan import MODES, FusionDevice, PlannedKernel
from lstmsim.model.fusion.planner import planned


def _steps(graph: Graph, mode: str) -> list[str]:
    device = FusionDevice()
    ordered = steps(graph, kernels_of(graph, planned(graph, device), device, mode))
    return [graph.nodes[step].name if isinstance(step, int) else "+".join(_stored(graph, step)) for step in ordered]


def _stored(graph: Graph, kernel: PlannedKernel) -> list[str]:
    return [graph.nodes[stage.node].name for stage in kernel.stages]


def test_a_product_runs_between_the_kernels_on_either_side() -> None:
    graph = named_graph("cycle", {})
    assert _steps(graph, "stitch") == ["a", "p", "s"]
    assert _steps(graph, "op") == ["a", "p", "y", "s"]


def _crossed() -> Graph:
    """The first sub-graph reads, by its last operation, what a product makes of the second."""
    draw = Sketch()
    x, w = draw.input("x", (4, 4)), draw.input("w", (4, 4))
    first = draw.element("tanh", "first", x)
    second = draw.element("exp", "second", w)
    product = draw.matmul("product", second, w)
    late = draw.element("add", "late", first, product)
    return draw.graph("crossed", (late,))


def test_a_kernel_waits_for_what_its_last_operation_reads() -> None:
    """In the mode of one kernel for each operation nothing has to wait."""
    assert _steps(_crossed(), "stitch") == ["second", "product", "late"]
    assert _steps(_crossed(), "op") == ["first", "second", "product", "late"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["ln-lstm", "quantisation", "figure-7", "attention"])
def test_every_mode_runs_each_part_after_what_it_reads(name: str, mode: str) -> None:
    graph, device = named_graph(name, {}), FusionDevice()
    made: set[int] = {number for number, node in enumerate(graph.nodes) if node.kind == "input"}
    for step in steps(graph, kernels_of(graph, planned(graph, device), device, mode)):
        inside = {step} if isinstance(step, int) else {stage.node for stage in step.stages} | step.inlined
        assert {each for number in inside for each in graph.operands[number] if each >= 0} <= made | inside
        made |= {step} if isinstance(step, int) else {stage.node for stage in step.stages}
    assert graph.output_numbers <= made


def test_kernels_that_wait_for_each_other_have_no_order() -> None:
    """The cycle of section 11, joined by force: one kernel with both a and y, and the product between them."""
    graph, device = named_graph("cycle", {}), FusionDevice()
    first, second = kernels_of(graph, planned(graph, device), device, "stitch")
    fields = {name: getattr(first, name) for name in first.__dataclass_fields__}
    joined = PlannedKernel(**fields | {"stages": (*first.stages, *second.stages), "inlined": second.inlined})
    with pytest.raises(InputError, match=r"the kernels .* wait for each other"):
        in_order(graph, [joined])
