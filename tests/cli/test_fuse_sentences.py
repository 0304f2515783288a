"""Sentences of `lstmsim fuse` that a sceptic would look up: what is compared with what, and what a mean is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lstmsim
from tests.cli.runner import call

pytestmark = pytest.mark.needs_core


def text(*arguments: str) -> str:
    """The printed text with its lines joined, so that no sentence is broken."""
    called = call("fuse", *arguments)
    assert called.exit_code == 0, called.output
    return " ".join(called.stdout.split())


@pytest.fixture(scope="module")
def row_sum() -> str:
    return text("row-sum", "--modes", "op,stitch", "--ablate")


@pytest.mark.slow
def test_the_strongest_of_some_baselines_is_not_called_the_strongest(row_sum: str) -> None:
    assert "of op, the strongest of the baselines here, without xla and tvm: above 1 is slower" in row_sum
    assert "the strongest baseline: above 1" in text("row-sum", "--size", "length=32", "--no-numbers")


def test_bytes_that_are_not_counted_are_named(row_sum: str) -> None:
    counted = "read, written: bytes beyond the chip, each element once a kernel"
    assert f"{counted}, without the partials of split results; DRAM: " in row_sum
    printed = text("softmax", "--modes", "op,stitch", "--no-cycles", "--no-numbers")
    assert f"{counted}; recomputed: evaluations of an element beyond its first in a kernel, as the" in printed


def test_what_the_device_moves_stands_beside_what_kernels_read_and_write() -> None:
    # sectors of 32 bytes: 4 rows of 2,048 numbers, a sector for the results, and 4 x 32 partials where rows are split
    report = lstmsim.run_fusion("row-sum", modes=["op", "stitch"], numbers=False)
    answer = report.to_dict()
    op, stitch = answer["modes"]
    assert (op["read_bytes"] + op["written_bytes"], op["dram_bytes"]) == (4 * 8192 + 16, 4 * 8192 + 32)
    assert stitch["read_bytes"] + stitch["written_bytes"] == 4 * 8192 + 16
    assert stitch["dram_bytes"] == 4 * 8192 + 32 + 4 * 32 * 4
    counts = answer["reported"]["counts"]
    assert [stitch["l2_bytes"], stitch["dram_bytes"]] == [32 * counts["l2_sectors"], 32 * counts["dram_sectors"]]
    rows = [" ".join(line.split()) for line in report.to_text().splitlines()]
    assert f"stitch 1 32,768 16 33,312 0 {report.reported.cycles:,}" in " ".join(rows)
    reported = "DRAM: bytes that the simulated device moves there, in sectors of 32, with partials, but without what L2"
    assert reported in " ".join(rows)


@pytest.mark.slow
def test_the_partials_of_attention_are_half_of_what_it_moves() -> None:
    # beside the rounding to sectors, these are 40 partials of the maximum, the sum, and 356 results
    (row,) = lstmsim.run_fusion("attention", modes=["stitch"], numbers=False).to_dict()["modes"]
    assert (row["read_bytes"] + row["written_bytes"], row["dram_bytes"]) == (59_824, 59_824 + 4 * 40 * 358 + 16)


def test_without_cycles_nothing_is_moved() -> None:
    report = lstmsim.run_fusion("row-sum", modes=["stitch"], numbers=False, cycles=False)
    assert [report.to_dict()["modes"][0][each] for each in ("dram_bytes", "l2_bytes")] == [None, None]
    assert "DRAM: bytes" not in report.to_text()


def test_a_way_that_was_executed_is_named_once(row_sum: str) -> None:
    assert "(op, stitch, stitch (costed), xla, mapped, stored), block by block" in row_sum


def test_more_than_twice_the_time_is_told_as_a_multiple() -> None:
    printed = text("row-sum", "--set", "split_rule=costed", "--modes", "op,stitch", "--no-numbers")
    assert "split_rule paper takes 2.54 times the time of split_rule costed" in printed


def test_without_cycles_a_mean_is_not_over_time() -> None:
    asked = ("row-sum", "--modes", "op,stitch", "--no-numbers")
    assert "(both: mean over the kernels)" in text(*asked, "--no-cycles")
    assert "(both: mean over the time of the kernels)" in text(*asked)


def test_equal_shares_have_that_share_as_their_mean() -> None:
    report = lstmsim.run_fusion("quantisation", modes=["xla", "stitch"], numbers=False)
    assert [row.mean(row.cores) for row in report.rows] == [1 / 80, 1 / 80]


def test_a_picture_with_library_calls_says_that_its_cycles_are_without_them(tmp_path: Path) -> None:
    report = lstmsim.run_fusion("cycle", modes=["stitch"], numbers=False)
    lstmsim.plot_fusion(report, tmp_path / "cycle.svg")
    assert "cycle on v100, fused part: 11,472 cycles" in (tmp_path / "cycle.svg").read_text()


def test_nothing_to_draw_over_time_is_not_blamed_on_the_user(tmp_path: Path) -> None:
    graph = tmp_path / "p.yaml"
    graph.write_text("outputs: [x]\nnodes: [{name: x, op: input, shape: [3]}]\n")
    called = call("fuse", str(graph), "--timeline", str(tmp_path / "t.png"))
    assert called.exit_code == 2
    assert "timeline: there is no kernel: the graph has no memory-intensive operation" in called.stderr


def test_a_group_of_one_is_one_operation() -> None:
    printed = text("cycle", "--explain", "--no-cycles", "--no-numbers")
    assert "a leads a group of 1 operation, element" in printed
    assert "1 tile for 160 blocks of 1,024 threads that are on the device at once" in printed


def test_numbers_that_are_none_are_not_counted_as_shown(tmp_path: Path) -> None:
    graph = tmp_path / "g.yaml"
    graph.write_text(
        "outputs: [y, s]\nnodes:\n"
        "  - {name: x, op: input, shape: [4, 8]}\n"
        "  - {name: y, op: divide, inputs: [x, 0]}\n"
        "  - {name: s, op: reduce_sum, inputs: [x], axes: [1]}\n"
    )
    asked = (str(graph), "--modes", "stitch", "--no-cycles")
    assert "32 of 36 numbers are infinite or NaN in numpy too, which shows little" in text(*asked)
    (row,) = lstmsim.run_fusion(graph, modes=["stitch"], cycles=False).to_dict()["modes"]
    assert (row["executed"]["elements"], row["executed"]["not_finite"]) == (36, 32)
    assert "which shows little" not in text("softmax", *asked[1:])


def test_what_was_too_large_is_said_where_its_numbers_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.fuse.asked.MOST_SIMULATED", 1000)
    monkeypatch.setattr("lstmsim.studies.fuse.asked.MOST_EXECUTED", 1000)
    printed = text("softmax")
    assert "more than 1,000; ask for cycles (--cycles) op a kernel for each operation" in printed
    assert "executed no: nothing was executed on numbers: the graph has 82,048 elements in all" in printed
    assert printed.count("nothing was simulated") == printed.count("nothing was executed") == 1
    assert len(lstmsim.run_fusion("softmax").remarks) == 2


def test_scratch_beyond_the_limit_is_told_and_overlaps_without_numbers() -> None:
    asked: dict[str, Any] = {"modes": ["stitch"], "cycles": False, "numbers": False}
    (large,) = lstmsim.run_fusion("overflow", settings={"shared_limit": 0}, **asked).remarks
    assert large.startswith(
        "the kernel stitch 0 has 80 bytes of shared memory a block, more than the 0 of shared_limit"
    )
    (overlap,) = lstmsim.run_fusion("overflow", **asked).remarks
    assert overlap.startswith("t writes over s in buffer 0 of shared memory")
