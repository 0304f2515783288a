"""Random commands with random options on damaged files: never an internal error, never a changed input.

`LSTMSIM_EXAMPLES=2000` runs as many; usually there are 40. `LSTMSIM_SEED` chooses others.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lstmsim.base.csv_table import CsvWriter
from lstmsim.files.catalog import find_chip
from lstmsim.importers.tensors import write_safetensors
from lstmsim.studies.fit.device import device_files
from tests.cli.runner import call
from tests.importers.weight_files import torch_stream, torch_tensors, torch_zip

COUNT = int(os.environ.get("LSTMSIM_EXAMPLES", "40"))
SEED = int(os.environ.get("LSTMSIM_SEED", "13"))
#: Commands in one folder, after which it is made anew.
BATCH = 20

CHIPS = [
    "column-npu-16k",
    "column-npu-4x16k",
    "brainwave-s10",
    "data/chip.json",
    "data/row.json",
    "nope",
    "data/none.json",
]
MODELS = ["lstm-256", "gru-512", "bilstm-256", "data/model.json", "nope", "data/none.yaml"]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, 7, 64, 4097, 10**6, 10**13, 10**30, 0.5, -0.0, 1e308, 1e-9),
    *(
        "",
        "a",
        "=1+1",
        "\u0000",
        "\ud800",
        "data/times.csv",
        "rows",
        "layers",
        "auto",
        "edf",
        "sjf",
        "poisson",
        "closed",
    ),
    *([], {}, [0], [0, 1], [3, 3], [None], {"a": 1}, [[]], {"kind": "uniform", "low": 1, "high": 3}),
]
KEYS = [
    *("name", "model", "steps", "count", "arrival", "frame_interval", "core", "cores", "split", "batch", "priority"),
    *("deadline", "queue_limit", "patience", "inputs", "initial", "chip", "jobs", "precision", "dispatch", "placement"),
    *(
        "preemption",
        "arrivals",
        "weight_bits",
        "npe",
        "ep",
        "vp",
        "threads",
        "weight_kib",
        "memory",
        "exchange",
        "kind",
    ),
    *("rate_per_second", "path", "column", "seed", "layers", "cell", "hidden", "input", "projection", "bidirectional"),
    *("latency", "count", "frequency_mhz", "thread_policy", "accumulator_banks", "tail_width", "cells", "source"),
]


#: Files that the command under way has opened for reading; None: nobody asks.
READ: set[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    """What the interpreter tells of every file that it opens, whoever opens it; SQLite's stores are told otherwise."""
    if READ is None or event not in ("open", "sqlite3.connect"):
        return
    path, flags = arguments[0], arguments[2] if event == "open" else os.O_RDWR
    if isinstance(path, str) and not (flags or 0) & (os.O_WRONLY | os.O_RDWR):
        READ.add(os.path.realpath(path))


@cache
def _listener() -> partial[Any]:
    """What the interpreter calls from now on, at each `id()` too. It can never be undone, so what it calls can change.

    While nobody asks it looks into an empty mapping: a call without a frame takes all that runs later little.
    """
    listener: partial[Any] = partial(_IDLE)
    sys.addaudithook(listener)
    return listener


_IDLE: Callable[..., Any] = {}.get


def _listen(called: Callable[..., Any]) -> None:
    _listener().__setstate__((called, (), {}, None))  # type: ignore[attr-defined]


def _files() -> None:
    """The files of one folder, all of them right."""
    Path("data").mkdir()
    Path("data/times.csv").write_text("arrival_cycles,job,steps,tenant\n0,a,2,x\n900,b,3,y\n2000,a,1,x\n")
    Path("data/lengths.csv").write_text("steps\n1\n2\n3\n")
    with Path("data/frames.csv").open("w") as file:
        CsvWriter(file).writerows(np.ones((6, 8)).tolist())
    np.save("data/frames.npy", np.ones((6, 8)))
    shutil.copy(find_chip("column-npu-16k"), "data/chip.json")
    shutil.copy(find_chip("brainwave-s10"), "data/row.json")
    shutil.copy(device_files()["stratix-10-gx-2800"], "data/device.json")
    arrays = {f"net.{name}": each for name, each in torch_tensors("gru", 8, 8).items()}
    write_safetensors("data/net.safetensors", arrays)
    Path("data/net.pt").write_bytes(torch_zip(torch_tensors("lstm", 4, 3)))
    Path("data/net.pth").write_bytes(torch_stream(torch_tensors("gru", 4, 3)))
    call("import", "data/net.safetensors", "--out", "data/model.yaml")
    layers = [{"cell": "lstm", "hidden": 8, "input": 8}]
    Path("data/model.json").write_text(json.dumps({"layers": layers}))
    Path("s.json").write_text(json.dumps(_scenario(random.Random(0))))
    call("simulate", "s.json", "--trace", "data/trace.json")
    call("simulate", "s.json", "--trace", "data/trace.csv.gz", "--program", "data/lowered.npz")
    axes = {"threads": {"path": "chip.cores.0.threads", "values": [1, 2]}}
    small = {"chip": "column-npu-16k", "jobs": [{"model": "lstm-256", "steps": 1}]}
    Path("sweep.json").write_text(json.dumps({"scenario": small, "axes": axes}))
    for shard in ("1/2", "2/2"):
        call("sweep", "sweep.json", "--out", "data", "--jobs", "1", "--shard", shard)


def _scenario(draw: random.Random) -> dict[str, Any]:
    """A scenario that is right more often than not."""
    jobs = []
    for number in range(draw.randint(1, 3)):
        job: dict[str, Any] = {"model": draw.choice(MODELS[:4]), "steps": draw.randint(1, 4), "name": f"j{number}"}
        extras: list[dict[str, Any]] = [
            {"count": draw.randint(1, 3)},
            {"arrival": {"kind": "poisson", "rate_per_second": 10.0 ** draw.randint(3, 6)}, "count": 4},
            {"arrival": {"kind": "closed", "clients": 2}, "count": 4},
            {"arrival": {"kind": "file", "path": "data/times.csv"}},
            {"arrival": {"kind": "stream", "frame_ms": 1}, "count": 2},
            {"cores": [draw.randint(0, 3)]},
            {"split": draw.choice(["rows", "layers", "auto"])},
            {"inputs": draw.choice(["data/frames.csv", "data/frames.npy"]), "model": "data/model.json"},
            {"steps": {"kind": "empirical", "path": "data/lengths.csv", "column": "steps"}},
            {"batch": draw.randint(1, 4)},
            {"deadline": 1000, "priority": draw.randint(0, 3)},
        ]
        for _ in range(draw.randint(0, 2)):
            job |= draw.choice(extras)
        jobs.append(job)
    scenario: dict[str, Any] = {"chip": draw.choice(CHIPS[:5]), "jobs": jobs}
    if draw.random() < 0.2:
        scenario |= {"dispatch": draw.choice(["sjf", "edf", "priority"]), "preemption": draw.random() < 0.3}
    if draw.random() < 0.2:
        scenario["precision"] = {"weight_bits": draw.choice([4, 8, 12])}
    return scenario


def _mutated(draw: random.Random, data: Any) -> Any:
    """The data with something else in one place."""
    if isinstance(data, dict) and data and draw.random() < 0.85:
        key = draw.choice(list(data))
        return (
            {**data, key: _mutated(draw, data[key])}
            if draw.random() < 0.8
            else {**data, draw.choice(KEYS): draw.choice(VALUES)}
        )
    if isinstance(data, list) and data and draw.random() < 0.85:
        place = draw.randrange(len(data))
        return [*data[:place], _mutated(draw, data[place]), *data[place + 1 :]]
    return draw.choice(VALUES)


def _damage(draw: random.Random, path: Path) -> None:
    """A file with a piece cut off, some bytes changed, or something else altogether."""
    content = bytearray(path.read_bytes())
    match draw.randint(0, 4):
        case 0:
            content = content[: draw.randint(0, len(content))]
        case 1:
            for _ in range(draw.randint(1, 5)):
                if content:
                    content[draw.randrange(len(content))] = draw.randrange(256)
        case 2:
            place = draw.randint(0, len(content))
            content[place:place] = draw.choice(
                [b"{", b"[[[", b"\0", b"'", b'"', b"\xff\xfe", b"1e999", b",,,\n", b"\r\n"]
            )
        case 3:
            start = draw.randint(0, len(content))
            del content[start : start + draw.randint(1, 20)]
        case _:
            content += content[: draw.randint(0, 50)]
    path.write_bytes(bytes(content))


def _text(draw: random.Random) -> str:
    texts = [
        "",
        "0",
        "1",
        "-1",
        "1e9",
        "nan",
        "0.5",
        "5%",
        "a",
        "0:10",
        "4:8",
        "8:4",
        "1:2:3",
        "fcfs,edf",
        "0.3,0.5",
        "1/2",
    ]
    return draw.choice([*texts, "lstm-256=1", "j0=0.5", "chip.cores.0.ep=0", "least-loaded,affinity", "\x00", "é", "-"])


def _axis(draw: random.Random) -> str:
    """A key of a space and its values, right or wrong."""
    key = draw.choice(["chip.cores.0.ep", "chip.cores.0.vp", "chip.frequency_mhz", "dispatch", "jobs.0.steps", "x", ""])
    values = [
        draw.choice(["1", "4", "8", "0", "-1", "1e9", "null", "fcfs", "", "é", "2" * 40])
        for _ in range(draw.randint(1, 3))
    ]
    return f"{key}={','.join(values)}"


def _output(draw: random.Random) -> str:
    """A name for an output: new, an input under one of its names, or impossible."""
    inputs = [str(each) for each in [*Path("data").iterdir(), Path("s.json"), Path("sweep.json")]]
    source = draw.choice(inputs)
    suffix = draw.choice(
        [".json", ".csv", ".svg", ".html", ".yaml", ".vcd", ".pftrace", ".md", ".safetensors", ".sqlite", ".npz", ""]
    )
    link = f"l{draw.randrange(10**9)}{suffix}"
    match draw.randint(0, 6):
        case 0 | 1:
            return source
        case 2:
            Path(link).symlink_to(source)
            return link
        case 3:
            os.link(source, link)
            return link
        case 4:
            return draw.choice(
                ["", "-", "no/such/folder/x.json", "data", "\0.json", f"{Path(source).with_suffix('')}{suffix}"]
            )
        case _:
            return f"o{draw.randrange(10**9)}{suffix}"


def _option(draw: random.Random, name: str) -> list[str]:
    """An option of some command with a value that may or may not fit."""
    if name in (
        "--json",
        "--csv",
        "--plot",
        "--trace",
        "--timeline",
        "--report",
        "--markdown",
        "--out",
        "--outputs",
        "--program",
        "--picture",
    ):
        return [name, _output(draw)]
    if name in ("--chip", "--base"):
        return [name, draw.choice(CHIPS)]
    if name in ("--set", "--set-a"):
        place = draw.choice(["jobs.0", "chip.cores.0", "chip", "jobs.1", "precision", "jobs"])
        return [name, f"{place}.{draw.choice(KEYS)}={json.dumps(draw.choice(VALUES))}"]
    if name == "--device":
        return [name, draw.choice(["data/device.json", "stratix-10-gx-2800", "nope"])]
    if name in ("--engine",):
        return [name, draw.choice(["fast", "reference"])]
    if name in FLAGS:
        return [name]
    return [name, _text(draw)]


FLAGS = {
    *("--each", "--published", "--serving", "--explain", "--check-numerics", "--steps", "--exhaustive", "--any-ep"),
    *("--energy", "--no-weights", "--force", "--retry-failed", "--no-resume"),
}
#: What always stands in a command, so that it comes to an end soon, and options that may.
COMMANDS: dict[str, tuple[Callable[[random.Random], list[str]], list[str]]] = {
    "simulate": (
        lambda draw: ["s.json"],
        [
            *(
                "--engine",
                "--set",
                "--json",
                "--trace",
                "--timeline",
                "--report",
                "--serving",
                "--explain",
                "--outputs",
                "--program",
            ),
            *("--check-numerics", "--random-weights", "--trace-window", "--device"),
        ],
    ),
    "compare": (
        lambda draw: ["s.json", "--chip", draw.choice(CHIPS)],
        ["--chip", "--base", "--each", "--published", "--set", "--json", "--csv", "--plot"],
    ),
    "diff": (
        lambda draw: [
            draw.choice(["s.json", "data/lowered.npz"]),
            *draw.choice([[], ["s.json"], ["data/lowered.npz"]]),
        ],
        ["--set", "--set-a", "--engine", "--json", "--picture", "--report"],
    ),
    "accuracy": (lambda draw: ["s.json", "--random-weights", "1"], ["--set", "--steps", "--bits", "--json", "--plot"]),
    "serve": (
        lambda draw: ["s.json", "--requests", "50"],
        ["--until-half-width", "--percentile", "--set", "--json", "--csv"],
    ),
    "saturate": (
        lambda draw: ["s.json", "--bound-ms", "1", "--most-requests", "200"],
        ["--bound", "--percentile", "--from", "--to", "--tolerance", "--set", "--json"],
    ),
    "load-latency": (
        lambda draw: ["s.json", "--loads", "0.4", "--requests", "100", "--jobs", "1"],
        ["--policies", "--placements", "--chip", "--out", "--set", "--csv", "--json", "--plot", "--cdf-at"],
    ),
    "fit": (lambda draw: ["s.json"], ["--device", "--energy", "--set", "--json"]),
    "search": (
        lambda draw: ["s.json", "--npe", draw.choice(["256", "1024", "7", "0"])],
        ["--exhaustive", "--any-ep", "--core", "--set", "--json"],
    ),
    "design": (
        lambda draw: ["s.json", "--device", draw.choice(["none", "alveo-u250", "x"]), "--axis", _axis(draw)],
        ["--minimise", "--fill", "--bound-ms", "--most", "--until", "--out", "--set", "--json", "--plot"],
    ),
    "sweep": (
        lambda draw: ["sweep.json", "--jobs", "1", "--out", _output(draw)],
        ["--shard", "--plot", "--set", *FLAGS],
    ),
    "merge": (
        lambda draw: [_output(draw), "data/sweep-1-of-2.sqlite", "data/sweep-2-of-2.sqlite"][: draw.randint(1, 3)],
        ["--plot"],
    ),
    "timeline": (
        lambda draw: [draw.choice(["data/trace.json", "data/trace.csv.gz", "s.json"])],
        ["--from", "--to", "--cores", "--out"],
    ),
    "program": (lambda draw: [draw.choice(["data/lowered.npz", "s.json"])], ["--engine", "--json", "--trace"]),
    "import": (
        lambda draw: [
            draw.choice(["data/net.safetensors", "data/net.pt", "data/net.pth", "data/frames.npy", "s.json"])
        ],
        ["--out", "--name", "--licence", "--no-weights", "--force"],
    ),
    "list": (lambda draw: [], ["--json"]),
}


def _hashes() -> dict[str, str]:
    """Every file that a command may read, by its own name."""
    files = [each for each in [*Path("data").rglob("*"), Path("s.json"), Path("sweep.json")] if each.is_file()]
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


def _one(draw: random.Random) -> None:
    """One command on files of which some are damaged."""
    data = _scenario(draw)
    for _ in range(draw.choice([0, 0, 0, 1, 2])):
        data = _mutated(draw, data)
    Path("s.json").write_text(json.dumps(data))
    kept = {path: path.read_bytes() for path in Path("data").iterdir() if path.is_file()}
    if draw.random() < 0.4:
        _damage(draw, draw.choice([*sorted(kept), Path("s.json"), *([Path("sweep.json")] * 2)]))
    sweep = Path("sweep.json").read_bytes()
    command = draw.choice(list(COMMANDS))
    needed, options = COMMANDS[command]
    arguments = [command, *needed(draw)]
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        arguments += _option(draw, draw.choice(options))
    before = _hashes()
    global READ
    READ = set()
    _listen(_note)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        done = call(*arguments)
    _listen(_IDLE)
    read, READ = READ, None
    if command == "merge":
        read |= {os.path.realpath(each) for each in arguments[2:4]}
    where = (arguments, data)
    assert done.exit_code in (0, 1, 2), (*where, done.exit_code, done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), (*where, done.exception)
    assert "internal error" not in done.output + done.stderr, (*where, done.stderr)
    assert "Traceback" not in done.stderr, (*where, done.stderr)
    after = _hashes()
    # A file that the command has not read may be replaced, like any other.
    changed = [path for path in before if after.get(path) != before[path] and os.path.realpath(path) in read]
    assert not changed, (*where, changed, done.stderr)
    if done.exit_code == 2:
        assert done.stderr.strip(), where
    # to cut a file off and write it again waits for the disk, and most files are as they were
    for path, content in kept.items():
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
    if sweep != ORIGINAL.get("sweep", sweep):
        Path("sweep.json").write_bytes(ORIGINAL["sweep"])


ORIGINAL: dict[str, bytes] = {}


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(-(-COUNT // BATCH)))
def test_no_internal_error_and_no_changed_input(batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _files()
    ORIGINAL["sweep"] = Path("sweep.json").read_bytes()
    for number in range(BATCH):
        _one(random.Random(f"{SEED} {batch} {number}"))
