"""`lstmsim sparse`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim.analysis.files import load_trace
from lstmsim.analysis.timeline import MAIN, STATES
from tests.cli.runner import both, call
from tests.files.matrix_files import write_matrix
from tools.drawn_matrices import drawn_matrix

pytestmark = pytest.mark.needs_core


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_matrix("a.mtx", drawn_matrix(40, 30, 200, 3, skew=True))
    Path("p.smtx").write_text("2, 3, 3\n0 2 3\n0 2 1\n")


def test_a_file_is_simulated_and_its_result_written() -> None:
    called = call("sparse", "a.mtx", "--columns", "8", "--chip", "edge", "--output", "c.npy", "--seed", "4")
    assert called.exit_code == 0, called.output
    result = np.load("c.npy")
    dense = drawn_matrix(40, 30, 200, 3, skew=True).dense()
    # the operand is drawn as the docstring of `drawn_operands` says
    operand = np.random.default_rng([4, 20]).standard_normal((30, 8))
    assert np.abs(result - dense @ operand).max() < 1e-11
    for word in ("40 x 30", "CoV", "cycles of all schedulers", "L2 sectors", "lane_active", "utilization"):
        assert word in called.stdout
    for word in ("csr, sorted, on demand", "dense GEMM", "not modelled"):
        assert word in called.stdout
    assert called.stderr == "wrote c.npy\n"


def test_accounts_add_up_and_kernels_follow_each_other() -> None:
    answer = json.loads(call("sparse", "a.mtx", "--chip", "edge", "--method", "csr", "--json", "-").stdout)
    assert answer["schema"] == "lstmsim/sparse/2"
    assert sum(answer["accounts"].values()) == answer["account_cycles"] == 8 * 4 * answer["makespan_cycles"]
    assert answer["kernels"][-1]["ends"] == answer["makespan_cycles"]
    assert answer["span_cycles"] == sum(each["ends"] - each["arrives"] for each in answer["kernels"])
    assert answer["largest_error"] < 1e-12
    assert answer["counts"]["efficiency"] == answer["counts"]["lane_active"] / answer["counts"]["lane_slots"]
    assert {each["name"] for each in answer["baselines"]} >= {"csr, sorted, on demand", "csr, unsorted, dealt in runs"}


@pytest.mark.parametrize(("kernel", "method"), [("spmm", "csr"), ("spmv", "hbp"), ("spmv", "csr"), ("sddmm", "csr")])
def test_each_mechanism_is_switched_off_in_turn(kernel: str, method: str) -> None:
    options = ("--chip", "edge", "--kernel", kernel, "--method", method, "--columns", "16", "--no-baselines")
    answer = json.loads(call("sparse", "a.mtx", *options, "--ablate", "--json", "-").stdout)
    first, *others = answer["ablations"]
    assert len(others) >= 8
    assert all("refused" in each or each["span_cycles"] > 0 for each in others)
    assert answer["baselines"] == []
    assert first["span_cycles"] > 0


def test_weights_are_pruned_and_parameters_set() -> None:
    options = ("--prune", "0.9", "--prune-by", "row", "--chip", "edge", "--kernel", "spmv", "--no-baselines")
    answer = json.loads(call("sparse", "silero-vad-16k:l0", *options, "--set", "lanes=4", "--json", "-").stdout)
    assert answer["matrix"]["variation"] == 0
    assert answer["matrix"]["entries"] == 512 * 26
    assert answer["options"]["lanes"] == 4
    assert answer["counts"]["lanes"] == 4


def test_the_chip_is_changed() -> None:
    options = ("--chip", "v100", "--chip-set", "l2_state=warm", "--no-baselines", "--json", "-")
    warm = json.loads(call("sparse", "a.mtx", *options).stdout)
    assert warm["counts"]["dram_sectors"] == 0


def test_a_file_without_values_says_where_they_are_from() -> None:
    options = ("--kernel", "spmv", "--chip", "edge", "--no-baselines")
    assert "it has no values: each is 1" in call("sparse", "p.smtx", *options).stdout.replace("\n             ", " ")
    drawn = call("sparse", "p.smtx", *options, "--values-seed", "3").stdout.replace("\n             ", " ")
    assert "drawn from the normal distribution with seed 3" in drawn


@pytest.mark.slow
def test_blocks_are_drawn() -> None:
    for name in ("t.png", "t.svg"):
        assert call("sparse", "a.mtx", "--chip", "edge", "--no-baselines", "--timeline", name).exit_code == 0
        assert Path(name).stat().st_size > 1000


def test_both_engines_give_the_same_numbers() -> None:
    options = ("--kernel", "spmv", "--chip", "edge", "--no-baselines", "--json", "-")
    fast, reference = (
        json.loads(call("sparse", "p.smtx", *options, "--engine", each).stdout) for each in ("fast", "reference")
    )
    assert fast.pop("engine") == "fast"
    assert reference.pop("engine") == "reference"
    assert fast == reference


WRONG = {
    ("b.mtx",): "b.mtx: no such file or folder",
    ("resemblyser:l1",): "no model called 'resemblyser'; did you mean 'resemblyzer'?",
    (
        "a.mtx",
        "--prune",
        "0.5",
    ): "--prune: is for weights of models like 'resemblyzer:l1'; this matrix is sparse already",
    ("silero-vad-16k:l0", "--prune", "1.5"): "--prune: must be from 0 to 1, got 1.5",
    ("a.mtx", "--kernel", "spmmm"): "--kernel: must be spmv, spmm or sddmm, got 'spmmm'; did you mean 'spmm'?",
    ("a.mtx", "--method", "csrr"): "--method: spmm has csr, dcsr or dense, got 'csrr'; did you mean 'csr'?",
    ("a.mtx", "--chip", "v10"): "no chip called 'v10'; did you mean 'v100'?",
    ("a.mtx", "--chip", "column-npu-64k"): "chip column-npu-64k: its machine runs no kernels for sparse matrices",
    ("a.mtx", "--threshold", "2"): "--threshold: must be from 0 to 1, got 2.0",
    ("a.mtx", "--threshold", "0.5", "--method", "csr"): "--threshold: chooses the method; 'csr' is chosen already",
    ("a.mtx", "--side", "rigth"): "--side: spmm has left, transposed or right, got 'rigth'; did you mean 'right'?",
    ("a.mtx", "--kernel", "sddmm", "--side", "right"): "--side: sddmm has left, got 'right'",
    ("a.mtx", "--trace", "t.xls"): "--trace t.xls: expected a file name that ends in ",
    ("a.mtx", "--trace-window", "1:2"): "--trace-window: only with --trace",
    ("a.mtx", "--set", "tille=8"): "--set tille: is no parameter of this method; did you mean 'tile'?; it has ",
    ("a.mtx", "--set", "tile"): "--set: expected NAME=VALUE, got 'tile'",
    ("a.mtx", "--set", "order=sorte"): "order: must be plain or sorted, got 'sorte'; did you mean 'sorted'?",
    ("a.mtx", "--set", "v=3"): "v: must be 1, 2 or 4, got 3",
    ("a.mtx", "--output", "c.txt"): "--output c.txt: expected a file name that ends in .npy",
    ("a.mtx", "--json", "a.mtx"): "--json a.mtx: is also the input; expected another file",
    (
        "a.mtx",
        "--kernel",
        "sddmm",
        "--method",
        "dense",
        "--output",
        "c.npy",
    ): "result c.npy: dense is a baseline: it is timed, and computes nothing here",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_a_mistake_is_a_sentence(arguments: tuple[str, ...]) -> None:
    called = call("sparse", *arguments)
    assert (called.exit_code, called.stdout) == (2, "")
    assert called.stderr.startswith(WRONG[arguments]) or called.stderr.startswith(f"Error: {WRONG[arguments]}")
    assert not Path("c.npy").exists()


#: Odd matrices with which the usual run also switches mechanisms off, for each kernel.
ABLATED = {("spmv", "none.mtx"), ("spmm", "one.mtx"), ("sddmm", "wide.mtx")}


@pytest.mark.slow
def test_odd_sizes_are_simulated() -> None:
    for name, text in {"one.mtx": "1 1 1\n1 1 3", "none.mtx": "4 5 0", "wide.mtx": "1 9 2\n1 2 3\n1 9 1"}.items():
        Path(name).write_text(f"%%MatrixMarket matrix coordinate real general\n{text}\n")
        for kernel in ("spmv", "spmm", "sddmm"):
            more = ["--ablate"] * ("LSTMSIM_EXAMPLES" in os.environ or (kernel, name) in ABLATED)
            called = call("sparse", name, "--kernel", kernel, "--columns", "5", "--chip", "edge", *more)
            assert called.exit_code == 0, called.output


def operand(shape: tuple[int, ...], seed: int = 4) -> Any:
    # drawn as the docstring of `drawn_operands` says
    return np.random.default_rng([seed, 20]).standard_normal(shape)


@pytest.mark.parametrize("method", ["csr", "dcsr", "dense"])
@pytest.mark.parametrize("side", ["left", "transposed", "right"])
def test_every_side_of_a_layer_equals_numpy(side: str, method: str) -> None:
    options = ("--columns", "8", "--chip", "edge", "--seed", "4", "--no-baselines", "--method", method, "--side", side)
    answer = json.loads(call("sparse", "a.mtx", *options, "--output", "c.npy", "--json", "-").stdout)
    dense = drawn_matrix(40, 30, 200, 3, skew=True).dense()
    if side == "left":
        wanted = dense @ operand((30, 8))
    elif side == "transposed":
        wanted = dense.T @ operand((40, 8))
    else:
        # the dense operand is drawn as it lies in memory, by columns
        wanted = operand((40, 8)).T @ dense
    assert np.abs(np.load("c.npy") - wanted).max() < 1e-11
    assert answer["side"] == side
    assert answer["matrix"]["rows"] == 40
    assert answer["walked"]["rows"] == (40 if side == "left" else 30)


def test_zeros_above_the_threshold_take_the_sparse_path() -> None:
    options = ("--kernel", "spmv", "--chip", "edge", "--no-baselines", "--json", "-", "--threshold")
    # half of the places are empty
    for threshold, method in (("0.5", "dense"), ("0.49", "csr")):
        assert json.loads(call("sparse", "p.smtx", *options, threshold).stdout)["method"] == method


def test_a_vector_is_multiplied_from_the_other_side() -> None:
    for method in ("csr-4", "hbp", "dense"):
        options = ("--kernel", "spmv", "--side", "transposed", "--method", method, "--chip", "edge", "--seed", "4")
        assert call("sparse", "a.mtx", *options, "--no-baselines", "--output", "y.npy").exit_code == 0
        wanted = drawn_matrix(40, 30, 200, 3, skew=True).dense().T @ operand((40,))
        assert np.abs(np.load("y.npy") - wanted).max() < 1e-11


def test_the_gradient_of_weights_is_taken_where_they_are() -> None:
    options = ("--kernel", "sddmm", "--method", "gradient", "--columns", "6", "--chip", "edge", "--seed", "4")
    called = call("sparse", "a.mtx", *options, "--output", "d.npy")
    assert called.exit_code == 0, called.output
    draw = np.random.default_rng([4, 20])
    errors, inputs = draw.standard_normal((40, 6)), draw.standard_normal((30, 6))
    weights = drawn_matrix(40, 30, 200, 3, skew=True)
    wanted = (errors @ inputs.T)[weights.entry_rows, weights.cols]
    assert np.abs(np.load("d.npy") - wanted).max() < 1e-11
    assert "gradient, sorted, demand" in called.stdout


def test_a_wide_dense_product_takes_the_fastest_tile_and_says_so() -> None:
    options = ("--columns", "96", "--chip", "edge", "--no-baselines", "--method", "dense", "--json", "-")
    answer = json.loads(call("sparse", "a.mtx", *options).stdout)
    tiles = {}
    for bm, bn, tm, tn in ((64, 64, 8, 4), (128, 64, 8, 8), (128, 128, 8, 8)):
        sizes = {"bm": bm, "bn": bn, "bk": 8, "tm": tm, "tn": tn}
        given = [word for name, size in sizes.items() for word in ("--set", f"{name}={size}")]
        tiles[bm, bn] = json.loads(call("sparse", "a.mtx", *options, *given).stdout)["span_cycles"]
    assert len(set(tiles.values())) > 1
    assert answer["span_cycles"] == min(tiles.values())
    assert tiles[answer["options"]["bm"], answer["options"]["bn"]] == answer["span_cycles"]
    said, *_ = answer["remarks"]
    assert all(f"tile {bm} x {bn} {cycles:,}" in said for (bm, bn), cycles in tiles.items())
    baselines = call("sparse", "a.mtx", "--columns", "96", "--chip", "edge").stdout
    assert "dense GEMM, tile" in baselines
    assert "(the fastest of 3)" in baselines


@pytest.mark.parametrize("suffix", ["json", "csv", "vcd"])
def test_what_happened_is_written(suffix: str) -> None:
    options = ("--kernel", "spmv", "--chip", "edge", "--no-baselines", "--trace", f"t.{suffix}")
    called = call("sparse", "p.smtx", *options)
    assert called.exit_code == 0, called.output
    assert f"wrote t.{suffix}" in called.stderr
    assert Path(f"t.{suffix}").stat().st_size > 500
    assert Path("t.gtkw").is_file() == (suffix == "vcd")


def test_a_trace_has_the_cycles_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--kernel", "spmv", "--chip", "edge", "--no-baselines")
    answer = json.loads(call("sparse", "a.mtx", *options, "--trace", "t.csv", "--json", "-").stdout)
    timeline = load_trace("t.csv")
    assert (timeline.chip, timeline.unit) == (answer["chip"], "issue")
    busy = [0] * 8
    for row, start, end, state in zip(timeline.row, timeline.start, timeline.end, timeline.state, strict=True):
        where = timeline.rows[row]
        if where.kind == MAIN and STATES[state] == "busy":
            busy[where.core] += int(end - start)
    assert timeline.makespan_cycles == answer["makespan_cycles"]
    assert busy == answer["busy_cycles"]
    end = answer["makespan_cycles"]
    window = ("--trace", "w.csv", "--trace-window", f"{end - 50}:{end}")
    assert call("sparse", "a.mtx", *options, *window).exit_code == 0
    assert Path("w.csv").stat().st_size < Path("t.csv").stat().st_size
    monkeypatch.setattr("lstmsim.studies.simulate.run.MAX_TRACE_OPERATIONS", 100)
    refused = call("sparse", "a.mtx", *options, "--trace", "big.csv")
    assert refused.exit_code == 2
    assert "operations is too long to keep" in refused.stderr
    assert not Path("big.csv").exists()


def test_parameters_of_a_rule_say_so() -> None:
    options = ("sparse", "a.mtx", "--kernel", "spmv", "--method", "hbp", "--chip", "edge", "--no-baselines")
    assert "m 32 (by rule), n 64 (by rule), hash linear" in call(*options).stdout
    assert "m 32, n 64 (by rule), hash linear" in call(*options, "--set", "m=32").stdout
    assert json.loads(call(*options, "--set", "n=64", "--json", "-").stdout)["by_rule"] == ["m"]


def test_a_kernel_of_few_blocks_is_said_to_leave_cores_alone() -> None:
    asked = ("--kernel", "spmv", "--method", "hbp", "--no-baselines")
    few = json.loads(call("sparse", "a.mtx", *asked, "--json", "-").stdout)
    assert any("kernel hbp has 1 thread block for 80 cores" in each for each in few["remarks"])
    many = json.loads(
        call(
            *("sparse", "a.mtx", "--columns", "32", "--set", "tile=8", "--chip", "edge"),
            *("--no-baselines", "--json", "-"),
        ).stdout
    )
    assert many["kernels"][-1]["blocks"] >= 8
    assert not any("thread block" in each for each in many["remarks"])


def test_what_follows_from_the_cores_is_changed_there() -> None:
    called = call("sparse", "a.mtx", "--chip-set", "sms=0")
    assert called.exit_code == 2
    assert "chip sms=0: follows from the entries of 'cores' and is no key: change these, like" in called.stderr
    answer = json.loads(
        call("sparse", "a.mtx", "--chip-set", "cores.0.count=4", "--no-baselines", "--json", "-").stdout
    )
    assert len(answer["busy_cycles"]) == 4


@pytest.mark.slow
def test_ablations_say_what_they_are_measured_by() -> None:
    options = ("sparse", "a.mtx", "--columns", "8", "--chip", "edge", "--no-baselines", "--ablate")
    said = "measured by the first one, which has order sorted; the run above has order plain"
    called = call(*options)
    assert said in called.stdout
    assert "faster than the first row here: " in called.stdout
    assert "measured by the first one" not in call(*options, "--set", "order=sorted").stdout


def test_a_dense_product_beside_a_sampled_one_says_what_it_leaves_out() -> None:
    text = call("sparse", "a.mtx", "--kernel", "sddmm", "--columns", "8", "--chip", "edge").stdout
    row = next(line for line in text.splitlines() if line.startswith("dense GEMM"))
    assert row.endswith("all M x N products; neither picks those at C's entries nor multiplies by C")


def test_arrays_that_nothing_loads_have_no_row() -> None:
    lines = call("sparse", "a.mtx", "--columns", "8", "--chip", "edge", "--no-baselines").stdout.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("loads of"))
    rows = [line.split() for line in lines[first + 1 : lines.index("", first)]]
    assert {"row_ptr", "B"} <= {row[0] for row in rows}
    assert all(row[1] != "0" for row in rows)


def test_a_wrong_change_of_the_chip_is_placed_as_it_was_written() -> None:
    called = call("sparse", "a.mtx", "--chip-set", "partitions=0", "--chip-set", "smz=3")
    assert called.exit_code == 2
    assert "chip partitions=0: must be at least 1, got 0" in called.stderr
    assert "chip smz=3: unknown key" in called.stderr
    assert "--set" not in called.stderr


@pytest.mark.slow
def test_a_search_says_what_it_searched_and_what_the_rule_loses() -> None:
    options = ("sparse", "a.mtx", "--kernel", "spmv", "--method", "hbp", "--chip", "edge", "--no-baselines", "--best")
    held = ("--set", "fixed_percent=0", "--set", "hash=sort", "--set", "blocks_per_sm=1")
    text, answer = both(*options, *held)
    assert "every combination of m 32, 64, 128, 256, 512; n 64; merge kernel, atomic" in text
    search = answer["search"]
    assert (
        answer["span_cycles"] == search["best"]["span_cycles"] == min(each["span_cycles"] for each in search["tried"])
    )
    lost = search["without_search"]["span_cycles"] / search["best"]["span_cycles"] - 1
    assert search["regret"] == pytest.approx(lost)
    assert f"{100 * lost:.1f} % more" in text
    assert search["by_rule"] == ["m", "n"]
    assert "chose m and n, and loses" in text


def test_the_first_sentence_says_what_is_faster() -> None:
    options = ("sparse", "a.mtx", "--chip", "edge", "--columns", "8")
    text, said = both(*options)
    first = " ".join(text.split("\n\n")[0].split())
    assert first == said["headline"]
    sparse = min(
        [said, *(each for each in said["baselines"] if each["name"] != "dense GEMM")],
        key=lambda each: each["span_cycles"],
    )
    dense = next(each for each in said["baselines"] if each["name"] == "dense GEMM")
    low, high = sorted((sparse, dense), key=lambda each: each["span_cycles"])
    winner = "dense" if low is dense else "sparse"
    assert first.startswith(f"{winner} is faster here: {low['span_cycles']:,} against {high['span_cycles']:,} cycles")
    turned = "with the launches of their kernels it is not" in first
    assert turned == (low["makespan_cycles"] >= high["makespan_cycles"])


def test_a_dense_product_that_leaves_something_out_is_not_called_faster() -> None:
    options = ("sparse", "a.mtx", "--kernel", "sddmm", "--columns", "8", "--chip", "edge", "--json", "-")
    said = json.loads(call(*options).stdout)
    dense = next(each for each in said["baselines"] if each["name"] == "dense GEMM")
    assert dense["span_cycles"] < said["span_cycles"]
    assert said["headline"].startswith("whether dense is faster here cannot be told: it takes ")
    assert "all M x N products" in said["headline"]


@pytest.mark.slow
def test_dense_is_faster_than_what_was_simulated_and_a_search_may_turn_it() -> None:
    options = ("sparse", "d.mtx", "--columns", "8", "--chip", "edge", "--json", "-")
    write_matrix("d.mtx", drawn_matrix(32, 32, 400, 1))
    said = json.loads(call(*options).stdout)["headline"]
    assert said.startswith("dense is faster here: ")
    assert "; sparse in settings that were not simulated may be faster: --best simulates some hundred" in said
    # a part of what there is to search
    some = ("--set", "order=plain", "--set", "v=1")
    found = json.loads(call(*options, "--best", *some).stdout)["headline"]
    assert found.startswith("sparse is faster here: ")
    assert "not simulated" not in found


def test_a_product_alone_says_that_nothing_stands_beside_it() -> None:
    said = json.loads(call("sparse", "a.mtx", "--chip", "edge", "--no-baselines", "--json", "-").stdout)["headline"]
    assert said.endswith("no other run to compare it with")


def test_the_fastest_of_a_search_is_called_the_fastest_of_those_that_were_simulated() -> None:
    options = ("--kernel", "spmv", "--best", "--set", "v=1", "--set", "warps=4", "--set", "order=plain")
    said = json.loads(call("sparse", "a.mtx", *options, "--chip", "edge", "--no-baselines", "--json", "-").stdout)
    simulated = [each for each in said["search"]["tried"] if each["span_cycles"] is not None]
    assert f"cycles without launches, in the fastest of {len(simulated)} settings simulated; " in said["headline"]
