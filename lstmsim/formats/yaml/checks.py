"""Data against the schema: every mistake a sentence at its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from lstmsim.formats.wording import listed, nearest, show
from lstmsim.formats.yaml.checkers import checker_of
from lstmsim.formats.yaml.document import DataPath, Document
from lstmsim.formats.yaml.values import Note, Notes

__all__ = ["WrongPaths", "check", "usable", "wrong_keys"]

Entry = TypeVar("Entry")

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


def check(kind: type[Entry], document: Document, known: Collection[DataPath] = ()) -> tuple[Entry | None, WrongPaths]:
    """The document's data as a `kind`, or None; every mistake is noted in the document, its path returned.

    kind: a class whose fields carry keys (`lstmsim.keys`), nested ones included; what it makes has the defaults of
    the class where the data says nothing. At the paths `known` a mistake has been noted before: nothing more is said
    about them.

    >>> from lstmsim.formats.yaml.document import document_of
    >>> from lstmsim.formats.yaml.entry import Entry
    >>> class Core(Entry):
    ...     ep: int
    >>> document = document_of({"ep": 1.0, "eep": 3})
    >>> check(Core, document)
    (None, [('ep',), ('eep',)])
    >>> print(*document.mistakes, sep="\\n")
    ep: must be a whole number, got 1.0; write 1
    eep: unknown key; did you mean 'ep'?
    """
    if issubclass(kind, BaseModel):
        return _pydantic(kind, document, known)
    notes: Notes = []
    entry = checker_of(kind)(document.data, (), notes)
    for number, each in enumerate(notes):
        if each.path in known:
            continue
        unknown = bool(each.holder)
        if number < _EXPLAINED:
            document.blame(each.path, _sentence(document, each), key=unknown)
        else:
            document.blame(each.path, "is wrong too", key=unknown)
    return entry, WrongPaths(each.path for each in notes)


def _sentence(document: Document, note: Note) -> str:
    if note.holder:
        hint = nearest(str(note.path[-1]), note.holder) or f"; known keys: {listed(note.holder, 'and')}"
        return f"{note.sentence}{hint}"
    if not note.shows:
        return note.sentence
    value = document.at(note.path)
    more = note.hint(value) if note.hint else ""
    return f"{note.sentence}, got {show(value, document.raw(note.path))}{more}"


def usable(
    kind: type[Entry], data: Any, wrong: Collection[str | int], instead: Mapping[str, Any] | None = None
) -> Entry | None:
    """`data` as a `kind` without its wrong keys (with `instead` in their place), or None if it needs them.

    So one mistake does not hide another that has nothing to do with it.

    >>> from lstmsim.formats.yaml.entry import Entry
    >>> class Core(Entry):
    ...     ep: int
    ...     threads: int = 1
    >>> usable(Core, {"ep": 4, "threads": "x"}, {"threads"}), usable(Core, {"ep": "x"}, {"ep"})
    (Core(ep=4), None)
    """
    if not isinstance(data, dict):
        return None
    if wrong:
        data = {key: value for key, value in data.items() if key not in wrong}
    data = {**data, **(instead or {})}
    if issubclass(kind, BaseModel):
        try:
            return kind.model_validate(data)
        except ValidationError:
            return None
    notes: Notes = []
    entry: Entry | None = checker_of(kind)(data, (), notes)
    return entry


def wrong_keys(path: DataPath, wrong: Iterable[DataPath]) -> set[str | int]:
    """Keys of the mapping at `path` that hold one of the mistakes at the paths `wrong`.

    >>> wrong_keys(("jobs", 0), [("jobs", 0, "steps"), ("jobs", 1, "core")])
    {'steps'}
    """
    return (wrong if isinstance(wrong, WrongPaths) else WrongPaths(wrong)).below(path)


def _pydantic(model: type[Any], document: Document, known: Collection[DataPath]) -> tuple[Any, WrongPaths]:
    try:
        return model.model_validate(document.data), WrongPaths()
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
