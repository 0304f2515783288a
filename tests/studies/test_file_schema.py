"""The schemas of files take every file of the project, and mark what is wrong in one."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lstmsim import InputError, load_scenario
from lstmsim.base.checks import checker_of
from lstmsim.base.keys import keys_of
from lstmsim.cli.editors import KINDS
from lstmsim.files.graphs import graph_text
from lstmsim.files.scenario.schema import chip_of_kind, scenario_entry
from lstmsim.files.yaml.source import parse_document, read_document
from lstmsim.machines.registry import KINDS as MACHINES
from lstmsim.model.fusion.library import GRAPHS, named_graph
from lstmsim.studies.known.file_schema import FILES, KINDS_OF_FILES, schema
from lstmsim.studies.known.first_scenario import SCHEMA_FILE, first_scenario
from lstmsim.studies.known.keys import DOCUMENTS, ENTRIES, described_keys
from lstmsim.studies.known.shapes import example
from tests.cli.runner import call

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "scenario": "experiments/scenarios",
    "chip": "lstmsim/presets",
    "model": "models",
    "sweep": "experiments/sweeps",
    "device": "lstmsim/studies/fit/data",
}
VALID = {kind: jsonschema.Draft7Validator(schema(kind)) for kind in KINDS}


def mistakes(kind: str, data: Any) -> list[str]:
    """Where, and what, a schema marks, as deep as it goes."""

    def deepest(error: jsonschema.ValidationError) -> Iterator[jsonschema.ValidationError]:
        for each in error.context or [error]:
            yield from deepest(each) if each is not error else [each]

    return [f"{each.json_path}: {each.message}" for one in VALID[kind].iter_errors(data) for each in deepest(one)]


def files() -> Iterator[tuple[str, Path]]:
    for kind, folder in FOLDERS.items():
        yield from ((kind, path) for path in sorted((ROOT / folder).glob("*.yaml")))
    yield from (("chip", path) for path in sorted((ROOT / "experiments").glob("*/*-*core.yaml")))


@pytest.mark.slow
def test_the_command_knows_the_kinds_and_each_schema_is_one() -> None:
    assert tuple(KINDS_OF_FILES) == KINDS
    for kind in KINDS:
        jsonschema.Draft7Validator.check_schema(schema(kind))
    with pytest.raises(InputError, match="did you mean 'scenario'"):
        schema("scenaro")


@pytest.mark.skipif(not (ROOT / "experiments").is_dir(), reason="examples come with the source checkout")
@pytest.mark.parametrize(("kind", "path"), list(files()), ids=lambda each: getattr(each, "name", each))
def test_every_file_of_the_project_is_right(kind: str, path: Path) -> None:
    assert mistakes(kind, read_document(path).data) == []


@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph_of_the_library_is_right(name: str) -> None:
    graph = named_graph(name)
    assert mistakes("graph", json.loads(graph_text(graph, as_json=True).replace("1e999", "1e300"))) == []


RIGHT: dict[str, dict[str, Any]] = {
    "scenario": {
        "chip": {"kind": "column-npu", "frequency_mhz": 260, "cores": [{"npe": 4096, "ep": 8, "vp": 512}]},
        "jobs": [{"model": "lstm-512", "steps": 5, "arrival": {"kind": "poisson", "rate_per_second": 9, "seed": 1}}],
    },
    "model": {"layers": [{"cell": "lstm", "hidden": 8, "input": 4}]},
    "sweep": {
        "scenario": {"chip": {"kind": "column-npu", "cores": [{}]}, "jobs": [{"model": "lstm-512"}]},
        "axes": {"ep": {"path": "chip.cores.0.ep", "values": [8, 16]}},
    },
    "graph": {"outputs": ["y"], "nodes": [{"name": "x", "op": "input", "shape": [4]}]},
}
#: A kind of file, where a value is put, the value, and what is marked: misspelt keys, wrong types, bounds, wrong kinds.
WRONG: list[tuple[str, str, Any, str]] = [
    ("scenario", "chip.cores.0.thraeds", 2, "'thraeds' was unexpected"),
    ("scenario", "chip.cores.0.ep", "8", "'8' is not of type 'integer'"),
    ("scenario", "chip.cores.0.ep", 0, "0 is less than the minimum of 1"),
    ("scenario", "chip.cores.0.latency", {"read": 0.5}, "0.5 is not of type 'integer'"),
    ("scenario", "chip.kind", "columns", "'columns' is not one of"),
    ("scenario", "chip.kind", "multicore", "were unexpected"),
    ("scenario", "chip.frequency_mhz", -1, "is less than"),
    ("scenario", "jobs.0.count", 0, "0 is less than the minimum of 1"),
    ("scenario", "jobs.0.steps", 1.5, "1.5 is not of type 'integer'"),
    ("scenario", "jobs.0.deadlin", 5, "'deadlin' was unexpected"),
    ("scenario", "jobs.0.arrival.kind", "poison", "'poison' is not one of"),
    ("scenario", "jobs.0.arrival.kind", "stream", "'frame_ms' is a required property"),
    ("scenario", "jobs.0.arrival.clients", 3, "False schema does not allow 3"),
    ("scenario", "jobs.0.threads", {"epyc-7742": "8"}, "'8' is not of type 'integer'"),
    ("scenario", "jobs.0.threads", {"epyc-7742": 0}, "0 is less than the minimum of 1"),
    ("scenario", "jobs.0.weights", {"multicore": "hot"}, "'hot' is not one of"),
    ("scenario", "jobs.0.on", {"multicore": {"thraeds": 8}}, "'thraeds' was unexpected"),
    ("scenario", "jobs.0.on", {"multicore": {"batch": 8}}, "'batch' was unexpected"),
    ("scenario", "jobs.0.on", {"multicore": 8}, "8 is not of type 'object'"),
    ("scenario", "jobs.0.on", {"multicore": {"weights": "hot"}}, "'hot' is not one of"),
    ("scenario", "jobs.0.batching", {"policy": "window"}, "'max_batch_size' is a required property"),
    ("scenario", "jobs.0.batching", {"max_batch_size": 8, "lengths": "padded"}, "'padded' is not one of"),
    ("scenario", "jobs.0.density", {"x": 1.5, "h": 0}, "1.5 is greater than the maximum of 1"),
    ("scenario", "jobs.0.density", 0.5, "0.5 is not of type 'object'"),
    ("scenario", "jobs.0.batch", {"multicore": 2}, "is not of type 'integer'"),
    ("scenario", "chip.cores.0.delta", {"threshold": 1}, "'threshold' was unexpected"),
    ("scenario", "chip.cores.0.delta", {"x": 0.1, "h": 0.1, "group": 0}, "0 is less than the minimum of 1"),
    ("scenario", "jobs", [], "[] should be non-empty"),
    ("scenario", "dispatch", "fifo", "'fifo' is not one of"),
    ("scenario", "preemption", "yes", "'yes' is not of type 'boolean'"),
    ("model", "layers.0.hidden", 0, "0 is less than the minimum of 1"),
    ("model", "layers.0.hiden", 8, "'hiden' was unexpected"),
    ("model", "layer_order", "steps", "'steps' is not one of"),
    ("sweep", "axes.ep.valus", [8], "'valus' was unexpected"),
    ("sweep", "axes.ep.from", 8, "is valid under each of"),
    ("sweep", "axes.ep.to", 8, "'from' is a dependency of 'to'"),
    ("sweep", "combine", "zipp", "'zipp' is not one of"),
    ("sweep", "scenario.chip.cores.0.ep", 0, "0 is less than the minimum of 1"),
    ("graph", "nodes.0.shap", [4], "'shap' was unexpected"),
    ("graph", "nodes.0.shape", ["4"], "'4' is not of type 'integer'"),
]


@pytest.mark.parametrize("kind", RIGHT)
def test_the_files_that_are_changed_below_are_right(kind: str) -> None:
    assert mistakes(kind, RIGHT[kind]) == []


@pytest.mark.parametrize(("kind", "where", "value", "marked"), WRONG, ids=[f"{each[0]} {each[1]}" for each in WRONG])
def test_what_is_wrong_is_marked(kind: str, where: str, value: Any, marked: str) -> None:
    found = mistakes(kind, changed(kind, where, value))
    assert any(marked in each for each in found), found


def changed(kind: str, where: str, value: Any) -> Any:
    """The right file of a kind with another value in a place."""
    data = copy.deepcopy(RIGHT[kind])
    *path, last = [int(part) if part.isdigit() else part for part in where.split(".")]
    at: Any = data
    for part in path:
        at = at[part]
    at[last] = value
    return data


#: Where a value is put that both the schema and the reader of scenarios take: keys with several forms.
TAKEN: list[tuple[str, Any]] = [
    ("jobs.0.threads", 8),
    ("jobs.0.threads", {"epyc-7742": 8, "multicore": None}),
    ("jobs.0.weights", {"v100": "warm", "multicore": "cold"}),
    ("jobs.0.split", {"column-npu": "rows"}),
    ("jobs.0.cores", {"column-npu": [0]}),
    ("jobs.0.on", {"multicore": {"threads": 8, "weights": "warm"}, "v100": {}}),
    ("jobs.0.batching", {"max_batch_size": 8, "policy": "window", "max_wait_us": 5, "lengths": "equal", "pool": "a"}),
    ("jobs.0.density", {"x": 0.5, "h": 1, "seed": 3}),
    ("chip.cores.0.delta", {"x": 0.1, "h": 0.1, "group": 8}),
]


@pytest.mark.parametrize(("where", "value"), TAKEN, ids=[f"{where} {value}" for where, value in TAKEN])
def test_each_form_of_a_key_is_right_by_schema_and_by_reader(where: str, value: Any) -> None:
    data = changed("scenario", where, value)
    assert mistakes("scenario", data) == []
    load_scenario(data)


def examples() -> Iterator[tuple[str, type]]:
    yield from ((place, entry) for place, entry, _ in ENTRIES)
    for kind in MACHINES:
        yield kind, chip_of_kind(kind)
        yield f"{kind} core", keys_of(chip_of_kind(kind))["cores"].type.__args__[0]


@pytest.mark.parametrize(("place", "entry"), list(examples()))
def test_the_example_of_each_key_is_right_by_schema_and_by_check(place: str, entry: type) -> None:
    keys = described_keys(entry, DOCUMENTS.get(entry, ()))
    shapes = {name: FILES.value(each) for name, each in keys.items()}
    shown = {name: example(each) for name, each in shapes.items()}
    for name, value in shown.items():
        jsonschema.Draft7Validator(shapes[name]).validate(value)
    notes: Any = []
    checker_of(entry)(json.loads(json.dumps(shown)), (), notes)
    # a model's name is replaced before the check, and a sweep's reader asks for values or a range itself
    assert [(each.path, each.sentence) for each in notes if each.path[-1] not in ("model", "values")] == []


def test_the_first_scenario_runs_and_names_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("init").exit_code == 0
    text = Path("scenario.yaml").read_text(encoding="utf-8")
    named = text.splitlines()[0].partition("$schema=")[2]
    assert json.loads(Path(named).read_text(encoding="utf-8")) == json.loads(json.dumps(schema("scenario")))
    assert len(load_scenario("scenario.yaml").jobs) == 4
    assert all(f"{key}:" in text for key in keys_of(scenario_entry({})))
    again = call("init")
    assert (again.exit_code, "is not replaced" in again.stderr) == (2, True)
    assert Path("scenario.yaml").read_text(encoding="utf-8") == text
    Path(SCHEMA_FILE).write_text("mine", encoding="utf-8")
    kept = call("init", "second.yaml")
    assert (kept.exit_code, f"kept {SCHEMA_FILE}" in kept.stderr) == (0, True)
    assert Path(SCHEMA_FILE).read_text(encoding="utf-8") == "mine"
    assert call("init", "scenario.txt").exit_code == 2


def test_each_commented_key_of_the_first_scenario_can_be_used() -> None:
    lines = first_scenario().splitlines()
    commented = [number for number, line in enumerate(lines) if line.strip().startswith("# ") and ": " in line[:24]]
    commented = [number for number in commented if number > 3]
    assert len(commented) > 15
    for number in commented:
        changed = [*lines]
        changed[number] = changed[number].replace("# ", "", 1)
        assert mistakes("scenario", parse_document("\n".join(changed), "scenario").data) == [], lines[number]


SERVER = shutil.which("yaml-language-server")


@pytest.mark.skipif(SERVER is None, reason="yaml-language-server (npm) is not on the path")
def test_an_editor_marks_three_mistakes(tmp_path: Path) -> None:
    (tmp_path / SCHEMA_FILE).write_text(json.dumps(schema("scenario")), encoding="utf-8")
    text = first_scenario().replace("count: 4", "cuont: 4").replace("steps: 25", "steps: many")
    text = text.replace("# dispatch: sjf", "dispatch: fifo")
    uri = (tmp_path / "scenario.yaml").as_uri()
    marked = marks(uri, text)
    lines = text.splitlines()
    assert {lines[each["range"]["start"]["line"]].split(":")[0].strip() for each in marked} >= {
        "cuont",
        "steps",
        "dispatch",
    }


def marks(uri: str, text: str) -> list[dict[str, Any]]:
    """What the language server says to a text that is opened."""
    assert SERVER is not None
    with subprocess.Popen([SERVER, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:

            def say(method: str, params: Any, **more: Any) -> None:
                body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
                assert server.stdin
                server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                server.stdin.flush()

            def heard() -> dict[str, Any]:
                assert server.stdout
                size = 0
                while (line := server.stdout.readline()) not in (b"\r\n", b""):
                    if line.startswith(b"Content-Length"):
                        size = int(line.split(b":")[1])
                message: dict[str, Any] = json.loads(server.stdout.read(size))
                return message

            say("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, id=1)
            while heard().get("id") != 1:
                pass
            say("initialized", {})
            opened = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
            say("textDocument/didOpen", {"textDocument": opened})
            while (message := heard()).get("method") != "textDocument/publishDiagnostics":
                pass
            found: list[dict[str, Any]] = message["params"]["diagnostics"]
            return found
        finally:
            server.kill()
