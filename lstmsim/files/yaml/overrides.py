"""`PATH=VALUE` changes to a document's data, which are made before any check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.wording import dotted, nearest, show
from lstmsim.files.yaml.document import DataPath, Document, Place
from lstmsim.files.yaml.source import parse_document

__all__ = ["LABEL", "apply_overrides"]

LABEL = "--set "
#: Replaces a name at a path by the chip or model of that name; False if there is none.
Expand = Callable[[DataPath], bool]
#: Names the mappings right below a path that a file may leave out and an override may still change.
LeftOut = Callable[[DataPath], Sequence[str]]


class _NoSuchPathError(Exception):
    """The path of an override leads nowhere; its text is the sentence for the user."""


def apply_overrides(document: Document, overrides: Sequence[str], expand: Expand, left_out: LeftOut) -> None:
    """Change a document's data, override after override; mistakes are noted in the document.

    overrides: texts `PATH=VALUE`.
    expand: called for each path on the way down, to replace a name by the chip or model of that name.
    left_out: called with a path, to name the mappings right below it that need not be there.
    `InputError` if `overrides` is no list of texts.

    >>> document = parse_document("chip: {cores: [{ep: 4}]}", "a.yaml")
    >>> apply_overrides(document, ["chip.cores.0.ep=16"], lambda path: True, lambda path: ())
    >>> document.data, document.place(("chip", "cores", 0, "ep"))
    ({'chip': {'cores': [{'ep': 16}]}}, '--set chip.cores.0.ep=16')
    """
    expected = "must be a list of texts like ['jobs.0.steps=3'], got"
    given: object = overrides
    if isinstance(given, str) or not isinstance(given, Sequence):
        what = "the text " if isinstance(given, str) else ""
        raise InputError(Mistake("overrides", f"{expected} {what}{show(overrides)}"))
    for override in overrides:
        if not isinstance(override, str):
            raise InputError(Mistake("overrides", f"{expected} {show(override)} in it"))
        label = LABEL + (override if override.isprintable() else repr(override))
        target, equals, text = override.partition("=")
        parts = target.strip().split(".")
        if not equals or "" in parts:
            sentence = "must look like PATH=VALUE, for example chip.cores.0.ep=16"
            document.mistakes.append(Mistake(label, sentence))
            continue
        try:
            value = parse_document(text, label)
            _put(document, parts, value, label, expand, left_out)
        except InputError as error:
            document.mistakes.extend(Mistake(label, mistake.sentence) for mistake in error.mistakes)
        except _NoSuchPathError as error:
            document.mistakes.append(Mistake(label, str(error)))


def _put(document: Document, parts: list[str], value: Document, label: str, expand: Expand, left_out: LeftOut) -> None:
    path: DataPath = ()
    for name in parts[:-1]:
        container, optional = document.at(path), left_out(path)
        key = _key(container, name, path, optional)
        if name in optional and isinstance(container, dict) and name not in container:
            container[name] = {}
            document.keys[*path, name] = document.values[*path, name] = Place(label)
        path = (*path, key)
        if not expand(path):
            return
    path = (*path, _key(document.at(path), parts[-1], path))
    document.put(path, value.data)
    raw = value.raw(())
    document.keys[path] = Place(label)
    document.values[path] = Place(label, raw=raw)
    document.mistakes.extend(Mistake(label, mistake.sentence) for mistake in value.mistakes)


def _key(container: Any, name: str, path: DataPath, optional: Sequence[str] | None = None) -> str | int:
    """Give `name` as a key or index of a container. `optional`: keys it may lack; None: any, the schema checks it."""
    here = f"{dotted(path)!r}" if path else "the top"
    if isinstance(container, dict):
        if optional is None or name in container or name in optional:
            return name
        raise _NoSuchPathError(f"{here} has no key {show(name)}{nearest(name, [*container, *optional])}")
    if not isinstance(container, list):
        raise _NoSuchPathError(f"{here} is {show(container)}: there is nothing below it")
    entries = "1 entry" if len(container) == 1 else f"{len(container)} entries"
    if not (name.isascii() and name.isdigit() and len(name) < 10):
        raise _NoSuchPathError(f"{here} is a list of {entries}: expected an index, got {show(name)}")
    if int(name) >= len(container):
        raise _NoSuchPathError(f"{here} has {entries}, counted from 0: there is no {name}")
    return int(name)
