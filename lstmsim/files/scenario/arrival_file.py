"""Files of arrivals: CSV with a header, read in one pass, a line at a time.

The header names the columns. Own files have `arrival_cycles` (whole cycles) or `arrival_ms` (decimals, 0.25 or 2.5e-1)
in the order of time and, if wanted, `job` and `tenant` (words) and `steps` (whole numbers). Two public layouts are
known by their headers: `TIMESTAMP` (dates with times of day: Azure LLM inference traces 2023 and 2024), and
`end_timestamp` with `duration` (seconds; a request comes when it ends less its duration: Azure Functions invocation
trace 2021). Their rows are put in the order of time, the earliest is cycle 0, and columns that nobody asks for are left
out. Sources: AzureLLMInferenceDataset2023.md, AzureLLMInferenceDataset2024.md and AzureFunctionsInvocationTrace2021.md
of https://github.com/Azure/AzurePublicDataset.

Memory: 8 bytes for each arrival and column.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import IO, TypeVar

from lstmsim.base.bounded import bounded_file
from lstmsim.base.bounds import MAX_JOBS
from lstmsim.base.csv_table import CsvTable, original, shown
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, show
from lstmsim.files.scenario.arrival_columns import (
    FEMTOSECONDS,
    OWN_STEPS,
    Measure,
    cycles,
    milliseconds,
    moment,
    seconds,
    word,
)
from lstmsim.traffic.arrivals import MAX_CYCLE, Timestamps, exact, positive

TIMES = ("arrival_cycles", "arrival_ms")
#: Columns of times of the public layouts.
PUBLIC = (("TIMESTAMP",), ("end_timestamp", "duration"))
LABELS = ("job", "tenant")
#: Most different words in a column of words.
MAX_LABELS = 10_000

_WHAT = "a CSV file of arrivals"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Wanted:
    """The parts of a file that are read besides its times.

    words: columns of words that the file must have; `job` and `tenant` are read if the file has them.
    measures: rules that give numbers of steps.
    speedup: how many times as fast the arrivals come as in the file.
    rows: how many first rows are read; None: all.
    """

    words: tuple[str, ...] = ()
    measures: tuple[Measure, ...] = ()
    speedup: float = 1
    rows: int | None = None


@dataclass(frozen=True)
class ArrivalFile:
    """The arrivals of a file in whole cycles, never going back.

    cycles: cycle of each arrival.
    labels: column of words -> the word of each arrival.
    lengths: measure -> the number of steps of each arrival.
    gaps: (row, line of the file) of each row that does not stand in the line after the row before it.
    order: for each arrival, its row in the file; None: arrivals are in the order of rows.
    """

    name: str
    cycles: array[int]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lengths: Mapping[Measure, array[int]] = field(default_factory=dict)
    gaps: tuple[tuple[int, int], ...] = ((0, 2),)
    order: Sequence[int] | None = None

    def timestamps(self) -> Timestamps:
        """Give the arrivals as a description for `lstmsim.traffic.arrivals.arrivals`."""
        return Timestamps(tuple(self.cycles))

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
        lengths = _Lengths(table, measure)
        for count, (number, fields) in enumerate(table.rows(), 1):
            if count > limit:
                table.blame(number, f"has more than {limit} rows, expected at most those")
                break
            lengths.take(number, fields)
        table.check()
        return lengths.values


class _Lengths:
    """A column of numbers of steps, made of one or more columns of a table."""

    def __init__(self, table: CsvTable, measure: Measure) -> None:
        self.table, self.measure = table, measure
        self.places = [table.columns.index(each) for each in measure.columns]
        self.values: array[int] = array("q")

    def take(self, line: int, fields: list[str]) -> None:
        texts = [fields[place].strip() for place in self.places]
        steps = self.measure.steps(texts)
        if isinstance(steps, int):
            self.values.append(steps)
        else:
            got = " and ".join(shown(text) for text in texts)
            self.table.blame(line, f"{steps}, got {got}", " + ".join(self.measure.columns))


class _Words:
    """A column of words; each different word is kept once."""

    def __init__(self, table: CsvTable, column: str) -> None:
        self.table, self.column, self.place = table, column, table.columns.index(column)
        self.known: dict[str, str] = {}
        self.values: list[str] = []

    def take(self, line: int, fields: list[str]) -> None:
        text = original(fields[self.place])
        expected = word(text)
        if expected is not None:
            self.table.blame(line, f"{expected}, got {show(text)}", self.column)
            return
        kept = self.known.setdefault(text, text)
        if len(self.known) > MAX_LABELS:
            self.table.blame(line, f"makes more than {MAX_LABELS} different words in this column", self.column)
        self.values.append(kept)


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
        words = [_Words(table, each) for each in dict.fromkeys((*LABELS, *wanted.words)) if each in table.columns]
        own = (OWN_STEPS,) if OWN_STEPS.columns[0] in table.columns else ()
        lengths = [_Lengths(table, each) for each in dict.fromkeys((*own, *wanted.measures))]
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
            for column in words:
                column.take(number, fields)
            for measured in lengths:
                measured.take(number, fields)
        table.check()
        order = None if time[0] in TIMES else self._place_public()
        labels = {each.column: tuple(_ordered(each.values, order)) for each in words}
        steps = {each.measure: array("q", _ordered(each.values, order)) for each in lengths}
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
                text = f"has {listed(there, 'and')}, and {listed(missing, 'and')} is missing beside it"
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
