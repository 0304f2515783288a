"""Options of kernels: from what a user gave to a record, with sentences about what does not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import must_be, show

__all__ = ["bad_choice", "bad_flag", "bad_number", "options_of", "refuse"]

T = TypeVar("T")


def options_of(kind: type[T], given: Mapping[str, Any]) -> T:
    """The options of a kernel: those of `given` that it has; null means the default, others are ignored.

    kind: the class of the options, a dataclass.
    given: values by the names of options.
    InputError if an option without a default is missing or a value does not fit.
    """
    own = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    values = {name: value for name, value in given.items() if name in own and value is not None}
    needed = [each.name for each in fields(kind) if each.default is MISSING]  # type: ignore[arg-type]
    refuse(Mistake(name, "is missing; the kernel needs it") for name in needed if name not in values)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def refuse(mistakes: Iterable[Mistake | None]) -> None:
    """InputError with the mistakes, if there are any."""
    some = [each for each in mistakes if each is not None]
    if some:
        raise InputError(some)


def bad_number(name: str, value: object, least: int = 1, most: int | None = None) -> Mistake | None:
    """What is wrong with an option that is a whole number, or None."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least and (most is None or value <= most):
        return None
    bound = f"of at least {least}" if most is None else f"from {least} to {most}"
    return Mistake(name, f"must be a whole number {bound}, got {show(value)}")


def bad_choice(name: str, value: object, known: Iterable[str]) -> Mistake | None:
    """What is wrong with an option that is one of some words, or None."""
    words = list(known)
    if isinstance(value, str) and value in words:
        return None
    return Mistake(name, must_be(value, words))


def bad_flag(name: str, value: object) -> Mistake | None:
    """What is wrong with an option that is true or false, or None."""
    return None if isinstance(value, bool) else Mistake(name, f"must be true or false, got {show(value)}")
