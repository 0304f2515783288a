"""JSON schemas of files, in the form of draft 7 that editors read: one for each kind of file.

They are made of the keys that check the files, and of declarations of which keys go together (`BY_KIND`, `AXIS_KEYS`).
Other rules between keys or files are not in them: `ep * vp <= npe`, a job of another job's name. The command that reads
the file checks those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lstmsim.base.checks import of_kind
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Described
from lstmsim.base.wording import listed, nearest
from lstmsim.files.catalog import chip_files, model_files
from lstmsim.files.graphs import GraphEntry
from lstmsim.files.scenario.by_machine import KEYS as KEYS_BY_MACHINE
from lstmsim.files.scenario.request_schema import ARRIVAL_KEYS, STEPS_KEYS, ArrivalEntry, StepsEntry
from lstmsim.files.scenario.schema import JobEntry, ModelFile, ScenarioFile, chip_of_kind
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.model.cells import CELLS
from lstmsim.model.fusion.graph import INPUT, MOVES, OPERATIONS, REDUCES
from lstmsim.studies.fit.device import Device, device_files
from lstmsim.studies.known.keys import DOCUMENTS, described_keys, key_line
from lstmsim.studies.known.shapes import Schema, Shapes
from lstmsim.studies.sweep.spec_file import AXIS_KEYS, AxisEntry, SweepEntry

#: Entries of one class for several kinds, with the keys that each kind must and may have.
BY_KIND: Mapping[type, Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ArrivalEntry: ARRIVAL_KEYS,
    StepsEntry: STEPS_KEYS,
}


def _keys(description: type) -> Mapping[str, Described]:
    return described_keys(description, DOCUMENTS.get(description, ()))


def _named(names: Callable[[], Any], *others: Schema) -> Schema:
    """A name, of which some are known, or something else; completion offers the known ones."""
    return {"anyOf": [{"enum": list(names())}, {"type": "string"}, *others]}


def _of_kind(entry: type, schema: Schema) -> Schema:
    """The schema of an entry whose keys depend on its kind, on the machine, or, of an axis, on what gives it values."""
    if entry is JobEntry:
        return {**schema, "properties": {**schema["properties"], **_by_machine(schema["properties"])}}
    if entry is AxisEntry:
        others = {each: [key] for key, more in AXIS_KEYS.items() for each in more}
        return {**schema, "oneOf": [{"required": [key]} for key in AXIS_KEYS], "dependencies": others}
    cases = []
    for kind, (needed, known) in BY_KIND.get(entry, {}).items():
        foreign = [name for name in schema["properties"] if name not in ("kind", *needed, *known)]
        then = {"required": ["kind", *needed], "properties": dict.fromkeys(foreign, False)}
        cases.append({"if": _is_kind(kind), "then": then})
    return {**schema, "allOf": cases} if cases else schema


def _by_machine(keys: Schema) -> Schema:
    """The keys of a job that may differ by machine, with a mapping of machines to values, and the section `on`."""
    values = {name: {"anyOf": keys[name]["anyOf"]} for name in KEYS_BY_MACHINE}
    machines = {"type": "object", "propertyNames": _named(lambda: (*KINDS, *chip_files()))}
    section = {"type": "object", "properties": values, "additionalProperties": False}
    mapped = {
        name: {**keys[name], "anyOf": [*value["anyOf"], {**machines, "additionalProperties": value}]}
        for name, value in values.items()
    }
    spread = next(kind for kind in KINDS if target_of(kind).threads)
    on = {**machines, "additionalProperties": section, "examples": [{spread: {"threads": 8}}]}
    return {**mapped, "on": {**keys["on"], "anyOf": [on, {"type": "null"}]}}


def _is_kind(kind: str) -> Schema:
    return {"properties": {"kind": {"const": kind}}, "required": ["kind"]}


def _chip() -> Schema:
    """A chip: its kind says which keys it has."""
    kind = {"enum": list(KINDS), "description": "the machine"}
    cases = [{"if": _is_kind(each), "then": FILES.mapping(chip_of_kind(each))} for each in KINDS]
    return {"type": "object", "properties": {"kind": kind}, "required": ["kind"], "allOf": cases}


def _scenario_of_sweep() -> Schema:
    """A scenario in a sweep file: axes may bring what it lacks."""

    def without(schema: Any, condition: bool = False) -> Any:
        if isinstance(schema, list):
            return [without(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            key: without(each, key == "if")
            for key, each in schema.items()
            if key != "required" or condition or isinstance(each, dict)
        }

    relaxed: Schema = without(FILES.mapping(ScenarioFile))
    return relaxed


#: How keys of files become schemas: with their meaning, unit, bounds, default and source as the description.
FILES = Shapes(
    key_line,
    _keys,
    {
        "chip": lambda _: _named(chip_files, _chip()),
        "model": lambda schema: _named(model_files, schema),
        "cell": lambda _: _named(lambda: CELLS),
        "device": lambda _: {"anyOf": [*_named(device_files)["anyOf"], {"type": "null"}]},
        "scenario": lambda _: {"anyOf": [{"type": "string"}, _scenario_of_sweep()]},
        "op": lambda _: _named(lambda: (INPUT, *OPERATIONS, *MOVES, *REDUCES)),
    },
    _of_kind,
)

#: What makes the schema of each kind of file.
KINDS_OF_FILES: Mapping[str, Callable[[], Schema]] = {
    "scenario": lambda: FILES.mapping(ScenarioFile),
    "chip": _chip,
    "model": lambda: FILES.mapping(ModelFile),
    "sweep": lambda: FILES.mapping(SweepEntry),
    "graph": lambda: FILES.mapping(GraphEntry),
    "device": lambda: FILES.mapping(Device),
}


def schema(kind: str) -> dict[str, Any]:
    """Give the JSON schema (draft 7) of a kind of file, for editors and other checks.

    kind: scenario, chip, model, sweep, graph or device.
    `InputError` for another kind.

    >>> from lstmsim import schema
    >>> schema("scenario")["properties"]["dispatch"]["enum"]
    ['fcfs', 'sjf', 'edf', 'priority']
    """
    kind = of_kind("kind", str, kind)
    if kind not in KINDS_OF_FILES:
        hint = nearest(kind, KINDS_OF_FILES)
        raise InputError(Mistake("kind", f"must be one of {listed(KINDS_OF_FILES)}, got {kind!r}{hint}"))
    title = {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"lstmsim {kind}"}
    return {**title, **KINDS_OF_FILES[kind]()}
