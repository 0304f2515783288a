"""Which files a scenario reads: those that no output of the same command may replace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from lstmsim.errors import InputError
from lstmsim.formats.catalog import find_chip, find_model, input_files, is_path
from lstmsim.formats.document import DataPath, Document
from lstmsim.formats.model_entries import file_path
from lstmsim.formats.overrides import apply_overrides
from lstmsim.formats.scenario_file import References
from lstmsim.formats.yaml_source import read_document

__all__ = ["files_read_by", "files_read_by_document"]

#: Keys whose text names a file, wherever they stand: arrivals and steps of a file, weights of a model, input frames,
#: states, frames for calibration; the last two may also be mappings of texts.
_KEYS = ("path", "weights", "inputs", "initial", "calibration")


def files_read_by(scenario: str, overrides: Sequence[str] = ()) -> list[str]:
    """The scenario's file and every existing file that it reads, after `PATH=VALUE` overrides.

    Mistakes are passed over: who loads the scenario says them. What is no plain file, such as a pipe, is not opened,
    for it could be read only once.

    >>> files_read_by("no-such-file.yaml")
    ['no-such-file.yaml']
    """
    if not os.path.isfile(scenario):
        return [scenario]
    try:
        document = read_document(scenario)
    except InputError:
        return [scenario]
    return [scenario, *files_read_by_document(document, overrides)]


def files_read_by_document(document: Document, overrides: Sequence[str] = ()) -> list[str]:
    """Every existing file that a scenario's document names, after overrides, which change it.

    >>> from lstmsim.formats.document import document_of
    >>> len(files_read_by_document(document_of({"chip": "column-npu-64k", "jobs": []})))
    1
    """
    references = References(document)
    apply_overrides(document, overrides, references.expand)
    try:
        references.expand_all()
    except (AttributeError, KeyError, TypeError):
        # The document is no mapping.
        return []
    named = [_reference(document, *each) for each in references.read]
    for path, text in _texts(document.data):
        named += [file_path(document, path, text), str(input_files().get(text, ""))]
    return list(dict.fromkeys(each for each in named if _is_file(each)))


def _reference(document: Document, kind: str, name: str) -> str:
    """The file of a chip or a model; "" if there is none."""
    if is_path(name):
        return str(document.folder / name)
    try:
        return str(find_chip(name) if kind == "chip" else find_model(name))
    except InputError:
        return ""


def _texts(data: Any) -> Iterator[tuple[DataPath, str]]:
    """Texts at keys that name files, with their paths."""
    waiting: list[tuple[DataPath, Any]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), each) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [((*path, index), each) for index, each in enumerate(value) if isinstance(each, dict | list)]
        elif isinstance(value, str) and path and (path[-1] in _KEYS or path[-2:-1] in (("initial",), ("calibration",))):
            yield path, value


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a null character in it
        return False
