"""What is kept by unit and not by turn: where two stages do not have a unit in the same lane at the same address.

That is so where the units of a row block are no multiple of the lanes. Such a value goes through a memory that all
lanes share, `npu_unit_memory`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.lanes.layout import CoreLanes, bits_of
from lstmsim.machines.column.rtl.lanes.schedule import Kept

__all__ = ["UnitRead", "UnitWrite", "by_unit", "unit_memories"]


@record
class UnitWrite:
    """A lane's output that goes into a memory by unit.

    kept: what it is.
    name: of the memory.
    bits: of a number.
    cycle: cycles since the turn at whose end it is written.
    segment: number of the segment.
    """

    kept: Kept
    name: str
    bits: int
    cycle: int
    segment: int


@record
class UnitRead:
    """A lane's input that comes from a memory by unit.

    name: of the memory.
    port: of the lane.
    bits: of a number.
    cycle: cycles since the turn at which it is read.
    """

    name: str
    port: str
    bits: int
    cycle: int


def by_unit(core: CoreLanes, kind: int) -> frozenset[Kept]:
    """Give what lanes of a kind cannot keep by turn, because a stage that reads it has units elsewhere."""
    width = core.plan.core.tail_width
    rows = [row for program in core.plan.programs if program for row in program.stages if row.kind == kind]
    uneven = {row.stage for row in rows if row.blocks > 1 and row.units % width}
    return frozenset(kept for kept, giver, reader in core.kinds[kind].schedule.crossings() if uneven & {giver, reader})


def unit_memories(core: CoreLanes, kind: int, writes: Sequence[UnitWrite], reads: Sequence[UnitRead]) -> Iterator[str]:
    """Write the memories by unit of a kind, and the wires between them and the lanes."""
    width, own = core.plan.core.tail_width, f"k{kind}"
    for cycle in sorted({each.cycle for each in writes} | {each.cycle for each in reads}):
        yield from _bases(core, kind, cycle)
    for each in writes:
        ways = [read for read in reads if read.name == each.name]
        for name in (f"e_{each.name}", *(read.port for read in ways)):
            yield f"  wire [{width * each.bits - 1}:0] {own}_{name};"
        yield from _memory(core, kind, each, ways)


def _memory(core: CoreLanes, kind: int, one: UnitWrite, ways: Sequence[UnitRead]) -> Iterator[str]:
    """A memory by unit with one way to write and several to read."""
    own, half = f"k{kind}", core.plan.core.threads * sum(_pass_words(core, kind))
    words = half << one.kept.doubled
    bits = max(1, words.bit_length())

    def base(cycle: int, odd: bool) -> str:
        # of two places that of the step itself is written, that of the step before is read
        upper, lower = (half, 0) if odd else (0, half)
        place = f" + (d_step[(CONVERT+{cycle})*W_STEP] ? {bits}'d{upper} : {bits}'d{lower})"
        return f"{own}_base_{cycle}{place if one.kept.doubled else ''}"

    yield f"  wire [{bits - 1}:0] {own}_{one.name}_to = {base(one.cycle, True)};"
    for number, read in enumerate(ways):
        yield f"  wire [{bits - 1}:0] {own}_{one.name}_from{number} = {base(read.cycle, False)};"
    places = ", ".join(f"{own}_{one.name}_from{number}" for number in reversed(range(len(ways))))
    units = ", ".join(f"d_unit[(CONVERT+{read.cycle})*W_UNIT +: W_UNIT]" for read in reversed(ways))
    data = ", ".join(f"{own}_{read.port}" for read in reversed(ways))
    sizes = f".WIDTH({core.plan.core.tail_width}), .BITS({one.bits}), .WORDS({words}), .READS({len(ways)})"
    now = f"(CONVERT+{one.cycle})*W_UNIT +: W_UNIT"
    yield (
        f"  npu_unit_memory #({sizes}, .W_UNIT(W_UNIT), .W_ADDRESS({bits})) {own}_{one.name} (\n"
        f"    .clock(clock), .write({own}_on{one.segment}_{one.cycle}), .write_base({own}_{one.name}_to),\n"
        f"    .write_unit(d_unit[{now}]), .write_units(d_units[{now}]), .write_data({own}_e_{one.name}),\n"
        f"    .read_base({{{places}}}), .read_unit({{{units}}}), .read_data({{{data}}})\n  );"
    )


def _pass_words(core: CoreLanes, kind: int) -> list[int]:
    """Words of a bank that each pass of a kind takes: those of its largest stage."""
    banks = 1 << bits_of(core.plan.core.tail_width)
    words = [0] * len(core.class_of[kind])
    for program in core.plan.programs:
        for row in program.stages if program else ():
            if row.kind == kind:
                words[row.lane_pass] = max(words[row.lane_pass], -(-row.unit_count // banks))
    return words


def _bases(core: CoreLanes, kind: int, cycle: int) -> Iterator[str]:
    """The address of unit 0 of the thread and pass of the turn of `cycle` cycles ago, without a product."""
    own, words = f"k{kind}", _pass_words(core, kind)
    threads, total = core.plan.core.threads, sum(words)
    bits = max(1, (threads * total).bit_length())
    starts = [sum(words[:number]) for number in range(len(words))]
    row, thread = f"d_row[(CONVERT+{cycle})*W_ROW +: W_ROW]", f"d_thread[(CONVERT+{cycle})*W_THREAD +: W_THREAD]"
    yield f"  wire [P_LANE_PASS_B-1:0] {own}_pass_{cycle} = P_LANE_PASS[{row} * P_LANE_PASS_B +: P_LANE_PASS_B];"
    first = _chosen(f"{own}_pass_{cycle}", starts, bits)
    part = _chosen(thread, [number * total for number in range(threads)], bits)
    yield f"  wire [{bits - 1}:0] {own}_base_{cycle} = ({first}) + ({part});"


def _chosen(name: str, values: Sequence[int], bits: int) -> str:
    text = f"{bits}'d{values[-1]}"
    for number in reversed(range(len(values) - 1)):
        text = f"{name} == {number} ? {bits}'d{values[number]} : {text}"
    return text
