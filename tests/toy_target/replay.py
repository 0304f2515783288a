"""The structural model of the toy: every issue of a trace on real numbers, at the cycles that the trace says."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from lstmsim.base.errors import ReplayError
from lstmsim.machines.structural import Memory, thread_slots_of
from lstmsim.model.cell import segments
from lstmsim.model.numerics.arithmetic import Array
from lstmsim.model.numerics.golden import NetworkRun, PassRun, initial_states
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.scenario import Job, Scenario
from lstmsim.program.operations import Operation
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace


class Work:
    """A job under way: its values by (layer, direction, step, name), with the cycle from which each is there."""

    def __init__(self, job: Job, numbers: JobNumbers, arrived: int) -> None:
        self.job, self.numbers, self.memory = job, numbers, Memory()
        for step, frame in enumerate(numbers.arithmetic[0][0].encode(numbers.stimulus.x)):
            self._write((0, 0, step, "x"), frame, arrived + step * job.frame_interval)
        for number, layer in enumerate(job.model.layers):
            for direction in range(layer.directions):
                states = initial_states(numbers.arithmetic[number][direction], numbers.stimulus, number, direction)
                for name, values in states.items():
                    self._write((number, direction, -1, name), values, 0)

    def _write(self, key: object, values: Array, since: int) -> None:
        self.memory.write(key, slice(0, len(values)), values, np.full(len(values), since), len(values))

    def _read(self, number: int, direction: int, step: int, name: str, cycle: int) -> Array:
        layer = self.job.model.layers[number]
        if name == "x" and number:
            below = range(self.job.model.layers[number - 1].directions)
            return np.concatenate([self._read(number - 1, each, step, "h'", cycle) for each in below])
        if name in layer.cell.states:
            before = step + 1 if layer.backward(direction) else step - 1
            step = before if 0 <= before < self.job.steps else -1
        key = (0, 0, step, "x") if name == "x" else (number, direction, step, name)
        width = layer.width(layer.cell.output if name == "h'" else name)
        return self.memory.read(key, slice(0, width), np.full(width, cycle), f"job {self.job.name}")

    def execute(self, operation: Operation, step: int, start: int) -> None:
        """Products read their vectors as they start, nodes their sums; results are there behind the pipeline."""
        number, direction, _, _, stage = operation.place
        layer, arithmetic = self.job.model.layers[number], self.numbers.arithmetic[number][direction]
        every, since = slice(0, layer.units(layer.cell.stages[stage].rows)), start + operation.result_cycles
        if operation.label == "products":
            for each in layer.cell.stages[stage].sums:
                vectors = [self._read(number, direction, step, name, start) for name in each.vectors]
                parts = [arithmetic.matrix(each.name, name) @ v for name, v in zip(each.vectors, vectors, strict=True)]
                total = arithmetic.add(np.zeros_like(parts[0]), sum(parts[1:], parts[0]))
                self._write((number, direction, step, each.name), arithmetic.adapt(each.name, total, every), since)
            return
        values: dict[str, Array] = {}
        own = [each for each in segments(layer.cell) if each.stage == stage]
        for node in (node for each in own for node in (*each.nodes, *each.reductions, *each.scalars)):
            for name in {*node.sources} - {*values} - {*layer.cell.parameters}:
                values[name] = self._read(number, direction, step, name, start)
            values[node.name] = arithmetic.compute(node, values, every)
            names = {node.name, *(state for state, target in layer.cell.states.items() if target == node.name)}
            for name in names | ({"h'"} if node.name == layer.cell.output else set()):
                self._write((number, direction, step, name), values[node.name], since)

    def result(self, finish: int) -> NetworkRun:
        """All h, as they are there when the job finishes."""
        passes = []
        for number, layer in enumerate(self.job.model.layers):
            runs = []
            for direction in range(layer.directions):
                h = [self._read(number, direction, step, "h'", finish) for step in range(self.job.steps)]
                last = 0 if layer.backward(direction) else self.job.steps - 1
                held = self.memory.held
                states = {name: held[number, direction, last, name].values for name in layer.cell.states}
                runs.append(PassRun(np.stack(h), states))
            passes.append(tuple(runs))
        return NetworkRun(self.numbers.arithmetic, tuple(passes))


def replay(
    scenario: Scenario,
    program: Program,
    trace: Trace,
    numbers: Mapping[int, JobNumbers],
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[int, NetworkRun]:
    thread_slots = thread_slots_of(scenario, program, trace)
    arrived, finish = trace.task("arrived").tolist(), trace.task("finish").tolist()
    works = {task: Work(scenario.jobs[task], each, arrived[task]) for task, each in numbers.items()}
    free = [0] * len(program.cores)
    columns = ("start", "core", "context", "task", "phase", "iteration", "operation", "cycles")
    for row in zip(*(trace.issue(name).tolist() for name in columns), strict=True):
        start, core, context, task, phase, iteration, index, cycles = row
        body = program.tasks[task].phases(program.cores[core].kind)[phase]
        thread_slots.check(task, 0, (core, context), start, start + cycles)
        if start < free[core]:
            raise ReplayError(f"the pipeline of core {core} is busy until {free[core]}, not free at {start}")
        free[core] = start + cycles
        if task in works:
            works[task].execute(body.body.operations[index], body.step(iteration), start)
    return {task: work.result(finish[task]) for task, work in works.items()}
