"""Turns of the tail with random sums, as close to each other as the contract allows, and what lanes must give."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lstmsim.machines.column.npu import ColumnCore, ColumnNpu
from lstmsim.machines.column.passes import wanted
from lstmsim.machines.column.rtl.lanes.lanes_module import lane_files
from lstmsim.machines.column.rtl.layout import depth_of, widths
from lstmsim.machines.column.rtl.plan import Design, StageRow
from lstmsim.machines.column.rtl.planning import design
from lstmsim.machines.column.rtl.tables import config
from lstmsim.machines.column.rtl.words import passes_of
from lstmsim.machines.column.shape import depths
from lstmsim.model.cell import Cell, segments
from lstmsim.model.model import Layer, Model, Precision
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import initial_states
from lstmsim.model.numerics.jobs import JobData, JobNumbers, fixed_numbers
from lstmsim.model.numerics.weights import Stimulus, random_network, random_stimulus
from lstmsim.model.scenario import Job, Scenario
from tests.machines.column.rtl.bench import numbers as parts
from tests.machines.column.rtl.bench import simulated


@dataclass
class Turn:
    """A turn of the tail, the sums of each lane, and the elements of each output with its delay."""

    cycle: int
    fields: dict[str, int]
    sums: list[list[int]]
    gives: dict[tuple[str, int], list[int]] = field(default_factory=dict)


def numbers_of(models: Sequence[Model], precision: Precision, initial: bool = False) -> dict[int, JobNumbers]:
    """A job a model, with random weights and frames."""
    data = {}
    for index, model in enumerate(models):
        network = random_network(model, seed=index + 1)
        stimulus = random_stimulus(model, 4, seed=index + 1)
        if initial:
            stimulus = _begun(model, stimulus, index)
        data[index] = JobData(network, stimulus, "random", "random")
    return fixed_numbers(data, precision)


def _begun(model: Model, stimulus: Stimulus, index: int) -> Stimulus:
    generator = np.random.default_rng(index)
    given = {
        (number, direction): {name: generator.uniform(-1, 1, layer.width(name)) for name in layer.cell.states}
        for number, layer in enumerate(model.layers)
        for direction in range(layer.directions)
    }
    return replace(stimulus, initial=given)


class Work:
    """The turns of one job of each model, each on a thread of its own, and their golden results."""

    def __init__(
        self, models: Sequence[Model], core: ColumnCore, precision: Precision, seed: int, initial: bool = False
    ) -> None:
        self.random = random.Random(seed)
        self.models, self.core, self.precision = models, core, precision
        self.numbers = numbers_of(models, precision, initial)
        jobs = tuple(Job(f"job{index}", model, 3) for index, model in enumerate(models))
        scenario = Scenario(ColumnNpu("chip", 200, (core,)), jobs)
        self.design: Design = design(scenario, precision, self.numbers)
        self.plan = self.design.cores[0]
        self.turns = self._merged()

    def _sums(self, count: int) -> np.ndarray:
        bits = self.precision.tail_bits
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        chosen = [
            self.random.choice(
                (self.random.randint(low, high), self.random.randint(low // 8, high // 8), low, high, 0, -1)
            )
            for _ in range(count)
        ]
        return np.array(chosen, np.int64)

    def _merged(self) -> list[Turn]:
        """All turns in the order of their cycles: each cycle without a block takes a thread whose block may start."""
        streams = [_Stream(self, thread) for thread in range(len(self.models))]
        cycle, turns = self.core.latency.convert, []
        while any(not each.done for each in streams):
            ready = [each for each in streams if not each.done and each.ready(cycle)]
            if not ready:
                cycle += 1
                continue
            taken = self.random.choice(ready).take(cycle)
            turns += taken
            cycle += len(taken)
        return turns

    def run(self, folder: Path, changed: Callable[[str], str] = str) -> None:
        """Simulate, and hold every output element against the golden one.

        changed: makes another Verilog of the lanes' own.
        """
        made, written = lane_files(self.design, self.numbers, passes_of(self.design, self.numbers))
        files = {"npu_tail_lane.v": changed(made["rtl/npu_tail_lane.v"]), "npu_config.vh": config(self.design)}
        wide, deep, plan, convert = widths(self.design), depth_of(self.plan), self.plan, self.core.latency.convert
        sizes = dict.fromkeys(("valid", "zero", "initial", "last_turn", "last_block"), 1)
        sizes |= {name: wide[f"W_{name.upper()}"] for name in ("thread", "job", "row", "segment", "step", "turn")}
        sizes |= {name: wide[f"W_{name.upper()}"] for name in ("block", "number")}
        sizes |= {"unit": wide["W_UNIT"], "units": wide["W_UNIT"], "parameter": wide["W_TURN"]}
        writes = [each for own in written.values() for each in own]
        first = len(writes)
        at = {each.cycle: each for each in self.turns}
        last = max(at) + deep + 2
        bits, width = self.precision.tail_bits, self.core.tail_width
        most = max(len(stage.sums) for kind in plan.kinds for stage in kind.cell.stages)
        cycles: list[dict[str, int]] = [
            {"host_write": 1, "host_address": address, "host_data": data} for address, data in writes
        ]
        lines = dict.fromkeys(sizes, 0)
        for cycle in range(last):
            turn = at.get(cycle + convert)
            for name, size in sizes.items():
                value = turn.fields[name] if turn else 0
                lines[name] = (lines[name] << size | value) & ((1 << size * (deep + 1)) - 1)
            now = {f"d_{name}": value for name, value in lines.items()}
            now["sums"] = 0
            for lane, own in enumerate(at[cycle].sums if cycle in at else ()):
                for place, value in enumerate(own):
                    now["sums"] |= (value & ((1 << bits) - 1)) << (lane * most + place) * bits
            cycles.append(now)
        inputs = {"host_write": 1, "host_address": 32, "host_data": 32, "sums": width * most * bits}
        inputs |= {f"d_{name}": size * (deep + 1) for name, size in sizes.items()}
        outputs = {
            f"y_{kind.number}_{slot}": width * self.precision.vector_bits
            for kind in plan.kinds
            for slot in range(len(kind.outputs))
        }
        given = simulated(folder, "npu_lanes_c0", {"D": deep}, inputs, outputs, cycles, written=files)[first:]
        checked = 0
        for turn in self.turns:
            for (name, delay), elements in turn.gives.items():
                there = parts(given[turn.cycle + delay][name], self.precision.vector_bits, sign=True)
                assert there[: len(elements)] == elements, (name, turn, there)
                checked += 1
        assert checked


class _Stream:
    """The blocks of a thread: the job of one model, pass after pass, step after step."""

    def __init__(self, work: Work, thread: int) -> None:
        self.work, self.thread, self.model = work, thread, work.models[thread]
        program = work.plan.programs[thread]
        assert program
        self.rows = program.stages
        self.base = sum(len(each.stages) for each in work.plan.programs[:thread] if each)
        self.segment_base = sum(
            len(row.segments) for each in work.plan.programs[:thread] if each for row in each.stages
        )
        own = work.numbers[thread]
        self.states = {
            (layer, direction): initial_states(each, own.stimulus, layer, direction)
            for layer, both in enumerate(own.arithmetic)
            for direction, each in enumerate(both)
        }
        #: cycle of each unit's turn: (row number, segment number, unit, step)
        self.times: dict[tuple[int, int, int, int], int] = {}
        self.blocks = [
            (step, row, index, block)
            for step in range(3)
            for first in sorted({row.first_of_pass for row in self.rows})
            for row in self.rows
            if row.first_of_pass == first
            for index in range(len(row.segments))
            for block in range(row.blocks)
        ]
        self.golden: dict[tuple[int, int], dict[str, np.ndarray]] = {}
        self.before = -1

    @property
    def done(self) -> bool:
        return not self.blocks

    def _arithmetic(self, row: StageRow) -> FixedArithmetic:
        own = self.work.numbers[self.thread].arithmetic[row.layer][row.direction]
        assert isinstance(own, FixedArithmetic)
        return own

    def _values(self, step: int, row: StageRow) -> dict[str, np.ndarray]:
        """All values of the step of the row's pass, from random sums."""
        key = (step, row.first_of_pass)
        if key not in self.golden:
            own, place = self._arithmetic(row), (row.layer, row.direction)
            cell, values = own.layer.cell, dict(self.states[row.layer, row.direction])
            every = {name: slice(0, own.layer.units(name)) for name in ("hidden", "projection")}
            for number, stage in enumerate(cell.stages):
                for each in stage.sums:
                    values[each.name] = self.work._sums(own.layer.units(stage.rows))
                for segment in segments(cell):
                    if segment.stage == number:
                        for node in (*segment.nodes, *segment.reductions, *segment.scalars):
                            values[node.name] = own.compute(node, values, every[stage.rows])
            self.states[place] = {name: values[target] for name, target in cell.states.items()}
            self.golden[key] = values
        return self.golden[key]

    def _units(self, row: StageRow, block: int) -> list[tuple[int, list[int]]]:
        units = row.units if block < row.blocks - 1 else row.last_units
        width = self.work.core.tail_width
        first = block * row.units
        return [
            (place, list(range(first + place * width, first + min(units, (place + 1) * width))))
            for place in range(-(-units // width))
        ]

    def ready(self, cycle: int) -> bool:
        step, row, index, block = self.blocks[0]
        return cycle >= self._earliest(step, row, index, block)

    def _earliest(self, step: int, row: StageRow, index: int, block: int) -> int:
        cell, core = self._arithmetic(row).layer.cell, self.work.core
        earliest = self.before
        rows = {each.stage: each for each in self.rows if each.first_of_pass == row.first_of_pass}
        depth = depths(cell, vars(core.latency), core.tail_width)
        for want in wanted(cell, core.latency, core.tail_width, row.stage, index):
            there = rows[want.home[0]]
            when = step - want.lag
            if when < 0:
                continue
            for place, units in self._units(row, block):
                for unit in units:
                    giver = (there.blocks - 1) * there.units + there.last_units - 1 if want.reduced else unit
                    earliest = max(earliest, self.times[there.number, want.home[1], giver, when] + want.cycles - place)
        if not index:
            # sums come behind all of the vectors that they read
            for vector in cell.stages[row.stage].vectors:
                node, when = (cell.output, step - 1) if vector == "h" else (vector, step)
                if vector == "x" or when < 0:
                    continue
                home = next(
                    (each.stage, each.index) for each in segments(cell) if any(one.name == node for one in each.nodes)
                )
                visible = max(1, depth[node] + core.latency.writeback)
                there = rows[home[0]]
                for unit in range(there.unit_count):
                    turn = self.times[there.number, home[1], unit, when]
                    earliest = max(earliest, turn + visible + core.latency.mvm_cycles(core.ep))
        return earliest

    def take(self, cycle: int) -> list[Turn]:
        step, row, index, block = self.blocks.pop(0)
        own, work = self._arithmetic(row), self.work
        cell = own.layer.cell
        values = self._values(step, row)
        turns = []
        kind = work.plan.kinds[row.kind]
        depth = depths(cell, vars(work.core.latency), work.core.tail_width)
        every = self._units(row, block)
        per_block = -(-row.units // work.core.tail_width)
        for place, units in every:
            for unit in units:
                self.times[row.number, index, unit, step] = cycle + place
            address = row.turn_base + block * per_block + place
            fields = {
                "valid": 1,
                "thread": self.thread,
                "job": self.thread,
                "row": self.base + row.number,
                "segment": self.segment_base + row.segments[index].number,
                "step": step,
                "turn": self.thread * work.plan.turns + address,
                "unit": units[0],
                "units": len(units),
                "parameter": address,
                "zero": int(step == 0 and work.plan.jobs[self.thread].initial < 0),  # type: ignore[union-attr]
                "initial": int(step == 0 and work.plan.jobs[self.thread].initial >= 0),  # type: ignore[union-attr]
                "last_turn": int(place == len(every) - 1),
                "last_block": int(block == row.blocks - 1),
                "block": block,
                "number": place,
            }
            sums = [[int(values[each.name][unit]) for each in cell.stages[row.stage].sums] for unit in units]
            turn = Turn(cycle + place, fields, sums if not index else [])
            segment = next(each for each in segments(cell) if (each.stage, each.index) == (row.stage, index))
            for slot, node in enumerate(kind.outputs):
                if any(each.name == node for each in segment.nodes):
                    delay = max(1, depth[node] + work.core.latency.writeback) - 1
                    name = f"y_{kind.number}_{slot}"
                    turn.gives[name, delay] = [int(values[node][unit]) for unit in units]
            turns.append(turn)
        self.before = cycle + len(turns)
        return turns


def models_of(*cells: Cell, hidden: Sequence[int] = (5, 7, 3)) -> list[Model]:
    """A model of one layer for each cell."""
    sizes = [hidden[number % len(hidden)] for number in range(len(cells))]
    return [
        Model(f"m{number}", (Layer(cell, size, 3, projection=4 if cell.projected else None),))
        for number, (cell, size) in enumerate(zip(cells, sizes, strict=True))
    ]
