"""How each job begins on each core, a constant word in `npu_issue.vh`: two tiles, the third place of the loop nest.

A thread keeps two tiles ready, so it must know them in the cycle in which it takes a job. The Verilog of the loop nest
(`npu_nest.v`) has all other tiles; `verilog/npu_words.vh` has their widths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lstmsim.base.records import record
from lstmsim.machines.column.rtl.layout import Column, bits_of, column_text, firsts, number_text, turns_in, widths
from lstmsim.machines.column.rtl.plan import CorePlan, Design, Job, JobRow, Program, ReadRow, StageRow
from lstmsim.machines.column.rtl.tables import write_stride

#: A field: its value and its width.
_Field = tuple[int, int]


def _packed(fields: Iterable[_Field]) -> _Field:
    """Fields side by side, the first one highest; a value wraps as in the hardware."""
    value = bits = 0
    for one, width in fields:
        value, bits = value << width | one & (1 << width) - 1, bits + width
    return value, bits


@record
class _Place:
    """A place in the loop nest, as `npu_nest.v` has it; row and read count from the program's and the row's first."""

    row: int
    pass_row: int
    weight: int
    frame_base: int
    x_base: int
    write_base: int
    own_base: int
    read: int = 0
    step: int = 0
    block: int = 0
    group: int = 0
    frame_stride: int = 0
    x_stride: int = 0
    offset: int = 0  # offset, turn_offset, unit, bank: of the group and the block
    turn_offset: int = 0
    unit: int = 0
    bank: int = 0
    row_bank: int = 0


#: Fields of a place in the order of its word, each with its width.
_PLACE = (
    "row=ROW pass_row=ROW read=READ step=STEP block=BLOCK group=GROUP weight=WEIGHT frame_base=FRAME "
    "frame_stride=FRAME x_base=ELEMENT x_stride=ELEMENT write_base=ELEMENT own_base=ELEMENT offset=UNIT "
    "turn_offset=TURN unit=UNIT bank=BANK row_bank=BANK"
)


@record
class Nest:
    """The loop nest of a job."""

    plan: CorePlan  # the core
    program: Program  # what the model does there
    first_row: int  # the program's first place in P_
    reads: tuple[int, ...]  # the first place in R_ of each row
    number: int  # of the job
    job: Job  # job, own: the job, and on this core
    own: JobRow
    wide: Mapping[str, int]  # widths of the signals
    checks: int  # counters that a tile may wait for
    step_shift: int  # of `Design`

    def word(self) -> _Field:
        """How the job begins: the word and its width."""
        first = self._first()
        second, single = self._next(first)
        third, couple = self._next(second)
        tiles = [field for place in (first, second) for field in (self._tile(place), self._waits(place))]
        fields = [*tiles, self._packed_place(third)]
        return _packed([*fields, (int(single), 1), (int(couple), 1)])

    def frames(self) -> int:
        """How many frames the first tile waits for."""
        row = self.program.stages[0]
        if row.reads[0].source != "frame":
            # what another member gives is not there yet: more frames than the job has
            return 0 if row.reads[0].lag or not row.reads[0].needs else self.job.steps + 1
        return self.job.steps if row.backward else 1

    def _first(self) -> _Place:
        start, write = _start(self.own.x_starts, 0), _start(self.own.write_starts, 0)
        return _Place(0, 0, self.program.stages[0].weight_base, self._frame_start(0), start, write, write)

    def _frame_start(self, row: int) -> int:
        return self.own.frame_end if self.program.stages[row].backward else self.own.frame_start

    def _at(self, place: _Place) -> tuple[bool, StageRow, ReadRow]:
        """Whether the place has the last group of its read; its row; its read."""
        row = self.program.stages[place.row]
        read = row.reads[place.read]
        return place.group == read.groups - 1, row, read

    def _tile(self, place: _Place) -> _Field:
        """The tile and its block's word."""
        last_group, row, read = self._at(place)
        before = bool(read.lag) and place.step == 0
        last = place.read == len(row.reads) - 1 and last_group
        frame = _start(self.own.h_starts, place.row) if before else place.frame_base
        time = self.job.steps - 1 - place.step if row.backward else place.step
        before_time = time + read.lag * (1 if row.backward else -1)
        apart = before_time << self.step_shift if self.program.timed else place.step & 1 ^ read.lag and read.stride
        two = read.base + apart
        start = {"all_x": place.x_base, "all_h": place.own_base}.get(read.source, two)
        values = [
            *(("JOB", self.number), ("ROW", self.first_row + place.row), ("READ", self.reads[place.row] + place.read)),
            *(("STEP", place.step), ("BLOCK", place.block), ("GROUP", place.group), ("WEIGHT", place.weight)),
            *(("FRAME", frame + place.group), ("ELEMENT", start + place.offset)),
            *(("UNIT", 0 if before and self.own.initial < 0 else self._width(place)), ("BANK", place.bank)),
        ]
        flags = [place.read == 0 and place.group == 0, last, before]
        write = time << self.step_shift if self.program.timed else place.write_base
        units = row.last_units if place.block == row.blocks - 1 else row.units
        block = [
            *(("TURN", row.turn_base + place.turn_offset), ("UNIT", place.unit), ("UNIT", units)),
            *(("CONSTANT", row.constant_base + place.turn_offset), ("ELEMENT", write)),
        ]
        return _packed([*self._fields(values), *((int(each), 1) for each in flags), *self._fields(block)])

    def _fields(self, values: Iterable[tuple[str, int]]) -> list[_Field]:
        return [(value, self.wide[f"W_{name}"]) for name, value in values]

    def _width(self, place: _Place) -> int:
        """Elements of the column group."""
        last_group, _, read = self._at(place)
        ep = self.plan.core.ep
        return read.elements - (read.groups - 1) * ep if last_group else ep

    def _waits(self, place: _Place) -> _Field:
        _, row, read = self._at(place)
        frame = self.job.steps - 1 - place.step if row.backward else place.step
        end = place.offset + self._width(place)
        fields: list[_Field] = []
        for need in read.needs:
            one = not (read.lag and place.step == 0) and need.begin < end and need.end > place.offset
            step = self.job.steps - 1 - place.step if need.flipped else place.step - read.lag
            units = min(need.end, end) - need.begin
            own = self._fields([("COUNTER", need.counter), ("STEP", step), ("UNIT", units)])
            fields = [(int(one), 1), *own, *fields]
        none = self._fields([("COUNTER", 0), ("STEP", 0), ("UNIT", 0)])
        fields = [(0, 1), *none] * (self.checks - len(read.needs)) + fields
        return _packed([(int(read.source == "frame"), 1), *self._fields([("STEP", frame)]), *fields])

    def _packed_place(self, place: _Place) -> _Field:
        firsts = {"row": self.first_row, "pass_row": self.first_row, "read": self.reads[place.row]}
        names = [each.split("=") for each in _PLACE.split()]
        fields = self._fields((width, getattr(place, name) + firsts.get(name, 0)) for name, width in names)
        return _packed([*fields, *((int(each), 1) for each in self._ends(place))])

    def _ends(self, place: _Place) -> tuple[bool, ...]:
        """What ends there: the read's groups, the row's blocks, its groups of all reads, the row, the job's steps."""
        last_group, row, _ = self._at(place)
        last_block = place.block == row.blocks - 1
        last_tile = last_group and place.read == len(row.reads) - 1
        return last_group, last_block, last_tile, last_tile and last_block, place.step == self.job.steps - 1

    def _next(self, place: _Place) -> tuple[_Place, bool]:
        """The next place, and whether there is none."""
        last_group, row, read = self._at(place)
        in_rows = self.plan.core.block_order == "row"
        last_block = place.block == row.blocks - 1
        last_tile = place.read == len(row.reads) - 1 and last_group
        if last_tile and last_block:
            return self._next_row(place)
        if last_tile if in_rows else not last_block:
            turns = turns_in(self.plan, row.units)
            to = replace(
                place,
                block=place.block + 1,
                turn_offset=place.turn_offset + turns,
                unit=place.unit + row.units,
                bank=self._bank_behind(place),
            )
        elif in_rows:
            to = place
        else:
            to = replace(place, block=0, turn_offset=0, unit=0, bank=place.row_bank)
        if in_rows or last_block:
            if last_group:
                to = replace(to, group=0, offset=0, read=0 if last_tile else place.read + 1)
            else:
                to = replace(to, group=place.group + 1, offset=place.offset + self.plan.core.ep)
        return self._moved(replace(to, weight=place.weight + 1), read), False

    def _bank_behind(self, place: _Place) -> int:
        return (place.bank + 1) % self.plan.core.accumulator_banks

    def _moved(self, place: _Place, read: ReadRow) -> _Place:
        """From one step to the next, as far as the reads of the step have said it."""
        frame = read.groups if read.source == "frame" else place.frame_stride
        return replace(place, frame_stride=frame, x_stride=read.stride if read.source == "all_x" else place.x_stride)

    def _next_row(self, place: _Place) -> tuple[_Place, bool]:
        """Behind the last tile of a row."""
        _, row, read = self._at(place)
        woven, rows = self.program.interleaved, self.program.stages
        bank = self._bank_behind(place)
        to = replace(self._moved(place, read), read=0, block=0, group=0, offset=0, turn_offset=0, unit=0, bank=bank)
        to = replace(to, row_bank=bank)
        last_row, last_step = row is rows[-1], place.step == self.job.steps - 1
        if not (last_row if woven else row.last_of_pass):
            to = replace(to, row=place.row + 1)
        elif not last_step:
            frame = -to.frame_stride if row.backward else to.frame_stride
            to = replace(
                to,
                row=0 if woven else place.pass_row,
                step=place.step + 1,
                frame_base=place.frame_base + frame,
                x_base=place.x_base + to.x_stride,
                write_base=place.write_base + write_stride(self.program, row),
                own_base=place.write_base,
            )
        elif woven or last_row:
            return place, True
        else:
            behind = place.row + 1
            to = replace(
                to,
                row=behind,
                pass_row=behind,
                step=0,
                frame_base=self._frame_start(behind),
                x_base=_start(self.own.x_starts, behind),
                write_base=_start(self.own.write_starts, behind),
            )
        return replace(to, weight=rows[to.row].weight_base), False


def _start(starts: tuple[int, ...], row: int) -> int:
    """The beginning for a row, 0 where there is none."""
    return max(0, starts[row]) if row < len(starts) else 0


_HEAD = """\
// How each job begins, at core * JOBS + job: first tile with its block's word and what it waits for, the same of the
// second tile, the place of the third, whether the job has one tile, whether it has two.
// B_PART has these words, of B_WORD_B bits each, in parts. B_FRAMES: how many frames the first tile waits for."""

#: So that a line of the table stays short.
_PART_BITS = 64


def begins(design: Design) -> str:
    """Give these words as localparams."""
    words, frames = _words(design)
    least = widths(design)["W_STEP"] if design.capacity else 1
    bits = max(_PART_BITS, 1 << (max(bits for _, bits in words) - 1).bit_length())
    parts = [word >> at & (1 << _PART_BITS) - 1 for word, _ in words for at in range(0, bits, _PART_BITS)]
    columns = Column("B_PART", tuple(parts), _PART_BITS), Column("B_FRAMES", tuple(frames), least)
    return "\n".join([_HEAD, number_text([("B_WORD_B", bits)]), *map(column_text, columns)]) + "\n"


def _words(design: Design) -> tuple[list[_Field], list[int]]:
    """These words, and how many frames the first tile waits for."""
    wide, checks = widths(design), _checks(design)
    words: list[_Field] = []
    frames: list[int] = []
    row = read = 0
    nests: dict[tuple[int, int], tuple[Program, int, tuple[int, ...]]] = {}
    for plan, program in design.programs:
        counts = [len(each.reads) for each in program.stages]
        nests[plan.number, program.model] = (program, row, tuple(read + each for each in firsts(counts)))
        row, read = row + len(program.stages), read + sum(counts)
    for plan in design.cores:
        for number, (job, own) in enumerate(zip(design.table_jobs, design.job_rows(plan), strict=True)):
            if own is None:
                nest = None
            else:
                its = nests[plan.number, job.model]
                nest = Nest(plan, *its, number, job, own, wide, checks, design.step_shift)
            words.append((0, 1) if nest is None else nest.word())
            frames.append(0 if nest is None else nest.frames())
    return words, frames


def _checks(design: Design) -> int:
    """Counters that a tile may wait for."""
    return max(1, *(len(read.needs) for row in design.rows for read in row.reads))


def job_bits(design: Design) -> tuple[int, int]:
    """Bits that hardware reads of a job's row in the table of jobs: for the whole chip, and for each core.

    These bits are the table's registers: what is written and never read, a synthesis program leaves out. A word has
    fields that no thread reads, or only those of some designs: sums of one counter need no number, a base is read
    where all steps of a vector are kept, and the beginning of a pass where another pass is before it.
    """
    wide, stages = widths(design), design.rows
    sources = {read.source for row in stages for read in row.reads}
    every = any(write.kept == "all" for row in stages for each in row.segments for write in each.writes)
    in_rows = all(plan.core.block_order == "row" for plan in design.cores)
    lone = max(program.counters for _, program in design.programs) == 1
    unread = ["GROUP", "GROUP", "BANK"]
    unread += [] if every else ["ELEMENT"] * 3
    unread += [] if "all_x" in sources else ["ELEMENT"] * 2
    unread += [] if "all_h" in sources else ["ELEMENT"]
    unread += ["BANK"] * in_rows + ["COUNTER"] * (2 * _checks(design) * lone)
    word = max(bits for _, bits in _words(design)[0]) - sum(wide[f"W_{each}"] for each in unread)
    # rows that begin a pass behind another one, whose beginnings no word has
    behind = [
        row
        for _, program in design.programs
        for row in program.stages
        if not program.interleaved and row.number == row.first_of_pass > 0
    ]
    starts = len({row.number for row in behind}) * wide["W_ELEMENT"] * (("all_x" in sources) + every)
    frames = len({row.backward for row in behind}) * wide["W_FRAME"]
    woven = any(program.interleaved for _, program in design.programs)
    model = bits_of(len(design.models) - 1) * (woven and len(design.models) > 1)
    return wide["W_STEP"] + model, word + wide["W_STEP"] + starts + frames
