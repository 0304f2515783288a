"""Where the arrays of a recurrent job are, its products over threads, and the tails of its time steps (section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lstmsim.base.records import hashed_once, record
from lstmsim.machines.gemm import Division, GemmPlan, Product
from lstmsim.machines.multicore.cells import CellWork, cell_work
from lstmsim.machines.multicore.lines.space import Array, Matrix, Places, Runs, Segment, Space, operands
from lstmsim.machines.multicore.machine import Machine, up
from lstmsim.machines.multicore.planning.planner import DOCUMENTED, plan
from lstmsim.model.cells import LayerProduct, step_products
from lstmsim.model.model import Layer


@hashed_once
@record
class Shape:
    """All of a job on which its traffic depends.

    layers: from the input to the output.
    steps, batch: time steps; sequences that run together.
    threads: on how many cores.
    """

    layers: tuple[Layer, ...]
    steps: int
    batch: int
    threads: int


class Vectors(NamedTuple):
    """Where a vector of each time step is: an array with a block for each of them.

    address: of the block of time step 0.
    width: elements of one vector; a block has one for each sequence.
    """

    address: int
    width: int

    def at(self, step: int, batch: int, element_bytes: int) -> Matrix:
        """The block of a time step."""
        stride = self.width * element_bytes
        return Matrix(self.address + step * batch * stride, stride)


class Pass(NamedTuple):
    """One direction of a layer.

    layer, direction: which; `backward`: whether it goes from the last time step to step 0.
    hidden: units.
    products: of a time step, in order.
    work: what follows them.
    x: what it reads: the frames, or h of each direction of the layer below.
    h_read, h_written: h of the step before, and its own.
    states: where its further states are, a vector for each sequence.
    plans, divisions, places: of each product; A is where no time step reads it (`segments` say where).
    """

    layer: int
    direction: int
    backward: bool
    hidden: int
    products: tuple[LayerProduct, ...]
    work: CellWork
    x: tuple[Vectors, ...]
    h_read: Vectors
    h_written: Vectors
    states: tuple[Matrix, ...]
    plans: tuple[GemmPlan, ...]
    divisions: tuple[Division, ...]
    places: tuple[Places, ...]

    def segments(self, number: int, step: int, batch: int, element_bytes: int) -> tuple[Segment, ...]:
        """Where the rows of A of product `number` are in a time step."""
        vectors: dict[str, tuple[Vectors, ...]] = {"x": self.x, "h": (self.h_read,)}
        segments, first = [], 0
        for each in (one for name in self.products[number].vectors for one in vectors[name]):
            block = each.at(step, batch, element_bytes)
            segments.append(Segment(first, first + each.width, *block))
            first += each.width
        return tuple(segments)


class JobSpace(NamedTuple):
    """The arrays of a job, and its passes over them, in their order."""

    arrays: tuple[Array, ...]
    passes: tuple[Pass, ...]


@lru_cache(maxsize=256)
def plans_of(machine: Machine, layer: Layer, batch: int, threads: int) -> tuple[GemmPlan, ...]:
    """The plans of the products of a layer's time step, with the parameters of section 2 of docs/multicore.md."""
    products = (Product(batch, each.rows, each.columns) for each in step_products(layer))
    return tuple(plan(machine, each, threads, DOCUMENTED, packed=True) for each in products)


def divisions_of(machine: Machine, layer: Layer, batch: int, threads: int) -> tuple[Division, ...]:
    """What the plans of a layer tell the executor; its weights have been packed before. Arguments as of `plans_of`."""
    return tuple(each.division for each in plans_of(machine, layer, batch, threads))


def laid_out(machine: Machine, shape: Shape, first: int) -> JobSpace:
    """Lay the arrays of a job one behind the other."""
    space, batch = Space(machine), shape.batch
    width = shape.layers[0].input
    frames = space.add("frames", shape.steps * batch * width * machine.element_bytes)
    x: tuple[Vectors, ...] = (Vectors(frames.first, width),)
    passes: list[Pass] = []
    for number, layer in enumerate(shape.layers):
        own = [_pass(space, machine, shape, first, number, direction, x) for direction in range(layer.directions)]
        passes += own
        x = tuple(each.h_written for each in own)
    return JobSpace(space.arrays, tuple(passes))


def _pass(
    space: Space, machine: Machine, shape: Shape, first: int, number: int, direction: int, x: tuple[Vectors, ...]
) -> Pass:
    """Lay the arrays of a pass behind the others: h of all time steps, further states, then those of each product."""
    layer, size, batch = shape.layers[number], machine.element_bytes, shape.batch
    work, backward = cell_work(layer.cell), layer.backward(direction)
    block = batch * layer.hidden * size
    h = space.add("h", (shape.steps + 1) * block, shared=True).first
    before, after = Vectors(h, layer.hidden), Vectors(h + block, layer.hidden)
    states = [Matrix(space.add(name, block, shared=True).first, layer.hidden * size) for name in work.states]
    divisions = divisions_of(machine, layer, batch, shape.threads)
    places = [operands(space, machine, each, job=True, first=first) for each in divisions]
    return Pass(
        layer=number,
        direction=direction,
        backward=backward,
        hidden=layer.hidden,
        products=step_products(layer),
        work=work,
        x=x,
        # backward, the first h is in the last block, and each step leaves its h in the block before
        h_read=after if backward else before,
        h_written=before if backward else after,
        states=tuple(states),
        plans=plans_of(machine, layer, batch, shape.threads),
        divisions=divisions,
        places=tuple(places),
    )


def units_of(hidden: int, threads: int) -> Iterator[tuple[int, int]]:
    """The units of each thread that has some, as (first, end); threads without units are the last ones."""
    each = up(hidden, threads)
    return ((first, min(first + each, hidden)) for first in range(0, hidden, each))


def tail_cycles(machine: Machine, one: Pass, units: int, batch: int) -> int:
    """Cycles of arithmetic for so many units of each sequence."""
    vectors = up(units * batch, machine.lanes)
    work = one.work
    return vectors * (work.activations * machine.activation_cycles + work.others * machine.elementwise_cycles)


def tail_runs(machine: Machine, one: Pass, units: tuple[int, int], step: int, batch: int) -> Runs:
    """What a tail touches: for each sequence its units of every gate, then of every further state, and of h."""
    size = machine.element_bytes
    gates = [
        Matrix(places.c.address + gate * one.hidden * size, places.c.stride)
        for places, product in zip(one.places, one.products, strict=True)
        for gate in range(len(product.sums))
    ]
    written = [*one.states, one.h_written.at(step, batch, size)]
    address, stride = np.array([*gates, *written], dtype=np.int64).T
    rows = np.arange(batch)[:, None]
    addresses = (address + units[0] * size + rows * stride).ravel()
    write = np.arange(len(address)) >= len(gates)
    return Runs(addresses, np.full(len(addresses), (units[1] - units[0]) * size), np.tile(write, batch))
