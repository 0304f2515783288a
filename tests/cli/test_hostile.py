"""Small inputs that ask for much: each command says how much memory it would take, before any work begins."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from lstmsim.base import memory
from tests.cli.runner import call

#: A matrix without an entry, and three lines of a hundred million.
_EMPTY = "%%MatrixMarket matrix coordinate real general\n65536 65536 0\n"
_FIGURE = (
    r"scenario s: weights and vectors of all jobs need about (29|7)\.\d GB of memory, at most 4.0 GB \(half of what"
    r" this machine, its container or its shell allows\) are taken: take fewer units or steps\n"
)


@pytest.fixture(autouse=True)
def _eight_gigabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: 4 * 10**9)


def _scenario(folder: Path, hidden: int, steps: int, chip: str = "column-npu-64k") -> str:
    path = folder / "s.yaml"
    layer = {"cell": "lstm", "hidden": hidden, "input": 8}
    path.write_text(json.dumps({"chip": chip, "jobs": [{"model": {"layers": [layer]}, "steps": steps}]}))
    return str(path)


@pytest.mark.parametrize(
    "options",
    [
        ("accuracy", "--random-weights", "1"),
        ("simulate", "--check-numerics", "--random-weights", "1"),
        ("simulate", "--outputs", "o.safetensors", "--random-weights", "1"),
    ],
)
@pytest.mark.parametrize(("hidden", "steps"), [(16_000, 2), (64, 1_500_000)])
def test_numbers_of_large_networks_are_refused_before_they_are_drawn(
    options: tuple[str, ...], hidden: int, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *rest = options
    called = call(command, _scenario(tmp_path, hidden, steps), *rest)
    assert called.exit_code == 2, called.output
    assert re.fullmatch(_FIGURE, called.stderr), called.stderr


def test_steps_of_a_huge_product_are_estimated_and_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.machines.multicore.jobs.steps_of", lambda *_: pytest.fail("steps are listed"))
    called = call("simulate", _scenario(tmp_path, 1_000_000, 1, "epyc-7742"))
    assert called.exit_code == 2, called.output
    assert "operations on this chip, more than 500,000: too many to simulate" in called.stderr


@pytest.mark.parametrize("kernel", ["spmm", "sddmm"])
def test_sparse_products_are_refused_by_their_memory(kernel: str, tmp_path: Path) -> None:
    (tmp_path / "m.mtx").write_text(_EMPTY)
    called = call("sparse", str(tmp_path / "m.mtx"), "--kernel", kernel, "--columns", "4096")
    assert called.exit_code == 2, called.output
    assert f"instructions of {kernel} of 65,536 x 65,536 with 4,096 columns need about " in called.stderr


def test_many_entries_are_refused_before_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "m.mtx").write_text(_EMPTY.replace(" 0\n", " 134217728\n"))
    called = call("sparse", str(tmp_path / "m.mtx"))
    assert called.exit_code == 2, called.output
    assert "134,217,728 entries need about 8.1 GB of memory" in called.stderr


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.mtx.gz", _EMPTY.split("\n")[0] + "\n" * 100_002, "a.mtx.gz:100001: expected the sizes within the first"),
        ("b.mtx.gz", _EMPTY + "\n" * 13_000_000, "has more than 12,800,000 bytes, too many for 0 entries"),
        ("c.smtx.gz", "1, 1, 0\n0 0\n" + " " * 13_000_000, "has more than 12,800,256 bytes, too many for 1 rows"),
    ],
    ids=["header", "lines", "smtx"],
)
def test_archives_of_blank_lines_are_refused(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(content.encode(), 1))
    called = call("sparse", str(tmp_path / name))
    assert called.exit_code == 2, called.output
    assert said in called.stderr


def test_a_graph_is_refused_by_the_memory_of_its_numbers() -> None:
    called = call("fuse", "ln-lstm", "--size", "hidden=16384", "--numbers", "--no-cycles")
    assert called.exit_code == 2, called.output
    assert "GRAPH: its plan, instructions and numbers need about " in called.stderr


def test_an_array_larger_than_the_machine_is_a_fault_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.accuracy.request.accuracy", lambda *_, **__: np.empty(10**12))
    called = call("accuracy", "experiments/scenarios/demo.yaml")
    assert called.exit_code == 2, called.output
    assert called.stderr == "Error: the input needs 8,000.0 GB of memory at once, expected a smaller one\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full disk to try")
def test_a_full_disk_does_not_hide_what_was_written(tmp_path: Path) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text(
        "{chip: column-npu-16k, jobs: [{model: {layers: [{cell: rnn, hidden: 8, input: 8}]}, steps: 1}]}"
    )
    table = tmp_path / "new.csv"
    called = call("compare", str(scenario), "--chip", "column-npu-64k", "--json", "/dev/full", "--csv", str(table))
    assert called.exit_code == 1, called.output
    *_, wrote, said = called.stderr.splitlines()
    assert wrote == f"wrote {table}"
    assert table.stat().st_size
    assert said == "Error: /dev/full: no space left on the disk; nothing was written to it"
