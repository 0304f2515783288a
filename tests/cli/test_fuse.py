"""`lstmsim fuse`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.analysis.files import load_trace
from tests.cli.runner import both, call

pytestmark = pytest.mark.needs_core

#: A graph in which a library's call stands between two parts that must not become one kernel.
CYCLE = """\
nodes:
  - {name: x, op: input, shape: [8, 8]}
  - {name: W, op: input, shape: [8, 8]}
  - {name: a, op: tanh, inputs: [x], shape: [8, 8]}
  - {name: p, op: matmul, inputs: [a, W], shape: [8, 8]}
  - {name: y, op: add, inputs: [p, a], shape: [8, 8]}
outputs: [y]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cycle.yaml").write_text(CYCLE)


def reported(*arguments: str) -> Any:
    called = call("fuse", *arguments, "--json", "-")
    assert called.exit_code == 0, called.output
    return json.loads(called.stdout)


def text_and_told(*arguments: str) -> tuple[str, Any]:
    """As `text` and `told`, of one run."""
    printed, answer = both("fuse", *arguments)
    return " ".join(printed.split()), answer


def text(*arguments: str) -> str:
    """The printed text with its lines joined, so that no sentence is broken."""
    called = call("fuse", *arguments)
    assert called.exit_code == 0, called.output
    return " ".join(called.stdout.split())


def by_name(answer: Any) -> dict[str, Any]:
    return {each["name"]: each for each in answer["modes"]}


@pytest.mark.slow
def test_a_layer_normalised_lstm_is_one_kernel() -> None:
    printed = text("ln-lstm", "--size", "batch=8", "--size", "hidden=64", "--explain")
    for words in (
        "ln-lstm, which comes with lstmsim; 51 nodes",
        "43 memory-intensive operations in 1 sub-graph, a kernel each; left to a library: p",
        "group 0 row, backbone ln.sum (8 results of 256 elements), sub-backbones ln.sumsq,",
        "pack: 8 blocks of 256 threads, 256 threads a row",
        "lnc.rstd rsqrt 8 0 shared buffer 4, 4 bytes",
        "candidate ln.rstd is stored, because rsqrt is heavy and ln.rstdb repeats it 256 times",
        "kernels of a library, such as matrix products, are not in them",
        "executed equal to numpy within",
    ):
        assert words in printed, words
    assert "LOSES" not in printed


@pytest.mark.slow
def test_what_a_script_reads_agrees_with_itself() -> None:
    answer = reported("ln-lstm", "--size", "hidden=64", "--chip", "v100")
    assert answer["schema"] == "lstmsim/fusion/2"
    modes = by_name(answer)
    assert [modes[each]["kernels"] for each in ("op", "xla", "tvm", "stitch")] == [43, 8, 6, 1]
    assert all(each["executed"]["equal_to_numpy"] for each in modes.values())
    assert answer["strongest_baseline"] == min(("op", "xla", "tvm"), key=lambda each: modes[each]["makespan_cycles"])
    strongest = modes[answer["strongest_baseline"]]["makespan_cycles"]
    assert answer["ratio_to_strongest"] == modes["stitch"]["makespan_cycles"] / strongest
    assert answer["loses"] == (answer["ratio_to_strongest"] > 1)
    assert answer["seed"] == 0
    assert reported("row-sum", "--seed", "7", "--modes", "stitch", "--no-cycles")["seed"] == 7
    run = answer["reported"]
    assert sum(run["accounts"].values()) == run["account_cycles"] == 80 * 4 * modes["stitch"]["makespan_cycles"]
    # a launch before each kernel, and the kernels one after the other
    for mode, each in modes.items():
        own = reported("ln-lstm", "--modes", mode, "--mode", mode, "--no-numbers")["reported"]
        spans = sum(one["cycles"] for one in own["kernels"])
        assert each["makespan_cycles"] == spans + own["launch_cycles"] * each["kernels"]
        assert each["launch_share"] == pytest.approx(1 - spans / each["makespan_cycles"])
        for name in ("read_bytes", "written_bytes", "recomputed"):
            assert each[name] == sum(one[name] for one in own["kernels"]), (mode, name)


@pytest.mark.slow
def test_where_the_pass_loses_is_said_first_with_the_rule_that_wins() -> None:
    arguments = ("ln-lstm", "--size", "hidden=512", "--size", "batch=1", "--modes", "tvm,stitch", "--no-numbers")
    printed, answer = both("fuse", *arguments)
    assert printed.startswith("the pass LOSES here: ")
    first = " ".join(printed.partition("\n\n")[0].split())
    other = answer["other_rule"]
    assert answer["loses"] is True
    assert other["name"] == "stitch (costed)"
    assert other["ratio_to_strongest"] < 1
    assert "1 kernel with 7 grid barriers" in first
    assert "results in up to 64 parts, which their readers load one after the other" in first
    assert f"split_rule costed wins, with {other['makespan_cycles']:,} cycles" in first
    # asked for, that rule runs, and the published one stands beside it
    costed = reported(*arguments, "--set", "split_rule=costed")
    assert costed["loses"] is False
    assert by_name(costed)["stitch"]["makespan_cycles"] == other["makespan_cycles"]
    assert costed["other_rule"]["name"] == "stitch (paper)"


def test_a_rule_that_takes_as_long_as_the_baseline_does_not_lose() -> None:
    # four rows, each whole in one block, are the one kernel of every baseline
    printed = text("row-sum", "--modes", "op,stitch", "--no-numbers")
    assert "LOSES here" in printed
    assert "split_rule costed is as quick as that, with 6,543 cycles" in printed


def test_the_split_rule_of_a_chip_holds_unless_another_is_asked_for() -> None:
    own = ("row-sum", "--modes", "stitch", "--no-cycles", "--no-numbers", "--chip-set", "split_rule=costed")
    assert reported(*own)["device"]["split_rule"] == "costed"
    assert reported(*own, "--set", "split_rule=paper")["device"]["split_rule"] == "paper"


def test_a_refused_edge_is_told_with_its_way_round() -> None:
    printed = text("cycle.yaml", "--modes", "op,stitch", "--explain")
    assert "refused a -> y: one kernel of both would be a cycle over p" in printed
    assert "not in one kernel with a, because one kernel of both would wait for itself: p lies between" in printed
    answer = reported("cycle.yaml", "--modes", "stitch")
    assert answer["refused_edges"] == [{"operand": "a", "reader": "y", "path": ["p"]}]
    assert [each["nodes"] for each in answer["subgraphs"]] == [["a"], ["y"]]
    assert (answer["strongest_baseline"], answer["ratio_to_strongest"], answer["loses"]) == (None, None, None)


def test_shared_memory_that_overflows_is_told() -> None:
    printed, answer = text_and_told(
        "overflow", "--set", "shared_limit=2048", "--modes", "stitch", "--explain", "--no-cycles", "--no-numbers"
    )
    assert "overflow shared memory is too small: t went to global memory" in printed
    assert "1 grid barrier" in printed
    (subgraph,) = answer["subgraphs"]
    assert subgraph["overflowed"] == ["t"]
    (stage,) = (each for each in subgraph["stages"] if each["node"] == "o")
    assert stage["grid_barrier_before"]


@pytest.mark.parametrize("name", ["figure-3", "cycle"])
def test_the_command_gives_what_the_golden_cases_have(name: str) -> None:
    cases = json.loads(Path(__file__).parents[1].joinpath("data/contract_cases_fusion.json").read_text())
    wanted = {"figure-3": "fig3", "cycle": "cycle"}[name]
    case = next(each for each in cases if each["graph"]["name"] == wanted)
    answer = reported(name, "--no-numbers")
    for mode, expected in case["expect"]["modes"].items():
        row = by_name(answer)[mode]
        told_of = [row[each] for each in ("kernels", "read_bytes", "written_bytes", "recomputed")]
        assert told_of == [expected[each] for each in ("kernels", "read", "written", "recomputed")], mode
        assert (case["expect"]["cycles"] or {}).get(mode, row["makespan_cycles"]) == row["makespan_cycles"]
    for expected, subgraph in zip(case["expect"]["plans"], answer["subgraphs"], strict=True):
        assert {each["node"]: each["scheme"] for each in subgraph["stages"]} == expected["schemes"]
        assert subgraph["kernel"]["shared_bytes"] == expected["shared_bytes"]
        mapped = [{**each["mapping"], "backbone": each["backbone"]} for each in subgraph["groups"]]
        assert mapped == [{**each["mapping"], "backbone": each["backbone"]} for each in expected["groups"]]


def test_both_engines_give_the_same_numbers() -> None:
    arguments = ("row-sum", "--size", "rows=2", "--size", "length=64", "--chip", "edge", "--modes", "op,stitch")
    fast, reference = (reported(*arguments, "--engine", each) for each in ("fast", "reference"))
    assert (fast.pop("engine"), reference.pop("engine")) == ("fast", "reference")
    assert fast == reference


@pytest.mark.slow
def test_without_cycles_and_numbers_this_is_said() -> None:
    printed, answer = text_and_told("figure-7", "--no-cycles", "--no-numbers")
    assert [each["makespan_cycles"] for each in answer["modes"]] == [None] * 4
    assert [each["executed"] for each in answer["modes"]] == [None] * 4
    assert [each["kernels"] for each in answer["modes"]] == [10, 4, 3, 1]
    assert "executed no: kernels were not executed on numbers" in printed
    assert "strongest baseline" not in printed


def test_a_large_graph_is_planned_and_no_more_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.fuse.asked.MOST_SIMULATED", 1000)
    monkeypatch.setattr("lstmsim.studies.fuse.asked.MOST_EXECUTED", 1000)
    printed = text("softmax")
    assert "nothing was simulated: the graph has 82,048 elements in all" in printed
    assert "nothing was executed on numbers: the graph has 82,048 elements" in printed
    asked = reported("softmax", "--cycles", "--numbers", "--modes", "stitch")
    assert by_name(asked)["stitch"]["makespan_cycles"] > 0
    assert by_name(asked)["stitch"]["executed"]["equal_to_numpy"]


@pytest.mark.slow
def test_a_picture_that_is_refused_leaves_no_other_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.fuse.picture._MOST_NODES", 1)
    result = call("fuse", "softmax", "--json", "j", "--save", "g.json", "--picture", "p.svg")
    assert result.exit_code == 2
    assert "at most 1 are drawn" in result.stderr
    assert [each.name for each in Path().iterdir()] == ["cycle.yaml"]


@pytest.mark.slow
def test_pictures_traces_and_graphs_are_written() -> None:
    outputs = ("--picture", "g.svg", "--timeline", "t.png", "--trace", "t.csv", "--save", "g.json", "--json", "r.json")
    called = call("fuse", "cycle.yaml", *outputs)
    assert called.exit_code == 0, called.output
    assert "sub-graph 1" in Path("g.svg").read_text()
    trace = load_trace("t.csv")
    assert trace.makespan_cycles > 0
    assert (trace.chip, trace.frequency_mhz, trace.unit) == ("v100", 1530, "issue")
    for name in ("g.svg", "t.png", "t.csv", "g.json", "r.json"):
        assert f"wrote {name}" in called.stderr
        assert Path(name).stat().st_size > 200
    # what was saved is the same graph
    first, again = (
        reported(each, "--modes", "stitch", "--no-cycles", "--no-numbers") for each in ("cycle.yaml", "g.json")
    )
    assert again["subgraphs"] == first["subgraphs"]


def test_a_graph_without_memory_intensive_operations_says_so() -> None:
    Path("p.yaml").write_text(CYCLE.replace("  - {name: a, op: tanh, inputs: [x], shape: [8, 8]}\n", "")
                              .replace("[a, W]", "[x, W]").partition("  - {name: y")[0] + "outputs: [p]\n")  # fmt: skip
    printed, answer = text_and_told("p.yaml")
    assert "the graph has no memory-intensive operation: there is nothing to fuse" in printed
    assert answer["subgraphs"] == []


WRONG = {
    ("ln-lstmm",): "no graph called 'ln-lstmm'; did you mean 'ln-lstm'?",
    ("no.yaml",): "no file called 'no.yaml'",
    ("no.onnx",): "no.onnx",
    ("ln-lstm", "--size", "hiden=4"): "hiden: graph 'ln-lstm' has no such size; did you mean 'hidden'?",
    ("ln-lstm", "--size", "hidden"): "size: expected NAME=NUMBER, like hidden=512, got 'hidden'",
    ("row-sum", "--size", "rows=3", "--size", "rows=4"): "size rows: is given twice, as 3 and as 4; expected once",
    (
        "softmax",
        "--set",
        "split_rule=paper",
        "--set",
        "split_rule=costed",
    ): "--set split_rule: is given twice, as 'paper' and as 'costed'; expected once",
    ("ln-lstm", "--size", "hidden=0"): "hidden: must be from 1 to",
    ("cycle.yaml", "--size", "hidden=4"): "size hidden: is for graphs that come with lstmsim",
    ("softmax", "--chip", "v10"): "no chip called 'v10'; did you mean 'v100'?",
    ("softmax", "--chip", "column-npu-64k"): "chip column-npu-64k: its machine runs no fused kernels; ",
    (
        "softmax",
        "--set",
        "split_role=costed",
    ): "--set split_role: is no setting of the pass; did you mean 'split_rule'?",
    ("softmax", "--set", "split_rule=cost"): "split_rule: must be paper or costed, got 'cost'; did you mean 'costed'?",
    ("softmax", "--modes", "op,stich"): "modes: must be op, xla, tvm or stitch, got 'stich'; did you mean 'stitch'?",
    ("softmax", "--modes", ","): "modes: must be some of op, xla, tvm or stitch, got none",
    ("softmax", "--modes", "op", "--mode", "stitch"): "mode: must be op, got 'stitch'",
    ("softmax", "--picture", "g.bmp"): "--picture g.bmp: expected a file name that ends in .png, .svg, .pdf",
    ("softmax", "--save", "g.txt"): "--save g.txt: expected a file name that ends in ",
    ("softmax", "--no-cycles", "--trace", "t.csv"): "trace: stitch was not simulated: ask for cycles",
    ("softmax", "--no-cycles", "--timeline", "t.png"): "timeline: stitch was not simulated: ask for cycles",
    ("softmax", "--picture", "x.svg", "--timeline", "x.svg"): "--picture x.svg: is also the output of --timeline",
}


@pytest.mark.parametrize(("arguments", "sentence"), WRONG.items())
def test_what_is_wrong_gets_a_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    called = call("fuse", *arguments)
    assert (called.exit_code, called.stdout) == (2, "")
    assert sentence in called.stderr
    assert "Traceback" not in called.stderr


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ({"chip": None}, "chip: must be a preset's name, a chip's file or a chip, got nothing"),
        ({"chip": 5, "chip_overrides": ["l1=8"]}, "chip: must be a preset's name, a chip's file or a chip, got 5"),
        ({"settings": [5]}, "settings.0: must be text, got 5"),
        ({"settings": None}, "settings: must be a list or a mapping, got nothing"),
        ({"seed": None}, "seed: must be a whole number of at least 0, got nothing"),
    ],
)
def test_arguments_of_a_wrong_type_get_a_sentence(argument: dict[str, Any], sentence: str) -> None:
    with pytest.raises(lstmsim.InputError) as refused:
        lstmsim.run_fusion("row-sum", **{"cycles": False, "numbers": False, **argument})
    assert str(refused.value) == sentence


PAGE = Path(__file__).parents[2] / "docs" / "fusion.md"


@pytest.mark.slow
@pytest.mark.skipif(not PAGE.is_file(), reason="the page is in the checkout only")
def test_the_first_example_of_the_page_is_what_a_run_prints() -> None:
    page = PAGE.read_text(encoding="utf-8").split("## 1. Graph")[0]
    whole, split = (
        by_name(reported("softmax", "--size", "rows=64")),
        by_name(reported("softmax", *_LONG, "--modes", "xla,stitch")),
    )
    costed = by_name(reported("softmax", *_LONG, "--set", "split_rule=costed", "--modes", "stitch", "--no-numbers"))
    assert [len(whole), whole["op"]["kernels"], whole["xla"]["kernels"], whole["stitch"]["kernels"]] == [4, 7, 3, 1]
    assert (whole["stitch"]["recomputed"], whole["stitch"]["grid_barriers"]) == (2 * 16_384, 0)
    assert split["stitch"]["grid_barriers"] == 2
    shown = [whole[name] for name in ("op", "xla", "stitch")] + [split["xla"], split["stitch"], costed["stitch"]]
    for row in shown:
        assert f"{row['makespan_cycles']:,} cycles" in page or f"takes {row['makespan_cycles']:,}" in page


_LONG = ("--size", "rows=4", "--size", "length=2048")
