"""Lines of text of which reports on single products are made."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from lstmsim.report.figures_text import percent
from lstmsim.report.tables import table

__all__ = ["account_text", "folded", "wrapped"]

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


def account_text(title: str, accounts: Mapping[str, int], whole: int) -> str:
    """A table of cycles by name.

    title: what the cycles are.
    accounts: cycles by name.
    whole: of which shares are told.

    >>> print(account_text("cycles", {"issue": 1, "idle": 3}, 4))
    cycles
    issue   1  25.0 %
    idle    3  75.0 %
    sum     4
    """
    rows = [[title, "", ""]]
    rows += [[name, f"{cycles:,}", percent(cycles, whole)] for name, cycles in accounts.items()]
    rows.append(["sum", f"{sum(accounts.values()):,}", ""])
    return "\n".join(table(rows, left=[0]))
