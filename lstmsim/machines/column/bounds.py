"""Cycles that no schedule of the column-wise NPU can beat, for columns of cores at once (`lstmsim.machines.bounds`).

Every number is the length of a chain of events of one job, each of which waits for the one before it by a rule of
docs/timing.md, whatever else the core does. docs/design.md has the proofs. `s` is the issue of the last tile of a
stage's first row block: all chains are counted from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from lstmsim.base.bounds import MAX_CONTEXTS
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.records import record
from lstmsim.machines.bounds import Column, Least
from lstmsim.machines.column.npu import THREAD_POLICIES, ColumnCore, ColumnNpu, Latency
from lstmsim.machines.column.passes import wanted
from lstmsim.machines.column.shape import depths, issue_order
from lstmsim.model.cell import segment_of, segments_by_stage
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Job


@record
class Cores:
    """A core whose numbers may be columns; the names are those of `ColumnCore`."""

    npe: Column
    ep: Column
    vp: Column
    threads: Column
    tail_width: Column
    accumulator_banks: Column
    tree_inputs: Column
    cat: Column
    block_order: str
    weight_kib: Column
    weight_bits: Column
    latency: Mapping[str, Column]

    @property
    def mvm_cycles(self) -> Column:
        """From the issue of a row block's last tile until its sums reach the tail."""
        own = self.latency
        levels = np.frexp(np.asarray(self.ep) - 1)[1].astype(np.int64)
        return own["read"] + own["multiply"] + own["add"] * levels + own["accumulate"] + own["convert"]


def read(entry: Mapping[str, Any]) -> Cores:
    """The core of an entry of a file, with defaults in place of what is left out; `InputError` for delta columns."""
    if entry.get("delta") is not None:
        text = "skipped columns depend on data, so no bound on their cycles is proved: use a sweep"
        raise InputError(Mistake("chip.cores: delta", text))
    known = {each.name: entry.get(each.name, each.default) for each in fields(ColumnCore)}
    if entry.get("vp") is None:
        known["vp"] = np.asarray(known["npe"]) // np.maximum(known["ep"], 1)
    own = dict(entry.get("latency") or {})
    known["latency"] = {each.name: own.get(each.name, each.default) for each in fields(Latency) if each.name != "delta"}
    return Cores(**{each.name: known[each.name] for each in fields(Cores)})


def broken(cores: Sequence[Cores], counts: Sequence[int]) -> dict[str, Column]:
    """By the name of a rule, which designs break it."""
    made: dict[str, Column] = {}

    def note(name: str, wrong: Column) -> None:
        made[name] = made.get(name, False) | np.asarray(wrong)

    for core in cores:
        note("ep * vp must not exceed npe", (core.ep * core.vp > core.npe) | (core.ep > core.npe))
        note("cat must be a power of two", (core.cat & (core.cat - 1) != 0) | (core.cat < 1))
        if core.tree_inputs is None:
            note("cat needs tree_inputs", np.asarray(core.cat) > 1)
        else:
            note("tree_inputs must not exceed npe", core.tree_inputs > core.npe)
            note("an adder tree must give ep", ~_reached(core))
    threads = sum(np.asarray(core.threads) * count for core, count in zip(cores, counts, strict=True))
    note(f"at most {MAX_CONTEXTS} threads in all", threads > MAX_CONTEXTS)
    return made


def _reached(core: Cores) -> Column:
    """Whether the adder tree can be set to `ep`."""
    reached: Column = np.asarray(False)
    for shift in range(int(np.max(core.cat)).bit_length()):
        own = (core.cat >= 1 << shift) & (core.tree_inputs % (1 << shift) == 0) & (core.ep == core.tree_inputs >> shift)
        reached = reached | own
    return reached


def able(core: Cores, model: Model) -> Column:
    """Which cores can run a model."""
    fine: Column = np.asarray(True)
    for layer in dict.fromkeys(model.layers):
        for stage in layer.cell.stages:
            gates = len(stage.gates)
            fine = fine & (core.vp >= gates)
            if core.block_order == "column":
                blocks = -(-layer.units(stage.rows) // np.maximum(core.vp // gates, 1))
                fine = fine & (core.accumulator_banks >= blocks)
    return fine


def peak(core: Cores) -> Column:
    """Multiply-accumulates that a core can do in a cycle."""
    return core.npe


def contexts(core: Cores) -> Column:
    """Jobs that a core holds at once: one a thread."""
    return core.threads


def axes(core: ColumnCore) -> dict[str, tuple[Any, ...]]:
    """Threads, tails, banks and policies that are worth a try, those of the core among them."""
    return {
        "threads": (1, 2, 4),
        "tail_width": tuple(sorted({16, 32, 64, 128, core.tail_width})),
        "accumulator_banks": (2, 3, 4),
        "thread_policy": THREAD_POLICIES,
    }


def loads(chip: ColumnNpu, cores: Sequence[Cores], counts: Sequence[int], jobs: Sequence[Job]) -> Column | None:
    """The cycles that the memory beside the chip needs for what must be loaded; None without such a memory.

    Of a weight set that no core of its job holds, what exceeds the largest of them is loaded again in every step, once
    for all members of a batch. All other weight sets together are loaded as far as they exceed what all cores hold.
    """
    if chip.memory is None or any(core.weight_kib is None for core in cores):
        return None
    rooms = [np.asarray(core.weight_kib) * 8192 // core.weight_bits for core in cores]
    entry_of = [number for number, count in enumerate(counts) for _ in range(count)]
    least_bits = reduce(np.minimum, [np.asarray(core.weight_bits) for core in cores])
    # by the most members of a batch, for which one transfer does
    streamed: dict[int, Column] = {}
    once: dict[Model, Column] = {}
    for job in jobs:
        weights = job.model.macs_per_step
        room = reduce(np.maximum, [rooms[entry_of[each]] for each in job.allowed(len(entry_of))])
        over = np.maximum(weights - room, 0)
        if not job.split and not job.may_leave:
            members = 1 if job.batching is None else job.batching.max_batch_size
            streamed[members] = streamed.get(members, np.asarray(0)) + job.steps * over
            once[job.model] = np.where(over > 0, 0, weights)
    held = sum(room * count for room, count in zip(rooms, counts, strict=True))
    always = sum(-(-each // members) for members, each in streamed.items())
    bits = (always + np.maximum(sum(once.values()) - held, 0)) * least_bits
    # rounded down in parts that are exact: a bound may be too small
    rate = Fraction(str(chip.memory.gb_per_s)) * 8000 / Fraction(str(chip.frequency_mhz))
    return np.floor(np.asarray(bits, dtype=np.float64) / float(rate) * (1 - 1e-9)).astype(np.int64)


class _Reads(NamedTuple):
    """A vector that a stage waits for: who makes it, from which step, its visibility, groups that issue after it."""

    source: int  # number of the stage in the body
    lag: int
    cycles: Column  # from the source's `s` until its last element is visible
    after: Column


class _Stage(NamedTuple):
    """A stage of a body, in tiles and cycles.

    lead: tiles up to `s`, which is among them.
    span: from `s` to the stage's last tile, at least.
    turns: cycles that it keeps the tail.
    blocks, bank: row blocks; from the last tile of one to that of the next one that takes the same bank.
    reads: vectors of this body that it waits for.
    below: groups that issue after an x that another body makes; None without such an x.
    frame: whether its first tiles read a frame of the input.
    output: from `s` until all of the layer's h is visible; None where the stage does not make it.
    closing: from the stage's last tile until then; for a stage without h until its tail begins.
    loops: of states that stay in the tail, (from `s` to a turn of the state, a step of it, from there to the end).
    """

    lead: Column
    span: Column
    tiles: Column
    turns: Column
    blocks: Column
    bank: Column
    reads: tuple[_Reads, ...]
    below: Column | None
    frame: bool
    output: Column | None
    closing: Column
    loops: tuple[tuple[Column, Column, Column], ...]


def least(core: Cores, model: Model, steps: int, interval: int, batch: int = 1) -> Least:
    """The least cycles of a job on a core."""
    bodies = _bodies(core, model)
    tiles = batch * steps * sum(stage.tiles for body in bodies for stage in body)
    turns = batch * steps * sum(stage.turns for body in bodies for stage in body)
    closing = bodies[-1][-1].closing
    # each inference of a batch is in order as if it were alone, and all of their tiles come before the last results
    alone = np.maximum(_finish(core, model, bodies, steps, interval), tiles - 1 + closing)
    held = np.maximum(_finish(core, model, bodies, steps, 0), tiles - 1 + closing) if interval else alone
    # the tail's first turn comes no sooner than a tile's sums
    return Least({"array": (tiles, closing), "tail": (turns, core.mvm_cycles + 1)}, alone, held)


def _finish(core: Cores, model: Model, bodies: Sequence[Sequence[_Stage]], steps: int, interval: int) -> Column:
    """The least cycle in which a job finishes that arrives at cycle 0, from body to body."""
    by_layer = model.layer_order == "layer"
    passes = [
        (number, layer.backward(way)) for number, layer in enumerate(model.layers) for way in range(layer.directions)
    ]
    start, seen, finish = np.asarray(0), np.asarray(0), np.asarray(0)
    for place, body in enumerate(bodies):
        number, backward = passes[place]
        lead, below = body[0].lead - 1, body[0].below
        first, final, paced = start + lead, np.asarray(0), 0
        if number == 0 and body[0].frame:
            # a backward pass begins with the last frame
            paced = 0 if by_layer and backward else interval
            first = np.maximum(first, (steps - 1) * (interval - paced) + lead)
        elif place and below is not None and number != passes[place - 1][0]:
            # the step that the body before makes last is the first one here, or the last one
            if backward != passes[place - 1][1]:
                first = np.maximum(first, seen + below)
            else:
                final = seen + below
        last, seen = _body(core, body, first, final, steps, paced)
        start, finish = last + 1, np.maximum(finish, seen)
    return finish


def _body(
    core: Cores, body: Sequence[_Stage], first: Column, final: Column, steps: int, interval: int
) -> tuple[Column, Column]:
    """The least issue of a body's last tile, and when its last h is visible.

    first, final: the least `s` of the first step and of the last one.
    """
    ways = _ways(body, 0)
    last: Column = np.asarray(0)
    seen: Column = np.asarray(0)
    for number, stage in enumerate(body):
        back = [each for each in stage.reads if each.lag and each.source >= number]
        if number and not back:
            continue
        own = _ways(body, number)
        # the array is in order: the next step begins behind this one
        period = own[-1] + body[-1].span + body[0].lead + ways[number]
        for each in back:
            period = np.maximum(period, own[each.source - number] + each.cycles + each.after)
        at = np.maximum(first + (steps - 1) * np.maximum(period, interval), final) + ways[number]
        last = np.maximum(last, at + own[-1] + body[-1].span)
        for way, other in zip(own, body[number:], strict=True):
            if other.output is not None:
                seen = np.maximum(seen, at + way + other.output)
    # of the row blocks of all steps, each waits for the bank of an earlier one
    blocks, bank = sum(stage.blocks for stage in body), reduce(np.minimum, [stage.bank for stage in body])
    last = np.maximum(last, first + (steps * blocks - 1) // core.accumulator_banks * bank)
    for way, stage in zip(ways, body, strict=True):
        for until, step, rest in stage.loops:
            seen = np.maximum(seen, first + way + until + (steps - 1) * step + rest)
    return last, np.maximum(seen, last + body[-1].closing)


def _ways(body: Sequence[_Stage], start: int) -> list[Column]:
    """From `s` of a stage to `s` of it and of each later one in the same step."""
    ways: list[Column] = [np.asarray(0)]
    for number in range(start + 1, len(body)):
        stage, before = body[number], body[number - 1]
        way = ways[-1] + before.span + stage.lead
        for each in stage.reads:
            if not each.lag and each.source >= start:
                way = np.maximum(way, ways[each.source - start] + each.cycles + each.after)
        ways.append(way)
    return ways


def _bodies(core: Cores, model: Model) -> list[list[_Stage]]:
    """The stages of a step: of each pass, in the order of layers; of all layers together, in the order of steps."""
    if model.layer_order == "layer":
        made: dict[tuple[Layer, bool], list[_Stage]] = {}
        bodies = []
        for number, layer in enumerate(model.layers):
            key = (layer, number > 0)
            if key not in made:
                made[key] = _Pass(core, layer).stages(above=number > 0)
            bodies += [made[key]] * layer.directions
        return bodies
    body: list[_Stage] = []
    below: tuple[int, _Pass] | None = None
    for number, layer in enumerate(model.layers):
        one = _Pass(core, layer)
        first = len(body)
        body += one.stages(above=number > 0, first=first, below=below)
        below = first, one
    return [body]


class _Pass:
    """The stages of one step of a layer; chains are counted in cycles from each stage's `s`."""

    def __init__(self, core: Cores, layer: Layer) -> None:
        self.core, self.layer, self.cell = core, layer, layer.cell
        self.home = segment_of(layer.cell, layer.cell.output)
        self.depths = _of_tails(core, self._visible)
        self.names = [node.name for node in layer.cell.nodes]
        self.cuts = [self._cut(number) for number in range(len(layer.cell.stages))]
        parts = segments_by_stage(layer.cell)
        self.turns = [(cut.queue + cut.last + 1) * len(own) for cut, own in zip(self.cuts, parts, strict=True)]
        self.begins = [self._begins(number) for number in range(len(layer.cell.stages))]

    def _visible(self, latency: Latency, width: int) -> list[int]:
        depth = depths(self.cell, vars(latency), width)
        return [max(1, depth[node.name] + latency.writeback) for node in self.cell.nodes]

    def _cut(self, number: int) -> _Cut:
        """How a stage is cut into tiles, and how long it keeps the tail."""
        core, stage = self.core, self.cell.stages[number]
        units = self.layer.units(stage.rows)
        each = np.maximum(core.vp // len(stage.gates), 1)
        blocks = -(-units // each)
        last = (units - (blocks - 1) * each - 1) // core.tail_width
        groups = {vector: -(-self.layer.width(vector) // core.ep) for vector in stage.vectors}
        every = sum(groups.values())
        own = (each, -(-each // core.tail_width))
        queue = (blocks - 1) * own[1]
        bank = every - 1 + core.mvm_cycles + last + 1
        if core.block_order == "column":
            return _Cut(
                groups, blocks, (every - 1) * blocks + 1, blocks - 1, blocks * every, last, queue, bank, *own, 1
            )
        # a bank is free when its row block has been in the tail, and the next one has all of its tiles to issue
        turns, single = np.divmod(blocks - 1, core.accumulator_banks)
        full = every - 1 + core.mvm_cycles + own[1]
        span = np.maximum((blocks - 1) * every, turns * full + single * every)
        return _Cut(groups, blocks, every, span, blocks * every, last, queue, bank, *own, every)

    def _begins(self, number: int) -> list[Column]:
        """From `s` until the last row block enters the tail, for each segment of a stage."""
        cut, begins = self.cuts[number], list[Column]()
        for segment in segments_by_stage(self.cell)[number]:
            if not begins:
                begins.append(self.core.mvm_cycles + np.maximum(cut.span, cut.queue))
                continue
            waits = _of_tails(self.core, partial(self._reduced, number, segment.index))
            begin = begins[-1] + cut.last + 1
            for earlier, cycles in enumerate(waits):
                begin = np.maximum(begin, begins[earlier] + cut.last + cycles)
            begins.append(begin + cut.queue)
        return begins

    def _reduced(self, stage: int, index: int, latency: Latency, width: int) -> list[int]:
        """For each earlier segment of the stage, how long a segment waits for what is reduced there; 0: it does not."""
        waits = [0] * index
        for want in wanted(self.cell, latency, width, stage, index):
            if want.reduced and not want.lag and want.home[0] == stage and want.home[1] < index:
                waits[want.home[1]] = max(waits[want.home[1]], want.cycles)
        return waits

    def _kept(self, stage: int, index: int, latency: Latency, width: int) -> list[int]:
        """How many cycles after its turn of the step before a row block may have its turn, for a state in the tail."""
        wants = wanted(self.cell, latency, width, stage, index)
        return [max([0, *(w.cycles for w in wants if w.lag and not w.reduced and w.home == (stage, index))])]

    def seen(self, node: str) -> Column:
        """From `s` of the stage that makes a vector until all of it is visible."""
        stage, index = segment_of(self.cell, node)
        return self.begins[stage][index] + self.cuts[stage].last + self.depths[self.names.index(node)]

    def reads(self, node: str, first: int, lag: int, groups: Column, rows: Column, after: Column) -> list[_Reads]:
        """The waits of a first row block for a vector of this layer: for its last column group, for the first one, and
        for that in which the last row block begins. What comes out of the tail may be faster or slower than tiles.

        groups, after: column groups of the vector, and those that issue after it, each in so many rows.
        """
        stage, index = segment_of(self.cell, node)
        cut, shown, width, ep = (
            self.cuts[stage],
            self.depths[self.names.index(node)],
            self.layer.width(node),
            self.core.ep,
        )
        reads = [_Reads(first + stage, lag, self.seen(node), rows * after)]
        for group in (0, (cut.blocks - 1) * cut.each // ep):
            unit = np.minimum((group + 1) * ep, width) - 1
            block = unit // cut.each
            begin = self.begins[stage][index]
            if index == 0:
                sooner = self.core.mvm_cycles + np.maximum(block * cut.turns, block * cut.pace)
            else:
                sooner = begin - cut.queue + block * cut.turns
            begin = np.where(block == cut.blocks - 1, begin, sooner)
            turn = (unit - block * cut.each) // self.core.tail_width
            reads.append(_Reads(first + stage, lag, begin + turn + shown, rows * (groups - 1 - group + after)))
        return reads

    def stages(self, above: bool, first: int = 0, below: tuple[int, _Pass] | None = None) -> list[_Stage]:
        """The stages; above: whether there is a layer below.

        first: number of the first of them in the body.
        below: the first stage of the layer that makes x in this body, and that layer; None: x is of another body.
        """
        x_last = below is not None
        made = []
        for number, stage in enumerate(self.cell.stages):
            cut, order = self.cuts[number], list(issue_order(stage, x_last))
            rows = cut.blocks if self.core.block_order == "column" else 1
            reads, outside = list[_Reads](), None
            for place, vector in enumerate(order):
                after = sum((cut.groups[each] for each in order[place + 1 :]), np.asarray(0))
                if vector != "x":
                    node = self.cell.output if vector == "h" else vector
                    reads += self.reads(node, first, int(vector == "h"), cut.groups[vector], rows, after)
                elif below is not None:
                    node = below[1].cell.output
                    reads += below[1].reads(node, below[0], 0, cut.groups["x"], rows, after)
                else:
                    outside = rows * after if above else None
            makes = self.home[0] == number
            closing = self.core.mvm_cycles + 1
            if makes:
                closing = self.core.mvm_cycles + cut.last + self.depths[self.names.index(self.cell.output)]
            frame = number == 0 and not above and order[0] == "x"
            made.append(
                _Stage(
                    *(
                        cut.lead,
                        cut.span,
                        cut.tiles,
                        self.turns[number],
                        cut.blocks,
                        cut.bank,
                        tuple(reads),
                        outside,
                        frame,
                    ),
                    *(self.seen(self.cell.output) if makes else None, closing, self._loops(number)),
                )
            )
        return made

    def _loops(self, number: int) -> tuple[tuple[Column, Column, Column], ...]:
        """The states of a stage that are read where they are made, without a product between."""
        loops = []
        if number == self.home[0]:
            # the tail has all turns of a step to take before it comes to the same row block again
            rest = self.cuts[number].last + self.depths[self.names.index(self.cell.output)]
            loops.append((self.begins[number][self.home[1]], sum(self.turns), rest))
        for segment, begin in zip(segments_by_stage(self.cell)[number], self.begins[number], strict=True):
            (step,) = _of_tails(self.core, partial(self._kept, number, segment.index))
            if np.any(step):
                own = self.home == (number, segment.index)
                rest = self.depths[self.names.index(self.cell.output)] if own else 1
                loops.append((begin, step, self.cuts[number].last + rest))
        return tuple(loops)


class _Cut(NamedTuple):
    """A stage in row blocks and column groups; last: turns of the tail before that of the last unit in its row block.

    queue: turns of the tail of all row blocks but the last.
    each: units of a row block; the turns of one, and tiles from the last one of a block to that of the next.
    """

    groups: Mapping[str, Column]
    blocks: Column
    lead: Column
    span: Column
    tiles: Column
    last: Column
    queue: Column
    bank: Column
    each: Column
    turns: Column
    pace: Column


def _of_tails(core: Cores, question: Callable[[Latency, int], Sequence[int]]) -> list[Column]:
    """What a question about latencies and the width of the tail gives, asked once for each that is different."""
    columns = {**core.latency, "tail_width": core.tail_width}
    varied = [name for name, value in columns.items() if np.ndim(value)]
    if not varied:
        plain = {name: int(value) for name, value in columns.items()}
        return list(question(Latency(**{name: plain[name] for name in core.latency}), plain["tail_width"]))
    key = np.zeros(1, np.int64)
    for name in varied:
        _, own = np.unique(columns[name], return_inverse=True)
        _, key = np.unique(key * (int(own.max()) + 1) + own.reshape(-1), return_inverse=True)
    _, where = np.unique(key, return_index=True)
    answers = []
    for place in where.tolist():
        plain = {name: int(value[place]) if np.ndim(value) else int(value) for name, value in columns.items()}
        answers.append(question(Latency(**{name: plain[name] for name in core.latency}), plain["tail_width"]))
    return [np.array(each, dtype=np.int64)[key] for each in zip(*answers, strict=True)]
