"""A scenario document as it was read, kept so that requests and rates can be drawn from it anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lstmsim.files.yaml.document import Document

__all__ = ["Opened", "draws"]


class Opened(Mapping[str, Any]):
    """The keys of a document that has been read, with the places of its values.

    document: as it was read; whoever changes it takes a copy.
    overrides: texts like `"chip.cores.0.ep=16"`, to be applied to the copy.
    name: what a scenario without a name is called.
    """

    def __init__(self, document: Document, overrides: tuple[str, ...], name: str) -> None:
        self.document, self.overrides, self.name = document, overrides, name

    def __getitem__(self, key: str) -> Any:
        return self.document.data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document.data)

    def __len__(self) -> int:
        return len(self.document.data)


def draws(document: Document, overrides: tuple[str, ...]) -> bool:
    """Whether jobs of a document may be drawn: at random, from a file, or as a process that goes on.

    >>> from lstmsim.files.yaml.document import document_of
    >>> draws(document_of({"jobs": [{"model": "lstm-512", "arrival": 7}]}), ())
    False
    """
    data = document.data if isinstance(document.data, dict) else {}
    jobs = data.get("jobs")
    entries = [each for each in jobs if isinstance(each, dict)] if isinstance(jobs, list) else []
    drawn = any(isinstance(each.get(key), dict) for each in entries for key in ("arrival", "steps"))
    return drawn or "arrivals" in data or any(str(each).startswith(("jobs", "arrivals")) for each in overrides)
