"""Files with the input frames of a job: safetensors (tensor `x`), NumPy's .npy, CSV. Shape [steps, input]."""

from __future__ import annotations

import csv
import io
import os
from itertools import islice
from math import prod
from tokenize import TokenError

import numpy as np

from lstmsim.base.bounded import bounded_file, placed
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import show
from lstmsim.importers.safetensors import read_safetensors
from lstmsim.importers.tensors import floats, shape_text
from lstmsim.model.numerics.weights import LARGEST, Floats

__all__ = ["FRAME_SUFFIXES", "read_frames"]

FRAME_SUFFIXES = (".safetensors", ".npy", ".csv")


def read_frames(path: str | os.PathLike[str], steps: int | None, width: int) -> Floats:
    """Read the first frames of a file: an array [steps, width].

    path: a file that ends in .safetensors, .npy or .csv.
    steps: how many frames; None: all frames of the file, at least one.
    width: numbers of a frame.
    `InputError` if the file has fewer frames, frames of another width, or numbers that are not finite or too large.

    >>> read_frames("no-such-file.csv", steps=1, width=1)
    Traceback (most recent call last):
    lstmsim.InputError: no-such-file.csv: no such file or folder
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".safetensors":
        x = _from_safetensors(name, steps, width)
    elif suffix == ".npy":
        x = _from_npy(name, steps, width)
    elif suffix == ".csv":
        x = _from_csv(name, steps, width)
    else:
        raise InputError(Mistake(name, f"expected a file that ends in {', '.join(FRAME_SUFFIXES)}"))
    if not np.all(np.isfinite(x)) or np.abs(x).max(initial=0) > LARGEST:
        step, column = (int(each) for each in np.argwhere(~(np.abs(x) <= LARGEST))[0])
        text = f"holds {x[step, column]} at step {step}, column {column}; expected finite numbers up to 1e12"
        raise InputError(Mistake(name, text))
    return x


def _check_shape(name: str, shape: tuple[int, ...], steps: int | None, width: int) -> None:
    least = 1 if steps is None else steps
    if len(shape) != 2 or shape[1] != width or shape[0] < least:
        expected = f"[{least} or more steps, {width} inputs]"
        raise InputError(Mistake(name, f"has frames of shape {shape_text(shape)}, expected {expected}"))


def _from_safetensors(name: str, steps: int | None, width: int) -> Floats:
    tensors = read_safetensors(name).tensors
    if "x" not in tensors:
        there = ", ".join(show(each) for each in islice(tensors, 5)) or "nothing"
        raise InputError(Mistake(name, f"has no tensor 'x' with the frames; there is {there}"))
    _check_shape(name, tensors["x"].shape, steps, width)
    try:
        return floats(tensors, {"x": tensors["x"].shape})["x"][:steps]
    except InputError as error:
        raise placed(error, name) from None


def _from_npy(name: str, steps: int | None, width: int) -> Floats:
    """Read an .npy file. The header is checked first, because a wrong shape must not take memory."""
    with bounded_file(name, "an .npy file") as (file, size):
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(file, max_header_size=10_000)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, TokenError) as error:
            # for headers of old Pythons numpy uses a tokenizer, which raises its own error for open brackets
            text = " ".join(str(error).split())[:120]
            raise InputError(Mistake(name, f"is no .npy file, or is damaged: {text}")) from None
        if dtype.kind not in "fiu" or dtype.itemsize > 8:
            raise InputError(Mistake(name, f"holds {dtype}, expected real numbers of at most 64 bits"))
        _check_shape(name, shape, steps, width)
        if prod(shape) * dtype.itemsize != size - file.tell():
            raise InputError(Mistake(name, f"is cut off or damaged: {shape_text(shape)} needs another size"))
        flat = np.frombuffer(file.read(), dtype).astype(np.float64)
    return flat.reshape(shape, order="F" if fortran else "C")[:steps]


def _from_csv(name: str, steps: int | None, width: int) -> Floats:
    """Read a CSV file with one frame in each line; a first line of words is a header."""
    with bounded_file(name, "a CSV file") as (file, _), io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        rows: list[list[float]] = []
        try:
            for number, row in enumerate(csv.reader(text), 1):
                if not row or (number == 1 and not _number(row[0])):
                    continue
                if len(row) != width:
                    raise InputError(Mistake(f"{name}:{number}", f"has {len(row)} columns, expected {width} inputs"))
                wrong = next((each for each in row if not _number(each)), None)
                if wrong is not None:
                    raise InputError(Mistake(f"{name}:{number}", f"{show(wrong)} is no number"))
                rows.append([float(each) for each in row])
                if len(rows) == steps:
                    break
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputError(Mistake(name, f"is no CSV text: {error}")) from None
    least = 1 if steps is None else steps
    if len(rows) < least:
        raise InputError(Mistake(name, f"has {len(rows)} frames, expected {least} or more, one per step"))
    return np.array(rows)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
