"""Fits on several FPGAs, in words and as plain data, with published designs on each device beside them."""

from __future__ import annotations

from typing import Any

from lstmsim.report.results import Forms
from lstmsim.studies.fit.device import published_on
from lstmsim.studies.fit.fits import Fits, fit_summary
from lstmsim.studies.fit.report import energy_json, energy_text, fit_json, fit_text

__all__ = ["FORMS", "fits_json", "fits_text"]


def fits_json(fits: Fits) -> dict[str, Any]:
    """Give the fits as plain data of schema `lstmsim/fits/1`."""
    return {
        "schema": "lstmsim/fits/1",
        "fits": [fit_json(each, published_on(each.device)) for each in fits],
        "summary": fit_summary(fits).json,
        "energy": [energy_json(each) for each in fits.energy],
    }


def fits_text(fits: Fits) -> str:
    """Give each fit, each energy, and a summary of the verdicts, as text."""
    parts = [fit_text(each, published_on(each.device)) for each in fits]
    parts += [energy_text(each) for each in fits.energy]
    return "\n\n".join([*parts, fit_summary(fits).text])


def _records(fits: Fits) -> list[dict[str, Any]]:
    """A row for each device and resource."""
    return [
        {"device": each.device.name, "verdict": each.verdict, **resource}
        for each in fits
        for resource in fit_json(each)["resources"]
    ]


FORMS = Forms(fits_json, fits_text, _records)
