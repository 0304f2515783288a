"""Every output option of every command against every file that a rich scenario reads: none of them takes its place.

The options come from the commands themselves. One that takes a text has to be named below as an output or as something
else, so that a new option cannot be forgotten.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

import lstmsim
from lstmsim.base.errors import InputError
from lstmsim.cli.group import COMMANDS, command_of
from lstmsim.files.catalog import find_chip, find_model, input_files
from lstmsim.studies.fit.device import device_files
from tests.cli.runner import call

#: Suffix of a name that an output option takes, by command and option.
OUTPUTS = {
    "simulate": {
        "--json": ".json",
        "--trace": ".csv",
        "--report": ".html",
        "--timeline": ".png",
        "--roofline": ".png",
        "--outputs": ".safetensors",
        "--program": ".npz",
    },
    "compare": {"--report": ".html", "--json": ".json", "--csv": ".csv", "--plot": ".svg"},
    "diff": {"--json": ".json", "--picture": ".svg", "--report": ".html"},
    "validate": {"--json": ".json", "--markdown": ".md"},
    "accuracy": {"--json": ".json", "--plot": ".svg"},
    "serve": {"--json": ".json", "--csv": ".csv"},
    "saturate": {"--json": ".json", "--report": ".html", "--plot": ".svg"},
    "load-latency": {"--report": ".html", "--csv": ".csv", "--json": ".json", "--plot": ".svg"},
    "fit": {"--json": ".json"},
    "sparse": {"--report": ".html", "--json": ".json", "--output": ".npy", "--timeline": ".png", "--trace": ".csv"},
    "gemm": {"--report": ".html", "--json": ".json", "--output": ".npy", "--timeline": ".png", "--trace": ".csv"},
    "fuse": {
        "--report": ".html",
        "--json": ".json",
        "--picture": ".svg",
        "--save": ".yaml",
        "--timeline": ".png",
        "--trace": ".csv",
    },
    "rtl": {"--json": ".json", "--vcd": ".vcd", "--timeline": ".png"},
    # its inputs are known when the design is read, and a run takes long
    "board": {},
    "search": {"--json": ".json"},
    "design": {"--report": ".html", "--json": ".json", "--plot": ".svg"},
    "sweep": {"--report": ".html", "--plot": ".svg"},
    "merge": {"--plot": ".svg"},
    "timeline": {"--out": ".png"},
    "program": {"--json": ".json", "--trace": ".csv"},
    "import": {"--out": ".yaml"},
    "list": {"--json": ".json", "--json-schema": ".json"},
    "schema": {"--out": ".json"},
    "init": {},
}
#: Folders, whose own tests are below, and a file of a run that takes long.
FOLDERS = {
    ("sweep", "--out"),
    ("search", "--out"),
    ("design", "--out"),
    ("load-latency", "--out"),
    ("saturate", "--out"),
    ("rtl", "--out"),
    ("board", "--json"),
}
#: Options that take a text and write nothing.
OTHERS = {
    *(
        "--set",
        "--set-a",
        "--chip",
        "--also-ms",
        "--base",
        "--trace-window",
        "--clock",
        "--device",
        "--bits",
        "--thresholds",
        "--until-half-width",
        "--bound",
        "--batch",
        "--npe",
        "--board",
        "--netlist-of",
        "--port",
        "--policies",
        "--stability",
    ),
    *("--kernel", "--method", "--side", "--chip-set", "--prune-by"),
    *("--model", "--product", "--caches", "--packed", "--relief", "--cut", "--threads"),
    *("--size", "--modes", "--mode", "--minimise", "--maximise", "--axis", "--fill"),
    *("--placements", "--loads", "--dask", "--shard", "--cores", "--name", "--licence"),
    *("--plot-kind", "--plot-objectives", "--objectives", "--heads", "--percentile"),
}
#: What a command needs besides an output.
ARGUMENTS = {
    "compare": ("s.json", "--chip", "data/chip.json"),
    "diff": ("s.json", "--set", "jobs.0.steps=2"),
    "saturate": ("s.json", "--bound-ms", "1"),
    "fit": ("s.json", "--device", "data/device.json"),
    "sparse": ("data/matrix.mtx", "--chip", "data/chip.json"),
    "gemm": ("--model", "data/model.json", "--chip", "data/chip.json"),
    "fuse": ("data/graph.yaml", "--chip", "data/chip.json"),
    "rtl": ("s.json", "--out", "design", "--verify"),
    "search": ("s.json", "--npe", "4096"),
    "design": ("s.json", "--device", "data/device.json", "--axis", "chip.cores.0.ep=8,16"),
    "sweep": ("sweep.json", "--out", "kept"),
    "merge": ("out.sqlite", "data/shard.sqlite"),
    "timeline": ("data/trace.csv",),
    "program": ("data/lowered.npz",),
    "import": ("data/net.safetensors", "--force"),
    "validate": (),
    "list": (),
    "schema": ("scenario",),
}
SCENARIO = (
    *("s.json", "data/chip.json", "data/model.json", "data/weights.safetensors", "data/times.csv", "data/steps.csv"),
    *("data/frames.csv", "data/trace_of_jobs.csv"),
)
INPUTS = dict.fromkeys(OUTPUTS, SCENARIO) | {
    "fit": (*SCENARIO, "data/device.json"),
    "design": (*SCENARIO, "data/device.json"),
    "sparse": ("data/matrix.mtx", "data/chip.json"),
    "gemm": ("data/model.json", "data/chip.json"),
    "fuse": ("data/graph.yaml", "data/chip.json"),
    "sweep": ("sweep.json", *SCENARIO, "data/other.csv"),
    "merge": ("data/shard.sqlite",),
    "timeline": ("data/trace.csv",),
    "program": ("data/lowered.npz",),
    "import": ("data/net.safetensors",),
    # These read what comes with lstmsim, see below.
    "validate": (),
    "list": (),
    "schema": (),
}
WITH_US = (find_chip("column-npu-64k"), find_model("lstm-512"), next(iter(input_files().values())))
WITH_US = (*WITH_US, next(iter(device_files().values())))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    rows = "arrival_cycles,job,steps\n0,a,2\n90000,a,3\n"
    for name in ("times", "steps", "frames", "other", "trace_of_jobs", "trace"):
        Path("data", f"{name}.csv").write_text(rows)
    for name in ("weights.safetensors", "net.safetensors", "shard.sqlite", "lowered.npz", "matrix.mtx"):
        Path("data", name).write_bytes(b"\0" * 16)
    Path("data/graph.yaml").write_text("nodes: []\n")
    shutil.copy(find_chip("column-npu-16k"), "data/chip.json")
    shutil.copy(device_files()["stratix-10-gx-2800"], "data/device.json")
    layers = [{"cell": "lstm", "hidden": 8, "input": 8}]
    Path("data/model.json").write_text(json.dumps({"layers": layers, "weights": "weights.safetensors"}))
    lengths = {"kind": "empirical", "path": "data/steps.csv", "column": "steps"}
    arrival = {"kind": "file", "path": "data/times.csv"}
    first = {"model": "data/model.json", "steps": lengths, "arrival": arrival, "inputs": "data/frames.csv"}
    second = {"name": "a", "model": "lstm-256", "steps": 2}
    data = {"chip": "data/chip.json", "jobs": [first, second], "arrivals": {"path": "data/trace_of_jobs.csv"}}
    Path("s.json").write_text(json.dumps(data))
    axes = {"file": {"path": "jobs.0.steps.path", "values": ["data/steps.csv", "data/other.csv"]}}
    Path("sweep.json").write_text(json.dumps({"scenario": "s.json", "axes": axes}))


def _options(command: str) -> list[click.Option]:
    parameters = command_of(command).params
    return [each for each in parameters if isinstance(each, click.Option)]


def test_every_option_that_takes_a_text_is_known() -> None:
    for command in COMMANDS:
        for option in _options(command):
            name = next(each for each in option.opts if each.startswith("--"))
            if option.is_flag or isinstance(
                option.type, click.Choice | click.types.IntParamType | click.types.FloatParamType
            ):
                continue
            known = name in OUTPUTS[command] or (command, name) in FOLDERS or name in OTHERS
            assert known, f"{command} {name}: is it an output?"


def _pairs() -> list[tuple[str, str]]:
    return [
        (command, option)
        for command, options in OUTPUTS.items()
        for option in options
        if any(option in each.opts for each in _options(command))
    ]


def _refused(command: str, option: str, name: str, source: Path, arguments: tuple[str, ...] | None = None) -> None:
    before = source.read_bytes()
    given = ARGUMENTS.get(command, ("s.json",)) if arguments is None else arguments
    done = call(command, *given, option, name)
    assert (done.exit_code, source.read_bytes() == before) == (2, True), (command, option, name, done.stderr)
    if command != "import":  # which reads its file first
        assert "is also the input; expected another file" in done.stderr, (command, option, name, done.stderr)


@pytest.mark.parametrize(("command", "option"), _pairs())
def test_no_output_takes_the_place_of_an_input(command: str, option: str) -> None:
    suffix = OUTPUTS[command][option]
    for number, source in enumerate(INPUTS[command]):
        # Names with the suffix that the option wants lead to the very same file, by links of both kinds.
        symbolic, hard = Path(f"s{number}{suffix}"), Path(f"h{number}{suffix}")
        symbolic.symlink_to(source)
        os.link(source, hard)
        _refused(command, option, str(symbolic if number % 2 else hard), Path(source))
        if source.endswith(suffix):
            _refused(command, option, f"./data/../{source}", Path(source))


@pytest.mark.parametrize(
    ("command", "option"), [each for each in _pairs() if each[0] in ("list", "validate", "fit", "schema")]
)
def test_no_output_takes_the_place_of_a_file_of_lstmsim(command: str, option: str) -> None:
    for number, source in enumerate(WITH_US):
        name = Path(f"u{number}{OUTPUTS[command][option]}")
        name.symlink_to(source)
        _refused(command, option, str(name), source)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("accuracy", ("s.json", "--random-weights", "1", "--bits", "8:8")),
        ("compare", ("s.json", "--chip", "brainwave-s10")),
        ("sweep", ("sweep.json", "--out", "kept")),
        ("merge", ("out.sqlite", "data/times.csv")),
    ],
)
def test_the_numbers_beside_a_picture(command: str, arguments: tuple[str, ...]) -> None:
    _refused(command, "--plot", "data/times.svg", Path("data/times.csv"), arguments)


@pytest.mark.parametrize("name", ["sweep.csv", "sweep.sqlite", "sweep.sqlite-journal"])
def test_the_files_in_the_folder_of_a_sweep(name: str) -> None:
    Path("kept").mkdir()
    Path("kept", name).write_text("arrival_cycles\n0\n")
    data = json.loads(Path("s.json").read_text())
    data["jobs"][0]["arrival"]["path"] = f"kept/{name}"
    Path("s.json").write_text(json.dumps(data))
    _refused("sweep", "--out", "kept", Path("kept", name), ("sweep.json",))
    with pytest.raises(InputError):
        lstmsim.sweep("sweep.json", "kept")
    assert Path("kept", name).read_text() == "arrival_cycles\n0\n"


def test_the_store_of_a_search() -> None:
    Path("kept").mkdir()
    Path("kept", "sweep.sqlite").symlink_to(Path("data", "times.csv").absolute())
    _refused("search", "--out", "kept", Path("data", "times.csv"))


def test_weights_beside_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    _refused("import", "--out", "data/net.yaml", Path("data/net.safetensors"))


def test_one_file_for_two_outputs() -> None:
    Path("s.json").write_text(json.dumps({"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 2}]}))
    Path("link.json").symlink_to("out.json")
    done = call("simulate", "s.json", "--json", "out.json", "--trace", "link.json")
    assert (done.exit_code, Path("out.json").exists()) == (2, False)
    assert "is also the output of --json" in done.stderr


def _python() -> dict[str, Any]:
    """A scenario whose files all have names that outputs may have."""
    job = {"model": "lstm-256", "steps": 2, "arrival": {"kind": "file", "path": "data/times.csv"}, "count": 2}
    Path("s.json").write_text(json.dumps({"chip": "data/chip.json", "jobs": [job]}))
    return job


def test_python_functions_keep_what_was_loaded() -> None:
    _python()
    run = lstmsim.run("s.json")
    compared = lstmsim.compare("s.json", ["brainwave-s10"])
    writes = [
        ("s.json", lambda: lstmsim.save_trace(run.timeline, "s.json")),
        ("data/chip.json", lambda: lstmsim.save_trace(run.timeline, "data/chip.json")),
        ("data/times.csv", lambda: lstmsim.save_trace(run.timeline, "data/times.csv")),
        ("s.json", lambda: lstmsim.save_report(run, "s.json")),
        ("data/times.csv", lambda: lstmsim.plot_comparison(compared, "data/times.svg")),
    ]
    for path, write in writes:
        before = Path(path).read_bytes()
        with pytest.raises(InputError, match="is also the input; expected another file"):
            write()
        assert Path(path).read_bytes() == before
    assert not Path("data/times.svg").exists()
    # What lstmsim itself wrote and read again may be written again.
    for _ in range(2):
        lstmsim.save_trace(run.timeline, "trace.csv")
        lstmsim.load_trace("trace.csv")


def test_a_file_that_was_changed_meanwhile_is_still_the_input() -> None:
    _python()
    run = lstmsim.run("s.json")
    Path("new").write_text(Path("s.json").read_text())
    os.replace("new", "s.json")
    with pytest.raises(InputError, match="is also the input"):
        lstmsim.save_trace(run.timeline, "s.json")
