"""Files of arrivals: CSV with a column of time stamps, read in one pass, a line at a time.

The header names the columns: `arrival_cycles` (whole cycles) or `arrival_ms` (decimals, 0.25 or 2.5e-1), and if wanted
`job` and `tenant` (words). Rows are in the order of time. What is kept is 8 bytes per arrival and column.
"""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import IO

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.imported import bounded_file
from lstmsim.formats.schema_types import MAX_JOBS
from lstmsim.formats.wording import listed, nearest, show
from lstmsim.serving.arrivals import MAX_CYCLE, Timestamps, exact, positive

__all__ = ["LABELS", "MAX_LABELS", "TIMES", "ArrivalFile", "read_arrivals"]

TIMES = ("arrival_cycles", "arrival_ms")
LABELS = ("job", "tenant")
#: Most different words in a column of words.
MAX_LABELS = 10_000

_MAX_LINE = 4096
_MAX_WORD = 200
_MAX_MISTAKES = 20
_WHAT = "a CSV file of arrivals"
_WHOLE = re.compile(r"\+?[0-9]{1,40}", re.ASCII)
_DECIMAL = re.compile(r"\+?([0-9]{1,40})(?:\.([0-9]{0,40}))?(?:[eE]([+-]?[0-9]{1,2}))?", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True)
class ArrivalFile:
    """The arrivals of a file in whole cycles, and its columns of words: `labels["tenant"][n]` belongs to arrival n."""

    name: str
    cycles: array[int]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def timestamps(self) -> Timestamps:
        """The arrivals as a description that `lstmsim.serving.arrivals.arrivals` takes."""
        return Timestamps(tuple(self.cycles))


def read_arrivals(path: str | os.PathLike[str], frequency_mhz: float, limit: int = MAX_JOBS) -> ArrivalFile:
    """The arrivals in a CSV file, at most `limit`; milliseconds become the cycle within which they fall, exactly.

    `InputError` with file, line, column and value of the first 20 things that are wrong.

    >>> read_arrivals("no-such-file.csv", 250)
    Traceback (most recent call last):
    lstmsim.errors.InputError: no-such-file.csv: no such file or folder
    """
    positive("chip", frequency_mhz=frequency_mhz)
    with bounded_file(path, _WHAT) as (file, _):
        reader = _Reader(os.fspath(path), file, exact(frequency_mhz) * 1000, limit)
        return reader.read()


class _Reader:
    """Goes through the lines of one file, notes what is wrong, and keeps the rest."""

    def __init__(self, name: str, file: IO[bytes], cycles_per_ms: Fraction, limit: int) -> None:
        self.name, self.file, self.cycles_per_ms, self.limit = name, file, cycles_per_ms, limit
        self.cycles: array[int] = array("q")
        self.labels: dict[str, list[str]] = {}
        self.mistakes: list[Mistake] = []
        self.more = 0
        self.latest_line = 0

    def read(self) -> ArrivalFile:
        lines = self._lines()
        _, columns = next(lines, (1, None))
        self._check_header(columns)
        columns = columns or []
        time = next(place for place, column in enumerate(columns) if column in TIMES)
        self.labels = {column: [] for column in columns if column in LABELS}
        known: dict[str, dict[str, str]] = {column: {} for column in self.labels}
        words = [(place, column) for place, column in enumerate(columns) if column in LABELS]
        rows = 0
        for number, fields in lines:
            if fields is None:
                continue
            rows += 1
            if rows > self.limit:
                self._blame(f"{self.name}:{number}", f"has more than {self.limit} arrivals, expected at most those")
                break
            if len(fields) != len(columns):
                expected = f"expected {len(columns)}: {', '.join(columns)}"
                self._blame(f"{self.name}:{number}", f"has {len(fields)} columns, {expected}")
                continue
            self._take_time(number, columns[time], fields[time])
            for place, column in words:
                self._take_word(number, column, fields[place], known[column])
        if not rows and not self.mistakes:
            self._blame(self.name, "has a header only, expected arrivals below it, one per line")
        if self.mistakes:
            more = [Mistake("", f"and {self.more} more like these")] if self.more else []
            raise InputError([*self.mistakes, *more])
        return ArrivalFile(self.name, self.cycles, {column: tuple(words) for column, words in self.labels.items()})

    def _blame(self, place: str, sentence: str) -> None:
        if len(self.mistakes) < _MAX_MISTAKES:
            self.mistakes.append(Mistake(place, sentence))
        else:
            self.more += 1

    def _lines(self) -> Iterator[tuple[int, list[str] | None]]:
        """Number and fields of each line that is not blank; None for the fields of a line that has none to read."""
        number = 0
        while line := self.file.readline(_MAX_LINE + 1):
            number += 1
            if len(line) > _MAX_LINE:
                text = f"is longer than {_MAX_LINE} bytes, expected one arrival per line"
                raise InputError([*self.mistakes, Mistake(f"{self.name}:{number}", text)])
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                self._blame(f"{self.name}:{number}", f"is no UTF-8 text: byte {error.start + 1} of the line is wrong")
                yield number, None
                continue
            if text.strip():
                yield number, self._fields(number, text)

    def _fields(self, number: int, text: str) -> list[str] | None:
        if '"' not in text:
            return text.split(",")
        try:
            return next(csv.reader([text], strict=True))
        except csv.Error:
            self._blame(f"{self.name}:{number}", f"has quotes that do not close: {show(text)}")
            return None

    def _check_header(self, columns: list[str] | None) -> None:
        """The rest cannot be read without a header; so its mistakes come alone."""
        place = f"{self.name}:1"
        for each in columns or []:
            if each not in (*TIMES, *LABELS):
                number = " (the first line must be a header)" if _NUMBER.fullmatch(each.strip()) else ""
                hint = nearest(each, (*TIMES, *LABELS)) or f"; known columns: {listed((*TIMES, *LABELS), 'and')}"
                self._blame(place, f"unknown column {show(each)}{hint}{number}")
        for each in dict.fromkeys(columns or []):
            if (columns or []).count(each) > 1:
                self._blame(place, f"column {show(each)} comes {(columns or []).count(each)} times, expected it once")
        times = [each for each in TIMES if each in (columns or [])]
        if not self.mistakes and len(times) != 1:
            got = "both" if times else "neither"
            self._blame(place, f"must name either {TIMES[0]} or {TIMES[1]} as a column, got {got}")
        if self.mistakes:
            raise InputError(self.mistakes)

    def _take_time(self, number: int, column: str, text: str) -> None:
        cycle = self._cycle(text.strip(), column)
        place = f"{self.name}:{number}: {column}"
        if isinstance(cycle, str):
            self._blame(place, f"{cycle}, got {show(text) if not _NUMBER.fullmatch(text) else _short(text)}")
        elif self.cycles and cycle < self.cycles[-1]:
            text = f"goes back in time: {_short(text)} after a later arrival in line {self.latest_line}"
            self._blame(place, f"{text}; expected arrivals in order")
        else:
            self.cycles.append(cycle)
            self.latest_line = number

    def _cycle(self, text: str, column: str) -> int | str:
        """The cycle that a field stands for, or what it should have been."""
        if column == "arrival_cycles" and _WHOLE.fullmatch(text):
            cycle = int(text)
        elif column == "arrival_ms" and (found := _DECIMAL.fullmatch(text)):
            digits, decimals, exponent = found[1], found[2] or "", int(found[3] or 0)
            tens = exponent - len(decimals)
            upper = int(digits + decimals) * 10 ** max(0, tens) * self.cycles_per_ms.numerator
            cycle = upper // (10 ** max(0, -tens) * self.cycles_per_ms.denominator)
        else:
            return _expected(text, column)
        return cycle if cycle <= MAX_CYCLE else f"must lie within 2^62 cycles ({MAX_CYCLE})"

    def _take_word(self, number: int, column: str, text: str, known: dict[str, str]) -> None:
        place = f"{self.name}:{number}: {column}"
        if not text or text != text.strip() or not text.isprintable() or len(text) > _MAX_WORD:
            expected = f"must be printable words of at most {_MAX_WORD} letters without spaces around them"
            self._blame(place, f"{expected}, got {show(text)}")
            return
        word = known.setdefault(text, text)
        if len(known) > MAX_LABELS:
            self._blame(place, f"makes more than {MAX_LABELS} different words in this column")
        self.labels[column].append(word)


def _expected(text: str, column: str) -> str:
    if text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return "must be a finite number"
    if text.startswith("-") and _NUMBER.fullmatch(text):
        return "must be at least 0"
    if not text:
        return "must not be empty"
    if _NUMBER.fullmatch(text) and len(text) > 40:
        return f"must lie within 2^62 cycles ({MAX_CYCLE}), in at most 40 digits"
    if column == "arrival_cycles":
        return "must be a whole number of cycles in plain digits"
    return "must be a number of milliseconds, such as 2.5"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}... ({len(text)} letters)"
