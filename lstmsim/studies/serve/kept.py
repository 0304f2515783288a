"""Answers that a folder keeps, a file for each, so that the same command goes on with those that are missing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from lstmsim.base.errors import InputError, Mistake
from lstmsim.base.files import readable_file, whole_file
from lstmsim.studies.shared.request import Path
from lstmsim.studies.sweep.store import checksum

T = TypeVar("T")


class Kept(Generic[T]):
    """A folder with a file for each answer; without a folder nothing is kept.

    folder: the user's; `part` is the folder in it for these answers.
    form: name of the format. Files of another one, and those whose checksum does not match, are written anew.
    word: what an answer is called in its file.
    plain, made: from an answer to plain data, and back.
    `InputError` if there can be no such folder.
    """

    def __init__(
        self,
        folder: Path | None,
        part: str,
        form: str,
        word: str,
        plain: Callable[[T], Mapping[str, Any]],
        made: Callable[[Any], T],
    ) -> None:
        self._folder = None if folder is None else os.path.join(os.fspath(folder), part)
        self._form, self._word, self._plain, self._made = form, word, plain, made
        if folder is None:
            return
        if not os.fspath(folder):
            raise InputError(Mistake("folder", "the name is empty"))
        try:
            os.makedirs(str(self._folder), exist_ok=True)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise InputError(Mistake(f"folder {folder}", f"cannot be a folder ({reason})")) from None

    def _path(self, key: str) -> str:
        return os.path.join(self._folder or "", f"{key}.json")

    def read(self, key: str) -> T | None:
        """Give an answer that is kept; a file that does not hold it is written anew."""
        if self._folder is None or not os.path.isfile(self._path(key)):
            return None
        try:
            with readable_file(self._path(key), kept=False) as file:
                data = json.loads(file.read())
            answer = data[self._word]
            return self._made(answer) if data == self._file(key, answer) else None
        except (ValueError, KeyError, TypeError):
            return None

    def write(self, key: str, answer: T) -> None:
        """Keep an answer."""
        if self._folder is not None:
            with whole_file(self._path(key)) as file:
                json.dump(self._file(key, self._plain(answer)), file, indent=1)

    def _file(self, key: str, answer: Any) -> dict[str, Any]:
        own = checksum([key, json.dumps(answer, sort_keys=True)])
        return {"format": self._form, "key": key, self._word: answer, "checksum": own}
