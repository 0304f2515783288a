"""The result of an import from any format, and what the readers of all formats share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from lstmsim.importers.weights.operators import OperatorTable
from lstmsim.model.model import Model

if TYPE_CHECKING:
    from lstmsim.model.numerics.weights import Network

__all__ = ["ImportedModel", "model_names", "model_stem"]

_LONGEST_NAME = 150


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """One stack of recurrent layers from a file or from memory.

    model: its shapes.
    nodes: the names of its layers in the file.
    source: the file and the layers in it, in words.
    notes: what to know about the model: what is left out, taken for granted or different here.
    network: the model with its weights; None if only shapes were asked for or could be read.
    files: the file, and the files that it names as its own, such as the data files of an ONNX network; no output may
        replace them. Empty for a network in memory.
    operators: what became of all operators of the file, not of this model alone; None if the file lists none.
    steps: how many steps the file runs the model for; None if the file does not say.
    """

    model: Model
    nodes: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = ()
    network: Network | None = None
    files: tuple[str, ...] = ()
    operators: OperatorTable | None = None
    steps: int | None = None

    def comments(self) -> tuple[str, ...]:
        """Give the comments for a model file: what became of all operators, and the notes."""
        return (*([self.operators.summary()] if self.operators else []), *self.notes)


def model_stem(name: str) -> str:
    """Make a model's name from a file's name, as model files allow it.

    >>> model_stem("some/speech.onnx")
    'speech'
    """
    text = "".join(letter if letter.isprintable() else "-" for letter in PurePath(name).stem).strip()
    return text[:_LONGEST_NAME].strip() or "network"


def model_names(stem: str, parts: Sequence[str]) -> list[str]:
    """Name the models of a file; all names differ.

    stem: name of the file; it is the name of an only model.
    parts: for each model the part of the file that it comes from; the stem and the part are its name.

    >>> model_names("a", ["enc.lstm"]), model_names("a", ["enc.lstm", "dec.lstm", ""])
    (['a'], ['a-enc.lstm', 'a-dec.lstm', 'a-3'])
    """
    if len(parts) == 1:
        return [stem]
    names: list[str] = []
    for number, part in enumerate(parts, 1):
        slug = re.sub(r"[^A-Za-z0-9_.]+", "-", part).strip("-.")[-40:].strip("-.")
        own = f"{stem}-{slug}" if slug else stem
        names.append(own if own not in names and slug else f"{own}-{number}")
    return names
