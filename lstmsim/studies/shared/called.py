"""Public functions as users call them: what Python says of a value of a wrong type becomes a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from sys import modules
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from lstmsim.base.errors import InputError, Mistake

F = TypeVar("F", bound=Callable[..., Any])
#: Types by the words for them; others are called by their names.
_WORDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
    Mapping: "a mapping",
    Callable: "a function",
}


def called(function: F) -> F:
    """Make a function say which argument is of a wrong type, where it fails because of that.

    function: what users call; its own errors are as before.

    >>> @called
    ... def doubled(values: list[int], again: bool = False) -> list[int]:
    ...     return [2 * value for value in values]
    >>> doubled(None)
    Traceback (most recent call last):
    lstmsim.InputError: values: must be a list, got nothing
    """

    @wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        try:
            return function(*values, **named)
        except (TypeError, ValueError, AttributeError) as error:
            mistakes = wrong_types(function, values, named)
            if not mistakes:
                raise
            raise InputError(mistakes) from error

    if hasattr(function, "request"):
        whole = inspect.signature(function).parameters
        fields = inspect.signature(function.request).parameters
        others = [each for name, each in whole.items() if name not in fields and name != "options"]
        call.__signature__ = inspect.Signature([*fields.values(), *others])  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def wrong_types(function: Callable[..., Any], values: tuple[Any, ...], named: Mapping[str, Any]) -> list[Mistake]:
    """List the arguments whose values are not of the types that the function names.

    >>> wrong_types(lambda engine: None, ("fast",), {})
    []
    """
    from lstmsim.base.wording import show

    try:
        given = inspect.signature(function).bind(*values, **named).arguments
    except TypeError:
        return []
    request = getattr(function, "request", None)
    if request is not None:
        given |= given.pop("options", {})
    hints = {name: _hint(request or function, name) for name in given}
    return [
        Mistake(name, f"must be {_words(hints[name])}, got {_shown(value, show)}")
        for name, value in given.items()
        if not _is(value, hints[name])
    ]


def _hint(function: Callable[..., Any], name: str) -> Any:
    """The annotation of an argument; `object` where it has none, or names what only a type checker imports."""
    one = type("One", (), {"__annotations__": {name: function.__annotations__.get(name, object)}})
    try:
        return get_type_hints(one, vars(modules[function.__module__]))[name]
    except (NameError, AttributeError, TypeError):
        return object


def _is(value: Any, hint: Any) -> bool:
    """Whether a value is of a type as annotations write it; entries of lists are looked at, too."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in parts)
    if origin is Literal:
        return isinstance(value, str | int) and value in parts
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    kind = origin or hint
    if hint is Any or not isinstance(kind, type):
        return True
    if _is_list(kind):
        entries = not isinstance(value, str | bytes | Mapping) and isinstance(value, list | tuple | kind)
        return entries and all(_is(each, parts[0]) for each in value) if parts else entries
    return isinstance(value, kind)


def _is_list(kind: type) -> bool:
    return issubclass(list, kind) and kind is not object


def _words(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_words, parts)))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    kind = origin or hint
    if kind in _WORDS:
        return _WORDS[kind]
    if isinstance(kind, type) and _is_list(kind):
        return "a list"
    name = getattr(kind, "__name__", str(kind))
    return "a path" if name == "PathLike" else f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _shown(value: Any, show: Callable[[object], str]) -> str:
    simple = value is None or isinstance(value, str | Integral | Real | Mapping | list | tuple)
    return show(value) if simple else f"a value of type {type(value).__name__!r}"
