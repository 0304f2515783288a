"""What a sweep is about: the name of its scenario, its device, and how many of its points fit that device."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lstmsim.studies.sweep.costs import PREFIX
from lstmsim.studies.sweep.store import Store

__all__ = ["About", "Fitting", "about_of", "fits", "fitting", "keep_about"]

_META = "about"
#: The column that says whether a chip fits; the second where an axis has that name.
_COLUMNS = ("fits", f"{PREFIX}fits")


@dataclass(frozen=True)
class About:
    """Names for people.

    scenario: the name of the scenario; empty in files of earlier versions, which do not say.
    device: the name of the FPGA that chips are counted on; empty for none.
    """

    scenario: str = ""
    device: str = ""


def keep_about(store: Store, about: About) -> None:
    """Write into the file what its sweep is about."""
    with store.transaction():
        store.put_meta([(_META, json.dumps([about.scenario, about.device]))])


def about_of(store: Store) -> About:
    """Read what the sweep of a file is about."""
    text = store.meta(_META)
    try:
        scenario, device = ("", "") if text is None else json.loads(text)
    except ValueError as error:
        raise store.damage(error) from None
    return About(str(scenario), str(device))


def fits(row: Mapping[str, Any]) -> bool | None:
    """Whether the chip of a point fits the sweep's device; None where there is no device, or nobody can tell.

    row: of the table, by the names of its columns.

    >>> fits({"chip_fits": "false"}), fits({"fits": "true"}), fits({"fits": None})
    (False, True, None)
    """
    value = next((row[name] for name in _COLUMNS if row.get(name) in ("true", "false")), None)
    return None if value is None else value == "true"


@dataclass(frozen=True)
class Fitting:
    """How many of the simulated points fit a device.

    device: its name; empty if the file does not say.
    fit, too_large, unknown: numbers of points.
    """

    device: str
    fit: int
    too_large: int
    unknown: int

    @property
    def text(self) -> str:
        """The numbers in words.

        >>> Fitting("arria", 0, 54, 0).text, Fitting("arria", 1, 0, 0).text, Fitting("arria", 0, 1, 0).text
        ('none of 54 points fits arria', 'the only point fits arria', 'the only point does not fit arria')
        >>> Fitting("arria", 4, 49, 1).text, Fitting("arria", 0, 0, 9).text
        ('4 of 54 points fit arria, 49 do not; of 1 nobody can tell', 'whether any point fits arria nobody can tell')
        """
        return self.drawn("", "")

    def drawn(self, too_large: str, unknown: str) -> str:
        """The numbers in words, with the looks of points that do not fit and of those of which nobody can tell.

        >>> Fitting("arria", 4, 49, 1).drawn("hollow", "pale")
        '4 of 54 points fit arria, 49 do not (hollow); of 1 nobody can tell (pale)'
        """
        where, every = self.device or "the device", self.fit + self.too_large + self.unknown
        large, doubt = (f" ({look})" if look else "" for look in (too_large, unknown))
        if self.unknown == every:
            return f"whether any point fits {where} nobody can tell{doubt}"
        if self.fit == every:
            return f"all {every:,} points fit {where}" if every > 1 else f"the only point fits {where}"
        if self.too_large == every:
            return f"{f'none of {every:,} points fits' if every > 1 else 'the only point does not fit'} {where}{large}"
        text = f"{self.fit:,} of {every:,} points fit {where}"
        text += f", {self.too_large:,} do not{large}" if self.too_large else ""
        return text + (f"; of {self.unknown:,} nobody can tell{doubt}" if self.unknown else "")


def fitting(store: Store) -> Fitting | None:
    """Count the points of a file that fit its device; None if it has none."""
    column = next((name for name, paths in store.axes() if not paths and name in _COLUMNS), None)
    if column is None:
        return None
    counts = Counter(fits({column: value}) for (value,) in store.rows([column], "WHERE status = 'done'"))
    return Fitting(about_of(store).device, counts[True], counts[False], counts[None])
