"""What the datapath of a generated NPU takes from the cells: sizes in `npu_config.vh`, and `npu_pick.v`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.lanes_module import TOKEN
from lstmsim.machines.column.rtl.layout import INTEGER, Column, column_text, number_text, wrapped
from lstmsim.machines.column.rtl.plan import CorePlan, Design


@record
class Shifts:
    """How the adapters of a design hold their shifts."""

    bits: int  # width of a held shift
    left: int  # what is added to each shift before it is held; negative if all of them shift far to the right
    # for each stage row the held shift of each of its sums, where rows of a matrix share one; empty where they do not,
    # so that the shifts are held with the other constants
    rows: tuple[tuple[int, ...], ...] = ()


def data_header(design: Design, shifts: Shifts) -> str:
    """Give the part of `npu_config.vh` that depends on numbers."""
    head = "// Sizes of the datapath, by core: sums of a lane, sums of a row that stay apart; shifts of the adapters."
    columns = [
        Column("D_SUMS", tuple(plan.sums for plan in design.cores), INTEGER),
        Column("D_SLOTS", tuple(plan.slots for plan in design.cores), INTEGER),
    ]
    stored = int(not shifts.rows)
    numbers = number_text([("SHIFT_BITS", shifts.bits), ("SHIFTS_STORED", stored), ("ADAPTER_LEFT", shifts.left)])
    return "\n".join([head, numbers, *map(column_text, columns)]) + "\n"


def pick_modules(design: Design, shifts: Shifts) -> str:
    """Give the text of `npu_pick.v`: which sums a turn reads, which a tile adds to, and the lanes of each core."""
    parts = [_HEAD]
    first_row = first_read = 0
    plans = [plan for plan in design.cores if plan.kinds]
    for plan in plans:
        parts += [_pick(plan, first_row, shifts), _slots(plan, first_read)]
        first_row += len(plan.stages)
        first_read += sum(len(row.reads) for row in plan.stages)
    cores = [plan.number for plan in plans]
    parts += [_choice("npu_pick", _PICK_PORTS, cores), _choice("npu_slots", _SLOT_PORTS, cores), _lanes(plans)]
    return "\n".join([*parts, "`endif", ""])


_HEAD = """\
// What the datapath takes from this design's cells. Written by lstmsim.
`default_nettype none
`ifndef NPU_TIMING_ONLY
"""

#: Direction, width and name of the ports.
_PICK_PORTS = (
    ("input wire [W_ROW-1:0]", "row"),
    ("input wire [W_NUMBER-1:0]", "number"),
    ("input wire [ARRAY_ROWS*SLOTS*ACCUMULATOR_BITS-1:0]", "sums"),
    ("output wire [WIDTH*SUMS*ACCUMULATOR_BITS-1:0]", "picked"),
    ("output wire [SUMS*SHIFT_BITS-1:0]", "shifts"),
)
_SLOT_PORTS = (("input wire [W_READ-1:0]", "read"), ("output wire [ARRAY_ROWS*SLOTS-1:0]", "slots"))


def _sizes(core: str, text: str) -> str:
    """Sizes of the core that a module's ports and body name."""
    names = {"ARRAY_ROWS": "C_ROWS", "WIDTH": "C_TAIL_WIDTH", "SUMS": "D_SUMS", "SLOTS": "D_SLOTS", "D": "C_DEPTH"}
    own = {local: name for local, name in names.items() if re.search(rf"(?<![\w.]){local}\b", text)}
    lines = [f"  localparam integer {local} = {name}[{core} * {name}_B +: {name}_B];" for local, name in own.items()]
    return '`include "npu_config.vh"\n' + "\n".join(lines)


def _module(name: str, ports: Sequence[tuple[str, str]], body: str, core: str, parameter: str = "") -> str:
    listed = ", ".join(port for _, port in ports)
    declared = "\n".join(f"  {kind} {port};" for kind, port in ports)
    return f"module {name}{parameter} ({listed});\n{_sizes(core, declared + body)}\n{declared}\n{body}endmodule\n"


def _choice(name: str, ports: Sequence[tuple[str, str]], cores: Sequence[int]) -> str:
    """A module that picks the module of its core."""
    listed = ", ".join(f".{port}({port})" for _, port in ports)
    lines = []
    for core in cores:
        word = "if" if core == cores[0] else "else if"
        lines.append(f"    {word} (CORE == {core}) begin : core_{core}\n      {name}_c{core} own ({listed});\n    end")
    body = "  generate\n" + "\n".join(lines) + "\n  endgenerate\n"
    return _module(name, ports, body, "CORE", " #(parameter CORE = 0)")


def _pick(plan: CorePlan, first: int, shifts: Shifts) -> str:
    """The module that chooses what a turn reads: a part of the array's sums, in the order of lanes and sums."""
    width, slots = plan.core.tail_width, plan.slots
    shapes: dict[tuple[int, int], list[int]] = {}
    turns: dict[tuple[int, int], int] = {}
    for place, row in enumerate(plan.stages, first):
        shapes.setdefault((row.kind, row.stage), []).append(place)
        turns[row.kind, row.stage] = max(turns.get((row.kind, row.stage), 1), -(-row.units // width))
    wide = {key: width * len(plan.kinds[key[0]].cell.stages[key[1]].gates) * slots for key in shapes}
    padded = max([plan.rows * slots, *(wide[key] * turns[key] for key in shapes)])
    lines = [
        "  // Word r * SLOTS + k is sum k of row r; rows of a turn are together. Behind the last row are zeros.",
        f"  wire [{padded}*ACCUMULATOR_BITS-1:0] padded = sums;",
        f"  reg [{max(wide.values(), default=1)}*ACCUMULATOR_BITS-1:0] part;",
        "  reg [WIDTH*SUMS*ACCUMULATOR_BITS-1:0] result;",
        "  integer i;",
        "  always @* begin",
        "    part = 0;",
        "    result = 0;",
        "    case (row)",
    ]
    groups = list(shapes.items())
    for place, (key, places) in enumerate(groups):
        label = "default" if place == len(groups) - 1 else ", ".join(map(str, places))
        lines += _picked(plan, key, label, wide[key], turns[key])
    lines += ["    endcase", "  end", "  assign picked = result;", *_fixed_shifts(shifts, first, len(plan.stages)), ""]
    return _module(f"npu_pick_c{plan.number}", _PICK_PORTS, "\n".join(lines), str(plan.number))


def _fixed_shifts(shifts: Shifts, first: int, count: int) -> list[str]:
    """The shifts of the rows of a core, where they are not among the constants."""
    if not shifts.rows:
        return ["  assign shifts = 0;"]
    lines = ["  reg [SUMS*SHIFT_BITS-1:0] shift;", "  always @*", "    case (row)"]
    own = shifts.rows[first : first + count]
    different = list(dict.fromkeys(own))
    for number, held in enumerate(different):
        places = [str(first + place) for place, each in enumerate(own) if each == held]
        label = "default" if number == len(different) - 1 else ", ".join(places)
        words = ", ".join(f"{shifts.bits}'d{each}" for each in reversed(held))
        lines.append(f"      {label}: shift = {{{words}}};")
    return [*lines, "    endcase", "  assign shifts = shift;"]


def _picked(plan: CorePlan, key: tuple[int, int], label: str, wide: int, turns: int) -> list[str]:
    kind = plan.kinds[key[0]]
    gates = kind.cell.stages[key[1]].gates
    slots = plan.slots
    places = [gate * slots + slot for gate, each in enumerate(gates) for slot in range(len(each.sums))]
    bits = "ACCUMULATOR_BITS"
    lines = [
        f"      {label}: begin // {kind.cell.name}, stage {key[1]}",
        f"        for (i = 0; i < {turns}; i = i + 1)",
        f"          if (number == i) part[0 +: {wide}*{bits}] = padded[i*{wide}*{bits} +: {wide}*{bits}];",
        "        for (i = 0; i < WIDTH; i = i + 1) begin",
    ]
    for own, place in enumerate(places):
        source = f"part[(i*{len(gates) * slots}+{place})*{bits} +: {bits}]"
        lines.append(f"          result[(i*SUMS+{own})*{bits} +: {bits}] = {source};")
    return [*lines, "        end", "      end"]


def _slots(plan: CorePlan, first: int) -> str:
    """The module that says which of each row's sums a tile adds to: a bit for each."""
    patterns: dict[tuple[int, ...], list[int]] = {}
    for place, read in enumerate((read for row in plan.stages for read in row.reads), first):
        patterns.setdefault(read.slots, []).append(place)
    lines = ["  reg [ARRAY_ROWS*SLOTS-1:0] result;", "  always @*", "    case (read)"]
    groups = list(patterns.items())
    for number, (pattern, places) in enumerate(groups):
        label = "default" if number == len(groups) - 1 else ", ".join(map(str, places))
        # a bit for each slot, the first one last; all 0 for a gate that takes nothing
        bits = "".join("01"[each == slot] for slot in reversed(pattern) for each in reversed(range(plan.slots)))
        count = -(-plan.rows // len(pattern))
        lines.append(f"      {label}: result = {{{count}{{{len(bits)}'b{bits}}}}};")
    lines += ["    endcase", "  assign slots = result;", ""]
    return _module(f"npu_slots_c{plan.number}", _SLOT_PORTS, "\n".join(lines), str(plan.number))


def _lanes(plans: Sequence[CorePlan]) -> str:
    """The module that has the lanes of a core; what they write is side by side, in the order of the memories."""
    ports = [
        ("input wire", "clock"),
        ("input wire", "reset"),
        ("input wire", "host_write"),
        ("input wire [31:0]", "host_address"),
        ("input wire [31:0]", "host_data"),
        *((f"input wire [{f'(D+1)*{width}-1' if width else 'D'}:0]", f"d_{name}") for name, width in TOKEN.items()),
        ("input wire [WIDTH*SUMS*TAIL_BITS-1:0]", "sums"),
        ("output wire [MEMORIES*WIDTH*VECTOR_BITS-1:0]", "y"),
    ]
    text = []
    for place, plan in enumerate(plans):
        given = [f".{port}({port})" for _, port in ports[:-1]]
        for kind in plan.kinds:
            for slot, memory in enumerate(kind.memories):
                given.append(f".y_{kind.number}_{slot}(y[{memory}*WIDTH*VECTOR_BITS +: WIDTH*VECTOR_BITS])")
        word = "if" if place == 0 else "else if"
        listed = wrapped(given, "        ")
        text.append(
            f"    {word} (CORE == {plan.number}) begin : core_{plan.number}\n"
            f"      npu_lanes_c{plan.number} #(.D(D)) own (\n{listed}\n      );\n    end"
        )
    memories = "  localparam integer MEMORIES = C_MEMORIES[CORE * C_MEMORIES_B +: C_MEMORIES_B];\n"
    listed = wrapped([port for _, port in ports], "  ")
    declared = "\n".join(f"  {kind} {port};" for kind, port in ports)
    body = "  generate\n" + "\n".join(text) + "\n  endgenerate\n"
    head = f"module npu_lanes #(parameter CORE = 0) (\n{listed}\n);\n{_sizes('CORE', declared + body)}\n"
    return f"{head}{memories}{declared}\n{body}endmodule\n"
