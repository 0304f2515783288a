"""Keys of the machines: each number with bounds, a default with its source; mistakes come from the keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

import pytest

from lstmsim.base.errors import InputError
from lstmsim.base.keys import Described, as_data, described, keys_of, mistakes_of
from lstmsim.files.catalog import list_chips
from lstmsim.files.scenario.scenario_file import load_chip
from lstmsim.machines.column.npu import ColumnCore, ColumnNpu, Exchange, Latency, Memory
from lstmsim.machines.registry import KINDS, target_of
from lstmsim.machines.row.npu import Dispatch, RowCore, RowLatency, RowNpu

#: What every chip has, whatever its kind.
COMMON = {"name", "cores", "sources", "kind"}
THINGS = [
    *(Latency(), ColumnCore(64, 4, 16, tree_inputs=4, weight_kib=8), Memory(20), Exchange()),
    *(RowLatency(), Dispatch("lstm"), RowCore(1, 2, 3, matrix_words=4)),
]


def below(description: Any, path: str = "") -> Iterator[tuple[str, Described]]:
    """All keys of a description and those of the descriptions below it, with their paths."""
    for name, each in keys_of(description).items():
        yield f"{path}{name}", each
        if is_dataclass(each.kind):
            yield from below(each.kind, f"{path}{name}.")


ALL = [
    pytest.param(each, id=f"{kind}: {path}")
    for kind in KINDS
    for what in (target_of(kind).chip, target_of(kind).core)
    for path, each in below(what)
]


@pytest.mark.parametrize("each", ALL)
def test_a_key_says_what_it_means_and_where_its_default_is_from(each: Described) -> None:
    key = each.key
    assert key.meaning
    assert (each.default is MISSING) != bool(key.source) or key.follows
    if each.kind in (int, float):
        assert key.low is not None
        assert key.high is not None
        assert "cycles" not in each.name or key.unit == "cycles"


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_description_has_a_key(kind: str) -> None:
    target = target_of(kind)
    assert {each.name for each in fields(target.chip)} - COMMON == set(keys_of(target.chip))
    assert [each.name for each in fields(target.core)] == list(keys_of(target.core))


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: type(thing).__name__)
def test_numbers_beyond_a_bound_are_mistakes_and_the_bounds_are_none(thing: Any) -> None:
    assert mistakes_of(thing) == []
    for name, each in keys_of(type(thing)).items():
        if each.kind in (int, float) and not each.several:
            low, high = each.key.low, each.key.high
            assert low is not None
            assert high is not None
            assert mistakes_of(replace(thing, **{name: low})) == []
            assert mistakes_of(replace(thing, **{name: high})) == []
            assert mistakes_of(replace(thing, **{name: low - 1})) == [(name, f"must be at least {low}, got {low - 1}")]
            assert mistakes_of(replace(thing, **{name: high + 1})) == [
                (name, f"must be at most {high}, got {high + 1}")
            ]


def test_mistakes_of_parts_are_named_with_dots() -> None:
    core = RowCore(1, 2, 0, latency=RowLatency(evrf=0), by_cell=(Dispatch("lstm", 0), Dispatch("gru", 1, -1)))
    assert core.mistakes() == [
        ("lanes", "must be at least 1, got 0"),
        ("by_cell.lstm.dispatch_cycles", "must be at least 1, got 0"),
        ("by_cell.gru.start_cycles", "must be at least 0, got -1"),
        ("latency.evrf", "must be at least 1, got 0"),
    ]
    with pytest.raises(InputError, match=r"^chip c: memory\.latency_cycles: must be at least 0, got -1$"):
        ColumnNpu("c", 260, (ColumnCore(64, 4, 16),), Memory(20, -1))
    with pytest.raises(InputError, match=r"^chip c: frequency_mhz: must be greater than 0, got 0$"):
        RowNpu("c", 0, (RowCore(1, 2, 3),))


@pytest.mark.parametrize("name", [each.name for each in list_chips()])
def test_the_cores_of_every_preset_come_back_from_their_data(name: str) -> None:
    for core in load_chip(name).cores:
        assert described(type(core), as_data(core)) == core
