"""Checks made of annotations: what they let through, what they say of everything else, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from lstmsim.base.errors import MAX_MISTAKES, InputError
from lstmsim.base.keys import Entry, Key, entry_class, entry_values, keys_of
from lstmsim.files.scenario.schema import check, usable
from lstmsim.files.yaml.document import document_of


def _even(number: int) -> str:
    return "must be even" if number % 2 else ""


Size = Annotated[int, Key(low=1, high=9)]


@dataclass(frozen=True)
class Latency:
    """A description within another."""

    read: Annotated[int, Key(low=0)] = 4
    multiply: Size = 4


@dataclass(frozen=True)
class Core:
    """A machine's description: `name` is none of its keys."""

    ep: Annotated[Size, Key("elements in parallel")]
    mhz: Annotated[float, Key(above=0, high=5, low=0.5)] = 1.0
    vp: Annotated[Size | None, Key("rows")] = None
    number: Annotated[int, Key(below=4, rule=_even)] = 0
    sizes: Annotated[tuple[Size, ...], Key(low=2, high=3)] = (1, 1)
    weights: Annotated[list[Annotated[float, Key(low=0, high=2)]], Key()] = field(default_factory=list)
    order: Annotated[Literal["row", "column", "both"], Key()] = "row"
    by_cell: Annotated[Mapping[str, Latency], Key(high=1)] = field(default_factory=dict)
    several: Annotated[Size | Annotated[list[Size], Key(high=2)] | Latency, Key()] = 1
    word: Annotated[str, Key(low=1, high=3)] = "a"
    latency: Annotated[Latency, Key()] = Latency()
    name: str = ""


def reported(**more: Any) -> list[str]:
    document = document_of({"ep": 4, **more})
    entry, wrong = check(Core, document)
    assert (entry is None) == bool(wrong) == bool(document.mistakes)
    return [str(each) for each in document.mistakes]


def test_what_is_right_is_made_with_the_defaults_of_the_class() -> None:
    data = {"ep": 4, "mhz": 2, "sizes": [3, 4], "weights": [1, 0.5], "by_cell": {"lstm": {"read": 0}}, "vp": None}
    entry, wrong = check(Core, document_of(data))
    assert entry == Core(4, 2.0, sizes=(3, 4), weights=[1.0, 0.5], by_cell={"lstm": Latency(0)})
    assert isinstance(entry.mhz, float)
    assert isinstance(entry.weights[0], float)
    assert not wrong


@pytest.mark.parametrize("several", [3, [1, 9], [], {"read": 7}])
def test_what_may_be_several_things_is_told_apart_by_its_form(several: Any) -> None:
    entry, _ = check(Core, document_of({"ep": 4, "several": several}))
    assert entry is not None
    assert entry.several == (Latency(7) if isinstance(several, dict) else several)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("ep", True, "ep: must be a whole number, got true"),
        ("ep", 4.0, "ep: must be a whole number, got 4.0; write 4"),
        ("ep", 1e16, "ep: must be a whole number, got 1e+16; write it without point and exponent"),
        ("ep", "4", "ep: must be a whole number, got '4'; leave the quotes out"),
        ("ep", None, "ep: must be a whole number, got nothing"),
        ("ep", 0, "ep: must be at least 1, got 0"),
        ("ep", 10, "ep: must be at most 9, got 10"),
        ("vp", 0, "vp: must be at least 1, got 0"),
        ("number", 4, "number: must be less than 4, got 4"),
        ("number", 3, "number: must be even, got 3"),
        ("mhz", False, "mhz: must be a number, got false"),
        ("mhz", "1.5", "mhz: must be a number, got '1.5'; leave the quotes out"),
        ("mhz", 0, "mhz: must be greater than 0, got 0"),
        ("mhz", 0.25, "mhz: must be at least 0.5, got 0.25"),
        ("mhz", 6, "mhz: must be at most 5, got 6"),
        ("mhz", float("nan"), "mhz: must be a finite number, got nan"),
        ("mhz", float("-inf"), "mhz: must be a finite number, got -infinity"),
        ("mhz", 10**400, "mhz: must be a number, got a number of 1329 bits"),
        ("sizes", 3, "sizes: must be a list, got 3"),
        ("sizes", [1], "sizes: must be a list of at least 2 entries, got 1"),
        ("sizes", [1, 2, 3, "x"], "sizes: must be a list of at most 3 entries, got 4"),
        ("sizes", [0], "sizes.0: must be at least 1, got 0"),
        ("sizes", [1, True], "sizes.1: must be a whole number, got true"),
        ("weights", [0, float("nan")], "weights.1: must be a finite number, got nan"),
        ("weights", [0, float("inf"), 0], "weights.1: must be a finite number, got infinity"),
        ("weights", [0, 10**400], "weights.1: must be a number, got a number of 1329 bits"),
        ("weights", [-1, 0], "weights.0: must be at least 0, got -1"),
        ("order", "colum", "order: must be 'row', 'column' or 'both', got 'colum'; did you mean 'column'?"),
        ("order", ["row"], "order: must be 'row', 'column' or 'both', got a list"),
        ("word", "", "word: must hold at least 1 letter, got ''"),
        ("word", "abcd", "word: must hold at most 3 letters, got 'abcd'"),
        ("word", "\ud800", "word: must be valid Unicode text, got '\\ud800'"),
        ("word", 3, "word: must be text, got 3"),
        ("by_cell", [], "by_cell: must be a mapping of keys to values, got a list"),
        ("by_cell", {"a": {}, "b": {}}, "by_cell: must be a mapping of at most 1 entry, got 2"),
        ("by_cell", {"a": {"read": -1}}, "by_cell.a.read: must be at least 0, got -1"),
        ("several", "x", "several: must be a whole number, got 'x'"),
        ("several", [1, 2, 3], "several: must be a list of at most 2 entries, got 3"),
        ("several", {"reed": 3}, "several.reed: unknown key; did you mean 'read'?"),
        ("latency", None, "latency: must be a mapping of keys to values, got nothing"),
        ("latency", {"qqqqq": 1}, "latency.qqqqq: unknown key; known keys: read and multiply"),
    ],
)
def test_each_mistake_has_its_sentence(key: str, value: Any, sentence: str) -> None:
    assert reported(**{key: value}) == [sentence]


def test_all_mistakes_come_at_once_in_the_order_of_the_class_then_what_is_unknown() -> None:
    document = document_of({"name": "x", "latency": {"read": "a", "multiply": 0}, "zzz": 1, "word": 1})
    entry, wrong = check(Core, document, known=[("word",)])
    assert entry is None
    assert wrong == [("ep",), ("word",), ("latency", "read"), ("latency", "multiply"), ("name",), ("zzz",)]
    keys = "ep, mhz, vp, number, sizes, weights, order, by_cell, several, word and latency"
    assert [str(each) for each in document.mistakes] == [
        "ep: required key is missing (elements in parallel)",
        "latency.read: must be a whole number, got 'a'",
        "latency.multiply: must be at least 1, got 0",
        "name: unknown key; did you mean 'number'?",
        f"zzz: unknown key; known keys: {keys}",
    ]


def test_of_very_many_mistakes_the_first_are_explained() -> None:
    class Many(Entry):
        sizes: list[Size]

    document = document_of({"sizes": ["x"] * 1000})
    with pytest.raises(InputError) as caught:
        check(Many, document)
    sentences = [each.sentence for each in caught.value.mistakes]
    assert sentences == ["must be a whole number, got 'x'"] * MAX_MISTAKES


def test_one_mistake_does_not_hide_the_rest() -> None:
    assert usable(Core, {"ep": 4, "vp": "x"}, {"vp"}) == Core(4)
    assert usable(Core, {"ep": "x"}, {"ep"}, {"ep": 3}) == Core(3)
    assert usable(Core, {"ep": "x"}, {"ep"}) is None
    assert usable(Core, {"ep": 4, "vp": "x"}, set()) is None
    assert usable(Core, [], set()) is None


def test_an_entry_knows_what_was_given_and_cannot_be_changed() -> None:
    made = entry_class("CoreEntry", {"count": keys_of(Latency)["multiply"], **keys_of(Latency)})
    entry, _ = check(made, document_of({"read": 3}))
    assert entry is not None
    assert (set(entry.given), entry_values(entry)) == ({"read"}, {"count": 4, "read": 3, "multiply": 4})
    with pytest.raises(AttributeError, match="cannot be changed: read"):
        entry.read = 4


@dataclass(frozen=True)
class Dispatch:
    """A description that a file names."""

    cell: Annotated[str, Key(low=1)]
    cycles: Annotated[int, Key(low=1, follows="the core's")] = 1
    fitted: Annotated[tuple[int, int] | None, Key(low=1, high=9)] = None


@dataclass(frozen=True)
class Named:
    """A description that holds named ones."""

    vp: Annotated[int, Key(low=1, follows="npe // ep")]
    by_cell: Annotated[tuple[Dispatch, ...], Key(high=2, named_by="cell")] = ()


def test_entries_of_a_description_leave_out_what_follows_and_name_what_has_a_name() -> None:
    made = entry_class("NamedEntry", keys_of(Named))
    entry, _ = check(made, document_of({"by_cell": {"lstm": {"fitted": [1, 9]}}}))
    assert entry is not None
    assert entry_values(entry)["vp"] is None
    assert entry_values(entry_values(entry)["by_cell"]["lstm"]) == {"cycles": None, "fitted": (1, 9)}
    wrong = document_of({"vp": 0, "by_cell": {"": {"fitted": [1, 2, 3]}, "gru": {"fitted": [0, 1], "cell": "x"}}})
    check(made, wrong)
    assert [str(each) for each in wrong.mistakes] == [
        "vp: must be at least 1, got 0",
        "by_cell.'': must hold at least 1 letter, got a mapping",
        "by_cell.''.fitted: must be a list of at most 2 entries, got 3",
        "by_cell.gru.fitted.0: must be at least 1, got 0",
        "by_cell.gru.cell: unknown key; known keys: cycles and fitted",
    ]


def test_a_key_without_a_check_for_its_type_is_refused_when_the_check_is_made() -> None:
    class Odd(Entry):
        numbers: set[int]

    with pytest.raises(TypeError, match="no check for values of type set"):
        check(Odd, document_of({"numbers": [1]}))
