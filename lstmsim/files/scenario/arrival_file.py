"""Files of arrivals: CSV with a header, read in one pass, a line at a time; 8 bytes for each arrival and column.

Own files have `arrival_cycles` (whole cycles) or `arrival_ms` (decimals, 0.25 or 2.5e-1) in the order of time and, if
wanted, `job` and `tenant` (words) and `steps` (whole numbers). Two public layouts are known by their headers:
`TIMESTAMP` (Azure LLM inference traces 2023 and 2024), and `end_timestamp` with `duration` (seconds; Azure Functions
invocation trace 2021). Their rows are put in the order of time, the earliest is cycle 0, and columns that nobody asks
for are left out. Sources: the descriptions of these traces in https://github.com/Azure/AzurePublicDataset.
"""

from __future__ import annotations

import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from typing import IO, TypeVar

from lstmsim.base.bounded import bounded_file
from lstmsim.base.bounds import MAX_JOBS, MAX_STEPS
from lstmsim.base.csv_table import NUMBER, CsvTable, original, shown
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.files.scenario.request_schema import OWN_STEPS, Measure
from lstmsim.traffic.arrivals import MAX_CYCLE, exact, positive

#: Femtoseconds of a second. Times are read in femtoseconds as long as the earliest time is not known.
FEMTOSECONDS = 10**15

_DIGITS = 15
_BOUND = f"must lie within 2^62 cycles ({MAX_CYCLE}), "
_MAX_WORD = 200
_WHOLE = re.compile(r"\+?[0-9]{1,40}", re.ASCII)
_DECIMAL = re.compile(r"\+?([0-9]{1,40})(?:\.([0-9]{0,40}))?(?:[eE]([+-]?[0-9]{1,2}))?", re.ASCII)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,15}))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))?",
    re.ASCII,
)


def steps_of(measure: Measure, texts: list[str]) -> int | str:
    """Give the number of steps that the texts of a measure's columns make. A column `steps` alone must be whole."""
    if measure == OWN_STEPS:
        if not _WHOLE.fullmatch(texts[0]) or not int(texts[0]):
            return _expected(texts[0], "must be a whole number of steps, at least 1")
        steps = int(texts[0])
    else:
        total = Fraction(0)
        for text in texts:
            value = _decimal(text)
            if value is None:
                return _expected(text, "must be a number of at least 0")
            total += value
        steps = max(1, -(-total // exact(measure.per_step)))
    return steps if steps <= MAX_STEPS else f"must make at most {MAX_STEPS:,} steps"


def cycles(text: str) -> int | str:
    """Read a whole number of cycles."""
    if not _WHOLE.fullmatch(text):
        return _expected(text, "must be a whole number of cycles in plain digits", _BOUND)
    return int(text)


def milliseconds(text: str) -> Fraction | str:
    """Read a time in milliseconds, exactly."""
    value = _decimal(text)
    return _expected(text, "must be a number of milliseconds, such as 2.5", _BOUND) if value is None else value


def seconds(text: str) -> int | str:
    """Read a time in seconds, and give it in femtoseconds; smaller decimals are cut off."""
    value = _decimal(text)
    if value is None:
        return _expected(text, "must be a number of seconds, such as 0.134")
    return value.numerator * FEMTOSECONDS // value.denominator


def moment(text: str) -> int | str:
    """Read a date and a time of day, and give them in femtoseconds. A time without an offset is UTC."""
    match = _MOMENT.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        days = date(int(match[1]), int(match[2]), int(match[3])).toordinal()
    except ValueError:
        return "must not be empty" if not text else "must be a time such as 2023-11-16 18:15:46.6805900"
    hours, minutes, second = int(match[4]), int(match[5]), int(match[6])
    if hours > 23 or minutes > 59 or second > 60 or int(match[9] or 0) > 23 or int(match[10] or 0) > 59:
        return "must be a time such as 2023-11-16 18:15:46.6805900"
    east = (int(match[9] or 0) * 60 + int(match[10] or 0)) * (-1 if match[8] == "-" else 1)
    whole = ((days * 24 + hours) * 60 + minutes - east) * 60 + second
    return whole * FEMTOSECONDS + int((match[7] or "").ljust(_DIGITS, "0"))


def word(text: str) -> str | None:
    """Say what was expected in place of a text that is no word; None if the text is a word."""
    if not text or text != text.strip() or not text.isprintable() or len(text) > _MAX_WORD:
        return f"must be printable words of at most {_MAX_WORD} letters without spaces around them"
    return None


def _decimal(text: str) -> Fraction | None:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    decimals, exponent = match[2] or "", int(match[3] or 0)
    tens = exponent - len(decimals)
    return Fraction(int(match[1] + decimals) * 10 ** max(0, tens), 10 ** max(0, -tens))


def _expected(text: str, otherwise: str, bound: str = "must be given ") -> str:
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return "must be a finite number"
    if text.startswith("-") and NUMBER.fullmatch(text):
        return "must be at least 0"
    if not text:
        return "must not be empty"
    if NUMBER.fullmatch(text) and len(text) > 40:
        return f"{bound}in at most 40 digits"
    return otherwise


TIMES = ("arrival_cycles", "arrival_ms")
#: Columns of times of the public layouts.
PUBLIC = (("TIMESTAMP",), ("end_timestamp", "duration"))
LABELS = ("job", "tenant")
#: Most different words in a column of words.
MAX_LABELS = 10_000

_WHAT = "a CSV file of arrivals"
_T = TypeVar("_T")
_Take = Callable[[int, list[str]], None]


@dataclass(frozen=True)
class Wanted:
    """The parts of a file that are read with its times: columns of words, measures of steps, the first rows."""

    words: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    speedup: float = 1
    rows: int | None = None


@dataclass(frozen=True)
class ArrivalFile:
    """The arrivals of a file in whole cycles, never going back, with the words and the steps of each arrival.

    gaps: (row, line of the file) of each row that is not in the line after the row before it.
    order: for each arrival, its row in the file; None: arrivals are in the order of rows.
    """

    name: str
    cycles: array[int]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lengths: Mapping[Measure, array[int]] = field(default_factory=dict)
    gaps: tuple[tuple[int, int], ...] = ((0, 2),)
    order: Sequence[int] | None = None

    def line(self, number: int) -> int:
        """Give the line of the file in which arrival `number` stands."""
        row = number if self.order is None else self.order[number]
        first, line = self.gaps[bisect_right(self.gaps, row, key=lambda each: each[0]) - 1]
        return line + row - first


def read_arrivals(
    path: str | os.PathLike[str], frequency_mhz: float, limit: int = MAX_JOBS, wanted: Wanted = Wanted()
) -> ArrivalFile:
    """Read the arrivals in a CSV file; each time becomes the cycle in which it falls, exactly."""
    positive("chip", frequency_mhz=frequency_mhz)
    positive("arrivals", speedup=wanted.speedup)
    with bounded_file(path, _WHAT) as (file, _):
        return _Reader(os.fspath(path), file, exact(frequency_mhz) * 1000, limit, wanted).read()


def read_lengths(path: str | os.PathLike[str], measure: Measure = OWN_STEPS, limit: int = MAX_JOBS) -> array[int]:
    """Read the numbers of steps in the rows of a CSV file."""
    with bounded_file(path, "a CSV file of lengths") as (file, _):
        table = CsvTable(os.fspath(path), file, "number")
        table.check_twice()
        table.check_there(measure.columns)
        table.check()
        lengths: array[int] = array("q")
        take = _lengths(table, measure, lengths)
        for count, (number, fields) in enumerate(table.rows(), 1):
            if count > limit:
                table.blame(number, f"has more than {limit} rows, expected at most those")
                break
            take(number, fields)
        table.check()
        return lengths


def _lengths(table: CsvTable, measure: Measure, values: array[int]) -> _Take:
    """A reader of rows that adds the steps of a row, made of one or more columns, to `values`."""
    places = [table.columns.index(each) for each in measure.columns]

    def take(line: int, fields: list[str]) -> None:
        texts = [fields[place].strip() for place in places]
        steps = steps_of(measure, texts)
        if isinstance(steps, int):
            values.append(steps)
        else:
            got = " and ".join(shown(text) for text in texts)
            table.blame(line, f"{steps}, got {got}", " + ".join(measure.columns))

    return take


def _words(table: CsvTable, column: str, values: list[str]) -> _Take:
    """A reader of rows that adds the word of a row to `values`; each different word is kept once."""
    place, known = table.columns.index(column), dict[str, str]()

    def take(line: int, fields: list[str]) -> None:
        text = original(fields[place])
        expected = word(text)
        if expected is not None:
            table.blame(line, f"{expected}, got {show(text)}", column)
            return
        values.append(known.setdefault(text, text))
        if len(known) > MAX_LABELS:
            table.blame(line, f"makes more than {MAX_LABELS} different words in this column", column)

    return take


class _Reader:
    """The reader of one file of arrivals, which goes through the lines once."""

    def __init__(self, name: str, file: IO[bytes], cycles_per_ms: Fraction, limit: int, wanted: Wanted) -> None:
        self.name, self.limit, self.wanted = name, limit, wanted
        self.slower = 1 / exact(wanted.speedup)
        self.scale = cycles_per_ms * self.slower
        self.table = CsvTable(name, file, "arrival")
        self.cycles: array[int] = array("q")
        self.times: list[int] = []
        self.latest_line = 0

    def read(self) -> ArrivalFile:
        table, wanted = self.table, self.wanted
        time = self._check_header()
        places = [table.columns.index(each) for each in time]
        words: dict[str, list[str]] = {each: [] for each in (*LABELS, *wanted.words) if each in table.columns}
        own = (OWN_STEPS,) if OWN_STEPS.columns[0] in table.columns else ()
        lengths: dict[Measure, array[int]] = {each: array("q") for each in (*own, *wanted.measures)}
        readers = [_words(table, *each) for each in words.items()]
        readers += [_lengths(table, *each) for each in lengths.items()]
        gaps: list[tuple[int, int]] = []
        take = self._take_own if time[0] in TIMES else self._take_public
        for count, (number, fields) in enumerate(table.rows(wanted.rows)):
            if count >= self.limit:
                text = f"has more than {self.limit} arrivals, expected at most those (`rows` takes the first ones)"
                table.blame(number, text)
                break
            if not gaps or number != gaps[-1][1] + count - gaps[-1][0]:
                gaps.append((count, number))
            take(number, time, [fields[place].strip() for place in places])
            for reader in readers:
                reader(number, fields)
        table.check()
        order = None if time[0] in TIMES else self._place_public()
        labels = {column: tuple(_ordered(each, order)) for column, each in words.items()}
        steps = {measure: array("q", _ordered(each, order)) for measure, each in lengths.items()}
        return ArrivalFile(self.name, self.cycles, labels, steps, tuple(gaps), order)

    def _check_header(self) -> tuple[str, ...]:
        """Give the columns of times. A wrong header is reported alone, because rows need a right header."""
        table, columns = self.table, self.table.columns
        public = [each for each in PUBLIC if set(each) <= set(columns)]
        numbers = [column for measure in self.wanted.measures for column in measure.columns]
        if not public:
            self._check_half(columns)
            table.check_unknown((*TIMES, *LABELS, *OWN_STEPS.columns, *self.wanted.words, *numbers))
        table.check_twice()
        times = [*((each,) for each in TIMES if each in columns), *public]
        if not table.mistakes and len(times) != 1:
            known = "; public traces have TIMESTAMP, or end_timestamp and duration"
            names = [" with ".join(each) for each in times]
            if times and set(names) != set(TIMES):
                text = f"must name one kind of times only, got {listed(names, 'and')}"
            else:
                got = "both" if times else "neither"
                text = f"must name either {TIMES[0]} or {TIMES[1]} as a column, got {got}"
            table.blame(table.header, text + known)
        if not table.mistakes:
            table.check_there((*self.wanted.words, *numbers))
        table.check()
        return times[0]

    def _check_half(self, columns: Sequence[str]) -> None:
        """Check that two columns which make a time together are both there; `InputError` if one is missing."""
        if any(each in columns for each in TIMES):
            return
        for pair in PUBLIC:
            there, missing = ([each for each in pair if (each in columns) == given] for given in (True, False))
            # `duration` alone may be any number.
            if missing and pair[0] in there:
                text = f"has {listed(there, 'and')}, and {listed(missing, 'and')} is missing"
                self.table.blame(self.table.header, f"{text}: expected both")
        self.table.check()

    def _take_own(self, line: int, columns: tuple[str, ...], texts: list[str]) -> None:
        (column,), (text,) = columns, texts
        value = cycles(text) if column == TIMES[0] else milliseconds(text)
        if isinstance(value, str):
            self.table.blame(line, f"{value}, got {shown(text)}", column)
            return
        scale = self.slower if column == TIMES[0] else self.scale
        cycle = value.numerator * scale.numerator // (value.denominator * scale.denominator)
        if cycle > MAX_CYCLE:
            self.table.blame(line, f"must lie within 2^62 cycles ({MAX_CYCLE}), got {shown(text)}", column)
        elif self.cycles and cycle < self.cycles[-1]:
            text = f"goes back in time: {shown(text)} after a later arrival in line {self.latest_line}"
            self.table.blame(line, f"{text}; expected arrivals in order", column)
        else:
            self.cycles.append(cycle)
            self.latest_line = line

    def _take_public(self, line: int, columns: tuple[str, ...], texts: list[str]) -> None:
        values = []
        for column, text in zip(columns, texts, strict=True):
            value = moment(text) if column == "TIMESTAMP" else seconds(text)
            if isinstance(value, str):
                self.table.blame(line, f"{value}, got {shown(text)}", column)
            else:
                values.append(value)
        if len(values) == len(columns):
            self.times.append(values[0] - sum(values[1:]))

    def _place_public(self) -> Sequence[int] | None:
        """Turn times into cycles from the earliest time on. Give the order of the rows; None: that of the file."""
        times = self.times
        first, scale = min(times), self.scale * 1000 / FEMTOSECONDS
        order = sorted(range(len(times)), key=times.__getitem__)
        latest = (times[order[-1]] - first) * scale.numerator // scale.denominator
        if latest > MAX_CYCLE:
            text = f"lasts {latest} cycles on this chip, expected at most 2^62 ({MAX_CYCLE})"
            raise InputError(Mistake(self.name, text))
        self.cycles = array("q", ((times[each] - first) * scale.numerator // scale.denominator for each in order))
        return None if order == list(range(len(order))) else order


def _ordered(values: Sequence[_T], order: Sequence[int] | None) -> Sequence[_T]:
    return values if order is None else [values[each] for each in order]
