"""CSV files: a table with a header is read line by line, and rows are written. Mistakes are gathered on the way.

A spreadsheet takes a cell that begins with `=`, `+`, `-`, `@`, a tab or a line's end for a formula, and runs it. The
name of a job may begin so. Such a text is written with an apostrophe before it. Numbers stay as they are, also as text
(`-3.5`). `original` removes the apostrophe, so that no two names become one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import listed, nearest, show

#: A text that looks like a number.
NUMBER = re.compile(r"[+-]?[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?", re.ASCII)

#: The beginning of a cell that a spreadsheet would run, or of a cell that `neutral` has made.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")

_MAX_LINE = 4096
_MAX_MISTAKES = 20


class CsvTable:
    """The lines of one file, a header first. It keeps the first 20 mistakes; `check` raises them."""

    def __init__(self, name: str, file: IO[bytes], thing: str) -> None:
        self.name, self.file, self.thing = name, file, thing
        self.mistakes: list[Mistake] = []
        self.more = 0
        self._lines = self._read()
        self.header, columns = next(self._lines, (1, None))
        self.columns: list[str] = columns or []

    def rows(self, most: int | None = None) -> Iterator[tuple[int, list[str]]]:
        """Yield line number and fields of each row, of the first `most` rows. Rows of another length are mistakes."""
        count = 0
        for number, fields in self._lines:
            if fields is None:
                continue
            count += 1
            if most is not None and count > most:
                return
            if len(fields) != len(self.columns):
                expected = f"expected {len(self.columns)}: {', '.join(self.columns)}"
                self.blame(number, f"has {len(fields)} columns, {expected}")
                continue
            yield number, fields
        if not count and not self.mistakes:
            self.note(Mistake(self.name, f"has a header only, expected {self.thing}s below it, one per line"))

    def blame(self, line: int, sentence: str, column: str = "") -> None:
        """Note a mistake in a line, in a column."""
        self.note(Mistake(f"{self.name}:{line}" + (f": {column}" if column else ""), sentence))

    def note(self, mistake: Mistake) -> None:
        """Keep a mistake, or count it if there are many already."""
        if len(self.mistakes) < _MAX_MISTAKES:
            self.mistakes.append(mistake)
        else:
            self.more += 1

    def check(self) -> None:
        """Raise `InputError` if anything is wrong so far."""
        if self.mistakes:
            more = [Mistake("", f"and {self.more} more like these")] if self.more else []
            raise InputError([*self.mistakes, *more])

    def check_twice(self) -> None:
        """Note columns that come more than once."""
        for each in dict.fromkeys(self.columns):
            times = self.columns.count(each)
            if times > 1:
                self.blame(self.header, f"column {show(each)} comes {times} times, expected it once")

    def check_unknown(self, known: Iterable[str]) -> None:
        """Note columns that are not `known`."""
        known = list(dict.fromkeys(known))
        for each in self.columns:
            if each not in known:
                number = " (the first line must be a header)" if NUMBER.fullmatch(each.strip()) else ""
                hint = nearest(each, known) or f"; known columns: {listed(known, 'and')}"
                self.blame(self.header, f"unknown column {show(each)}{hint}{number}")

    def check_there(self, wanted: Iterable[str]) -> None:
        """Note wanted columns that are missing."""
        for each in dict.fromkeys(wanted):
            if each not in self.columns:
                there = ", ".join(show(column) for column in self.columns[:10]) or "nothing"
                hint = nearest(each, self.columns) or f"; there is {there}"
                self.blame(self.header, f"has no column {show(each)}{hint}")

    def _read(self) -> Iterator[tuple[int, list[str] | None]]:
        """Yield number and fields of each line that is not blank; None if the fields cannot be read."""
        number = 0
        while line := self.file.readline(_MAX_LINE + 1):
            number += 1
            if len(line) > _MAX_LINE:
                text = f"is longer than {_MAX_LINE} bytes, expected one {self.thing} per line"
                raise InputError([*self.mistakes, Mistake(f"{self.name}:{number}", text)])
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                self.blame(number, f"is no UTF-8 text: byte {error.start + 1} of the line is wrong")
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
            self.blame(number, f"has quotes that do not close: {show(text)}")
            return None


def neutral(text: str) -> str:
    """A text as a cell that no spreadsheet runs.

    >>> neutral("=1+1"), neutral("lstm-512"), neutral("-3.5"), neutral("'=a")
    ("'=1+1", 'lstm-512', '-3.5', "''=a")
    """
    return f"'{text}" if _FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def original(cell: str) -> str:
    """The text from which `neutral` made a cell.

    >>> original("'=1+1"), original("'quoted'")
    ('=1+1', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


class CsvWriter:
    """A writer of rows of numbers and texts as CSV; None is an empty cell.

    All CSV files are written with it, except traces, which are written by columns.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file, self._rows = file, csv.writer(file, lineterminator="\n")

    def writerow(self, row: Iterable[Any]) -> None:
        """Write one row."""
        self._rows.writerow(_cells(row))

    def writerows(self, rows: Iterable[Iterable[Any]]) -> None:
        """Write row after row."""
        self._rows.writerows(map(_cells, rows))

    def writelines(self, some: Iterable[str]) -> None:
        """Write rows that are text already, as `lines` gives them: as `writerows` writes them, in less time."""
        self._file.write("\n".join([*some, ""]))


def lines(columns: Iterable[Sequence[Any]]) -> list[str]:
    """Rows that are given column by column as they stand in a file, without what ends a line."""
    return list(map(",".join, zip(*map(_written, columns), strict=True)))


def _cells(row: Iterable[Any]) -> list[Any]:
    """The cells of a row. Of texts that begin with a letter or a digit none is a formula."""
    return [each if each.__class__ is not str or each[:1].isalnum() else neutral(each) for each in row]


def _written(column: Sequence[Any]) -> Iterable[str]:
    """The cells of a column as they stand in a file."""
    kinds = set(map(type, column))
    if kinds == {float}:
        return map(float.__repr__, column)
    if kinds == {int}:
        return map({each: str(each) for each in set(column)}.__getitem__, column)
    if kinds == {str} and "".join(column).isalnum() and all(column):
        return column
    texts = {each: _quoted(each) for each in set(column) if each.__class__ is str and not each.isalnum()}
    return [texts.get(each, each) if each.__class__ is str else "" if each is None else str(each) for each in column]


def _quoted(text: str) -> str:
    """A text as it stands in a file as one cell of several."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow([*_cells([text]), None])
    return file.getvalue()[:-2]


def shown(text: str) -> str:
    """A field for a sentence: a number without quotes, any other text in quotes; long ones are cut.

    >>> shown("12"), shown("soon")
    ('12', "'soon'")
    """
    if not NUMBER.fullmatch(text):
        return show(text)
    return text if len(text) <= 40 else f"{text[:37]}... ({len(text)} letters)"
