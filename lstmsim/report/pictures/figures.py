"""What all pictures share: looks that do not depend on the user's settings, and files that are written whole."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import refuse_if_read, whole_file

SUFFIXES = (".png", ".svg", ".pdf")

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "lstmsim",
    "pdf.fonttype": 42,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextmanager
def settings() -> Iterator[None]:
    """Set the looks of lstmsim's pictures inside the block, whatever the user's matplotlibrc says.

    No warning is given for letters of a job's name that the font lacks.
    """
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


class Picture(Figure):
    """A figure that a notebook shows as a picture, though it was made without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        with settings():
            self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def check_name(name: str, *beside: str) -> None:
    """Raise `InputError` for a name that does not end like a picture's, and for a file that was read as an input.

    name: of the picture's file.
    beside: other files that are written with it.

    >>> check_name("a.bmp")
    Traceback (most recent call last):
    lstmsim.InputError: a.bmp: not a picture's name: expected it to end in .png, .svg, .pdf
    """
    if not name.lower().endswith(SUFFIXES):
        raise InputError(Mistake(name, f"not a picture's name: expected it to end in {', '.join(SUFFIXES)}"))
    for each in (name, *beside):
        refuse_if_read(each)


def save(figure: Figure, path: str) -> None:
    """Write the picture, whole or not at all; equal pictures give equal bytes."""
    suffix = os.path.splitext(path)[1].lower().lstrip(".")
    # Dates would make equal pictures differ.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
    content = io.BytesIO()
    figure.savefig(content, format=suffix, dpi=150, metadata=metadata)
    with whole_file(path, "wb") as file:
        file.write(content.getvalue())
