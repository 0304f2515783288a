"""Fits on several FPGAs as one result: on which the chip fits, on which it does not and why, which are unknown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lstmsim.report.results import Table
from lstmsim.report.tables import folded
from lstmsim.studies.fit.fit import Fit

if TYPE_CHECKING:
    from lstmsim.studies.fit.energy import Energy


class Fits(tuple["Fit", ...], Table, forms="lstmsim.studies.fit.report"):
    """A fit for each device, as a tuple.

    energy: of each distinct job, where energy was asked for.
    """

    energy: tuple[Energy, ...]

    def __new__(cls, fits: Iterable[Fit], energy: Iterable[Energy] = ()) -> Fits:
        made = super().__new__(cls, fits)
        made.energy = tuple(energy)
        return made


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
        return "\n".join(line for each in self.paragraphs for line in folded(each, 2))

    @property
    def paragraphs(self) -> list[str]:
        """The heading, and a sentence for each verdict."""
        parts = (("fits", self.fits), ("does not fit", self.does_not_fit), ("cannot tell", self.cannot_tell))
        named = [(verdict, ", ".join(f"{name} ({why})" for name, why in devices)) for verdict, devices in parts]
        told = [
            f"{verdict}: {names or 'none of these devices'}" for verdict, names in named if names or verdict == "fits"
        ]
        return [f"SUMMARY of {self.chip}", *told]

    @property
    def json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`: for each verdict the reason by device."""
        return {
            each.name: dict(value) if isinstance(value := getattr(self, each.name), tuple) else value
            for each in fields(self)
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
