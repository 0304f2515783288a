"""The files that a scenario reads. No output of the same command may replace them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from lstmsim.base.checks import DataPath
from lstmsim.base.errors import InputError
from lstmsim.files.catalog import chip_files, file_named, input_files, model_files
from lstmsim.files.published import published_folder
from lstmsim.files.scenario.models import file_path, left_out
from lstmsim.files.scenario.scenario_file import References, apply_overrides
from lstmsim.files.yaml.document import Document
from lstmsim.files.yaml.source import read_document
from lstmsim.studies.fit.device import device_files

#: Keys whose text is for people. A text at any other key names a file if there is a file of that name: arrivals, steps,
#: weights, input frames, and keys that may come later.
_WORDS = ("name", "source", "licence", "notes")


def files_read_by(scenario: str, overrides: Sequence[str] = ()) -> list[str]:
    """List the scenario's file and every existing file that it reads.

    Mistakes are passed over, because loading the scenario tells them. A pipe is not opened, because it could be read
    only once.

    scenario: path of the file.
    overrides: `PATH=VALUE` texts, which change the scenario.

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
    """List every existing file that a scenario's document names.

    overrides: `PATH=VALUE` texts, which change the document.

    >>> from lstmsim.files.yaml.document import document_of
    >>> len(files_read_by_document(document_of({"chip": "column-npu-64k", "jobs": []})))
    1
    """
    references = References(document)
    apply_overrides(document, overrides, references.expand, left_out)
    try:
        references.expand_all()
    except (AttributeError, KeyError, TypeError):
        # The document is no mapping.
        return []
    named = [_reference(document, *each) for each in references.read]
    came_along = input_files()
    for path, text in _texts(document.data):
        named += [file_path(document, path, text), str(came_along.get(text, ""))]
    return [each for each in dict.fromkeys(named) if _is_file(each)]


def files_that_come_along() -> list[str]:
    """List the files of lstmsim itself that commands read.

    These are chips, models and their weights, frames, devices and published rows.

    >>> any(each.endswith("lstm-512.yaml") for each in files_that_come_along())
    True
    """
    known = [*chip_files().values(), *model_files().values(), *input_files().values(), *device_files().values()]
    weights = {path for each in model_files().values() for path in (each.parent / "weights").glob("*.safetensors")}
    return [str(each) for each in [*known, *sorted(weights), *sorted(published_folder().glob("*.csv"))]]


def _reference(document: Document, kind: str, name: str) -> str:
    """The file of a chip or a model; empty if there is none."""
    try:
        return file_named(kind, name, document.folder)
    except InputError:
        return ""


def _texts(data: Any) -> Iterator[tuple[DataPath, str]]:
    """Yield the texts that may name files, with their paths in the data."""
    waiting: list[tuple[DataPath, Any]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*path, key), each) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [
                ((*path, index), each) for index, each in enumerate(value) if isinstance(each, dict | list | str)
            ]
        elif isinstance(value, str) and value and not (path and path[-1] in _WORDS):
            yield path, value


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a null character in it
        return False
