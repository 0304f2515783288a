"""The plan of a generated NPU: every address at which a tile reads holds the element that it wants."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from lstmsim.machines.column.rtl.plan import CorePlan, Design, Job, JobRow, ReadRow, StageRow
from lstmsim.machines.column.rtl.planning import design as plan_design
from lstmsim.machines.column.rtl.planning import regions
from lstmsim.model.cells import cell
from lstmsim.model.model import Layer, Model
from lstmsim.model.scenario import Scenario
from lstmsim.studies.shared.loading import load_scenario
from tests.studies.rtl.drawn import seeded
from tests.studies.rtl.scenarios import drawn


class Element(NamedTuple):
    """A number that is made once: of a job's layer, direction, time step and node, for a unit."""

    layer: int
    direction: int
    time: int
    node: str
    unit: int


class Memories:
    """The vector memories of a core for one job: it runs through its program as a thread does."""

    def __init__(self, plan: CorePlan, scenario: Scenario, job: Job, row: JobRow) -> None:
        self.plan, self.job, self.row = plan, job, row
        self.model = scenario.jobs[job.index].model
        self.held: dict[tuple[int, int], Element] = {}
        self.counted: dict[int, tuple[tuple[int, int], str]] = {}
        self.frames: set[int] = set()
        program = plan.programs[job.model]
        assert program is not None
        passes = [[row for row in program.stages if row.first_of_pass == first] for first in _firsts(program.stages)]
        if program.interleaved:
            turns = [(step, stages) for step in range(job.steps) for stages in passes]
        else:
            turns = [(step, stages) for stages in passes for step in range(job.steps)]
        for step, stages in turns:
            for stage in stages:
                for read in stage.reads:
                    self.read(stage, read, step)
                self.write(stage, step)

    def time(self, stage: StageRow, step: int) -> int:
        return self.job.steps - 1 - step if stage.backward else step

    def wanted(self, stage: StageRow, read: ReadRow, step: int) -> list[Element]:
        time = self.time(stage, step)
        if read.vector != "x":
            node = self.model.layers[stage.layer].cell.output if read.vector == "h" else read.vector
            before = self.time(stage, step - read.lag)
            return [Element(stage.layer, stage.direction, before, node, unit) for unit in range(read.elements)]
        below = self.model.layers[stage.layer - 1]
        return [
            Element(stage.layer - 1, direction, time, below.cell.output, unit)
            for direction in range(below.directions)
            for unit in range(below.width("h"))
        ]

    def read(self, stage: StageRow, read: ReadRow, step: int) -> None:
        if read.source == "frame":
            first = self.row.frame_start + self.time(stage, step) * read.groups
            assert self.row.frame_start <= first <= self.row.frame_end
            self.frames |= set(range(first, first + read.groups))
            return
        if read.lag and step == 0:
            return
        starts = {
            "two": read.base + read.stride * (step - read.lag & 1),
            "all_x": self.row.x_starts[stage.number] + step * read.stride,
            "all_h": self.row.write_starts[stage.number] + (step - 1) * read.stride,
        }
        start = starts[read.source]
        there = [self.held[read.memory, start + place] for place in range(read.elements)]
        assert there == self.wanted(stage, read, step)
        # the needs cover the elements, each from the pass that makes them
        assert [(need.begin, need.end) for need in read.needs] == _runs(there)
        for need in read.needs:
            other = self.job.steps - 1 - step if need.flipped else step - read.lag
            assert self.counted[need.counter] == (there[need.begin][:2], there[need.begin].node)
            assert _step(self.plan, self.job, there[need.begin]) == other

    def write(self, stage: StageRow, step: int) -> None:
        for segment in stage.segments:
            for write in segment.writes:
                start = write.base + write.stride * (step & 1)
                if write.kept == "all":
                    start = self.row.write_starts[stage.number] + step * write.stride
                units = self.model.layers[stage.layer].width(write.node)
                assert 0 <= start <= self.plan.memories[write.memory].elements - units
                own = (stage.layer, stage.direction)
                assert self.counted.setdefault(write.counter, (own, write.node)) == (own, write.node)
                for unit in range(units):
                    element = Element(*own, self.time(stage, step), write.node, unit)
                    self.held[write.memory, start + unit] = element


def _firsts(stages: tuple[StageRow, ...]) -> list[int]:
    return list(dict.fromkeys(each.first_of_pass for each in stages))


def _runs(elements: list[Element]) -> list[tuple[int, int]]:
    """Where elements of one pass begin and end."""
    begins = [i for i, each in enumerate(elements) if i == 0 or each[:2] != elements[i - 1][:2]]
    return list(zip(begins, [*begins[1:], len(elements)], strict=True))


def _step(plan: CorePlan, job: Job, element: Element) -> int:
    """In which step of its pass an element is made."""
    program = plan.programs[job.model]
    assert program is not None
    row = next(each for each in program.stages if (each.layer, each.direction) == element[:2])
    return job.steps - 1 - element.time if row.backward else element.time


def _designed(seed: int, whole: bool) -> tuple[Design, Scenario]:
    mapping = seeded(seed) if whole else drawn(seed, 1 + seed % 3)
    for job in mapping["jobs"]:
        job.pop("initial", None)
    scenario = load_scenario(mapping)
    return plan_design(scenario, scenario.precision), scenario


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_tiles_read_what_was_written_for_them(seed: int, whole: bool) -> None:
    design, scenario = _designed(seed, whole)
    for plan in design.cores:
        frames: list[int] = []
        for job, row in zip(design.jobs, plan.jobs, strict=True):
            assert (row is not None) == (plan.number in job.cores)
            if row is not None:
                frames += Memories(plan, scenario, job, row).frames
        # every frame has a place of its own, and no place is left
        assert sorted(frames) == list(range(plan.frame_words))


@pytest.mark.parametrize("seed", range(6))
def test_weights_and_constants_of_all_rows_lie_one_after_another(seed: int) -> None:
    design, _ = _designed(seed, True)
    for plan in design.cores:
        rows = [row for program in plan.programs if program for row in program.stages]
        width = plan.core.tail_width
        turns = [(row.blocks - 1) * -(-row.units // width) + -(-row.last_units // width) for row in rows]
        assert [row.weight_base for row in rows] == [sum(each.tiles for each in rows[:i]) for i in range(len(rows))]
        assert [row.constant_base for row in rows] == [sum(turns[:i]) for i in range(len(rows))]
        assert plan.weight_words == sum(row.tiles for row in rows)
        assert plan.constant_words == sum(turns)
        assert all(row.turn_base + taken <= plan.turns for row, taken in zip(rows, turns, strict=True))


def test_sequences_between_layers_share_their_elements() -> None:
    rnn = cell("rnn")
    layers = (Layer(rnn, 4, 3), Layer(rnn, 5, 4), Layer(rnn, 6, 5), Layer(rnn, 2, 6))
    design = _design_of(Model("m", layers), steps=10)
    kinds = design.cores[0].kinds
    placed = regions(Model("m", layers), kinds, 10)
    ends = [(placed[i, "h'"].base, placed[i, "h'"].end) for i in range(4)]
    # layers 0 and 1 beside each other, 2 in the place of 0 (and more), 3 where 2 is not
    assert ends == [(0, 40), (40, 90), (90, 150), (0, 4)]
    both = regions(Model("m", layers, layer_order="step"), kinds, 10)
    assert [both[i, "h'"].steps for i in range(4)] == [2, 2, 2, 2]


def _design_of(model: Model, steps: int) -> Design:
    mapping = {"kind": "column-npu", "name": "c", "frequency_mhz": 1, "cores": [{"npe": 32, "ep": 4, "vp": 8}]}
    scenario = load_scenario({"chip": mapping, "jobs": [{"model": "lstm-256", "steps": steps}]})
    job = replace(scenario.jobs[0], model=model)
    return plan_design(replace(scenario, jobs=(job,)), scenario.precision)
