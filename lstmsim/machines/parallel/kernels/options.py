"""Options of kernels: records whose keys say which values there may be, made of what a user gave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from lstmsim.base.checkers import Notes, bounds_of, type_checker
from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.keys import Key, keys_of
from lstmsim.base.wording import must_be, show

T = TypeVar("T")


class Options:
    """What options of kernels have in common: each value is checked by the `Key` of its field.

    `InputError` names every option that is wrong.
    """

    def __post_init__(self) -> None:
        refuse(option_mistakes(self))


def option_mistakes(options: Any) -> Iterator[Mistake]:
    """Say what is wrong with each value of a record whose fields carry keys."""
    for name, each in keys_of(type(options)).items():
        value, notes = getattr(options, name), Notes()
        if each.key.choices:
            if value not in each.key.choices:
                yield Mistake(name, must_be(value, each.key.choices))
            continue
        numbers = [*value] if each.several and isinstance(value, tuple) else [value]
        type_checker(each.type, each.key)(numbers if each.several else value, (name,), notes)
        rule = bounds_of(each.key, int)
        wrong = (
            [] if notes or each.type is bool else [text for one in numbers if one is not None and (text := rule(one))]
        )
        told = [note.told(value) for note in notes] or [f"{text}, got {show(value)}" for text in wrong]
        yield from (Mistake(name, text) for text in told[:1])


def options_of(kind: type[T], given: Mapping[str, Any]) -> T:
    """Make the options of a kernel: those of `given` that it has; null means the default, others are ignored."""
    own = {each.name: each.default for each in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in given.items() if name in own and value is not None}
    refuse(
        Mistake(name, "is missing; the kernel needs it")
        for name, default in own.items()
        if default is MISSING and name not in values
    )
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def refuse(mistakes: Iterable[Mistake | None]) -> None:
    """`InputError` with the mistakes, if there are any."""
    some = [each for each in mistakes if each is not None]
    if some:
        raise InputError(some)


def check_sizes(sizes: Mapping[str, int]) -> None:
    """`InputError` with every size of a product, by name, that is below 1."""
    rule = bounds_of(Key(low=1), int)
    refuse(Mistake(name, f"{rule(size)}, got {size}") for name, size in sizes.items() if rule(size))


def fours(value: int) -> str:
    """The rule of a number that is a multiple of 4."""
    return "must be a multiple of 4" if value % 4 else ""
