"""Files of flat programs: NumPy's .npz, not compressed, without pickles.

A file has the members `format` (a number), `words` (the flat program) and, unless it was written without names, `names`
(UTF-8 JSON as bytes). Nothing in a file is ever executed, and nothing is larger in memory than in the file.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from math import isfinite
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lstmsim.base.bounded import bounded_file, open_zip, placed, read_member
from lstmsim.base.errors import InputError, Mistake, ProgramError
from lstmsim.base.files import whole_file
from lstmsim.program.flat import FORMAT, FlatProgram
from lstmsim.program.flatten import FlatNames, check_rows, default_names

#: The version of the file, beside the version of the flat program in it.
FILE_FORMAT = 1
#: Most bytes of names: some millions of names.
_MOST_NAMES = 2**27
_WHAT = "a program, as lstmsim.save_program writes it"


def save_program(path: str | os.PathLike[str], flat: FlatProgram, names: FlatNames | None = None) -> None:
    """Write a flat program, whole or not at all. Equal programs give equal bytes.

    names: texts that its tables do not hold; None: the file has no names.
    `ProgramError` if the names are not for this program. `InputError` for a path that cannot be written, and for more
    than 128 MB of names.
    """
    arrays: dict[str, Any] = {"format": np.int64(FILE_FORMAT), "words": flat.words}
    if names is not None:
        names.check(flat)
        text = json.dumps(_plain(names), separators=(",", ":"), allow_nan=False).encode()
        if len(text) > _MOST_NAMES:
            raise InputError(Mistake(os.fspath(path), f"the names take {len(text)} bytes, at most {_MOST_NAMES}"))
        arrays["names"] = np.frombuffer(text, dtype=np.uint8)
    with whole_file(path, "wb") as file:
        np.savez(file, **arrays)


def load_program(path: str | os.PathLike[str]) -> tuple[FlatProgram, FlatNames]:
    """Read a flat program and its names, or plain ones if the file has none.

    `InputError` if the file is no program, is damaged, is of another version, or holds names for another program, and
    if rows that its tables name do not exist.
    """
    name = os.fspath(path)
    with bounded_file(name, _WHAT) as (file, size):
        try:
            if file.read(4) != b"PK\x03\x04":
                raise InputError(f"is no .npz file, expected {_WHAT}")
            file.seek(0)
            with open_zip(file) as archive:
                members = {each: _member(archive, each, size) for each in ("format", "words", "names")}
            return _program(members)
        except InputError as error:
            raise placed(error, name) from None


def _member(archive: zipfile.ZipFile, name: str, size: int) -> NDArray[Any] | None:
    """An array of the file; None if there is none. Only members without compression are read, so none can be a bomb."""
    member = f"{name}.npy"
    info = next((each for each in archive.infolist() if each.filename == member), None)
    if info is None:
        return None
    if info.compress_type != zipfile.ZIP_STORED:
        raise InputError(f"its member {member!r} is compressed, expected numpy.savez, which does not compress")
    # the numbers of an .npy file. The header is checked first, because a wrong shape must not take memory
    content = read_member(archive, member, size)
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file, max_header_size=10_000)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, TokenError) as error:
        text = " ".join(str(error).split())[:120]
        raise InputError(f"its member {member!r} is no .npy file, or is damaged: {text}") from None
    if len(shape) > 1 or dtype.kind not in "iu" or dtype.itemsize > 8:
        raise InputError(f"its member {member!r} holds {dtype} in {len(shape)} dimensions, expected a row of integers")
    count = shape[0] if shape else 1
    if count * dtype.itemsize != len(content) - file.tell():
        raise InputError(f"its member {member!r} is cut off or damaged")
    return np.frombuffer(content, dtype, offset=file.tell())


def _program(members: Mapping[str, NDArray[Any] | None]) -> tuple[FlatProgram, FlatNames]:
    version, words, names = (members[each] for each in ("format", "words", "names"))
    if version is None or words is None:
        raise InputError(f"has no member {'format.npy' if version is None else 'words.npy'}, expected {_WHAT}")
    if version.tolist() != [FILE_FORMAT]:
        stated = " or ".join(map(str, version.tolist()[:2])) or "none"
        raise InputError(f"is of format {stated}, this lstmsim reads {FILE_FORMAT}")
    if words.dtype.kind != "i" or words.dtype.itemsize != 8:
        raise InputError(f"its member 'words.npy' holds {words.dtype}, expected int64")
    if len(words) and words[0] != FORMAT:
        raise InputError(f"holds a flat program of format {words[0]}, this lstmsim reads {FORMAT}")
    try:
        # in a file of another program the numbers may stand at any byte, and the highest byte first
        flat = FlatProgram(np.require(words, dtype=np.int64, requirements=["ALIGNED"]))
        check_rows(flat)
        read = default_names(flat) if names is None else _names(names)
        read.check(flat)
    except ProgramError as error:
        raise InputError(f"is no program that can be run: {error}") from None
    return flat, read


def _plain(names: FlatNames) -> dict[str, Any]:
    return {
        "chip": names.chip,
        "frequency_mhz": names.frequency_mhz,
        "unit": names.unit,
        "tasks": names.tasks,
        "units": names.units,
        "buffers": names.buffers,
        "operations": names.operations,
        "held": names.held,
    }


def _names(content: NDArray[Any]) -> FlatNames:
    """The names of a file, each of the right kind."""
    try:
        if content.dtype != np.uint8 or len(content) > _MOST_NAMES:
            raise ValueError(f"{len(content)} numbers of {content.dtype}")
        data = json.loads(content.tobytes())
        names = FlatNames(
            tasks=tuple(map(_text, data["tasks"])),
            units=tuple((_text(name), shown is True, _text(pipeline)) for name, shown, pipeline in data["units"]),
            buffers=tuple(map(_text, data["buffers"])),
            operations=tuple((_text(label), _numbers(place)) for label, place in data["operations"]),
            held=tuple(map(_numbers, data["held"])),
            chip=_text(data["chip"]),
            frequency_mhz=float(data["frequency_mhz"]),
            unit=_text(data["unit"]),
        )
        if not (isfinite(names.frequency_mhz) and names.frequency_mhz > 0):
            raise ValueError(f"frequency_mhz {names.frequency_mhz}")
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        text = " ".join(str(error).split())[:120]
        raise InputError(f"its names are damaged: {text}") from None
    return names


def _text(value: object) -> str:
    """A text that any file can hold."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    value.encode()
    return value


def _numbers(value: object) -> tuple[int, ...]:
    """Whole numbers of 64 bits."""
    if not isinstance(value, list) or not all(type(each) is int and -(2**63) <= each < 2**63 for each in value):
        raise TypeError(f"{value!r:.40} is no list of whole numbers")
    return tuple(value)
