"""The check of data against the schema: every mistake becomes a sentence at its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from lstmsim.base.key_checkers import checker_of
from lstmsim.base.key_values import Note, Notes
from lstmsim.files.yaml.document import DataPath, Document

__all__ = ["WrongPaths", "check", "usable", "wrong_keys"]

Entry = TypeVar("Entry")


class WrongPaths(list[DataPath]):
    """The paths of mistakes. `below` gives the mistakes in one mapping without a walk through all paths."""

    def __init__(self, paths: Iterable[DataPath] = ()) -> None:
        super().__init__(paths)
        self._below: dict[DataPath, set[str | int]] = {}
        self._counted = 0

    def below(self, path: DataPath) -> set[str | int]:
        """Give the keys of the mapping at `path` that hold a mistake.

        >>> WrongPaths([("jobs", 0, "steps"), ("jobs", 1, "core")]).below(("jobs", 0))
        {'steps'}
        """
        for each in self[self._counted :]:
            for depth, key in enumerate(each):
                self._below.setdefault(each[:depth], set()).add(key)
        self._counted = len(self)
        return set(self._below.get(path, ()))


def check(kind: type[Entry], document: Document, known: Collection[DataPath] = ()) -> tuple[Entry | None, WrongPaths]:
    """Check the document's data. Give the entry (None if there are mistakes) and the paths of mistakes.

    kind: class of the entry, whose fields carry keys (`lstmsim.base.keys`). Keys that the data leaves out have the
    defaults of the class.
    document: the document, in which every mistake is noted.
    known: paths at which a mistake has been noted before; no other mistake is noted there.

    >>> from lstmsim.files.yaml.document import document_of
    >>> from lstmsim.files.yaml.entry import Entry
    >>> class Core(Entry):
    ...     ep: int
    >>> document = document_of({"ep": 1.0, "eep": 3})
    >>> check(Core, document)
    (None, [('ep',), ('eep',)])
    >>> print(*document.mistakes, sep="\\n")
    ep: must be a whole number, got 1.0; write 1
    eep: unknown key; did you mean 'ep'?
    """
    notes: Notes = []
    entry = checker_of(kind)(document.data, (), notes)
    for each in notes:
        if each.path not in known:
            document.blame(each.path, _sentence(document, each), key=bool(each.holder))
    return entry, WrongPaths(each.path for each in notes)


def _sentence(document: Document, note: Note) -> str:
    return note.told(document.at(note.path), document.raw(note.path)) if note.shows else note.told(None)


def usable(
    kind: type[Entry], data: Any, wrong: Collection[str | int], instead: Mapping[str, Any] | None = None
) -> Entry | None:
    """Make an entry of data without its wrong keys; None if the entry needs one of these keys.

    So a mistake does not hide other mistakes that have nothing to do with it.

    kind: class of the entry.
    data: the data; None is given for anything but a mapping.
    wrong: keys that are left out.
    instead: keys and values that are added, for example in place of wrong keys.

    >>> from lstmsim.files.yaml.entry import Entry
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
    notes: Notes = []
    entry: Entry | None = checker_of(kind)(data, (), notes)
    return entry


def wrong_keys(path: DataPath, wrong: Iterable[DataPath]) -> set[str | int]:
    """Give the keys of the mapping at `path` that hold one of the mistakes at the paths `wrong`.

    >>> wrong_keys(("jobs", 0), [("jobs", 0, "steps"), ("jobs", 1, "core")])
    {'steps'}
    """
    return (wrong if isinstance(wrong, WrongPaths) else WrongPaths(wrong)).below(path)
