"""What a chip takes of one kind of a device's resources, and the words for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Resource"]

#: Most decimals of a share: no device has so many blocks that one of them would need more to show.
_MOST_DECIMALS = 9


@dataclass(frozen=True)
class Resource:
    """One kind of resource.

    name: of the kind.
    need: how many the chip takes; None: unknown, or memories of several kinds share the work.
    available: how many the device has; None: unknown.
    share: need / available; above 1 the need is that many times too large. None: unknown.
    how: how the need came about, or what is missing.
    band: 0 for a count, 0.5 for an estimate of +-50 %.
    missing: what is missing in a few words, where that keeps the verdict open.
    at_least: whether a part of the need is unknown, so that only "too much" can be told.

    >>> Resource("DSP", 3, 2, 1.5, "").words, Resource("ALM", 90, 100, 0.9, "", band=0.5).words
    ('DSP 1.50 times over', 'ALM estimated at 45 to 135 % of what there is')
    >>> over = Resource("DSP", 5761, 5760, 5761 / 5760, "")
    >>> over.words, over.percent
    ('DSP 1 block too many', '100.02 %')
    """

    name: str
    need: int | None
    available: int | None
    share: float | None
    how: str
    band: float = 0.0
    missing: str = ""
    at_least: bool = False

    @property
    def fits(self) -> bool | None:
        """Whether the device has enough; None if that is unknown, or the band is too wide to say."""
        if self.share is None:
            return None
        if self.share * (1 + self.band) <= 1:
            return None if self.at_least else True
        return False if self.share * (1 - self.band) > 1 else None

    @property
    def words(self) -> str:
        """How much of the device's resource the chip takes, or what is missing to tell."""
        if self.share is None or (self.fits is None and self.missing):
            return self.missing or f"{self.name}: not known"
        if self.fits is None and self.band:
            low, high = (100 * self.share * (1 + sign * self.band) for sign in (-1, 1))
            return f"{self.name} estimated at {low:.0f} to {high:.0f} % of what there is"
        qualifier = "about " if self.band else "at least " if self.at_least else ""
        if self.share <= 1:
            return f"{self.name} {'about ' if self.band else ''}{self.percent} used"
        if self.need is None or self.available is None or f"{self.share:.2f}" != "1.00":
            return f"{self.name} {qualifier}{_above(self.share, 1, 2)} times over"
        excess = self.need - self.available
        return f"{self.name} {qualifier}{excess:,} block{'s' * (excess != 1)} too many"

    @property
    def percent(self) -> str:
        """The share in %, `-` if it is unknown; a share above 100 % never reads as 100 %."""
        if self.share is None:
            return "-"
        if not self.at_least:
            return f"{_above(100 * self.share, 100, 0)} %"
        # The known part is rounded down, so that "at least" stays true.
        known = 100 * self.share
        return f"at least {_above(known if known > 100 else math.floor(known), 100, 0)} %"


def _above(value: float, limit: int, digits: int) -> str:
    """A number with so many decimals, or with more where it is above the limit and would be printed as the limit."""
    while value > limit and float(f"{value:.{digits}f}") <= limit and digits < _MOST_DECIMALS:
        digits += 1
    return f"{value:.{digits}f}"
