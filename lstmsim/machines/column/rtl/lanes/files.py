"""The tail's lanes of a design as files: `rtl/npu_tail_lane.v`, and what the host writes into them."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.contents import Write, initial_writes, parameter_writes, table_writes
from lstmsim.machines.column.rtl.lanes.deep import deep_text
from lstmsim.machines.column.rtl.lanes.lanes_module import core_text
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes, Pass
from lstmsim.machines.column.rtl.layout import short_lines
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.weights import Stimulus

__all__ = ["LaneFiles", "lane_files"]


@record
class LaneFiles:
    """What is written of the lanes of a design.

    verilog: `npu_lanes_c<core>` of every core, with what they are built of.
    deep: how the testbench logs numbers within them.
    tables, parameters, initial: (address, data) of each write of the host.
    """

    verilog: str
    deep: str
    tables: tuple[Write, ...]
    parameters: tuple[Write, ...]
    initial: tuple[Write, ...]


def lane_files(design: Design, numbers: Mapping[int, JobNumbers], deep: bool = False) -> LaneFiles:
    """Write the lanes of a design.

    design: the design.
    numbers: of every job, by its place in the scenario, in fixed point; jobs of a model share their formats.
    deep: whether the testbench logs numbers within them.

    `InputError` if a pass of a core has no numbers.
    """
    passes: dict[Pass, FixedArithmetic] = {}
    stimuli: dict[int, tuple[int, Stimulus]] = {}
    for number, job in enumerate(design.jobs):
        own = numbers[job.index]
        stimuli[number] = job.model, own.stimulus
        for layer, both in enumerate(own.arithmetic):
            for direction, each in enumerate(both):
                assert isinstance(each, FixedArithmetic)
                passes.setdefault((job.model, layer, direction), each)
    cores = [CoreLanes.of(plan, passes, design.precision) for plan in design.cores if plan.kinds]
    head = "// The lanes of the tail, written from the graphs of the cells and the formats of the passes.\n"
    return LaneFiles(
        short_lines(head + "`default_nettype none\n\n" + "\n".join(map(core_text, cores))),
        deep_text(cores, deep),
        tuple(write for core in cores for write in table_writes(core)),
        tuple(write for core in cores for write in parameter_writes(core, passes)),
        tuple(write for core in cores for write in initial_writes(core, passes, stimuli)),
    )
