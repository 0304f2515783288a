"""`lstmsim saturate`: the bound holds where it says so, mistakes, JSON."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.studies.serve.run import serve
from lstmsim.studies.serve.saturate import _Runs
from lstmsim.studies.serve.saturation import Tried
from tests.cli.runner import call

#: A curve, or a rate that just keeps a bound, takes thousands of requests.
pytestmark = pytest.mark.needs_core

POISSON = {"kind": "poisson", "rate_per_second": 200_000}
SCENARIO: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [{"model": "lstm-256", "steps": 2, "count": 400, "arrival": POISSON}],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SCENARIO))


QUICK = ("--tolerance", "0.2", "--most-requests", "4000")


@cache
def searched(*arguments: str) -> tuple[dict[str, Any], str]:
    """What a quick search in the folder's scenario gives: its JSON, only to be read, and its text."""
    result = call("saturate", "s.json", *arguments, *QUICK, "--json", "searched.json")
    assert result.exit_code == 0, result.stderr
    return json.loads(Path("searched.json").read_text()), result.stdout


@pytest.mark.slow
def test_the_rate_keeps_the_bound_and_the_next_one_does_not() -> None:
    answer, text = searched("--bound-ms", "0.0008")
    runs = {run["rate"]: run for run in answer["runs"]}
    best, worst = runs[answer["rate"]], runs[answer["fails_from"]]
    assert best["percentile_ms"] + best["half_width_ms"] <= 0.0008
    # far above needs no interval
    assert worst["percentile_ms"] - (worst["half_width_ms"] or 0.0) > 0.0008
    assert (best["kept"], worst["kept"], answer["percentile"]) == (True, False, 99.0)
    assert answer["rate"] < answer["fails_from"] < answer["bound_per_second"]
    by_hand = serve("s.json", requests=best["requests"], overrides=[f"jobs.0.arrival.rate_per_second={best['rate']!r}"])
    assert best["p99_ms"] == by_hand.serving.ms(by_hand.serving.latency.p99.value)
    assert f"\nMACHINE: at most {answer['bound_per_second']:,.0f} requests/s" in text
    assert f"{answer['rate']:,.1f} requests/s keep a p99 of 0.0008 ms" in text


@pytest.mark.slow
def test_a_rate_that_the_machine_cannot_do() -> None:
    answer, text = searched("--bound-ms", "50", "--to", "5e7")
    assert answer["fails_from"] <= answer["bound_per_second"]
    last = max(answer["runs"], key=lambda run: run["rate"])
    assert (last["verdict"], last["kept"], last["p99_ms"]) == ("unstable", False, None)
    assert "do not (unstable)" in text


@pytest.mark.slow
def test_who_is_rejected_is_not_served_in_time() -> None:
    answer, text = searched("--set", "jobs.0.queue_limit=0", "--bound-ms", "0.05")
    broken = [each for each in answer["runs"] if each["kept"] is False]
    assert broken
    assert all(each["p99_ms"] < 0.05 and each["rejected"] > 0.01 for each in broken), "those served are served at once"
    assert all(each["rejected"] < 0.01 for each in answer["runs"] if each["kept"])
    assert "rejected" in text


@pytest.mark.slow
def test_a_bound_for_each_tenant_alone() -> None:
    answer, _ = searched("--bound", "lstm-256=0.0012")
    assert (answer["bound_ms"], answer["bounds_ms"]) == (None, {"lstm-256": 0.0012})
    best = next(run for run in answer["runs"] if run["rate"] == answer["rate"])
    assert best["tenants"]["lstm-256"]["verdict"] == "below"


@pytest.mark.slow
@pytest.mark.parametrize("percentile", [90.25, 99.95])
def test_any_percentile_is_judged(percentile: float) -> None:
    answer, _ = searched("--bound-ms", "0.0012", "--percentile", str(percentile))
    run = next(run for run in answer["runs"] if run["percentile_ms"] is not None)
    change = f"jobs.0.arrival.rate_per_second={run['rate']!r}"
    by_hand = serve("s.json", requests=run["requests"], overrides=[change], percentiles=(99.0, percentile)).serving
    value = by_hand.ms(by_hand.latency.percentiles[percentile].value)
    assert run["percentile_ms"] == pytest.approx(value, rel=1e-12)


def test_the_most_of_the_machine_is_unstable_without_a_run() -> None:
    _, text = searched("--bound-ms", "50")
    assert "\na load of 1 or more is unstable without a run" in text


@pytest.mark.slow
@pytest.mark.parametrize("runs", [0, 1, 3])
@pytest.mark.parametrize("by", [KeyboardInterrupt(), SystemExit(143)], ids=["SIGINT", "SIGTERM"])
def test_what_was_judged_before_an_interrupt_is_shown(
    by: BaseException, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = searched("--bound-ms", "0.0008")
    judge, done = _Runs.judge, [0]

    def interrupted(self: _Runs, rate: float) -> Tried:
        if done[0] == runs:
            raise by
        done[0] += 1
        return judge(self, rate)

    monkeypatch.setattr(_Runs, "judge", interrupted)
    result = call("saturate", "s.json", "--bound-ms", "0.0008", *QUICK, "--json", "c.json")
    assert result.exit_code == (130 if isinstance(by, KeyboardInterrupt) else 143)
    if not runs:
        assert (result.stdout, Path("c.json").exists()) == ("", False)
        return
    answer = json.loads(Path("c.json").read_text())
    assert (answer["runs"], answer["complete"], whole["complete"]) == (whole["runs"][:runs], False, True)
    assert answer["rate"] == max(run["rate"] for run in answer["runs"] if run["kept"])
    assert answer["ended"] == "interrupted"
    assert result.stdout.startswith("so far: ")
    assert "interrupted: the search was not done" in result.stdout


def test_a_bound_that_nothing_keeps() -> None:
    text = call("saturate", "s.json", "--bound-ms", "0.00001", "--from", "20000", *QUICK, "--json", "a.json").stdout
    assert text.startswith("no rate can keep a p99 of 1e-05 ms: one request alone takes 0.")
    # in steps of 2 alone: 780 cycles of 260 MHz are 3 us
    data = json.loads(Path("a.json").read_text())
    assert (data["rate"], data["fails_from"]) == (None, 20_000.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("s.json", "--bound-ms", "0"), "--bound-ms: must be greater than 0, got 0"),
        (("s.json", "--bound-ms", "1e400"), "--bound-ms: must be a finite number above 0, got inf"),
        (("s.json", "--bound-ms", "1", "--from", "0"), "--from: must be greater than 0, got 0"),
        (("s.json", "--bound-ms", "1", "--from", "nan"), "--from: must be a finite number above 0, got nan"),
        (("s.json", "--bound-ms", "1", "--to", "-1"), "--to: must be greater than 0, got -1"),
        (("s.json", "--bound-ms", "1", "--from", "1e12"), "--from: must be below "),
        (("s.json", "--bound-ms", "1", "--from", "1e12"), "the most that this machine can possibly do"),
        (
            ("s.json", "--bound-ms", "1", "--from", "5", "--to", "4"),
            "--to: must be above the lowest rate (5.0), got 4.0",
        ),
        (("s.json",), "expected --bound-ms MS, or --bound NAME=MS"),
        (("s.json", "--bound", "lstm-256"), "not a job entry's name"),
        (("s.json", "--bound", "lstm-265=1"), "did you mean 'lstm-256'"),
        (("s.json", "--bound-ms", "1", "--percentile", "100"), "--percentile: must be above 0 and below 100, got 100"),
        (("s.json", "--bound-ms", "1", "--set", "jobs.0.arrival=0"), "s.json: jobs: no job comes at a rate"),
    ],
)
def test_mistakes_are_sentences(arguments: tuple[str, ...], sentence: str) -> None:
    result = call("saturate", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


@pytest.mark.slow
def test_several_chips_by_command_as_by_function(tmp_path: Path) -> None:
    layers = [{"cell": "lstm", "hidden": 64, "input": 64}]
    job = {"model": {"layers": layers}, "steps": 4, "arrival": {"kind": "poisson", "rate_per_second": 1e4}}
    file, answer, picture = tmp_path / "s.json", tmp_path / "a.json", tmp_path / "r.svg"
    file.write_text(json.dumps({"chip": "column-npu-4x16k", "jobs": [job]}))
    options = ["--chip", "column-npu-16k", "--tolerance", "0.5", "--most-requests", "1000", "--jobs", "1"]
    outcome = call("saturate", str(file), "--bound-ms", "1", *options, "--json", str(answer), "--plot", str(picture))
    assert outcome.exit_code == 0, (outcome.exception, outcome.stderr)
    found = lstmsim.saturate_chips(file, 1.0, ["column-npu-16k"], tolerance=0.5, most_requests=1000)
    assert json.loads(answer.read_text())["rates"] == found.to_dict()["rates"]
    assert "what limits it" in outcome.stdout
    assert picture.stat().st_size
    refused = call("saturate", str(file), "--bound-ms", "1", "--also-ms", "2")
    assert refused.exit_code == 2
    assert "--also-ms" in refused.stderr
    refused = call("saturate", str(file), "--bound-ms", "1", "--chip", "edge", "--from", "5")
    assert refused.exit_code == 2
    assert "--from" in refused.stderr
