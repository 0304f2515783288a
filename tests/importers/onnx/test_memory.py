"""What an import takes depends on the file, not on the largest one that can be read."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from lstmsim.importers.onnx.file import parsed_network
from tests.importers.onnx.graphs import save
from tests.importers.onnx.test_external import network


def test_a_small_network_takes_little_memory(tmp_path: Path) -> None:
    path = save(network(), tmp_path / "small.onnx")
    tracemalloc.start()
    try:
        parsed_network(str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # to ask for as much as a file can have took 2 GB, which a process with a bound of memory does not get
    assert peak < 100e6
