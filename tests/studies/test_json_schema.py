"""The JSON schema of requests and files says what their checks say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lstmsim.base.keys import keys_of
from lstmsim.cli.group import COMMANDS
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.studies.known.json_schema import REQUESTS, json_schema
from lstmsim.studies.known.keys import file_keys
from tests.cli.runner import call

SCHEMA = json_schema()["$defs"]


def inside(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for each in schema.values():
            yield from inside(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from inside(each)


def test_every_command_that_asks_a_study_has_its_request() -> None:
    assert set(REQUESTS) | {"list", "schema", "init"} == set(COMMANDS)
    for name in REQUESTS:
        properties = SCHEMA[f"request {name}"]["properties"]
        assert properties
        assert all(each["description"].endswith(".") for each in properties.values())


def test_bounds_words_and_defaults_are_those_of_the_keys() -> None:
    gemm = SCHEMA["request gemm"]["properties"]
    assert (gemm["batch"]["type"], gemm["batch"]["minimum"], gemm["batch"]["default"]) == ("integer", 1, 1)
    assert gemm["caches"]["enum"] == ["cold", "warm"]
    assert gemm["m"]["anyOf"][0]["maximum"] == 1_000_000
    assert SCHEMA["request search"]["required"] == ["scenario", "npe"]
    job = SCHEMA["scenario jobs"]["properties"]
    assert {"type": "string"} in job["model"]["anyOf"]


def test_every_key_of_a_machine_and_of_a_file_is_there() -> None:
    for kind in KINDS:
        chip = SCHEMA[f"chip {kind}"]["properties"]
        assert set(keys_of(target_of(kind).chip)) <= set(chip)
        assert set(chip["cores"]["items"]["properties"]) == {"count", *keys_of(target_of(kind).core)}
    known = {f"{place} {name}" for place, each in SCHEMA.items() for name in each["properties"]}
    for line, _ in file_keys():
        place, _, name = line.rpartition("." if "." in line else " ")
        assert f"{place} {name}" in known


def test_a_schema_is_what_it_says(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    types = {"object", "array", "string", "integer", "number", "boolean", "null"}
    for each in inside(SCHEMA):
        if isinstance(each.get("type"), str):
            assert each["type"] in types
        assert not {"minimum", "exclusiveMinimum"} & set(each) or each["type"] in ("integer", "number")
    called = call("list", "engines", "--json-schema", "schema.json")
    assert (called.exit_code, called.stderr) == (0, "")
    assert json.loads(Path("schema.json").read_text())["$defs"] == json.loads(json.dumps(SCHEMA))
