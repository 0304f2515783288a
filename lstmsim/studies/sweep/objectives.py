"""The objectives of a front: columns of a sweep's table that are to be small or large."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import nearest

__all__ = ["Objective", "default_objectives", "described", "drawn_pair", "from_text", "to_text", "worth"]


@dataclass(frozen=True)
class Objective:
    """One column of the table that points are judged by.

    column: its name.
    maximise: whether more is better; otherwise less is.

    >>> Objective("tops", maximise=True).phrase
    'maximise tops'
    """

    column: str
    maximise: bool = False

    @property
    def phrase(self) -> str:
        """The objective in words."""
        return f"{'maximise' if self.maximise else 'minimise'} {self.column}"

    def cost(self, value: Any) -> float:
        """Give a value of the column as a number to be made small; NaN where it is no number.

        >>> Objective("tops", maximise=True).cost(2), Objective("fits", maximise=True).cost("true")
        (-2.0, -1.0)
        """
        number = worth(value)
        return -number if self.maximise else number


def worth(value: Any) -> float:
    """Give a value of a table as a number: truth values are 1 and 0, nothing and other text are NaN.

    >>> worth(3), worth("false"), worth(None)
    (3.0, 0.0, nan)
    """
    if isinstance(value, str):
        return {"true": 1.0, "false": 0.0}.get(value, float("nan"))
    return float(value) if isinstance(value, int | float) else float("nan")


def default_objectives(chip_columns: Collection[str]) -> tuple[Objective, ...]:
    """Give the objectives of a sweep whose file names none: the mean latency and the multipliers of the chip.

    chip_columns: names of the columns about the chip, one of which is that of its multipliers.

    >>> [each.phrase for each in default_objectives(["npe", "threads"])]
    ['minimise latency_ms_mean', 'minimise npe']
    """
    multipliers = "npe" if "npe" in chip_columns else "chip_npe"
    return (Objective("latency_ms_mean"), Objective(multipliers))


def described(objectives: Iterable[Objective]) -> str:
    """Describe objectives in one line, equal verbs together, in their order.

    >>> described([Objective("dsp"), Objective("npe"), Objective("tops", True)])
    'minimise dsp, npe; maximise tops'
    """
    parts: list[str] = []
    before: bool | None = None
    for each in objectives:
        if each.maximise == before:
            parts[-1] += f", {each.column}"
        else:
            parts.append(each.phrase)
        before = each.maximise
    return "; ".join(parts)


def drawn_pair(known: Sequence[Objective], wanted: Sequence[str]) -> tuple[Objective, ...]:
    """Choose the objectives on the axes of a front, (x, y).

    known: all objectives.
    wanted: names of two of them; empty: the second and the first of all (of a single one, only that).
    `InputError` for a name that is no objective, or for another number than two.

    >>> [each.column for each in drawn_pair([Objective("latency_ms_p99"), Objective("dsp"), Objective("logic")], [])]
    ['dsp', 'latency_ms_p99']
    """
    by_name = {each.column: each for each in known}
    for name in wanted:
        if name not in by_name:
            hint = nearest(name, by_name) or f"; there are: {', '.join(by_name)}"
            raise InputError(Mistake("--plot-objectives", f"no objective called {name!r}{hint}"))
    if wanted and len(set(wanted)) != 2:
        raise InputError(Mistake("--plot-objectives", f"expected two objectives, got {len(set(wanted))}"))
    return tuple(by_name[name] for name in wanted) if wanted else tuple(known[:2][::-1])


def to_text(objectives: Sequence[Objective]) -> str:
    """Write objectives as JSON, for a file that keeps them."""
    return json.dumps([[each.column, each.maximise] for each in objectives])


def from_text(text: str) -> tuple[Objective, ...]:
    """Read the objectives that `to_text` wrote; `ValueError` for anything else.

    >>> from_text(to_text([Objective("dsp")]))
    (Objective(column='dsp', maximise=False),)
    """
    pairs = json.loads(text)
    if not isinstance(pairs, list) or not all(isinstance(each, list) and len(each) == 2 for each in pairs):
        raise ValueError("no list of objectives")
    return tuple(Objective(str(column), bool(maximise)) for column, maximise in pairs)
