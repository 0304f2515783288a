"""YAML 1.2 files as plain data, with the line and column of every key and value.

Only plain values are built (text, numbers, true, false, nothing, lists, mappings): no tag of a file can name code.
Files are YAML 1.2: `010` is ten, `no` is text. JSON is YAML, so `.json` files are read in the same way.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import note_read
from lstmsim.base.wording import nearest_file, show
from lstmsim.files.yaml.document import Document
from lstmsim.files.yaml.plain import plain_document

MAX_BYTES = 10_000_000
#: Letters of a text that is long to keep.
_LARGE = 20_000


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a YAML or JSON file that holds one document, whose top is a mapping.

    path: the file.
    `InputError`, with place, if the file cannot be read. Duplicate keys are only noted in the document's `mistakes`, so
    that the caller can add further mistakes.
    """
    name = os.fspath(path)
    text = _read_text(Path(name), name)
    document = copied((_kept if len(text) < _LARGE else _kept_large)(text, name))
    document.folder = Path(name).parent
    if document.data is None:
        raise InputError(Mistake(name, "is empty, expected a mapping of keys to values"))
    if not isinstance(document.data, dict):
        document.blame((), f"must be a mapping of keys to values, got {show(document.data, document.raw(()))}")
        raise InputError(document.mistakes)
    return document


def copied(document: Document) -> Document:
    """Copy a document, so that the copy can be changed."""
    own = replace(document, data=copied_data(document.data), values=dict(document.values))
    own.keys, own.mistakes = dict(document.keys), list(document.mistakes)
    return own


def copied_data(data: Any) -> Any:
    """Copy plain data."""
    if isinstance(data, dict):
        return {key: copied_data(each) for key, each in data.items()}
    return [copied_data(each) for each in data] if isinstance(data, list) else data


def _read_text(path: Path, name: str) -> str:
    try:
        if not name:
            raise InputError("the name of a file is expected, got an empty one")
        if path.is_dir():
            raise InputError(Mistake(name, "is a folder, expected a file"))
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        siblings: list[str] = []
        if path.parent.is_dir() and os.access(path.parent, os.R_OK):
            siblings = [str(each) for each in path.parent.iterdir() if each.suffix in {".yaml", ".yml", ".json"}]
        raise InputError(f"no file called {name!r}{nearest_file(str(path), siblings)}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read {name!r}: {reason}") from None
    note_read(name)
    if len(content) > MAX_BYTES:
        raise InputError(Mistake(name, f"is larger than {MAX_BYTES // 1_000_000} MB"))
    if b"\0" in content:
        from lstmsim.importers.files import SUFFIXES

        hint = f"; `lstmsim import {name}` makes a model of a network's file" if path.suffix in SUFFIXES else ""
        raise InputError(Mistake(name, f"is a binary file (or UTF-16), expected YAML or JSON text in UTF-8{hint}"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        sentence = f"byte 0x{content[error.start]:02x} is not UTF-8, expected YAML or JSON text in UTF-8"
        raise InputError(Mistake(f"{name}:{line}:{column}", sentence)) from None


def parse_document(text: str, name: str) -> Document:
    """Read YAML text as a document; `InputError` if it is no YAML, holds several documents, or grows too large."""
    plain = plain_document(text, name)
    if plain is not None:
        return plain
    from lstmsim.files.yaml.full import full_document

    return full_document(text, name)


#: Keeps the documents of small texts: who simulates much in one process names the same chips and models again and
#: again, and parsing takes longer than the simulation.
_kept = lru_cache(maxsize=256)(parse_document)
#: Keeps the document of a large text until the next one: a command may read its scenario more than once.
_kept_large = lru_cache(maxsize=1)(parse_document)
