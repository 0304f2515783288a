"""The safetensors format, against the format's own library and against broken headers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy as library
from hypothesis import given
from hypothesis import strategies as st

from lstmsim.base.errors import InputError
from lstmsim.importers.tensors import MAX_HEADER, decoded, floats, read_safetensors, write_safetensors
from tests.importers.weight_files import safe
from tests.strategies import CHARACTERS

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
ARRAYS = st.dictionaries(
    st.text(CHARACTERS, min_size=1, max_size=5), st.tuples(SHAPES, st.sampled_from("fd")), max_size=5
)


@given(ARRAYS.filter(lambda arrays: "__metadata__" not in arrays))
def test_the_library_reads_what_is_written(tmp_path_factory: Any, arrays: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("w") / "a.safetensors"
    random = np.random.default_rng(3)
    wanted = {name: random.normal(size=shape).astype(kind) for name, (shape, kind) in arrays.items()}
    write_safetensors(path, wanted, {"licence": "MIT"})
    arrays = library.load_file(path)
    assert arrays.keys() == wanted.keys()
    for name, array in wanted.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_what_the_library_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    random = np.random.default_rng(3)
    wanted = {kind: random.normal(size=(3, 2)).astype(kind) for kind in ("float16", "float32", "float64")}
    library.save_file({**wanted, "counts": np.arange(5)}, path, metadata={"source": "x"})
    content = read_safetensors(path)
    assert dict(content.metadata) == {"source": "x"}
    read = floats(content.tensors, dict.fromkeys(wanted, (3, 2)))
    for name, array in wanted.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == ("float64" if name == "float64" else "float32")
    with pytest.raises(InputError, match="counts: holds I64, expected F64, F32, F16 or BF16"):
        floats(content.tensors, {"counts": (5,)})


@given(st.floats(width=32, allow_nan=False))
def test_brain_floats_are_the_upper_half_of_a_float(value: float) -> None:
    upper = np.float32(value).tobytes()[2:]
    assert decoded("BF16", upper).tobytes() == b"\0\0" + upper


def test_equal_content_gives_equal_aligned_bytes(tmp_path: Path) -> None:
    arrays = {"b": np.ones(3, np.float32), "a": np.ones(2), "c": np.ones(1, np.float32)}
    for name, each in (("x", arrays), ("y", dict(reversed(arrays.items())))):
        write_safetensors(tmp_path / name, each, {"b": "1", "a": "2"})
    content = (tmp_path / "x").read_bytes()
    assert content == (tmp_path / "y").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert length % 8 == 0
    header = json.loads(content[8 : 8 + length])
    assert [
        name for name in sorted(header, key=lambda key: header[key].get("data_offsets", [0])) if name[0] != "_"
    ] == [*"abc"]


def entry(begin: int, end: int, shape: Any = None, kind: Any = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": [(end - begin) // 4] if shape is None else shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty, expected a safetensors file"),
        (b"\x01\x02", "has only 2 bytes"),
        (b"\xff" * 16, "is no safetensors file, or is cut off"),
        (safe({"a": entry(0, 8)}, bytes(8))[:40], "is cut off: states a header of"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (safe(b"[]"), "does not begin with {"),
        (safe(b"{" + b"[" * 200_000), "its header is no JSON"),
        (safe(b'{"a":' * 200_000), "its header is no JSON"),
        (safe(b'{"a":1' + b"9" * 9000 + b"}"), "its header is no JSON"),
        (safe(b'{"\xff": 1}'), "its header is no JSON"),
        (safe({"__metadata__": {"a": 1}}), "__metadata__: expected a mapping of texts"),
        (safe({"__metadata__": None}), "__metadata__: expected a mapping of texts"),
        (safe(b'{"a": {}, "a": {}}'), "the key 'a' twice"),
        (safe(b'{"a": {"dtype": "F32", "dtype": "F64"}}'), "the key 'dtype' twice"),
        (safe({"a": 3}), "'a': expected a mapping of dtype"),
        (safe({"a": {"dtype": "F32"}}), "'a': expected dtype (a text)"),
        (safe({"a": entry(0, 8, [-2])}, bytes(8)), "whole numbers from 0 on"),
        (safe({"a": entry(0, 8, [True, 2])}, bytes(8)), "whole numbers from 0 on"),
        (safe({"a": entry(0, 8, [2.0])}, bytes(8)), "whole numbers from 0 on"),
        (safe({"a": entry(0, 4, [1] * 99)}, bytes(4)), "whole numbers from 0 on"),
        (safe({"a": entry(0, 8, [3])}, bytes(8)), "'a': has 8 bytes, its shape and F32 need 12"),
        (safe({"a": entry(0, 8, [2**62, 2**62, 2**62])}, bytes(8)), "'a': has 8 bytes, its shape and F32 need"),
        (safe({"a": entry(0, 2**40)}, bytes(8)), "'a': lies at bytes 0 to 1099511627776, outside the 8 bytes"),
        (safe({"a": entry(8, 0, [])}, bytes(8)), "'a': lies at bytes 8 to 0"),
        (safe({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)), "'b': overlaps the tensor before it"),
        (safe({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)), "'b': leaves a hole before it"),
        (safe({"a": entry(0, 4)}, bytes(12)), "has 12 bytes of numbers, its header describes 4"),
    ],
)
def test_refused(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_safetensors(path)
    lines = str(caught.value).splitlines()
    assert sentence in lines[0]
    assert lines[0].startswith(f"{path}: ")


def test_a_header_above_the_bound_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with path.open("wb") as file:
        file.write((MAX_HEADER + 1).to_bytes(8, "little"))
        file.truncate(2 * MAX_HEADER)
    with pytest.raises(InputError, match="more than the"):
        read_safetensors(path)


def test_many_mistakes_are_capped(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(safe({f"t{number}": 1 for number in range(1000)}))
    with pytest.raises(InputError) as caught:
        read_safetensors(path)
    assert len(caught.value.mistakes) == 21
    assert "and 980 more like these" in str(caught.value)
