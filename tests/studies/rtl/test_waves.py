"""Signals of the RTL and of the simulator in one file: each has its value in its cycle."""

from __future__ import annotations

from pathlib import Path

import pytest

from lstmsim.base.errors import LstmsimError
from lstmsim.studies.rtl.result import compare, read_log
from lstmsim.studies.rtl.waves import merge_waves

RTL = """$date
	today
$end
$timescale 1s $end
$scope module TOP $end
$var wire 32 $ cycle [31:0] $end
$scope module bench $end
$var wire 1 ! clock $end
$var wire 32 L0 cycle [31:0] $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
b11111111111111111111111111111111 L0
0!
"""
LOG = read_log(
    ["A 0 1 0 0", "I 0 1 0 0 0 0 1 3 0", "C 0 busy 0", "I 1 1 0 0 0 0 1 4 0", "T 2 1", "T 3 1", "F 4 0 0", "C 4 idle 0"]
)


def rtl() -> str:
    return RTL + "".join(f"#{5 + 10 * each}\n1!\nb{each:b} L0\nb{each:b} $\n" for each in range(6))


def values(text: str) -> dict[str, list[str]]:
    """The values of each signal at the end of each cycle, from cycle 0 on, by its scopes and name."""
    names: dict[str, str] = {}
    scopes, now, cycles = list[str](), dict[str, str](), list[dict[str, str]]()
    head, _, body = text.partition("$enddefinitions $end\n")
    for line in head.splitlines():
        words = line.split()
        if words[0] == "$scope":
            scopes.append(words[2])
        elif words[0] == "$upscope":
            scopes.pop()
        elif words[0] == "$var":
            names[words[3]] = ".".join((*scopes, words[4]))
    for line in body.splitlines():
        if line.startswith("#"):
            cycles.append(dict(now))
        elif line[0] in "bs":
            value, code = line[1:].split()
            now[code] = value
        elif line[0] in "01":
            now[line[1:]] = line[0]
    cycles.append(now)
    return {name: [each.get(code, "") for each in cycles[2:]] for code, name in names.items()}


def test_both_are_in_one_file(tmp_path: Path) -> None:
    source, target = tmp_path / "rtl.vcd", tmp_path / "both.vcd"
    source.write_text(rtl())
    differences = compare(LOG, LOG[:4]).differences
    merge_waves(str(source), str(target), "bench", LOG, differences)
    text = target.read_text()
    assert "today" not in text
    seen = values(text)
    assert seen["TOP.bench.cycle"] == ["0", "1", "10", "11", "100", "101"]
    core = {name.removeprefix("lstmsim.core_0."): each for name, each in seen.items() if "core_0" in name}
    assert core["issue"] == ["1", "1", "0", "0", "0", "0"]
    assert core["group"] == ["11", "100", "x", "x", "x", "x"]
    assert core["thread"] == ["1", "1", "x", "x", "x", "x"]
    assert core["thread_1_job"] == ["0"] * 6
    assert core["job_finished"] == ["0", "0", "0", "0", "1", "0"]
    assert core["name"] == ["busy"] * 4 + ["idle"] * 2
    assert seen["lstmsim.core_1.turn"] == ["0", "0", "1", "1", "0", "0"]
    assert seen["lstmsim.differs"] == ["0", "0", "1", "1", "1", "1"]


def test_waves_without_cycles_are_told(tmp_path: Path) -> None:
    source = tmp_path / "rtl.vcd"
    source.write_text(rtl())
    with pytest.raises(LstmsimError, match="have no register 'cycle' in other_bench"):
        merge_waves(str(source), str(tmp_path / "both.vcd"), "other_bench", LOG, ())
    assert not (tmp_path / "both.vcd").exists()
