"""What a chip needs of several FPGAs, as one result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lstmsim.report.results import Table

if TYPE_CHECKING:
    from lstmsim.studies.fit.energy import Energy
    from lstmsim.studies.fit.fit import Fit

__all__ = ["Fits"]


class Fits(tuple["Fit", ...], Table, forms="lstmsim.studies.fit.fits_text"):
    """A fit for each device, as a tuple.

    energy: of each distinct job, where energy was asked for.
    """

    energy: tuple[Energy, ...]

    def __new__(cls, fits: Iterable[Fit], energy: Iterable[Energy] = ()) -> Fits:
        made = super().__new__(cls, fits)
        made.energy = tuple(energy)
        return made
