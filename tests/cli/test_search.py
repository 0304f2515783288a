"""`lstmsim search`: what it prints and writes, what it refuses."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lstmsim.machines import assembly as sizes
from lstmsim.studies.search.strategies import best_of_every
from tests.cli.runner import call

CHIP = {"kind": "column-npu", "frequency_mhz": 100, "cores": [{"npe": 64, "ep": 4, "vp": 16, "threads": 2}]}
JOB = {"model": {"name": "tiny", "layers": [{"cell": "lstm", "hidden": 24, "input": 20}]}, "steps": 4}
OTHER = {"model": {"name": "wide", "layers": [{"cell": "gru", "hidden": 150, "input": 60}]}, "steps": 3}


def scenario(folder: Path, *jobs: object, **chip: object) -> str:
    path = folder / "s.json"
    path.write_text(json.dumps({"chip": {**CHIP, **chip}, "jobs": list(jobs) or [JOB]}))
    return str(path)


def result(*arguments: str) -> dict[str, Any]:
    done = call("search", *arguments, "--json", "-")
    assert done.exit_code == 0, done.output
    assert not done.stderr
    answer: dict[str, Any] = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(name))
    return answer


def refused(*arguments: str) -> str:
    done = call("search", *arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert not done.stdout
    return done.stderr


def test_the_path_is_shown_and_the_choice_marked(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    answer = result(path, "--npe", "1024")
    assert answer["schema"] == "lstmsim/search/1"
    assert (answer["hw"], answer["npe"], answer["mix"], answer["exhaustive"]) == (96, 1024, None, None)
    shown = call("search", path, "--npe", "1024")
    assert shown.exit_code == 0
    assert not shown.stderr
    rows = [line.split() for line in shown.stdout.splitlines() if line.endswith("%") and line[0] in " *"]
    assert len(rows) == len(answer["path"]) > 3
    marked = [row for row in rows if row[0] == "*"]
    assert [row[1:3] for row in marked] == [[str(answer["chosen"]["ep"]), str(answer["chosen"]["vp"])]]
    for row, point in zip(rows, answer["path"], strict=True):
        own = row[1:] if row[0] == "*" else row
        assert [int(own[0]), int(own[1]), own[2]] == [point["ep"], point["vp"], point["bound"]]
        assert int(own[3].replace(",", "")) == point["cycles"]
        assert float(own[4]) == pytest.approx(100 * point["utilization"], abs=0.06)
        assert float(own[6]) == pytest.approx(100 * point["hazard"], abs=0.06)
    assert "stopped: EP " in shown.stdout
    assert "up to 20 % more" in " ".join(shown.stdout.split())
    assert "optimum" not in shown.stdout
    assert "MIX" not in shown.stdout


def test_exhaustive_tells_the_regret(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    brute = result(path, "--npe", "1000", "--exhaustive")["exhaustive"]
    shown = " ".join(call("search", path, "--npe", "1000", "--exhaustive").stdout.split())
    assert brute["proven"] is True
    assert brute["simulated"] + brute["refused"] + brute["excluded"] == brute["pairs"]
    assert f"optimum of all {brute['pairs']} pairs that differ: EP {brute['optimum']['ep']}, " in shown
    assert f"regret of the greedy choice: {brute['regret_percent']:.2f} %; proven: {brute['simulated']} were " in shown
    assert "not proven" not in shown


def test_what_is_not_proven_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.search.run.best_of_every", partial(best_of_every, most=0))
    path = scenario(tmp_path, JOB, OTHER, JOB, cores=[{**CHIP["cores"][0], "tail_width": 1}])  # type: ignore[index]
    answer = result(path, "--npe", "1000", "--exhaustive")
    brute = answer["exhaustive"]
    assert brute["proven"] is False
    shown = " ".join(call("search", path, "--npe", "1000", "--exhaustive").stdout.split())
    assert f"best of {brute['simulated']} pairs tried, not proven: EP {brute['optimum']['ep']}, " in shown
    assert f"regret of the greedy choice: at least {brute['regret_percent']:.2f} %; {brute['pairs']} pairs" in shown
    assert "optimum" not in shown
    for each in answer["mix"]["models"]:
        said = f"regret of {each['model']}: at least; best of {each['exhaustive']['simulated']} pairs tried, not proven"
        assert (said in shown) is not each["exhaustive"]["proven"]
    assert not all(each["exhaustive"]["proven"] for each in answer["mix"]["models"])


def test_any_ep_and_overrides(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    answer = result(path, "--npe", "1000", "--any-ep", "--set", "jobs.0.steps=9")
    assert answer["any_ep"]
    assert {point["ep"] & (point["ep"] - 1) for point in answer["path"]} == {0}
    assert all(point["ep"] & (point["ep"] - 1) for point in answer["refined"])
    assert answer["chosen"] in answer["path"] + answer["refined"]
    assert answer["chosen"]["cycles"] > result(path, "--npe", "1000", "--any-ep")["chosen"]["cycles"]
    shown = call("search", path, "--npe", "1000", "--any-ep").stdout
    assert "any EP" in shown
    eps = [int(line.lstrip("* ").split()[0]) for line in shown.splitlines() if line.endswith("%") and line[0] in " *"]
    assert eps == sorted(eps)
    assert 3 in eps or any(ep & (ep - 1) for ep in eps)


@pytest.mark.slow
def test_a_mix_names_its_cat(tmp_path: Path) -> None:
    path = scenario(tmp_path, JOB, OTHER)
    answer = result(path, "--npe", "2048", "--exhaustive")
    models = answer["mix"]["models"]
    assert [each["model"] for each in models] == ["tiny", "wide"]
    assert answer["mix"]["cat"] == max(e["chosen"]["ep"] for e in models) // min(e["chosen"]["ep"] for e in models) > 1
    shown = call("search", path, "--npe", "2048", "--exhaustive").stdout
    assert f"CAT-{answer['mix']['cat']} suffices: trees of {answer['mix']['tree_inputs']} inputs give EP " in shown
    text = " ".join(shown.split())
    assert f"take {answer['chosen']['cycles']:,} cycles: that is a simulated run of the whole scenario" in text
    assert "runs of one model's jobs alone" in text
    total = next(line for line in shown.splitlines() if line.startswith("sum ")).split()
    assert total[1:] == [
        f"{sum(each['chosen']['cycles'] for each in models):,}",
        f"{sum(each['cycles_at_common_ep'] for each in models):,}",
    ]


def test_without_a_common_tree_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lstmsim.studies.search.run.cat_choices", lambda eps, models, trees: (None, ()))
    path = scenario(tmp_path, JOB, OTHER)
    assert result(path, "--npe", "2048")["mix"]["cat"] is None
    assert "CAT: no adder tree has all of EP " in call("search", path, "--npe", "2048").stdout


def test_equal_choices_need_no_cat(tmp_path: Path) -> None:
    renamed = {**JOB, "model": {**JOB["model"], "name": "same"}}  # type: ignore[dict-item]
    shown = call("search", scenario(tmp_path, JOB, renamed), "--npe", "1024").stdout
    assert "CAT: none is needed, every model takes EP " in shown


def test_ties_need_no_cat(tmp_path: Path) -> None:
    """One model takes as many cycles at EP 8, which the other one wants, as at EP 4, its own choice."""
    first = {"model": {"name": "first", "layers": [{"cell": "gru", "hidden": 10, "input": 7}]}, "steps": 2}
    second = {"model": {"name": "second", "layers": [{"cell": "rnn", "hidden": 21, "input": 29}]}, "steps": 3}
    path = scenario(tmp_path, first, second, cores=[{"npe": 64, "ep": 4, "tail_width": 2}])
    mix = result(path, "--npe", "200")["mix"]
    assert [each["chosen"]["ep"] for each in mix["models"]] == [4, 8]
    assert (mix["cat"], mix["tree_inputs"], len(mix["cats"])) == (1, 8, 1)
    cycles = sum(each["chosen"]["cycles"] for each in mix["models"])
    assert mix["cats"][0]["cycles"] == cycles
    shown = call("search", path, "--npe", "200").stdout
    assert f"CAT: none is needed, every model takes EP 8 at no cost: {cycles} cycles in sum" in shown
    assert "suffices" not in shown


@pytest.mark.needs_core
def test_the_files_own_ep_and_vp_need_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search replaces them; so 150 row blocks a step are no reason to refuse a file, nor are too few rows."""
    monkeypatch.setattr(sizes, "MAX_OPERATIONS", 20_000_000)
    long = {**OTHER, "steps": 100_000}
    path = scenario(tmp_path, long, cores=[{"npe": 4, "ep": 1, "vp": 3}])
    assert "operations on this chip" in call("simulate", path).stderr
    answer = result(path, "--npe", "65536")
    assert answer["chosen"]["ep"] > 1
    assert answer["chip"] == "column-npu"
    narrow = scenario(tmp_path, JOB, cores=[{"npe": 64, "ep": 32, "vp": 2}])
    assert "needs vp >= 4" in call("simulate", narrow).stderr
    assert result(narrow, "--npe", "1024") == result(scenario(tmp_path, JOB), "--npe", "1024", "--set", THREAD)


THREAD = "chip.cores.0.threads=1"


def test_what_the_search_does_not_replace_is_still_refused(tmp_path: Path) -> None:
    narrow = {"npe": 64, "ep": 32, "vp": 2}
    assert "ep * vp must not exceed npe" in refused(scenario(tmp_path, cores=[{**narrow, "vp": 3}]), "--npe", "64")
    assert "threads" in refused(scenario(tmp_path, cores=[{**narrow, "threads": 0}]), "--npe", "64")
    wrong = refused(scenario(tmp_path, {**JOB, "steps": 0}, cores=[narrow]), "--npe", "64")
    assert "steps" in wrong
    endless = {**JOB, "steps": 1_000_000_000}
    assert "operations on this chip" in refused(scenario(tmp_path, endless), "--npe", "64")


def test_cores(tmp_path: Path) -> None:
    cores = [{"count": 2, "npe": 64, "ep": 4}, {"npe": 32, "ep": 2}]
    path = scenario(tmp_path, cores=cores)
    assert refused(path, "--npe", "512").startswith("--core: the 3 cores of chip column-npu are not equal; say which")
    assert refused(path, "--npe", "512", "--core", "3").startswith(
        "--core: there is no core 3; the chip has 3 (0 to 2)"
    )
    assert result(path, "--npe", "512", "--core", "2")["cores"] == [2]
    equal = scenario(tmp_path, cores=cores[:1])
    assert result(equal, "--npe", "512")["cores"] == [0, 1]
    assert "cores 0 to 1, each with NPE 512" in call("search", equal, "--npe", "512").stdout


def test_written_whole_beside_the_text(tmp_path: Path) -> None:
    path, out = scenario(tmp_path), tmp_path / "out.json"
    done = call("search", path, "--npe", "256", "--json", str(out))
    assert done.exit_code == 0
    assert done.stderr == f"wrote {out}\n"
    assert json.loads(out.read_text()) == result(path, "--npe", "256")
    assert done.stdout == call("search", path, "--npe", "256").stdout


@pytest.mark.parametrize(
    ("npe", "line"),
    [
        ("0", "--npe: must be at least 1, got 0\n"),
        ("-8", "--npe: must be at least 1, got -8\n"),
        (
            "1000000000000000000000",
            "--npe: must be at most 10,000,000, as in a chip's file, got 1,000,000,000,000,000,000,000\n",
        ),
        ("3", "--npe: must be at least 4, the gates of one unit of the largest cell, got 3\n"),
    ],
)
def test_wrong_npe_gets_one_line(tmp_path: Path, npe: str, line: str) -> None:
    assert refused(scenario(tmp_path), f"--npe={npe}") == line


def test_other_mistakes(tmp_path: Path) -> None:
    path = scenario(tmp_path)
    assert "Missing option '--npe'" in refused(path)
    assert "--npe: must be at least 1, got 0" in refused(path, "--npe", "64,0")
    assert "no file called" in refused(str(tmp_path / "gone.yaml"), "--npe", "64")
    assert "there is no folder" in refused(path, "--npe", "64", "--json", str(tmp_path / "gone" / "a.json"))
    assert "is also the input" in refused(path, "--npe", "64", "--json", path)
    assert "there is no" in refused(path, "--npe", "64", "--set", "jobs.7.steps=1")


def test_a_model_that_fits_nowhere(tmp_path: Path) -> None:
    chip = {"cores": [{"npe": 64, "ep": 1, "vp": 64, "block_order": "column", "accumulator_banks": 2}]}
    line = refused(scenario(tmp_path, **chip), "--npe", "8")
    assert line.startswith("Error: no (EP, VP) of 8 multipliers can be simulated; (1, 8): job tiny")
    assert "accumulator_banks" in line
    assert line.count("\n") == 1


@pytest.mark.parametrize("sizes", ["64,128,256", "64:300"])
def test_several_arrays_are_a_table_of_the_best(sizes: str, tmp_path: Path) -> None:
    path = scenario(tmp_path)
    several = result(path, "--npe", sizes)
    assert several == {
        "schema": "lstmsim/searches/1",
        "searches": [result(path, "--npe", n) for n in ("64", "128", "256")],
    }
    shown = call("search", path, "--npe", sizes).stdout.splitlines()
    assert [line.split()[0] for line in shown[2:6]] == ["NPE", "64", "128", "256"]
    assert shown[7].startswith("Compared with: ")
    # with `--stamp` it was an internal error
    assert "Assumed keys:" in call("search", path, "--npe", sizes, "--stamp").stdout
    best = several["searches"][2]["chosen"]
    assert shown[5].split()[1:4] == [str(best["ep"]), str(best["vp"]), f"{best['cycles']:,}"]


@pytest.mark.parametrize("sizes", ["", "x", "64,", "300:64", "64:x", "0:8", "1:2:3", "1:99999999", "64:128,256"])
def test_sizes_that_are_none(sizes: str, tmp_path: Path) -> None:
    message = refused(scenario(tmp_path), "--npe", sizes)
    assert f"expected a number, N,N,N or LOW:HIGH up to 10,000,000, got {sizes!r}" in message
