"""What an import finds in a file, whatever the file's format, and what the readers of all formats share."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePath
from typing import TYPE_CHECKING

from lstmsim.errors import InputError, Mistake
from lstmsim.formats.files import readable_file
from lstmsim.formats.weights.operators import OperatorTable
from lstmsim.workload.model import Model

if TYPE_CHECKING:
    from lstmsim.numerics.weights import Network

__all__ = ["LFS_POINTER", "MAX_BYTES", "ImportedModel", "bounded_file", "capped", "model_names", "model_stem", "placed"]

#: What protobuf itself can hold; the other formats have the same bound here.
MAX_BYTES = 2**31 - 1
MAX_MISTAKES = 20
_LONGEST_NAME = 150
#: How the stand-in for a file begins that Git LFS has not fetched.
LFS_POINTER = b"version https://git-lfs"


@dataclass(frozen=True, eq=False)
class ImportedModel:
    """One stack of recurrent layers found in a file or in memory.

    model: its shapes. nodes: the names of its layers where they were found. source: where that was, in words.
    notes: what to know about it: what is left out, taken for granted or different here.
    network: the model with its weights, None where only shapes were asked for or could be read.
    files: the file itself, and what it names as its own, such as the data files of an ONNX network; no output may
    replace them. Empty for a network in memory.
    operators: what became of all operators of the file, not of this model alone; None where it lists none.
    steps: how many steps the file itself runs it for, None where it does not say.
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
        """What a model file says about it: what became of all operators, and the notes."""
        return (*([self.operators.summary()] if self.operators else []), *self.notes)


@contextmanager
def bounded_file(path: str | os.PathLike[str], what: str) -> Iterator[tuple[BufferedReader, int]]:
    """An existing file of at most 2 GB and its size in bytes; `what` is the expected content: `an ONNX network`.

    >>> with bounded_file("no-such-file.pt", "a PyTorch file"):
    ...     pass
    Traceback (most recent call last):
    lstmsim.errors.InputError: no-such-file.pt: no such file or folder
    """
    name = os.fspath(path)
    try:
        regular = not os.path.exists(name) or os.path.isdir(name) or stat.S_ISREG(os.stat(name).st_mode)
    except (OSError, ValueError):
        regular = True
    if not regular:
        raise InputError(Mistake(name, "is a device or a pipe, expected a file"))
    with readable_file(name) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise InputError(Mistake(name, f"has {size} bytes, more than the 2 GB that {what} can have here"))
        if not size:
            raise InputError(Mistake(name, f"is empty, expected {what}"))
        try:
            if file.read(len(LFS_POINTER)) == LFS_POINTER:
                text = f"is a Git LFS pointer, not {what} itself: fetch it with git lfs pull"
                raise InputError(Mistake(name, text))
            file.seek(0)
            yield file, size
        except OSError as error:
            raise InputError(Mistake(name, f"cannot be read: {error.strerror}")) from None


def placed(error: InputError, name: str) -> InputError:
    """The error with the file's name before every place, of many mistakes only the first 20.

    >>> print(placed(InputError("is damaged"), "a.pt"))
    a.pt: is damaged
    """
    mistakes = [
        each if each.place.startswith(name) else Mistake(f"{name}: {each.place}" if each.place else name, each.sentence)
        for each in capped(error.mistakes)
    ]
    return InputError(mistakes)


def capped(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """The first 20 mistakes, and how many more there are.

    >>> [each.sentence for each in capped([Mistake("", "wrong")] * 22)][-2:]
    ['wrong', 'and 2 more like these']
    """
    more = len(mistakes) - MAX_MISTAKES
    return [*mistakes[:MAX_MISTAKES], *([Mistake("", f"and {more} more like these")] if more > 0 else [])]


def model_stem(name: str) -> str:
    """A model's name from a file's name, as model files allow it.

    >>> model_stem("some/speech.onnx")
    'speech'
    """
    text = "".join(letter if letter.isprintable() else "-" for letter in PurePath(name).stem).strip()
    return text[:_LONGEST_NAME].strip() or "network"


def model_names(stem: str, parts: Sequence[str]) -> list[str]:
    """The file's name for the only model; otherwise followed by the part of the file that each comes from.

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
