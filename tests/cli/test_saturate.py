"""`lstmsim saturate`: the bound holds where it says so, mistakes, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lstmsim.api import run, serving
from tests.cli.runner import call

POISSON = {"kind": "poisson", "rate_per_second": 200_000}
SCENARIO: dict[str, Any] = {
    "chip": "column-npu-16k",
    "jobs": [{"model": "lstm-256", "steps": 2, "count": 400, "arrival": POISSON}],
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.json").write_text(json.dumps(SCENARIO))


def p99_ms(rate: float) -> float:
    found = serving(run(SCENARIO, overrides=[f"jobs.0.arrival.rate_per_second={rate!r}"]))
    return found.latency.p99.value / found.frequency_mhz / 1000


def test_the_rate_keeps_the_bound_and_the_next_one_does_not() -> None:
    found = json.loads(call("saturate", "s.json", "--bound-ms", "0.0012", "--json", "-").stdout)
    assert p99_ms(found["rate"]) <= 0.0012 < p99_ms(found["fails_from"])
    assert found["fails_from"] - found["rate"] <= 0.01 * 2_000_000
    text = call("saturate", "s.json", "--bound-ms", "0.0012").stdout
    assert text.splitlines()[-1].endswith("do not")


def test_who_is_turned_away_is_not_served_in_time() -> None:
    short = ["--set", "jobs.0.queue_limit=0", "--bound-ms", "0.05", "--to", "20000000"]
    found = json.loads(call("saturate", "s.json", *short, "--json", "-").stdout)
    assert all(each["p99_ms"] < 0.05 for each in found["runs"]), "those who are served are served at once"
    assert all(each["kept"] == (each["turned_away"] <= 0.01) for each in found["runs"])
    assert found["fails_from"] < 2e7
    assert "turned away" in call("saturate", "s.json", *short).stdout


def test_a_bound_that_nothing_keeps() -> None:
    text = call("saturate", "s.json", "--bound-ms", "0.00001").stdout
    assert text.splitlines()[-1].startswith("not even 20,000.0 requests/s keep")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("s.json", "--bound-ms", "0"), "bound_ms"),
        (("s.json", "--bound-ms", "1", "--from", "5", "--to", "4"), "high"),
        (("s.json", "--bound-ms", "1", "--set", "jobs.0.arrival=0"), "no job comes at a rate"),
    ],
)
def test_mistakes_are_sentences(arguments: tuple[str, ...], sentence: str) -> None:
    result = call("saturate", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
