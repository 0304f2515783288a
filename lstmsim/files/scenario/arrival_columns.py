"""The values of fields in a file of arrivals.

Each function reads a text and gives its value, or a sentence that says what was expected in its place.
"""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from typing import NamedTuple

from lstmsim.base.bounds import MAX_STEPS
from lstmsim.base.csv_table import NUMBER
from lstmsim.traffic.arrivals import MAX_CYCLE, exact

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


class Measure(NamedTuple):
    """The rule that gives the steps of a row: the sum of some columns, divided, rounded up, and at least 1.

    columns: the columns that are added up.
    per_step: how much of the sum makes one step.

    >>> tokens = Measure(("ContextTokens", "GeneratedTokens"), per_step=4)
    >>> tokens.steps(["7", "2"]), tokens.steps(["0", "0"]), tokens.steps(["many"])
    (3, 1, 'must be a number of at least 0')
    """

    columns: tuple[str, ...] = ("steps",)
    per_step: float = 1

    def steps(self, texts: list[str]) -> int | str:
        """Give the number of steps, or a sentence on what was expected.

        texts: the text of each column. A column `steps` alone must hold whole numbers.
        """
        if self.columns == OWN_STEPS.columns and self.per_step == 1:
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
            steps = max(1, -(-total // exact(self.per_step)))
        return steps if steps <= MAX_STEPS else f"must make at most {MAX_STEPS:,} steps"


#: The steps of a row as it states them itself.
OWN_STEPS = Measure()


def cycles(text: str) -> int | str:
    """Read a whole number of cycles.

    >>> cycles("+7"), cycles("1.5")
    (7, 'must be a whole number of cycles in plain digits')
    """
    if not _WHOLE.fullmatch(text):
        return _expected(text, "must be a whole number of cycles in plain digits", _BOUND)
    return int(text)


def milliseconds(text: str) -> Fraction | str:
    """Read a time in milliseconds, exactly.

    >>> milliseconds("2.5e-1"), milliseconds("-1")
    (Fraction(1, 4), 'must be at least 0')
    """
    value = _decimal(text)
    return _expected(text, "must be a number of milliseconds, such as 2.5", _BOUND) if value is None else value


def seconds(text: str) -> int | str:
    """Read a time in seconds, and give it in femtoseconds; smaller decimals are cut off.

    >>> seconds("0.134")
    134000000000000
    """
    value = _decimal(text)
    if value is None:
        return _expected(text, "must be a number of seconds, such as 0.134")
    return value.numerator * FEMTOSECONDS // value.denominator


def moment(text: str) -> int | str:
    """Read a date and a time of day, and give them in femtoseconds. A time without an offset is UTC.

    >>> (moment("2023-11-16 18:15:46.6805900") - moment("2023-11-16T18:15:46Z")) / 1e15
    0.68059
    >>> moment("2023-02-30 00:00:00")
    'must be a time such as 2023-11-16 18:15:46.6805900'
    """
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
