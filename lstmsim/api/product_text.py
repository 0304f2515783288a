"""Lines of text of which reports on single products are made."""

from __future__ import annotations

import textwrap

__all__ = ["folded", "wrapped"]

_WIDTH = 100
_NAMES = 13


def folded(text: str) -> list[str]:
    """A text in lines."""
    return textwrap.wrap(text, _WIDTH)


def wrapped(name: str, text: str, width: int = _NAMES) -> list[str]:
    """A name and the text behind it, in lines.

    name: at the left.
    text: behind it.
    width: where the text begins.

    >>> wrapped("chip", "v100")
    ['chip         v100']
    """
    return textwrap.wrap(f"{name:<{width}}{text}", _WIDTH, subsequent_indent=" " * width, break_on_hyphens=False)
