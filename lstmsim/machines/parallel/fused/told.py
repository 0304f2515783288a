"""How the steps of jobs were cut into fused kernels, for reports."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.base.wording import counted
from lstmsim.machines.parallel.device import ParallelDevice
from lstmsim.machines.parallel.fused.steps import planned_step
from lstmsim.model.fusion.device import SPLIT_RULES
from lstmsim.model.fusion.plan import GLOBAL, SHARED, FusionPlan, PlannedKernel
from lstmsim.model.model import Layer
from lstmsim.model.scenario import Job

__all__ = ["fused_text"]

#: Most layers that are told.
_MOST = 8


def fused_text(chip: ParallelDevice, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Sentences on what follows the products of a step, like layers once; none where the cells' own kernels run.

    chip: where the jobs run.
    jobs: of them `model` and `batch` count.
    """
    idle = _rule_without_use(chip)
    if chip.fusion == "cell":
        return idle
    alike: dict[tuple[Layer, int], list[str]] = {}
    for model, batch in {(job.model.name, id(job.model), job.batch): (job.model, job.batch) for job in jobs}.values():
        for number, layer in enumerate(model.layers):
            alike.setdefault((layer, batch), []).append(f"layer {number} of {model.name}")
    told = [_layer(chip, layer, batch, names) for (layer, batch), names in list(alike.items())[:_MOST]]
    more = len(alike) - len(told)
    return (*told, *([f"Fusion: and {more} more kinds of layers."] if more else []), *idle)


def _rule_without_use(chip: ParallelDevice) -> tuple[str, ...]:
    """A sentence if the chip names another rule for splits than the usual one, and yet has no kernels that split."""
    if chip.fusion == "on" or chip.split_rule == SPLIT_RULES[0]:
        return ()
    return (
        f"split_rule: {chip.split_rule} has no effect: only `fusion: on` splits rows, and fusion is {chip.fusion}.",
    )


def _layer(chip: ParallelDevice, layer: Layer, batch: int, names: Sequence[str]) -> str:
    plan = planned_step(chip.view, layer, batch, chip.split_rule)
    operations = sum(len(each.nodes) for each in plan.subgraphs)
    products = sum(node.op == "matmul" for node in plan.graph.nodes)
    others = f" and {len(names) - 1} more" if len(names) > 1 else ""
    beside = counted(products, "product")
    ways = ", in each direction," if layer.bidirectional else ""
    rule = f", split_rule {chip.split_rule}" if chip.fusion == "on" else ""
    told = f"{names[0]}{others} ({layer.cell.name}, batch {batch})"
    step = f"Fusion {chip.fusion}{rule}: a step of {told}{ways} is {beside} and"
    if chip.fusion == "off":
        return f"{step} {counted(operations, 'operation')}, a kernel for each."
    kernels = "; ".join(_kernel(each.kernel, len(each.nodes)) for each in plan.subgraphs)
    return f"{step} {counted(len(plan.subgraphs), 'kernel')}: {kernels}{_other_rule(chip, layer, batch, plan)}."


def _other_rule(chip: ParallelDevice, layer: Layer, batch: int, plan: FusionPlan) -> str:
    """How often blocks would meet by the other rule for splits, if not as often. That is planned only: no cycles."""
    (rule,) = (each for each in SPLIT_RULES if each != chip.split_rule)
    other = planned_step(chip.view, layer, batch, rule)
    own, its = (sum(each.kernel.grid_barriers for each in some.subgraphs) for some in (plan, other))
    if own == its:
        return ""
    # what-if tries only the rule that is not the usual one
    tried = "; `simulate --explain` tries it" if rule != SPLIT_RULES[0] else ""
    return f"; split_rule {rule} would have {counted(its, 'grid barrier') if its else 'no grid barrier'}{tried}"


def _kernel(kernel: PlannedKernel, operations: int) -> str:
    """A kernel in short: its grid, where its values lie, how often all blocks meet."""
    schemes = [stage.scheme for stage in kernel.stages]
    lie = [f"{schemes.count(each)} {each}" for each in (SHARED, GLOBAL) if each in schemes]
    parts = [
        f"{counted(operations, 'operation')} in {counted(len(schemes), 'stage')}",
        f"{counted(kernel.blocks, 'block')} of {kernel.threads} threads",
        *([f"values: {' and '.join(lie)}"] if lie else []),
        *([counted(kernel.grid_barriers, "grid barrier")] if kernel.grid_barriers else []),
    ]
    return ", ".join(parts)
