"""Files with input frames: three formats, and what is wrong with them said in a sentence."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.files.catalog import input_files
from lstmsim.files.scenario.numbers import read_frames
from lstmsim.files.scenario.scenario_file import load_scenario
from lstmsim.importers.tensors import write_safetensors

X = np.arange(12, dtype=np.float64).reshape(4, 3) / 8


def saved(folder: Path, name: str) -> Path:
    path = folder / name
    if name.endswith(".npy"):
        np.save(path, X)
    elif name.endswith(".csv"):
        path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n")
    else:
        write_safetensors(path, {"x": X})
    return path


def npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=True)
    return sink.getvalue()


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.safetensors"])
def test_every_format_gives_the_first_frames(tmp_path: Path, name: str) -> None:
    assert read_frames(saved(tmp_path, name), steps=3, width=3).tolist() == X[:3].tolist()


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.safetensors"])
@pytest.mark.parametrize(("steps", "width"), [(5, 3), (4, 2), (4, 4)])
def test_too_few_or_other_frames_are_refused(tmp_path: Path, name: str, steps: int, width: int) -> None:
    with pytest.raises(InputError, match="expected"):
        read_frames(saved(tmp_path, name), steps, width)


def test_column_order_of_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    assert read_frames(tmp_path / "f.npy", 4, 3).tolist() == X.tolist()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty.npy": (b"", "is empty|no .npy"),
    "objects.npy": (npy(np.array([[{}]], dtype=object)), "holds object"),
    "complex.npy": (npy(np.ones((4, 3), complex)), "holds complex128"),
    "nan.npy": (npy(np.full((4, 3), np.nan)), "holds nan at step 0, column 0"),
    "bomb.npy": (npy(X).replace(b"(4, 3), }", b"(9999999999, 3), }".ljust(9)), "is cut off or damaged|no .npy"),
    "cut.npy": (npy(X)[:-8], "is cut off"),
    "flat.npy": (npy(X[0]), r"shape \[3\]"),
    "header.npy": (npy(X).replace(b"'shape'", b"__import"), "no .npy"),
    "zip.npy": (b"PK\x03\x04" + bytes(40), "no .npy"),
    "words.csv": (b"1,2,3\n4,five,6\n", "csv:2: 'five' is no number"),
    "short.csv": (b"1,2,3\n", "has 1 frames, expected 4 or more"),
    "wide.csv": (b"1,2,3\n1,2,3,4\n", "csv:2: has 4 columns"),
    "inf.csv": (b"1,2,3\n1,inf,3\n1,2,3\n1,2,3\n", "holds inf at step 1, column 1"),
    "bytes.csv": (b"\xff\xfe1,2,3\n", "no CSV text"),
    "x.wav": (b"RIFF", "ends in .safetensors, .npy, .csv"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_a_sentence(tmp_path: Path, name: str) -> None:
    content, sentence = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_frames(tmp_path / name, 4, 3)
    assert all(name in mistake.location for mistake in caught.value.mistakes)


def test_no_tensor_x_and_an_archive_of_arrays(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "y.safetensors", {"frames": X})
    with pytest.raises(InputError, match="has no tensor 'x' with the frames; there is 'frames'"):
        read_frames(tmp_path / "y.safetensors", 4, 3)
    with zipfile.ZipFile(tmp_path / "z.npy", "w") as archive:
        archive.writestr("x.npy", npy(X))
    with pytest.raises(InputError, match=r"no \.npy"):
        read_frames(tmp_path / "z.npy", 4, 3)


@given(st.binary(max_size=300), st.sampled_from([".npy", ".csv", ".safetensors"]), st.booleans())
def test_nothing_but_input_errors(tmp_path_factory: pytest.TempPathFactory, junk: bytes, end: str, head: bool) -> None:
    path = tmp_path_factory.mktemp("junk") / f"x{end}"
    path.write_bytes((npy(X)[:80] if head else b"") + junk)
    with suppress(InputError):
        read_frames(path, 1, 3)


def test_inputs_that_come_along_are_found_by_name_unless_the_folder_has_one(tmp_path: Path) -> None:
    name = "silero-speech.safetensors"
    jobs = [{"model": "silero-vad-16k", "steps": 2, "inputs": name}]
    (tmp_path / "s.json").write_text(f'{{"chip": "column-npu-16k", "jobs": {jobs}}}'.replace("'", '"'))
    assert load_scenario(tmp_path / "s.json").jobs[0].inputs == str(input_files()[name])
    write_safetensors(tmp_path / name, {"x": np.zeros((2, 128))})
    assert load_scenario(tmp_path / "s.json").jobs[0].inputs == str(tmp_path / name)
