"""Records are what `@dataclass(frozen=True)` makes, only sooner."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from lstmsim.base.records import hashed_once, record


@record
class Made:
    """A record with fields of all kinds."""

    ep: int
    name: str = field(default="a", compare=False)
    note: str = field(default="", repr=False)
    loose: dict[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Plain:
    """The same as a dataclass."""

    ep: int
    name: str = field(default="a", compare=False)
    note: str = field(default="", repr=False)
    loose: dict[str, int] = field(default_factory=dict, hash=False)


@record
class Empty:
    """A record without fields."""


@record
class Own:
    """A record that says itself how it is shown."""

    ep: int

    def __repr__(self) -> str:
        return "own"


VALUES: list[tuple[Any, ...]] = [(1,), (1, "b"), (1, "a", "x"), (1, "a", "", {"k": 2}), (2,)]


@pytest.mark.parametrize("first", VALUES)
@pytest.mark.parametrize("second", VALUES)
def test_records_compare_and_hash_as_dataclasses_do(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    one, other = Made(*first), Made(*second)
    assert (one == other) == (Plain(*first) == Plain(*second))
    assert (hash(one) == hash(other)) == (hash(Plain(*first)) == hash(Plain(*second)))
    assert one != Plain(*first)
    assert repr(one) == repr(Plain(*first)).replace("Plain", "Made")


def test_records_are_dataclasses_that_do_not_change() -> None:
    one = Made(1, loose={"k": 2})
    assert is_dataclass(one)
    assert [each.name for each in fields(one)] == [each.name for each in fields(Plain)]  # type: ignore[arg-type]
    assert replace(one, ep=3) == Made(3, loose={"k": 2})  # type: ignore[type-var]
    assert asdict(one) == asdict(Plain(1, loose={"k": 2}))  # type: ignore[call-overload]
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    with pytest.raises(FrozenInstanceError):
        one.ep = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.ep


def wide() -> Any:
    class Wide:
        ep: int
        loose: dict[str, int] = field(default_factory=dict)
        name: str = field(default="a", kw_only=True)
        own: list[int] = field(default_factory=list, init=False)
        late: int = field(default=3, init=False)

        def __post_init__(self) -> None:
            self.own.append(self.ep)

    return Wide


def test_records_are_made_as_dataclasses_are() -> None:
    made, plain = record(wide()), dataclass(frozen=True)(wide())
    assert str(inspect.signature(made)) == str(inspect.signature(plain))
    given: list[tuple[tuple[Any, ...], dict[str, str]]] = [((1,), {}), ((1, {"k": 2}), {"name": "b"})]
    for values, named in given:
        one, other = made(*values, **named), plain(*values, **named)
        assert (repr(one), vars(one)) == (repr(other), vars(other))
    wrong: list[tuple[Any, ...]] = [(), (1, {}, "b")]
    for values in wrong:
        sentences = []
        for each in (made, plain):
            with pytest.raises(TypeError) as error:
                each(*values)
            sentences.append(str(error.value))
        assert sentences[0] == sentences[1]


def test_a_record_may_have_no_fields_and_methods_of_its_own() -> None:
    assert Empty() == Empty()
    assert {Empty(), Empty()} == {Empty()}
    assert repr(Empty()) == "Empty()"
    assert repr(Own(1)) == "own"


@hashed_once
@record
class Key:
    """A record that is the key of much."""

    name: str


def test_a_hash_that_is_kept_is_no_part_of_a_record() -> None:
    one = Key("a")
    assert hash(one) == hash(Key("a")) == hash(one)
    assert "_hash" in vars(one)
    # the hash of a text differs from process to process
    assert vars(pickle.loads(pickle.dumps(one))) == vars(copy.copy(one)) == {"name": "a"}
    assert (one == Key("a"), repr(one), asdict(one)) == (True, "Key(name='a')", {"name": "a"})


def test_a_field_alone_is_compared_as_several_are() -> None:
    """A value that is not a number is equal to itself in a dataclass, whose fields are compared as tuples."""
    nan = float("nan")

    @record
    class One:
        ep: float

    assert One(nan) == One(nan)
    assert One(1) == One(1.0)
    assert hash(One(1)) == hash(One(1.0))


def test_a_record_that_says_what_is_equal_has_a_hash() -> None:
    @record
    class Alike:
        ep: int

        def __eq__(self, other: object) -> bool:
            return True

    assert Alike(1) == Alike(2)
    assert hash(Alike(1)) == hash(Alike(1))
