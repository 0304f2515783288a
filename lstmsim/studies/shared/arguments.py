"""Arguments of public functions: sentences for values of a wrong type or out of range."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any

from lstmsim.base.errors import InputError, Mistake


def refuse(*mistakes: Iterable[Mistake]) -> None:
    """Raise `InputError` if there is any mistake.

    >>> refuse(wrong_whole("requests", 2.5, 1), wrong_number("percentile", "99"))
    Traceback (most recent call last):
    lstmsim.InputError: requests: must be a whole number of at least 1, got 2.5
    percentile: must be a number, got '99'
    """
    told = [each for some in mistakes for each in some]
    if told:
        raise InputError(told)


def wrong_whole(name: str, value: object, low: int | None = None, high: int | None = None) -> list[Mistake]:
    """Say what is wrong with an argument that must be a whole number; None stands for no argument.

    low, high: its bounds, if it has any.
    """
    if value is None:
        return []
    fits = isinstance(value, Integral) and not isinstance(value, bool)
    if fits and (low is None or int(value) >= low) and (high is None or int(value) <= high):  # type: ignore[call-overload]
        return []
    span = "" if low is None else f" of at least {low:,}" if high is None else f" from {low:,} to {high:,}"
    return [_mistake(name, f"a whole number{span}", value)]


def wrong_number(name: str, value: object) -> list[Mistake]:
    """Say what is wrong with an argument that must be a number; None stands for no argument."""
    fits = value is None or (isinstance(value, Real) and not isinstance(value, bool))
    return [] if fits else [_mistake(name, "a number", value)]


def wrong_numbers(name: str, value: object) -> list[Mistake]:
    """Say what is wrong with an argument that must be a list of numbers."""
    return _wrong_items(name, value, "number", wrong_number)


def wrong_wholes(name: str, value: object) -> list[Mistake]:
    """Say what is wrong with an argument that must be a list of whole numbers."""
    return _wrong_items(name, value, "whole number", wrong_whole)


def _wrong_items(name: str, value: object, what: str, wrong: Callable[[str, object], list[Mistake]]) -> list[Mistake]:
    """Say what is wrong with a list; unlike an argument, none of its entries may be left out."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
        return [_mistake(name, f"a list of {what}s", value)]
    places = [(f"{name}.{place}", item) for place, item in enumerate(value)]
    return [
        each
        for place, item in places
        for each in ([_mistake(place, f"a {what}", None)] if item is None else wrong(place, item))
    ]


def wrong_name(name: str, value: object, what: str) -> list[Mistake]:
    """Say what is wrong with an argument that must be a single name; None stands for no argument.

    what: a name, in words.
    """
    return [] if value is None or isinstance(value, str | PathLike) else [_mistake(name, what, value)]


def wrong_names(name: str, value: object, what: str) -> list[Mistake]:
    """Say what is wrong with an argument that must be a name or a list of names.

    what: a name, in words.

    >>> wrong_names("devices", ["a", 5], "a device's name or file")[0]
    Mistake(place='devices.1', sentence="must be a device's name or file, got 5")
    """
    if isinstance(value, str | PathLike):
        return []
    if not isinstance(value, list | tuple):
        return [_mistake(name, f"{what}, or a list of such", value)]
    wrong = [(place, each) for place, each in enumerate(value) if not isinstance(each, str | PathLike)]
    return [_mistake(f"{name}.{place}", what, each) for place, each in wrong]


def wrong_path(name: str, value: object) -> list[Mistake]:
    """Say what is wrong with an argument that must be the path of a file or folder."""
    return [] if isinstance(value, str | PathLike) else [_mistake(name, "a path", value)]


def _mistake(name: str, expected: str, value: Any) -> Mistake:
    from lstmsim.base.wording import show

    return Mistake(name, f"must be {expected}, got {show(value)}")
