"""The pass switched on part by part, in the order of the paper; docs/fusion.md, section 9."""

from __future__ import annotations

from lstmsim.base.records import record
from lstmsim.model.fusion.baselines import kernels_of, root_kernels
from lstmsim.model.fusion.device import FusionDevice
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.mapping import mapped
from lstmsim.model.fusion.plan import FusionPlan, Group, PlannedKernel, ThreadMapping
from lstmsim.model.fusion.planner import first_wave, planned, scratch_of

__all__ = ["ABLATION", "AblationStep", "ablation"]

#: What each step adds to the one before, by name.
ABLATION = {
    "xla": "one kernel for each candidate, with a compiler's threads",
    "mapped": "the same kernels, with threads chosen by shape: rows packed or split",
    "stored": "one kernel, which stores its candidates; each of them chooses its own threads",
    "stitch": "one kernel, in which candidates that an index connects share their threads",
}


@record
class AblationStep:
    """One step.

    name: of `ABLATION`.
    meaning: what it adds.
    kernels: in the order in which they run.
    """

    name: str
    meaning: str
    kernels: tuple[PlannedKernel, ...]


def ablation(graph: Graph, plan: FusionPlan, device: FusionDevice) -> tuple[AblationStep, ...]:
    """The steps from a compiler's kernels to the pass.

    graph: the graph.
    plan: its plan.
    device: the numbers of the device.
    `InputError` as of `planned`.

    >>> from lstmsim.model.fusion.library import named_graph
    >>> graph = named_graph("softmax", {})
    >>> [(each.name, len(each.kernels)) for each in ablation(graph, planned(graph), FusionDevice())]
    [('xla', 3), ('mapped', 3), ('stored', 1), ('stitch', 1)]
    """
    subgraphs = [each.nodes for each in plan.subgraphs]
    kernels = {
        "xla": kernels_of(graph, plan, device, "xla"),
        "mapped": root_kernels(graph, subgraphs, device, "xla", lambda group: _in_a_wave(graph, group, device)),
        "stored": kernels_of(graph, planned(graph, device, apart=True), device, "stitch"),
        "stitch": kernels_of(graph, plan, device, "stitch"),
    }
    return tuple(AblationStep(name, meaning, kernels[name]) for name, meaning in ABLATION.items())


def _in_a_wave(graph: Graph, group: Group, device: FusionDevice) -> ThreadMapping:
    """The mapping of a root alone. A split result has a grid barrier, so its blocks must be on the device at once."""
    wave = first_wave(device)
    while True:
        mapping = mapped(group, device, wave)
        room = device.wave(mapping.threads, scratch_of(graph, group.members, mapping.threads, device))
        if mapping.pieces == 1 or mapping.blocks <= room:
            return mapping
        # where not even one block fits, the machine refuses the kernel
        wave = max(1, min(wave - 1, room))
