"""`lstmsim simulate`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import lstmsim as package
from lstmsim.analysis.report import ACCOUNTS, LOSSES
from lstmsim.engines import ENGINES
from lstmsim.importers.tensors import write_safetensors
from tests.cli import runner

SCENARIO = """
chip:
  kind: column-npu
  frequency_mhz: 260
  cores: [{npe: 65536, ep: 32, vp: 2048, threads: 2}]
jobs:
  - {model: {name: pair, layers: [{cell: lstm, hidden: 512, input: 512}]}, steps: 20, count: 2}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(SCENARIO)
    return "scenario.yaml"


def call(*arguments: str) -> Result:
    return runner.call("simulate", *arguments)


def refused(*arguments: str) -> str:
    """The message of a call that must end with exit code 2 before it writes anything."""
    before = sorted(Path.cwd().iterdir())
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert sorted(Path.cwd().iterdir()) == before
    return result.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"arrival_cycles\n", "has a header only"),
        (b"arrival_cycles\n1\nNaN\n", "a.csv:3: arrival_cycles: must be a finite number, got 'NaN'"),
        (b"arrival_ms\n-1\n", "a.csv:2: arrival_ms: must be at least 0, got -1"),
        (b"arrival_ms\n2\n1\n", "a.csv:3: arrival_ms: goes back in time"),
        (b"arrival_ms\n1e40\n", "a.csv:2: arrival_ms: must lie within 2^62 cycles"),
        (b"arrival_cycles\n1000000000001\n", "jobs.0.arrival: job 1 of this entry comes as late as cycle"),
        (b"time\n1\n", "a.csv:1: unknown column 'time'"),
        (b"\x7fELF\x02\x00\xff\n", "a.csv:1: is no UTF-8 text"),
    ],
)
def test_files_of_arrivals_that_are_none_get_a_line(scenario: str, content: bytes, sentence: str) -> None:
    Path("a.csv").write_bytes(content)
    text = Path(scenario).read_text().replace("count: 2", "arrival: {kind: file, path: a.csv}")
    Path(scenario).write_text(text)
    (line,) = refused(scenario).splitlines()
    assert sentence in line


def test_table_has_the_figures_of_the_report(scenario: str) -> None:
    report = package.simulate(scenario)
    result = call(scenario)
    assert result.exit_code == 0
    assert result.stderr == ""
    for job in report.jobs:
        assert any(job.name in line and f"{job.finish:,}" in line for line in result.stdout.splitlines())
    for name in ACCOUNTS:
        assert name in result.stdout
    assert f"makespan {report.makespan_cycles:,} cycles" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


@pytest.mark.needs_core
@pytest.mark.parametrize("engine", ENGINES)
def test_json_on_standard_output_is_alone_there(scenario: str, engine: str) -> None:
    result = call(scenario, "--json", "-", "--engine", engine)
    assert result.stderr == ""
    data = json.loads(result.stdout)
    assert data["schema"] == "lstmsim/report/2"
    assert data["engine"] == engine
    assert [job["latency"] for job in data["jobs"]] == [job["finish"] - job["arrival"] for job in data["jobs"]]
    for core in data["cores"]:
        assert list(core["cycles"]) == list(ACCOUNTS)
        assert list(core["pe_cycles"]) == list(LOSSES)
        assert sum(core["cycles"].values()) == data["makespan_cycles"]
        assert sum(core["pe_cycles"].values()) == core["npe"] * data["makespan_cycles"]


def test_engines_write_the_same_bytes(scenario: str) -> None:
    first, second = (call(scenario, "--json", "-", "--engine", engine).stdout for engine in ENGINES)
    assert first.replace('"engine": "fast"', '"engine": "reference"') == second


@pytest.mark.slow
def test_files_are_written_and_named(scenario: str) -> None:
    result = call(scenario, "--json", "r.json", "--trace", "t.json.gz", "--timeline", "t.svg")
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == ["wrote r.json", "wrote t.json.gz", "wrote t.svg"]
    assert json.loads(Path("r.json").read_text()) == json.loads(call(scenario, "--json", "-").stdout)
    assert package.load_trace("t.json.gz").makespan_cycles == package.simulate(scenario).makespan_cycles
    assert "<svg" in Path("t.svg").read_text()


@pytest.mark.slow
def test_a_window_is_cut_out_of_every_file_that_shows_cycles(scenario: str) -> None:
    given = ("--trace", "w.json", "--timeline", "w.svg", "--report", "w.html")
    result = call(scenario, "--trace-window", "100:200", *given)
    assert result.exit_code == 0, result.stderr
    for name in given[1::2]:
        assert "cycles 100 to 200 of" in Path(name).read_text(encoding="utf-8"), name
    # the file says which cycles it holds, so that it is drawn as what it is
    assert runner.call("timeline", "w.json", "--out", "w2.svg").exit_code == 0
    assert Path("w2.svg").read_bytes() == Path("w.svg").read_bytes()


def test_set_changes_the_scenario(scenario: str) -> None:
    data = json.loads(call(scenario, "--set", "chip.cores.0.ep=16", "--set", "jobs.0.steps=3", "--json", "-").stdout)
    changed = package.simulate(scenario, overrides=["chip.cores.0.ep=16", "jobs.0.steps=3"])
    assert data["cores"][0]["ep"] == 16
    assert data["makespan_cycles"] == changed.makespan_cycles


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trace", "t.xls"], ["--trace t.xls", ".vcd"]),
        (["--timeline", "t.gif"], ["--timeline t.gif", ".svg"]),
        (["--trace", "no/such/t.csv"], ["--trace no/such/t.csv", "no folder"]),
        (["--json", "."], ["--json .", "folder"]),
        (["--json", "scenario.yaml"], ["--json scenario.yaml", "the input"]),
        (["--json", ""], ["--json '': the name is empty"]),
        (["--json", "t.gtkw", "--trace", "t.vcd"], ["--trace's GTKWave view t.gtkw: is also the output of --json"]),
        (["--trace", "folder.vcd"], ["--trace's GTKWave view folder.gtkw: is a folder"]),
        (["--json", "t.json", "--trace", "./t.json"], ["--trace ./t.json", "--json"]),
        (["--engine", "quick"], ["quick", "fast"]),
        (["--set", "chip.cores.0.pe=3"], ["chip.cores.0.pe"]),
        (["--set", "nonsense"], ["nonsense"]),
    ],
)
def test_refused_before_the_simulation(
    scenario: str, arguments: list[str], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise AssertionError("the simulation began")

    monkeypatch.setattr("lstmsim.engines.run", run)
    Path("folder.gtkw").mkdir()
    message = refused(scenario, *arguments)
    assert all(word in message for word in words), message


def test_the_view_beside_a_vcd_is_named_and_never_replaced(scenario: str) -> None:
    assert call(scenario, "--trace", "t.vcd").stderr.splitlines() == ["wrote t.vcd", "wrote t.gtkw", "wrote t.sucl"]
    assert '[dumpfile] "t.vcd"' in Path("t.gtkw").read_text()
    Path("t.gtkw").write_text("my view")
    Path("t.gtkw").chmod(0o444)
    assert call(scenario, "--trace", "t.vcd").stderr.splitlines() == ["wrote t.vcd", "kept t.gtkw", "kept t.sucl"]
    assert Path("t.gtkw").read_text() == "my view"
    assert "the output of --json" in refused(scenario, "--trace", "t.vcd", "--json", "t.gtkw")


def test_the_view_beside_an_fst_is_named(scenario: str) -> None:
    pytest.importorskip("pylibfst")
    assert call(scenario, "--trace", "t.fst").stderr.splitlines() == ["wrote t.fst", "wrote t.gtkw", "wrote t.sucl"]
    assert '[dumpfile] "t.fst"' in Path("t.gtkw").read_text()


def test_the_view_beside_a_vcd_cannot_be_the_scenario(scenario: str) -> None:
    Path("s.gtkw").write_text(SCENARIO)
    assert "--trace's GTKWave view s.gtkw: is also the input" in refused("s.gtkw", "--trace", "s.vcd")


def test_every_mistake_of_a_scenario_is_a_line(scenario: str) -> None:
    Path(scenario).write_text(SCENARIO.replace("npe: 65536", "npe: 0").replace("steps: 20", "stebs: 20"))
    lines = refused(scenario).splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("scenario.yaml:") for line in lines)


def test_a_file_that_is_not_there(scenario: str) -> None:
    assert "other.yaml" in refused("other.yaml")


def test_a_failed_write_is_said_and_leaves_no_file(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = call(scenario, "--json", "r.json")
    assert result.exit_code == 1
    assert "no space" in result.stderr.lower()
    assert not Path("r.json").exists()


def test_the_explanation_stands_behind_the_answer_and_the_glossary_is_asked_for(scenario: str) -> None:
    plain, explained = call(scenario).stdout, call(scenario, "--explain").stdout
    answer, rest = plain.split("\n\n", 1)
    assert answer.startswith("Utilization 87.0 %, makespan ")
    assert explained.startswith(f"{answer}\n\nWHY NOT 100 %: utilization is 87.0 %\n")
    assert explained.endswith(f"\n\n{rest}")
    assert "GLOSSARY" not in explained
    both = call(scenario, "--explain", "--glossary").stdout
    assert both.startswith(explained)
    assert both[len(explained) :].startswith("\nGLOSSARY\ncritical path  ")
    words = call(scenario, "--glossary").stdout
    assert words.startswith(plain)
    assert "\nmakespan " in words[len(plain) :]
    assert "critical path" not in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trace", "t.fst"], "t.fst: writing FST needs the extra"),
        (["--trace", "t.pftrace"], "t.pftrace: writing .pftrace needs the extra"),
        (["--trace", "t.kanata"], "at most 1 can be looked at"),
        (["--trace", "t.csv", "--trace-window", "9999999:"], "window: must start at a cycle of the timeline"),
        (["--report", "r.html", "--trace-window", "9999999:"], "window: must start at a cycle of the timeline"),
        (["--set", "chip=v100", "--trace", "t.csv", "--report", "r.html", "--device", "ecp5-85"], "has no parts"),
    ],
)
def test_what_is_refused_after_the_simulation_is_refused_before_the_first_file(
    scenario: str, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pylibfst", "perfetto.trace_builder"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("lstmsim.analysis.files.kanata.MAX_OPERATIONS", 1)
    assert words in refused(scenario, "--json", "j", "--program", "p.npz", *arguments)


def test_an_option_of_another_command_leads_to_what_the_user_needs(scenario: str) -> None:
    cases = {
        "--threads": "that is a key of the scenario, changed by --set chip.cores.0.threads=VALUE or --set jobs",
        "--dispatch": "that is a key of the scenario, changed by --set dispatch=VALUE.",
        "--plot": "pictures are drawn by --timeline or --roofline.",
    }
    for option, sentence in cases.items():
        message = refused(scenario, option, "2")
        assert message.startswith("Usage: ")
        assert f"Error: No such option '{option}': {sentence}" in message
    assert "Did you mean" in refused(scenario, "--timelin", "a.png")
    # an option of the command that is near wins over a key
    assert "Did you mean one of: '--chip'" in refused(scenario, "--chips", "2")


def test_what_is_no_scenario_is_named(scenario: str) -> None:
    Path("speech.yaml").write_text("name: speech\nlayers: [{cell: lstm, hidden: 8, input: 8}]\nlayer_order: step\n")
    assert refused("speech.yaml") == (
        "speech.yaml: is a model, no scenario: simulate it by `lstmsim simulate speech.yaml --chip NAME --steps N`, or "
        "name it as the `model` of a job in a scenario\n"
    )
    Path("mine.yaml").write_text("kind: column-npu\nname: mine\nfrequency_mhz: 200\ncores: [{npe: 64, ep: 8, vp: 8}]\n")
    assert refused("mine.yaml") == (
        "mine.yaml: is a chip, no scenario: use it in one by `lstmsim simulate SCENARIO --set chip=mine.yaml`, or "
        "simulate a network or a model with --chip mine.yaml\n"
    )
    write_safetensors("own.safetensors", {"layers.0.forward.matrix.i.x": np.zeros((8, 4))})
    assert refused("own.safetensors", "--chip", "column-npu-16k", "--steps", "2") == (
        "own.safetensors: holds the weights of a model file of lstmsim, like own.yaml: use that file\n"
    )
    Path("x.safetensors").write_bytes(bytes(100))
    assert "`lstmsim import x.safetensors` makes a model" in runner.call("serve", "x.safetensors").stderr
    assert "has no key 'cores'; did you mean 'chip.cores.0.ep'?" in refused(scenario, "--set", "cores.0.ep=8")
    wrong = ("--timeline", "a.png", "--trace-window", "9:3")
    assert runner.call("simulate", scenario, *wrong).stderr == "--trace-window: must end after its start 9, got 3\n"


def test_a_network_is_simulated_without_a_scenario(scenario: str) -> None:
    weights = {"weight_ih_l0": np.zeros((32, 4)), "weight_hh_l0": np.zeros((32, 8))}
    write_safetensors("net.safetensors", weights)
    Path("model.yaml").write_text("name: net\nlayers: [{cell: lstm, hidden: 8, input: 4}]\nsteps: 7\n")
    model = "{name: net, layers: [{cell: lstm, hidden: 8, input: 4}]}"
    Path("alone.yaml").write_text(f"name: net\nchip: column-npu-16k\njobs: [{{model: {model}, steps: 7}}]\n")
    texts = [
        call("net.safetensors", "--chip", "column-npu-16k", "--steps", "7").stdout,
        call("model.yaml", "--chip", "column-npu-16k").stdout,
        call("alone.yaml").stdout,
    ]
    assert len(set(texts)) == 1
    assert "makespan" in texts[0]
    assert refused("net.safetensors") == (
        "--chip: is missing: net.safetensors has no chip (`lstmsim list chips`); `lstmsim import` makes a model for "
        "scenarios of it\n--steps: is missing: how many time steps to simulate; lstmsim reads no number from "
        "net.safetensors\n"
    )
    assert refused("alone.yaml", "--chip", "v100", "--steps", "2") == (
        "--chip: only with a network's or a model's file; in a scenario it is --set chip=v100\n"
        "--steps: only with a network's or a model's file; in a scenario it is --set jobs.0.steps=2\n"
    )
    # the key of the scenario that is made, not the option that shows jobs
    assert refused("lstm-512", "--chip", "edgedrnn-8", "--steps", "2").startswith("jobs.0: job 'lstm-512' cannot run")


def test_what_may_not_be_meant_is_remarked(scenario: str) -> None:
    job = "{name: a, model: {layers: [{cell: lstm, hidden: 8, input: 4}]}, steps: 2"
    text = f"chip: column-npu-16k\ndispatch: edf\njobs:\n  - {job}}}\n  - {job}}}\n"
    Path("s.yaml").write_text(text)
    assert call("s.yaml").stderr.splitlines() == [
        "dispatch edf: no job has a `deadline`, so that jobs go in the order of their arrivals",
        "2 entries of `jobs` have the name 'a': the names of their jobs are made different",
    ]
    Path("s.yaml").write_text(
        text.replace("steps: 2}", "steps: 2, deadline: 9000}", 1).replace("name: a", "name: b", 1)
    )
    assert not call("s.yaml").stderr
