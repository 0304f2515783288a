"""From a scenario to a verdict, with a machine whose RTL says what a file says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import lstmsim
from lstmsim.base.errors import InputError, LstmsimError
from lstmsim.studies.rtl.simulators import simulate_rtl, simulator_of
from tests.cli.runner import call
from tests.studies.rtl.needed import long_run, needs_icarus, needs_verilator

LAYER = {"cell": "rnn", "hidden": 2, "input": 1}
CHIP = {"kind": "toy-cpu", "frequency_mhz": 100, "cores": [{"lanes": 4}]}
SCENARIO: dict[str, Any] = {
    "name": "toy",
    "chip": CHIP,
    "jobs": [{"name": f"job{each}", "model": {"name": "m", "layers": [LAYER]}, "steps": 2 + each} for each in range(2)],
}
FILES = ("rtl/stub.v", "sim/stub_tb.v", "sim/run.sh", "data/replay.txt", "golden/events.txt", "files.sha256")


@pytest.fixture(autouse=True)
def _folder(stub: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def verified(**options: Any) -> Any:
    return lstmsim.run_rtl(SCENARIO, "out", verify=True, timing_only=True, **options)


def test_files_are_written_without_any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    report = lstmsim.run_rtl(SCENARIO, "out", random_weights=0)
    assert report.written.written == FILES
    first = {name: Path("out", name).read_bytes() for name in FILES}
    lstmsim.run_rtl(SCENARIO, "out", random_weights=0)
    assert {name: Path("out", name).read_bytes() for name in FILES} == first
    assert b"\nH 2 0 0 0 0 1 00\n" in first["golden/events.txt"]
    assert os.access("out/sim/run.sh", os.X_OK)
    with pytest.raises(InputError, match=r"--simulator icarus: there is no program iverilog; .*apt install iverilog"):
        lstmsim.run_rtl(SCENARIO, "other", verify=True, timing_only=True)
    assert not Path("other").exists()


def test_what_is_refused_is_refused_before_a_file_is_written() -> None:
    with pytest.raises(InputError, match=r"^model m: has no weights: --random-weights 0 draws some, --timing-only"):
        lstmsim.run_rtl(SCENARIO, "out")
    late = {**SCENARIO, "jobs": [{**SCENARIO["jobs"][0], "arrival": 7}]}
    done = lstmsim.load_scenario(SCENARIO)
    with pytest.raises(InputError, match=r"^vcd: only with verify"):
        lstmsim.run_rtl(SCENARIO, "out", timing_only=True, vcd="both.vcd")
    with pytest.raises(InputError, match=r"^random_weights: not with timing_only"):
        lstmsim.run_rtl(done, "out", timing_only=True, random_weights=0)
    with pytest.raises(InputError, match=r"^jobs.0.arrival: is not in the subset"):
        lstmsim.run_rtl(late, "out", timing_only=True)
    with pytest.raises(
        InputError, match=r"its machine, the .*, cannot be written as RTL; machines that can: .*toy processor"
    ):
        lstmsim.run_rtl({**SCENARIO, "chip": "v100"}, "out", timing_only=True)
    assert not Path("out").exists()


@needs_icarus
def test_equal_and_different() -> None:
    report = verified(vcd="both.vcd")
    assert report.verified.equal
    assert report.to_text().endswith("EQUAL in every cycle")
    assert Path("out/events.txt").read_bytes() == Path("out/golden/events.txt").read_bytes()
    assert report.to_dict()["verified"]["equal_events"]["issue"] == 5
    replay = Path("out/data/replay.txt")
    replay.write_text(replay.read_text().replace("I 24 0 1 0 1", "I 25 0 1 0 1"))
    report = verified(vcd="both.vcd")
    assert report.written.kept == ("data/replay.txt",)
    assert "kept out/data/replay.txt, which was changed since" in report.remarks[0]
    (wrong,) = report.to_dict()["verified"]["differences"]
    assert wrong["text"] == "issue 3: RTL cycle 25 0 1 0 1 0 1 0; lstmsim cycle 24 0 1 0 1 0 1 0"
    assert report.wrong == "the RTL in out differs from the simulator, first in cycle 24"
    waves = Path("both.vcd").read_text()
    assert "$scope module lstmsim $end" in waves
    assert verified(replace=True).verified.equal


@pytest.mark.slow
@needs_icarus
def test_the_command(tmp_path: Path) -> None:
    from lstmsim.files.yaml.document import yaml_text

    Path("s.yaml").write_text(yaml_text(SCENARIO), encoding="utf-8")
    done = call("rtl", "s.yaml", "--out", "out", "--verify", "--timing-only", "--timeline", "both.svg")
    assert done.exit_code == 0, done.output
    assert "issues: all 5 equal" in done.stdout
    assert b"lstmsim and its RTL are equal" in Path("both.svg").read_bytes()
    Path("out/data/replay.txt").write_text("A 0 0 0\n")
    done = call("rtl", "s.yaml", "--out", "out", "--verify", "--timing-only", "--timeline", "both.png")
    assert done.exit_code == 1
    assert "issue 0: RTL has none; lstmsim cycle 0 0 0 0 0 0 1 0" in done.stdout
    assert "kept out/data/replay.txt" in done.stderr
    assert "differs from the simulator, first in cycle 0" in done.stderr


@needs_icarus
def test_what_does_not_compile_is_told() -> None:
    verified()
    Path("out/rtl/stub.v").write_text("module stub(; endmodule\n")
    with pytest.raises(LstmsimError, match=r"(?s)iverilog failed.*rtl/stub.v:1: syntax error"):
        verified()


@needs_icarus
def test_a_simulation_that_does_not_end_is_ended() -> None:
    verified()
    text = Path("out/sim/stub_tb.v").read_text().replace("$finish", "cycle = 0")
    Path("out/sim/stub_tb.v").write_text(text)
    sources = ["rtl/stub.v", "sim/stub_tb.v"]
    with pytest.raises(LstmsimError, match=r"vvp was ended after 0\.2 seconds"):
        simulate_rtl(simulator_of("icarus"), "out", sources, "stub_tb", 100, seconds=0.2)


@needs_verilator
@long_run
def test_verilator_says_the_same(tmp_path: Path) -> None:
    report = verified(simulator="verilator", vcd="both.vcd")
    assert report.verified.equal
    assert "module lstmsim" in Path("both.vcd").read_text()
