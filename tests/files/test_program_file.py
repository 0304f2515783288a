"""Files of flat programs: what is read again, and what is refused with a sentence."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim import load_scenario, machines
from lstmsim.base.errors import InputError, ProgramError
from lstmsim.files.program_file import load_program, save_program
from lstmsim.program.flat import FLAT_TABLES, FORMAT
from lstmsim.program.flatten import default_names, flat_of, names_of
from lstmsim.program.program import Program
from lstmsim.program.unflatten import program_of
from lstmsim.program.validate import validate

#: 1,000 and more by LSTMSIM_EXAMPLES=2000; fewer in the usual run.
EXAMPLES = int(os.environ.get("LSTMSIM_EXAMPLES", "12"))


@pytest.fixture(scope="module")
def program() -> Program:
    job = {"model": "lstm-256", "steps": 3, "count": 2}
    scenario = load_scenario({"chip": "column-npu-16k", "jobs": [job]})
    return machines.lower(scenario.chip, scenario.jobs)


@pytest.fixture
def path(tmp_path: Path, program: Program) -> Path:
    save_program(tmp_path / "p.npz", flat_of(program), names_of(program))
    return tmp_path / "p.npz"


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def names_as(text: bytes | str | dict[str, Any]) -> np.ndarray[Any, Any]:
    text = json.dumps(text) if isinstance(text, dict) else text
    return np.frombuffer(text if isinstance(text, bytes) else text.encode(), np.uint8)


def test_what_is_written_is_read(path: Path, program: Program) -> None:
    flat, names = load_program(path)
    assert (flat, names) == (flat_of(program), names_of(program))
    assert program_of(flat, names) == program
    before = path.read_bytes()
    save_program(path.parent / "again.npz", flat, names)
    assert (path.parent / "again.npz").read_bytes() == before


def test_a_file_that_was_read_is_not_replaced(path: Path) -> None:
    other = path.with_name("other.npz")
    other.write_bytes(path.read_bytes())
    flat, _ = load_program(other)
    with pytest.raises(InputError, match="is also the input; expected another file"):
        save_program(other, flat)


def test_a_program_without_names(tmp_path: Path, program: Program) -> None:
    save_program(tmp_path / "p.npz", flat_of(program))
    flat, names = load_program(tmp_path / "p.npz")
    assert names == default_names(flat)
    assert flat == flat_of(program)


def test_names_of_another_program_are_not_written(tmp_path: Path, program: Program) -> None:
    other = Program(program.cores, program.tasks[:1])
    with pytest.raises(ProgramError, match="there are names for 2 rows of table tasks, which has 1"):
        save_program(tmp_path / "p.npz", flat_of(other), names_of(program))
    assert not list(tmp_path.iterdir())


def test_numbers_of_other_machines_are_read(path: Path, program: Program) -> None:
    arrays = arrays_of(path)
    np.savez(path, **arrays | {"words": arrays["words"].astype(">i8"), "format": arrays["format"].astype(np.uint8)})
    flat, _ = load_program(path)
    assert flat == flat_of(program)
    assert flat.words.flags.aligned
    assert flat.words.dtype == np.int64


WRONG: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "foreign": (lambda a: {"x": np.zeros(3)}, r"has no member format.npy, expected a program, as"),
    "no words": (lambda a: {"format": a["format"]}, r"has no member words.npy"),
    "other file format": (lambda a: a | {"format": np.int64(2)}, r"is of format 2, this lstmsim reads 1"),
    "no number of a format": (lambda a: a | {"format": np.zeros(0, np.int64)}, r"is of format none, this"),
    "other flat format": (
        lambda a: a | {"words": np.append(FORMAT + 1, a["words"][1:])},
        rf"holds a flat program of format {FORMAT + 1}, this lstmsim reads {FORMAT}",
    ),
    "cut words": (lambda a: a | {"words": a["words"][:-1]}, r"is no program that can be run: table pools does not lie"),
    "no words at all": (lambda a: a | {"words": a["words"][:0]}, r"is no program that can be run: not a flat program"),
    "floats": (lambda a: a | {"words": a["words"] * 1.0}, r"'words.npy' holds float64 in 1 dimensions"),
    "short words": (lambda a: a | {"words": a["words"].astype(np.int32)}, r"'words.npy' holds int32, expected int64"),
    "a table": (lambda a: a | {"words": a["words"][None]}, r"'words.npy' holds int64 in 2 dimensions"),
    "pickles": (lambda a: a | {"names": np.array([{}], object)}, r"'names.npy' holds object in 1 dimensions"),
    "no JSON": (lambda a: a | {"names": names_as("{")}, r"its names are damaged: Expecting property name"),
    "deep JSON": (lambda a: a | {"names": names_as("[" * 99999)}, r"its names are damaged: "),
    "no UTF-8": (lambda a: a | {"names": names_as(b'"\xff')}, r"its names are damaged: 'utf-8' codec"),
    "words as names": (lambda a: a | {"names": a["words"]}, r"its names are damaged: \d+ numbers of int64"),
}
#: Changes of the names' JSON, and what is said of them.
WRONG_NAMES: dict[str, tuple[str, Any, str]] = {
    "tasks": ("tasks", [], "names for 0 rows of table tasks, which has 2"),
    "numbers": ("tasks", [1, 2], "1 is no text"),
    "letters that are half": ("tasks", ["\ud800", "b"], "'utf-8' codec can't encode"),
    "units": ("units", [["a"]], "not enough values to unpack"),
    "places": ("operations", [["a", ["b"]]], "is no list of whole numbers"),
    "long numbers": ("held", [[2**63]], "is no list of whole numbers"),
    "no frequency": ("frequency_mhz", float("nan"), "frequency_mhz nan"),
    "no clock": ("frequency_mhz", 0, "frequency_mhz 0.0"),
    "no name": ("chip", None, "None is no text"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_content_is_refused(case: str, path: Path) -> None:
    change, reported = WRONG[case]
    changed = change(arrays_of(path))
    np.savez(path, **changed)
    with pytest.raises(InputError, match=rf"p\.npz: .*{reported}"):
        load_program(path)


@pytest.mark.parametrize("case", WRONG_NAMES)
def test_wrong_names_are_refused(case: str, path: Path) -> None:
    key, value, reported = WRONG_NAMES[case]
    arrays = arrays_of(path)
    names = json.loads(arrays["names"].tobytes())
    np.savez(path, **arrays | {"names": names_as(names | {key: value})})
    with pytest.raises(InputError, match=rf"p\.npz: .*{reported}"):
        load_program(path)


def test_files_that_are_compressed_or_lie_about_their_size_are_refused(path: Path) -> None:
    np.savez_compressed(path, **arrays_of(path) | {"words": np.zeros(2 * 10**6, np.int64)})
    assert path.stat().st_size < 10**6
    with pytest.raises(InputError, match=r"'format.npy' is compressed, expected numpy.savez"):
        load_program(path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("format.npy", header.getvalue())
    with pytest.raises(InputError, match=r"'format.npy' is cut off or damaged"):
        load_program(path)


@pytest.mark.parametrize(
    ("content", "reported"),
    [(b"", "is empty"), (b"\x93NUMPY", "is no .npz file"), (b"PK\x03\x04" * 9, "is damaged or cut off")],
)
def test_other_files_are_refused(content: bytes, reported: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"p\.npz: .*{reported}"):
        load_program(path)


def damaged(draw: random.Random, content: bytes, arrays: dict[str, Any]) -> bytes:
    """A file with some wrong bytes, one that is cut off, or a whole one with some wrong words or names."""
    kind = draw.randrange(4)
    if kind == 0:
        return content[: draw.randrange(len(content))]
    if kind == 1:
        changed = bytearray(content)
        for _ in range(draw.randint(1, 20)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed)
    words, names = arrays["words"].copy(), arrays["names"].copy()
    for _ in range(draw.randint(1, 4)):
        if kind == 2:
            value = draw.choice([-(2**63), -1, 0, 1, 2, 7, len(words), 2**31, 2**63 - 1, draw.randrange(300)])
            words[draw.choice([draw.randrange(40), draw.randrange(1, len(words))])] = value
        else:
            names[draw.randrange(len(names))] = draw.randrange(256)
    file = io.BytesIO()
    np.savez(file, format=arrays["format"], words=words, names=names)
    return file.getvalue()


def outcome(path: Path) -> str:
    """What becomes of a file: the sentence of its refusal, or nothing."""
    try:
        flat, names = load_program(path)
    except InputError as error:
        return str(error)
    try:
        validate(program_of(flat, names))
    except ProgramError as error:
        return f"{path}: {error}"
    return ""


def test_damaged_files_are_refused_or_read(path: Path) -> None:
    content, arrays = path.read_bytes(), arrays_of(path)
    reported = []
    for seed in range(min(EXAMPLES, 1000)):
        path.write_bytes(damaged(random.Random(seed), content, arrays))
        reported.append(outcome(path))
    assert all(each.startswith(f"{path}: ") for each in reported if each)
    assert sum(map(bool, reported)) > len(reported) // 2


def test_the_tables_of_a_file_are_named_in_their_order(path: Path) -> None:
    words = arrays_of(path)["words"]
    assert words[0] == FORMAT
    assert len(words) == 1 + 2 * len(FLAT_TABLES) + sum(
        rows * table.width
        for rows, table in zip(words[2 : 2 + 2 * len(FLAT_TABLES) : 2], FLAT_TABLES.values(), strict=True)
    )
