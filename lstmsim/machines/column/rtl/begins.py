"""How each job begins on each core, as one constant word in `npu_issue.vh`: two tiles, the third place."""

from __future__ import annotations

from lstmsim.machines.column.rtl.layout import Column, column_text, number_text
from lstmsim.machines.column.rtl.nest import Nest
from lstmsim.machines.column.rtl.plan import Design, Program
from lstmsim.machines.column.rtl.row_tables import firsts
from lstmsim.machines.column.rtl.widths import programs_of, widths

__all__ = ["begins"]

_HEAD = """\
// How each job begins, at core * JOBS + job: first tile with its block's word and what it waits for, the same of the
// second tile, the place of the third, whether the job has one tile, whether it has two.
// B_PART has these words, of B_WORD_B bits each, in parts. B_FRAMES: how many frames the first tile waits for."""

#: So that a line of the table stays short.
_PART_BITS = 64


def begins(design: Design) -> str:
    """Give these words as localparams."""
    wide, programs = widths(design), programs_of(design)
    checks = max(1, *(len(read.needs) for program in programs for row in program.stages for read in row.reads))
    words: list[tuple[int, int]] = []
    frames: list[int] = []
    row = read = 0
    for plan in design.cores:
        nests: dict[int, tuple[Program, int, tuple[int, ...]]] = {}
        for program in plan.programs:
            if program is not None:
                counts = [len(each.reads) for each in program.stages]
                nests[program.model] = (program, row, tuple(read + each for each in firsts(counts)))
                row, read = row + len(program.stages), read + sum(counts)
        for number, (job, own) in enumerate(zip(design.jobs, plan.jobs, strict=True)):
            if own is None:
                words.append((0, 1))
                frames.append(0)
                continue
            nest = Nest(plan, *nests[job.model], number, job, own, wide, checks)
            words.append(nest.word())
            frames.append(nest.frames())
    bits = max(_PART_BITS, 1 << (max(bits for _, bits in words) - 1).bit_length())
    parts = [word >> at & (1 << _PART_BITS) - 1 for word, _ in words for at in range(0, bits, _PART_BITS)]
    columns = Column("B_PART", tuple(parts), _PART_BITS), Column("B_FRAMES", tuple(frames))
    return "\n".join([_HEAD, number_text([("B_WORD_B", bits)]), *map(column_text, columns)]) + "\n"
