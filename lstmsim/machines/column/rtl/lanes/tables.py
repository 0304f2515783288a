"""Activation functions in a lane: the place of the argument, a read of the table, the line between two entries."""

from __future__ import annotations

from collections.abc import Sequence

from lstmsim.machines.column.rtl.lanes.netlist import Pipeline, Signal, literal
from lstmsim.machines.column.rtl.lanes.numbers import Table
from lstmsim.machines.column.rtl.lanes.rounding import moved

__all__ = ["LINEAR_ORDER", "TABLE_ORDER", "activation", "word_bits"]

#: Bits of an argument's place within its cell that count.
_WITHIN = 24

#: Steps place, read, multiply, round, add: in which order they get registers. Behind the read first: that one is the
#: memory's own.
LINEAR_ORDER = (5, 2, 3, 1, 4, 0, 3, 2)
#: Steps place, read.
TABLE_ORDER = (2, 1, 0)


def word_bits(bits: int, linear: bool) -> int:
    """Bits of a table's word: an entry, and with `linear` the rise to the next one."""
    return 2 * bits + 1 if linear else bits


def activation(
    pipe: Pipeline, source: Signal, tables: Sequence[Table], numbers: Sequence[int], memory: str, bits: int
) -> tuple[Signal, Signal]:
    """Write an activation function: its value in front of its last register, and behind it.

    source: the argument.
    tables: for each class.
    numbers: for each class which of the tables in the memory is its own.
    memory: name of the memory, which has one table behind another.
    bits: of an entry.
    """
    linear = len(tables[0].entries) % 2 == 1
    (source,) = pipe.step(source)
    cell, part = _place(pipe, source, tables, linear)
    where = cell.bits - 1
    if len(set(numbers)) > 1:
        width = max(1, max(numbers).bit_length())
        base = pipe.choose("base", width + 1, [literal(each, width + 1) for each in numbers])
        address = pipe.wire(
            "address", width + cell.bits, f"{{1'b0, {base.name}[{width - 1}:0], {cell.name}[{where - 1}:0]}}"
        )
        cell, where = address, width + where
    cell, *parts = pipe.step(cell, *part)
    word = pipe.wire("word", word_bits(bits, linear), f"{memory}[{cell.name}[{where - 1}:0]]")
    if not linear:
        return pipe.end(word)
    word, part_ = pipe.step(word, *parts)
    value = pipe.wire("value", bits, f"{word.name}[{bits - 1}:0]")
    rise = pipe.wire("rise", bits + 1, f"{word.name}[{2 * bits}:{bits}]")
    product = pipe.wire("product", rise.bits + part_.bits, f"{rise.name} * {part_.name}")
    value, product = pipe.step(value, product)
    fine = part_.bits - 2
    rest = product
    if fine:
        half = literal(1 << (fine - 1), product.bits)
        rest = pipe.wire("rest", product.bits, f"({product.name} + {half}) >>> {fine}")
    value, rest = pipe.step(value, rest)
    return pipe.end(pipe.wire("line", bits, f"{value.name} + {rest.name}"))


def _place(pipe: Pipeline, source: Signal, tables: Sequence[Table], linear: bool) -> tuple[Signal, tuple[Signal, ...]]:
    """The argument's cell (with a leading 0), and with `linear` its place within the cell (with two leading bits).

    Only so many bits of the place are there as some class's argument has. An argument at or above the end of the table
    is at place 1.0 of the last cell.
    """
    log_cells = (len(tables[0].entries) - linear).bit_length() - 1
    fine = max([0, *(min(each.shift, _WITHIN) for each in tables)]) if linear else 0
    left = [max(-source.bits, min(fine - each.shift, fine + log_cells + 1)) for each in tables]
    scaled = moved(pipe, "scaled", source, left)
    width = max(scaled.bits + 1, fine + log_cells + 2)
    zero = pipe.choose("zero", width, [literal(each.below << fine, width) for each in tables])
    place = pipe.wire("place", width, f"{scaled.name} + {zero.name}")
    below = pipe.net.flag(f"{pipe.name}_below", f"{place.name}[{width - 1}]")
    above = pipe.net.flag(f"{pipe.name}_above", f"!{below} && |{place.name}[{width - 2}:{fine + log_cells}]")
    inside = f"{place.name}[{fine + log_cells - 1}:{fine}]"
    first, last = f"{log_cells}'d0", f"{{{log_cells}{{1'b1}}}}"
    cell = pipe.wire("cell", log_cells + 1, f"{{1'b0, {below} ? {first} : {above} ? {last} : {inside}}}")
    if not linear:
        return cell, ()
    one, none = f"{fine + 1}'d{1 << fine}", f"{fine + 1}'d0"
    within = f"{{1'b0, {place.name}[{fine - 1}:0]}}" if fine else none
    part = pipe.wire("part", fine + 2, f"{{1'b0, {above} ? {one} : {below} ? {none} : {within}}}")
    return cell, (part,)
