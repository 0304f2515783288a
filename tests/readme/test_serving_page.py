"""The page about arrivals has the keys and defaults that the schema has."""

from __future__ import annotations

import re
from dataclasses import MISSING
from pathlib import Path

import pytest

from lstmsim.base.bounds import MAX_CYCLES, MAX_JOBS
from lstmsim.base.keys import keys_of
from lstmsim.engines.feeds import WINDOW
from lstmsim.files.scenario.request_schema import ARRIVAL_KEYS, MAX_LENGTHS, ArrivalEntry, StepsEntry, TraceEntry
from lstmsim.files.scenario.request_schema import STEPS_KEYS as STEPS_KEYS
from lstmsim.files.scenario.schema import JobEntry, ScenarioFile
from lstmsim.machines.column.npu import ColumnCore, Devices, Exchange, Memory
from lstmsim.model.scenario import DISPATCH

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serving.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""

pytestmark = pytest.mark.skipif(not TEXT, reason="the page is in the checkout only")


def said(default: object) -> str:
    """A default as the page has it."""
    return "none" if default is None else str(default)


def table(head: str) -> list[list[str]]:
    """The cells of the rows of the table whose first column is called so."""
    match = re.search(rf"^\| {head} \|.*\n\|[ -|]*\n((?:\|.*\n?)*)", TEXT, re.MULTILINE)
    assert match is not None, head
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in match[1].splitlines()]


def test_every_kind_has_its_keys_units_and_defaults() -> None:
    kinds: dict[str, list[str]] = {}
    for kind, key, unit, default, meaning in table("kind"):
        kinds[kind or list(kinds)[-1]] = [*kinds.get(kind or list(kinds)[-1], []), key]
        needed, _ = ARRIVAL_KEYS[list(kinds)[-1]]
        assert default == ("" if key in needed else said(keys_of(ArrivalEntry)[key].default))
        assert unit == next(
            (u for end, u in (("_cycle", "cycles"), ("_ms", "ms"), ("_second", "1/s")) if end in key), ""
        )
        assert meaning
    assert kinds == {kind: [*needed, *allowed] for kind, (needed, allowed) in ARRIVAL_KEYS.items()}


def test_every_kind_of_steps_has_its_keys_and_defaults() -> None:
    kinds: dict[str, list[str]] = {}
    for kind, key, default, meaning in table("kind of steps"):
        kinds[kind or list(kinds)[-1]] = [*kinds.get(kind or list(kinds)[-1], []), key]
        needed, _ = STEPS_KEYS[list(kinds)[-1]]
        assert default == ("" if key in needed else said(keys_of(StepsEntry)[key].default))
        assert meaning
    assert kinds == {kind: [*needed, *allowed] for kind, (needed, allowed) in STEPS_KEYS.items()}
    assert f"at most {MAX_LENGTHS:,} different numbers of steps" in TEXT


def test_a_trace_has_the_keys_of_a_file() -> None:
    keys = set(ARRIVAL_KEYS["file"][0] + ARRIVAL_KEYS["file"][1]) - {"job"}
    assert set(keys_of(TraceEntry)) == keys
    assert all(keys_of(TraceEntry)[key].default == keys_of(ArrivalEntry)[key].default for key in keys - {"path"})


def test_orders_and_keys_of_jobs_are_those_that_there_are() -> None:
    orders = [row[0].partition("`")[0] for row in table("dispatch")]
    assert orders == list(DISPATCH)
    assert table("dispatch")[0][0] == f"{keys_of(ScenarioFile)['dispatch'].default}` (default)"
    keys = {row[0]: row[2] for row in table("key of a job entry")}
    named = "deadline priority batching queue_limit patience cores split threads on weights initial"
    assert " ".join(keys) == named
    assert set(keys) <= set(keys_of(JobEntry))
    assert keys["priority"] == str(keys_of(JobEntry)["priority"].default)
    assert all(keys_of(JobEntry)[key].default is None for key, said in keys.items() if said == "none")
    chip = {row[0]: row[2] for row in table("key of a chip")}
    fields = {"memory": Memory, "exchange": Exchange, "devices": Devices, "cores": ColumnCore}
    for key, said in chip.items():
        default = keys_of(fields[key.split(".")[0]])[key.split(".")[-1]]
        assert said == (
            "" if default.default is MISSING else "none" if default.default is None else str(default.default)
        )
    whole = {row[0]: row[1] for row in table("key of the scenario")}
    assert whole == {
        "preemption": str(keys_of(ScenarioFile)["preemption"].default).lower(),
        "placement": keys_of(ScenarioFile)["placement"].default,
    }


def test_limits_are_those_of_the_schema() -> None:
    assert f"at most {WINDOW:,} requests may be in the machine" in TEXT.lower()
    assert f"at most {MAX_JOBS:,} jobs in all, no arrival after cycle {MAX_CYCLES:,}" in TEXT
