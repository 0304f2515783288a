"""`npu_config.vh` as text, what each module includes of it, and the widths of its signals.

Entries of tables have 2^k bits, so that no index needs a product. A module includes the sizes and tables that it reads
and no others: a reader sees what it depends on, and a lint sees nothing that is not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.schedule import Schedule
from lstmsim.machines.column.rtl.plan import CorePlan, Design

#: Bits of an entry that is taken for a localparam of type integer.
INTEGER = 32

_WIDTH = 118


@record
class Column:
    """A column of a table.

    >>> print(column_text(Column("P_BLOCKS", (4, 300, -1))))
    localparam P_BLOCKS_B = 16;
    localparam [47:0] P_BLOCKS = {16'hffff, 16'd300, 16'd4};
    """

    name: str  # its name, such as `P_BLOCKS`
    values: tuple[int, ...]  # its entries; a negative one is written in two's complement
    least_bits: int = 1  # an entry has at least so many bits: those of the signal that it is taken for

    @property
    def entry_bits(self) -> int:
        """Bits of an entry, a power of two."""
        widths = (bits_of(value) if value >= 0 else (-value - 1).bit_length() + 1 for value in self.values)
        bits = max([1, self.least_bits, *widths])
        return 1 << (bits - 1).bit_length()


def bits_of(most: int) -> int:
    """Bits of a signal that holds 0 to `most`; at least 1.

    >>> [bits_of(most) for most in (0, 1, 2, 255, 256)]
    [1, 1, 2, 8, 9]
    """
    return max(1, most.bit_length())


def column_text(column: Column) -> str:
    """Write a column; entry 0 is in the lowest bits."""
    bits = column.entry_bits
    values = column.values or (0,)
    # a negative entry is shown by its bits, all others as they are meant
    words = [f"{bits}'d{value}" if value >= 0 else f"{bits}'h{value & ((1 << bits) - 1):x}" for value in values[::-1]]
    name = column.name
    head = f"localparam {name}_B = {bits};\n"
    whole = f"localparam [{bits * len(values) - 1}:0] {name} = {{{', '.join(words)}}};"
    if len(whole) <= _WIDTH:
        return head + whole
    return head + f"localparam [{bits * len(values) - 1}:0] {name} = {{\n" + wrapped(words, "  ") + "\n};"


def wrapped(words: Sequence[str], indent: str) -> str:
    """Write a list of words, with commas between them, in lines that are not too long."""
    lines = [indent]
    for place, word in enumerate(words):
        text = word + ("," if place < len(words) - 1 else "")
        if lines[-1] != indent and len(lines[-1]) + 1 + len(text) > _WIDTH:
            lines.append(indent)
        lines[-1] += text if lines[-1] == indent else f" {text}"
    return "\n".join(lines)


def number_text(numbers: Iterable[tuple[str, int]]) -> str:
    """Write localparams that are plain numbers, a line each.

    >>> print(number_text([("CORES", 2)]))
    localparam CORES = 2;
    """
    return "\n".join(f"localparam {name} = {value};" for name, value in numbers)


def short_lines(text: str, most: int = 120) -> str:
    """Break the long lines of Verilog at spaces, as far as there are any.

    >>> print(short_lines("  reg one, two, three;", 15))
      reg one, two,
        three;
    """
    return "\n".join(short for line in text.split("\n") for short in _short(line, most))


def _short(line: str, most: int) -> Iterator[str]:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    while len(line) > most and "//" not in line:
        place = line.rfind(" ", len(indent) + 1, most + 1)
        if place < 0:
            break
        yield line[:place]
        line = indent + line[place + 1 :]
    yield line


#: Columns that are in the table of jobs, if the host writes it.
JOB_TABLE = (
    "J_MODEL",
    "J_STEPS",
    "JC_FRAME_START",
    "JC_FRAME_END",
    "JR_X_START",
    "JR_WRITE_START",
    "B_PART",
    "B_FRAMES",
)

#: The number of the table in the host's memory map.
JOB_SPACE = 7


def job_table(known: Mapping[str, str], written: bool) -> tuple[dict[str, str], int, int]:
    """Give the localparams with those of the table in the place of constants, the table as a number, and its words.

    written: whether the host writes the table; else nothing is in it.

    >>> made, number, words = job_table({"J_STEPS": "localparam [7:0] J_STEPS = {4'd2, 4'd3};"}, True)
    >>> made["J_STEPS"], number, words
    ('wire [7:0] J_STEPS = jobs_table[0 +: 8];', 35, 1)
    """
    made, number, at = dict(known), 0, 0
    for name in JOB_TABLE if written else ():
        if name in known:
            bits = 0
            for word in reversed(_ENTRY.findall(known[name])):
                number |= int(word[2] or "0") << at + bits if word[1] == "d" else int(word[2], 16) << at + bits
                bits += int(word[0])
            made[name] = f"wire [{bits - 1}:0] {name} = jobs_table[{at} +: {bits}];"
            at += bits
    sizes = {"JOB_TABLE": int(written), "JOB_TABLE_BITS": max(1, at), "JOB_SPACE": JOB_SPACE}
    own = {name: number_text([(name, value)]) for name, value in sizes.items()}
    return {**own, "jobs_table": f"input wire [{max(1, at) - 1}:0] jobs_table;", **made}, number, -(-at // 32)


_ENTRY = re.compile(r"(\d+)'([dh])([0-9a-f]+)")
_PARAMETER = re.compile(r"^[ \t]*localparam\b[^=;]*?(\w+)\s*=[^;]*;", re.MULTILINE)
_MODULE = re.compile(r"^module\s+(\w+).*?^endmodule\b", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"", re.DOTALL)
#: A name that is no port or parameter of an instance.
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_WHOLE = re.compile(r'^[ \t]*`include "npu_config\.vh"\n', re.MULTILINE)


def localparams(text: str) -> dict[str, str]:
    """Give the localparams of a text: the statement of each by its name, in their order."""
    return {found[1]: found[0].strip() for found in _PARAMETER.finditer(_COMMENT.sub("", text))}


def _needed(text: str, known: Mapping[str, str]) -> str:
    """The statements of what a text names, and of what these name."""
    todo, wanted = _words(text), set[str]()
    while todo:
        name = todo.pop()
        if name in known and name not in wanted:
            wanted.add(name)
            todo |= _words(known[name]) - wanted
    return "".join(f"{statement}\n" for name, statement in known.items() if name in wanted)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(_COMMENT.sub("", text)))


def _modules(verilog: str) -> Iterator[tuple[str, str]]:
    """The modules of a text: name and text of each."""
    for found in _MODULE.finditer(verilog):
        yield found[1], found[0]


def headers(files: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Give `rtl/<module>.vh` of each module that includes it.

    >>> headers({"rtl/a.v": 'module a;\\n`include "a.vh"\\nwire [W:0] x;\\nendmodule'}, {"W": "localparam W = 3;"})
    {'rtl/a.vh': '// What a reads of npu_config.vh.\\nlocalparam W = 3;\\n'}
    """
    return {
        f"rtl/{name}.vh": f"// What {name} reads of npu_config.vh.\n{_needed(text, known)}"
        for path, verilog in files.items()
        if path.endswith(".v")
        for name, text in _modules(verilog)
        if f'`include "{name}.vh"' in text
    }


def inlined(verilog: str, known: Mapping[str, str]) -> str:
    """Put into each generated module what it reads, in the place of the whole `npu_config.vh`."""

    def filled(found: re.Match[str]) -> str:
        return _WHOLE.sub(lambda _: _needed(found[0], known), found[0])

    return _MODULE.sub(filled, verilog)


def firsts(counts: Iterable[int]) -> tuple[int, ...]:
    """Where each part begins in a table that has the parts one after another.

    >>> firsts([2, 3, 1])
    (0, 2, 5)
    """
    return (0, *accumulate(counts))[:-1]


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
    plans, rows = design.cores, design.rows
    reads = [read for row in rows for read in row.reads]
    cores = [plan.core for plan in plans]
    threads = [core.threads for core in cores]
    units = [row.unit_count for row in rows] + [read.elements for read in reads] + [core.ep for core in cores]
    elements = [plan.core.threads * memory.elements for plan in plans for memory in plan.memories]
    return {
        "W_THREAD": bits_of(max(threads) - 1),
        "W_JOB": bits_of(design.job_places - 1),
        "W_JOBS": bits_of(design.job_places if design.capacity else design.posted),
        "W_ROW": bits_of(len(rows) - 1),
        "W_SEGMENT": bits_of(sum(len(row.segments) for row in rows) - 1),
        "W_READ": bits_of(len(reads) - 1),
        "W_STEP": bits_of(design.most_steps),
        "W_BLOCK": bits_of(max(row.blocks for row in rows)),
        "W_GROUP": bits_of(max(read.groups for read in reads)),
        "W_UNIT": bits_of(max(units)),
        "W_BANK": bits_of(max(core.threads * core.accumulator_banks for core in cores) - 1),
        "W_WEIGHT": bits_of(max(max(plan.weight_words, design.weight_words(plan)) for plan in plans)),
        "W_FRAME": bits_of(max(plan.frame_words for plan in plans)),
        "W_ELEMENT": bits_of(max([1, *elements])),
        "W_CONSTANT": bits_of(max(plan.constant_words for plan in plans)),
        "W_TURN": bits_of(max(max(plan.core.threads * plan.turns, plan.initial_words) for plan in plans)),
        "W_NUMBER": bits_of(
            max(turns_in(plan, units) for plan in plans for units in [1, *(row.units for row in plan.stages)])
        ),
        "W_COUNTER": bits_of(max(program.counters for _, program in design.programs) - 1),
        "W_CORE": bits_of(len(plans) - 1),
        "W_CONTEXT": bits_of((len(plans) << bits_of(max(threads) - 1)) - 1),
        "W_SLOT": bits_of(design.memory.prefetch_blocks - 1 if design.memory else 0),
        "W_OUTPUT": bits_of(max(len(plan.memories) for plan in plans) - 1),
    }
