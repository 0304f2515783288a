"""Values, keys and near misses as the sentences for users spell them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

_LONGEST = 60
#: Most names that are compared with a word; of more names, only those of about its length are compared.
_MOST_COMPARED = 2000
#: Least letters of a word that may stand for a longer one: `rate` for `rate_per_second`.
_LEAST_WITHOUT_UNIT = 3
_PLAIN_KEY = re.compile(r"[\w-]+")


def show(value: object, raw: str | None = None) -> str:
    """A value as the user wrote it, on one short printable line.

    raw: its text in the file, if known.

    >>> show(1000.0, "1e3"), show("12"), show(None), show(True), show([1, 2])
    ('1e3', "'12'", 'nothing', 'true', 'a list')
    """
    if isinstance(value, str):
        return _short(repr(value))
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if raw:
        return _short(raw if raw.isprintable() else repr(raw))
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, float) and math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    return _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def dotted(path: Iterable[str | int]) -> str:
    """A path of keys and places in lists as users write it.

    >>> dotted(("chip", "cores", 0, "ep")), dotted(("a b",))
    ('chip.cores.0.ep', "'a b'")
    """
    parts = [str(part) for part in path]
    return ".".join(part if _PLAIN_KEY.fullmatch(part) else _short(repr(part)) for part in parts)


def counted(number: int, what: str) -> str:
    """A number of things in words.

    >>> counted(1, "core"), counted(1024, "core")
    ('1 core', '1,024 cores')
    """
    return f"{number:,} {what if number == 1 else what + 's'}"


def given_twice(first: object, second: object) -> str:
    """The end of a sentence on something that may be given once only, so that no value is dropped in silence."""
    return f"is given twice, as {show(first)} and as {show(second)}; expected once"


def listed(words: Iterable[object], conjunction: str = "or") -> str:
    """Words as an English list, with the conjunction before the last.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b or c')
    """
    *head, last = [str(word) for word in words] or ["nothing"]
    return f"{', '.join(head)} {conjunction} {last}" if head else last


def ranged(low: str, high: str) -> str:
    """A range by its ends; a single value where both read alike."""
    return low if low == high else f"{low} to {high}"


def must_be(value: object, known: Iterable[str]) -> str:
    """The end of a sentence that refuses a value, with the words that may be given.

    >>> must_be("warn", ("cold", "warm")), must_be(2, ("cold", "warm"))
    ("must be cold or warm, got 'warn'; did you mean 'warm'?", 'must be cold or warm, got 2')
    """
    words = list(known)
    hint = nearest(value, words) if isinstance(value, str) else ""
    return f"must be {listed(words)}, got {show(value)}{hint}"


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known word most like `word`, or nothing if none is like it.

    >>> nearest("stepz", ["steps", "count"]), nearest("qqq", ["steps"])
    ("; did you mean 'steps'?", '')
    >>> nearest("rate", ["kind", "rate_per_second"])
    "; did you mean 'rate_per_second'?"
    """
    close = _closest(word, known)
    return "" if close is None else f"; did you mean {close!r}?"


def nearest_file(path: str, known: Iterable[str]) -> str:
    """As `nearest`, of paths in one folder: what all of them share, folder and ending, makes no two of them alike.

    >>> nearest_file("a/dem.yaml", ["a/demo.yml"]), nearest_file("a/nope.yaml", ["a/ok.yaml"])
    ("; did you mean 'a/demo.yml'?", '')
    """
    files = {Path(each).stem: each for each in known}
    stem = _closest(Path(path).stem, files)
    return "" if stem is None else f"; did you mean {files[stem]!r}?"


def _closest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, or the one that is `word` with its unit; None if none is."""
    # imported here, because most files hold no misspelled name
    from difflib import get_close_matches

    sought = word[:200].casefold()
    folded = {each.casefold(): each for each in known}
    near: Iterable[str] = folded
    if len(folded) > _MOST_COMPARED:
        near = sorted(folded, key=lambda each: abs(len(each) - len(sought)))[:_MOST_COMPARED]
    close = get_close_matches(sought, near, n=1, cutoff=0.6)
    if not close and len(sought) >= _LEAST_WITHOUT_UNIT:
        close = [each for each in folded if each.startswith(f"{sought}_")]
    return folded[close[0]] if close else None


def markdown(text: str) -> str:
    """A text of a user on one line of Markdown, in a table too: no letter of it is markup.

    >>> print(markdown("a|b <img> [x](y) `c`"))
    a\\|b \\<img\\> \\[x\\](y) \\`c\\`
    """
    return re.sub(r"([\\`*<>\[\]|&#~])", r"\\\1", " ".join(text.split()))
