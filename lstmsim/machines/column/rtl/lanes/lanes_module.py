"""All lanes of a core as one module, what the host writes into them, and how the testbench logs what is within.

The log (`sim/npu_deep.vh`) looks into the lanes from outside: the hardware is the same whether somebody looks or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lstmsim.machines.column.rtl.lanes import lane_module
from lstmsim.machines.column.rtl.lanes.lane import CoreLanes, Pass, bits_of, chosen, unit_memories
from lstmsim.machines.column.rtl.lanes.netlist import safe
from lstmsim.machines.column.rtl.layout import depth_of, short_lines
from lstmsim.machines.column.rtl.plan import Design, StageRow
from lstmsim.model.numerics.fixed import FixedArithmetic
from lstmsim.model.numerics.golden import initial_states
from lstmsim.model.numerics.jobs import JobNumbers
from lstmsim.model.numerics.weights import Stimulus

#: Name of a file of words -> its space on the host's bus; lanes decode the last three.
SPACES = {"weights": 1, "frames": 2, "constants": 3, "tables": 4, "parameters": 5, "initial": 6}

#: Fields of the delay line of turns, and the localparam of their width ("": one bit).
TOKEN: Mapping[str, str] = {
    "valid": "",
    "thread": "W_THREAD",
    "job": "W_JOB",
    "row": "W_ROW",
    "segment": "W_SEGMENT",
    "step": "W_STEP",
    "block": "W_BLOCK",
    "bank": "W_BANK",
    "turn": "W_TURN",
    "number": "W_NUMBER",
    "unit": "W_UNIT",
    "units": "W_UNIT",
    "constant": "W_CONSTANT",
    "parameter": "W_TURN",
    "write": "W_ELEMENT",
    "zero": "",
    "initial": "",
    "last_turn": "",
    "last_block": "",
    "last_step": "",
}


def core_text(core: CoreLanes) -> str:
    """Write the modules of the lanes of a core; `npu_lanes_c<core>` is the one that others see."""
    modules = [lane_module.lane_module(core, kind) for kind in range(len(core.kinds))]
    scalars = [lane_module.scalar_module(core, kind, each.controls) for kind, each in enumerate(modules)]
    texts = [each.text for each in (*modules, *scalars) if each]
    return "\n".join([*texts, _lanes(core, modules, scalars)])


def _lanes(core: CoreLanes, modules: Sequence[lane_module.Module], scalars: Sequence[lane_module.Module | None]) -> str:
    width, plan, sums = core.plan.core.tail_width, core.plan, core.plan.sums
    ports = [lane_module.Port(name, "") for name in ("clock", "reset", "host_write")]
    ports += [lane_module.Port(name, "[31:0]") for name in ("host_address", "host_data")]
    ports += [lane_module.Port(f"d_{name}", f"[(D+1)*{bits}-1:0]" if bits else "[D:0]") for name, bits in TOKEN.items()]
    ports.append(lane_module.Port("sums", f"[{width * sums * core.precision.tail_bits - 1}:0]"))
    vector = width * core.precision.vector_bits
    ports += [
        lane_module.Port(f"y_{kind.number}_{slot}", f"[{vector - 1}:0]", output=True)
        for kind in plan.kinds
        for slot in range(len(kind.outputs))
    ]
    body = ["  genvar l;", *_host(core)]
    for kind, (module, scalar) in enumerate(zip(modules, scalars, strict=True)):
        written = [(f"on{each.segment}", each.cycle, "") for each in module.unit_writes]
        body += _turn(core, kind, [*module.controls, *(scalar.controls if scalar else ()), *written])
        body += unit_memories(core, kind, module.unit_writes, module.unit_reads)
        if scalar:
            body += _scalars(core, kind, module, scalar)
        body += _instances(core, kind, module, sums)
    if any("CONVERT" in each for each in body):
        body.insert(0, f"  localparam CONVERT = {plan.core.latency.convert};")
    text = lane_module.module_text(
        f"npu_lanes_c{plan.number} #(parameter D = {depth_of(plan)})", ports, "\n".join(body)
    )
    return (
        f"// All lanes of core {plan.number}. Entry CONVERT of the delay line d_* is the turn in its own cycle.\n{text}"
    )


def _host(core: CoreLanes) -> Iterator[str]:
    """What the host writes."""
    yield "  wire [3:0] space = host_address[31:28];"
    if core.tables:
        yield from _table_writes(core)
    lane, own = core.lane_bits, {"parameter": len(core.parameters)}
    if core.plan.initial_words:
        own["initial"] = len(core.states)
    for name, count in own.items():
        if count:
            low = bits_of(count)
            space = SPACES["parameters" if name == "parameter" else name]
            yield f"  // {name}: address of the turn, lane, number"
            yield f"  wire [23:0] {name}_place = host_address[23:0] >> {low + lane};"
            yield f"  wire [{max(1, lane) - 1}:0] {name}_lane = {_field('host_address', low, lane)};"
            for number in range(count):
                yield (
                    f"  wire {name}_{number} = host_write && space == 4'd{space}"
                    f" && {_field('host_address', 0, low)} == {max(1, low)}'d{number};"
                )


def _field(name: str, low: int, bits: int) -> str:
    return f"{name}[{low + bits - 1}:{low}]" if bits else "1'd0"


def _table_writes(core: CoreLanes) -> Iterator[str]:
    part, where, number = core.part_bits, core.table_bits + core.cell_bits, bits_of(len(core.tables))
    yield "  // tables: number of the node, table, cell, part; a word of two parts is written with the last one"
    last = ""
    if part:
        yield "  reg [31:0] table_low;"
        yield "  always @(posedge clock) if (host_write) table_low <= host_data;"
        yield f"  wire [{core.word_bits - 1}:0] table_word = {{host_data[{core.word_bits - 33}:0], table_low}};"
        last = " && host_address[0]"
    else:
        yield f"  wire [{core.word_bits - 1}:0] table_word = host_data[{core.word_bits - 1}:0];"
    yield f"  wire [{where - 1}:0] table_address = host_address[{part + where - 1}:{part}];"
    yield f"  wire [{len(core.tables) - 1}:0] table_write;"
    for each in range(len(core.tables)):
        chosen = f"{_field('host_address', part + where, number)} == {max(1, number)}'d{each}"
        yield f"  assign table_write[{each}] = host_write && space == 4'd{SPACES['tables']}{last} && {chosen};"


def _turn(core: CoreLanes, kind: int, controls: Sequence[tuple[str, int, str]]) -> Iterator[str]:
    """What the turns in the delay line are to a kind of cell: its segments and the classes of its passes."""
    lanes, own = core.kinds[kind], f"k{kind}"
    yield f"  // kind {kind}: {lanes.schedule.cell.name}"
    last: dict[str, int] = {}
    for field, cycle, _ in controls:
        field = field.replace("ends", "on")
        if field == "class" or field.startswith("on"):
            last[field] = max(cycle, last.get(field, 0))
    row, segment = "d_row[CONVERT*W_ROW +: W_ROW]", "d_segment[CONVERT*W_SEGMENT +: W_SEGMENT]"
    for field, cycle in sorted(last.items()):
        if field == "class":
            bits = max(1, bits_of(len(lanes.numbers)))
            yield f"  wire [P_LANE_PASS_B-1:0] {own}_pass = P_LANE_PASS[{row} * P_LANE_PASS_B +: P_LANE_PASS_B];"
            yield f"  wire [{bits - 1}:0] {own}_class_0 = {chosen(own + '_pass', core.class_of[kind], bits)};"
        else:
            bits, number = 1, int(field[2:])
            yield (
                f"  wire {own}_{field}_0 = d_valid[CONVERT] && P_KIND[{row} * P_KIND_B +: P_KIND_B] == {kind}\n"
                f"    && S_LANE_SEGMENT[{segment} * S_LANE_SEGMENT_B +: S_LANE_SEGMENT_B] == {number};"
            )
        yield from _delayed(f"{own}_{field}", bits, cycle)


def _delayed(name: str, bits: int, cycles: int) -> Iterator[str]:
    """Registers `name_1` to `name_<cycles>` after the wire `name_0`."""
    if cycles:
        width = f"[{bits - 1}:0] " if bits > 1 else ""
        yield f"  reg {width}{', '.join(f'{name}_{each}' for each in range(1, cycles + 1))};"
        yield "  always @(posedge clock) begin"
        yield from (f"    {name}_{each} <= {name}_{each - 1};" for each in range(1, cycles + 1))
        yield "  end"


def _connected(core: CoreLanes, kind: int, field: str, cycle: int) -> str:
    """What is connected to a lane's port for a field of the turn."""
    entry = f"CONVERT{cycle:+d}"
    if field in ("class", "initial_address") or field.startswith(("on", "scalar_")):
        return f"k{kind}_{field}_{cycle}"
    if field.startswith("ends"):
        return f"k{kind}_on{field[4:]}_{cycle} && d_last_turn[{entry}] && d_last_block[{entry}]"
    if field == "first":
        return f"!(|d_block[({entry})*W_BLOCK +: W_BLOCK]) && !(|d_number[({entry})*W_NUMBER +: W_NUMBER])"
    if field in ("turn", "parameter", "thread", "units"):
        width = TOKEN[field]
        return f"d_{field}[({entry})*{width} +: {width}]"
    if field == "odd":
        return f"d_step[({entry})*W_STEP]"
    assert field in ("zero", "initial"), field
    return f"d_{field}[{entry}]"


def _instances(core: CoreLanes, kind: int, module: lane_module.Module, sums: int) -> Iterator[str]:
    """The lanes of a kind, side by side."""
    plan, precision = core.plan, core.precision
    width, cell = plan.core.tail_width, plan.kinds[kind].cell
    for field, cycle, _ in module.controls:
        if field == "initial_address":
            bits = max(1, plan.initial_words.bit_length())
            job = f"{plan.number} * JOBS + d_job[(CONVERT{cycle:+d})*W_JOB +: W_JOB]"
            turn = f"d_parameter[(CONVERT{cycle:+d})*W_TURN +: W_TURN]"
            yield (
                f"  wire [{bits - 1}:0] k{kind}_initial_address_{cycle} =\n"
                f"    JC_INITIAL[({job}) * JC_INITIAL_B +: JC_INITIAL_B] + {turn};"
            )
    joined = [(port.name, _host_wire(core, port.name)) for port in lane_module.host_ports(core)]
    for stage in cell.stages:
        for number, each in enumerate(stage.sums):
            where = f"(l * {sums} + {number}) * {precision.tail_bits} +: {precision.tail_bits}"
            joined.append((f"s_{safe(each.name)}", f"sums[{where}]"))
    joined += [(name, _connected(core, kind, field, cycle)) for field, cycle, name in module.controls]
    bits = precision.vector_bits
    joined += [(f"y_{slot}", f"y_{kind}_{slot}[l * {bits} +: {bits}]") for slot in range(len(plan.kinds[kind].outputs))]
    joined += [
        (f"e_{each.name}", f"k{kind}_e_{each.name}[l * {each.bits} +: {each.bits}]") for each in module.unit_writes
    ]
    joined += [(each.port, f"k{kind}_{each.port}[l * {each.bits} +: {each.bits}]") for each in module.unit_reads]
    joined += [(name, f"k{kind}_{name}[l * {bits} +: {bits}]") for name, bits in module.reductions]
    pairs = ",\n        ".join(f".{name}({wire})" for name, wire in joined)
    yield "  generate"
    yield f"    for (l = 0; l < {width}; l = l + 1) begin : g_k{kind}"
    yield f"      npu_lane_c{plan.number}_k{kind} lane (\n        {pairs}\n      );"
    yield "    end"
    yield "  endgenerate"


def _scalars(core: CoreLanes, kind: int, module: lane_module.Module, scalar: lane_module.Module) -> Iterator[str]:
    """What is one number for all units: what lanes give to it and take from it."""
    width = core.plan.core.tail_width
    joined = [(port.name, _host_wire(core, port.name)) for port in lane_module.table_ports(core)]
    for name, bits in module.reductions:
        yield f"  wire [{width * bits - 1}:0] k{kind}_{name};"
        joined.append((name, f"k{kind}_{name}"))
    joined += [(name, _connected(core, kind, field, cycle)) for field, cycle, name in scalar.controls]
    for field, cycle, name in module.controls:
        if field.startswith("scalar_"):
            bits = lane_module.scalar_bits(core.kinds[kind], field)
            yield f"  wire [{bits - 1}:0] k{kind}_{field}_{cycle};"
            joined.append((name, f"k{kind}_{field}_{cycle}"))
    pairs = ",\n    ".join(f".{name}({wire})" for name, wire in joined)
    yield f"  npu_scalars_c{core.plan.number}_k{kind} k{kind}_scalars (\n    {pairs}\n  );"


def _host_wire(core: CoreLanes, port: str) -> str:
    """What is connected to a lane's port for what the host writes."""
    if port in ("parameter_write", "initial_write"):
        name = port.removesuffix("_write")
        count = len(core.parameters) if name == "parameter" else len(core.states)
        bits = ", ".join(f"{name}_{each}" for each in reversed(range(count))) or "1'b0"
        return f"{{{bits}}} & {{{max(1, count)}{{{name}_lane == l}}}}" if count else "1'b0"
    if port == "host_place":
        places = [name for name, own in (("parameter", core.parameters), ("initial", core.states)) if own]
        if core.plan.initial_words and len(places) == 2:
            return f"space == 4'd{SPACES['parameters']} ? parameter_place : initial_place"
        places = [each for each in places if each == "parameter" or core.plan.initial_words]
        return f"{places[0]}_place" if places else "24'd0"
    return port


#: An address and the data that the host writes there.
Write = tuple[int, int]


def table_writes(core: CoreLanes) -> Iterator[Write]:
    """Yield what the host writes into the tables of activation functions."""
    for number, (kind, node) in enumerate(core.tables):
        lanes = core.kinds[kind]
        own, places = lanes.tables(node)
        for place in dict.fromkeys(places):
            words = own[places.index(place)].words(lanes.bits(node))
            first = ((number << core.table_bits) | place) << core.cell_bits
            for cell, word in enumerate(words):
                for part in range(1 + core.part_bits):
                    address = ((first + cell) << core.part_bits) + part
                    yield _write(core, "tables", address, word >> 32 * part)


def _write(core: CoreLanes, space: str, address: int, data: int) -> Write:
    return SPACES[space] << 28 | core.plan.number << 24 | address, data & 0xFFFFFFFF


def _turns(core: CoreLanes, row: StageRow) -> Iterator[tuple[int, int, int]]:
    """(address of the turn, first unit, units) of all turns of a stage's row blocks."""
    width = core.plan.core.tail_width
    for block in range(row.blocks):
        units = row.units if block < row.blocks - 1 else row.last_units
        for turn in range(-(-units // width)):
            address = row.turn_base + block * -(-row.units // width) + turn
            yield address, block * row.units + turn * width, min(width, units - turn * width)


def parameter_writes(core: CoreLanes, passes: Mapping[Pass, FixedArithmetic]) -> Iterator[Write]:
    """Yield what the host writes into the memories of parameters."""
    for row, model in _rows(core):
        own = passes[model, row.layer, row.direction]
        for number, (kind, name, stage) in enumerate(core.parameters):
            if (kind, stage) == (row.kind, row.stage):
                values = own.parameters[name].tolist()[row.first_unit :]
                yield from _lanes_of(core, row, values, ("parameters", 0, number, len(core.parameters)))


def initial_writes(
    core: CoreLanes, passes: Mapping[Pass, FixedArithmetic], stimuli: Mapping[int, tuple[int, Stimulus]]
) -> Iterator[Write]:
    """Yield what the host writes into the memories of states before the first step."""
    for job, own in enumerate(core.plan.jobs):
        if own is None or own.initial < 0:
            continue
        model, stimulus = stimuli[job]
        for row in (row for row, owner in _rows(core) if owner == model):
            held = initial_states(passes[model, row.layer, row.direction], stimulus, row.layer, row.direction)
            for number, (kind, name, stage) in enumerate(core.states):
                if (kind, stage) == (row.kind, row.stage):
                    values = held[name].tolist()[row.first_unit :]
                    yield from _lanes_of(core, row, values, ("initial", own.initial, number, len(core.states)))


def _rows(core: CoreLanes) -> list[tuple[StageRow, int]]:
    """The rows of all programs of a core, each with its model."""
    return [(row, program.model) for program in core.plan.programs if program for row in program.stages]


def _lanes_of(core: CoreLanes, row: StageRow, values: list[int], where: tuple[str, int, int, int]) -> Iterator[Write]:
    """The writes of one number for each unit; where: space, first address, number of the memory, memories."""
    space, first, number, count = where
    for address, unit, units in _turns(core, row):
        for lane in range(units):
            word = ((first + address) << core.lane_bits | lane) << bits_of(count) | number
            yield _write(core, space, word, values[unit + lane])


_HEAD = "// Logs numbers within the tail; part of npu_tb.v. Written by lstmsim."


def deep_text(cores: Sequence[CoreLanes], deep: bool) -> str:
    """Give the text of the file."""
    wires: list[str] = []
    sums: list[str] = []
    states: list[str] = []
    for core in cores if deep else ():
        plan = core.plan
        wires += [f"  localparam D_{plan.number} = C_CONVERT[{plan.number} * C_CONVERT_B +: C_CONVERT_B];"]
        wires += _sum_wires(core)
        sums += _sum_log(core)
        for kind in range(len(plan.kinds)):
            module = lane_module.lane_module(core, kind)
            for number, each in enumerate(module.states):
                name = f"state_{plan.number}_{kind}_{number}"
                wires.append(_state_wire(core, kind, name, each))
                states += _state_log(core, kind, name, each)
    return "\n".join([_HEAD, *wires, *_task("log_sums", sums), *_task("log_states", states)]) + "\n"


def _task(name: str, lines: Sequence[str]) -> list[str]:
    return [f"  task {name};", "    begin", *lines, "    end", "  endtask"]


def _core(core: CoreLanes) -> str:
    return f"dut.cores[{core.plan.number}].built.core"


def _lanes_deep(core: CoreLanes) -> str:
    return f"{_core(core)}.numbers.datapath.lanes.core_{core.plan.number}.own"


def _field_deep(core: CoreLanes, name: str, cycle: int) -> str:
    """A field of the turn of so many cycles ago."""
    width = f"W_{name.upper().removesuffix('S')}"
    return f"{_core(core)}.d_{name}[(D_{core.plan.number} + {cycle}) * {width} +: {width}]"


def _head(core: CoreLanes, letter: str, cycle: int, more: str = "") -> str:
    """The statement that writes the fields of a line up to its word."""
    number = f"P_NUMBER[{_field_deep(core, 'row', cycle)} * P_NUMBER_B +: P_NUMBER_B]"
    own, *others = (_field_deep(core, name, cycle) for name in ("job", "step", "unit", "units"))
    listed = ",\n            ".join([f"J_PARENT[{own} * J_PARENT_B +: J_PARENT_B]", number, *others])
    return f'$fwrite(log_file, "{letter} %0d %0d %0d %0d %0d %0d {more}", cycle,\n            {listed});'


def _sum_wires(core: CoreLanes) -> Iterator[str]:
    """The adapted sums of the turn, those of lanes without a unit and of sums that the stage has not as 0."""
    plan, number, bits, most = core.plan, core.plan.number, core.precision.tail_bits, core.plan.sums
    width = plan.core.tail_width * most * bits
    yield f"  wire [{width - 1}:0] sums_{number} = {_core(core)}.numbers.datapath.sums;"
    yield f"  reg [{width - 1}:0] word_{number};"
    yield f"  integer lane_{number};"
    yield f"  integer many_{number};"


def _sum_log(core: CoreLanes) -> Iterator[str]:
    plan, number, bits, most = core.plan, core.plan.number, core.precision.tail_bits, core.plan.sums
    row, segment = _field_deep(core, "row", 0), _field_deep(core, "segment", 0)
    yield f"      if ({_core(core)}.d_valid[D_{number}]"
    yield f"          && {segment} == P_SEGMENT[{row} * P_SEGMENT_B +: P_SEGMENT_B]) begin"
    yield f"        case ({row})"
    for row_, model in _rows(core):
        first = f"G_ROW[({number} * MODELS + {model}) * G_ROW_B +: G_ROW_B]"
        count = len(plan.kinds[row_.kind].cell.stages[row_.stage].sums)
        yield f"          {first} + {row_.number}: many_{number} = {count};"
    yield f"          default: many_{number} = 0;"
    yield "        endcase"
    yield f"        word_{number} = sums_{number};"
    yield f"        for (lane_{number} = 0; lane_{number} < {plan.core.tail_width * most};"
    yield f"            lane_{number} = lane_{number} + 1)"
    yield f"          if (lane_{number} / {most} >= {_field_deep(core, 'units', 0)}"
    yield f"              || lane_{number} % {most} >= many_{number})"
    yield f"            word_{number}[lane_{number} * {bits} +: {bits}] = 0;"
    yield f"        {_head(core, 'S', 0)}"
    yield f'        $fwrite(log_file, "%h", word_{number});'
    yield f"        end_line({number});"
    yield "      end"


def _state_wire(core: CoreLanes, kind: int, name: str, state: lane_module.StateWrite) -> str:
    """The values of all lanes side by side, in the cycle at whose end they are kept."""
    lanes = (f"{_lanes_deep(core)}.g_k{kind}[{lane}].lane.{state.signal}" for lane in range(core.plan.core.tail_width))
    listed = ",\n    ".join(reversed(list(lanes)))
    width = core.plan.core.tail_width * state.bits
    return (
        f"  wire [{width - 1}:0] {name} = {{\n    {listed}}};\n  reg [{width - 1}:0] {name}_word;\n  integer {name}_i;"
    )


def _state_log(core: CoreLanes, kind: int, name: str, state: lane_module.StateWrite) -> Iterator[str]:
    # what a reset has cut short is still computed, and written where nobody reads it before the new run has written
    valid = f"{_core(core)}.d_valid[D_{core.plan.number} + {state.cycle}]"
    yield f"      if ({_lanes_deep(core)}.k{kind}_on{state.segment}_{state.cycle} && {valid}) begin"
    yield f"        {name}_word = {name};"
    yield f"        for ({name}_i = 0; {name}_i < {core.plan.core.tail_width}; {name}_i = {name}_i + 1)"
    yield f"          if ({name}_i >= {_field_deep(core, 'units', state.cycle)})"
    yield f"            {name}_word[{name}_i * {state.bits} +: {state.bits}] = 0;"
    yield f"        {_head(core, 'V', state.cycle, f'{state.number} ')}"
    yield f'        $fwrite(log_file, "%h", {name}_word);'
    yield f"        end_line({core.plan.number});"
    yield "      end"


def lane_files(
    design: Design, numbers: Mapping[int, JobNumbers], passes: Mapping[Pass, FixedArithmetic], deep: bool = False
) -> tuple[dict[str, str], dict[str, tuple[Write, ...]]]:
    """The lanes of a design as Verilog files, and the host's writes by the name of their space."""
    stimuli = {number: (job.model, numbers[job.index].stimulus) for number, job in enumerate(design.jobs)}
    cores = [CoreLanes.of(plan, passes, design.precision) for plan in design.cores if plan.kinds]
    head = "// The lanes of the tail, written from the graphs of the cells and the formats of the passes.\n"
    text = short_lines(head + "`default_nettype none\n\n" + "\n".join(map(core_text, cores)))
    return {"rtl/npu_tail_lane.v": text, "sim/npu_deep.vh": deep_text(cores, deep)}, {
        "tables": tuple(write for core in cores for write in table_writes(core)),
        "parameters": tuple(write for core in cores for write in parameter_writes(core, passes)),
        "initial": tuple(write for core in cores for write in initial_writes(core, passes, stimuli)),
    }
