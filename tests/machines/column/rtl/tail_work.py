"""What the tail of a core is told, and what it has to say, as a trace of the simulator says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lstmsim.machines.column.rtl.plan import CorePlan, Design, SegmentRow, StageRow
from lstmsim.machines.column.shape import TAIL
from lstmsim.program.operations import Operation
from lstmsim.program.program import Program
from lstmsim.program.trace import Trace


@dataclass(frozen=True)
class Block:
    """A tail operation of the trace: where it ran, when it started, what it is."""

    start: int
    thread: int
    job: int
    step: int
    row: StageRow
    segment: SegmentRow
    number: int
    arrival: int

    @property
    def units(self) -> int:
        return self.row.last_units if self.number == self.row.blocks - 1 else self.row.units


@dataclass(frozen=True)
class TailWork:
    """The blocks of a core, in the words of the tables.

    design: the design.
    plan: the core.
    row_base, segment_base: for each model, where its rows and segments begin in P_ and S_.
    """

    design: Design
    plan: CorePlan
    row_base: dict[int, int]
    segment_base: dict[int, int]

    @classmethod
    def of(cls, design: Design, core: int) -> TailWork:
        rows = segments = 0
        row_base, segment_base = {}, {}
        for plan in design.cores:
            for program in plan.programs:
                if program is not None:
                    if plan.number == core:
                        row_base[program.model], segment_base[program.model] = rows, segments
                    rows += len(program.stages)
                    segments += sum(len(row.segments) for row in program.stages)
        return cls(design, design.cores[core], row_base, segment_base)

    def blocks(self, program: Program, trace: Trace) -> list[Block]:
        """All blocks of the core, by their start."""
        posted = {job.index: number for number, job in enumerate(self.design.jobs)}
        ends: dict[tuple[int, int, int, int], int] = {}
        names = ("start", "core", "unit", "context", "task", "phase", "iteration", "operation", "count", "cycles")
        issues = list(zip(*(trace.issue(name).tolist() for name in names), strict=True))
        for start, _, _, _, task, phase, iteration, operation, count, cycles in issues:
            ends[task, phase, iteration, operation] = start + (count - 1) * cycles
        blocks = []
        for start, core, unit, context, task, phase, iteration, operation, *_ in issues:
            if core != self.plan.number or unit != TAIL:
                continue
            own: Operation = program.tasks[task].phases(program.cores[core].kind)[phase].body.operations[operation]
            layer, direction, block, _, stage, index = own.place
            job = posted[task]
            its = self.plan.programs[self.design.jobs[job].model]
            assert its is not None
            row = next(
                each for each in its.stages if (each.layer, each.direction, each.stage) == (layer, direction, stage)
            )
            segment = row.segments[index]
            arrival = -1
            if index == 0:
                need = own.needs[0]
                arrival = ends[task, phase, iteration, need.operation] + need.delay
            blocks.append(Block(start, context, job, iteration, row, segment, block, arrival))
        return sorted(blocks, key=lambda each: each.start)

    def tokens(self, blocks: list[Block]) -> Iterator[str]:
        """What the tail is told, a line a block."""
        core = self.plan.core
        for each in sorted((one for one in blocks if one.arrival >= 0), key=lambda one: one.arrival):
            turns = each.number * -(-each.row.units // core.tail_width)
            model = self.design.jobs[each.job].model
            fields = (
                each.arrival - core.latency.convert,
                each.thread,
                each.job,
                self.row_base[model] + each.row.number,
                each.step,
                each.number,
                each.thread * core.accumulator_banks,
                each.row.turn_base + turns,
                each.number * each.row.units,
                each.units,
                each.row.constant_base + turns,
                self._written(each),
            )
            yield " ".join(map(str, fields))

    def lines(self, blocks: list[Block], trace: Trace) -> list[str]:
        """What the tail has to say."""
        every = [line for each in blocks for line in self._block(each)]
        for job in self.design.jobs:
            core, context, finish = (int(trace.task(name)[job.index]) for name in ("core", "context", "finish"))
            if core == self.plan.number:
                every.append(f"E {finish - 1} {context}")
        return sorted(every)

    def _block(self, each: Block) -> Iterator[str]:
        width, job = self.plan.core.tail_width, self.design.jobs[each.job]
        turns = -(-each.units // width)
        last_block, last_step = each.number == each.row.blocks - 1, each.step == job.steps - 1
        for turn in range(turns):
            unit = each.number * each.row.units + turn * width
            count = min(width, each.units - turn * width)
            flags = (each.step == 0, turn == turns - 1, last_block, last_step)
            yield " ".join(
                map(
                    str,
                    (
                        "T",
                        each.start + turn,
                        each.thread,
                        each.job,
                        self.row_base[job.model] + each.row.number,
                        self.segment_base[job.model] + each.segment.number,
                        each.step,
                        each.number,
                        turn,
                        unit,
                        count,
                        "".join(str(int(flag)) for flag in flags),
                    ),
                )
            )
            for write in each.segment.writes:
                at = each.start + turn + write.visible_cycles - 1
                base = self._written(each) if write.kept == "all" else write.base + each.step % 2 * write.stride
                part = each.thread * self.plan.memories[write.memory].elements
                last = int(last_block and turn == turns - 1)
                place = f"{unit + count} {last} {part + base + unit} {count}"
                yield f"W {at} {write.memory} {each.thread} {write.counter} {place}"
        if each.segment.index == 0:
            yield f"F {each.start + turns - 1} {each.thread}"

    def _written(self, each: Block) -> int:
        """Address of unit 0 of the step, where all steps are kept."""
        row = self.plan.jobs[each.job]
        assert row is not None
        strides = [write.stride for one in each.row.segments for write in one.writes if write.kept == "all"]
        return row.write_starts[each.row.number] + each.step * strides[0] if strides else 0
