"""Dense recurrent jobs on the parallel device: the kernels of all layers and directions, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from lstmsim.base.records import record
from lstmsim.machines.parallel.cells import GATES
from lstmsim.machines.parallel.device import Device, ParallelDevice
from lstmsim.machines.parallel.fused.steps import fused_step
from lstmsim.machines.parallel.kernel import CLASS, Ints, Priced, Run
from lstmsim.machines.parallel.kernels.dense.recurrent import RecurrentSizes, recurrent_layer
from lstmsim.machines.parallel.kernels.dense.tiles import tile_for
from lstmsim.machines.parallel.lowering.program import DeviceJob
from lstmsim.machines.parallel.memory.traffic import priced
from lstmsim.model.dispatch import DISPATCH
from lstmsim.model.model import Layer
from lstmsim.model.scenario import Job
from lstmsim.model.sparse.ranges import firsts

__all__ = ["device_jobs"]

_FMA = CLASS["fma"]
#: Names of the kernels of products; a persistent kernel has the name of its cell.
_PRODUCTS = ("gemv", "gemm", *GATES)


@record
class _LayerRun:
    """The kernels of one direction of a layer.

    kernels: as they are lowered.
    work: of each kernel the useful multiply-accumulates of its streams, or None.
    """

    kernels: tuple[Priced, ...]
    work: tuple[Ints | None, ...]


def device_jobs(chip: ParallelDevice, jobs: Sequence[Job]) -> list[DeviceJob]:
    """The kernels of jobs: layer after layer, and of each layer one direction after the other.

    Each of these is a run of its own: what L2 holds at its beginning is the chip's `l2_state`.
    """
    made = []
    for job in jobs:
        runs = [_run_of(chip, layer, job) for layer in job.model.layers for _ in range(layer.directions)]
        key, from_arrival = DISPATCH[job.dispatch](job)
        kernels = tuple(kernel for run in runs for kernel in run.kernels)
        work = tuple(each for run in runs for each in run.work)
        made.append(DeviceJob(job.name, kernels, work, job.arrival, key, from_arrival, job.after))
    return made


def _run_of(chip: ParallelDevice, layer: Layer, job: Job) -> _LayerRun:
    """The kernels of one direction of a layer; equal ones are the same objects."""
    if chip.fusion == "cell":
        return _layer_run(chip.view, _sizes(layer, job.batch, job.steps), chip.recurrent == "persistent")
    # a direction of its own: the kernels do not depend on how many there are
    alone = replace(layer, bidirectional=False, reverse=False)
    return _fused_run(chip.view, alone, job.batch, job.steps, chip.fusion, chip.split_rule)


@lru_cache(maxsize=8)
def _fused_run(device: Device, layer: Layer, batch: int, steps: int, fusion: str, split_rule: str) -> _LayerRun:
    step = fused_step(device, layer, batch, fusion, split_rule)
    kernels = priced(Run(step.run.arrays, step.run.kernels * steps), device)
    shares = _shared_out(kernels[: len(step.products)], step.products, layer.macs_per_step * batch)
    return _LayerRun(kernels, shares * steps)


def _sizes(layer: Layer, batch: int, steps: int) -> RecurrentSizes:
    return RecurrentSizes(layer.hidden, layer.input, batch, steps, layer.cell.name)


@lru_cache(maxsize=8)
def _layer_run(device: Device, sizes: RecurrentSizes, persistent: bool) -> _LayerRun:
    tile = tile_for(GATES[sizes.cell] * sizes.hidden, sizes.batch, device.sms) if sizes.batch > 1 else None
    made = recurrent_layer(sizes, tile, 0, device, persistent)
    kernels = priced(made.run, device)
    step = len(kernels) if persistent else len(kernels) // sizes.steps
    products = [each.shape.name in _PRODUCTS for each in kernels[:step]]
    shares = _shared_out(kernels[:step], products, made.metrics["macs"] * step // len(kernels))
    return _LayerRun(kernels, shares * (len(kernels) // step))


def _shared_out(kernels: Sequence[Priced], products: Sequence[bool], macs: int) -> tuple[Ints | None, ...]:
    """Share the useful multiply-accumulates of some kernels out to the streams of products, by their multiply-adds.

    products: of each kernel whether it is a product.
    """
    counts = []
    for kernel, product in zip(kernels, products, strict=True):
        whole = kernel.instructions
        sums = firsts(np.where(whole.kind == _FMA, whole.count, 0))
        counts.append((sums[whole.first[1:]] - sums[whole.first[:-1]]) * product)
    sums = np.cumsum(np.concatenate(counts))
    upto = np.rint(sums / max(int(sums[-1]), 1) * macs).astype(np.int64)
    shares = np.split(np.diff(upto, prepend=0), np.cumsum([len(each) for each in counts])[:-1])
    return tuple(share if share.any() else None for share in shares)
