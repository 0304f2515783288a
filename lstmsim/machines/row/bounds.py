"""Cycles that no schedule of the row-wise NPU can beat, for columns of cores at once (`lstmsim.machines.bounds`).

A core runs one job at a time, and every unit is in order (docs/row_npu.md, section 4). So a job takes at least what its
busiest unit takes, and at least its longest chain from one h to the next. docs/design.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np

from lstmsim.base.bounds import MAX_PES
from lstmsim.base.records import record
from lstmsim.machines.bounds import Column, Least
from lstmsim.machines.row.npu import RowCore, RowLatency, RowNpu
from lstmsim.machines.row.plan import PROGRAMS, Chain
from lstmsim.model.cells import CELLS
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job


def read(entry: Mapping[str, Any]) -> Any:
    """The core of an entry of a file, with defaults in place of what is left out; the names are those of `RowCore`."""
    core = SimpleNamespace(**{each.name: entry.get(each.name, each.default) for each in fields(RowCore)})
    own = entry.get("latency") or {}
    core.latency = SimpleNamespace(**{each.name: own.get(each.name, each.default) for each in fields(RowLatency)})
    core.by_cell = dict(core.by_cell or {})
    core.ep, core.batch = core.tiles * np.asarray(core.lanes), core.vectors * np.asarray(core.replicas)
    core.npe = core.ep * core.engines * core.batch
    return core


def broken(cores: Sequence[Any], counts: Sequence[int]) -> dict[str, Column]:
    """By the name of a rule, which designs break it."""
    return {f"at most {MAX_PES:,} PEs in a core": sum(core.npe > MAX_PES for core in cores) > 0}


def able(core: Any, model: Model) -> Column:
    """Which cores can run a model: all, or none."""
    return np.asarray(all(each.cell.name in PROGRAMS and each.cell == CELLS[each.cell.name] for each in model.layers))


def peak(core: Any) -> Column:
    """Multiply-accumulates that a core can do in a cycle."""
    return core.npe


def contexts(core: Any) -> Column:
    """Jobs that a core holds at once."""
    return np.asarray(1)


def loads(chip: RowNpu, cores: Sequence[Any], counts: Sequence[int], jobs: Sequence[Job]) -> None:
    """No memory beside the chip is timed."""


def least(core: Any, model: Model, steps: int, interval: int, batch: int = 1) -> Least:
    """The least cycles of a job, whatever comes before it."""
    own = _Job(core, model, steps, -(-batch // core.batch)).cycles()
    # the last frame must have come, and what is made of it must leave
    return Least({}, np.maximum(own, (steps - 1) * interval + 1), own)


@record
class _Part:
    """A step of a layer, one direction.

    product: cycles of the matrix-vector unit in all of the step, `first` of them before the first product of h.
    vectors: cycles of the vector pipe.
    sent: cycles of dispatch of its instructions.
    again: from the first product of h until that of the next step can begin, for want of h alone; 0: nothing waits.
    done: from there until h is written; 0: there is no h.
    """

    product: Column
    first: Column
    vectors: Column
    sent: Column
    again: Column
    done: Column


class _Job:
    """One job: `rounds` times all steps of all layers."""

    def __init__(self, core: Any, model: Model, steps: int, rounds: Column) -> None:
        self.core, self.model, self.steps, self.rounds = core, model, steps, rounds
        self.passes = -(-np.asarray(core.vectors) * core.engines // core.vector_lanes)
        self.parts = [part for layer in model.layers for part in [self._part(layer)] * layer.directions]

    def cycles(self) -> Column:
        """From its admission to its finish."""
        last = self.model.layers[-1]
        program = PROGRAMS[last.cell.name](last)
        final = (*program.x_part, *program.h_part)[-1]
        # the job waits for no padding: of the last chain nothing is counted
        product, vectors = self._product(final), self._groups(final.size) * self.passes
        start = self._dispatch(self.model.layers[0])[1]
        times = self.steps * self.rounds
        busy = [
            times * sum(part.product for part in self.parts) - product,
            times * sum(part.vectors for part in self.parts) - vectors,
            # the last instruction is only sent
            times * sum(part.sent for part in self.parts) - self._dispatch(last)[0],
            self._chained(product),
        ]
        return start + np.maximum.reduce(np.broadcast_arrays(*busy)) + 1

    def _chained(self, final: Column) -> Column:
        """The chain of steps: within a layer, or a step of all layers, each is as long as its work and its h."""
        if self.model.layer_order == "step":
            step = sum(part.product for part in self.parts)
            step = np.maximum.reduce(np.broadcast_arrays(step, *(part.again for part in self.parts)))
            return self.rounds * (self.steps - 1) * step
        whole: Column = np.asarray(0)
        for part in self.parts:
            whole = whole + (self.steps - 1) * np.maximum(part.product, part.again) + part.product
        last = self.parts[-1]
        # behind the first product of h in the last step: all products and results of that step, and the way out
        end = np.where(last.done > 0, last.first + last.done + self.core.latency.output, last.product - final)
        return self.rounds * whole - last.product + end

    def _part(self, layer: Layer) -> _Part:
        program = PROGRAMS[layer.cell.name](layer)
        chains = (*program.x_part, *program.h_part)
        first = sum((self._product(each) for each in program.x_part), np.asarray(0))
        done = self._way(program.h_part) if program.h_part else np.asarray(0)
        return _Part(
            product=sum((self._product(each) for each in chains), np.asarray(0)),
            first=first,
            vectors=sum((self._groups(each.size) * self.passes for each in chains), np.asarray(0)),
            sent=sum((self._instructions(each) for each in chains), np.asarray(0)) * self._dispatch(layer)[0],
            again=done + self.core.latency.tag_mvu if program.h_part else np.asarray(0),
            done=done,
        )

    def _way(self, chains: Sequence[Chain]) -> Column:
        """From the first product of h until the next h is written, through all units and the vectors between."""
        own, mvu, pipe = self.core.latency, np.asarray(0), np.asarray(0)
        ready: dict[str, Column] = {}
        for chain in chains:
            whole, needed = self._groups(chain.size) * self.passes, self._needed(chain)
            if chain.product is not None:
                mvu = np.maximum(mvu, self._ready(ready, [chain.product.vector], own.tag_mvu))
                # the pipe takes what is needed after the first results, and all of it after the last ones
                out, mvu = mvu + own.product, mvu + self._product(chain)
                every = np.maximum(out + whole, mvu - 1 + own.product + self.passes)
                last = np.where(needed == whole, every, out + needed)
            else:
                out = self._ready(ready, [chain.read], own.tag_evrf)
                every, last = out + whole, out + needed
            last, pipe = np.maximum(last, pipe + needed), np.maximum(every, pipe + whole)
            last = np.maximum(last + own.evrf, self._ready(ready, chain.first, own.tag_mfu) + needed)
            last = np.maximum(last + own.mfu0, self._ready(ready, chain.second, own.tag_mfu) + needed) + own.mfu1
            # the cycle of the last one, not that behind it
            ready |= dict.fromkeys(chain.writes, last - 1)
        return ready["h"]

    def _ready(self, ready: Mapping[str, Column], names: Sequence[str], tag: Column) -> Column:
        """When vectors of this step are there; those of other steps may be there from the start."""
        times: Column = np.asarray(0)
        for name in names:
            times = np.maximum(times, ready[name] + tag) if name in ready else times
        return times

    def _words(self, columns: int) -> Column:
        padded = -(-columns // np.asarray(self.core.native_dimension)) * self.core.native_dimension
        return -(-padded // self.core.ep)

    def _groups(self, rows: int) -> Column:
        return np.maximum(-(-rows // np.asarray(self.core.engines)), self.core.chunk_groups)

    def _product(self, chain: Chain) -> Column:
        own = chain.product
        return np.asarray(0) if own is None else self._groups(own.rows) * self._words(own.columns)

    def _stored(self, chain: Chain) -> Column:
        """Row groups of a result for the matrix-vector unit that are written to it; the others are padding."""
        groups = self._groups(chain.size)
        return np.where(self.core.tile_loads, np.minimum(groups, self.core.tiles * self._words(chain.size)), groups)

    def _needed(self, chain: Chain) -> Column:
        return (self._stored(chain) if chain.matrix else self._groups(chain.size)) * self.passes

    def _instructions(self, chain: Chain) -> Column:
        """The chain, and one for each tile to which its result is written."""
        if not chain.matrix:
            return np.asarray(1)
        return 1 + np.where(self.core.tile_loads, -(-self._stored(chain) // self._words(chain.size)), 1)

    def _dispatch(self, layer: Layer) -> tuple[Column, Column]:
        """From one instruction of a layer to the next, and before the first."""
        own = self.core.by_cell.get(layer.cell.name) or {}
        both = (
            (own.get("dispatch_cycles"), self.core.dispatch_cycles),
            (own.get("start_cycles"), self.core.start_cycles),
        )
        dispatch, start = (np.asarray(general if each is None else each) for each, general in both)
        return dispatch, start
