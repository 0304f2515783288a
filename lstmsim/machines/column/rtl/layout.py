"""Tables of `npu_config.vh` as text: localparams whose entries have 2^k bits, so that no index needs a product."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lstmsim.base.records import record

__all__ = ["INTEGER", "Column", "bits_of", "column_text", "number_text", "short_lines"]

#: Bits of an entry that is taken for a localparam of type integer.
INTEGER = 32

_WIDTH = 118


@record
class Column:
    """A column of a table.

    name: its name, such as `P_BLOCKS`.
    values: its entries; a negative one is written in two's complement.
    least_bits: an entry has at least so many bits: those of the signal that it is taken for.

    >>> print(column_text(Column("P_BLOCKS", (4, 300, -1))))
    localparam P_BLOCKS_B = 16;
    localparam [47:0] P_BLOCKS = {16'hffff, 16'd300, 16'd4};
    """

    name: str
    values: tuple[int, ...]
    least_bits: int = 1

    @property
    def entry_bits(self) -> int:
        """Bits of an entry, a power of two."""
        needed = max((_bits(value) for value in self.values), default=1)
        bits = max(needed, self.least_bits)
        return 1 << (bits - 1).bit_length()


def bits_of(most: int) -> int:
    """Bits of a signal that holds 0 to `most`; at least 1.

    >>> [bits_of(most) for most in (0, 1, 2, 255, 256)]
    [1, 1, 2, 8, 9]
    """
    return max(1, most.bit_length())


def _bits(value: int) -> int:
    return bits_of(value) if value >= 0 else (-value - 1).bit_length() + 1


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
    return head + f"localparam [{bits * len(values) - 1}:0] {name} = {{\n" + _wrapped(words) + "\n};"


def _wrapped(words: Sequence[str]) -> str:
    lines, line = [], " "
    for place, word in enumerate(words):
        text = f" {word}" + ("," if place < len(words) - 1 else "")
        if len(line) + len(text) > _WIDTH:
            lines.append(line)
            line = " "
        line += text
    return "\n".join([*lines, line])


def number_text(numbers: Iterable[tuple[str, int]]) -> str:
    """Write localparams that are plain numbers, a line each.

    >>> print(number_text([("CORES", 2)]))
    localparam CORES = 2;
    """
    return "\n".join(f"localparam {name} = {value};" for name, value in numbers)


def short_lines(text: str, most: int = 120) -> str:
    """Break the long lines of Verilog at spaces, as far as there are any.

    text: Verilog without long comments or strings.
    most: characters of a line.

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
