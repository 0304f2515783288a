"""The cases of fused kernels (docs/fusion.md): plans, baselines, and cycles on the parallel device on an engine.

A case has a `device` (the numbers of section 4 of that document, and the `name` of a preset), a `graph`, and `expect`.
The result has the layout of `expect`. Where a case expects null for the cycles of a mode, nothing was simulated for it,
and nothing is simulated here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed
from lstmsim.files.graphs import graph_of_document
from lstmsim.files.yaml.document import document_of
from lstmsim.machines.parallel import fusion
from lstmsim.model.fusion.baselines import kernels_of
from lstmsim.model.fusion.graph import Graph
from lstmsim.model.fusion.plan import MODES, FusionDevice, FusionPlan, PlannedKernel, PlannedSubgraph
from lstmsim.model.fusion.planner import planned
from lstmsim.model.fusion.schemes import counted
from lstmsim.studies.fuse.report import group_data
from lstmsim.studies.program.run import totals_of_flat
from tools.contract_sparse import device_of

__all__ = ["chip_of", "modes_shown", "plan_shown", "result"]

Case = Mapping[str, Any]


def chip_of(keys: Case) -> tuple[Any, FusionDevice]:
    """The device of a case, and what plans ask of it: a V100 with the numbers of the case.

    keys: the numbers of `FusionDevice` by their names, and a `name`.
    `InputError` for numbers that are missing or impossible.

    >>> from dataclasses import asdict
    >>> chip_of({"name": "v100", **asdict(FusionDevice())})[1] == FusionDevice()
    True
    """
    names = [each.name for each in fields(FusionDevice)]
    if missing := [name for name in names if name not in keys]:
        raise InputError(Mistake("device", f"has no {listed(missing)}"))
    own = {name: keys[name] for name in names if name not in fusion.SETTINGS}
    wrong = [name for name, value in own.items() if type(value) is not int or value < 1]
    if wrong:
        raise InputError(
            [Mistake(f"device.{name}", f"must be a whole number from 1 on, got {own[name]!r}") for name in wrong]
        )
    chip = device_of({"preset": "v100", **own})
    return chip, fusion.numbers(chip, {name: keys[name] for name in fusion.SETTINGS})


def plan_shown(plan: FusionPlan) -> dict[str, Any]:
    """A plan as cases show it."""
    names = [node.name for node in plan.graph.nodes]
    return {
        "subgraphs": [[names[each] for each in subgraph.nodes] for subgraph in plan.subgraphs],
        "refused_edges": [[names[each.operand], names[each.reader]] for each in plan.refused],
        "plans": [_subgraph_shown(each, names) for each in plan.subgraphs],
    }


def _subgraph_shown(subgraph: PlannedSubgraph, names: Sequence[str]) -> dict[str, Any]:
    kernel = subgraph.kernel
    barriers = [names[each.node] for each in kernel.stages if each.grid_barrier]
    return {
        "groups": [group_data(names, each) for each in subgraph.groups],
        "free": [names[each] for each in subgraph.free],
        "stages": [names[each.node] for each in kernel.stages],
        "schemes": {names[each.node]: each.scheme for each in kernel.stages},
        "grid_barriers_before": [*barriers, *(["end"] if kernel.end_barrier else [])],
        "shared_bytes_before_reuse": kernel.shared_bytes_before_reuse,
        "shared_bytes": kernel.shared_bytes,
        "buffers": {names[each.node]: each.buffer for each in kernel.stages if each.buffer >= 0},
        "overflowed": [names[each] for each in subgraph.overflowed],
        "blocks": kernel.blocks,
        "threads": kernel.threads,
        "wave": kernel.wave,
        "registers": kernel.registers,
    }


def modes_shown(graph: Graph, kernels: Mapping[str, Sequence[PlannedKernel]]) -> dict[str, Any]:
    """What the kernels of each mode read, write and evaluate anew, as cases show it."""
    shown = {}
    for mode, some in kernels.items():
        counts = counted(graph, some)
        amounts = {"read": counts.read, "written": counts.written, "recomputed": counts.recomputed}
        shown[mode] = {"kernels": len(some), **amounts}
    return shown


def result(case: Case, engine: str) -> dict[str, Any]:
    """What lstmsim makes of a case, laid out as its `expect`.

    case: one case of the file.
    engine: a key of `lstmsim.engines.ENGINES`.
    `LstmsimError` if the case is refused.
    """
    graph = graph_of_document(document_of(case["graph"]), "graph")
    chip, device = chip_of(case["device"])
    plan = planned(graph, device)
    kernels = {mode: kernels_of(graph, plan, device, mode) for mode in MODES}
    shown = {**plan_shown(plan), "modes": modes_shown(graph, kernels)}
    wanted = case["expect"].get("cycles", {})
    if isinstance(wanted, dict) and wanted:
        shown["cycles"] = {
            mode: None if wanted.get(mode, 0) is None else _cycles(chip, graph, some, engine)
            for mode, some in kernels.items()
        }
    elif "cycles" in case["expect"]:
        shown["cycles"] = wanted
    return shown


def _cycles(chip: Any, graph: Graph, kernels: Sequence[PlannedKernel], engine: str) -> int:
    """From the first launch to the end."""
    work = fusion.lower(chip, graph, kernels, graph.name)
    return fusion.figures(chip, work, totals_of_flat(work.flat, work.names, engine)).makespan
