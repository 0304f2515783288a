"""The key `precision` of a scenario: widths of numbers, and the frames on which formats are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lstmsim.base.wording import nearest, show
from lstmsim.files.scenario.model_entries import frames_path
from lstmsim.files.scenario.schema import PrecisionEntry
from lstmsim.files.yaml.checks import usable, wrong_keys
from lstmsim.files.yaml.document import DataPath, Document
from lstmsim.files.yaml.entry import values_of
from lstmsim.model.model import Model, Precision

__all__ = ["Numbers", "read_precision"]

_CALIBRATION: DataPath = ("precision", "calibration")


class Numbers(NamedTuple):
    """The numbers of a scenario.

    precision: the widths.
    given: whether the scenario has the key `precision`.
    calibration: name of a model -> the file of its frames.
    """

    precision: Precision
    given: bool
    calibration: dict[str, str]


def read_precision(
    document: Document, wrong: list[DataPath], models: Sequence[Model | None], *, given: bool
) -> Numbers:
    """Read the key `precision` of a document. Mistakes between its keys are noted in the document.

    wrong: paths of the mistakes in single keys, which have been noted before.
    models: model of each job entry; None: a wrong model.
    given: whether the scenario has the key.

    >>> from lstmsim.files.yaml.document import document_of
    >>> read_precision(document_of({"precision": {"weight_bits": 6}}), [], [], given=True).precision.weight_bits
    6
    """
    keys = wrong_keys(("precision",), wrong)
    entry = usable(PrecisionEntry, document.data.get("precision"), keys) or PrecisionEntry()
    precision = Precision(**{key: value for key, value in values_of(entry).items() if key != "calibration"})
    for key, text in precision.mistakes():
        document.blame(("precision", key), text)
    return Numbers(precision, given, _calibration(document, entry, models))


def _calibration(document: Document, entry: PrecisionEntry, models: Sequence[Model | None]) -> dict[str, str]:
    """Give the file of each model by its name: one file for all models, or a file for each name in a mapping."""
    names = list(dict.fromkeys(model.name for model in models if model is not None))
    if entry.calibration is None:
        return {}
    if isinstance(entry.calibration, str):
        return dict.fromkeys(names, frames_path(document, _CALIBRATION, entry.calibration))
    for name in entry.calibration:
        if name not in names and None not in models:
            hint = nearest(name, names) or f"; there are: {', '.join(names[:8])}"
            document.blame((*_CALIBRATION, name), f"no job has a model called {show(name)}{hint}", key=True)
    return {name: frames_path(document, (*_CALIBRATION, name), file) for name, file in entry.calibration.items()}
