"""How the products of jobs are spread over threads, for reports."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.machines.gemm import Division, GemmPlan
from lstmsim.machines.multicore.jobs.arrays import plans_of
from lstmsim.machines.multicore.machine import Machine
from lstmsim.model.planned import PlannedProduct, PlannedProducts, merged
from lstmsim.model.products import LayerProduct, step_products
from lstmsim.model.scenario import Job

__all__ = ["planned_products"]

_NOTE = (
    "planned with the rule of sections 2 and 3 of docs/multicore.md, as `lstmsim gemm` plans with --set cycles=0 and "
    "--set mn=blis; no other cut was simulated, so one may be faster: `lstmsim gemm --model` simulates them and says "
    "which is"
)


def planned_products(machine: Machine, jobs: Sequence[Job]) -> PlannedProducts:
    """The products of jobs, equal ones once.

    machine: where the jobs run.
    jobs: of it `model`, `batch` and `threads` count.
    """
    different = {(id(job.model), job.batch, job.members(machine.cores)): job for job in jobs}
    rows = [
        _row(job, number, product, plan)
        for (_, batch, threads), job in different.items()
        for number, layer in enumerate(job.model.layers)
        for product, plan in zip(step_products(layer), plans_of(machine, layer, batch, threads), strict=True)
    ]
    return PlannedProducts(merged(rows), _NOTE)


def _row(job: Job, number: int, product: LayerProduct, plan: GemmPlan) -> PlannedProduct:
    division = plan.division
    cut, sizes = division.cut, division.product
    return PlannedProduct(
        model=job.model.name,
        layers=(number,),
        label=product.label,
        m=sizes.m,
        n=sizes.n,
        k=sizes.k,
        threads=cut.threads,
        cut=cut.short,
        block=f"{cut.mb} x {cut.nb} x {cut.kb}",
        relief=_relief(division),
        rank=plan.chosen,
        candidates=len(plan.ranked),
        rejected=tuple(each.why_not for each in plan.ranked[: plan.chosen]),
    )


def _relief(division: Division) -> str:
    if division.cut.p_k == 1:
        return ""
    of = division.sub_blocks
    parts = [] if of is None else [f"{of.s_m} x {of.s_n} sub-blocks of {of.sm} x {of.sn}"]
    return " and ".join([*parts, *(["buffers"] if division.buffer else [])])
