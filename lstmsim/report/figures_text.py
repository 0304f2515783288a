"""Numbers and names for people: shares in percent, figures of three digits, names that fit a column."""

from __future__ import annotations

import re

#: Labels of axes by the column of a table; other columns are labelled by the unit at the end of their name.
_LABELS = {
    "makespan_cycles": "makespan (cycles)",
    "cycles": "makespan (cycles)",
    "ms": "makespan (ms)",
    "us": "makespan (µs)",
    "energy_j": "energy of an inference (J, relative)",
    "npe": "multipliers (NPE)",
    "pes_used": "multipliers that the array uses",
    "share": "share of the device (1: all)",
    "utilization": "utilization (1: all)",
    "tops": "throughput (TOPS)",
    "dsp": "DSP blocks",
    "logic": "logic cells",
    "load": "offered load (1: all that the machine can do)",
    "rate": "requests/s",
    "requests_per_second": "requests/s",
    "ep": "EP",
    "vp": "VP",
}
_UNITS = {"ms": "ms", "us": "µs", "cycles": "cycles", "mhz": "MHz", "bytes": "bytes", "share": "1: all"}


def labelled(column: str) -> str:
    """A column of a table as the label of an axis, with its unit.

    >>> labelled("latency_ms_p99"), labelled("p99_ms"), labelled("chip_npe"), labelled("dsp_share")
    ('p99 latency (ms)', 'p99 latency (ms)', 'multipliers (NPE) of the chip', 'dsp (1: all)')
    """
    name = column.removeprefix("chip_")
    latency = re.fullmatch(r"latency_ms_([\w.]+)|(p[\d.]+|mean|max)_ms", name)
    words, _, unit = name.rpartition("_")
    plain = f"{words.replace('_', ' ')} ({_UNITS[unit]})" if words and unit in _UNITS else name.replace("_", " ")
    text = f"{latency[1] or latency[2]} latency (ms)" if latency else _LABELS.get(name, plain)
    return text + " of the chip" * (name != column)


def percent(part: float, whole: float, nothing: str = "0.0 %") -> str:
    """A share in percent for people. A part that is there never reads as 0.

    part, whole: at least 0, in the same unit.
    nothing: the text if there is no part or no whole.
    """
    if not part or not whole:
        return nothing
    share = 100 * part / whole
    return f"{share:.1f} %" if share >= 0.05 else "<0.1 %"


def three_digits(value: float) -> str:
    """A number with three digits, and with all digits before the point.

    >>> three_digits(2.5), three_digits(1234.5)
    ('2.50', '1,234')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def four_digits(value: float) -> str:
    """A number with up to four digits, and with all digits before the point: never as a power of ten of a large one.

    >>> four_digits(0.0123456), four_digits(63622.3), four_digits(2.5)
    ('0.01235', '63,622', '2.5')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def two_digits(value: float) -> str:
    """A number with up to two digits, and with all digits before the point, as half widths of intervals are written.

    >>> two_digits(0.0123456), two_digits(2600.4), two_digits(2.5)
    ('0.012', '2,600', '2.5')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def short_name(name: str, length: int) -> str:
    """A name of at most `length` characters for the terminal. A question mark replaces what cannot be printed."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    return printable if len(printable) <= length else printable[: length - 3] + "..."


def short_path(name: str, length: int) -> str:
    """A name of at most `length` characters, of which the middle is left out: what differs is often at the end.

    >>> short_path("layernormalization10.reduce_sum", 20)
    'layernorm...duce_sum'
    """
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    if len(printable) <= length:
        return printable
    end = (length - 3) // 2
    return f"{printable[: length - 3 - end]}...{printable[-end:]}"


def cut(text: str, length: int) -> str:
    """Text of at most `length` characters for pictures and pages.

    >>> cut("a name that is far too long", 10)
    'a name th…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"
