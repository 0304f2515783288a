"""`lstmsim gemm`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lstmsim
from lstmsim.analysis.files import load_trace
from lstmsim.analysis.timeline import MAIN, STATES
from tests.cli.runner import both, both_kept, call

pytestmark = pytest.mark.needs_core

#: The parameters of section 2 of docs/multicore.md.
DOCUMENTED = ("--set", "cycles=0", "--set", "mn=blis")
#: Packing as in section 1 of docs/multicore.md.
QUICK = ("--chip-set", "cores.0.pack_per_cycle=8")
#: A product whose plan with them cuts K, loses to the best M/N pair with warm caches, and wins with cold ones.
SMALL = ("gemm", "8", "64", "512", "--threads", "8", *DOCUMENTED, "--packed", "each", *QUICK)
ALONE = (*SMALL, "--no-baselines", "--no-numbers")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def data(*arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = both_kept(*arguments)[1]
    return answer


def text_of(*arguments: str) -> str:
    return both_kept(*arguments)[0]


def lines(text: str) -> str:
    """A text whose lines were joined."""
    return " ".join(text.split())


def test_the_text_says_what_is_planned_and_how_it_compares() -> None:
    called = call(*SMALL, "--ablate")
    assert (called.exit_code, called.stderr) == (0, "")
    text = lines(called.stdout)
    answer = data(*SMALL)
    for state in ("warm", "cold"):
        plan, blis = (
            answer["baselines"][state]["plan_makespan_cycles"],
            answer["baselines"]["blis"][state]["makespan_cycles"],
        )
        best = min(each[state]["makespan_cycles"] for each in answer["baselines"]["pairs"])
        assert f"the plan is {blis / plan:.3f} times as fast as M/N by BLIS's rule, MN 1x8x1" in text
        assert answer["baselines"][state]["loses_to_best_pair"] == (plan > best)
        loses = f"{state} caches the plan loses to the best M/N pair (of 4), MN 2x4x1: it takes {plan / best:.3f} times"
        assert (loses in text) == (plan > best)
    assert answer["baselines"]["warm"]["loses_to_best_pair"]
    assert not answer["baselines"]["cold"]["loses_to_best_pair"]
    for said in (
        "plan NK 1x2x4 (p_m x p_n x p_k: columns of C and K are cut), blocks of 8 x 32 x 128",
        "sub-blocks 2 x 2 of 6 x 16, visited in rotated order; each in a buffer of its own",
        "the planner is a reconstruction",
        "gives no formula, weight or limit",
        "of integers equal to numpy's in every number; of float32 the largest difference",
        "idle cuts none",
        "not modelled rows a power of two bytes apart",
        "false sharing where K is whole: a line of C of which several threads write a part costs no transfers",
        "none: a lock round the whole block while it is computed, so it is no fair baseline; none of these is the plan",
    ):
        assert said in text, said


def test_what_stands_beside_a_plan_is_the_best_of_it() -> None:
    answer = data(*SMALL, "--no-numbers")
    run = answer["run"]
    assert answer["schema"] == "lstmsim/gemm/2"
    assert answer["result"] is None
    assert len(answer["plan"]["candidates"]) == 6
    for state in ("warm", "cold"):
        baselines = answer["baselines"][state]
        simulated = [*answer["plan"]["candidates"], *answer["baselines"]["pairs"]]
        cycles = [each[state]["makespan_cycles"] for each in simulated]
        assert cycles[answer["plan"]["rank"]] == baselines["plan_makespan_cycles"]
        assert baselines["regret"] == baselines["plan_makespan_cycles"] / min(cycles) - 1
        assert _parts(baselines["fastest"]) == _parts(simulated[cycles.index(min(cycles))])
        assert baselines["fastest_makespan_cycles"] == min(cycles)
        assert run[state]["makespan_cycles"] >= max(run[state]["finish_cycles"])
        counts = run[state]["counts"]
        assert counts["l1"]["hit_rate"] == counts["l1"]["hits"] / counts["l1"]["accesses"]
        assert sum(counts["lines"]["by_memory"]) == counts["lines"]["memory_read"] + counts["lines"]["memory_write"]
    assert run["utilization"] == 8 * 64 * 512 / (8 * 16 * run["warm"]["makespan_cycles"])
    # with all pairs among the candidates, these are the pairs beside the plan: no pair is idle here
    every = data(*("mn=all" if each == "mn=blis" else each for each in SMALL), "--no-numbers")
    pairs = {(each["p_m"], each["p_n"]): each["warm"] for each in every["plan"]["candidates"] if each["kind"] == "MN"}
    assert pairs.keys() == {(1, 8), (2, 4), (4, 2), (8, 1)}
    for each in answer["baselines"]["pairs"]:
        assert each["warm"]["makespan_cycles"] == pairs[each["p_m"], each["p_n"]]["makespan_cycles"]
    assert every["plan"]["settings"]["mn"] == "all"
    assert every["plan"]["settings_given"] == ["cycles", "mn"]


@pytest.mark.slow
def test_the_plan_depends_on_what_lies_in_the_caches() -> None:
    product = ("gemm", "16", "16", "1024", "--threads", "16", "--no-numbers")
    warm, cold = (data(*product, "--caches", each) for each in ("warm", "cold"))
    for state, own in {"warm": warm, "cold": cold}.items():
        plan = {key: own["plan"][key] for key in ("kind", *SIZES)}
        for answer in (warm, cold):
            assert answer["baselines"][state]["plan"] == plan
            planned = own["plan"]["candidates"][own["plan"]["rank"]]
            assert answer["baselines"][state]["plan_makespan_cycles"] == planned[state]["makespan_cycles"]
    assert warm["baselines"]["warm"]["plan"] != warm["baselines"]["cold"]["plan"]
    text = text_of(*product)
    assert "the plan for cold caches     MK 2x1x8" in text
    assert "cold caches  the plan for them, MK 2x1x8, is " in text


@pytest.mark.slow
def test_b_is_packed_once_as_a_job_holds_it_or_by_every_call() -> None:
    """A step of a layer takes what it takes in a job, but for the activations; packing B each time takes longer."""
    product = ("gemm", "--model", "lstm-256", "--batch", "8", "--threads", "4", "--no-baselines", "--no-numbers")
    usual, once, each = (data(*product, *more) for more in ((), ("--packed", "once"), ("--packed", "each")))
    assert usual == once
    cycles = [answer["run"]["warm"]["makespan_cycles"] for answer in (once, each)]
    job = {"model": "lstm-256", "batch": 8, "threads": 4}
    long, short = (lstmsim.run({"chip": "epyc-7742", "jobs": [job | {"steps": n}]}).report for n in (6, 5))
    step = long.makespan_cycles - short.makespan_cycles
    assert cycles[0] < step < 1.2 * cycles[0]
    assert cycles[1] - cycles[0] >= 1024 * 512 / 4 / 2, "a quarter of B, two elements a cycle"
    assert "packing B was packed before, as a job holds its weights, and no call" in lines(text_of(*product))
    assert "packing every call packs B anew (packed each); a job holds its weights packed (packed once)" in lines(
        text_of(*product, "--packed", "each")
    )
    gradient = data("gemm", "--model", "lstm-256", "--product", "gradient", "--steps", "2", *product[5:])
    assert gradient["packed"] == "each"
    refused = call(*product, "--packed", "twice")
    assert (refused.exit_code, "packed: must be once or each, got 'twice'" in refused.stderr) == (2, True)


def test_one_row_packs_nothing() -> None:
    """A gemv reads B once, whether in panels or row by row; what packs it takes several times as long."""
    product = ("gemm", "1", "1024", "512", "--threads", "1", "--no-baselines", "--no-numbers")
    once, each = (data(*product, "--packed", when) for when in ("once", "each"))
    without = data(*product, "--packed", "each", "--chip-set", "cores.0.gemv=false")
    cycles = [answer["run"]["warm"]["makespan_cycles"] for answer in (once, each, without)]
    assert abs(cycles[1] / cycles[0] - 1) < 0.05
    assert cycles[2] > 3 * cycles[1]
    assert "nothing is packed: the kernel for one row (gemv) reads A and B where they lie" in each["packing"]


@pytest.mark.slow
def test_the_plan_by_sizes_alone_stands_beside_the_plan() -> None:
    product = ("gemm", "32", "32", "1024", "--threads", "32")
    plain, shaped = data(*product, "--no-numbers"), data(*product, "--no-baselines", "--no-numbers", *DOCUMENTED)
    baselines = plain["baselines"]["by_shapes"]
    assert {key: baselines[key] for key in SIZES} != {key: plain["plan"][key] for key in SIZES}
    assert {key: baselines[key] for key in SIZES} == {key: shaped["plan"][key] for key in SIZES}
    assert baselines["warm"]["makespan_cycles"] == shaped["run"]["warm"]["makespan_cycles"]
    text = lines(text_of(*product, "--no-numbers"))
    assert "the plan by sizes alone: --set cycles=0.0 --set mn=blis; section 2 of docs/multicore.md" in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        # one thread cuts nothing, and there is no barrier
        ("1 1 1 --threads 1", ["1 thread on 1 of 64 cores at 2250 MHz", "MN 1x1x1 (p_m x p_n x p_k: nothing is cut)"]),
        ("1 1 1 --threads 1", ["17 cycles, 0.00756 us, 0 of them the barrier at the end"]),
        ("1 1 1 --threads 64", ["64 threads on 64 of 64 cores", "1,517 cycles, 0.674 us, 1,500 of them the barrier"]),
        ("7 5 3 --threads 8", ["8 threads on 8 of 64 cores", "MN 8x1x1 (p_m x p_n x p_k: rows of C are cut)"]),
        ("64 32 8192 --threads 16 --packed each", ["MK 1x1x16 (p_m x p_n x p_k: K is cut)"]),
    ],
)
def test_the_text_says_what_is_cut_and_on_how_many_cores(asked: str, said: list[str]) -> None:
    text = lines(call("gemm", *asked.split(), "--no-baselines", "--no-numbers").stdout)
    for each in said:
        assert each in text


def test_false_sharing_of_c_costs_nothing_where_k_is_whole() -> None:
    """16 threads write the numbers of one line: what the text says of it must stay true, or go."""
    counts = data("gemm", "1", "16", "64", "--cut", "MN:1x16x1", "--no-baselines", "--no-numbers")["run"]["warm"][
        "counts"
    ]
    assert counts["lines"]["transfers"] == 0


def test_a_small_difference_does_not_read_as_none() -> None:
    product = ("gemm", "48", "96", "1000", "--threads", "2", "--caches", "cold", "--packed", "each", *QUICK)
    product = (*product, "--no-numbers")
    answer, text = data(*product)["baselines"], lines(text_of(*product))
    (best,) = [each["cold"] for each in answer["pairs"] if (each["p_m"], each["p_n"]) == (1, 2)]
    longer = answer["cold"]["plan_makespan_cycles"] - best["makespan_cycles"]
    assert 0 < longer < best["makespan_cycles"] / 2000
    assert f"loses to the best M/N pair (of 2), MN 1x2x1: it takes {longer} cycles longer" in text
    assert "regret <0.1 %: it takes that much longer than the fastest" in text
    assert "1.000 times" not in text


def test_of_equal_pairs_the_plan_is_the_best() -> None:
    answer = data("gemm", "5", "7", "60", "--threads", "12", "--no-numbers")
    for state in ("warm", "cold"):
        best = min(each[state]["makespan_cycles"] for each in answer["baselines"]["pairs"])
        assert [each[state]["makespan_cycles"] for each in answer["baselines"]["pairs"]].count(best) > 1
        assert answer["baselines"][state]["best_pair"] == answer["baselines"][state]["plan"]


SIZES = ("p_m", "p_n", "p_k", "mb", "nb", "kb")


def test_a_candidate_that_is_not_accepted_is_passed_over_and_says_why() -> None:
    answer = data("gemm", "32", "32", "1024", "--threads", "32", "--no-baselines", "--no-numbers", *DOCUMENTED)
    assert answer["plan"]["rank"] == 1
    assert answer["plan"]["candidates"][0]["why_not"] == ["kb < kc/4", "p_k > 16"]
    text = text_of("gemm", "32", "32", "1024", "--threads", "32", "--no-baselines", "--no-numbers", *DOCUMENTED)
    assert "rank 1 of" in text
    assert "rejected: kb < kc/4, p_k > 16" in text
    assert "1 candidate before it could not be accepted" in lines(text)
    assert "beside the plan" not in text


@pytest.mark.parametrize("relief", ["none", "sub", "buffer", "both"])
def test_reliefs_run_the_cut_of_the_plan(relief: str) -> None:
    answer = data(*ALONE, "--relief", relief, "--ablate")
    (same,) = [each for each in answer["ablations"] if each["relief"] == relief]
    assert answer["run"]["warm"]["makespan_cycles"] == same["warm"]["makespan_cycles"]
    assert answer["run"]["buffer"] == (relief in ("buffer", "both"))
    assert (answer["run"]["sub_blocks"] is not None) == (relief in ("sub", "both"))
    assert (answer["run"]["warm"]["buffer_bytes"] > 0) == answer["run"]["buffer"]
    cycles = {each["relief"]: each["warm"]["makespan_cycles"] for each in answer["ablations"]}
    assert cycles["none"] > max(cycles["sub"], cycles["buffer"], cycles["both"])
    assert f"what runs, by relief {relief}" in text_of(*ALONE, "--relief", relief)


@pytest.mark.parametrize("cut", ["MK:2x1x4", "NK:1x2x4:8x32x136", "MN:8x1x1", "MNK:2x2x2"])
def test_a_cut_that_is_given_runs_in_the_place_of_the_plan(cut: str) -> None:
    answer, plain = data(*SMALL, "--cut", cut), data(*SMALL)
    kind, parts, *sizes = cut.split(":")
    run = answer["run"]
    assert (run["kind"], "x".join(str(run[each]) for each in SIZES[:3])) == (kind, parts)
    assert not sizes or "x".join(str(run[each]) for each in SIZES[3:]) == sizes[0]
    assert answer["cut_given"] == {key: run[key] for key in ("kind", *SIZES)}
    # the plan and all that stands beside it stay what they are
    stay = ("plan", "plan_makespan_cycles", "best_pair")
    for state in ("warm", "cold"):
        assert [answer["baselines"][state][key] for key in stay] == [plain["baselines"][state][key] for key in stay]
        # what is given may be the fastest of all
        fastest = min(run[state]["makespan_cycles"], plain["baselines"][state]["fastest_makespan_cycles"])
        assert answer["baselines"][state]["fastest_makespan_cycles"] == fastest
    assert (answer["plan"], answer["baselines"]["pairs"]) == (plain["plan"], plain["baselines"]["pairs"])
    assert plain["cut_given"] is None
    assert answer["result"]["integers_equal"]
    same = [each for each in plain["plan"]["candidates"] + plain["baselines"]["pairs"] if _parts(each) == _parts(run)]
    assert len(same) == {"MK:2x1x4": 1, "MN:8x1x1": 1}.get(cut, 0)
    assert all(each["warm"]["makespan_cycles"] == run["warm"]["makespan_cycles"] for each in same)
    text = lines(text_of(*SMALL, "--cut", cut))
    mine, plan = run["warm"]["makespan_cycles"], plain["baselines"]["warm"]["plan_makespan_cycles"]
    assert f"(cut {kind} {parts}, as asked for; the plan takes {plan:,} cycles)" in text
    assert f"this run loses to the plan, NK 1x2x4: it takes {mine / plan:.3f} times as long" in text or mine <= plan


def _parts(of: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(of[key] for key in ("kind", *SIZES))


def test_the_second_stage_of_the_planner_applies_to_a_cut_that_is_given() -> None:
    cut = (*ALONE, "--cut", "MK:2x1x4")
    (candidate,) = [each for each in data(*SMALL)["plan"]["candidates"] if _parts(each)[:4] == ("MK", 2, 1, 4)]
    planned, none = data(*cut), data(*cut, "--relief", "none", "--ablate")
    assert planned["run"]["sub_blocks"] == candidate["sub_blocks"] is not None
    assert planned["run"]["warm"]["makespan_cycles"] == candidate["warm"]["makespan_cycles"]
    assert (none["run"]["sub_blocks"], none["run"]["buffer"]) == (None, False)
    assert {(each["kind"], each["p_k"]) for each in none["ablations"]} == {("MK", 4)}
    text = lines(text_of(*cut, "--relief", "none", "--ablate"))
    assert "what runs, by cut MK 2x1x4 with relief none: rows of C and K are cut, blocks of 4 x 64 x 128" in text
    # as many threads as the cut has parts, unless another number is given
    assert data("gemm", "8", "64", "64", "--cut", "MN:2x3x1", "--no-baselines")["threads"] == 6


def test_a_plan_that_leaves_k_whole_has_nothing_to_relieve() -> None:
    answer = data("gemm", "16", "16", "8", "--threads", "2", "--relief", "both", "--ablate", "--no-numbers")
    assert answer["ablations"] == []
    assert answer["plan"]["p_k"] == 1
    (said,) = answer["remarks"]
    assert "no threads share a block of C in this cut" in said


def test_c_is_computed_by_the_threads_and_written() -> None:
    called = call(*SMALL, "--no-baselines", "--seed", "3", "--output", "c.npy", "--json", "a.json")
    assert (called.exit_code, called.stderr) == (0, "wrote c.npy\nwrote a.json\n")
    # drawn as the docstring of `drawn_matrices` says
    draw = np.random.default_rng([3, 17])
    a, b = (draw.standard_normal(shape).astype(np.float32) for shape in ((8, 512), (512, 64)))
    written = np.load("c.npy")
    assert written.dtype == np.float32
    assert np.abs(written - a.astype(float) @ b).max() < 1e-4
    answer = json.loads(Path("a.json").read_text())["result"]
    assert answer["integers_equal"] is True
    assert 0 < answer["largest_error"] < 1e-6
    assert answer["shape"] == [8, 64]
    # another cut adds up in another order
    assert data(*SMALL, "--no-baselines", "--seed", "3", "--threads", "1")["result"]["sha256"] != answer["sha256"]
    assert data(*SMALL, "--no-baselines", "--seed", "3", "--caches", "cold")["result"]["sha256"] == answer["sha256"]


def test_a_layer_of_a_model_is_a_product() -> None:
    options = ("--threads", "4", "--no-baselines", "--no-numbers")
    answer = data(
        "gemm", "--model", "silero-vad-16k", "--product", "gradient", "--steps", "20", "--batch", "2", *options
    )
    assert answer["product"]["source"].startswith("gradient of layer 0 of silero-vad-16k (cell lstm, hidden 128")
    assert [answer["product"][each] for each in "mnk"] == [512, 256, 40]
    called = call("gemm", "--model", "deepbench-gru-512-1", *options)
    assert "the step has 3 products; this is part 0, the largest one" in lines(called.stdout)


def test_both_engines_give_the_same_numbers() -> None:
    fast, reference = (data(*ALONE, "--engine", each) for each in ("fast", "reference"))
    assert (fast.pop("engine"), reference.pop("engine")) == ("fast", "reference")
    assert fast == reference


def test_chips_and_threads_are_chosen() -> None:
    asked = ("gemm", "24", "64", "64", "--chip", "xeon-gold-5122", "--no-baselines", "--no-numbers", "--json", "-")
    answer = json.loads(call(*asked).stdout)
    assert (answer["threads"], answer["cores"], answer["peak_macs_per_cycle"]) == (4, 4, 128)
    slower = data(*ALONE, "--chip-set", "frequency_mhz=1125")
    assert slower["run"]["warm"]["us"] == 2 * data(*ALONE)["run"]["warm"]["us"]


def test_what_would_take_minutes_is_left_out_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.gemm.run._MOST_ACCESSES", 1000)
    monkeypatch.setattr("lstmsim.studies.gemm.run._MOST_MACS", 1000)
    printed, answer = both(*SMALL)
    assert [each.get("left_out", False) for each in answer["plan"]["candidates"]] == [False, *[True] * 4, False]
    assert [each["p_n"] for each in answer["baselines"]["pairs"]] == [8]
    assert answer["baselines"]["warm"]["best_pair"] is answer["baselines"]["warm"]["regret"] is answer["result"] is None
    assert any("left out" in each for each in answer["remarks"])
    text = lines(printed)
    assert "times as fast as M/N by BLIS's rule, MN 1x8x1" in text
    assert "regret" not in text
    assert "result left out: C is computed for small products, and where numbers are asked for" in text
    _, asked = both(*SMALL, "--baselines", "--numbers")
    assert len(asked["baselines"]["pairs"]) == 4
    assert asked["result"]["integers_equal"]


def test_several_numbers_of_threads_are_a_table() -> None:
    product = ("gemm", "8", "64", "512")
    answer = data(*product, "--threads", "8,2", "--caches", "cold")
    single = {each: data(*product, "--threads", each, "--caches", "cold", "--no-numbers") for each in ("1", "2", "8")}
    assert answer["schema"] == "lstmsim/gemm-threads/1"
    assert [each["threads"] for each in answer["threads"]] == [8, 2]
    for row in answer["threads"]:
        own = single[str(row["threads"])]
        for state in ("warm", "cold"):
            baselines, one = own["baselines"][state], single["1"]["baselines"][state]["fastest_makespan_cycles"]
            cycles = baselines["fastest_makespan_cycles"]
            assert (row[state]["makespan_cycles"], answer["one_thread_cycles"][state]) == (cycles, one)
            assert row[state]["speed_up"] == one / cycles
            assert row[state]["utilization"] == 8 * 64 * 512 / (16 * row["threads"] * cycles)
            assert row[state]["regret"] == baselines["regret"]
            for name in ("best_pair", "plan"):
                assert {key: row[state][name][key] for key in ("kind", *SIZES)} == baselines[name]
            assert row[state]["use"] == baselines["fastest"]
            assert row[state]["plan"]["makespan_cycles"] == pytest.approx(cycles * (1 + baselines["regret"]))
    text = text_of(*product, "--threads", "8,2", "--caches", "cold")
    row = answer["threads"][0]["cold"]
    headline = f"of 2 and 8 threads use 8, {answer['headline'].split(', ')[1].split(':')[0]}: "
    headline += f"{row['makespan_cycles']:,} cycles with cold caches, {row['speed_up']:.3f} times as fast as one thread"
    assert lines(text).startswith(headline)
    assert answer["headline"] == headline
    (line,) = [each.split() for each in text.splitlines() if each.startswith("      8  ")]
    plan, cold = answer["threads"][0]["cold"]["use"], answer["threads"][0]["cold"]
    assert line[1:3] == [plan["kind"], "x".join(str(plan[each]) for each in SIZES[:3])]
    assert line[3:6] == [f"{cold['makespan_cycles']:,}", f"{cold['speed_up']:.2f}", f"{100 * cold['utilization']:.1f}"]


def test_what_is_for_one_number_of_threads_is_refused_for_several() -> None:
    product = ("gemm", "8", "8", "8", "--threads", "1,2")
    said = "is for one number of threads, and 2 are given\n"
    both = call(*product, "--cut", "MN:1x2x1", "--relief", "sub", "--ablate", "--numbers")
    assert both.exit_code == 2
    names = ("ablate", "cut", "numbers", "relief")
    assert sorted(both.stderr.splitlines(keepends=True)) == [f"--{name}: {said}" for name in names]
    assert call(*product, "--timeline", "t.png", "--output", "c.npy").stderr == f"--output: {said}--timeline: {said}"
    assert call(*product, "--json", "-", "--trace", "t.csv").stderr == f"--trace: {said}"
    assert call("gemm", "8", "8", "8", "--threads", "4,2,4").stderr == "--threads: 4 is given more than once\n"
    wrong = "--threads: must be a whole number from 1 to 64, the cores of epyc-7742, got 65\n"
    assert call("gemm", "8", "8", "8", "--threads", "1,65").stderr == wrong
    assert call("gemm", "8", "8", "8", "--threads", "").stderr == wrong.replace("65", "''")
    for text in ("1,", ",2"):
        assert call("gemm", "8", "8", "8", "--threads", text).stderr == wrong.replace("65", f"{text!r}")
    left_out = call("gemm", "8", "64", "64", "--threads", "4,8", "--no-baselines", "--no-numbers").stdout
    rows = [each.split() for each in left_out.splitlines() if each.startswith(("      4  ", "      8  "))]
    assert [(*row[-6:-4], row[-1]) for row in rows] == [("-", "-", "-")] * 2
    assert "regret       how" not in left_out
    assert "some were not on 4, 8 threads, and may be faster (--baselines)" in lines(left_out)


@pytest.mark.slow
def test_a_trace_has_the_cycles_of_the_report() -> None:
    _, answer = both(*ALONE, "--trace", "t.csv", "--timeline", "t.png")
    timeline = load_trace("t.csv")
    assert timeline.makespan_cycles == answer["run"]["warm"]["makespan_cycles"]
    waits = {"contention": 0, "memory": 0}
    for row, start, end, state in zip(timeline.row, timeline.start, timeline.end, timeline.state, strict=True):
        if timeline.rows[row].kind == MAIN and STATES[state] in waits:
            waits[STATES[state]] += int(end - start)
    assert {name: answer["run"]["warm"]["waits"][name] for name in waits} == waits
    assert Path("t.png").stat().st_size > 10_000
    assert call(*ALONE, "--trace", "w.csv", "--trace-window", "0:100").exit_code == 0
    assert Path("w.csv").stat().st_size < Path("t.csv").stat().st_size


@pytest.mark.slow
def test_edges_of_sizes_and_threads_are_simulated() -> None:
    for sizes in (("1", "1", "1"), ("1", "3", "2"), ("5", "7", "3000")):
        for threads in ("1", "7", "64"):
            called = call("gemm", *sizes, "--threads", threads, "--no-baselines", "--ablate")
            assert called.exit_code == 0, called.output
            assert "equal to numpy's in every number" in lines(called.stdout)


def test_the_fastest_that_was_simulated_is_what_to_use_and_what_runs() -> None:
    """With the parameters of section 2 the rule cuts K into four parts, and two are faster."""
    answer, text = data(*SMALL, "--no-numbers"), text_of(*SMALL, "--no-numbers")
    run, baselines = answer["run"], answer["baselines"]["warm"]
    assert _parts(run)[:4] == ("NK", 1, 4, 2) != _parts(answer["plan"])[:4]
    assert run["warm"]["makespan_cycles"] == baselines["fastest_makespan_cycles"] < baselines["plan_makespan_cycles"]
    slower = f"{baselines['plan_makespan_cycles'] / baselines['fastest_makespan_cycles']:.3f}"
    first = lines(text[: text.index("product")])
    # the other kind of cut is the best pair here, for all were simulated
    cycles = run["warm"]["makespan_cycles"]
    pair = min(each["warm"]["makespan_cycles"] for each in answer["baselines"]["pairs"]) / cycles
    headline = f"use N in 4 and K in 2: {cycles:,} cycles with warm caches, {pair:.3f} times as fast as the fastest M/N"
    assert first.startswith(headline)
    assert answer["headline"].startswith(headline)
    assert " cut NK 1x4x2 (p_m x p_n x p_k: columns of C and K are cut): the fastest of 9 that" in first
    assert "the fastest of 9 that were simulated" in first
    assert f"the planner's rule would have taken NK 1x2x4, which takes {slower} times as long" in first
    assert "what runs, by cut NK 1x4x2, the fastest that was simulated" in lines(text)
    # of what is asked for the best is told all the same
    assert lines(text_of(*SMALL, "--cut", "MK:2x1x4")).startswith("use N in 4 and K in 2: ")


def test_of_what_was_not_simulated_nothing_is_told() -> None:
    alone = text_of(*ALONE)
    assert lines(alone).startswith("the planner's rule takes N in 2 and K in 4: ")
    first = lines(alone[: alone.index("product")])
    assert "no other cut was simulated; 8 candidates may be faster, ask for --baselines" in first
    assert "fastest" not in alone


def test_a_relief_that_is_faster_is_what_to_use() -> None:
    product = ("gemm", "256", "256", "64", "--threads", "4", "--set", "mn=blis", "--no-numbers", "--ablate")
    answer = data(*product, "--cut", "MK:1x1x4")
    cycles = {each["relief"]: each["warm"]["makespan_cycles"] for each in answer["ablations"]}
    others = [each["warm"]["makespan_cycles"] for each in answer["plan"]["candidates"] + answer["baselines"]["pairs"]]
    assert answer["baselines"]["warm"]["fastest_makespan_cycles"] == min(*cycles.values(), *others)
