"""The list of keys, and the defaults that documents give, are those of the machines' descriptions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lstmsim.base.keys import keys_of
from lstmsim.machines.column.npu import ColumnCore, Latency
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.studies.known.run import list_known
from tests.cli.runner import call

PAGE = Path(__file__).resolve().parents[2] / "docs" / "timing.md"


def test_every_key_of_every_machine_is_listed_when_asked_for() -> None:
    known = {row["name"]: row["source"] for row in list_known("keys")["keys"]}
    for kind in KINDS:
        assert {f"{kind} cores.{key}" for key in keys_of(target_of(kind).core)} < set(known)
        assert {f"{kind} {key}" for key in keys_of(target_of(kind).chip)} < set(known)
    assert known["column-npu frequency_mhz"] == "the clock in MHz; 1e-06 to 1,000,000 MHz; required"
    assert known["column-npu cores.vp"] == "rows in parallel; 1 to 10,000,000; default: npe // ep"
    assert known["column-npu cores.latency.divide"].startswith(
        "a quotient in the tail; 1 to 1,000,000 cycles; default: 16"
    )
    assert known["column-npu cores.thread_policy"].startswith(
        "when a core goes on with another thread; coarse or fine;"
    )
    assert known["row-npu cores.by_cell.CELL.start_cycles"].count("default: the core's") == 1
    assert "row-npu cores.by_cell.CELL.cell" not in known
    assert "default: true" in known["row-npu cores.tile_loads"]
    assert "default: none" in known["column-npu memory"]
    assert "keys" not in list_known()


def test_the_command_shows_them_and_names_stay_whole() -> None:
    done = call("list", "keys")
    assert done.exit_code == 0
    assert "  column-npu cores.latency.elementwise_multiply  " in done.output


@pytest.mark.skipif(not PAGE.is_file(), reason="documents come with the source checkout")
def test_defaults_in_the_timing_contract_are_those_of_the_keys() -> None:
    text = PAGE.read_text(encoding="utf-8")
    parts = text[text.index("## 1. Parts") : text.index("## 2. Work")]
    core = {key: str(each.default) for key, each in keys_of(ColumnCore).items()}
    said = dict(re.findall(r"`(\w+)` \(`?(\w+)`?\)", parts))
    assert len(said) == 6
    assert said == {key: core[key] for key in said}
    latencies = parts[parts.index("Latencies in cycles") :]
    assert dict(re.findall(r"`(\w+)` (\d+)", latencies)) == {
        key: "4" if each.default is None else str(each.default) for key, each in keys_of(Latency).items()
    }
