"""`sim/npu_deep.vh`: how the testbench logs numbers within the tail, adapted sums and states, of this design.

It looks into the lanes from outside, so the hardware is the same whether somebody looks or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lstmsim.machines.column.rtl.lanes.lane_module import StateWrite, lane_module
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes

__all__ = ["deep_text"]

_HEAD = "// Logs numbers within the tail; part of npu_tb.v. Written by lstmsim."


def deep_text(cores: Sequence[CoreLanes], deep: bool) -> str:
    """Give the text of the file.

    cores: the lanes of all cores that have any.
    deep: whether anything is logged.
    """
    wires: list[str] = []
    sums: list[str] = []
    states: list[str] = []
    for core in cores if deep else ():
        plan = core.plan
        wires += [f"  localparam D_{plan.number} = C_CONVERT[{plan.number} * C_CONVERT_B +: C_CONVERT_B];"]
        wires += _sum_wires(core)
        sums += _sum_log(core)
        for kind in range(len(plan.kinds)):
            module = lane_module(core, kind)
            for place, each in enumerate(module.states):
                wires.append(_state_wire(core, kind, place, each))
                states += _state_log(core, kind, place, each)
    return "\n".join([_HEAD, *wires, *_task("log_sums", sums), *_task("log_states", states)]) + "\n"


def _task(name: str, lines: Sequence[str]) -> list[str]:
    return [f"  task {name};", "    begin", *lines, "    end", "  endtask"]


def _core(core: CoreLanes) -> str:
    return f"dut.cores[{core.plan.number}].built.core"


def _lanes(core: CoreLanes) -> str:
    return f"{_core(core)}.numbers.datapath.lanes.core_{core.plan.number}.own"


def _field(core: CoreLanes, name: str, cycle: int) -> str:
    """A field of the turn of so many cycles ago."""
    width = f"W_{name.upper().removesuffix('S')}"
    return f"{_core(core)}.d_{name}[(D_{core.plan.number} + {cycle}) * {width} +: {width}]"


def _head(core: CoreLanes, letter: str, cycle: int, more: str = "") -> str:
    """The statement that writes the fields of a line up to its word."""
    number = f"P_NUMBER[{_field(core, 'row', cycle)} * P_NUMBER_B +: P_NUMBER_B]"
    fields = [_field(core, "job", cycle), number, _field(core, "step", cycle)]
    fields += [_field(core, "unit", cycle), _field(core, "units", cycle)]
    listed = ",\n            ".join(fields)
    return f'$fwrite(log_file, "{letter} %0d %0d %0d %0d %0d %0d {more}", cycle,\n            {listed});'


def _sum_wires(core: CoreLanes) -> Iterator[str]:
    """The adapted sums of the turn, those of lanes without a unit and of sums that the stage has not as 0."""
    plan, number, bits = core.plan, core.plan.number, core.precision.tail_bits
    most = max(len(stage.sums) for kind in plan.kinds for stage in kind.cell.stages)
    width = plan.core.tail_width * most * bits
    yield f"  wire [{width - 1}:0] sums_{number} = {_core(core)}.numbers.datapath.sums;"
    yield f"  reg [{width - 1}:0] word_{number};"
    yield f"  integer lane_{number};"
    yield f"  integer many_{number};"


def _sum_log(core: CoreLanes) -> Iterator[str]:
    plan, number, bits = core.plan, core.plan.number, core.precision.tail_bits
    most = max(len(stage.sums) for kind in plan.kinds for stage in kind.cell.stages)
    row, segment = _field(core, "row", 0), _field(core, "segment", 0)
    yield f"      if ({_core(core)}.d_valid[D_{number}]"
    yield f"          && {segment} == P_SEGMENT[{row} * P_SEGMENT_B +: P_SEGMENT_B]) begin"
    yield f"        case ({row})"
    for place, count in _sums_of_rows(core):
        yield f"          {place}: many_{number} = {count};"
    yield f"          default: many_{number} = 0;"
    yield "        endcase"
    yield f"        word_{number} = sums_{number};"
    yield f"        for (lane_{number} = 0; lane_{number} < {plan.core.tail_width * most};"
    yield f"            lane_{number} = lane_{number} + 1)"
    yield f"          if (lane_{number} / {most} >= {_field(core, 'units', 0)}"
    yield f"              || lane_{number} % {most} >= many_{number})"
    yield f"            word_{number}[lane_{number} * {bits} +: {bits}] = 0;"
    yield f"        {_head(core, 'S', 0)}"
    yield f'        $fwrite(log_file, "%h", word_{number});'
    yield f"        end_line({number});"
    yield "      end"


def _sums_of_rows(core: CoreLanes) -> Iterator[tuple[str, int]]:
    """Each row of the core, by its place in P_, with how many sums its stage has."""
    own = core.plan.number
    for model, program in enumerate(core.plan.programs):
        for one in () if program is None else program.stages:
            place = f"G_ROW[({own} * MODELS + {model}) * G_ROW_B +: G_ROW_B] + {one.number}"
            yield place, len(core.plan.kinds[one.kind].cell.stages[one.stage].sums)


def _state_wire(core: CoreLanes, kind: int, place: int, state: StateWrite) -> str:
    """The values of all lanes side by side, in the cycle at whose end they are kept."""
    name = _name(core, kind, place)
    lanes = (f"{_lanes(core)}.g_k{kind}[{lane}].lane.{state.signal}" for lane in range(core.plan.core.tail_width))
    listed = ",\n    ".join(reversed(list(lanes)))
    width = core.plan.core.tail_width * state.bits
    return (
        f"  wire [{width - 1}:0] {name} = {{\n    {listed}}};\n  reg [{width - 1}:0] {name}_word;\n  integer {name}_i;"
    )


def _name(core: CoreLanes, kind: int, place: int) -> str:
    return f"state_{core.plan.number}_{kind}_{place}"


def _state_log(core: CoreLanes, kind: int, place: int, state: StateWrite) -> Iterator[str]:
    name = _name(core, kind, place)
    yield f"      if ({_lanes(core)}.k{kind}_on{state.segment}_{state.cycle}) begin"
    yield f"        {name}_word = {name};"
    yield f"        for ({name}_i = 0; {name}_i < {core.plan.core.tail_width}; {name}_i = {name}_i + 1)"
    yield f"          if ({name}_i >= {_field(core, 'units', state.cycle)})"
    yield f"            {name}_word[{name}_i * {state.bits} +: {state.bits}] = 0;"
    yield f"        {_head(core, 'V', state.cycle, f'{state.number} ')}"
    yield f'        $fwrite(log_file, "%h", {name}_word);'
    yield f"        end_line({core.plan.number});"
    yield "      end"
