"""The files of a design that depend on its numbers: generated modules, and what the host writes into memories."""

from __future__ import annotations

from collections.abc import Mapping

from lstmsim.machines.column.rtl.lanes.files import lane_files
from lstmsim.machines.column.rtl.memory_maps import memory_rows, number_rows
from lstmsim.machines.column.rtl.passes import passes_of
from lstmsim.machines.column.rtl.picking import data_header, pick_modules
from lstmsim.machines.column.rtl.plan import Design
from lstmsim.machines.column.rtl.readme import readme
from lstmsim.machines.column.rtl.words import constants, frames, hex_text, shifts_of, weights
from lstmsim.model.numerics.jobs import JobNumbers

__all__ = ["written_files"]


def written_files(
    design: Design, numbers: Mapping[int, JobNumbers], version: str, deep: bool = False
) -> dict[str, str]:
    """Give the files by path; of `npu_config.vh` the part that depends on numbers.

    design: the design.
    version: of lstmsim.
    deep: whether the testbench logs numbers within the tail.
    numbers: of every job, by its place in the scenario, in fixed point.

    `InputError` if jobs of one model have different weights, or if a memory is larger than the host's bus addresses.
    """
    passes = passes_of(design, numbers)
    shifts, lanes = shifts_of(design, passes), lane_files(design, numbers, deep)
    return {
        "README.md": readme(design, version, memory_rows(design, passes, shifts), number_rows(design, passes)),
        "rtl/npu_config.vh": data_header(design, shifts),
        "rtl/npu_pick.v": pick_modules(design, shifts),
        "rtl/npu_tail_lane.v": lanes.verilog,
        "sim/npu_deep.vh": lanes.deep,
        "data/weights.hex": hex_text(weights(design, passes)),
        "data/frames.hex": hex_text(frames(design, passes, numbers)),
        "data/constants.hex": hex_text(constants(design, passes, shifts)),
        "data/tables.hex": hex_text(lanes.tables),
        "data/parameters.hex": hex_text(lanes.parameters),
        "data/initial.hex": hex_text(lanes.initial),
    }
