"""Widths of the signals of a design, and the depth of its delay lines."""

from __future__ import annotations

from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.layout import bits_of
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Program
from lstmsim.machines.column.rtl.rows import StageRow

__all__ = ["depth_of", "programs_of", "stages_of", "turns_in", "widths"]


def programs_of(design: Design) -> list[Program]:
    """The programs of all cores, in the order of cores and models."""
    return [program for plan in design.cores for program in plan.programs if program is not None]


def stages_of(design: Design) -> list[StageRow]:
    """The rows of all programs in that order; a row's place is its number in the signals."""
    return [row for program in programs_of(design) for row in program.stages]


def turns_in(plan: CorePlan, units: int) -> int:
    """Turns in which the tail takes some units of a block."""
    return -(-units // plan.core.tail_width)


def depth_of(plan: CorePlan) -> int:
    """The largest depth of a core's delay line: from the choice of a turn until its last result is there."""
    latency = plan.core.latency
    schedules = [Schedule(kind.cell, latency, plan.core.tail_width) for kind in plan.kinds]
    cycles = [depth for schedule in schedules for depth in schedule.depth.values()]
    return latency.convert + max([1, *cycles]) + latency.writeback


def widths(design: Design) -> dict[str, int]:
    """Give the width of each field, the most of all cores."""
    plans, rows = design.cores, stages_of(design)
    reads = [read for row in rows for read in row.reads]
    cores = [plan.core for plan in plans]
    threads = [core.threads for core in cores]
    units = [row.unit_count for row in rows] + [read.elements for read in reads] + [core.ep for core in cores]
    elements = [plan.core.threads * memory.elements for plan in plans for memory in plan.memories]
    return {
        "W_THREAD": bits_of(max(threads) - 1),
        "W_JOB": bits_of(len(design.jobs) - 1),
        "W_JOBS": bits_of(len(design.jobs)),
        "W_ROW": bits_of(len(rows) - 1),
        "W_SEGMENT": bits_of(sum(len(row.segments) for row in rows) - 1),
        "W_READ": bits_of(len(reads) - 1),
        "W_STEP": bits_of(max(job.steps for job in design.jobs)),
        "W_BLOCK": bits_of(max(row.blocks for row in rows)),
        "W_GROUP": bits_of(max(read.groups for read in reads)),
        "W_UNIT": bits_of(max(units)),
        "W_BANK": bits_of(max(core.threads * core.accumulator_banks for core in cores) - 1),
        "W_WEIGHT": bits_of(max(plan.weight_words for plan in plans)),
        "W_FRAME": bits_of(max(plan.frame_words for plan in plans)),
        "W_ELEMENT": bits_of(max([1, *elements])),
        "W_CONSTANT": bits_of(max(plan.constant_words for plan in plans)),
        "W_TURN": bits_of(max(max(plan.core.threads * plan.turns, plan.initial_words) for plan in plans)),
        "W_NUMBER": bits_of(max(turns_in(plan, each) for plan in plans for each in _block_units(plan))),
        "W_COUNTER": bits_of(max(program.counters for program in programs_of(design)) - 1),
    }


def _block_units(plan: CorePlan) -> list[int]:
    units = [row.units for program in plan.programs if program is not None for row in program.stages]
    return units or [1]
