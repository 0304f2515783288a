"""Damaged files of frames and weights are refused with a sentence, whichever library stumbles over them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base.errors import InputError
from lstmsim.files.scenario.numbers import read_frames
from lstmsim.importers.files import import_weights
from tests.importers.weight_files import tensor, text, torch_stream, torch_tensors, torch_zip

HEADERS = [
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 256",
    "{'descr': ['<f8', 'fortran_order': False, 'shape': (3, 256), }",
    "[" * 3000,
    "{'descr': (",
    "'''",
    "\\",
]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_with_open_brackets(header: str, version: int, tmp_path: Path) -> None:
    body = header.encode() + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(body))
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + size + body + bytes(64))
    with pytest.raises(InputError, match=r"x\.npy: (is no \.npy file, or is damaged: |holds )"):
        read_frames(path, 2, 8)


@pytest.mark.parametrize("write", [torch_zip, torch_stream])
@pytest.mark.parametrize("stride", [2**61, 2**62 - 1])
def test_the_stride_of_a_dimension_of_one_means_nothing(write: object, stride: int, tmp_path: Path) -> None:
    arrays = torch_tensors("gru", 2, 1)
    body = b"}("
    old = write is torch_stream
    for number, (name, array) in enumerate(arrays.items()):
        strides = tuple(1 if size > 1 else stride for size in array.shape)
        body += text(name) + tensor(str(number), array, old, strides=strides)
    path = tmp_path / "a.pth"
    path.write_bytes(write(arrays, body + b"u"))  # type: ignore[operator]
    (imported,) = import_weights(path)
    assert imported.network is not None
    read = imported.network.passes[0][0].matrices["r", "x"]
    np.testing.assert_array_equal(read, arrays["weight_ih_l0"][:2])


def test_a_large_stride_that_means_something(tmp_path: Path) -> None:
    arrays = torch_tensors("gru", 3, 2)
    body = b"}("
    for number, (name, array) in enumerate(arrays.items()):
        strides = tuple(2**61 for _ in array.shape)
        body += text(name) + tensor(str(number), array, True, strides=strides)
    path = tmp_path / "a.pth"
    path.write_bytes(torch_stream(arrays, body + b"u"))
    with pytest.raises(InputError, match="beyond the"):
        import_weights(path)
