"""What differs between two descriptions, key by key with defaults included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from lstmsim.files.scenario.scenario_file import open_scenario
from lstmsim.files.scenario.written import resolved_data
from lstmsim.model.scenario import Scenario
from lstmsim.program.flat import FLAT_TABLES
from lstmsim.report.results import plain
from lstmsim.studies.diff.result import Changed
from lstmsim.studies.diff.sides import Side
from lstmsim.studies.program.run import ProgramRun, SavedProgram


def changed(a: Side, b: Side) -> tuple[Changed, ...]:
    """List the keys with unlike values. Names of scenarios, sources, and names of equal models do not count."""
    if a.scenario is not None and b.scenario is not None:
        found = list(_unlike(_described(a.scenario), _described(b.scenario), ""))
        keys = [each.key for each in found]
        return tuple(each for each in found if not _only_a_name(each.key, keys))
    assert isinstance(a.run, ProgramRun)
    assert isinstance(b.run, ProgramRun)
    return tuple(_of_programs(a.run.saved, b.run.saved))


def _only_a_name(key: str, keys: list[str]) -> bool:
    """Whether a key is the name of a model that differs in nothing else."""
    model = key.removesuffix("name")
    return key.endswith(".model.name") and sum(each.startswith(model) for each in keys) == 1


def _described(scenario: Scenario) -> dict[str, Any]:
    """A scenario as its file has it, with every default; each core by itself, and arrivals as they are asked for."""
    data: dict[str, Any] = plain(resolved_data(scenario))
    chip = data["chip"]
    chip["cores"] = [each for core in chip["cores"] for each in [core] * core.pop("count")]
    del data["name"], chip["sources"]
    if scenario.origin is not None:
        asked = open_scenario(scenario.origin)[0].data
        entries = asked.get("jobs")
        if isinstance(entries, list) and len(entries) == len(data["jobs"]):
            # drawn numbers say less than what they were drawn from
            for entry, made in zip(entries, data["jobs"], strict=True):
                made |= {key: plain(entry[key]) for key in ("arrival", "steps") if isinstance(entry.get(key), dict)}
            for place, seed in scenario.seeds.items():
                _, number, key = [*place.split("."), "", ""][:3]
                if number.isdecimal() and isinstance(drawn := data["jobs"][int(number)].get(key), dict):
                    drawn.setdefault("seed", seed)
        data |= {"arrivals": plain(asked["arrivals"])} if "arrivals" in asked else {}
    return data


def _unlike(a: Any, b: Any, key: str) -> Iterator[Changed]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in dict.fromkeys([*a, *b]):
            yield from _unlike(a.get(name), b.get(name), f"{key}.{name}" if key else name)
    elif _is_list(a) and _is_list(b):
        for number, (one, other) in enumerate(zip_longest(a, b)):
            yield from _unlike(one, other, f"{key}.{number}")
    elif a != b:
        yield Changed(key, (a, b))


def _is_list(value: Any) -> bool:
    """Whether the entries of a list have keys of their own."""
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _of_programs(a: SavedProgram, b: SavedProgram) -> Iterator[Changed]:
    """Unlike names and cells of tables; of a table with unlike numbers of rows only these, `table (rows)`."""
    for name in ("chip", "frequency_mhz", "unit", "tasks", "units", "buffers", "operations"):
        one, other = (getattr(each.names, name) for each in (a, b))
        if one == other:
            continue
        if isinstance(one, tuple) and len(one) == len(other):
            rows = [row for row, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
            yield from _cells(f"names of {name}", rows, one, other)
        elif not isinstance(one, tuple):
            yield Changed(name, (one, other))
    for name, table in FLAT_TABLES.items():
        rows_of = [each.flat.table(name) for each in (a, b)]
        if len(rows_of[0]) != len(rows_of[1]):
            yield Changed(f"{name} (rows)", (len(rows_of[0]), len(rows_of[1])))
            continue
        for place, column in enumerate(table.columns):
            one, other = (each[:, place] for each in rows_of)
            yield from _cells(f"{name}.{column}", np.flatnonzero(one != other).tolist(), one.tolist(), other.tolist())


def _cells(key: str, rows: list[int], one: Any, other: Any) -> Iterator[Changed]:
    """The unlike cells of a column, as one row: of several cells the values are lists."""
    if len(rows) == 1:
        yield Changed(f"{key}, row {rows[0]}", (plain(one[rows[0]]), plain(other[rows[0]])))
    elif rows:
        yield Changed(
            f"{key}, {len(rows):,} rows", ([plain(one[at]) for at in rows], [plain(other[at]) for at in rows])
        )
