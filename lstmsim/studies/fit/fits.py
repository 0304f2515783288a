"""Fits on several FPGAs as one result: on which the chip fits, on which it does not and why, which are unknown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lstmsim.report.results import Table
from lstmsim.studies.fit.fit import Fit

if TYPE_CHECKING:
    from lstmsim.studies.fit.energy import Energy
    from lstmsim.studies.fit.fit import Fit


class Fits(tuple["Fit", ...], Table, forms="lstmsim.studies.fit.fits_text"):
    """A fit for each device, as a tuple.

    energy: of each distinct job, where energy was asked for.
    """

    energy: tuple[Energy, ...]

    def __new__(cls, fits: Iterable[Fit], energy: Iterable[Energy] = ()) -> Fits:
        made = super().__new__(cls, fits)
        made.energy = tuple(energy)
        return made


_WIDTH = 100


@dataclass(frozen=True)
class Summary:
    """The devices by verdict, each with its words (`Fit.verdict`).

    chip: its name.
    fits, does_not_fit, cannot_tell: pairs of a device's name and the reason.

    >>> print(Summary("c", (("big", "DSP 40 % used"),), (("small", "DSP 2.00 times over"),), ()).text)
    SUMMARY of c
    fits: big (DSP 40 % used)
    does not fit: small (DSP 2.00 times over)
    """

    chip: str
    fits: tuple[tuple[str, str], ...]
    does_not_fit: tuple[tuple[str, str], ...]
    cannot_tell: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """A heading and a paragraph for each verdict, of at most 100 columns; without a final newline."""
        parts = (("fits", self.fits), ("does not fit", self.does_not_fit), ("cannot tell", self.cannot_tell))
        lines = [f"SUMMARY of {self.chip}"]
        for verdict, devices in parts:
            named = ", ".join(f"{name} ({why})" for name, why in devices)
            if named or verdict == "fits":
                lines += textwrap.wrap(f"{verdict}: {named or 'none of these devices'}", _WIDTH, subsequent_indent="  ")
        return "\n".join(lines)

    @property
    def json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`: for each verdict the reason by device."""
        return {
            "chip": self.chip,
            "fits": dict(self.fits),
            "does_not_fit": dict(self.does_not_fit),
            "cannot_tell": dict(self.cannot_tell),
        }


def fit_summary(fits: Sequence[Fit]) -> Summary:
    """Gather the verdicts on one chip, in the order of the devices; no fits give an empty summary.

    fits: what `lstmsim.fit` gives.

    >>> import lstmsim
    >>> job = {"model": "lstm-256", "steps": 1}
    >>> fit_summary(lstmsim.fit({"chip": "column-npu-16k", "jobs": [job]}, ["stratix-10-gx-2800"])).fits
    (('stratix-10-gx-2800', 'DSP 81 % used'),)
    """

    def those(verdict: bool | None) -> tuple[tuple[str, str], ...]:
        return tuple((each.device.name, each.verdict.partition(": ")[2]) for each in fits if each.fits is verdict)

    return Summary(fits[0].chip if fits else "", those(True), those(False), those(None))
