"""Data against the schema: every mistake a sentence at its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from lstmsim.formats.wording import listed, nearest, show
from lstmsim.formats.yaml.document import DataPath, Document

__all__ = ["WrongPaths", "check"]

Entry = TypeVar("Entry", bound=BaseModel)

#: Mistakes of one file that are explained; more than that are counted, and their places named.
_EXPLAINED = 200

_SENTENCES = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "value_error": "{error}",
    "string_too_short": "must hold at least {min_length} letter",
    "string_too_long": "must hold at most {max_length} letters",
}


class WrongPaths(list[DataPath]):
    """Paths of mistakes; `below(path)`: keys of the mapping there that hold one, found without going through all."""

    def __init__(self, paths: Iterable[DataPath] = ()) -> None:
        super().__init__(paths)
        self._below: dict[DataPath, set[str | int]] = {}
        self._counted = 0

    def below(self, path: DataPath) -> set[str | int]:
        """Keys of the mapping at `path` that hold a mistake.

        >>> WrongPaths([("jobs", 0, "steps"), ("jobs", 1, "core")]).below(("jobs", 0))
        {'steps'}
        """
        for each in self[self._counted :]:
            for depth, key in enumerate(each):
                self._below.setdefault(each[:depth], set()).add(key)
        self._counted = len(self)
        return set(self._below.get(path, ()))


def check(
    model: type[Entry], document: Document, known: Collection[DataPath] = ()
) -> tuple[Entry | None, list[DataPath]]:
    """The document's data as `model`, or None; every mistake is noted in the document, its path returned.

    At the paths `known` a mistake has been noted before: nothing more is said about them.
    """
    try:
        return model.model_validate(document.data), []
    except ValidationError as error:
        wrong = WrongPaths()
        for number, each in enumerate(error.errors(include_url=False)):
            path = _data_path(document.data, each["loc"], missing=each["type"] == "missing")
            wrong.append(path)
            if path in known:
                continue
            if number < _EXPLAINED:
                _blame(document, model, path, dict(each))
            else:
                document.blame(path, "is wrong too", key=each["type"] == "extra_forbidden")
        return None, wrong


def _data_path(data: Any, location: tuple[int | str, ...], *, missing: bool) -> DataPath:
    """A pydantic location without the tags of unions, which name no key of the data."""
    path: DataPath = ()
    for part in location:
        tag = isinstance(part, str) and part.startswith("(")
        if isinstance(data, dict) and (part in data or (missing and not tag)):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
        else:
            continue
        path = (*path, part)
    return path


def _blame(document: Document, model: type[BaseModel], path: DataPath, error: dict[str, Any]) -> None:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        meaning = _model_at(model, path[:-1]).model_fields[str(path[-1])].description
        document.blame(path, "required key is missing" + (f" ({meaning})" if meaning else ""))
    elif kind == "extra_forbidden":
        known = list(_model_at(model, path[:-1]).model_fields)
        hint = nearest(str(path[-1]), known) or f"; known keys: {listed(known, 'and')}"
        document.blame(path, f"unknown key{hint}", key=True)
    elif kind in ("too_short", "too_long"):
        bound = context["min_length"] if kind == "too_short" else context["max_length"]
        words = f"at {'least' if kind == 'too_short' else 'most'} {bound} {'entry' if bound == 1 else 'entries'}"
        holder = document.at(path)
        noun = "mapping" if isinstance(holder, dict) else "list"
        document.blame(path, f"must be a {noun} of {words}, got {len(holder)}")
    else:
        value = document.at(path)
        sentence = _SENTENCES.get(kind, error["msg"]).format(**context)
        document.blame(path, f"{sentence}, got {show(value, document.raw(path))}{_hint(kind, value, context)}")


def _hint(kind: str, value: Any, context: dict[str, Any]) -> str:
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"; write {int(value)}" if abs(value) < 1e15 else "; write it without point and exponent"
    if kind in ("int_type", "float_type") and isinstance(value, str) and value.replace(".", "", 1).isdigit():
        return "; leave the quotes out"
    if kind == "literal_error" and isinstance(value, str):
        return nearest(value, context["expected"].replace("'", "").replace(" or ", ", ").split(", "))
    return ""


def _model_at(model: type[BaseModel], path: DataPath) -> type[BaseModel]:
    """The pydantic model of the mapping at `path`, found by the types of the fields on the way."""
    annotation: Any = model
    for part in path:
        annotation = _below(annotation, part)
    return _model_in(annotation) or model


def _below(annotation: Any, part: str | int) -> Any:
    """The type of what stands at a key or index of a value of that type; None if it has none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.model_fields[str(part)].annotation if part in annotation.model_fields else None
    if get_origin(annotation) in (list, dict):
        return get_args(annotation)[-1]
    return next((found for each in get_args(annotation) if (found := _below(each, part)) is not None), None)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _model_in(each))), None)
